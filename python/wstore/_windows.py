"""Windows: a query's answer, by number. What it holds is proportional to the runs of anchors."""

from __future__ import annotations

import dataclasses
import operator
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from . import _batches, _frames, _index, _splits
from ._arguments import real
from ._format import I64, ptr
from ._query import Query, columns_of
from ._times import I64_MAX, as_datetime, ceil_time, exact_times
from .errors import ArgumentError, WindowRangeError

if TYPE_CHECKING:
    from ._store import Store
    from .orders import Tail
    from .stats import Statistics

F32 = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Times = npt.NDArray[np.datetime64]
Method = Literal["exact", "pad", "backfill"]

# Into a caller's array windows are copied by way of a piece that stays in the CPU's cache.
_PIECE_BYTES = 1 << 19
# Views of more elements than this numpy may not be able to count.
_COUNT_MAX = 1 << 60


class _Spot:
    """Where a group's rows of a window begin in the flat file: window k of run r at ``offset[r] + k × step`` floats."""

    __slots__ = ("fast", "offset", "step")

    def __init__(self, offset: I64, step: int) -> None:
        self.offset = offset
        self.fast = offset.data
        self.step = step


class _Far:
    """What as_strided can't give because numpy can't count its elements: element o is the view that starts at o."""

    __slots__ = ("flat", "shape", "strides")

    def __init__(self, flat: F32, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.flat, self.shape, self.strides = flat, shape, strides

    def __getitem__(self, o: Any) -> Any:
        if isinstance(o, np.ndarray):
            out = np.empty(o.shape + self.shape, np.float32)
            for i in np.ndindex(o.shape):
                out[i] = self[int(o[i])]
            return out
        return as_strided(self.flat[o:], self.shape, self.strides, writeable=False)


class _Piece:
    """Evenly spaced columns of one group: a view of the file in which element o is the window that starts at o."""

    __slots__ = ("columns", "group", "horizons", "shape", "solid", "view")

    def __init__(
        self,
        flat: F32,
        group: int,
        columns: slice,
        start: int,
        dims: tuple[tuple[int, int], ...],
        horizons: I64 | None,
    ) -> None:
        self.group = group
        self.columns = columns
        self.horizons = horizons
        self.shape = shape = tuple(n for n, _ in dims)
        strides = tuple(4 * s for _, s in dims)
        flat = flat[start:]
        n = max(0, flat.size - sum((n - 1) * s for n, s in dims))
        self.view: Any
        # The same for windows without holes between their values, in one dimension: numpy copies those fastest. (As
        # opaque items they would be as fast, but then no other thread runs meanwhile.)
        self.solid: F32 | None = None
        size = prod(shape)
        if n * size < _COUNT_MAX:
            self.view = as_strided(flat, (n, *shape), (4, *strides), writeable=False)
            if _is_solid(dims):
                self.solid = as_strided(flat, (n, size), (4, 4), writeable=False)
        else:
            self.view = _Far(flat, shape, strides)

    def one(self, o: int) -> F32:
        several: F32 = self.view[o if self.horizons is None else o + self.horizons]
        return several

    def many(self, o: I64) -> F32:
        if self.horizons is not None:
            o = o[:, None] + self.horizons
        if self.solid is None:
            strided: F32 = self.view[o]
            return strided
        return self.solid[o].reshape(o.shape + self.shape)


def _is_solid(dims: tuple[tuple[int, int], ...]) -> bool:
    inner = 1
    for n, step in reversed(dims):
        if n != 1 and step != inner:
            return False
        inner *= n
    return True


class _Side:
    """The inputs of windows, or their targets: an array of `shape` each."""

    __slots__ = ("optional", "pieces", "shape", "view")

    def __init__(self, shape: tuple[int, ...], pieces: list[_Piece], optional: bool) -> None:
        self.shape = shape
        self.pieces = pieces
        self.optional = optional  # whether a cell may be missing
        only = pieces[0] if len(pieces) == 1 else None
        self.view: Any = None if only is None or only.horizons is not None else only.view

    def one(self, spots: dict[int, _Spot], r: int, k: int) -> F32:
        out = np.empty(self.shape, np.float32)
        for p in self.pieces:
            spot = spots[p.group]
            out[..., p.columns] = p.one(spot.fast[r] + k * spot.step)
        return out

    def many(self, spots: dict[int, I64], n: int, out: F32 | None) -> F32:
        if out is None and len(self.pieces) == 1:
            return self.pieces[0].many(spots[self.pieces[0].group])
        if out is None:
            out = np.empty((n, *self.shape), np.float32)
        each = max(1, _PIECE_BYTES // max(1, 4 * prod(self.shape)))
        for i in range(0, n, each):
            for p in self.pieces:
                out[i : i + each, ..., p.columns] = p.many(spots[p.group][i : i + each])
        return out


class Windows:
    """The windows of a query, numbered from 0 in ticker order, then by time. Made by :meth:`Store.windows`.

    ``w[i]`` is ``(x, y)``: `x` is float32 of shape (lookback, inputs), `y` of shape (targets,), with target_length
    before it if that is above 1, and the horizons before all if there are several; without targets `y` is None. They
    are read-only views of the file where the columns are evenly spaced in one group (and the horizons, if there are
    several, evenly spaced too), else fresh copies; `zero_copy` says whether both are views. Views stay valid when the
    store is closed. ``w[a:b]`` is a selection, and costs no memory per window.

    Memory is a few dozen bytes per run of consecutive anchors (`nbytes_index`), whatever the number of windows. A
    Windows may be used by any number of threads. It pickles as its file's path, its query and how it was split, and a
    selection's numbers.
    """

    __slots__ = (
        "__weakref__",
        "_bucket",
        "_fast",
        "_group_x",
        "_group_y",
        "_ids",
        "_n",
        "_numbers",
        "_query",
        "_runs",
        "_shift",
        "_spots",
        "_step_x",
        "_step_y",
        "_steps",
        "_store",
        "_table",
        "_table_first",
        "_view_x",
        "_view_y",
        "_x",
        "_y",
    )

    def __init__(self, store: Store, query: Query) -> None:
        self._store = store
        self._query = query
        self._ids: I64 | range | None = None
        flat = store._use().flat
        schema = store.schema
        inputs = columns_of(schema, query.inputs, "inputs")
        targets = columns_of(schema, query.targets, "targets")
        optional = {*columns_of(schema, query.optional, "optional", once=False)}
        self._steps: tuple[_splits.Step, ...] = ()  # from all of the query's windows to these runs
        missing = store._layout.index.missing
        self._x = _side(store, flat, inputs, 0, ((query.lookback, 1),), None)
        self._x.optional = any(c in optional and c in missing for c in inputs)
        self._y: _Side | None = None
        if targets:
            hs = np.array(query.horizons, np.int64)
            dims: tuple[tuple[int, int], ...] = ()
            uneven: I64 | None = None
            if len(hs) > 1:
                gaps = np.diff(hs)
                if (gaps == gaps[0]).all():
                    dims = ((len(hs), int(gaps[0])),)
                else:
                    uneven = hs - hs[0]
            if query.target_length > 1:
                dims += ((query.target_length, 1),)
            self._y = _side(store, flat, targets, int(hs[0]) + query.lookback - 1, dims, uneven)
            self._y.optional = any(c in optional and c in missing for c in targets)
        self._prepare(_run(store, query, inputs, targets, optional))

    def _prepare(self, runs: _index.Runs) -> None:
        """What w[i] needs, in the forms that are fastest to index from Python."""
        self._runs = runs
        self._n = int(runs.number[-1])
        store, schema = self._store, self._store.schema
        blocks = store._layout.blocks.offset.reshape(len(store.rows), len(schema.groups))
        row = runs.base - store._line[runs.ticker] - (self._query.lookback - 1)
        self._spots: dict[int, _Spot] = {}
        sides = (self._x,) if self._y is None else (self._x, self._y)
        for g in sorted({p.group for side in sides for p in side.pieces}):
            width = len(schema.groups[g].columns)
            self._spots[g] = _Spot(blocks[runs.ticker, g] // 4 + row * width, runs.step * width)
        # Bucket b says which runs the numbers from b << shift on can be in.
        n = len(runs)
        self._shift = max(0, (self._n // max(1, n)).bit_length() - 1)
        edges = np.arange((self._n >> self._shift) + 2, dtype=np.int64) << self._shift
        bucket = np.searchsorted(runs.number, np.minimum(edges, max(0, self._n - 1)), "right") - 1
        self._bucket = bucket.data
        self._numbers = runs.number.data
        self._table = None if runs.table is None else runs.table.data
        self._table_first = None if runs.first is None else runs.first.data
        x, y = self._x, self._y
        self._view_x: Any = x.view
        self._view_y: Any = None if y is None else y.view
        self._fast = x.view is not None and (y is None or y.view is not None)
        group_x = x.pieces[0].group
        group_y = group_x if y is None else y.pieces[0].group
        self._group_x, self._step_x = self._spots[group_x].fast, self._spots[group_x].step
        self._group_y = None if y is None or group_y == group_x else self._spots[group_y].fast
        self._step_y = self._spots[group_y].step

    # What it is

    def __len__(self) -> int:
        return self._n if self._ids is None else len(self._ids)

    @property
    def store(self) -> Store:
        """The store whose windows these are."""
        return self._store

    @property
    def lookback(self) -> int:
        """Rows of a window."""
        return self._query.lookback

    @property
    def horizons(self) -> tuple[int, ...]:
        """Rows from the anchor to each first target row; empty without targets."""
        return self._query.horizons

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the input columns, in order."""
        schema = self._store.schema
        return tuple(schema.columns[c].name for c in columns_of(schema, self._query.inputs, "inputs"))

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the target columns, in order."""
        schema = self._store.schema
        return tuple(schema.columns[c].name for c in columns_of(schema, self._query.targets, "targets"))

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """The shapes of a window's x and y (None without targets)."""
        return self._x.shape, None if self._y is None else self._y.shape

    @property
    def zero_copy(self) -> bool:
        """Whether ``w[i]`` copies nothing: x, and y if there are targets, are views of the file."""
        return self._fast

    @property
    def runs(self) -> int:
        """The number of runs of consecutive anchors that all windows (also those not selected) come from."""
        return len(self._runs)

    @property
    def nbytes_index(self) -> int:
        """The bytes of memory that numbering takes, a selection's numbers included."""
        ids: int = self._ids.nbytes if isinstance(self._ids, np.ndarray) else 0
        spots: int = sum(s.offset.nbytes for s in self._spots.values())
        return int(self._runs.nbytes + spots + self._bucket.nbytes + ids)

    def __repr__(self) -> str:
        q = self._query
        parts = [f"lookback={q.lookback}"]
        if q.horizons:
            parts.append(f"horizon={q.horizons[0] if len(q.horizons) == 1 else list(q.horizons)}")
        if q.target_length != 1:
            parts.append(f"target_length={q.target_length}")
        if q.at is not None:
            parts.append(f"at={len(q.at)} times")
        elif q.stride != 1:
            parts.append(f"stride={q.stride}")
        shapes = f"x {self._x.shape}" + ("" if self._y is None else f", y {self._y.shape}")
        how = "views" if self._fast else "copies"
        selected = "" if self._ids is None else f" (of {self._n:,})"
        return f"<wstore.Windows: {len(self):,}{selected}, {shapes}, {how}; {', '.join(parts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._store, self._query, self._ids, self._steps)

    # Windows by number

    @overload
    def __getitem__(self, i: slice) -> Windows: ...
    @overload
    def __getitem__(self, i: int | np.integer[Any]) -> tuple[F32, F32 | None]: ...
    def __getitem__(self, i: Any) -> Any:
        if self._store._arrays is None:
            self._store._use()  # says that it is closed
        if i.__class__ is not int:
            if isinstance(i, slice):
                return self.select(i)
            try:
                i = operator.index(i)
            except TypeError:
                raise ArgumentError(f"a window's number is an int, or a slice; not {i!r}: see gather") from None
        if self._ids is not None:
            try:
                i = int(self._ids[i])
            except IndexError:
                raise self._range(i) from None
        elif i < 0:
            i += self._n
        if not 0 <= i < self._n:
            raise self._range(i if i >= 0 else i - self._n)
        bucket = i >> self._shift
        r = self._bucket[bucket]
        last = self._bucket[bucket + 1]
        if r != last:
            r = bisect_right(self._numbers, i, r + 1, last + 1) - 1
        k = i - self._numbers[r]
        if self._table is not None:
            k = self._table[self._table_first[r] + k]  # type: ignore[index]
        if self._fast:
            o = self._group_x[r] + k * self._step_x
            x = self._view_x[o]
            if self._view_y is None:
                return x, None
            if self._group_y is not None:
                o = self._group_y[r] + k * self._step_y
            return x, self._view_y[o]
        y = self._y
        return self._one(self._x, r, k), None if y is None else self._one(y, r, k)

    def _one(self, side: _Side, r: int, k: int) -> F32:
        if side.view is None:
            return side.one(self._spots, r, k)
        spot = self._spots[side.pieces[0].group]
        view: F32 = side.view[spot.fast[r] + k * spot.step]
        return view

    def __iter__(self) -> Iterator[tuple[F32, F32 | None]]:
        return (self[i] for i in range(len(self)))

    def _range(self, i: int) -> WindowRangeError:
        n = len(self)
        if n == 0:
            return WindowRangeError(f"window {i}: there are none")
        return WindowRangeError(f"window {i} is not there: there are {n}, 0 to {n - 1} (or -{n} to -1 from the end)")

    def _base_ids(self, ids: Any) -> I64:
        """Numbers of this view, checked, as numbers of all windows of the query."""
        a = np.arange(ids.start, ids.stop, ids.step) if isinstance(ids, range) else np.asarray(ids)
        if a.dtype.kind not in "iu":
            if a.size:
                raise ArgumentError(f"ids must be integers, not {a.dtype}")
            a = a.astype(np.int64)
        n = len(self)
        if a.size:
            low, high = int(a.min()), int(a.max())
            if low < 0 or high >= n:
                wrong = low if low < 0 else high
                hint = "; find() returns -1 where there is no window" if wrong == -1 else ""
                most = f"0 to {n - 1}" if n else "none, there are no windows"
                raise WindowRangeError(f"ids out of range: {wrong} (possible: {most}){hint}")
        a = a.astype(np.int64, copy=False)
        if self._ids is None:
            return a
        if isinstance(self._ids, range):
            return a * self._ids.step + self._ids.start
        return self._ids[a]

    def _places(self, ids: Any) -> tuple[I64, I64]:
        """The runs of windows, and what `k` in ``base[r] + k × step`` is for each."""
        i = self._base_ids(ids)
        runs = self._runs
        r = self._runs_of(i)
        k = i - runs.number[r]
        if runs.table is not None and runs.first is not None:
            k = runs.table[runs.first[r] + k]
        return r, k

    def _runs_of(self, i: I64) -> I64:
        """The runs of numbers: a look into the buckets, which mostly hold two runs at most, else a search."""
        number = self._runs.number
        bucket = np.asarray(self._bucket)
        at = i >> self._shift
        r: I64 = np.array(bucket[at])
        few = bucket[at + 1] - r <= 1
        r += number[r + 1] <= i
        if not few.all():
            r[~few] = np.searchsorted(number, i[~few], "right") - 1
        return r

    def locate(self, ids: Any) -> tuple[I64, Times, I64]:
        """Where windows are: their tickers' codes (places in `Store.tickers`), their anchors' times and row numbers.

        `ids` are numbers of 0 to ``len(w) - 1`` in an array of any shape, which the results have too.
        """
        arrays = self._store._use()
        r, k = self._places(ids)
        runs, layout = self._runs, self._store._layout
        ticker = runs.ticker[r]
        row = runs.base[r] + k * runs.step - self._store._line[ticker]
        times = arrays.ints[self._store._time_at[ticker] + row]
        return ticker, as_datetime(times, layout.schema.unit), row

    def find(self, tickers: Any, times: Any, method: Method = "exact") -> I64:
        """The numbers of the windows with these tickers and anchor times; -1 where there is none.

        `tickers` are names or codes, `times` as in :meth:`between`; they are broadcast against each other. With the
        method "pad" it is the ticker's last window at or before the time, with "backfill" the first at or after it.
        """
        if method not in ("exact", "pad", "backfill"):
            raise ArgumentError(f"method must be 'exact', 'pad' or 'backfill', not {method!r}")
        store, runs = self._store, self._runs
        store._use()
        codes = store._codes(tickers)
        if isinstance(times, str) or not np.iterable(times):
            times = np.asarray([times] if not isinstance(times, np.ndarray) else times).reshape(())
        wanted, exact = exact_times(times, store.unit, nat=method == "exact")
        codes, wanted, exact = np.broadcast_arrays(codes, wanted, exact)
        shape = codes.shape
        t, wanted, exact = codes.ravel(), wanted.ravel(), exact.ravel()
        if method == "backfill":  # inexact times were rounded down
            wanted = wanted + (~exact & (wanted < I64_MAX))
        row, hit = store._rows_at(t, wanted, "left" if method == "backfill" else "right")
        ok = hit & exact if method == "exact" else (row >= 0) & (row < store.rows[t])
        position = store._line[t] + np.where(ok, row, 0)
        out = np.full(t.shape, -1, np.int64)
        if len(runs):
            if runs.table is None or runs.first is None:
                out = _search(runs, t, position, ok, method)
            else:
                out = _search_table(runs, t, position, ok, method)
        return self._renumber(out).reshape(shape)

    def _renumber(self, base: I64) -> I64:
        """Numbers of all windows as numbers of this view; -1 where not selected (the first, where several times)."""
        ids = self._ids
        if ids is None:
            return base
        if isinstance(ids, range):
            ids = ids if len(ids) else range(0)
            k, rest = np.divmod(base - ids.start, ids.step)
            return np.where((base >= 0) & (rest == 0) & (k >= 0) & (k < len(ids)), k, -1)
        if not ids.size:
            return np.full_like(base, -1)
        order = np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids, base, sorter=order), ids.size - 1)
        return np.where(ids[order[at]] == base, order[at], -1)

    def gather(
        self,
        ids: Any,
        out: tuple[F32 | None, F32 | None] | F32 | None = None,
        fill: float | None = None,
        mask: bool = False,
    ) -> tuple[Any, ...]:
        """Copies windows into a batch: ``(x, y)`` of shapes (len(ids), *shape of w[i]); y is None without targets.

        `out` gives arrays to copy into: (x, y), one of which may be None, or x alone. `fill` replaces missing cells
        (which only columns named as `optional` have; they are NaN else). With `mask` the result is
        ``(x, y, x_present, y_present)``, the latter two bool and of the same shapes. What is not in memory is first
        announced to the system, in the order of the file.
        """
        return self._gather(ids, out, real("fill", fill), mask, announce=True)

    def _gather(
        self,
        ids: Any,
        out: tuple[F32 | None, F32 | None] | F32 | None,
        fill: float | None,
        mask: bool,
        announce: bool,
    ) -> tuple[Any, ...]:
        """`gather`; a loop of batches has announced what it needs."""
        arrays = self._store._use()
        arrays.check(self._store.path)
        r, k = self._places(ids)
        if r.ndim != 1:
            raise ArgumentError(f"ids must be one-dimensional, not of shape {r.shape}")
        x_out, y_out = out if isinstance(out, tuple) else (out, None)
        n = len(r)
        _check_out(x_out, (n, *self._x.shape), "x")
        _check_out(y_out, None if self._y is None else (n, *self._y.shape), "y")
        if announce:
            _batches.announce(self, r, k)
        offsets = {g: s.offset[r] + k * s.step for g, s in self._spots.items()}
        x = self._x.many(offsets, n, x_out)
        y = None if self._y is None else self._y.many(offsets, n, y_out)
        masks: list[Bools | None] = []
        for side, a in ((self._x, x), (self._y, y)):
            if side is None or a is None:
                masks.append(None)
                continue
            present = None
            if side.optional and (mask or fill is not None):
                present = ~np.isnan(a)
                if fill is not None:
                    np.copyto(a, np.float32(fill), where=~present)
            if mask and present is None:
                present = np.ones(a.shape, bool)
            masks.append(present)
        return (x, y, *masks) if mask else (x, y)

    def frame(self, ids: Any = None, **columns: Any) -> dict[str, npt.NDArray[Any]]:
        """A table to join predictions back on: `ticker` (names), `time` (the anchors'), `label_end`, and your columns.

        Each of `columns` has a value for each of `ids` (all windows if None). The result is what pandas.DataFrame and
        polars.DataFrame take (times of a file in seconds are given in milliseconds, since polars has no
        seconds). `label_end` is the last time that the targets look at, declared reach included.
        """
        ids = range(len(self)) if ids is None else ids
        codes, times, _ = self.locate(ids)
        if codes.ndim != 1:
            raise ArgumentError(f"ids must be one-dimensional, not of shape {codes.shape}")
        out: dict[str, npt.NDArray[Any]] = {
            "ticker": np.array([*self._store.tickers, None], dtype=object)[codes],
            "time": _table_times(times),
            "label_end": _table_times(self.label_end(ids)),
        }
        for name, values in columns.items():
            a = np.asarray(values)
            if name in out or a.shape[:1] != codes.shape:
                why = "is one of frame's own" if name in out else f"has shape {a.shape}"
                raise ArgumentError(
                    f"column {name!r} {why}; give {len(codes)} values under another name than {list(out)}"
                )
            out[name] = a
        return out

    def to_arrow(self, ids: Any = None, **columns: Any) -> Any:
        """As :meth:`frame`, a pyarrow Table, whose `ticker` and `time` are those of :meth:`Store.to_arrow`."""
        pa = _frames.library("pyarrow", "to_arrow")
        return pa.Table.from_batches([_frames.of_windows(self, ids, columns).to_arrow(pa)])

    def to_polars(self, ids: Any = None, **columns: Any) -> Any:
        """As :meth:`frame`, a polars DataFrame that joins with :meth:`Store.to_polars` on `ticker` and `time`.

        >>> w.to_polars(b.id, pred=p).join(store.to_polars(columns="close"), on=["ticker", "time"])
        """
        return _frames.of_windows(self, ids, columns).to_polars()

    def to_pandas(self, ids: Any = None, **columns: Any) -> Any:
        """As :meth:`frame`, a pandas DataFrame that merges with :meth:`Store.to_pandas` on `ticker` and `time`.

        >>> w.to_pandas(b.id, pred=p).merge(store.to_pandas(columns="close"), on=["ticker", "time"])
        """
        return _frames.of_windows(self, ids, columns).to_pandas()

    def label_end(self, ids: Any) -> Times:
        """The end of each window's label: the time of the last row that its targets depend on.

        The targets' declared reach counts: rows, a duration, or a column of label ends. Rows behind the ticker's last
        count as that one. Without targets it is the anchor's time.
        """
        hi = _splits.label_interval(self, ids, _splits.label_of(self))[1]
        return as_datetime(hi, self._store.unit)

    # Views on some of the windows

    def between(self, from_: Any = None, to: Any = None) -> Windows:
        """The windows whose anchor's time is in [from_, to); None leaves a side open.

        Times are numpy.datetime64, datetime, ISO text or ints in the file's unit; without a zone they are read as the
        file's times are (UTC, or a naive source's clock).
        """
        unit = self._store.unit
        lo = None if from_ is None else ceil_time(from_, unit)
        hi = None if to is None else ceil_time(to, unit)
        if self._steps and self._ids is None:
            return _splits.follow(self, _splits.Between(lo, hi))
        if self._ids is not None:
            times = self.locate(range(len(self)))[1].view(np.int64)
            keep = np.ones(times.shape, bool)
            if lo is not None:
                keep &= times >= lo
            if hi is not None:
                keep &= times < hi
            return self.select(np.flatnonzero(keep))
        q = self._query
        if lo is not None and q.from_ is not None:
            lo = max(lo, q.from_)
        if hi is not None and q.to is not None:
            hi = min(hi, q.to)
        lo, hi = q.from_ if lo is None else lo, q.to if hi is None else hi
        return Windows(self._store, dataclasses.replace(q, from_=lo, to=hi))

    def select(self, ids: Any) -> Windows:
        """These windows in this order, numbered anew from 0. A slice or range costs no memory, others 8 bytes an id."""
        chosen: I64 | range
        if isinstance(ids, slice):
            ids = range(len(self))[ids]
        if isinstance(ids, range) and (not ids or (min(ids[0], ids[-1]) >= 0 and max(ids[0], ids[-1]) < len(self))):
            if self._ids is None:
                chosen = ids
            elif isinstance(self._ids, range):
                start, step = self._ids.start, self._ids.step
                chosen = range(start + ids.start * step, start + ids.stop * step, step * ids.step)
            else:
                chosen = self._base_ids(ids)
        else:
            chosen = np.array(self._base_ids(ids))
            if chosen.ndim != 1:
                raise ArgumentError(f"ids must be one-dimensional, not of shape {chosen.shape}")
            chosen.flags.writeable = False
        return self._with_ids(chosen)

    def _with_ids(self, ids: I64 | range | None) -> Windows:
        other = object.__new__(Windows)
        for name in Windows.__slots__:
            if name not in ("_ids", "__weakref__"):
                setattr(other, name, getattr(self, name))
        other._ids = ids
        return other

    def _with_runs(self, runs: _index.Runs, step: _splits.Step) -> Windows:
        """The same query's windows, but only those of these runs, which a step leads to."""
        other = self._with_ids(None)
        other._steps = (*self._steps, step)
        other._prepare(runs)
        return other

    @property
    def times(self) -> Times:
        """The distinct times of anchors, ascending: what :meth:`by_time` numbers."""
        return as_datetime(_splits.anchor_times(self), self._store.unit)

    def by_time(self) -> _batches.ByTime:
        """Cross-sections: item i of the result is the numbers of the windows at ``times[i]``, in ticker order."""
        return _batches.ByTime(self)

    # Training

    def batches(
        self,
        batch_size: int,
        *,
        order: _batches.OrderName = "blocked",
        seed: int = 0,
        epoch: int = 0,
        start: int = 0,
        rank: int = 0,
        world: int = 1,
        tail: Tail = "keep",
        group_bytes: int | None = None,
        fields: str | Iterable[str] | None = None,
        anchor: str | Iterable[str] = (),
        pad_to: int | None = None,
        fill: float | None = None,
        prefetch: int = 1,
        reuse: bool = False,
        state: Mapping[str, Any] | None = None,
    ) -> _batches.Batches:
        """An epoch's batches: ``for b in w.batches(256): train(b.x, b.y)``.

        `order`: "blocked" shuffles in groups that fit into memory, for files that don't (`group_bytes`: a group's
        size; two groups are in memory at a time, 128 MiB each by default); "exact" shuffles all windows, best if the
        file fits into memory; "sequential" is by ticker and time. The order depends on `seed` and `epoch` alone, and is
        the same in every implementation (:mod:`wstore.orders`).

        "by_time" (or "by_time-sequential") goes through the distinct anchor times: `batch_size`, positions and `tail`
        count times. With `pad_to` each time has so many places, filled in ticker order: x is of shape (batch_size,
        pad_to, lookback, inputs), and the field `mask`, bool (batch_size, pad_to), says which are windows (others are
        0, tickers and ids -1). Without it batches are of one time: x is (its windows, lookback, inputs).

        `fields`: of "x", "y" (these by default), "id" (the windows' numbers), "ticker" (codes), "time" (of the anchor)
        and "x_present", "y_present" (bool, shaped as x and y; False where a column of `optional` is missing).
        `anchor`: columns whose values at the anchor are fields too, by the column's name, such as weights. `fill`
        replaces missing cells.

        `rank`, `world`: several processes share the positions without talking. `tail`: "keep" leaves the last batch
        short, "drop" leaves out what does not fill a batch of every rank, "pad" repeats the last position; `b.valid`
        says how many of a batch's positions are valid. `start`: a position to go on from, `b.next` of the last batch
        seen; or `state`: a batch's `b.state`, which is refused if windows, order or seed are others. A run may go on
        with another batch size and another world.

        A thread makes `prefetch` batches ahead; 0: none. Arrays are fresh; with `reuse` x and y are overwritten once
        the next batch is asked for. While a loop shuffles a mapped file, the mapping is advised RANDOM, and what comes
        is read ahead. A file that was cut is noticed before each batch (a CorruptError, ``truncated``); one that is cut
        while a batch is being copied kills the process, as with any mapping: use ``access="load"`` for files that
        others write to in place. Replacing the file by rename is harmless: the loop goes on with the old one.
        """
        return _batches.Batches(
            self,
            batch_size,
            order=order,
            seed=seed,
            epoch=epoch,
            start=start,
            rank=rank,
            world=world,
            tail=tail,
            group_bytes=group_bytes,
            fields=fields,
            anchor=anchor,
            pad_to=pad_to,
            fill=fill,
            prefetch=prefetch,
            reuse=reuse,
            state=state,
        )

    @property
    def fingerprint(self) -> str:
        """Names content and windows, in hexadecimal: equal wherever these are the same windows of the same data."""
        return _batches.windows_fingerprint(self).hex()

    def order_fingerprint(
        self, order: _batches.OrderName = "blocked", *, seed: int = 0, group_bytes: int | None = None
    ) -> str:
        """Names windows and their order, in hexadecimal, whatever the epoch: what a batch's state is checked by."""
        return _batches.order_fingerprint(self, order, seed, group_bytes)

    def split(
        self,
        *,
        train: Any = None,
        valid: Any = None,
        test: Any = None,
        embargo: Any = 0,
        reach: Any = None,
    ) -> _splits.Split:
        """Divides the windows into ``(train, valid, test)``, without leakage.

        `train`, `valid`, `test` are ranges [from, to) of the anchor's time, or lists of them; None leaves a side open,
        and no range gives no windows. A window whose label's times, widened by the embargo on both sides, touch the
        label's times of a window of a higher split (test before valid before train) is purged: it is in none. Test
        windows never are. History before a boundary serves as lookback.

        `embargo`: a number of the store's distinct times, or a duration ("5d", a timedelta). `reach`: how far behind
        its row a target looks, in rows or as a duration; it replaces what the columns declare. Targets at the anchor
        or before it (horizon 0) without a declared reach need it: the store can't see how far they look.
        """
        return _splits.split(self, train, valid, test, embargo, reach)

    def walk_forward(
        self,
        *,
        every: Any,
        train: Any = None,
        valid: Any = None,
        start: Any = None,
        embargo: Any = 0,
        reach: Any = None,
    ) -> list[_splits.Fold]:
        """Consecutive folds: test ranges of the length `every`, and before each those to validate and train on.

        Lengths are text ("1mo", "5y", "2w", "10d", "12h"; months and years are of the file's zone), or all numbers of
        distinct anchor times. Without `train`, training begins with the data, and `start` (the first test time) must
        be given; else it is by default the first for which there is enough before it. Each fold is split as by
        :meth:`split`; a fold without test windows is left out.
        """
        return _splits.walk_forward(self, every, train, valid, start, embargo, reach)

    def statistics(self) -> Statistics:
        """Count, mean, standard deviation, minimum and maximum of each column, over the rows of these windows.

        Of inputs over the input rows, of targets over the target rows; each row once, missing cells left out. Take them
        of training windows only. Reads each row once, in float64.
        """
        from .stats import statistics

        return statistics(self)


def _rebuild(store: Store, query: Query, ids: I64 | range | None, steps: tuple[_splits.Step, ...]) -> Windows:
    w = Windows(store, query)
    for step in steps:
        w = _splits.follow(w, step)
    return w if ids is None else w._with_ids(ids)


def _table_times(times: Times) -> Times:
    if np.datetime_data(times.dtype)[0] != "s":
        return times
    seconds = times.view(np.int64)
    fits = (seconds <= I64_MAX // 1000).all() and (seconds >= -(I64_MAX // 1000)).all()
    return times.astype("<M8[ms]") if fits else times


def _check_out(out: Any, shape: tuple[int, ...] | None, what: str) -> None:
    if out is None:
        return
    if shape is None:
        raise ArgumentError(f"out has a {what}, but there are no targets")
    if not isinstance(out, np.ndarray) or out.dtype != np.float32 or out.shape != shape or not out.flags.writeable:
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else repr(type(out))
        raise ArgumentError(f"out for {what} must be a writable float32 array of shape {shape}, not {got}")


def _side(
    store: Store,
    flat: F32,
    columns: tuple[int, ...],
    rows_ahead: int,
    dims: tuple[tuple[int, int], ...],
    horizons: I64 | None,
) -> _Side:
    """Cuts columns into evenly spaced pieces. `dims` are (count, step in rows) of all dimensions but the columns'."""
    schema = store.schema
    parts: list[tuple[int, int, int, int]] = []  # group, place of the first, step, count
    for c in columns:
        group, place = schema.columns[c].group, schema.columns[c].place
        if parts:
            g, first, step, n = parts[-1]
            gap = place - first - step * (n - 1)
            if g == group and gap > 0 and (n == 1 or gap == step):
                parts[-1] = g, first, gap, n + 1
                continue
        parts.append((group, place, 1, 1))
    pieces: list[_Piece] = []
    at = 0
    for group, place, step, n in parts:
        width = len(schema.groups[group].columns)
        scaled = tuple((count, rows * width) for count, rows in dims)
        spread = None if horizons is None else horizons * width
        start = rows_ahead * width + place
        pieces.append(_Piece(flat, group, slice(at, at + n), start, (*scaled, (n, step)), spread))
        at += n
    shape = (*(count for count, _ in dims), len(columns))
    return _Side(shape if horizons is None else (len(horizons), *shape), pieces, False)


def _run(
    store: Store, query: Query, inputs: tuple[int, ...], targets: tuple[int, ...], optional: set[int]
) -> _index.Runs:
    """Section 11.2, for this file."""
    layout, line = store._layout, store._line
    index = layout.index

    def missing(columns: tuple[int, ...]) -> _index.Intervals:
        parts: list[_index.Intervals] = []
        for c in columns:
            if c in index.missing:
                uses = index.missing[c]
                i, counts = _index.spread(index.missing_ptr, uses.lists)
                base = np.repeat(line[uses.tickers], counts)
                parts.append((index.missing_start[i] + base, index.missing_end[i] + base))
        return _index.union(parts)

    counted = [
        uses
        for rule, uses in zip(layout.schema.breaks, index.breaks, strict=True)
        if query.breaks is None or rule.name in query.breaks
    ]
    breaks = [np.empty(0, np.int64)]
    for uses in counted:
        i, counts = _index.spread(index.break_ptr, uses.lists)
        breaks.append(index.break_row[i] + np.repeat(line[uses.tickers], counts))
    found = _index.anchors(
        line,
        np.concatenate(breaks),
        query.lookback,
        query.horizons,
        query.target_length,
        missing(tuple(c for c in inputs if c not in optional)),
        missing(tuple(c for c in targets if c not in optional)),
    )

    keep = None
    if query.tickers is not None:
        keep = np.zeros(len(layout.rows), bool)
        keep[query.tickers] = True
    absent = missing(columns_of(layout.schema, query.where, "where", once=False))
    bounds = None
    if query.from_ is not None or query.to is not None:
        lo, hi = (
            np.clip(store._entries_before(t)[layout.calendar] - layout.first, 0, layout.rows)
            if t is not None and len(layout.calendars.count)
            else default
            for t, default in ((query.from_, np.zeros_like(layout.rows)), (query.to, layout.rows))
        )
        bounds = lo + line[:-1], hi + line[:-1]
    if query.at is None:
        return _index.number(line, found, query.stride, keep, absent, bounds)

    places = ptr(layout.calendars.count)
    table = [np.empty(0, np.int64)]
    for c in range(len(layout.calendars.count)):
        entries = store._calendar(c)
        i = np.searchsorted(entries, query.at)
        i = i[entries[np.minimum(i, len(entries) - 1)] == query.at]
        table.append(np.unique(i) + places[c])  # ascending even if a damaged calendar is not
    place = places[layout.calendar] + layout.first if len(places) > 1 else np.zeros_like(layout.rows)
    return _index.number_at(line, found, keep, absent, bounds, np.concatenate(table), place)


def _search(runs: _index.Runs, t: I64, position: I64, ok: Bools, method: Method) -> I64:
    """The numbers of windows with (or next to) these anchor positions of these tickers."""
    counts = np.diff(runs.number)
    if method == "backfill":
        last = runs.base + (counts - 1) * runs.step
        r = np.searchsorted(last, position, "left")
    else:
        r = np.searchsorted(runs.base, position, "right") - 1
    ok = ok & (r >= 0) & (r < len(runs))
    r = np.where(ok, r, 0)
    ok &= runs.ticker[r] == t
    k, rest = np.divmod(position - runs.base[r], runs.step)
    if method == "exact":
        ok &= (rest == 0) & (k < counts[r])
    elif method == "pad":
        k = np.minimum(k, counts[r] - 1)
    else:
        k = np.maximum(k + (rest > 0), 0)
    return np.where(ok, runs.number[r] + k, -1)


def _search_table(runs: _index.Runs, t: I64, position: I64, ok: Bools, method: Method) -> I64:
    """As _search, for a query with `at`."""
    assert runs.table is not None
    assert runs.first is not None
    counts = np.diff(runs.number)
    if method == "backfill":
        edge = runs.base + runs.table[runs.first + counts - 1]
        r = np.searchsorted(edge, position, "left")
    else:
        edge = runs.base + runs.table[runs.first]
        r = np.searchsorted(edge, position, "right") - 1
    ok = ok & (r >= 0) & (r < len(runs))
    r = np.where(ok, r, 0)
    ok &= runs.ticker[r] == t
    place = position - runs.base[r]
    if method == "backfill":
        k = np.maximum(np.searchsorted(runs.table, place, "left") - runs.first[r], 0)
    else:
        k = np.searchsorted(runs.table, place, "right") - 1 - runs.first[r]
        if method == "exact":
            at = np.clip(runs.first[r] + k, 0, len(runs.table) - 1)
            ok &= (k < counts[r]) & (runs.table[at] == place)
        else:
            k = np.minimum(k, counts[r] - 1)
    return np.where(ok, runs.number[r] + k, -1)
