"""Orders against published vectors, against the text taken word by word, and as what they must be: bijections."""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wstore.errors import ArgumentError
from wstore.orders import (
    Blocked,
    Exact,
    Order,
    Sequential,
    Share,
    chunk_size,
    key,
    order_fingerprint,
    permute,
    unpermute,
)

VECTORS = Path(__file__).resolve().parents[2] / "spec" / "orders.json"
M = 1 << 64
ints64 = st.integers(-(1 << 63), (1 << 63) - 1)


# The text, word by word


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % M
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % M
    return z ^ (z >> 31)


def plain_key(seed: int, epoch: int, stream: int) -> int:
    g = 0x9E3779B97F4A7C15
    return mix((mix(mix((seed + g) % M) ^ (epoch % M)) + g * (stream + 1)) % M)


def plain_permute(n: int, k: int, i: int) -> int:
    if n <= 1:
        return i
    b = (n - 1).bit_length()
    bl = b // 2
    br = b - bl
    keys = [mix((k + 0x9E3779B97F4A7C15 * (r + 1)) % M) for r in range(8)]

    def f(r: int, x: int, bits: int) -> int:
        if bits == 0:
            return 0
        z = (x + keys[r]) * 0xBF58476D1CE4E5B9 % M
        z = (z ^ (z >> 32)) * 0x94D049BB133111EB % M
        return z >> (64 - bits)

    while True:
        left, right = i >> br, i & (2**br - 1)
        for r in (0, 2, 4, 6):
            left ^= f(r, right, bl)
            right ^= f(r + 1, left, br)
        i = left << br | right
        if i < n:
            return i


def plain_blocked(n: int, seed: int, epoch: int, w: int, k: int) -> list[int]:
    """By laying the chunks out, without the arithmetic of section 4."""
    c = -(-n // w)
    groups = max(1, -(-c // k))
    q, m = divmod(c, groups)
    chunks = [plain_permute(c, plain_key(seed, epoch, 1), s) for s in range(c)]
    out = []
    for g in range(groups):
        mine = chunks[g * q + min(g, m) : (g + 1) * q + min(g + 1, m)]
        numbers = [x for chunk in mine for x in range(chunk * w, min(n, (chunk + 1) * w))]
        kg = plain_key(seed, epoch, 2 + g)
        out += [numbers[plain_permute(len(numbers), kg, j)] for j in range(len(numbers))]
    return out


def build(name: str, n: int, seed: int, epoch: int, w: int, k: int) -> Order:
    if name == "sequential":
        return Sequential(n)
    if name == "exact":
        return Exact(n, seed, epoch)
    return Blocked(n, seed, epoch, chunk=w, chunks_per_group=k)


def test_published_vectors() -> None:
    vectors = json.loads(VECTORS.read_text())
    assert vectors["schema"] == 1
    seen = set()
    for v in vectors["vectors"]:
        order = build(v["order"], *(int(v[k]) for k in ("n", "seed", "epoch", "w", "k")))
        want = [int(x) for x in v["numbers"]]
        first = int(v["from"])
        got = order.numbers(first, first + len(want))
        assert got.dtype == np.int64
        assert got.tolist() == want, v
        assert [order[first + i] for i in range(len(want))] == want
        seen.add(v["order"])
    assert seen >= {"exact", "blocked"}


@settings(max_examples=200)
@given(st.integers(0, 90), ints64, ints64, st.integers(1, 20), st.integers(1, 8))
def test_orders_are_what_the_text_says(n: int, seed: int, epoch: int, w: int, k: int) -> None:
    assert key(seed, epoch, 3) == plain_key(seed, epoch, 3)
    exact = Exact(n, seed, epoch)
    assert exact[:].tolist() == [plain_permute(n, plain_key(seed, epoch, 0), i) for i in range(n)]
    blocked = Blocked(n, seed, epoch, chunk=w, chunks_per_group=k)
    assert blocked[:].tolist() == plain_blocked(n, seed, epoch, w, k)
    assert Sequential(n)[:].tolist() == list(range(n))


def test_every_n_up_to_5000_is_a_bijection() -> None:
    rng = np.random.default_rng(0)
    for n in range(5001):
        seed, epoch = int(rng.integers(-(1 << 63), 1 << 63)), n % 7
        exact = Exact(n, seed, epoch).numbers(0, n)
        assert np.bincount(exact, minlength=n).max(initial=1) == 1, n
        assert exact.size == n
        blocked = Blocked(
            n, seed, epoch, chunk=int(rng.integers(1, 300)), chunks_per_group=int(rng.integers(1, 20))
        ).numbers(0, n)
        assert np.bincount(blocked, minlength=n).max(initial=1) == 1, n
        if n % 50 == 0:
            back = unpermute(n, key(seed, epoch, 0), exact)
            assert np.array_equal(back, np.arange(n)), n


@given(st.integers(1, (1 << 62) - 1), st.integers(0, M - 1), st.data())
def test_unpermute_inverts(n: int, k: int, data: st.DataObject) -> None:
    p = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20)))
    there = permute(n, k, p)
    assert ((there >= 0) & (there < n)).all()
    assert np.array_equal(unpermute(n, k, there), p)


