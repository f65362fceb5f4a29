"""Splits without leakage: SPLITS.md is the specification.

A window of a lower split is purged if its label interval, widened by the embargo, meets that of a surviving window of
a higher split. Only the hull of each range's intervals matters for that: they all hold an anchor inside the range, and
a window of a lower split has its anchor outside, so between the range's ends there is nothing that it could slip
through. So each range of a higher split comes down to two thresholds, for a label's end and its beginning, and these
to a row of each ticker: the work goes by runs of anchors, not by windows. (Label ends that are stored in a column have
no order, and are read, window by window.)
"""

from __future__ import annotations

import calendar
import datetime as dt
import itertools
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from . import _index
from ._format import I64, Unit, ptr
from ._query import columns_of
from ._times import I64_MAX, I64_MIN, PER_SECOND, as_datetime, ceil_time
from .errors import ArgumentError

if TYPE_CHECKING:
    from ._store import Store
    from ._windows import Windows

Bools = npt.NDArray[np.bool_]
Range = tuple[int | None, int | None]

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}
# Windows whose label ends are read from a column at once.
_PIECE = 1 << 18


class Split(NamedTuple):
    """The windows to train on, to choose by, and to test with; those purged are in none of them."""

    train: Windows
    valid: Windows
    test: Windows


@dataclass(frozen=True)
class Fold:
    """One step of walking forward: three sets of windows, and the ranges [from, to) of time that they are from.

    `valid` has no windows, and the range None, where no validation was asked for. A side of a range that is None is
    open.
    """

    train: Windows
    valid: Windows
    test: Windows
    train_range: tuple[np.datetime64 | None, np.datetime64 | None]
    valid_range: tuple[np.datetime64 | None, np.datetime64 | None] | None
    test_range: tuple[np.datetime64 | None, np.datetime64 | None]

    def __repr__(self) -> str:
        def text(name: str, w: Windows, r: tuple[np.datetime64 | None, np.datetime64 | None] | None) -> str:
            times = "" if r is None else " [" + ", ".join("…" if t is None else str(t) for t in r) + ")"
            return f"{name} {len(w):,}{times}"

        parts = (("train", self.train, self.train_range), ("valid", self.valid, self.valid_range))
        shown = [text(*p) for p in (*parts, ("test", self.test, self.test_range))]
        return f"<wstore.Fold: {', '.join(shown)}>"


# How views are made: what they pickle as, in place of the runs that they hold


class Between(NamedTuple):
    """A view on the windows whose anchor's time is in [from_, to), in the file's unit."""

    from_: int | None
    to: int | None


class Cut(NamedTuple):
    """A split's arguments: the ranges of test, valid and train; embargo and reach as (count, duration in the unit)."""

    parts: tuple[tuple[Range, ...], ...]
    embargo: tuple[int | None, int | None]
    reach: tuple[int | None, int | None]


class Part(NamedTuple):
    """A part of a split: number `which` of the parts."""

    cut: Cut
    which: int


Step = Between | Part


def follow(w: Windows, step: Step) -> Windows:
    """The view that a step makes of a view without a selection by number."""
    if isinstance(step, Between):
        return restrict(w, numbers_between(w, *step), step)
    return _split_runs(w, step.cut, step.which)[step.which]


# Label intervals


@dataclass(frozen=True)
class _Label:
    """How far windows' labels stretch: rows before and behind the anchor, then reach in rows, time and by column."""

    back: int  # at most 0
    ahead: int  # at least 0
    rows: int
    duration: int
    columns: tuple[int, ...]


def label_of(w: Windows, reach: int | None = None, duration: int | None = None, *, strict: bool = False) -> _Label:
    """The label of a query's windows; `reach` (rows) or `duration` (in the unit) replace what targets declare.

    If `strict`, targets of which it isn't known how far they look are an error.
    """
    q, schema = w._query, w._store.schema
    if not q.horizons:
        return _Label(0, 0, 0, 0, ())
    columns = [schema.columns[c] for c in columns_of(schema, q.targets, "targets")]
    back = min(0, q.horizons[0])
    ahead = max(0, q.horizons[-1] + q.target_length - 1)
    if reach is not None or duration is not None:
        return _Label(back, ahead, reach or 0, duration or 0, ())
    if strict and q.horizons[0] <= 0:
        for c in columns:
            if c.reach_kind == "none":
                raise ArgumentError(
                    f"with horizon {q.horizons[0]} the target {c.name!r} may look ahead by how much only you know: "
                    f"give reach= (rows, or a duration such as '5d'), 0 if it doesn't; or declare it when converting, "
                    f"as in --target {c.name}:5"
                )
    return _Label(
        back,
        ahead,
        max((c.reach for c in columns if c.reach_kind == "rows"), default=0),
        max((c.reach for c in columns if c.reach_kind == "duration"), default=0),
        tuple(sorted({c.reach for c in columns if c.reach_kind == "label_end"})),
    )


