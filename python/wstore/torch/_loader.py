"""Batches of tensors, made in this process."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import _batches
from .._arguments import integer, names
from .._format import I64
from .._windows import Windows
from ..errors import ArgumentError, WstoreError
from ..orders import Tail
from ..stats import Standardizer
from ._gather import Allocate, Mapped, Resident, Source, Team, fill_missing, fresh, pinned, tensor
from ._gather import present as is_present

Transform = Standardizer | Callable[[Tensor], Tensor]


class Batch(tuple[Tensor, ...]):
    """A batch's tensors, in the order of the loader's fields (``x, y = b``), also as ``b.x`` and ``b["x"]``.

    `valid`: how many of its positions are valid: the first so many; the others pad it. `next`: the position at which
    to go on after it. `state`: what the loader's `state_dict` is after it.
    """

    fields: tuple[str, ...] = ()
    valid: int
    next: int
    state: dict[str, Any]

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, str):
            if i not in self.fields:
                raise KeyError(self._lacks(i))
            i = self.fields.index(i)
        return super().__getitem__(i)

    def __getattr__(self, name: str) -> Any:
        if name not in self.fields:
            raise AttributeError(self._lacks(name))
        return super().__getitem__(self.fields.index(name))

    def _lacks(self, name: str) -> str:
        return f"the batch has no field {name!r}: it has {', '.join(self.fields)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _batch, (self.fields, tuple(self), self.__dict__)

    def __repr__(self) -> str:
        shown = ", ".join(f"{k} {tuple(v.shape)}" for k, v in zip(self.fields, self, strict=False))
        return f"<wstore.torch.Batch: {shown}>"


@functools.cache
def _batch_of(fields: tuple[str, ...]) -> type[Batch]:
    """A class for its fields, so that libraries that build a tuple anew, of its own type, keep their names."""
    return type("Batch", (Batch,), {"fields": fields, "__doc__": Batch.__doc__, "__module__": __name__})


def _batch(fields: tuple[str, ...], tensors: Iterable[Tensor], rest: dict[str, Any]) -> Batch:
    b = _batch_of(fields)(tensors)
    b.__dict__.update(rest)
    return b


@dataclass(frozen=True)
class LoaderStats:
    """What a loop over a loader did so far. Times are in seconds of wall clock."""

    batches: int
    """How many were handed out."""
    windows: int
    """How many valid windows these held; times, if the order is by_time."""
    seconds: float
    """From when the first was asked for to when the last was handed out."""
    waited: float
    """Of these seconds those in which the consumer waited for a batch."""
    made: int
    """How many windows were put into batches, those not asked for yet included; times, if the order is by_time."""
    making: float
    """The seconds that this took."""

    @property
    def waiting_share(self) -> float:
        """The share of the time that the consumer waited, 0 to 1: near 0 the loader is not what limits."""
        return self.waited / self.seconds if self.seconds else 0.0

    @property
    def gather_rate(self) -> float:
        """Windows made per second of making: what the loader could hand out at most."""
        return self.made / self.making if self.making else 0.0


class _Tally:
    __slots__ = ("batches", "end", "made", "making", "start", "waited", "windows")

    def __init__(self) -> None:
        self.batches = self.windows = self.made = 0
        self.waited = self.making = self.start = self.end = 0.0

    def stats(self) -> LoaderStats:
        return LoaderStats(self.batches, self.windows, self.end - self.start, self.waited, self.made, self.making)


class WindowLoader:
    """Batches of tensors, an epoch a loop: ``for x, y in WindowLoader(w, 256, order="exact"): …``.

    Batches are made in this process, `prefetch` ahead by a thread (0: by the caller); with more than one of
    `threads` several copy a large batch together, which is for CPUs that training leaves idle. There are no worker
    processes, and torch's own threads are left alone. Each batch is a tuple of tensors,
    one for each of `fields`, which also are attributes; see :class:`Batch`. They may be written to and kept:
    each has memory of its own.

    `order`, `seed`, `group_bytes`, `anchor`, `pad_to`, `tail` and `fields` are those of :meth:`wstore.Windows.batches`;
    the field "mask" is bool of shape (batch_size,), False where a position is padded (with `pad_to` it is of shape
    (batch_size, pad_to), and always there). "id", "ticker" and "time" are int64, times in the store's unit since 1970.

    `rank`, `world`: by default those of torch.distributed, if that is initialised when a loop starts, else 0 of 1. With
    several ranks `tail` must be "drop" or "pad".

    `transform`, `target_transform`: a :class:`wstore.Standardizer`, applied in place, or a function from a batch's x
    (or y) to another tensor, which runs in the thread. `fill` replaces what is missing (NaN) after that.

    `device`: where batches are handed out. `pin_memory`: from pinned memory, as is always done for a CUDA device; no
    effect without one. `resident`: copies the columns that the windows need to the device once (4 bytes × rows ×
    columns, of inputs and of targets; `resident_bytes`), and gathers there; an ArgumentError if they don't fit.

    An epoch's order follows from `seed` and epoch alone. After a loop that came to its end the next one is the next
    epoch; one that is left before begins anew. ``set_epoch(e)`` chooses the epoch; naming the current one changes
    nothing. To go on in the middle of an epoch keep :meth:`state_dict` and give it to :meth:`load_state_dict`. `len`
    is the number of batches of a whole epoch.

    A loop left early, by `break` or an exception, ends its thread; what goes wrong in the thread is raised in the loop.
    A loop can't go on in a process that was forked meanwhile: a WstoreError.
    """

    def __init__(
        self,
        windows: Windows,
        batch_size: int = 256,
        *,
        order: _batches.OrderName = "blocked",
        seed: int = 0,
        epoch: int = 0,
        fields: str | Iterable[str] | None = None,
        anchor: str | Iterable[str] = (),
        rank: int | None = None,
        world: int | None = None,
        tail: Tail = "keep",
        group_bytes: int | None = None,
        pad_to: int | None = None,
        fill: float | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        prefetch: int = 2,
        threads: int = 1,
        pin_memory: bool = False,
        device: torch.device | str | int | None = None,
        resident: bool = False,
    ) -> None:
        if not isinstance(windows, Windows):
            raise ArgumentError(f"windows must be what Store.windows returns, not {type(windows).__name__}")
        if (rank is None) != (world is None):
            raise ArgumentError(f"rank={rank} and world={world}: give both, or none to take torch.distributed's")
        wanted = None if fields is None else names(fields, "fields")
        plain = None if wanted is None else [f for f in wanted if f != "mask"]
        self._given = None if rank is None or world is None else (rank, world)
        self._epochs = _TensorBatches(
            windows,
            batch_size,
            order=order,
            seed=seed,
            epoch=epoch,
            start=0,
            rank=self._ranks()[0],
            world=self._ranks()[1],
            tail=tail,
            group_bytes=group_bytes,
            fields=plain,
            anchor=anchor,
            pad_to=pad_to,
            fill=fill,
            reuse=False,
            prefetch=prefetch,
            state=None,
        )
        self._epochs.prepare(windows, wanted, transform, target_transform, device, pin_memory, resident, threads)
        self.windows = windows
        """The windows that batches are of."""
        self.batch_size = self._epochs.share.batch
        self._epoch = self._epochs.epoch
        self._start = self._position = 0
        self._loop = 0
        self._tally = _Tally()

    @property
    def epoch(self) -> int:
        """The epoch that the next loop goes through, or that the current one does."""
        return self._epoch

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a batch's tensors, in order."""
        return self._epochs.names

    @property
    def resident_bytes(self) -> int:
        """The bytes that the copy of the columns takes on the device; 0 without."""
        source = self._epochs.source
        return source.nbytes if isinstance(source, Resident) else 0

    def _ranks(self) -> tuple[int, int]:
        if self._given is not None:
            return self._given
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1

    def __len__(self) -> int:
        return len(self._epochs._another(self._epoch, 0, *self._ranks()))

    def __iter__(self) -> Iterator[Batch]:
        self._loop += 1
        self._position = self._start
        self._tally = _Tally()
        return self._batches(self._epochs._another(self._epoch, self._start, *self._ranks()), self._loop)

    def _batches(self, epoch: _TensorBatches, loop: int) -> Iterator[Batch]:
        tally = epoch.tally = self._tally
        tally.start = time.perf_counter()
        process = os.getpid()
        with contextlib.closing(iter(epoch)) as made:  # type: ignore[type-var]
            while True:
                if os.getpid() != process:
                    raise WstoreError("this loop was started before the process forked: start one in the new process")
                asked = time.perf_counter()
                b: Any = next(made, None)
                if b is None:
                    break
                epoch.arrived(b)
                tally.end = time.perf_counter()
                tally.waited += tally.end - asked
                tally.batches += 1
                tally.windows += b.valid
                if self._loop == loop:
                    self._position = b.next
                yield b
                b = None  # or its memory would not be free for the next
        if self._loop == loop:
            self._epoch, self._start, self._position = epoch.epoch + 1, 0, 0

    def set_epoch(self, epoch: int) -> None:
        """Makes the next loop go through an epoch, from its beginning. Naming the current one changes nothing."""
        epoch = _batches._word("epoch", epoch)
        if epoch != self._epoch:
            self._epoch, self._start, self._position = epoch, 0, 0
            self._loop += 1  # a loop that still runs is not ours any longer

    def state_dict(self) -> dict[str, Any]:
        """What to keep with a model's state to go on after the last batch that was handed out: three plain values.

        It is the same on every rank; one rank's suffices. It is also a state of :meth:`wstore.Windows.batches`.
        """
        return {"order": self._epochs.fingerprint, "epoch": self._epoch, "position": self._position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where a state was taken: the next loop has the rest of its epoch, or is the next if none is left.

        An ArgumentError if file, query, split, order, seed or group size are others than they were. Batch size and
        number of ranks may be: no window is left out or comes twice, but for what a tail drops or pads.
        """
        epoch, start = self._epochs._resume(state, 0, 0)
        if not len(self._epochs._another(epoch, start, *self._ranks())):
            epoch, start = epoch + 1, 0
        self._epoch, self._start, self._position = epoch, start, start
        self._loop += 1

    def __reduce__(self) -> Any:
        raise TypeError("a loader is not for other processes: make one there, of the windows, which pickle as a path")

    def stats(self) -> LoaderStats:
        """What the last loop did, or the current one so far."""
        return self._tally.stats()

    def __repr__(self) -> str:
        share = self._epochs.share
        epoch = self._epochs._another(self._epoch, self._start, share.rank, share.world)
        return f"<wstore.torch.WindowLoader: {', '.join(self.fields)}; epoch {self._epoch}: {epoch!r}>"


class _TensorBatches(_batches.Batches):
    """An epoch's batches as tensors; `prepare` says how."""

    names: tuple[str, ...]

    def prepare(
        self,
        w: Windows,
        wanted: tuple[str, ...] | None,
        transform: Transform | None,
        target_transform: Transform | None,
        device: torch.device | str | int | None,
        pin_memory: bool,
        resident: bool,
        threads: int,
    ) -> None:
        self.threads = integer("threads", threads, 1, 1024)
        self.tally = _Tally()
        self.names = self._fields if wanted is None else wanted
        self.names += tuple(w.store.schema.columns[c].name for c in self._anchor)
        if self._pad_to is not None and "mask" not in self.names:
            self.names += ("mask",)
        if len(set(self.names)) < len(self.names):
            raise ArgumentError(f"the fields {', '.join(self.names)} are not all different")
        self.device = torch.device("cpu" if device is None else device)
        cuda = self.device.type == "cuda"
        if cuda and self.device.index is None:  # in other threads another one may be the current one
            self.device = torch.device("cuda", torch.cuda.current_device())
        self.stream: Any = torch.cuda.Stream(self.device) if cuda else None  # type: ignore[no-untyped-call]
        self.pinned = cuda or (pin_memory and torch.cuda.is_available())
        self.sides = [side for side in "xy" if any(f.startswith(side) for f in self._fields)]
        self.scale: dict[str, Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32]], object]] = {}
        self.change: dict[str, Callable[[Tensor], Tensor]] = {}
        for side, given in (("x", transform), ("y", target_transform)):
            if given is None or side not in self.sides:
                continue
            if isinstance(given, Standardizer):
                columns = w.inputs if side == "x" else w.targets
                if len(given.mean) != len(columns):
                    raise ArgumentError(
                        f"the standardizer of {side} is of {len(given.mean)} columns, and there are {len(columns)}: "
                        f"{', '.join(columns)}"
                    )
                self.scale[side] = given._prepared()
            elif callable(given):
                self.change[side] = given
            else:
                raise ArgumentError(f"a transform is a Standardizer or a function, not {given!r}")
        self.source: Source = Mapped(w)
        if resident:
            # What works cell by cell is done once, to the copy.
            self.source = Resident(w, self.device, self.sides, self.finish)
            self.scale = {}

    def finish(self, name: str, values: npt.NDArray[np.float32]) -> None:
        if name in self.scale:
            self.scale[name](values, values)

    def changed(self, name: str, values: Tensor) -> Tensor:
        """By the caller's function."""
        out = self.change[name](values)
        if not isinstance(out, Tensor):
            raise ArgumentError(
                f"the function that transforms {name} must return a tensor, also if it changes the one it gets; it "
                f"returned {'None' if out is None else f'a {type(out).__name__}'}"
            )
        return out

    def _maker(self) -> _TensorMaker:
        return _TensorMaker(self)

    def arrived(self, b: Any) -> None:
        """Makes the consumer's stream wait for what the other one does."""
        if self.stream is None:
            return
        current = torch.cuda.current_stream(self.device)
        current.wait_event(b.__dict__.pop("_done"))
        for t in b:
            if t.is_cuda:
                t.record_stream(current)