@given(st.integers(1, 1 << 40), ints64, st.integers(1, 1 << 20), st.integers(1, 1 << 12), st.data())
def test_groups_tile_the_positions_and_hold_their_chunks(
    n: int, seed: int, w: int, k: int, data: st.DataObject
) -> None:
    order = Blocked(n, seed, 5, chunk=w, chunks_per_group=k)
    g = data.draw(st.integers(0, order.groups - 1))
    start, end = order.span(g)
    assert (start == 0) == (g == 0)
    assert (end == n) == (g == order.groups - 1)
    assert end == int(order.first(g + 1))
    chunks = order.chunks_of(g)
    assert len(set(chunks.tolist())) == len(chunks) <= k
    assert sum(b - a for a, b in map(order.chunk_range, chunks.tolist())) == end - start
    some = np.array(data.draw(st.lists(st.integers(start, end - 1), min_size=1, max_size=30)))
    assert (order.group_of(some) == g).all()
    assert np.isin(order[some] // w, chunks).all()
    assert order.group_of([start, end - 1]).tolist() == [g, g]


def test_billions_take_no_memory_and_come_from_anywhere() -> None:
    n = 4_900_000_000
    for order in (Exact(n, 1, 2), Blocked(n, 1, 2, chunk=2731, chunks_per_group=512)):
        tracemalloc.start()
        numbers = order.numbers(n - 20_000, n)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 << 20
        assert len(np.unique(numbers)) == 20_000
        assert ((numbers >= 0) & (numbers < n)).all()
        some = np.random.default_rng(0).integers(n - 20_000, n, (7, 11))
        assert np.array_equal(order[some], numbers[some - (n - 20_000)])
        assert len(pickle.dumps(order)) < 400
        assert np.array_equal(pickle.loads(pickle.dumps(order))[some], order[some])


def test_seeds_epochs_and_their_neighbours_differ() -> None:
    orders = [tuple(Exact(1000, s, e)[:].tolist()) for s in (-1, 0, 1, 1 << 63) for e in (-1, 0, 1)]
    assert len(set(orders)) == len(orders)
    assert Exact(1000, -1, 0)[:].tolist() == Exact(1000, M - 1, 0)[:].tolist()


def test_positions_come_as_ints_slices_and_arrays() -> None:
    order = Exact(100, 3, 4)
    every = order.numbers(0, 100)
    assert isinstance(order[5], int)
    assert order[5] == every[5]
    assert np.array_equal(order[10:50:3], every[10:50:3])
    assert np.array_equal(order[::-1], every[::-1])
    assert np.array_equal(order[np.array([[1, 2], [3, 99]], np.uint8)], every[[[1, 2], [3, 99]]])
    assert order[[]].tolist() == []
    assert len(order) == 100
    assert repr(order) == "Exact(100, seed=3, epoch=4)"
    for bad in (-1, 100, [0, 100]):
        with pytest.raises(ArgumentError, match=r"\[0, 100\)"):
            order[bad]
    with pytest.raises(ArgumentError, match="integers"):
        order[[0.5]]  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="not among"):
        order.numbers(0, 101)


def test_arguments_are_checked() -> None:
    for n in (-1, 1 << 62, 1.5, True):
        with pytest.raises(ArgumentError, match="n must be"):
            Exact(n)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="seed"):
        Exact(1, 1 << 64)
    with pytest.raises(ArgumentError, match="chunk must be"):
        Blocked(1, chunk=0, chunks_per_group=1)
    with pytest.raises(ArgumentError, match="chunks_per_group"):
        Blocked(1, chunk=1, chunks_per_group=0)
    with pytest.raises(ArgumentError, match="hangs collective training"):
        Share(10, 2, world=2)
    with pytest.raises(ArgumentError, match="rank"):
        Share(10, 2, rank=2, world=2, tail="drop")
    with pytest.raises(ArgumentError, match="'keep', 'drop' or 'pad'"):
        Share(10, 2, tail="trim")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="batch"):
        Share(10, 0)
    with pytest.raises(ArgumentError, match="step 5"):
        Share(10, 2).positions(5)


