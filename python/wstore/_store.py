"""A file that is open: its metadata as Python sees it, and its data as arrays."""

from __future__ import annotations

import builtins
import html
import json
import mmap
import os
import stat
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from . import _frames, _verify
from ._arguments import Names, names
from ._format import I64, BreakSet, Layout, Schema, Unit, parse, ptr, xxh64
from ._query import make_query
from ._times import I64_MAX, I64_MIN, as_datetime
from ._windows import Times, Windows
from .errors import ArgumentError, ClosedError, CorruptError, NotFoundError, StaleError

Access = Literal["map", "load"]
Path = str | os.PathLike[str]


class _Arrays(NamedTuple):
    """A whole file, seen as bytes, floats and integers."""

    data: npt.NDArray[np.uint8]
    flat: npt.NDArray[np.float32]
    ints: I64
    map: mmap.mmap | None

    def check(self, path: str) -> None:
        """Someone who cuts a mapped file makes reading it a fault that Python can't catch: look before."""
        if self.map is not None and self.map.size() < self.data.size:
            raise CorruptError(path, "file", self.map.size(), "truncated", "the file was cut while it was open")


class _Identity(NamedTuple):
    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, s: os.stat_result) -> _Identity:
        return cls(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns)


class Store:
    """An open wstore file. See :func:`wstore.open`.

    Arrays that it hands out are read-only views of the file. They stay valid after `close` (the mapping goes with the
    last of them). A Store may be used by any number of threads, and across fork. It pickles as its path: a process that
    unpickles it opens the file once, whatever the number of copies, and refuses it if its content has changed.
    """

    __slots__ = (
        "__weakref__",
        "_access",
        "_arrays",
        "_attributes",
        "_identity",
        "_layout",
        "_line",
        "_path",
        "_tickers",
        "_time_at",
    )

    def __init__(
        self, path: str, access: Access | None, identity: _Identity | None, layout: Layout, arrays: _Arrays
    ) -> None:
        self._path = path
        self._access: Access | None = access
        self._identity = identity
        self._layout = layout
        self._arrays: _Arrays | None = arrays
        self._line = ptr(layout.rows)
        self._tickers: tuple[str, ...] | None = None
        self._attributes: Mapping[str, npt.NDArray[Any]] | None = None
        if layout.calendars.offset.size:
            self._time_at = layout.calendars.offset[layout.calendar] // 8 + layout.first
        else:
            self._time_at = np.zeros_like(layout.rows)

    def _use(self) -> _Arrays:
        if self._arrays is None:
            raise ClosedError(f"{self._path}: the store is closed")
        return self._arrays

    # What is in it

    @property
    def path(self) -> str:
        """The file's path, or ``<bytes>``."""
        return self._path

    @property
    def tickers(self) -> tuple[str, ...]:
        """All tickers, in order of their UTF-8 bytes. A ticker's place here is its code."""
        if self._tickers is None:
            self._tickers = tuple(n.decode() for n in self._layout.names)
        return self._tickers

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, group by group."""
        return tuple(c.name for c in self._layout.schema.columns)

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The groups, and the columns of each."""
        return MappingProxyType({g.name: g.columns for g in self._layout.schema.groups})

    @property
    def breaks(self) -> Mapping[str, BreakSet]:
        """The break sets and their rules."""
        return MappingProxyType({b.name: b for b in self._layout.schema.breaks})

    @property
    def schema(self) -> Schema:
        """Groups, columns with their roles and reach, break sets, unit and zone."""
        return self._layout.schema

    def categories(self, column: str) -> list[str] | None:
        """The texts that a column's values are the numbers of, in order of their UTF-8 bytes; None if it has none.

        A value is the float32 of a place in the list, or NaN if it is missing.
        """
        for i, c in enumerate(self._layout.schema.columns):
            if c.name == column:
                texts = self._layout.categories.get(i)
                return None if texts is None else list(texts)
        raise NotFoundError("column", column, self.columns)

    @property
    def attributes(self) -> Mapping[str, npt.NDArray[Any]]:
        """The static values of tickers by name, each an array of one per ticker, in the order of `tickers`; read-only.

        Texts are str objects, None where there is none; numbers are float64, NaN where there is none.
        """
        if self._attributes is None:
            made = {}
            for a in self._layout.attributes:
                values = a.values if a.texts is None else np.array([None, *a.texts], object)[a.values]
                values.flags.writeable = False
                made[a.name] = values
            self._attributes = MappingProxyType(made)
        return self._attributes

    @property
    def rows(self) -> I64:
        """The number of rows of each ticker."""
        return self._layout.rows

    @property
    def unit(self) -> Unit:
        """The unit of times: "s", "ms", "us" or "ns"."""
        return self._layout.schema.unit

    @property
    def zone(self) -> str:
        """The name of the source's time zone; empty if its times were naive or UTC."""
        return self._layout.schema.zone

    @property
    def digest(self) -> str:
        """The content digest, in hexadecimal: equal for equal content, however it is laid out."""
        return self._layout.digest.hex()

    @property
    def provenance(self) -> Any:
        """What the file says about where its data came from, as parsed JSON; None if nothing, or not JSON."""
        for e in self._layout.entries:
            if e.tag == b"PROV":
                raw = self._use().data[e.offset : e.offset + e.length].tobytes()
                if xxh64(raw) != e.checksum:
                    raise CorruptError(self._path, "PROV", e.offset, "section_checksum", "the section is damaged")
                try:
                    return json.loads(raw)
                except (ValueError, RecursionError):
                    return None
        return None

    # Its data

    def series(self, ticker: str | int, name: str) -> npt.NDArray[Any]:
        """A ticker's values of a column, shape (rows,), or of a group, (rows, width): a read-only view of the file.

        A column of label ends is read as times (NaT where there is none). Missing values are NaN.
        """
        arrays = self._use()
        t = self._code(ticker)
        schema = self._layout.schema
        column = next((c for c in schema.columns if c.name == name), None)
        found = next((g for g, s in enumerate(schema.groups) if s.name == name), None)
        if column is not None:
            found = column.group
        if found is None:
            raise NotFoundError("column or group", name, (*self.groups, *self.columns))
        group, rows = schema.groups[found], int(self.rows[t])
        at = int(self._layout.blocks.offset[t * len(schema.groups) + found])
        if group.dtype == "int64":
            times = as_datetime(arrays.ints[at // 8 : at // 8 + rows], schema.unit)
            return times if column is not None else times.reshape(rows, 1)
        width = len(group.columns)
        block = arrays.flat[at // 4 : at // 4 + rows * width].reshape(rows, width)
        return block if column is None else block[:, column.place]

    def times(self, ticker: str | int) -> Times:
        """The times of a ticker's rows, ascending: a read-only view of the file, datetime64 in the file's unit."""
        arrays = self._use()
        t = self._code(ticker)
        at = int(self._time_at[t])
        return as_datetime(arrays.ints[at : at + int(self.rows[t])], self.unit)

    def calendar(self, which: str | int | None = None) -> Times:
        """A calendar, by its number or a ticker whose rows are a piece of it; a view of the file.

        None is all the store's distinct times: a view if there is one calendar, else their union, computed.
        """
        self._use()
        count = len(self._layout.calendars.count)
        if which is None:
            if count == 1:
                return as_datetime(self._calendar(0), self.unit)
            every = [self._calendar(c) for c in range(count)] or [np.empty(0, np.int64)]
            union = np.unique(np.concatenate(every))
            union.flags.writeable = False
            return as_datetime(union, self.unit)
        if isinstance(which, str):
            t = self._code(which)
            if not self.rows[t]:
                return self.times(t)
            which = int(self._layout.calendar[t])
        if not 0 <= which < count:
            raise NotFoundError("calendar", which, [str(c) for c in range(count)])
        return as_datetime(self._calendar(which), self.unit)

    def windows(
        self,
        lookback: int,
        *,
        horizon: int | Sequence[int] | None = None,
        stride: int = 1,
        target_length: int | None = None,
        inputs: Names | None = None,
        targets: Names | None = None,
        optional: Names = (),
        tickers: Names | None = None,
        where: Names = (),
        at: Any = None,
        breaks: Names | None = None,
        from_: Any = None,
        to: Any = None,
    ) -> Windows:
        """The windows of `lookback` rows that lie in one ticker, cross no break and have no missing cell.

        `inputs`, `targets`: names of columns or groups, in order. By default the groups ``features`` and ``targets``;
        without such a group there are no targets. `horizon`: rows from a window's last row, its anchor, to the first
        target row; 0 is the anchor itself, as for labels that were computed beforehand; several give several targets
        (default 1). `target_length`: target rows from there on (default 1). `stride`: of each run of consecutive valid
        anchors the first is taken, then every stride-th. `at`: instead, those whose time is one of these.
        `optional`: inputs and targets whose cells may be missing (NaN). `breaks`: the break sets that count; all by
        default, ``()`` for none.

        These drop some of the windows, and never shift the stride: `tickers` to keep; `where`, columns that must be
        present at the anchor; `from_` and `to`, the range [from_, to) of the anchor's time.

        Costs time and memory by the number of runs of anchors, not of windows.
        """
        self._use()
        codes: I64 | None = None
        if tickers is not None:
            codes = np.array(sorted({self._code(t) for t in names(tickers, "tickers")}), np.int64)
        query = make_query(
            self._layout.schema,
            lookback=lookback,
            horizon=horizon,
            stride=stride,
            target_length=target_length,
            inputs=inputs,
            targets=targets,
            optional=optional,
            tickers=codes,
            where=where,
            at=at,
            breaks=breaks,
            from_=from_,
            to=to,
        )
        return Windows(self, query)

    # Its rows as tables

    def to_arrow(
        self, tickers: Names | None = None, columns: Names | None = None, start: Any = None, end: Any = None
    ) -> Any:
        """Rows as a pyarrow Table: `ticker` (a dictionary), `time`, then the columns; a copy, in memory.

        `tickers`: of these (all by default), always in the file's order; `columns`: names of columns or groups;
        `start`, `end`: times in [start, end), written as in :meth:`windows`. Times are in the file's unit, and in its
        zone if it names one; categories are text (a dictionary); a missing value is null.
        """
        rows = _frames.Rows(self, tickers, columns, start, end)
        pa = _frames.library("pyarrow", "to_arrow")
        return pa.Table.from_batches([rows.table().to_arrow(pa)])

    def to_polars(
        self, tickers: Names | None = None, columns: Names | None = None, start: Any = None, end: Any = None
    ) -> Any:
        """As :meth:`to_arrow`, a polars DataFrame. `ticker` and categories are text, which joins with that of others.

        Times of a file in seconds are in milliseconds; a missing value is null.
        """
        return _frames.Rows(self, tickers, columns, start, end).table().to_polars()

    def to_pandas(
        self, tickers: Names | None = None, columns: Names | None = None, start: Any = None, end: Any = None
    ) -> Any:
        """As :meth:`to_arrow`, a pandas DataFrame. `ticker` and categories are categorical; a missing value is NaN."""
        return _frames.Rows(self, tickers, columns, start, end).table().to_pandas()

    def to_arrow_reader(
        self,
        tickers: Names | None = None,
        columns: Names | None = None,
        start: Any = None,
        end: Any = None,
        *,
        batch_rows: int = 1 << 16,
    ) -> Any:
        """As :meth:`to_arrow`, a pyarrow RecordBatchReader: `batch_rows` rows at a time, so stores may be larger than
        memory.
        """
        return _frames.Rows(self, tickers, columns, start, end).reader(batch_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows as an Arrow stream, for what takes one: ``duckdb.sql("from store")``, ``polars.DataFrame(store)``,
        ``pyarrow.table(store)``, :func:`wstore.write`.
        """
        return self.to_arrow_reader().__arrow_c_stream__(requested_schema)

    # Its state

    def verify(self) -> None:
        """Checks every byte of the file: padding, checksums, cells, index and digest. Raises a CorruptError.

        Reads the whole file once, in bounded memory.
        """
        arrays = self._use()
        arrays.check(self._path)
        _verify.verify(self._path, self._layout, arrays.data)

    def stale(self) -> bool:
        """Whether the path no longer names the file that was opened: replaced, removed, or changed in place."""
        if self._identity is None:
            return False
        try:
            return _Identity.of(os.stat(self._path)) != self._identity
        except OSError:
            return True

    @property
    def closed(self) -> bool:
        return self._arrays is None

    def close(self) -> None:
        """Makes all further reading through the store and its windows a ClosedError. Arrays handed out stay valid."""
        self._arrays = None

    def __enter__(self) -> Store:
        self._use()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _summary(self) -> Iterator[tuple[str, str]]:
        layout = self._layout
        if self.closed:
            yield "state", "closed"
        yield "tickers", f"{len(layout.names):,}"
        yield "rows", f"{int(layout.rows.sum()):,}"
        shown = [
            f"{g.name} ({', '.join(g.columns[:8])}{', …' if len(g.columns) > 8 else ''})"
            for g in layout.schema.groups[:8]
        ]
        yield (
            "columns",
            f"{len(layout.schema.columns):,} in {'; '.join(shown)}{'; …' if len(layout.schema.groups) > 8 else ''}",
        )
        calendars = layout.calendars
        if self._arrays is not None and calendars.count.size:
            first = as_datetime(self._arrays.ints[calendars.offset // 8].min(keepdims=True), self.unit)
            last = as_datetime(
                self._arrays.ints[calendars.offset // 8 + calendars.count - 1].max(keepdims=True), self.unit
            )
            zone = f" UTC, source in {self.zone}" if self.zone else ""
            yield "times", f"{_clock(first[0])} to {_clock(last[0])}{zone}"
        if layout.schema.breaks:
            yield "breaks", ", ".join(b.name for b in layout.schema.breaks)

    def __repr__(self) -> str:
        return f"<wstore.Store {self._path!r}: " + ", ".join(f"{k} {v}" for k, v in self._summary()) + ">"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(k)}</th><td style='text-align:left'>{html.escape(v)}</td></tr>"
            for k, v in (*self._summary(), ("digest", self.digest))
        )
        return f"<table><caption>{html.escape(self._path)}</caption>{cells}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._access is None:
            raise TypeError(
                "a store made by open_bytes has no path to be pickled as; write the bytes to a file and open it"
            )
        self._use()
        return _reopen, (self._path, self._access, self._layout.size, self._layout.digest)

    # For windows

    def _code(self, ticker: object) -> int:
        """A ticker's code, from its name or itself."""
        layout = self._layout
        if isinstance(ticker, str):
            try:
                name = ticker.encode()
            except UnicodeEncodeError:
                name = b""
            lo = bisect_left(layout.names, name)
            if lo < len(layout.names) and layout.names[lo] == name:
                return lo
        elif isinstance(ticker, int | np.integer) and not isinstance(ticker, bool) and 0 <= ticker < len(layout.names):
            return int(ticker)
        raise NotFoundError("ticker", ticker, self.tickers)

    def _codes(self, tickers: Any) -> I64:
        """The codes of tickers, names or codes, in an array of any shape."""
        if isinstance(tickers, str):
            return np.asarray(self._code(tickers), np.int64)
        a = np.asarray(tickers)
        if a.dtype.kind in "iu":
            if a.size and not (a.min() >= 0 and a.max() < len(self._layout.names)):
                raise NotFoundError("ticker", int(a.min()) if a.min() < 0 else int(a.max()), self.tickers)
            return a.astype(np.int64)
        known: dict[object, int] = {}
        out = np.empty(a.size, np.int64)
        for i, name in enumerate(a.ravel().tolist()):
            if name not in known:
                known[name] = self._code(name)
            out[i] = known[name]
        return out.reshape(a.shape)

    def _calendar(self, c: int) -> I64:
        calendars = self._layout.calendars
        at = int(calendars.offset[c]) // 8
        return self._use().ints[at : at + int(calendars.count[c])]

    def _entries_before(self, time: int) -> I64:
        """For each calendar the number of entries that are before a time (any int)."""
        counts = self._layout.calendars.count
        if time > I64_MAX:
            return counts
        if time <= I64_MIN:
            return np.zeros_like(counts)
        wanted = np.int64(time)
        return np.array([np.searchsorted(self._calendar(c), wanted) for c in range(len(counts))], np.int64)

    def _rows_at(self, codes: I64, times: I64, side: Literal["left", "right"]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """The last row at or before ("right") or first at or after ("left") each time, and whether it is the time's.

        Rows that are not there are -1 or the number of rows.
        """
        layout = self._layout
        row = np.full(codes.shape, -1, np.int64)
        hit = np.zeros(codes.shape, bool)
        some = np.flatnonzero(layout.rows[codes])
        calendar = layout.calendar[codes[some]]
        order = np.argsort(calendar, kind="stable")
        heads = np.flatnonzero(np.diff(calendar[order], prepend=-1))
        for part in np.split(some[order], heads[1:]):
            if not part.size:
                continue
            entries = self._calendar(int(layout.calendar[codes[part[0]]]))
            entry = np.searchsorted(entries, times[part], side) - (side == "right")
            same = entries[np.clip(entry, 0, len(entries) - 1)] == times[part]
            row[part] = entry - layout.first[codes[part]]
            hit[part] = same & (row[part] >= 0) & (row[part] < layout.rows[codes[part]])
        return (np.minimum(row, layout.rows[codes] - 1) if side == "right" else np.maximum(row, 0)), hit


def open(path: Path, *, access: Access = "map", verify: bool = False) -> Store:
    """Opens a file and checks its structure, so that nothing can be out of bounds later; no data are read.

    `access`: "map" maps the file into memory, whole; "load" reads it into memory, which needs as much of it, but
    withstands others' writing to the file or cutting it (which faults a program that maps it). `verify` checks all
    data too (see :meth:`Store.verify`): do so with files from elsewhere.

    Raises CorruptError, UnsupportedError, or OSError.
    """
    if access not in ("map", "load"):
        raise ArgumentError(f"access must be 'map' or 'load', not {access!r}")
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(name).st_mode):
        with builtins.open(name, "rb", opener=_no_wait):  # directories and the like get the system's own error
            raise CorruptError(name, "file", None, "not_wstore", "this is not a regular file")
    with builtins.open(name, "rb", buffering=0) as f:
        identity = _Identity.of(os.fstat(f.fileno()))
        size = identity.size
        data = np.empty(0, np.uint8)
        mapped: mmap.mmap | None = None

        def read(offset: int, length: int) -> bytes:
            f.seek(offset)
            parts: list[bytes] = []
            while length > 0 and (part := f.read(length)):
                parts.append(part)
                length -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)

        layout = parse(name, size, read)
        if access == "map":
            mapped = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ)
            data = np.frombuffer(mapped, np.uint8)
        else:
            data = np.empty(size, np.uint8)
            f.seek(0)
            at = 0
            while at < size:
                got = f.readinto(data.data[at : at + (1 << 30)])
                if not got:
                    raise CorruptError(name, "file", at, "truncated", "the file was cut while it was being read")
                at += got
    store = Store(os.path.abspath(name), access, identity, layout, _arrays(data, mapped))
    if verify:
        store.verify()
    return store


def open_bytes(data: bytes | bytearray | memoryview, *, verify: bool = False) -> Store:
    """Opens a file that is in memory. The bytes are not copied unless they are misaligned; don't change them."""
    raw = np.frombuffer(data, np.uint8)
    if raw.ctypes.data % 8:
        raw = raw.copy()
    layout = parse("<bytes>", raw.size, lambda offset, length: raw[offset : offset + length].tobytes())
    store = Store("<bytes>", None, None, layout, _arrays(raw, None))
    if verify:
        store.verify()
    return store


def _arrays(data: npt.NDArray[np.uint8], mapped: mmap.mmap | None) -> _Arrays:
    data = data.view()
    data.flags.writeable = False
    return _Arrays(data, data.view("<f4"), data.view("<i8"), mapped)


def _no_wait(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _clock(t: np.datetime64) -> str:
    text = str(t)
    day, _, clock = text.partition("T")
    return day if clock.strip("0:.") == "" else text


# Stores that unpickling opened in this process, so that it maps each file once.
_REOPENED: WeakValueDictionary[tuple[str, Access, _Identity], Store] = WeakValueDictionary()


def _reopen(path: str, access: Access, size: int, digest: bytes) -> Store:
    key = path, access, _Identity.of(os.stat(path))
    store = _REOPENED.get(key)
    if store is None or store.closed:
        store = open(path, access=access)
        if store._identity == key[2]:
            _REOPENED[key] = store
    if store._layout.size != size or store._layout.digest != digest:
        raise StaleError(
            f"{path}: the file is not the one that was pickled (content digest {store.digest[:12]}…, was "
            f"{digest.hex()[:12]}…): open it anew, or put the old file back"
        )
    return store