def label_interval(w: Windows, ids: Any, label: _Label) -> tuple[I64, I64]:
    """The closed intervals [lo, hi] of times that the labels of windows stretch over, int64 in the file's unit."""
    store = w._store
    ints = store._use().ints
    code, _, row = w.locate(ids)
    at, last = store._time_at[code], store.rows[code] - 1

    def time_of(r: I64) -> I64:
        times: I64 = ints[at + r]
        return times

    lo = time_of(np.maximum(row + label.back, 0))
    end = np.minimum(row + label.ahead, last)
    hi = time_of(np.minimum(end + min(label.rows, I64_MAX >> 1), last))
    if label.duration:
        base = time_of(end)
        hi = np.maximum(hi, np.where(base > I64_MAX - label.duration, I64_MAX, base + label.duration))
    for column in label.columns:
        np.maximum(hi, _column_ends(w, column, code, row), out=hi)
    return lo, hi


def _column_ends(w: Windows, column: int, code: I64, row: I64) -> I64:
    """The greatest label end among windows' target rows; the least int64 where there is none."""
    store, q = w._store, w._query
    group = store.schema.columns[column].group
    block = store._layout.blocks.offset.reshape(len(store.rows), len(store.schema.groups))[code, group] // 8 + row
    ints = store._use().ints
    out = np.full(row.shape, I64_MIN, np.int64)
    for ahead in sorted({h + m for h in q.horizons for m in range(q.target_length)}):
        np.maximum(out, ints[block + ahead], out=out)
    return out


# Durations and ranges


