"""Statistics for normalising, of training windows only: section 4 of SPLITS.md is the specification.

>>> s = Standardizer.fit(train)
>>> x = s.transform(b.x)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from . import _index
from ._format import I64, ptr
from ._query import columns_of
from ._splits import cut
from .errors import ArgumentError

if TYPE_CHECKING:
    from ._windows import Windows

__all__ = ["Moments", "Standardizer", "Statistics", "statistics"]

F64 = npt.NDArray[np.float64]

# Rows that are added at once, and windows that are looked at.
_PIECE = 1 << 14
# Numbers that a standardizer handles in one of numpy's inner loops.
_LINE = 1 << 13


@dataclass(frozen=True, eq=False)
class Moments:
    """Of each of some columns: how many cells are present, their mean, sum of squared deviations, minimum and maximum.

    `count` is int64, the others float64, all of shape (columns,). Of no cells the mean, minimum and maximum are NaN.
    """

    columns: tuple[str, ...]
    count: I64
    mean: F64
    m2: F64
    min: F64
    max: F64

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Moments):
            return NotImplemented
        return self.columns == other.columns and all(
            np.array_equal(getattr(self, f), getattr(other, f), equal_nan=True)
            for f in ("count", "mean", "m2", "min", "max")
        )

    def __hash__(self) -> int:
        return hash((self.columns, tuple(self.count.tolist())))

    @property
    def std(self) -> F64:
        """The standard deviation, sqrt(m2 / count); NaN of no cells."""
        with np.errstate(invalid="ignore"):
            out: F64 = np.sqrt(self.m2 / self.count)
            return out

    @classmethod
    def of(cls, columns: tuple[str, ...], values: npt.NDArray[Any]) -> Moments:
        """Of float values of shape (rows, columns), in which NaN is missing."""
        a = np.ascontiguousarray(values.T, np.float64)
        rows = a.shape[1]
        count = np.full(len(columns), rows, np.int64)
        mean = a.sum(1) / max(1, rows)
        if rows and not np.isnan(mean).any():
            low, high = a.min(1), a.max(1)
            a -= mean[:, None]
            return cls(columns, count, mean, np.einsum("cr,cr->c", a, a), low, high)
        present = ~np.isnan(a)
        count = present.sum(1)
        mean = np.where(present, a, 0).sum(1) / np.maximum(count, 1)
        m2 = np.square(np.where(present, a - mean[:, None], 0)).sum(1)
        low = np.where(present, a, np.inf).min(1, initial=np.inf)
        high = np.where(present, a, -np.inf).max(1, initial=-np.inf)
        mean, low, high = (np.where(count > 0, v, np.nan) for v in (mean, low, high))
        return cls(columns, count, mean, m2, low, high)

    def merged(self, other: Moments) -> Moments:
        """Of both's cells together (Chan, Golub and LeVeque 1979)."""
        if self.columns != other.columns:
            raise ArgumentError(f"moments of {self.columns} and {other.columns} can't be merged")
        na, nb = self.count, other.count
        n = np.maximum(na + nb, 1)
        d = np.where((na > 0) & (nb > 0), other.mean - self.mean, 0)
        mean = np.where(na > 0, self.mean + d * nb / n, other.mean)
        m2 = self.m2 + other.m2 + d * d * na * nb / n
        return Moments(self.columns, na + nb, mean, m2, np.fmin(self.min, other.min), np.fmax(self.max, other.max))


@dataclass(frozen=True)
class Statistics:
    """Of windows' inputs over their input rows, and of their targets (None without) over their target rows."""

    inputs: Moments
    targets: Moments | None


def statistics(w: Windows) -> Statistics:
    """Windows.statistics."""
    q, schema = w._query, w._store.schema
    inputs = columns_of(schema, q.inputs, "inputs")
    targets = columns_of(schema, q.targets, "targets")
    of_inputs = _moments(w, inputs, _covered(w, [(1 - q.lookback, 1)]))
    if not targets:
        return Statistics(of_inputs, None)
    spans = [(h, h + q.target_length) for h in q.horizons]
    return Statistics(of_inputs, _moments(w, targets, _covered(w, spans)))


def _covered(w: Windows, spans: list[tuple[int, int]]) -> _index.Intervals:
    """The rows that windows hold, laid out as in _index: of each span [from, to) of rows relative to the anchor."""
    parts: list[_index.Intervals] = []
    for anchors in _anchors(w):
        start, end, step = anchors
        for low, high in spans:
            if high - low >= step:
                parts.append((start + low, end - step + high))
            else:  # the rows between windows are in none
                counts = (end - start) // step
                pointers = ptr(counts)
                which = np.repeat(np.arange(len(start)), counts)
                at = start[which] + (np.arange(pointers[-1]) - pointers[which]) * step
                parts.append((at + low, at + high))
    return _index.union(parts)


