"""Batches: an order's numbers to arrays, made in a thread while the caller works; and advice to the kernel.

A mapped file larger than memory is read well only if the kernel is told what comes. While an order shuffles, the
mapping is advised RANDOM, so that a page that is touched brings no megabytes of neighbours, and what comes is
announced with WILLNEED: with a blocked order the next group's rows, spread over the current group's batches, with
others the next batch. Pieces of at most 128 KiB, as the kernel may cut larger ones short. What is in memory already
(found by reading a byte here and there without waiting) isn't announced. Where there is no such advice, or no mapping,
everything is the same, but slower when cold.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import hashlib
import mmap
import os
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, Self, get_args
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from . import _index, orders
from ._arguments import integer, names, real
from ._format import I64, ptr
from ._query import columns_of
from ._splits import anchor_times, cut
from ._times import as_datetime
from .errors import ArgumentError

if TYPE_CHECKING:
    from ._store import Store
    from ._windows import Times, Windows

OrderName = Literal["blocked", "exact", "sequential", "by_time", "by_time-exact", "by_time-sequential"]

_FIELDS = ("x", "y", "id", "ticker", "time", "x_present", "y_present")
# Numbers of an order that are computed at once.
_AHEAD = 1 << 14
_PIECE_BYTES = 1 << 17
# Windows that are looked at to see whether a batch, or a group of chunks, is in memory.
_SAMPLE = 8
# Batches of memory that a file is not probed after it was found in memory, at most.
_CALM_MAX = 16
# Places of cross-sections that are looked up at once.
_LOOKUP = 1 << 20


# Fingerprints


def windows_fingerprint(w: Windows) -> bytes:
    """Section 7 of ORDERS.md: 32 bytes that name content and windows."""
    store, q, runs = w._store, w._query, w._runs
    schema = store.schema
    h = hashlib.sha256(b"wstore-windows-1\n" + store._layout.digest)

    def put(*values: int) -> None:
        h.update(np.array(values, np.int64).tobytes() if values else b"")

    put(q.lookback, q.target_length if q.horizons else 0, len(q.horizons), *q.horizons)
    for what, given in (("inputs", q.inputs), ("targets", q.targets)):
        columns = columns_of(schema, given, what)
        put(len(columns), *columns)

    counts = np.diff(runs.number)
    row = runs.base - store._line[runs.ticker]
    n = counts.astype(np.uint64)
    if runs.table is None or runs.first is None:
        first, last = row, row + (counts - 1) * runs.step
        # n(n − 1)/2 without overflow: one of the factors is even
        less = n - np.uint64(1)
        pairs = np.where(counts % 2 == 0, n // np.uint64(2) * less, less // np.uint64(2) * n)
        sums = n * row.astype(np.uint64) + np.uint64(runs.step) * pairs
    else:
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(runs.table.astype(np.uint64))])
        first, last = row + runs.table[runs.first], row + runs.table[runs.first + counts - 1]
        sums = n * row.astype(np.uint64) + total[runs.first + counts] - total[runs.first]
    heads = np.flatnonzero(np.diff(runs.ticker, prepend=-1))
    if len(heads):
        ends = np.append(heads[1:], len(runs)) - 1
        each = np.stack(
            [
                runs.ticker[heads].astype(np.uint64),
                np.add.reduceat(n, heads),
                first[heads].astype(np.uint64),
                last[ends].astype(np.uint64),
                np.add.reduceat(sums, heads),
            ],
            axis=1,
        )
        h.update(each.astype("<u8").tobytes())
    if w._ids is None:
        return h.digest()
    selected = hashlib.sha256(b"wstore-selection-1\n" + h.digest() + len(w).to_bytes(8, "little"))
    for at in range(0, len(w), 1 << 16):
        selected.update(w._base_ids(range(at, min(len(w), at + (1 << 16)))).astype("<i8").tobytes())
    return selected.digest()


# Orders of windows


class ByTime:
    """Cross-sections: windows by the number of their anchor's time. Made by ``w.by_time()``.

    `len` is the number of distinct anchor times, and item i the numbers (int64) of the windows at ``times[i]``, in
    ticker order. Costs a lookup for each ticker; memory only by the number of times.
    """

    __slots__ = ("_codes", "_ids", "_pointers", "_w", "times")

    def __init__(self, w: Windows) -> None:
        self._w = w
        self._ids: I64 | None = None
        if w._ids is None:
            self._codes = np.unique(w._runs.ticker)
            found = anchor_times(w)
        else:
            # Of a selection, all places at once: it holds as much itself.
            code, time, _ = w.locate(range(len(w)))
            at = time.view(np.int64)
            self._ids = np.lexsort((code, at)).astype(np.int64)
            found, counts = np.unique(at, return_counts=True)
            self._pointers = ptr(counts)
        found.flags.writeable = False
        self.times: Times = as_datetime(found, w._store.unit)

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, i: int) -> I64:
        return self.of(np.array([range(len(self))[i]]))[0]

    def __iter__(self) -> Iterator[I64]:
        return (self[i] for i in range(len(self)))

    def of(self, numbers: I64) -> tuple[I64, I64]:
        """The windows of several times, one time after another, and how many each has."""
        if self._ids is not None:
            start, counts = self._pointers[numbers], np.diff(self._pointers)[numbers]
            pointers = ptr(counts)
            i = np.arange(pointers[-1]) + np.repeat(start - pointers[:-1], counts)
            return self._ids[i], counts
        ids, counts = [np.empty(0, np.int64)], np.empty(len(numbers), np.int64)
        each = max(1, _LOOKUP // max(1, len(self._codes)))
        for at in range(0, len(numbers), each):
            found = self._w.find(self._codes[None, :], self.times[numbers[at : at + each], None])
            hit = found >= 0
            counts[at : at + each] = hit.sum(1)
            ids.append(found[hit])
        return np.concatenate(ids), counts


def is_by_time(order: str) -> bool:
    """Whether an order, which must be one that there is, goes by time."""
    if not isinstance(order, str) or order not in get_args(OrderName):
        known = ", ".join(repr(n) for n in get_args(OrderName))
        raise ArgumentError(f"no order {order!r}: it must be one of {known}")
    return order.startswith("by_time")


def _word(what: str, value: int) -> int:
    """A seed or an epoch, as an int of Python's."""
    return integer(what, value, -(1 << 63), (1 << 64) - 1)