class _TensorMaker(_batches._Maker):
    """Makes batches of tensors."""

    of: _TensorBatches

    def __init__(self, of: _TensorBatches) -> None:
        super().__init__(of)
        self.allocate: dict[str, Allocate] = dict.fromkeys(of.sides, pinned if of.pinned else fresh)
        self.team = Team(of.threads, self.own_thread)
        self.count = 0

    def __enter__(self) -> Self:
        if isinstance(self.of.source, Mapped):  # else there is nothing to advise
            super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.team.close()

    def __call__(self, step: int) -> Any:
        of = self.of
        start = time.perf_counter()
        with contextlib.nullcontext() if of.stream is None else torch.cuda.stream(of.stream):
            made = super().__call__(step)
            if "mask" in of.names and "mask" not in made:
                n = self.count
                made["mask"] = torch.arange(n) < (made.valid if of._by_time is None else n * made.valid)
            rest = {"valid": made.valid, "next": made.next, "state": made.state}
            b = _batch(of.names, [self.placed(made[name]) for name in of.names], rest)
            if of.stream is not None:
                b.__dict__["_done"] = of.stream.record_event()
        of.tally.made += made.valid
        of.tally.making += time.perf_counter() - start
        return b

    def fields(self, step: int, ids: I64) -> dict[str, Any]:
        self.count = len(ids)
        return super().fields(step, ids)

    def gather(self, step: int, ids: I64, present: bool) -> tuple[Any, ...]:
        of, w = self.of, self.w
        got = of.source.gather(ids, self.allocate, of.finish if of.scale else None, self.team)
        masks: dict[str, Tensor] = {}
        for name, side in (("x", w._x), ("y", w._y)):
            if side is None or name not in got:
                continue
            if present:
                masks[name] = is_present(got[name])
            if name in of.change:
                got[name] = of.changed(name, got[name])
            if side.optional and of._fill is not None:
                fill_missing(got[name], of._fill)
        return got.get("x"), got.get("y"), masks.get("x"), masks.get("y")

    def clear(self, name: str, values: Any, absent: npt.NDArray[np.bool_]) -> None:
        if isinstance(values, Tensor):
            values[torch.from_numpy(absent).to(values.device)] = 0
        else:
            super().clear(name, values, absent)

    def placed(self, values: Any) -> Tensor:
        """A field where it is handed out."""
        of = self.of
        t: Tensor = values if isinstance(values, Tensor) else tensor(values)
        if of.pinned and t.device.type == "cpu" and not t.is_pinned():
            t = t.pin_memory()
        return t.to(of.device, non_blocking=of.pinned)
