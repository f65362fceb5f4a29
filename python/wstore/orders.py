"""Orders: which number comes at which position. Pure arithmetic on counts and keys; ORDERS.md is the specification.

An order is a function ``(n, seed, epoch, position) → number`` in which each number of [0, n) comes at exactly one
position of [0, n). It keeps no state and takes no memory, whatever n: any number of processes share one without
talking, and a run goes on where it stopped.

>>> order = Exact(1000, seed=42, epoch=1)
>>> order.numbers(0, 4)
array([533, 429, 631, 654])
>>> share = Share(1000, batch=64, rank=1, world=2, tail="drop")
>>> share.steps, share.span(0)
(7, (64, 128))
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from ._arguments import integer
from .errors import ArgumentError

__all__ = [
    "GROUP_BYTES",
    "Blocked",
    "Exact",
    "Order",
    "Sequential",
    "Share",
    "Tail",
    "chunk_size",
    "key",
    "order_fingerprint",
    "permute",
    "unpermute",
]

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Tail = Literal["keep", "drop", "pad"]

N_MAX = (1 << 62) - 1
GROUP_BYTES = 134217728
"""The bytes of rows that a group of `Blocked` brings into memory, unless the caller chooses."""

_MASK = (1 << 64) - 1
_G = 0x9E3779B97F4A7C15
_M1 = 0xBF58476D1CE4E5B9
_M2 = 0x94D049BB133111EB
_ROUNDS = 8
# Numbers that are computed at once: all that a round touches stays in the CPU's cache.
_PIECE = 1 << 13

_U1, _U2 = np.uint64(_M1), np.uint64(_M2)
_S27, _S30, _S31, _S32 = (np.uint64(s) for s in (27, 30, 31, 32))


# Keys


def _mix(z: int) -> int:
    z = (z ^ z >> 30) * _M1 & _MASK
    z = (z ^ z >> 27) * _M2 & _MASK
    return z ^ z >> 31


def _mix_many(z: U64) -> U64:
    z = (z ^ z >> _S30) * _U1
    z = (z ^ z >> _S27) * _U2
    return z ^ z >> _S31


def key(seed: int, epoch: int, stream: int) -> int:
    """The key of a permutation, 64 bits. Seed and epoch are any 64-bit integers, negative ones as two's complement."""
    seed, epoch, stream = operator.index(seed), operator.index(epoch), operator.index(stream)
    k = _mix(_mix((seed + _G) & _MASK) ^ epoch & _MASK)
    return _mix(k + _G * (stream + 1) & _MASK)


def _keys(seed: int, epoch: int, streams: U64) -> U64:
    k = np.uint64(_mix(_mix((seed + _G) & _MASK) ^ epoch & _MASK))
    return _mix_many(k + np.uint64(_G) * (streams + np.uint64(1)))


# Permutation


def _round_keys(keys: U64) -> U64:
    """The keys of all rounds, (8, *keys.shape)."""
    steps = np.array([_G * (r + 1) & _MASK for r in range(_ROUNDS)], np.uint64)
    return _mix_many(keys + steps.reshape(_ROUNDS, *([1] * keys.ndim)))


def permute(n: int, k: int, i: Any) -> I64:
    """The permutation of [0, n) with key k: the numbers at positions `i`, ints in an array of any shape."""
    return _permuted(operator.index(n), np.array([operator.index(k) & _MASK], np.uint64), None, i, False)


def unpermute(n: int, k: int, i: Any) -> I64:
    """The inverse of :func:`permute`: the positions at which numbers come."""
    return _permuted(operator.index(n), np.array([operator.index(k) & _MASK], np.uint64), None, i, True)


def _permuted(n: int, keys: U64, which: npt.NDArray[np.intp] | None, i: Any, backwards: bool) -> I64:
    """`which` says for each of `i` which of the keys is its own; None: there is one."""
    a = np.asarray(i, np.int64)
    out = a.astype(np.uint64)  # a copy, in which all is done
    if n > 1 and out.size:
        rounds, bits, limit = _round_keys(keys), (n - 1).bit_length(), np.uint64(n)
        step = _backwards if backwards else _forwards
        flat = out.reshape(-1)
        work = np.empty((4, min(_PIECE, flat.size)), np.uint64)

        def once(values: U64, which: npt.NDArray[np.intp] | None) -> None:
            for at in range(0, values.size, _PIECE):
                piece = values[at : at + _PIECE]
                k = rounds if which is None else rounds[:, which[at : at + _PIECE]]
                step(bits, k, piece, work[:, : piece.size])

        once(flat, which)
        far = np.flatnonzero(flat >= limit)  # those that have to go on walking
        while far.size:
            again = flat[far]
            once(again, None if which is None else which[far])
            flat[far] = again
            far = far[again >= limit]
    return out.view(np.int64).reshape(a.shape)