def make_order(
    w: Windows, name: str, seed: int, epoch: int, group_bytes: int | None, by_time: ByTime | None
) -> tuple[orders.Order, str]:
    """An order over windows (or over the times of by_time), and its name in fingerprints."""
    is_by_time(name)
    full = "by_time-exact" if name == "by_time" else name
    if group_bytes is not None and full != "blocked":
        raise ArgumentError(f"group_bytes is for order='blocked', not {name!r}")
    n = len(by_time) if by_time is not None else len(w)
    if full == "blocked":
        q = w._query
        row_bytes = sum(w._store.schema.groups[g].row_bytes for g in w._spots)
        chunk, per_group = orders.chunk_size(q.lookback, q.stride, row_bytes, group_bytes)
        return orders.Blocked(n, seed, epoch, chunk=chunk, chunks_per_group=per_group), full
    if full.endswith("exact"):
        return orders.Exact(n, seed, epoch), full
    return orders.Sequential(n), full


def order_fingerprint(w: Windows, name: str, seed: int, group_bytes: int | None, by_time: ByTime | None = None) -> str:
    seed = _word("seed", seed)
    if is_by_time(name) and by_time is None:
        by_time = ByTime(w)
    order, full = make_order(w, name, seed, 0, group_bytes, by_time)
    sizes = (order.chunk, order.chunks_per_group) if isinstance(order, orders.Blocked) else (0, 0)
    return orders.order_fingerprint(windows_fingerprint(w), full, order.n, seed, *sizes).hex()


# Batches


class Batch(dict[str, Any]):
    """A batch's fields, by name (``b["x"]``) and as attributes (``b.x``).

    `valid`: how many of its positions are valid: the first so many. `next`: the position at which to go on after it.
    `state`: the same as a dict to keep with a model, for ``batches(state=…)``.
    """

    __slots__ = ("next", "state", "valid")

    valid: int
    next: int
    state: dict[str, Any]

    def __init__(self, fields: Mapping[str, Any], valid: int, next_: int, state: dict[str, Any]) -> None:
        super().__init__(fields)
        self.valid, self.next, self.state = valid, next_, state

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the batch has no field {name!r}: it has {', '.join(self)}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (dict(self), self.valid, self.next, self.state)

    def __repr__(self) -> str:
        fields = ", ".join(f"{k} {getattr(v, 'shape', v)}" for k, v in self.items())
        return f"<wstore.Batch: {fields}; {self.valid} valid, next {self.next}>"