def duration(value: object, unit: Unit, what: str) -> int:
    """A duration in the file's unit, rounded up: a timedelta, or text such as "5d" (s, min, h, d, w)."""
    if isinstance(value, str):
        m = re.fullmatch(r"\s*(\d{1,999})\s*(s|min|h|d|w)\s*", value)
        if m is None:
            raise ArgumentError(f"{what}: {value!r} is not a duration such as '5d' (s, min, h, d, w)")
        return int(m[1]) * _SECONDS[m[2]] * PER_SECOND[unit]
    if isinstance(value, np.timedelta64):
        name, multiple = np.datetime_data(value.dtype)
        if np.isnat(value) or name in ("Y", "M", "generic"):
            raise ArgumentError(f"{what}: {value!r} has no fixed length: give days, as in '30d'")
        parts = {"m": 60, "h": 3600, "D": 86400, "W": 604800, "s": 1}
        ticks = int(value.astype(np.int64)) * multiple
        per = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}.get(name, 1)
        n = -(-ticks * parts.get(name, 1) * PER_SECOND[unit] // per)
    elif isinstance(value, dt.timedelta):
        n = -(-(value // dt.timedelta(microseconds=1)) * PER_SECOND[unit] // 10**6)
    else:
        raise ArgumentError(f"{what}: {value!r} is not a duration: give a timedelta or text such as '5d'")
    if n < 0:
        raise ArgumentError(f"{what} must not be negative, and is {value!r}")
    return n


def _count_or_duration(value: object, unit: Unit, what: str) -> tuple[int, None] | tuple[None, int]:
    """A count, or a duration in the unit; a longer one than an int64 can hold is as good as the longest."""
    if isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{what}: {value!r} is neither a count nor a duration such as '5d'")
    if isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64):
        n = operator.index(value)
        if n < 0:
            raise ArgumentError(f"{what} must not be negative, and is {n}")
        return n, None
    return None, min(duration(value, unit, what), I64_MAX)


def _ranges(given: Any, unit: Unit, what: str) -> list[Range]:
    """The ranges of a split, in the file's unit, ascending; empty ones left out."""
    if given is None:
        return []
    single = isinstance(given, tuple) and len(given) == 2 and not any(isinstance(v, tuple | list) for v in given)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ArgumentError(f"{what} must be a range (from, to) of times or a list of them, not {given!r}")
    out: list[Range] = []
    for pair in [given] if single else given:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ArgumentError(f"{what}: {pair!r} is not a range (from, to) of times")
        lo, hi = (None if v is None else ceil_time(v, unit) for v in pair)
        if lo is not None and hi is not None and lo > hi:
            raise ArgumentError(f"{what}: the range {pair!r} ends before it begins")
        if lo is None or hi is None or lo < hi:
            out.append((lo, hi))
    return sorted(out, key=_from)


def _from(r: Range) -> float:
    return float("-inf") if r[0] is None else r[0]


# Splitting


def split(w: Windows, train: Any, valid: Any, test: Any, embargo: object, reach: object) -> Split:
    """Windows.split."""
    unit = w._store.unit
    given = {"train": _ranges(train, unit, "train"), "valid": _ranges(valid, unit, "valid")}
    given["test"] = _ranges(test, unit, "test")
    every = sorted(((r, name) for name, ranges in given.items() for r in ranges), key=lambda p: _from(p[0]))
    for (a, left), (b, right) in itertools.pairwise(every):
        if a[1] is None or b[0] is None or b[0] < a[1]:
            raise ArgumentError(
                f"the ranges of splits must not overlap: {_text(a, unit)} of {left} and {_text(b, unit)} of {right} do"
            )
    far: tuple[int | None, int | None] = (None, None) if reach is None else _count_or_duration(reach, unit, "reach")
    label_of(w, *far, strict=True)
    parts = tuple(tuple(given[name]) for name in ("test", "valid", "train"))
    cut = Cut(parts, _count_or_duration(embargo, unit, "embargo"), far)
    tested, validated, trained = _split_runs(w, cut) if w._ids is None else _split_selected(w, cut)
    return Split(trained, validated, tested)


def _text(r: Range, unit: Unit) -> str:
    def one(t: int | None) -> str:
        if t is None:
            return "…"
        return str(as_datetime(np.array(t), unit)[()]) if I64_MIN < t <= I64_MAX else str(t)

    return f"[{one(r[0])}, {one(r[1])})"


# The interval [u, v] of a higher range to (hi, lo): what ends at or after hi and begins at or before lo is purged.
_Widen = Callable[[int, int], tuple[int, int]]


def _widener(store: Store, count: int | None, time: int | None) -> _Widen:
    if not count:
        d = time or 0
        return lambda u, v: (max(I64_MIN, u - d), min(I64_MAX, v + d))
    times = store.calendar().view(np.int64)

    def widen(u: int, v: int) -> tuple[int, int]:
        i = int(np.searchsorted(times, np.int64(u), "left")) - count
        j = int(np.searchsorted(times, np.int64(min(v, I64_MAX)), "right")) + count - 1
        hi = I64_MIN if i < 0 else min(u, int(times[min(i, len(times) - 1)]))
        lo = I64_MAX if j >= len(times) else max(v, int(times[j]))
        return hi, lo

    return widen


def _split_selected(w: Windows, cut: Cut) -> list[Windows]:
    """Of a selection by number, window by window."""
    label, widen = label_of(w, *cut.reach), _widener(w._store, *cut.embargo)
    every = range(len(w))
    times = w.locate(every)[1].view(np.int64)
    lo, hi = label_interval(w, every, label)
    thresholds: list[tuple[int, int]] = []
    out: list[Windows] = []
    for ranges in cut.parts:
        above = thresholds.copy()
        chosen = np.zeros(len(times), bool)
        for start, end in ranges:
            some = np.ones(len(times), bool)
            if start is not None:
                some &= times >= start
            if end is not None:
                some &= times < end
            for late, early in above:
                some &= (hi < late) | (lo > early)
            if some.any():
                thresholds.append(widen(int(lo[some].min()), int(hi[some].max())))
            chosen |= some
        out.append(w.select(np.flatnonzero(chosen)))
    return out


def _split_runs(w: Windows, cut: Cut, last: int = 2) -> list[Windows]:
    """By intervals of window numbers; the parts up to number `last`, which no later one has a part in."""
    label, widen = label_of(w, *cut.reach), _widener(w._store, *cut.embargo)
    thresholds: list[tuple[int, int]] = []
    out: list[Windows] = []
    for which, ranges in enumerate(cut.parts[: last + 1]):
        above = thresholds.copy()
        kept: list[_index.Intervals] = []
        for start, end in ranges:
            some = numbers_between(w, start, end)
            for late, early in above:
                some = _purge(w, some, label, late, early)
            if len(some[0]):
                thresholds.append(widen(*_hull(w, some, label)))
            kept.append(some)
        out.append(restrict(w, _index.union(kept), Part(cut, which)))
    return out


def rows_before(store: Store, time: int | None) -> I64:
    """For each ticker the number of rows before a time (any int); of None, all rows."""
    layout = store._layout
    if time is None or not len(layout.calendars.count):
        return layout.rows
    rows: I64 = np.clip(store._entries_before(time)[layout.calendar] - layout.first, 0, layout.rows)
    return rows


def numbers_between(w: Windows, start: int | None, end: int | None) -> _index.Intervals:
    """The intervals of numbers of the windows whose anchor's time is in [start, end)."""
    store = w._store
    first = np.zeros_like(store.rows) if start is None else rows_before(store, start)
    return _numbers(w, first, rows_before(store, end))


def _numbers(w: Windows, first: I64, end: I64) -> _index.Intervals:
    """The intervals of numbers of the windows whose anchor's row is in [first, end) of its ticker's."""
    runs, line = w._runs, w._store._line
    counts = np.diff(runs.number)

    def before(rows: I64) -> I64:
        position = line[runs.ticker] + rows[runs.ticker] - runs.base
        if runs.table is None or runs.first is None:
            k = -(-position // runs.step)
        else:
            k = np.searchsorted(runs.table, position) - runs.first
        number: I64 = runs.number[:-1] + np.clip(k, 0, counts)
        return number

    lo, hi = before(first), before(end)
    some = lo < hi
    return lo[some], hi[some]


def _purge(w: Windows, some: _index.Intervals, label: _Label, late: int, early: int) -> _index.Intervals:
    """Without the windows whose label ends at or after `late` and begins at or before `early`."""
    store = w._store
    rows = store.rows
    # The first anchor whose label ends late: by rows, or by duration
    from_row = rows_before(store, late)
    anchor = np.where(from_row < rows, from_row - label.ahead - min(label.rows, I64_MAX >> 1), rows)
    if label.duration:
        from_row = rows_before(store, late - label.duration)
        anchor = np.minimum(anchor, np.where(from_row < rows, from_row - label.ahead, rows))
    # The first whose label no longer begins early
    early_rows = rows_before(store, early + 1)
    stop = np.where(early_rows > 0, early_rows - label.back, 0)
    purged = [_numbers(w, anchor, stop)]
    if label.columns:
        rest = _numbers(w, np.zeros_like(rows), np.minimum(anchor, stop))
        rest = _index.subtract(some, _index.union([_complement(rest, len(w))]))[:2]
        purged.append(_ending_late(w, rest, label, late))
    return _index.subtract(some, _index.union(purged))[:2]


def _complement(some: _index.Intervals, n: int) -> _index.Intervals:
    start, end = np.append(0, some[1]), np.append(some[0], n)
    gaps = start < end
    return start[gaps], end[gaps]


def _pieces(some: _index.Intervals) -> Iterable[I64]:
    """The numbers of intervals, a bounded number at a time."""
    pointers = ptr(some[1] - some[0])
    total = int(pointers[-1])
    for at in range(0, total, _PIECE):
        i = np.arange(at, min(total, at + _PIECE))
        which = np.searchsorted(pointers, i, "right") - 1
        yield some[0][which] + (i - pointers[which])


def _ending_late(w: Windows, some: _index.Intervals, label: _Label, late: int) -> _index.Intervals:
    found: list[_index.Intervals] = []
    for ids in _pieces(some):
        hit = ids[label_interval(w, ids, label)[1] >= late]
        found.append((hit, hit + 1))
    return _index.union(found)


def _hull(w: Windows, some: _index.Intervals, label: _Label) -> tuple[int, int]:
    """The least beginning and the greatest end of windows' labels."""
    lo = label_interval(w, some[0], label)[0]
    if label.columns:
        hi = max(int(label_interval(w, ids, label)[1].max()) for ids in _pieces(some))
    else:
        # Both grow with the anchor, and no interval spans several runs.
        hi = int(label_interval(w, some[1] - 1, label)[1].max())
    return int(lo.min()), hi


def cut(edges: I64, some: _index.Intervals) -> tuple[I64, I64, I64]:
    """Ascending intervals, cut at ascending edges: for each piece the last edge at or before it, by number, and its
    start and end from there on."""
    start, end = some
    first = np.searchsorted(edges, start, "right") - 1
    counts = np.searchsorted(edges, end, "left") - first
    pointers = ptr(counts)
    which = np.repeat(np.arange(len(start)), counts)
    e = first[which] + np.arange(pointers[-1]) - pointers[which]
    lo, hi = np.maximum(start[which], edges[e]), np.minimum(end[which], edges[e + 1])
    filled = lo < hi
    e, lo, hi = e[filled], lo[filled], hi[filled]
    return e, lo - edges[e], hi - edges[e]


def restrict(w: Windows, some: _index.Intervals, step: Step) -> Windows:
    """The windows of ascending, disjoint intervals of numbers, numbered anew: a view that holds runs, not numbers.

    `step` says how to get at them again.
    """
    runs = w._runs
    r, lo, hi = cut(runs.number, some)
    base, first = runs.base[r], None
    if runs.first is None:
        base = base + lo * runs.step
    else:
        first = runs.first[r] + lo
    return w._with_runs(_index.Runs(ptr(hi - lo), runs.ticker[r], base, runs.step, runs.table, first), step)


# Walking forward


def anchor_times(w: Windows) -> I64:
    """The distinct times of windows' anchors, ascending, in the file's unit. Costs by runs and times."""
    store = w._store
    if not len(w):
        return np.empty(0, np.int64)
    if w._ids is not None:
        return np.unique(w.locate(range(len(w)))[1].view(np.int64))
    layout, runs = store._layout, w._runs
    places = ptr(layout.calendars.count)
    # All calendars laid on a line, and on it the places that are some ticker's anchors
    marks = np.zeros(int(places[-1]) + 1, np.int8)
    if runs.table is None or runs.first is None:
        code = runs.ticker
        place = places[layout.calendar[code]] + layout.first[code] + runs.base - store._line[code]
        spans = np.unique(np.stack([place, np.diff(runs.number)], 1), axis=0)
        for start, count in spans.tolist():
            marks[start : start + (count - 1) * runs.step + 1 : runs.step] = 1
    else:
        for start, count in np.unique(np.stack([runs.first, np.diff(runs.number)], 1), axis=0).tolist():
            marks[runs.table[start : start + count]] = 1
    found = [
        store._calendar(c)[marks[places[c] : places[c + 1]].astype(bool)] for c in range(len(layout.calendars.count))
    ]
    return np.unique(np.concatenate(found))


@dataclass(frozen=True)
class _Length:
    """A length of time: months of the file's zone, or an exact number of units; and as it was given."""

    months: int
    units: int
    given: object


def _length(value: object, unit: Unit, what: str) -> _Length:
    m = re.fullmatch(r"\s*(\d{1,999})\s*(mo|y)\s*", value) if isinstance(value, str) else None
    if m is not None:
        out = _Length(int(m[1]) * (12 if m[2] == "y" else 1), 0, value)
    else:
        try:
            out = _Length(0, duration(value, unit, what), value)
        except ArgumentError:
            raise ArgumentError(
                f"{what}: {value!r} is not a length of time such as '1mo' (h, d, w, mo, y), nor a number of times"
            ) from None
    if not (out.months or out.units):
        raise ArgumentError(f"{what} must be above 0")
    return out


class _Clock:
    """Adds lengths to instants, int in the unit, in the file's zone."""

    def __init__(self, zone: str, unit: Unit) -> None:
        self.per = PER_SECOND[unit]
        try:
            self.zone: dt.tzinfo = ZoneInfo(zone) if zone else dt.UTC
        except (ZoneInfoNotFoundError, ValueError, OSError) as e:
            raise ArgumentError(
                f"the file's zone {zone!r} is not known here, so that months can't be counted in it: "
                "pip install tzdata, or give lengths in h, d or w"
            ) from e

    def add(self, t: int, length: _Length, times: int) -> int:
        t += times * length.units
        if not length.months:
            return t
        seconds, rest = divmod(t, self.per)
        try:
            local = (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)).astimezone(self.zone)
            year, month = divmod(local.year * 12 + local.month - 1 + times * length.months, 12)
            day = min(local.day, calendar.monthrange(year, month + 1)[1])
            # fold=0: a time that exists twice is the first; one that doesn't is taken by the offset before the gap
            moved = local.replace(year=year, month=month + 1, day=day, fold=0).astimezone(dt.UTC)
        except (OverflowError, ValueError, calendar.IllegalMonthError) as e:
            raise ArgumentError(f"a fold would lie outside the years 1 to 9999: {times} × {length.given!r}") from e
        since = moved - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return (since.days * 86400 + since.seconds) * self.per + rest


def walk_forward(
    w: Windows, every: object, train: object, valid: object, start: object, embargo: object, reach: object
) -> list[Fold]:
    """Windows.walk_forward."""
    store = w._store
    unit = store.unit
    if train is None and start is None:
        raise ArgumentError("without train, which is then all that is before, give start=: the first test time")
    times = anchor_times(w)
    begin = None if start is None else ceil_time(start, unit)
    by_count = isinstance(every, int | np.integer) and not isinstance(every, bool | np.bool_ | np.timedelta64)
    for what, value in (("train", train), ("valid", valid)):
        is_count = isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64)
        if value is not None and is_count != by_count:
            raise ArgumentError(
                f"every={every!r} and {what}={value!r} must both be numbers of times or both lengths of time"
            )
    bounds = _by_count if by_count else _by_length
    folds: list[Fold] = []
    split(w, None, None, None, embargo, reach)  # what is wrong with these is so even if there is no fold

    def as_times(r: Range) -> tuple[np.datetime64 | None, np.datetime64 | None]:
        # What is not after the least int64, or above the greatest, leaves no time of a file out.
        lo, hi = (None if t is None or not I64_MIN < t <= I64_MAX else np.datetime64(t, unit) for t in r)
        return lo, hi

    def rank(t: int) -> int:
        return len(times) if t > I64_MAX else int(np.searchsorted(times, max(t, I64_MIN)))

    for train_range, valid_range, test_range in bounds(w, times, every, train, valid, begin):
        if rank(test_range[0]) == rank(test_range[1]):
            continue
        three = split(w, train_range, valid_range, test_range, embargo, reach)
        shown = None if valid_range is None else as_times(valid_range)
        folds.append(Fold(*three, as_times(train_range), shown, as_times(test_range)))
    return folds


_Bounds = Iterable[tuple[Range, Range | None, tuple[int, int]]]


def _by_count(w: Windows, times: I64, every: Any, train: Any, valid: Any, start: int | None) -> _Bounds:
    lengths = {}
    for what, value in (("every", every), ("train", train), ("valid", valid)):
        lengths[what] = 0 if value is None else operator.index(value)
        if value is not None and lengths[what] < 1:
            raise ArgumentError(f"{what} must be at least 1, not {value}")
    n, step, back = len(times), lengths["every"], lengths["valid"]
    s = lengths["train"] + back if start is None else int((times < start).sum())

    def at(i: int) -> int:
        return int(times[max(0, i)]) if i < n else int(times[-1]) + 1

    for i in range(s, n, step):
        test = at(i), at(i + step)
        first = None if train is None else at(i - back - lengths["train"])
        yield (first, at(i - back)), None if valid is None else (at(i - back), at(i)), test


def _year(year: int, unit: Unit) -> int:
    """The instant at which a year begins, in UTC."""
    return int(np.datetime64(f"{year:04d}", "s").astype(np.int64)) * PER_SECOND[unit]


def _by_length(w: Windows, times: I64, every: Any, train: Any, valid: Any, start: int | None) -> _Bounds:
    store = w._store
    step = _length(every, store.unit, "every")
    back = None if valid is None else _length(valid, store.unit, "valid")
    before = None if train is None else _length(train, store.unit, "train")
    if not len(times):
        return
    first, behind, last_start = (_year(y, store.unit) for y in (1, 9999, 10_000))
    if times[0] < first or times[-1] >= behind or (start is not None and not first <= start < last_start):
        raise ArgumentError("walking by the calendar is for the years 1 to 9998: walk by numbers of times")
    months = any(length is not None and length.months for length in (step, back, before))
    clock = _Clock(store.zone if months else "", store.unit)
    if start is None:
        start = int(times[0])
        for length in (before, back):
            start = start if length is None else clock.add(start, length, 1)
    end = int(times[-1]) + 1
    i = 0
    if step.units:  # no test window: no fold
        i = max(0, (int(times[0]) - start) // step.units)
    while (test_from := clock.add(start, step, i)) < end:
        test_to = clock.add(start, step, i + 1)
        i += 1
        if step.units and test_to <= times[-1]:
            following = int(times[np.searchsorted(times, test_to)])
            i = max(i, (following - start) // step.units)
        valid_from = test_from if back is None else clock.add(test_from, back, -1)
        train_from = None if before is None else clock.add(valid_from, before, -1)
        yield (train_from, valid_from), None if back is None else (valid_from, test_from), (test_from, test_to)
