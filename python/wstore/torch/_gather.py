"""Windows into tensors: from the mapped file, or from a copy of their columns on a device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.stride_tricks import as_strided
from torch import Tensor

from .. import _batches
from .._format import I64, ptr
from .._query import columns_of
from .._windows import _PIECE_BYTES, F32, Windows, _Side
from ..errors import ArgumentError

# What a thread should have to copy at least.
_SHARE_BYTES = 1 << 19

# Makes an uninitialised float32 tensor on the CPU of a shape.
Allocate = Callable[[tuple[int, ...]], Tensor]


def fresh(shape: tuple[int, ...]) -> Tensor:
    """Ordinary memory. What batches before had is used again by the allocator, as soon as nothing refers to it."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def pinned(shape: tuple[int, ...]) -> Tensor:
    """Memory that an accelerator copies from without waiting; torch takes it back when all copies are done."""
    return torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True)


class Team:
    """Threads that copy a large batch together. They do nothing in between, and end with `close`."""

    def __init__(self, threads: int, begin: Callable[[], None]) -> None:
        """`begin` is called in each thread first."""
        self.threads, self._begin = threads, begin
        self._process = os.getpid()
        self._pool: ThreadPoolExecutor | None = None

    def share(self, part: Callable[[int, int], None], n: int, nbytes: int) -> None:
        """Calls part(a, b) for ranges that make up [0, n), each in a thread, and waits for all."""
        k = min(self.threads, n, nbytes // _SHARE_BYTES)
        if k < 2:
            part(0, n)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, "wstore-gather", self._begin)
        bounds = [n * i // k for i in range(k + 1)]
        others = [self._pool.submit(part, a, b) for a, b in pairwise(bounds[1:])]
        try:
            part(0, bounds[1])
        finally:
            wait(others)
        for done in others:
            done.result()

    def close(self) -> None:
        if self._pool is not None and os.getpid() == self._process:
            self._pool.shutdown(wait=False)


# What is done to a part of a batch's x or y in place, by the thread that copied it.
Finish = Callable[[str, F32], None]


class Source:
    """Gives windows' x and y, as float32 of shapes (ids, *shape of w[i])."""

    device = torch.device("cpu")

    def __init__(self, w: Windows) -> None:
        self.windows = w
        self.shapes = dict(zip("xy", w.shapes, strict=True))

    def gather(
        self,
        ids: Any,
        allocate: Mapping[str, Allocate],
        finish: Finish | None = None,
        team: Team | None = None,
        announce: bool = False,
    ) -> dict[str, Tensor]:
        """Those sides that there are allocators for. `announce` tells the system what is about to be read."""
        w = self.windows
        w._store._use().check(w._store.path)
        r, k = w._places(ids)
        if announce:
            _batches.announce(w, r, k)
        places = self._places(r, k)
        alone = team is None or team.threads == 1
        out: dict[str, Tensor] = {}
        arrays: dict[str, F32] = {}
        for name, f in allocate.items():
            shape = self.shapes[name]
            if shape is None:
                continue
            if f is fresh and alone and finish is None:
                out[name] = torch.from_numpy(self._all(name, places, len(r)))
                continue
            out[name] = f((len(r), *shape))
            arrays[name] = out[name].numpy()

        # Copied by numpy: torch's threads wait for each other spinning, and where the CPUs have something else to do,
        # such as training, a batch then takes ten times as long, or a hundred.
        def part(a: int, b: int) -> None:
            for name, values in arrays.items():
                if finish is None:
                    self._copy(name, places, values, a, b)
                    continue
                # What was copied is finished while it is in the CPU's cache.
                each = max(1, _PIECE_BYTES // max(1, 4 * prod(values.shape[1:])))
                for i in range(a, b, each):
                    end = min(i + each, b)
                    self._copy(name, places, values, i, end)
                    finish(name, values[i:end])

        if team is None:
            part(0, len(r))
        else:
            team.share(part, len(r), sum(a.nbytes for a in arrays.values()))
        return out

    def _places(self, r: I64, k: I64) -> Any:
        """Where windows are, each the k-th of a run r."""
        raise NotImplementedError

    def _copy(self, name: str, places: Any, out: F32, a: int, b: int) -> None:
        """Copies x or y of windows a to b into out[a:b]."""
        raise NotImplementedError

    def _all(self, name: str, places: Any, n: int) -> F32:
        """x or y of all n windows, in memory of its own."""
        shape = self.shapes[name]
        assert shape is not None
        out = np.empty((n, *shape), np.float32)
        self._copy(name, places, out, 0, n)
        return out


class Mapped(Source):
    """From the file."""

    def _places(self, r: I64, k: I64) -> dict[int, I64]:
        return {g: s.offset[r] + k * s.step for g, s in self.windows._spots.items()}

    def _copy(self, name: str, places: dict[int, I64], out: F32, a: int, b: int) -> None:
        self._side(name).many({g: o[a:b] for g, o in places.items()}, b - a, out[a:b])

    def _all(self, name: str, places: dict[int, I64], n: int) -> F32:
        # numpy copies windows that are one piece into memory of its own at once, else by way of a piece in the cache.
        return self._side(name).many(places, n, None)

    def _side(self, name: str) -> _Side:
        side = self.windows._x if name == "x" else self.windows._y
        assert side is not None
        return side


class Resident(Source):
    """From a copy, on a device, of the columns that windows need, of the rows from each ticker's first to its last."""

    def __init__(
        self,
        w: Windows,
        device: torch.device,
        names: Iterable[str],
        finish: Finish | None = None,
    ) -> None:
        """Of x, y or both. `finish` is done once, to pieces of the columns, (rows, columns)."""
        super().__init__(w)
        self.device = device
        q, runs, store = w._query, w._runs, w._store
        schema, line = store.schema, store._line
        lowest = min(1 - q.lookback, *q.horizons, 0)
        highest = max(0, *(h + q.target_length - 1 for h in q.horizons)) + 1 if q.horizons else 1
        first, end = _rows(w)
        some = np.flatnonzero(end > first)
        lo, hi = first[some] + lowest, end[some] - 1 + highest
        places = ptr(hi - lo)
        self.rows = int(places[-1])
        sides = {"x": columns_of(schema, q.inputs, "inputs"), "y": columns_of(schema, q.targets, "targets")}
        sides = {name: sides[name] for name in names}
        self.nbytes = 4 * self.rows * sum(map(len, sides.values()))
        """The bytes that the copy takes on the device."""
        free = _free(device)
        if free is not None and self.nbytes > free:
            raise ArgumentError(
                f"resident: the columns of these windows take {_size(self.nbytes)} ({self.rows:,} rows), and "
                f"{device} has {_size(free)} free: choose fewer columns or tickers or a shorter range, or leave "
                "resident out"
            )
        blocks = store._layout.blocks.offset.reshape(len(store.rows), len(schema.groups))
        flat = store._use().flat
        self._items: dict[str, F32] = {}
        self._tables: dict[str, Tensor] = {}
        for name, columns in sides.items():
            table = torch.empty((self.rows, len(columns)), dtype=torch.float32, device=device)
            by_group: dict[int, list[int]] = {}  # group to places among `columns`
            for i, c in enumerate(columns):
                by_group.setdefault(schema.columns[c].group, []).append(i)
            for i, t in enumerate(some.tolist()):
                values = np.empty((int(hi[i] - lo[i]), len(columns)), np.float32)
                for g, into in by_group.items():
                    width, at = len(schema.groups[g].columns), int(blocks[t, g]) // 4
                    rows = flat[at : at + int(store.rows[t]) * width].reshape(-1, width)
                    values[:, into] = rows[lo[i] : hi[i], [schema.columns[columns[j]].place for j in into]]
                if finish is not None:
                    finish(name, values)
                table[places[i] : places[i + 1]] = torch.from_numpy(values)
            # Element i is as many rows as a window has, from row i on.
            width = len(columns)
            size = width * (q.lookback if name == "x" else q.target_length)
            n = max(0, self.rows - size // width + 1)
            if device.type == "cpu":
                self._items[name] = as_strided(table.numpy(), (n, size), (4 * width, 4))
            else:
                self._tables[name] = table.as_strided((n, size), (width, 1))
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # before other streams read
        # From a run's first anchor, a position among all tickers' rows, to its row here
        shift = np.zeros(len(store.rows), np.int64)
        shift[some] = places[:-1] - lo - line[some]
        self._base = runs.base + shift[runs.ticker]
        self._firsts = {"x": np.array([1 - q.lookback]), "y": np.array(q.horizons, np.int64)}

    def gather(
        self,
        ids: Any,
        allocate: Mapping[str, Allocate],
        finish: Finish | None = None,
        team: Team | None = None,
        announce: bool = False,
    ) -> dict[str, Tensor]:
        if self.device.type == "cpu":
            return super().gather(ids, allocate, finish, team)
        anchor = self._places(*self.windows._places(ids))
        out: dict[str, Tensor] = {}
        for name in allocate:
            shape = self.shapes[name]
            if shape is not None:
                at = self._at(name, anchor)
                index = torch.from_numpy(at)
                index = index.pin_memory() if self.device.type == "cuda" else index
                some = torch.index_select(self._tables[name], 0, index.to(self.device, non_blocking=True))
                out[name] = some.view(len(anchor), *shape)
        return out

    def _places(self, r: I64, k: I64) -> I64:
        return self._base[r] + k * self.windows._runs.step

    def _at(self, name: str, anchor: I64) -> I64:
        at: I64 = (anchor[:, None] + self._firsts[name]).reshape(-1)
        return at

    def _copy(self, name: str, places: I64, out: F32, a: int, b: int) -> None:
        items, at = self._items[name], self._at(name, places[a:b])
        to = out[a:b].reshape(len(at), items.shape[1])
        each = max(1, _PIECE_BYTES // (4 * items.shape[1]))
        for i in range(0, len(at), each):
            to[i : i + each] = items[at[i : i + each]]


def _rows(w: Windows) -> tuple[I64, I64]:
    """For each ticker the first anchor's row and the end of the last's; equal where there is no window."""
    runs, line = w._runs, w._store._line
    first = np.full(len(w._store.rows), np.iinfo(np.int64).max)
    end = np.zeros(len(w._store.rows), np.int64)
    if w._ids is None:
        counts = np.diff(runs.number)
        low, high = np.zeros_like(counts), counts - 1
        if runs.table is not None and runs.first is not None:
            low, high = runs.table[runs.first], runs.table[runs.first + counts - 1]
        pieces = [(runs.ticker, *(runs.base + k * runs.step - line[runs.ticker] for k in (low, high)))]
    else:
        each = 1 << 16
        found = (w.locate(np.arange(i, min(len(w), i + each))) for i in range(0, len(w), each))
        pieces = [(code, row, row) for code, _, row in found]
    for code, low, high in pieces:
        np.minimum.at(first, code, low)
        np.maximum.at(end, code, high + 1)
    return np.minimum(first, end), end


def _free(device: torch.device) -> int | None:
    """The bytes of memory that can be had on a device; None if that can't be found out."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "cpu":
        try:
            lines = Path("/proc/meminfo").read_text().splitlines()
        except OSError:
            return None
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return None


def _size(n: int) -> str:
    for unit in ("B", "KB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000  # type: ignore[assignment]
    return f"{n:,.3g} GB"


def tensor(a: npt.NDArray[Any]) -> Tensor:
    """An array of a batch as a tensor: times as int64 in the store's unit (NaT is the least)."""
    if not a.flags.writeable:
        a = a.copy()
    return torch.from_numpy(a.view(np.int64) if a.dtype.kind == "M" else a)


def present(t: Tensor) -> Tensor:
    """Where a tensor is not NaN."""
    return torch.from_numpy(~np.isnan(t.numpy())) if t.device.type == "cpu" else ~torch.isnan(t)


def fill_missing(t: Tensor, value: float) -> None:
    """Replaces NaN, in place."""
    if t.device.type == "cpu":
        a = t.numpy()
        np.copyto(a, np.float32(value), where=np.isnan(a))
    else:
        t.masked_fill_(torch.isnan(t), value)