def _f(k: U64, x: U64, bits: int, z: U64, t: U64) -> U64:
    """The round function, into z; `bits` is at least 1."""
    np.add(x, k, out=z)
    np.multiply(z, _U1, out=z)
    np.right_shift(z, _S32, out=t)
    np.bitwise_xor(z, t, out=z)
    np.multiply(z, _U2, out=z)
    return np.right_shift(z, np.uint64(64 - bits), out=z)


def _forwards(bits: int, rounds: U64, i: U64, work: U64) -> None:
    bl = bits // 2
    br = bits - bl
    left, right, z, t = work
    np.right_shift(i, np.uint64(br), out=left)
    np.bitwise_and(i, np.uint64((1 << br) - 1), out=right)
    for r in range(0, _ROUNDS, 2):
        if bl:
            np.bitwise_xor(left, _f(rounds[r], right, bl, z, t), out=left)
        np.bitwise_xor(right, _f(rounds[r + 1], left, br, z, t), out=right)
    np.left_shift(left, np.uint64(br), out=i)
    np.bitwise_or(i, right, out=i)


def _backwards(bits: int, rounds: U64, i: U64, work: U64) -> None:
    bl = bits // 2
    br = bits - bl
    left, right, z, t = work
    np.right_shift(i, np.uint64(br), out=left)
    np.bitwise_and(i, np.uint64((1 << br) - 1), out=right)
    for r in range(_ROUNDS - 2, -1, -2):
        np.bitwise_xor(right, _f(rounds[r + 1], left, br, z, t), out=right)
        if bl:
            np.bitwise_xor(left, _f(rounds[r], right, bl, z, t), out=left)
    np.left_shift(left, np.uint64(br), out=i)
    np.bitwise_or(i, right, out=i)


# Orders


class Order:
    """Numbers of [0, n) by position. ``order[p]`` takes an int, a slice, or an int array of any shape."""

    __slots__ = ("n",)

    name: ClassVar[str]
    n: int
    """How many numbers there are; below 2^62."""

    def __init__(self, n: int) -> None:
        self.n = integer("n", n, 0, N_MAX)

    def numbers(self, start: int, stop: int) -> I64:
        """The numbers at positions [start, stop), int64. Costs time by their count, wherever they are."""
        start, stop = operator.index(start), operator.index(stop)
        if not 0 <= start <= stop <= self.n:
            raise ArgumentError(f"positions [{start}, {stop}) are not among [0, {self.n})")
        return self._at(np.arange(start, stop, dtype=np.int64))

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, positions: int) -> int: ...
    @overload
    def __getitem__(self, positions: slice | npt.NDArray[np.integer[Any]] | Sequence[int]) -> I64: ...
    def __getitem__(self, positions: Any) -> int | I64:
        if isinstance(positions, slice):
            r = range(self.n)[positions]
            return self._at(np.arange(r.start, r.stop, r.step, dtype=np.int64))
        a = np.asarray(positions)
        if a.dtype.kind not in "iu":
            if a.size:
                raise ArgumentError(f"positions are integers, not {a.dtype}")
            a = a.astype(np.int64)
        if a.size and not (a.min() >= 0 and a.max() < self.n):
            raise ArgumentError(f"positions must be in [0, {self.n}), not {a.min()} to {a.max()}")
        out = self._at(a.astype(np.int64))
        return out if a.ndim else int(out)

    def _at(self, p: I64) -> I64:
        raise NotImplementedError


class Sequential(Order):
    """The number at position p is p."""

    __slots__ = ()
    name = "sequential"

    def _at(self, p: I64) -> I64:
        return p

    def __repr__(self) -> str:
        return f"Sequential({self.n})"


class _Keyed(Order):
    __slots__ = ("epoch", "seed")

    def __init__(self, n: int, seed: int = 0, epoch: int = 0) -> None:
        super().__init__(n)
        self.seed = integer("seed", seed, -(1 << 63), _MASK)
        self.epoch = integer("epoch", epoch, -(1 << 63), _MASK)


class Exact(_Keyed):
    """A permutation of all n numbers. The best order to train in when the file fits in memory."""

    __slots__ = ()
    name = "exact"

    def _at(self, p: I64) -> I64:
        return permute(self.n, key(self.seed, self.epoch, 0), p)

    def __repr__(self) -> str:
        return f"Exact({self.n}, seed={self.seed}, epoch={self.epoch})"