def _anchors(w: Windows) -> Iterator[tuple[I64, I64, int]]:
    """Windows' anchors as positions: start, end (a step behind the last), and the step from one to the next."""
    runs = w._runs
    if w._ids is None and runs.table is None:
        counts = np.diff(runs.number)
        yield runs.base, runs.base + counts * runs.step, runs.step
        return
    line = w._store._line
    for at in range(0, len(w), _PIECE):
        code, _, row = w.locate(np.arange(at, min(len(w), at + _PIECE)))
        position = line[code] + row
        yield position, position + 1, 1


def _moments(w: Windows, columns: tuple[int, ...], rows: _index.Intervals) -> Moments:
    store = w._store
    flat, schema, line = store._use().flat, store.schema, store._line
    names = tuple(schema.columns[c].name for c in columns)
    total = Moments.of(names, np.empty((0, len(columns)), np.float32))
    by_group: dict[int, list[int]] = {}  # group to places among `columns`
    for i, c in enumerate(columns):
        by_group.setdefault(schema.columns[c].group, []).append(i)
    blocks = store._layout.blocks.offset.reshape(len(store.rows), len(schema.groups))
    for piece, (t, start, end) in enumerate(_ticker_pieces(*cut(line, rows))):
        values = np.empty((int((end - start).sum()), len(columns)), np.float32)
        for g, places in by_group.items():
            width, at = len(schema.groups[g].columns), int(blocks[t, g]) // 4
            block = flat[at : at + int(store.rows[t]) * width].reshape(-1, width)
            which = [schema.columns[columns[i]].place for i in places]
            if len(start) == 1:
                values[:, places] = block[start[0] : end[0]][:, which]
            else:
                r = np.arange(int((end - start).sum())) + np.repeat(start - ptr(end - start)[:-1], end - start)
                values[:, places] = block[r][:, which]
        found = Moments.of(names, values)
        total = found if piece == 0 else total.merged(found)
    return total


