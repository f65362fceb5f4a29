"""A store's rows, and windows with what was predicted of them, as tables of pyarrow, polars and pandas.

A table of rows has the columns ``ticker`` and ``time`` and those of the store. Memory is copied once, from the file's
rows to the table's columns.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ._arguments import Names, names
from ._format import I64
from ._times import PER_SECOND, as_datetime, ceil_time
from .errors import ArgumentError, NotFoundError

if TYPE_CHECKING:
    from ._store import Store
    from ._windows import Windows

_KEYS = ("ticker", "time")


def library(name: str, what: str) -> Any:
    """An optional package, imported when it is needed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] != name:
            raise
        raise ImportError(f"{what} needs {name}: pip install {name}", name=name) from None


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts, as places in a list of them; -1 where there is none."""

    places: npt.NDArray[np.int32]
    texts: tuple[str, ...]


Column = npt.NDArray[Any] | Texts


@dataclass(frozen=True, slots=True)
class Table:
    """Some rows: columns of equal length, which are texts, times (UTC, or the clock of a store without a zone), or
    other arrays, in which NaN is a missing value.
    """

    zone: str
    columns: dict[str, Column]

    def to_arrow(self, pa: Any, made: dict[int, Any] | None = None) -> Any:
        """A RecordBatch. The Arrow arrays of lists of texts are kept in `made`, to be shared by batches."""
        made = {} if made is None else made
        return pa.record_batch([self._arrow(pa, c, made) for c in self.columns.values()], names=list(self.columns))

    def _arrow(self, pa: Any, c: Column, made: dict[int, Any]) -> Any:
        if isinstance(c, Texts):
            if id(c.texts) not in made:
                made[id(c.texts)] = pa.array(c.texts, pa.string())
            places = pa.array(c.places, mask=c.places < 0)
            return pa.DictionaryArray.from_arrays(places, made[id(c.texts)])
        if c.dtype.kind == "M":
            kind = pa.timestamp(np.datetime_data(c.dtype)[0], self.zone or None)
            return pa.array(c.view(np.int64), pa.int64(), mask=np.isnat(c)).view(kind)
        return pa.array(c, from_pandas=c.dtype.kind in "fO")

    def to_polars(self) -> Any:
        pl = library("polars", "to_polars")
        return pl.DataFrame({name: self._polars(pl, c) for name, c in self.columns.items()})

    def _polars(self, pl: Any, c: Column) -> Any:
        if isinstance(c, Texts):
            return pl.Series([*c.texts, None], dtype=pl.String).gather(c.places % (len(c.texts) + 1))
        if c.dtype.kind != "M":
            return pl.Series(c, nan_to_null=c.dtype.kind == "f")
        out = pl.Series(_milliseconds(c) if np.datetime_data(c.dtype)[0] == "s" else c)  # polars has no seconds
        return out.dt.replace_time_zone("UTC").dt.convert_time_zone(self.zone) if self.zone else out

    def to_pandas(self) -> Any:
        pd = library("pandas", "to_pandas")
        return pd.DataFrame({name: self._pandas(pd, c) for name, c in self.columns.items()}, copy=False)

    def _pandas(self, pd: Any, c: Column) -> Any:
        if isinstance(c, Texts):
            return pd.Categorical.from_codes(c.places, categories=list(c.texts))
        if c.dtype.kind == "M" and self.zone:
            return pd.DatetimeIndex(c).tz_localize("UTC").tz_convert(self.zone)
        return c


def _milliseconds(a: npt.NDArray[np.datetime64]) -> npt.NDArray[np.datetime64]:
    seconds, most = a.view(np.int64), ((1 << 63) - 1) // PER_SECOND["ms"]
    if ((seconds > most) | ((seconds < -most) & ~np.isnat(a))).any():
        raise ArgumentError("times that polars can't hold; it has no unit of seconds: use to_arrow or to_pandas")
    return a.astype("<M8[ms]")


class Rows:
    """Some of a store's rows: of `tickers`, in [start, end), in the order of tickers and times."""

    def __init__(self, store: Store, tickers: Names | None, columns: Names | None, start: Any, end: Any) -> None:
        store._use()
        self.store = store
        layout = store._layout
        self.columns = _columns(store, columns)
        chosen = (
            range(len(layout.names)) if tickers is None else sorted({store._code(t) for t in names(tickers, "tickers")})
        )
        self.codes = np.array(chosen, np.int64)
        bounds = []
        for t, default in ((start, np.zeros_like(layout.rows)), (end, layout.rows)):
            if t is None or not len(layout.calendars.count):
                bounds.append(default[self.codes])
                continue
            entries = store._entries_before(ceil_time(t, store.unit))
            rows = np.clip(entries[layout.calendar] - layout.first, 0, layout.rows)
            bounds.append(rows[self.codes])
        self.first, self.end = bounds[0], np.maximum(bounds[0], bounds[1])
        self.tickers = tuple(layout.names[c].decode() for c in chosen)
        self.texts = {
            c.name: layout.categories[i] for i, c in enumerate(store.schema.columns) if i in layout.categories
        }

    def table(self) -> Table:
        """All of them."""
        return self._table(range(len(self.codes)), self.first, self.end)

    def tables(self, size: int) -> Iterator[Table]:
        """All of them, `size` rows at a time."""
        line = np.concatenate(([0], np.cumsum(self.end - self.first)))
        for at in range(0, int(line[-1]), size):
            lo = int(np.searchsorted(line, at, "right")) - 1
            hi = min(int(np.searchsorted(line, at + size, "left")), len(self.codes))
            first = np.maximum(self.first, self.first + at - line[:-1])
            end = np.minimum(self.end, self.first + at + size - line[:-1])
            yield self._table(range(lo, hi), first, end)

    def _table(self, which: range, first: I64, end: I64) -> Table:
        store = self.store
        arrays = store._use()
        arrays.check(store.path)
        picked = slice(which.start, which.stop)
        counts = (end - first)[picked]
        n = int(counts.sum())
        layout, schema = store._layout, store.schema
        times = np.empty(n, np.int64)
        out: dict[str, npt.NDArray[Any]] = {"time": as_datetime(times, store.unit)}
        for name, group, _ in self.columns:
            label = schema.groups[group].dtype == "int64"
            out[name] = as_datetime(np.empty(n, np.int64), store.unit) if label else np.empty(n, np.float32)
        at = 0
        for i in which:
            t, a, b = int(self.codes[i]), int(first[i]), int(end[i])
            if a == b:
                continue
            begin = int(store._time_at[t])
            times[at : at + b - a] = arrays.ints[begin + a : begin + b]
            for name, group, place in self.columns:
                width = len(schema.groups[group].columns)
                offset = int(layout.blocks.offset[t * len(schema.groups) + group])
                column = out[name]
                if column.dtype.kind == "M":
                    column.view(np.int64)[at : at + b - a] = arrays.ints[offset // 8 + a : offset // 8 + b]
                else:
                    block = arrays.flat[offset // 4 + a * width : offset // 4 + b * width]
                    column[at : at + b - a] = block[place::width]
            at += b - a
        places = np.repeat(np.arange(which.start, which.stop, dtype=np.int32), counts)
        columns: dict[str, Column] = {"ticker": Texts(places, self.tickers), **out}
        for name, texts in self.texts.items():
            if name in out:
                columns[name] = Texts(np.nan_to_num(out[name], nan=-1.0).astype(np.int32), texts)
        return Table(store.zone, columns)

    def reader(self, size: int) -> Any:
        """All of them as a pyarrow RecordBatchReader."""
        pa = library("pyarrow", "an Arrow stream")
        if size < 1:
            raise ArgumentError(f"batch_rows must be at least 1, not {size}")
        made: dict[int, Any] = {}
        none = self._table(range(0), self.first, self.end).to_arrow(pa, made)
        return pa.RecordBatchReader.from_batches(none.schema, (t.to_arrow(pa, made) for t in self.tables(size)))


def _columns(store: Store, given: Names | None) -> list[tuple[str, int, int]]:
    """Names of columns and groups as columns: name, group and place in it."""
    schema = store.schema
    if given is None:
        given = [c.name for c in schema.columns]
    out: dict[str, tuple[str, int, int]] = {}
    for name in names(given, "columns", ordered=True):
        members = store.groups.get(name, (name,))
        for member in members:
            found = next((c for c in schema.columns if c.name == member), None)
            if found is None:
                raise NotFoundError("column or group", name, (*store.groups, *store.columns))
            out[member] = member, found.group, found.place
    for name in _KEYS:
        if name in out:
            raise ArgumentError(
                f"the store has a column {name!r}, which a table needs for itself; name the others with columns=, and "
                f"take this one from store.series"
            )
    return list(out.values())


def of_windows(w: Windows, ids: Any, given: Mapping[str, Any]) -> Table:
    """What :meth:`Windows.frame` gives, with tickers and times as tables of rows have them."""
    ids = range(len(w)) if ids is None else ids
    frame = w.frame(ids, **given)
    for name, a in frame.items():
        if a.ndim != 1:
            hint = f": {name}.squeeze(1)" if a.shape[1:] == (1,) else ""
            raise ArgumentError(
                f"column {name!r} has shape {a.shape}; a table's columns have one value for each window{hint}"
            )
    codes, times, _ = w.locate(ids)
    chosen, places = np.unique(codes, return_inverse=True)
    tickers = tuple(w.store._layout.names[int(c)].decode() for c in chosen)
    columns: dict[str, Column] = {**frame, "time": times, "label_end": w.label_end(ids)}
    columns["ticker"] = Texts(places.astype(np.int32), tickers)
    return Table(w.store.zone, columns)