class Batches:
    """An epoch's batches; made by ``w.batches()``. `len` is their number. Each loop over it starts anew."""

    def __init__(
        self,
        w: Windows,
        batch: int,
        *,
        order: str,
        seed: int,
        epoch: int,
        start: int,
        rank: int,
        world: int,
        tail: orders.Tail,
        group_bytes: int | None,
        fields: Iterable[str] | None,
        anchor: str | Iterable[str],
        pad_to: int | None,
        fill: float | None,
        reuse: bool,
        prefetch: int,
        state: Mapping[str, Any] | None,
    ) -> None:
        self._w = w
        batch = integer("batch_size", batch, 1, orders.N_MAX)
        seed, epoch = _word("seed", seed), _word("epoch", epoch)
        self._order = order, seed, group_bytes
        self._by_time = ByTime(w) if is_by_time(order) else None
        self._prefetch = integer("prefetch", prefetch, 0, 1024)
        self._reuse, self._fill = reuse, real("fill", fill)
        self._fields = _fields(w, fields)
        self._anchor = _anchor_columns(w, anchor, (*self._fields, *(("mask",) if pad_to is not None else ())))
        self._pad_to = None if pad_to is None else integer("pad_to", pad_to, 1)
        if self._by_time is None and pad_to is not None:
            raise ArgumentError(f"pad_to is for order='by_time', not {order!r}")
        if self._by_time is not None and pad_to is None and batch != 1:
            raise ArgumentError(
                f"times have different numbers of windows: give pad_to= (the most that a time has), or batches of 1, "
                f"not {batch}"
            )
        self.fingerprint = order_fingerprint(w, order, seed, group_bytes, self._by_time)
        """Of the windows and their order, in hexadecimal; it is kept in states."""
        if state is not None:
            epoch, start = self._resume(state, epoch, start)
        self._go_to(epoch, start, batch, rank, world, tail)

    def _go_to(self, epoch: int, start: int, batch: int, rank: int, world: int, tail: orders.Tail) -> None:
        name, seed, group_bytes = self._order
        self.order, _ = make_order(self._w, name, seed, epoch, group_bytes, self._by_time)
        """The order that numbers come in."""
        self.epoch = epoch
        self.share = orders.Share(self.order.n, batch, start, rank, world, tail)
        """Which positions this rank gets."""

    def _another(self, epoch: int, start: int, rank: int, world: int) -> Self:
        """Another epoch, or another rank's part: without the cost of fingerprints."""
        other = copy.copy(self)
        other._go_to(_word("epoch", epoch), start, self.share.batch, rank, world, self.share.tail)
        return other

    def _maker(self) -> _Maker:
        return _Maker(self)

    def _resume(self, state: Mapping[str, Any], epoch: int, start: int) -> tuple[int, int]:
        try:
            fingerprint, at_epoch, position = state["order"], state["epoch"], state["position"]
        except (KeyError, TypeError):
            raise ArgumentError(f"state must be the `state` of a batch, not {state!r}") from None
        at_epoch = _word("epoch", at_epoch)
        if start or epoch not in (0, at_epoch):
            raise ArgumentError(f"a state holds epoch ({at_epoch}) and start ({position}): leave those out")
        if fingerprint != self.fingerprint:
            raise ArgumentError(
                f"the state is of other windows or another order ({str(fingerprint)[:12]}…, these have "
                f"{self.fingerprint[:12]}…): file, query, splits, order, seed and group_bytes must be those of the "
                "run that goes on; only batch, rank, world and tail may change"
            )
        return at_epoch, integer("position", position, 0, orders.N_MAX)

    def __len__(self) -> int:
        return self.share.steps

    def __iter__(self) -> Iterator[Batch]:
        done = (yield from self._made_ahead()) if self._prefetch else 0
        if done < len(self):  # none is made ahead, or the thread that did so is in the process that this forked from
            with self._maker() as make:
                for step in range(done, len(self)):
                    yield make(step)

    def _made_ahead(self) -> Generator[Batch, None, int]:
        """Batches made in a thread, up to the end, or up to a fork if it goes on in the new process; how many."""
        process, done = os.getpid(), 0
        ahead: deque[Future[Batch]] = deque()
        with self._maker() as make:
            # One thread, so that batches are made in order.
            pool = ThreadPoolExecutor(1, "wstore-batches", make.own_thread)
            try:
                while done < len(self) and os.getpid() == process:
                    # The caller is done with the batch before, into whose arrays the last of these may go.
                    for step in range(done + len(ahead), min(done + self._prefetch + 1, len(self))):
                        ahead.append(pool.submit(make, step))
                    done += 1
                    yield ahead.popleft().result()
                return done
            finally:
                if os.getpid() == process:
                    # A garbage collection may close this in such a thread, which then ends by itself.
                    pool.shutdown(wait=threading.get_ident() not in make.threads, cancel_futures=True)

    def __repr__(self) -> str:
        return f"<wstore.Batches: {len(self):,} of {self.share.batch}, {self.order!r}>"


