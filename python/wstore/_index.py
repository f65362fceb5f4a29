"""Section 11.2 of the specification: from what is missing and broken to numbered windows.

All tickers' rows are laid on one line, ticker after ticker; a place on it is a *position*. Everything is done with
arrays of intervals on that line, so time and memory follow the number of runs, never the number of windows.

Intervals that are widened may reach over the end of a ticker or stretch. That is harmless: a removed interval that
starts in one stretch ends before the first anchor that the lookback allows in the next, and likewise backwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._format import I64, ptr

_EMPTY = np.empty(0, np.int64)

Intervals = tuple[I64, I64]
NONE: Intervals = (_EMPTY, _EMPTY)


@dataclass(frozen=True, slots=True)
class Runs:
    """Windows, numbered: run r has the numbers ``number[r] … number[r + 1] - 1``.

    Without a table, window k of run r has its anchor at position ``base[r] + k × step``. With one (a query with `at`)
    it is at ``base[r] + table[first[r] + k]``: tickers of one calendar share their times' places in it.
    """

    number: I64
    ticker: I64
    base: I64
    step: int
    table: I64 | None = None
    first: I64 | None = None

    def __len__(self) -> int:
        return len(self.ticker)

    @property
    def nbytes(self) -> int:
        arrays = (self.number, self.ticker, self.base, self.table, self.first)
        return sum(a.nbytes for a in arrays if a is not None)


def spread(pointers: I64, lists: I64) -> tuple[I64, I64]:
    """All elements of the given lists one after another: their indices, and the counts per list."""
    start = pointers[lists]
    counts = pointers[lists + 1] - start
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(start - ends + counts, counts), counts


def union(parts: Iterable[Intervals]) -> Intervals:
    """The union of intervals: ascending, neither overlapping nor touching."""
    listed = [p for p in parts if len(p[0])]
    if not listed:
        return NONE
    start = np.concatenate([p[0] for p in listed])
    end = np.concatenate([p[1] for p in listed])
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    new = np.ones(len(start), bool)
    new[1:] = start[1:] > end[:-1]
    heads = np.flatnonzero(new)
    return start[heads], end[np.append(heads[1:], len(start)) - 1]


def subtract(keep: Intervals, remove: Intervals) -> tuple[I64, I64, I64]:
    """What is left of disjoint ascending intervals: starts, ends, and which interval each piece is from.

    `remove` is a union().
    """
    start, end = keep
    if not len(remove[0]) or not len(start):
        return start, end, np.arange(len(start))
    lo = np.searchsorted(remove[1], start, "right")
    hi = np.maximum(np.searchsorted(remove[0], end, "left"), lo)
    cuts = hi - lo
    origin = np.repeat(np.arange(len(start)), cuts + 1)
    piece = np.arange(len(origin)) - np.repeat(ptr(cuts + 1)[:-1], cuts + 1)
    at = lo[origin] + piece  # the removed interval behind the piece
    is_first, is_last = piece == 0, piece == cuts[origin]
    left = np.where(is_first, start[origin], remove[1][np.maximum(at - 1, 0)])
    right = np.where(is_last, end[origin], remove[0][np.minimum(at, len(remove[0]) - 1)])
    some = left < right
    return left[some], right[some], origin[some]


def anchors(
    line: I64,
    breaks: I64,
    lookback: int,
    horizons: tuple[int, ...],
    target_length: int,
    inputs: Intervals,
    targets: Intervals,
) -> Intervals:
    """Step 1: maximal runs of consecutive valid anchors of one stretch.

    `line` has the tickers' first positions and the end of the last, `breaks` positions in any order; `inputs` and
    `targets` are unions of missing runs. Without horizons there are no targets.
    """
    cuts = np.unique(np.concatenate([line[:-1][line[1:] > line[:-1]], breaks]))
    ends = np.append(cuts[1:], line[-1])[: len(cuts)]
    start, end = cuts + (lookback - 1), ends
    if horizons:
        start = np.maximum(start, cuts - horizons[0])
        end = np.minimum(ends, ends - (horizons[-1] + target_length - 1))
    some = start < end
    start, end = start[some], end[some]
    removed = union([(inputs[0], inputs[1] + (lookback - 1))])
    if len(targets[0]):
        for low, high in _chains(horizons, target_length):
            removed = union([removed, (targets[0] - (high + target_length - 1), targets[1] - low)])
    return subtract((start, end), removed)[:2]


def _chains(horizons: tuple[int, ...], target_length: int) -> list[tuple[int, int]]:
    """Horizons, put together where the target rows of one reach those of the next."""
    chains: list[tuple[int, int]] = []
    for h in horizons:
        if chains and h - chains[-1][1] <= target_length:
            chains[-1] = chains[-1][0], h
        else:
            chains.append((h, h))
    return chains


def number(
    line: I64,
    found: Intervals,
    stride: int,
    tickers: npt.NDArray[np.bool_] | None,
    absent: Intervals,
    bounds: Intervals | None,
) -> Runs:
    """Steps 2 to 4 without `at`: every stride-th anchor of each run, then what the filters keep of them.

    `tickers` says which to keep, `absent` (a union) where a column of `where` is missing, and `bounds` gives each
    ticker's range of positions whose times are wanted.
    """
    origin, end, who = _filter(line, found, tickers, absent, bounds)
    start = found[0][origin[1]]
    first = start + -(-(origin[0] - start) // stride) * stride
    counts = -(-(end - first) // stride)
    some = counts > 0
    return Runs(ptr(counts[some]), who[some], first[some], stride)


def number_at(
    line: I64,
    found: Intervals,
    tickers: npt.NDArray[np.bool_] | None,
    absent: Intervals,
    bounds: Intervals | None,
    table: I64,
    place: I64,
) -> Runs:
    """Steps 2 to 4 with `at`.

    All calendars, too, are laid on a line; `table` has the places of the wanted times there, ascending, and `place`
    that of each ticker's first row.
    """
    (start, _), end, who = _filter(line, found, tickers, absent, bounds)
    shift = line[who] - place[who]
    lo = np.searchsorted(table, start - shift)
    counts = np.searchsorted(table, end - shift) - lo
    some = counts > 0
    return Runs(ptr(counts[some]), who[some], shift[some], 1, table, lo[some])


def _filter(
    line: I64,
    found: Intervals,
    tickers: npt.NDArray[np.bool_] | None,
    absent: Intervals,
    bounds: Intervals | None,
) -> tuple[tuple[I64, I64], I64, I64]:
    """What the filters leave of runs: ((starts, the run each piece is from), ends, tickers)."""
    start, end, origin = subtract(found, absent)
    # Empty tickers share their position with the next: the last at or before it is the one.
    who = np.searchsorted(line, start, "right") - 1
    if bounds is not None:
        start = np.maximum(start, bounds[0][who])
        end = np.minimum(end, bounds[1][who])
    some = start < end
    if tickers is not None:
        some &= tickers[who]
    return (start[some], origin[some]), end[some], who[some]