def _ticker_pieces(ticker: I64, lo: I64, hi: I64) -> Iterator[tuple[int, I64, I64]]:
    """Of intervals [lo, hi) of tickers' rows: tickers in order, and some of each, about as much as is added at once."""
    heads = np.flatnonzero(np.diff(ticker, prepend=-1))
    for first, after in itertools.pairwise([*heads.tolist(), len(ticker)]):
        t, start, end = int(ticker[first]), lo[first:after], hi[first:after]
        # Long intervals are cut, then neighbours are put together.
        counts = -(-(end - start) // _PIECE)
        pointers = ptr(counts)
        which = np.repeat(np.arange(len(start)), counts)
        at = start[which] + (np.arange(pointers[-1]) - pointers[which]) * _PIECE
        until = np.minimum(at + _PIECE, end[which])
        group = ptr(until - at)[:-1] // _PIECE
        cuts = np.flatnonzero(np.diff(group, prepend=-1))
        for a, b in itertools.pairwise([*cuts.tolist(), len(at)]):
            yield t, at[a:b], until[a:b]


# Functions and their second operands, of which a part is used.
_Steps = list[tuple[np.ufunc, npt.NDArray[Any]]]


def _each(steps: _Steps, source: npt.NDArray[Any], to: npt.NDArray[Any]) -> None:
    """Applies steps to lines, (lines, numbers), by way of pieces that stay in the CPU's cache."""
    each = max(1, (1 << 15) // source.shape[1])
    lines = [(f, a[: source.shape[1]]) for f, a in steps]
    kind = lines[0][1].dtype
    work = None if to.dtype == kind else np.empty((min(each, len(source)), source.shape[1]), kind)
    for i in range(0, len(source), each):
        z, goal = source[i : i + each], to[i : i + each]
        for f, a in lines:
            z = f(z, a, out=goal if work is None else work[: len(goal)])
        if work is not None:
            goal[...] = z


@dataclass(frozen=True, eq=False)
class Standardizer:
    """Takes the mean off and divides by the standard deviation, column by column (the last axis).

    `mean` and `std` are float64 of shape (columns,). Where the deviation is 0, or fewer than two cells are present, it
    divides by 1, and where there is no cell it takes nothing off. It pickles in a few hundred bytes: keep it with the
    model.
    """

    mean: F64
    std: F64

    def __post_init__(self) -> None:
        mean, std = np.asarray(self.mean, np.float64), np.asarray(self.std, np.float64)
        if mean.ndim != 1 or mean.shape != std.shape or not (np.isfinite(mean).all() and (std > 0).all()):
            raise ArgumentError("mean and std must be of shape (columns,), finite, and std above 0")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "std", std)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Standardizer):
            return NotImplemented
        return np.array_equal(self.mean, other.mean) and np.array_equal(self.std, other.std)

    def __hash__(self) -> int:
        return hash((tuple(self.mean.tolist()), tuple(self.std.tolist())))

    @classmethod
    def fit(cls, windows: Windows, of: Literal["inputs", "targets"] = "inputs") -> Standardizer:
        """From training windows: their inputs, or their targets."""
        if of not in ("inputs", "targets"):
            raise ArgumentError(f"of must be 'inputs' or 'targets', not {of!r}")
        if not len(windows):
            raise ArgumentError("there are no windows to fit to: is the range right that they are from?")
        found = statistics(windows)
        moments = found.inputs if of == "inputs" else found.targets
        if moments is None:
            raise ArgumentError("the windows have no targets")
        return cls.from_moments(moments)

    @classmethod
    def from_moments(cls, moments: Moments) -> Standardizer:
        std = moments.std
        usable = (moments.count > 1) & (std > 0)
        return cls(np.where(moments.count > 0, moments.mean, 0.0), np.where(usable, std, 1.0))

    def transform(self, x: npt.NDArray[Any], out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """``(x − mean) / std``, of the type of x if that is a float. `out` may be x itself.

        float32 is computed in float32, with the mean in two parts, so that large values near it lose nothing: it is
        within 3e-7 × the exact value, or 2e-14 × (1 + |mean| / std). Other types are computed in float64.
        """
        x = np.asarray(x)
        single = x.dtype == np.float32 and (out is None or out.dtype == np.float32)
        return self._apply(self._steps(single), x, out)

    def inverse(self, x: npt.NDArray[Any], out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """``x × std + mean``, computed in float64."""
        return self._apply(self._lines((np.multiply, self.std), (np.add, self.mean)), np.asarray(x), out)

    def _steps(self, single: bool) -> _Steps:
        """What transform does, in single precision if it can be: if nothing overflows on the way, or loses bits."""
        usual = (np.abs(self.mean) < 2.0**100).all() and ((self.std > 2.0**-100) & (self.std < 2.0**127)).all()
        if not (single and usual):
            return self._lines((np.subtract, self.mean), (np.divide, self.std))
        high = self.mean.astype(np.float32)
        low, std = (self.mean - high).astype(np.float32), self.std.astype(np.float32)
        return self._lines((np.subtract, high), (np.subtract, low), (np.divide, std))

    def _prepared(self) -> Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32]], npt.NDArray[Any]]:
        """transform(x, out) for many small arrays."""
        return functools.partial(self._apply, self._steps(True))

    def _lines(self, *steps: tuple[np.ufunc, npt.NDArray[Any]]) -> _Steps:
        """Steps with a line of numbers each: its columns' as often as makes numpy's inner loop long."""
        return [(f, np.tile(a, max(1, _LINE // max(1, len(a))))) for f, a in steps]

    def _apply(self, steps: _Steps, x: npt.NDArray[Any], out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        width = len(self.mean)
        if x.shape[-1:] != (width,):
            raise ArgumentError(f"the last axis must have {width} columns; the shape is {x.shape}")
        if out is None:
            out = np.empty(x.shape, x.dtype if x.dtype.kind == "f" else np.float64)
        if not x.size:
            return out
        rows = x.reshape(-1, width), out.reshape(-1, width)
        if not np.shares_memory(rows[1], out):
            raise ArgumentError("out must be contiguous but for its last axis")
        n = len(rows[0])
        line = min(n, len(steps[0][1]) // width) if all(r.flags.c_contiguous for r in rows) else 1
        whole = n - n % line
        for begin, end, each in ((0, whole, line), (whole, n, n - whole)):  # lines, and the rows that don't fill one
            if begin < end:
                source, to = (r[begin:end].reshape(-1, each * width) for r in rows)
                _each(steps, source, to)
        return out

    def __getitem__(self, columns: Any) -> Standardizer:
        """That of some of the columns, by their places."""
        return replace(self, mean=np.atleast_1d(self.mean[columns]), std=np.atleast_1d(self.std[columns]))