def _fields(w: Windows, fields: Iterable[str] | None) -> tuple[str, ...]:
    if fields is None:
        return ("x",) if w._y is None else ("x", "y")
    out = names(fields, "fields")
    for f in out:
        if f not in _FIELDS:
            raise ArgumentError(f"no field {f!r}: there are {', '.join(_FIELDS)}; anchor= names columns at the anchor")
        if f.startswith("y") and w._y is None:
            raise ArgumentError(f"the field {f!r} needs targets, and the windows have none")
    return out


def _anchor_columns(w: Windows, given: str | Iterable[str], taken: tuple[str, ...]) -> tuple[int, ...]:
    schema = w._store.schema
    out: list[int] = []
    for name in names(given, "anchor"):
        ends = [i for i, c in enumerate(schema.columns) if c.name == name and c.role == "label_end"]
        out += ends or columns_of(schema, (name,), "anchor")
    for c in out:
        if schema.columns[c].name in taken:
            raise ArgumentError(f"anchor: the column {schema.columns[c].name!r} has the name of a field of the batch")
    return tuple(dict.fromkeys(out))


class _Maker:
    """Makes the batches of one loop, in order, and advises the kernel meanwhile."""

    def __init__(self, of: Batches) -> None:
        self.of, self.w = of, of._w
        self.share, self.order = of.share, of.order
        self.x_out: list[npt.NDArray[np.float32] | None] = []
        self.y_out: list[npt.NDArray[np.float32] | None] = []
        self.first, self.cached = 0, np.empty((0, 0), np.int64)
        self.advice: _Advice | None = None
        self.threads: list[int] = []

    def own_thread(self) -> None:
        """Called in each thread that batches are made in."""
        self.threads.append(threading.get_ident())

    def __enter__(self) -> _Maker:
        arrays = self.w._store._use()
        shuffled = self.of._by_time is not None or not isinstance(self.order, orders.Sequential)
        if arrays.map is not None and shuffled:
            self.advice = _Advice(self.w, arrays.map)
        return self

    def __exit__(self, *_: object) -> None:
        if self.advice is not None:
            self.advice.close()

    def numbers(self, step: int) -> I64:
        """The numbers of a step's batch, computed for many steps at once, which is faster."""
        if not 0 <= step - self.first < len(self.cached):
            s = self.share
            steps = min(max(1, _AHEAD // s.batch), s.steps - step)
            start = s.span(step)[0]
            size = min(s.batch, s.n) if s.tail == "keep" else s.batch
            p = start + np.arange(steps)[:, None] * (s.world * size) + np.arange(size)
            self.first, self.cached = step, self.order[np.minimum(p, s.n - 1)]
        a, b = self.share.span(step)
        return self.cached[step - self.first, : b - a]

    def __call__(self, step: int) -> Batch:
        of, share = self.of, self.share
        store = self.w._store
        store._use().check(store.path)
        valid = share.valid(step)
        numbers = self.numbers(step)
        if of._by_time is None:
            self.advise(step, numbers)
            out = self.fields(step, numbers)
        else:
            out = self.cross_sections(step, numbers, valid, of._by_time)
        position = share.next(step)
        state = {"order": of.fingerprint, "epoch": of.epoch, "position": position}
        return Batch(out, valid, position, state)

    def advise(self, step: int, numbers: I64) -> None:
        if self.advice is None:
            return
        if isinstance(self.order, orders.Blocked):
            self.advice.blocked(self.order, self.share, step)
            return
        if step == 0:
            self.advice.batch(numbers)
        if step + 1 < self.share.steps:
            self.advice.batch(self.numbers(step + 1))

    def cross_sections(self, step: int, numbers: I64, valid: int, by_time: ByTime) -> dict[str, Any]:
        ids, counts = by_time.of(numbers)
        pad_to = self.of._pad_to
        if self.advice is not None:
            self.advice.batch(ids)
        if pad_to is None:
            return self.fields(step, ids)
        if counts.max(initial=0) > pad_to:
            most = int(counts.argmax())
            time = by_time.times[numbers[most]]
            raise ArgumentError(f"pad_to={pad_to} is too few: {time} has {counts[most]} windows")
        mask = np.arange(pad_to) < counts[:, None]
        # What is padded repeats a window of its own time, then is cleared, so that each window is copied once.
        at = np.minimum(np.arange(pad_to), counts[:, None] - 1) + (ptr(counts)[:-1])[:, None]
        out = self.fields(step, ids[at].reshape(-1))
        absent = ~mask
        for name, values in out.items():
            a = out[name] = values.reshape(len(numbers), pad_to, *values.shape[1:])
            self.clear(name, a, absent)
        mask[valid:] = False
        out["mask"] = mask
        return out

    def clear(self, name: str, values: Any, absent: npt.NDArray[np.bool_]) -> None:
        """Overwrites what is padded."""
        values[absent] = -1 if name in ("id", "ticker") else np.datetime64("NaT") if values.dtype.kind == "M" else 0

    def fields(self, step: int, ids: I64) -> dict[str, Any]:
        of, w = self.of, self.w
        wanted = of._fields
        found: dict[str, Any] = {"id": ids}
        if any(f[0] in "xy" for f in wanted):
            present = any(f.endswith("_present") for f in wanted)
            got = self.gather(step, ids, present)
            found |= zip(("x", "y", "x_present", "y_present"), got, strict=False)
        if of._anchor or "ticker" in wanted or "time" in wanted:
            found["ticker"], found["time"], row = w.locate(ids)
        out = {f: found[f] for f in wanted}
        if "id" in out:
            out["id"] = ids.copy()
        for c in of._anchor:
            column, values = _at_anchor(w._store, c, found["ticker"], row)
            out[column] = values
        return out

    def gather(self, step: int, ids: I64, present: bool) -> tuple[Any, ...]:
        """x and y, and where they are present if that is asked for."""
        return self.w._gather(ids, self.buffers(step, len(ids)), self.of._fill, present, announce=False)

    def buffers(self, step: int, n: int) -> tuple[Any, Any]:
        if not self.of._reuse:
            return None, None
        i, w = step % (self.of._prefetch + 1), self.w
        shapes = w.shapes
        while len(self.x_out) <= i:
            self.x_out.append(None)
            self.y_out.append(None)

        def room(have: npt.NDArray[np.float32] | None, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
            return np.empty((n, *shape), np.float32) if have is None or len(have) < n else have

        x = self.x_out[i] = room(self.x_out[i], shapes[0])
        if shapes[1] is None:
            return x[:n], None
        y = self.y_out[i] = room(self.y_out[i], shapes[1])
        return x[:n], y[:n]


def _at_anchor(store: Store, c: int, code: I64, row: I64) -> tuple[str, npt.NDArray[Any]]:
    """A column's name, and its values at rows of tickers."""
    arrays, schema = store._use(), store.schema
    column = schema.columns[c]
    group = schema.groups[column.group]
    block = store._layout.blocks.offset.reshape(len(store.rows), len(schema.groups))[code, column.group]
    if group.dtype == "int64":
        return column.name, as_datetime(arrays.ints[block // 8 + row], schema.unit)
    return column.name, arrays.flat[block // 4 + row * len(group.columns) + column.place]


# Advice

_RANDOM = getattr(mmap, "MADV_RANDOM", None)
_NORMAL = getattr(mmap, "MADV_NORMAL", None)
_WILLNEED = getattr(mmap, "MADV_WILLNEED", None)

# A list for each mapping, with an element for each loop that shuffles on it: the last one takes the advice back.
_shuffling: WeakKeyDictionary[mmap.mmap, list[None]] = WeakKeyDictionary()
# Its holder may enter again, as a garbage collection, at any time, may close other loops.
_shuffling_lock = threading.RLock()


def _renew_lock() -> None:
    """In a forked process: the lock's holder may be a thread that isn't there."""
    global _shuffling_lock
    _shuffling_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

# Calls of `announce` that need not look, as the last one found its windows in memory.
_resting: WeakKeyDictionary[mmap.mmap, int] = WeakKeyDictionary()
_FEW = 16  # fewer windows are read as fast as they are looked at

# Of the file: first bytes and ends, ascending, neither overlapping nor touching.
Extents = _index.Intervals


class _Advice:
    """Tells the kernel what a loop will read."""

    def __init__(self, w: Windows, mapping: mmap.mmap) -> None:
        self.w, self.map = w, mapping
        self.probe = _Probe(w._store)
        self.skip = self.calm = 0  # batches not to look at, as the last ones were in memory
        self.group = -1
        self.plan: Extents = _index.NONE
        self.done = 0
        self.loops = _shuffling.setdefault(mapping, [])
        with _shuffling_lock:
            self.loops.append(None)
            self._advise()

    def _advise(self) -> None:
        """After the number of loops has changed. Other loops may be closed meanwhile, also in this thread."""
        if _RANDOM is None or _NORMAL is None or len(self.loops) > 1:
            return
        with contextlib.suppress(OSError):  # it's advice only
            self.map.madvise(_RANDOM if self.loops else _NORMAL)

    def close(self) -> None:
        with _shuffling_lock:
            self.loops.pop()
            self._advise()
        self.probe.close()

    def batch(self, ids: I64) -> None:
        """Announces the windows of a batch, unless they are in memory."""
        if self.skip:
            self.skip -= 1
            return
        some = ids[:: max(1, len(ids) // _SAMPLE)]
        if not self.probe.cold(window_extents(self.w, some)[0]):
            self.calm = min(_CALM_MAX, 2 * self.calm + 1)
            self.skip = self.calm
            return
        self.calm = 0
        self._announce(*_pieces(window_extents(self.w, ids)))

    def blocked(self, order: orders.Blocked, share: orders.Share, step: int) -> None:
        """Before a step's batch: announces a share of what the group after its own will read."""
        first, end = share.span(step)
        last = min(end, order.n) - 1
        if last < first:
            return
        g = int(order.group_of(last))
        if g != self.group:
            if self.group < 0:
                for early in range(int(order.group_of(first)), g + 1):
                    self._announce(*self._group(order, early))
            else:
                self._announce(self.plan[0][self.done :], self.plan[1][self.done :])
                for skipped in range(self.group + 2, g + 1):
                    self._announce(*self._group(order, skipped))
            self.group, self.done = g, 0
            self.plan = self._group(order, g + 1)
        batches = -(-(order.span(g)[1] - last) // (share.batch * share.world))
        count = -(-(len(self.plan[0]) - self.done) // max(1, batches))
        self._announce(self.plan[0][self.done : self.done + count], self.plan[1][self.done : self.done + count])
        self.done += count

    def _group(self, order: orders.Blocked, g: int) -> Extents:
        """The pieces that a group's windows lie in, ascending; none if it is in memory, or behind the last."""
        if g >= order.groups:
            return _index.NONE
        chunks = np.sort(order.chunks_of(g))
        if self.w._ids is None:
            start = chunks * order.chunk
            extents = interval_extents(self.w, start, np.minimum(start + order.chunk, order.n))
        else:
            parts = [window_extents(self.w, np.arange(*order.chunk_range(c))) for c in chunks.tolist()]
            extents = _index.union(parts)
        some = extents[0][:: max(1, len(extents[0]) // (2 * _SAMPLE))]
        return _pieces(extents) if self.probe.cold(some) else _index.NONE

    def _announce(self, start: I64, end: I64) -> None:
        if _WILLNEED is None:
            return
        with contextlib.suppress(OSError):
            for a, b in zip(start.tolist(), end.tolist(), strict=True):
                self.map.madvise(_WILLNEED, a, b - a)


def _pieces(extents: Extents) -> Extents:
    """Extents in whole pages, cut into pieces."""
    page = mmap.PAGESIZE
    start, end = _index.union([(extents[0] // page * page, extents[1])])
    counts = -(-(end - start) // _PIECE_BYTES)
    pointers = ptr(counts)
    which = np.repeat(np.arange(len(start)), counts)
    at = start[which] + (np.arange(pointers[-1]) - pointers[which]) * _PIECE_BYTES
    return at, np.minimum(at + _PIECE_BYTES, end[which])


def _touched(w: Windows) -> Iterator[tuple[int, int, int]]:
    """Of each group that windows touch: its number, and the first row and end, from a window's first input row on."""
    q = w._query
    for g in w._spots:
        lows, highs = [], []
        if any(p.group == g for p in w._x.pieces):
            lows, highs = [0], [q.lookback]
        if w._y is not None and any(p.group == g for p in w._y.pieces):
            lows.append(q.lookback - 1 + q.horizons[0])
            highs.append(q.lookback - 1 + q.horizons[-1] + q.target_length)
        yield g, min(lows), max(highs)


def announce(w: Windows, r: I64, k: I64) -> None:
    """Announces windows that are about to be gathered, in the file's order, unless a sample of them is in memory.

    Then the next calls don't look: a file that is in memory mostly stays there.
    """
    mapping = w._store._use().map
    if mapping is None or _WILLNEED is None or len(r) < _FEW:
        return
    rest = _resting.get(mapping, 0)
    if rest:
        _resting[mapping] = rest - 1
        return
    probe = _Probe(w._store)
    try:
        some = slice(None, None, max(1, len(r) // _SAMPLE))
        cold = probe.cold(place_extents(w, r[some], k[some])[0])
    finally:
        probe.close()
    if not cold:
        _resting[mapping] = _CALM_MAX
        return
    with contextlib.suppress(OSError):
        for a, b in zip(*(e.tolist() for e in _pieces(place_extents(w, r, k))), strict=True):
            mapping.madvise(_WILLNEED, a, b - a)


def window_extents(w: Windows, ids: I64) -> Extents:
    """The bytes of the file that windows lie in."""
    return place_extents(w, *w._places(ids))


def place_extents(w: Windows, r: I64, k: I64) -> Extents:
    """The bytes of the file that windows lie in, each the k-th of a run r."""
    parts: list[Extents] = []
    for g, low, high in _touched(w):
        spot, row = w._spots[g], 4 * len(w._store.schema.groups[g].columns)
        at = 4 * (spot.offset[r] + k * spot.step)
        parts.append((at + low * row, at + high * row))
    return _index.union(parts)


def interval_extents(w: Windows, start: I64, end: I64) -> Extents:
    """The bytes that the windows of ascending, disjoint intervals of numbers lie in, with what is between them."""
    runs = w._runs
    r, lo, hi = cut(runs.number, (start, end))
    hi = hi - 1
    if runs.table is not None and runs.first is not None:
        lo, hi = runs.table[runs.first[r] + lo], runs.table[runs.first[r] + hi]
    parts: list[Extents] = []
    for g, low, high in _touched(w):
        spot, row = w._spots[g], 4 * len(w._store.schema.groups[g].columns)
        at = 4 * spot.offset[r]
        parts.append((at + 4 * lo * spot.step + low * row, at + 4 * hi * spot.step + high * row))
    return _index.union(parts)


class _Probe:
    """Finds out whether bytes of the file are in memory, by reading them without waiting."""

    def __init__(self, store: Store) -> None:
        self.fd = -1
        self.buffer = bytearray(1)
        identity = store._identity
        if identity is None or not hasattr(os, "RWF_NOWAIT"):
            return
        try:
            fd = os.open(store.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            return
        try:
            s = os.fstat(fd)
        except OSError:
            os.close(fd)
            return
        if (s.st_dev, s.st_ino) != (identity.device, identity.inode):  # another file took the name
            os.close(fd)
            return
        self.fd = fd
        with contextlib.suppress(OSError):  # or a byte that isn't there brings megabytes of its neighbours
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)

    def cold(self, offsets: I64) -> bool:
        """Whether any of these bytes is not in memory; true also if that can't be found out."""
        if self.fd < 0:
            return True
        try:
            for at in offsets.tolist():
                os.preadv(self.fd, [self.buffer], at, os.RWF_NOWAIT)
        except OSError as e:  # any: what is wrong with the file, reading it will tell
            if e.errno in (errno.EOPNOTSUPP, errno.EINVAL):
                self.close()
            return True
        return False

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