class Blocked(_Keyed):
    """Permuted chunks of `chunk` neighbouring numbers, in groups of `chunks_per_group`, permuted within each group.

    For files larger than memory: while a group's positions go by, only its chunks are read.
    """

    __slots__ = (
        "_lacks",
        "_more",
        "_per",
        "_short_group",
        "_short_place",
        "chunk",
        "chunks",
        "chunks_per_group",
        "groups",
    )
    name = "blocked"

    def __init__(self, n: int, seed: int = 0, epoch: int = 0, *, chunk: int, chunks_per_group: int) -> None:
        super().__init__(n, seed, epoch)
        self.chunk = w = integer("chunk", chunk, 1, N_MAX)
        self.chunks_per_group = k = integer("chunks_per_group", chunks_per_group, 1, N_MAX)
        self.chunks = c = -(-self.n // w)
        self.groups = max(1, -(-c // k))
        self._per, self._more = divmod(c, self.groups)
        self._lacks = c * w - self.n  # what the last chunk lacks
        # Where the last chunk comes, and in which group
        self._short_place = int(unpermute(c, self._chunk_key, c - 1)) if c else 0
        self._short_group = int(self._group_of_place(np.asarray(self._short_place))) if c else 0

    @property
    def _chunk_key(self) -> int:
        return key(self.seed, self.epoch, 1)

    def _slot(self, g: Any) -> Any:
        """The first place of a group in the permuted order of chunks."""
        return g * self._per + np.minimum(g, self._more)

    def _group_of_place(self, s: I64) -> I64:
        """The group that holds a place; the first `_more` groups have one chunk more."""
        edge = self._more * (self._per + 1)
        return np.where(s < edge, s // (self._per + 1), self._more + (s - edge) // max(1, self._per))

    def first(self, g: Any) -> Any:
        """The position at which group `g` (an int or an array, up to `groups`) starts; that of `groups` is n."""
        return self._slot(g) * self.chunk - np.where(np.asarray(g) > self._short_group, self._lacks, 0)

    def group_of(self, positions: Any) -> I64:
        """The group that each position is in."""
        p = np.asarray(positions, np.int64)
        shifted = p + np.where(p < self.first(self._short_group + 1), 0, self._lacks)
        return self._group_of_place(shifted // self.chunk)

    def span(self, g: int) -> tuple[int, int]:
        """The positions [from, to) of a group."""
        return int(self.first(g)), int(self.first(g + 1))

    def chunks_of(self, g: int) -> I64:
        """The chunks that a group's numbers are from, in permuted order; chunk c is ``chunk_range(c)``."""
        places = np.arange(int(self._slot(g)), int(self._slot(g + 1)), dtype=np.int64)
        return permute(self.chunks, self._chunk_key, places)

    def chunk_range(self, c: int) -> tuple[int, int]:
        """The numbers [from, to) of a chunk."""
        return c * self.chunk, min(self.n, (c + 1) * self.chunk)

    def _at(self, p: I64) -> I64:
        flat = p.reshape(-1)
        out = np.empty_like(flat)
        for at in range(0, flat.size, 1 << 16):
            out[at : at + (1 << 16)] = self._piece(flat[at : at + (1 << 16)])
        return out.reshape(p.shape)

    def _piece(self, p: I64) -> I64:
        g = self.group_of(p)
        if (g[1:] == g[:-1]).all():
            groups, which = g[:1], None
        else:
            groups, which = np.unique(g, return_inverse=True)
        start = self.first(groups)
        size = self.first(groups + 1) - start
        keys = _keys(self.seed, self.epoch, groups.astype(np.uint64) + np.uint64(2))
        if which is None:
            j = _permuted(int(size[0]), keys, None, p - start[0], False)
        else:
            # Groups have at most three sizes: with and without one chunk more, and that of the last chunk.
            j = np.empty_like(p)
            each = size[which]
            for n in np.unique(size):
                some = np.flatnonzero(each == n)
                own = which[some]
                j[some] = _permuted(int(n), keys, own, p[some] - start[own], False)
        w = self.chunk
        if self._lacks:
            edge = (self._short_place - self._slot(self._short_group)) * w + w - self._lacks
            j += np.where((g == self._short_group) & (j >= edge), self._lacks, 0)
        place, offset = np.divmod(j, w)
        return permute(self.chunks, self._chunk_key, self._slot(g) + place) * w + offset

    def __repr__(self) -> str:
        return (
            f"Blocked({self.n}, seed={self.seed}, epoch={self.epoch}, "
            f"chunk={self.chunk}, chunks_per_group={self.chunks_per_group})"
        )


def chunk_size(lookback: int, stride: int, row_bytes: int, group_bytes: int | None = None) -> tuple[int, int]:
    """`chunk` and `chunks_per_group` of a query's blocked order.

    A chunk brings at least 64 KiB of new rows, and as many rows as the lookback. `row_bytes` is the sum of the row
    bytes of the groups that the inputs and targets touch.
    """
    group_bytes = integer("group_bytes", GROUP_BYTES if group_bytes is None else group_bytes, 1, N_MAX)
    lookback = integer("lookback", lookback, 1, N_MAX)
    stride = integer("stride", stride, 1, N_MAX)
    row_bytes = integer("row_bytes", row_bytes, 1, N_MAX)
    w = -(-max(-(-65536 // row_bytes), lookback) // stride)
    return w, max(1, group_bytes // (w * stride * row_bytes))


@dataclass(frozen=True, slots=True)
class Share:
    """What one of `world` ranks gets of n positions, in batches, from `start` on.

    Step s gives rank r ``batch`` positions from ``start + (s × world + r) × batch`` on. By `tail`, positions end at n
    ("keep": the last batch is short; not with several ranks, as one of them would wait for ever), or are rounded down
    to whole steps ("drop"), or up ("pad": positions from n on stand for n − 1, and aren't valid). An epoch that
    stopped goes on with `start` = `next` of its last step, also with another batch and another world. A `start` of n
    has no steps.
    """

    n: int
    batch: int
    start: int = 0
    rank: int = 0
    world: int = 1
    tail: Tail = "keep"

    def __post_init__(self) -> None:
        def keep(what: str, least: int, most: int, text: str = "") -> None:
            # An int of Python's, with which sums don't overflow, whatever integer was given.
            object.__setattr__(self, what, integer(what + text, getattr(self, what), least, most))

        keep("n", 0, N_MAX)
        keep("batch", 1, N_MAX)
        keep("start", 0, self.n)
        keep("world", 1, N_MAX)
        keep("rank", 0, self.world - 1, f" (of a world of {self.world})")
        if self.tail not in get_args(Tail):
            raise ArgumentError(f"tail must be 'keep', 'drop' or 'pad', not {self.tail!r}")
        if self.tail == "keep" and self.world > 1:
            raise ArgumentError(
                "tail='keep' gives ranks unequal numbers of batches, which hangs collective training: "
                "use tail='drop' or 'pad'"
            )

    @property
    def steps(self) -> int:
        """The number of batches; the same for each rank."""
        left, whole = self.n - self.start, self.batch * self.world
        return left // whole if self.tail == "drop" else -(-left // whole)

    def __len__(self) -> int:
        return self.steps

    def span(self, step: int) -> tuple[int, int]:
        """The positions [from, to) of a step's batch; of a short one of tail "keep" those below n."""
        step = operator.index(step)
        if not 0 <= step < self.steps:
            raise ArgumentError(f"step {step} is not among [0, {self.steps})")
        first = self.start + (step * self.world + self.rank) * self.batch
        return first, min(first + self.batch, self.n) if self.tail == "keep" else first + self.batch

    def positions(self, step: int) -> I64:
        """The positions of a step's batch, int64; those behind the end are n − 1."""
        return np.minimum(np.arange(*self.span(step), dtype=np.int64), self.n - 1)

    def valid(self, step: int) -> int:
        """How many positions of a step's batch are valid: the first so many."""
        first, end = self.span(step)
        return max(0, min(end, self.n) - first)

    def next(self, step: int) -> int:
        """The position, the same for each rank, at which to go on after a step."""
        return min(self.n, self.start + (operator.index(step) + 1) * self.world * self.batch)


def order_fingerprint(windows: bytes, name: str, n: int, seed: int, chunk: int = 0, chunks_per_group: int = 0) -> bytes:
    """What to keep with the state of a run: 32 bytes that name windows and order, but neither epoch nor position.

    `windows` is the windows' fingerprint, `name` one of sequential, exact, blocked, by_time-sequential, by_time-exact.
    """
    n, seed = integer("n", n, 0, N_MAX), integer("seed", seed, -(1 << 63), _MASK)
    chunk = integer("chunk", chunk, 0, N_MAX)
    chunks_per_group = integer("chunks_per_group", chunks_per_group, 0, N_MAX)
    h = hashlib.sha256(b"wstore-order-1\n" + windows)
    raw = name.encode()
    h.update(len(raw).to_bytes(8, "little") + raw)
    for value in (n, seed & _MASK, chunk, chunks_per_group):
        h.update(value.to_bytes(8, "little"))
    return h.digest()