def test_chunks_bring_64_kib_and_the_lookback() -> None:
    assert chunk_size(60, 1, 24) == (2731, 134217728 // (2731 * 24))
    assert chunk_size(5000, 1, 24) == (5000, 134217728 // (5000 * 24))
    assert chunk_size(60, 7, 24) == (391, 134217728 // (391 * 7 * 24))
    assert chunk_size(1, 1, 65537) == (1, 134217728 // 65537)
    assert chunk_size(60, 1, 24, group_bytes=1) == (2731, 1)
    with pytest.raises(ArgumentError, match="group_bytes"):
        chunk_size(60, 1, 24, group_bytes=0)


@given(st.integers(0, 120), st.integers(1, 9), st.integers(1, 4), st.sampled_from(["drop", "pad", "keep"]), st.data())
def test_ranks_share_every_position_and_resume_in_another_world(
    n: int, batch: int, world: int, tail: str, data: st.DataObject
) -> None:
    if tail == "keep":
        world = 1
    start, done = 0, []
    for last in (False, True):
        shares = [Share(n, batch, start, r, world, tail) for r in range(world)]  # type: ignore[arg-type]
        steps = shares[0].steps
        assert {s.steps for s in shares} == {steps}
        stop = steps if last else data.draw(st.integers(0, steps))
        for step in range(stop):
            for s in shares:
                p, valid = s.positions(step), s.valid(step)
                assert len(p) == batch or tail == "keep"
                assert (p[valid:] == n - 1).all()
                assert p[0] == min(n - 1, start + (step * world + s.rank) * batch)
                done += p[:valid].tolist()
            assert {s.next(step) for s in shares} == {min(n, start + (step + 1) * world * batch)}
        whole = batch * world
        left = max(0, n - start)
        assert steps == {"drop": left // whole, "pad": -(-left // whole), "keep": -(-left // batch)}[tail]
        if not last:
            start = shares[0].next(stop - 1) if stop else 0
            batch = data.draw(st.integers(1, 9))
            world = 1 if tail == "keep" else data.draw(st.integers(1, 4))
    assert done == list(range(len(done)))
    lost = n - len(done)
    assert lost == 0 if tail != "drop" else 0 <= lost < batch * world or lost == n - start


def test_a_fingerprint_names_windows_and_order() -> None:
    windows = bytes(range(32))
    got = order_fingerprint(windows, "blocked", 10, -1, 3, 4)
    text = b"wstore-order-1\n" + windows + struct.pack("<Q", 7) + b"blocked" + struct.pack("<QQQQ", 10, M - 1, 3, 4)
    assert got == hashlib.sha256(text).digest()
    others = {
        order_fingerprint(bytes(32), "blocked", 10, -1, 3, 4),
        order_fingerprint(windows, "exact", 10, -1, 3, 4),
        order_fingerprint(windows, "blocked", 11, -1, 3, 4),
        order_fingerprint(windows, "blocked", 10, 1, 3, 4),
        order_fingerprint(windows, "blocked", 10, -1, 4, 4),
        order_fingerprint(windows, "blocked", 10, -1, 3, 5),
    }
    assert len(others) == 6
    assert got not in others


def test_integers_of_numpy_are_as_good_as_any() -> None:
    share = Share(np.int32(100_000), np.int16(30_000), np.uint8(5), np.int8(1), np.int8(2), "pad")  # type: ignore[arg-type]
    assert share == Share(100_000, 30_000, 5, 1, 2, "pad")
    for field in ("n", "batch", "start", "rank", "world"):
        assert type(getattr(share, field)) is int
    assert share.span(np.int8(1)) == (90_005, 120_005)  # type: ignore[arg-type]
    assert type(share.next(np.int8(0))) is int  # type: ignore[arg-type]
    windows = bytes(32)
    for seed in (np.int64(-1), np.int32(7), np.uint64(M - 1)):
        given: Any = seed
        of_numpy = order_fingerprint(windows, "blocked", np.int16(10), given, np.int8(3), np.int8(4))  # type: ignore[arg-type]
        assert of_numpy == order_fingerprint(windows, "blocked", 10, int(seed), 3, 4)
        assert key(given, given, 1) == key(int(seed), int(seed), 1)
    number: Any = np.int16(60)
    assert chunk_size(number, np.int8(7), np.int16(24)) == chunk_size(60, 7, 24)  # type: ignore[arg-type]
    assert permute(number, np.int64(-5), range(60)).tolist() == permute(60, -5, range(60)).tolist()  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="seed"):
        order_fingerprint(windows, "exact", 10, 0.5)  # type: ignore[arg-type]
