"""Batches: every window once, the fields right, ranks, resuming, cross-sections, and files that change meanwhile."""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import mmap
import os
import pickle
import signal
import struct
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from encode import Col, Group, Panel, Ticker, encode
from hypothesis import given, settings
from oracle import expand, windows
from panels import any_panel, any_question, small
from test_windows import SEEDS, ask

import wstore
from wstore import _batches, orders

ORDERS = ["blocked", "exact", "sequential", "by_time", "by_time-sequential"]


def panel(tickers: int = 7, rows: int = 400) -> Panel:
    """Tickers that begin at different times; values tell ticker and row."""
    p = Panel([Group("features", [Col("a"), Col("b")]), Group("weights", [Col("weight")])], align_log2=12)
    for i in range(tickers):
        n = rows - 10 * i
        p.tickers[f"T{i}"] = Ticker(
            list(range(10 * i, rows)),
            {
                "a": [float(1000 * i + r) for r in range(n)],
                "b": [-float(1000 * i + r) for r in range(n)],
                "weight": [float(r % 10) for r in range(n)],
            },
        )
    return p


@pytest.fixture
def path(tmp_path: Path) -> Path:
    out = tmp_path / "panel.wst"
    out.write_bytes(encode(panel()))
    return out


@pytest.mark.parametrize("order", ["blocked", "exact", "sequential"])
def test_an_epoch_has_every_window_once_in_the_published_order(path: Path, order: Any) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    epoch = w.batches(64, order=order, seed=3, epoch=2, fields=("x", "y", "id", "ticker", "time"), anchor="weight")
    assert len(epoch) == -(-len(w) // 64)
    ids = []
    position = 0
    for b in epoch:
        assert b.valid == len(b.id) == min(64, len(w) - position)
        position = min(len(w), position + 64)
        assert b.next == position
        x, y = w.gather(b.id)
        assert np.array_equal(b.x, x)
        assert np.array_equal(b["y"], y)
        code, time, row = w.locate(b.id)
        assert np.array_equal(b.ticker, code)
        assert np.array_equal(b.time, time)
        assert b.weight.dtype == np.float32
        assert np.array_equal(b.weight, row % 10)
        assert list(b) == ["x", "y", "id", "ticker", "time", "weight"]
        ids.append(b.id)
    got = np.concatenate(ids)
    n = len(w)
    chunk, per_group = orders.chunk_size(20, 1, 8)
    assert chunk == 8192
    want = {
        "sequential": orders.Sequential(n),
        "exact": orders.Exact(n, 3, 2),
        "blocked": orders.Blocked(n, 3, 2, chunk=chunk, chunks_per_group=per_group),
    }[order]
    assert np.array_equal(got, want[:])
    assert np.array_equal(np.concatenate([b.id for b in epoch]), got)  # each loop starts anew
    assert "of 64" in repr(epoch)


@settings(max_examples=200)
@given(SEEDS)
def test_any_windows_in_any_order(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p))
    q = any_question(r, p)
    w = ask(store, q)
    if len(w) and r.random() < 0.3:
        w = w.select(r.choices(range(len(w)), k=r.randint(1, 20)))
    order, seed = r.choice(ORDERS), r.randint(-9, 9)
    world = r.randint(1, 3)
    tail: Any = r.choice(["drop", "pad"]) if world > 1 else r.choice(["keep", "drop", "pad"])
    by_time = order.startswith("by_time")
    pad_to = len(p.tickers) + 20 if by_time and r.random() < 0.7 else None
    size = 1 if by_time and pad_to is None else r.randint(1, 9)
    options: dict[str, Any] = {"order": order, "seed": seed, "epoch": 1, "world": world, "tail": tail, "pad_to": pad_to}
    options |= {"group_bytes": r.randint(1, 10**6)} if order == "blocked" and r.random() < 0.5 else {}
    options |= {"prefetch": r.randint(0, 3), "fill": r.choice([None, -1.0]), "fields": ["x", "id", "time", "ticker"]}
    seen: list[int] = []
    each = [list(w.batches(size, rank=rank, **options)) for rank in range(world)]
    assert len({len(e) for e in each}) == 1
    position = 0
    for step in range(len(each[0])):
        for e in each:
            b = e[step]
            position += b.valid
            flat = b.id.reshape(-1)
            some = flat >= 0
            if pad_to is not None:
                assert b.id.shape == (size if tail != "keep" else b.valid, pad_to)
                assert np.array_equal(b.mask[: b.valid], b.id[: b.valid] >= 0)
                assert not b.mask[b.valid :].any()
                assert (b.x[b.id < 0] == 0).all()
                assert (b.ticker[b.id < 0] == -1).all()
                some &= b.mask.reshape(-1)
            elif by_time:
                some &= b.valid > 0
            else:
                some &= np.arange(len(flat)) < b.valid
            ids = flat[some]
            x = w.gather(ids, fill=options["fill"])[0]
            assert np.array_equal(b.x.reshape(-1, *b.x.shape[-2:])[some], x, equal_nan=True)
            code, time, _ = w.locate(ids)
            assert np.array_equal(b.ticker.reshape(-1)[some], code)
            assert np.array_equal(b.time.reshape(-1)[some], time)
            if by_time:
                for row in b.id if pad_to is not None else [b.id]:
                    there, times, _ = w.locate(row[row >= 0])
                    assert len(set(times.tolist())) == 1
                    assert (np.diff(there) >= 0).all()
            seen += ids.tolist()
            assert b.next == min(len(w.by_time()) if by_time else len(w), (step + 1) * size * world)
    n = len(w.times) if by_time else len(w)
    assert position == (n // (size * world) * size * world if tail == "drop" else n)
    if tail != "drop":
        assert sorted(seen) == list(range(len(w)))
    else:
        assert len(set(seen)) == len(seen)


def test_a_run_goes_on_where_it_stopped_with_another_batch_and_world(path: Path) -> None:
    w = wstore.open(path).windows(20)
    whole = np.concatenate([b.id for b in w.batches(10, seed=1, epoch=4, fields="id")])
    first = []
    for b in w.batches(10, seed=1, epoch=4, fields="id"):
        first.append(b.id)
        state = pickle.loads(pickle.dumps(b.state))
        if len(first) == 7:
            break
    rest = [list(w.batches(16, seed=1, fields="id", state=state, rank=r, world=2, tail="pad")) for r in range(2)]
    second = [b.id[: b.valid] for pair in zip(*rest, strict=True) for b in pair]
    assert np.array_equal(np.concatenate(first + second), whole)
    again = w.batches(10, seed=1, epoch=4, start=70, fields="id")
    assert np.array_equal(np.concatenate([b.id for b in again]), whole[70:])
    assert rest[0][-1].next == len(w)
    assert len(w.batches(16, seed=1, state=rest[0][-1].state)) == 0


def test_a_state_of_something_else_is_refused(path: Path) -> None:
    store = wstore.open(path)
    w = store.windows(20)
    state = next(iter(w.batches(10, seed=1))).state
    assert state["order"] == w.order_fingerprint("blocked", seed=1)
    others: list[tuple[wstore.Windows, dict[str, Any]]] = [
        (w, {"seed": 2}),
        (w, {"seed": 1, "order": "exact"}),
        (w, {"seed": 1, "group_bytes": 1}),
        (store.windows(21), {"seed": 1}),
        (store.windows(20, inputs="a"), {"seed": 1}),
        (w[:-1], {"seed": 1}),
        (w.between(50, None), {"seed": 1}),
    ]
    for other, options in others:
        with pytest.raises(wstore.ArgumentError, match="other windows or another order"):
            other.batches(10, state=state, **options)
    with pytest.raises(wstore.ArgumentError, match="leave those out"):
        w.batches(10, seed=1, epoch=1, state=state)
    with pytest.raises(wstore.ArgumentError, match="`state` of a batch"):
        w.batches(10, seed=1, state={"epoch": 1})


@settings(max_examples=200)
@given(SEEDS)
def test_fingerprints_are_those_of_the_text(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p))
    q = any_question(r, p)
    w = ask(store, q)
    numbers = {c.name: i for i, c in enumerate(p.columns())}
    inputs, targets = ([numbers[c] for c in expand(p, names)] for names in (q.inputs, q.targets))
    text = b"wstore-windows-1\n" + bytes.fromhex(store.digest)
    text += struct.pack("<QQQ", q.lookback, q.target_length if targets else 0, len(q.horizons))
    text += struct.pack(f"<{len(q.horizons)}q", *q.horizons)
    for columns in (inputs, targets):
        text += struct.pack(f"<{len(columns) + 1}Q", len(columns), *columns)
    listed = windows(p, q)
    for code, name in enumerate(p.names()):
        rows = [a for t, a in listed if t == name]
        if rows:
            text += struct.pack("<5Q", code, len(rows), rows[0], rows[-1], sum(rows))
    want = hashlib.sha256(text)
    assert w.fingerprint == want.hexdigest()
    ids = r.choices(range(len(w)), k=5) if len(w) else []
    selected = b"wstore-selection-1\n" + want.digest() + struct.pack(f"<{len(ids) + 1}Q", len(ids), *ids)
    assert w.select(ids).fingerprint == hashlib.sha256(selected).hexdigest()


def test_sums_in_a_fingerprint_wrap_around() -> None:
    n = 50_000
    t = Ticker(list(range(n)), {"a": [1.0] * n})
    store = wstore.open_bytes(encode(Panel([Group("features", [Col("a")])], {"T": t})))
    at = range(100, n, 7)
    cases: list[tuple[dict[str, Any], range]] = [({}, range(9, n)), ({"stride": 3}, range(9, n, 3)), ({"at": at}, at)]
    for options, anchors in cases:
        text = b"wstore-windows-1\n" + bytes.fromhex(store.digest) + struct.pack("<QQQQQQ", 10, 0, 0, 1, 0, 0)
        text += struct.pack("<5Q", 0, len(anchors), anchors[0], anchors[-1], sum(anchors) % 2**64)
        assert store.windows(10, targets=(), **options).fingerprint == hashlib.sha256(text).hexdigest()


def test_cross_sections(path: Path) -> None:
    store = wstore.open(path)
    w = store.windows(20)
    sections = w.by_time()
    assert len(sections) == len(w.times) == 381
    assert np.array_equal(sections.times, w.times)
    assert sections[0].tolist() == [0]
    assert [int(w.locate(i)[0]) for i in sections[-1]] == list(range(7))
    assert np.array_equal(np.sort(np.concatenate([*sections])), np.arange(len(w)))
    b = next(iter(w.batches(4, order="by_time-sequential", pad_to=9, anchor="weight", fields=("x", "time"))))
    assert b.x.shape == (4, 9, 20, 2)
    assert b.mask.sum(1).tolist() == [1, 1, 1, 1]
    assert np.isnat(b.time).sum() == 32
    assert b.weight.shape == (4, 9)
    with pytest.raises(wstore.ArgumentError, match=r"pad_to=3 is too few: .* has \d windows"):
        list(w.batches(4, order="by_time", pad_to=3))
    with pytest.raises(wstore.ArgumentError, match="give pad_to="):
        w.batches(4, order="by_time")
    ragged = [len(b.x) for b in w.batches(1, order="by_time-sequential")]
    assert (min(ragged), max(ragged)) == (1, 7)


def test_fields_are_checked(path: Path) -> None:
    store = wstore.open(path)
    w = store.windows(20)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"fields": "z"}, "no field 'z'"),
        ({"fields": ["y"]}, "no|none"),
        ({"order": "random"}, "one of 'blocked'"),
        ({"order": "exact", "group_bytes": 5}, "group_bytes"),
        ({"pad_to": 5}, "by_time"),
        ({"anchor": "nothing"}, "nothing"),
        ({"prefetch": -1}, "prefetch"),
        ({"world": 2}, "hangs"),
        ({"order": None}, "no order None: it must be one of"),
        ({"order": ["exact"]}, "no order"),
        ({"seed": 0.5}, "seed must be an integer"),
        ({"epoch": "1"}, "epoch must be an integer"),
    ]
    for options, match in cases:
        with pytest.raises(wstore.WstoreError, match=match):
            w.batches(5, **options)
    bad: Any
    for bad in (0, 2.5, None, True):
        with pytest.raises(wstore.ArgumentError, match="batch_size must be"):
            w.batches(bad)
    bad = None
    with pytest.raises(wstore.ArgumentError, match="no order None"):
        w.order_fingerprint(bad)
    b = next(iter(w.batches(5, fields="id")))
    with pytest.raises(AttributeError, match="no field 'x'"):
        _ = b.x
    assert pickle.loads(pickle.dumps(b)).next == 5
    assert "id (5,)" in repr(b)
    ends = wstore.open_bytes(encode(small())).windows(1, inputs="b", targets=(), breaks=())
    b = next(iter(ends.batches(4, order="sequential", anchor=["end", "m"], fields=())))
    assert b.end.astype(np.int64)[[0, 2, 3]].tolist() == [3, 5, 6]
    assert np.isnat(b.end[1])
    assert np.isnan(b.m[3])
    p = Panel([Group("features", [Col("x")])], {"T": Ticker([1], {"x": [1.0]})})
    named = wstore.open_bytes(encode(p)).windows(1)
    with pytest.raises(wstore.ArgumentError, match="name of a field"):
        named.batches(1, anchor="x")


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_reused_arrays_hold_until_the_next_batch_is_asked_for(path: Path, prefetch: int) -> None:
    w = wstore.open(path).windows(20, targets="b")
    seen = set()
    for b in w.batches(32, prefetch=prefetch, reuse=True, fields=("x", "y", "id")):
        x, y = w.gather(b.id)
        assert np.array_equal(b.x, x)
        assert np.array_equal(b.y, y)
        seen.add(b.x.ctypes.data)
    assert len(seen) == prefetch + 1


def test_loops_that_are_left_stop_their_threads(path: Path) -> None:
    w = wstore.open(path).windows(20)
    before = threading.active_count()
    for _ in range(3):
        it = iter(w.batches(8, prefetch=2))
        next(it)
        it.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert not [n for n in _batches._shuffling.values() if n]


def test_advice_covers_what_is_read_and_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte of every batch is announced before it is read, if nothing is known to be in memory."""
    store = wstore.open(path)
    log: list[tuple[Any, ...]] = []
    mapped = store._use().map
    assert mapped is not None
    real: mmap.mmap = mapped

    class Mapping:
        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            log.append((option, start, length))
            size = path.stat().st_size
            assert start % mmap.PAGESIZE == 0
            assert length <= 1 << 17
            assert 0 <= start <= start + length <= size
            real.madvise(option, start, length) if length else real.madvise(option)

        def size(self) -> int:
            return real.size()

    store._arrays = store._use()._replace(map=Mapping())  # type: ignore[arg-type]
    monkeypatch.setattr(_batches._Probe, "cold", lambda *_: True)
    monkeypatch.setattr(_batches, "_shuffling", {})
    w = store.windows(20, targets="weight", horizon=[-3, 2])
    for view in (w, w[::3], w.between(50, 300), store.windows(20, at=range(30, 400, 11)), store.windows(5, stride=9)):
        for order in ("blocked", "exact", "by_time", "sequential"):
            log.clear()
            announced = np.zeros(path.stat().st_size + 1, bool)
            options: dict[str, Any] = {"group_bytes": 4096} if order == "blocked" else {}
            monkeypatch.setattr(orders, "chunk_size", lambda *_: (50, 4))
            size = 1 if order == "by_time" else 16
            for b in view.batches(size, order=order, fields=("x", "id"), prefetch=0, **options):
                for option, start, length in log:
                    if option == mmap.MADV_WILLNEED:
                        announced[start : start + length] = True
                starts, ends = _batches.window_extents(view, b.id)
                if order != "sequential":
                    assert all(announced[a:z].all() for a, z in zip(starts.tolist(), ends.tolist(), strict=True))
            if order == "sequential":
                assert log == []
            else:
                assert log[0] == (mmap.MADV_RANDOM, 0, 0)
                assert log[-1] == (mmap.MADV_NORMAL, 0, 0)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="no reading without waiting here")
def test_what_is_in_memory_is_not_announced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = wstore.open(path)
    path.read_bytes()
    probe = _batches._Probe(store)
    if probe.fd < 0 or probe.cold(np.array([0, 9000])):
        pytest.skip("this file system does not say what is in memory")
    probe.close()
    announced: list[int] = []
    monkeypatch.setattr(_batches._Advice, "_announce", lambda self, a, b: announced.append(len(a)))
    for order in ("blocked", "exact"):
        list(store.windows(20).batches(16, order=order))
    assert sum(announced) == 0


def test_it_works_without_a_mapping_and_without_advice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = [b.x for b in wstore.open(path).windows(20).batches(64)]
    for store in (wstore.open(path, access="load"), wstore.open_bytes(path.read_bytes())):
        got = [b.x for b in store.windows(20).batches(64)]
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    for name in ("_RANDOM", "_NORMAL", "_WILLNEED"):
        monkeypatch.setattr(_batches, name, None)
    monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    got = [b.x for b in wstore.open(path).windows(20).batches(64)]
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_file_that_is_cut_is_noticed_before_the_next_batch(path: Path, prefetch: int) -> None:
    if sys.platform == "win32":
        pytest.skip("a mapped file can't be cut here")
    w = wstore.open(path).windows(20)
    for fields in ("x", "id"):
        data = path.read_bytes()
        it = iter(w.batches(16, prefetch=prefetch, fields=fields))
        next(it)
        # What is mapped of the last page stays readable, so that batches which are being made do no harm.
        os.truncate(path, len(data) - 1)
        with pytest.raises(wstore.CorruptError, match="cut") as e:
            list(it)
        assert e.value.code == "truncated"
        path.write_bytes(data)


def test_a_file_that_is_replaced_goes_on_as_the_old_one(path: Path, tmp_path: Path) -> None:
    w = wstore.open(path).windows(20)
    want = [b.x for b in w.batches(64, order="exact")]
    it = iter(w.batches(64, order="exact", prefetch=0))
    got = [next(it).x]
    other = tmp_path / "other"
    other.write_bytes(encode(panel(3, 50)))
    os.replace(other, path)
    got += [b.x for b in it]
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    again = [b.x for b in w.batches(64, order="exact")]
    assert all(np.array_equal(a, b) for a, b in zip(again, want, strict=True))


def test_a_closed_store_ends_a_loop(path: Path) -> None:
    store = wstore.open(path)
    it = iter(store.windows(20).batches(16))
    next(it)
    store.close()
    with pytest.raises(wstore.ClosedError):
        list(it)


def test_gather_announces_what_is_not_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    asked: list[np.ndarray] = []
    told: list[tuple[int, int]] = []

    class Probe:
        answer = True

        def __init__(self, store: Any) -> None:
            pass

        def cold(self, offsets: np.ndarray) -> bool:
            asked.append(offsets)
            return self.answer

        def close(self) -> None:
            pass

    def pieces(extents: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        told.extend(zip(extents[0].tolist(), extents[1].tolist(), strict=True))
        return extents[0][:0], extents[0][:0]

    monkeypatch.setattr(_batches, "_Probe", Probe)
    monkeypatch.setattr(_batches, "_pieces", pieces)
    ids = np.arange(0, len(w), 3)[::-1]
    w.gather(ids[:3])
    assert not asked  # a few are read as fast
    x, _ = w.gather(ids)
    assert len(asked) == 1
    assert told == sorted(told)  # in the file's order, and every window is in it
    first = np.array([t[0] for t in told])
    end = np.array([t[1] for t in told])
    _, ends = _batches.window_extents(w, ids)
    assert (first < end).all()
    assert int((end - first).sum()) == int((ends - _batches.window_extents(w, ids)[0]).sum())
    assert np.array_equal(x, w.gather(ids)[0])
    assert len(asked) == 2
    Probe.answer = False
    for _ in range(5):
        w.gather(ids)
    assert len(asked) == 3  # found in memory once, then not looked at for a while


def test_integers_of_numpy_are_as_good_as_any(path: Path) -> None:
    w = wstore.open(path).windows(20)
    some: Any
    for some in (np.int64, np.int16, np.uint8):
        given = w.batches(some(100), order="exact", seed=some(1), epoch=some(2), start=some(50), prefetch=some(2))
        want = w.batches(100, order="exact", seed=1, epoch=2, start=50)
        assert given.fingerprint == want.fingerprint
        for a, b in zip(given, want, strict=True):
            assert np.array_equal(a.x, b.x)
            assert json.dumps(a.state) == json.dumps(b.state)
            assert type(a.next) is type(a.valid) is int
        assert w.order_fingerprint("exact", seed=some(1)) == want.fingerprint
    state = next(iter(w.batches(100, seed=-1))).state | {"epoch": np.int64(0), "position": np.int64(100)}
    assert json.loads(json.dumps(next(iter(w.batches(100, seed=-1, state=state))).state))["position"] == 200


def test_a_state_may_come_with_its_own_epoch(path: Path) -> None:
    w = wstore.open(path).windows(20)
    state = next(iter(w.batches(10, seed=1, epoch=3))).state
    for epoch in (0, 3):
        got = w.batches(10, seed=1, epoch=epoch, state=state)
        assert (got.epoch, got.share.start) == (3, 10)
    others: list[dict[str, Any]] = [{"epoch": 2}, {"start": 5}, {"epoch": 3, "start": 5}]
    for options in others:
        with pytest.raises(wstore.ArgumentError, match="leave those out"):
            w.batches(10, seed=1, state=state, **options)


def test_a_batch_larger_than_all_costs_no_memory(path: Path) -> None:
    w = wstore.open(path).windows(20)
    for order in ("exact", "blocked", "sequential"):
        for size in (10**15, orders.N_MAX):  # an array of so many can't be made
            (b,) = w.batches(size, order=order, seed=2, fields="id", prefetch=0)
            assert b.valid == b.next == len(w)
            (want,) = w.batches(len(w), order=order, seed=2, fields="id")
            assert np.array_equal(b.id, want.id)
            (rest,) = w.batches(size, order=order, seed=2, fields="id", start=7)
            assert np.array_equal(rest.id, want.id[7:])


def finished(work: Any) -> None:
    """Runs in a thread that may hang."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            failed.append(e)

    t = threading.Thread(target=run, daemon=True)
    t.start()
    t.join(30)
    assert not t.is_alive(), "hangs"
    if failed:
        raise failed[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_loop_goes_on_in_a_forked_process(path: Path, prefetch: int) -> None:
    w = wstore.open(path).windows(20)
    epoch = w.batches(64, order="exact", prefetch=prefetch, reuse=True, fields=("x", "id"))
    want = [hashlib.sha256(b.id.tobytes() + b.x.tobytes()).digest() for b in epoch]
    it = iter(epoch)
    for _ in range(5):
        next(it)
    left = iter(epoch)
    next(left)
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.alarm(30)  # ends the process if it hangs
            left.close()  # type: ignore[attr-defined]
            for b in it:
                os.write(send, hashlib.sha256(b.id.tobytes() + b.x.tobytes()).digest())
            if not [n for n in _batches._shuffling.values() if n]:
                os.write(send, b"end")
        finally:
            os._exit(0)
    os.close(send)
    with open(receive, "rb") as f:
        got = f.read()
    assert os.waitpid(child, 0)[1] == 0
    assert got == b"".join(want[5:]) + b"end"
    assert [hashlib.sha256(b.id.tobytes() + b.x.tobytes()).digest() for b in it] == want[5:]
    left.close()  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_lock_that_was_held_at_a_fork_is_free_in_the_new_process(path: Path) -> None:
    w = wstore.open(path).windows(20)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with _batches._shuffling_lock:
            held.set()
            done.wait(60)

    t = threading.Thread(target=hold)
    t.start()
    held.wait()
    child = os.fork()
    if not child:
        try:
            signal.alarm(30)
            os._exit(len(list(w.batches(1000, order="exact"))))
        finally:
            os._exit(100)
    status = os.waitpid(child, 0)[1]
    done.set()
    t.join()
    assert os.waitstatus_to_exitcode(status) == len(w.batches(1000))


def test_a_loop_may_be_collected_in_its_own_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = wstore.open(path).windows(20)
    real = _batches._Maker.__call__
    dropped, collected = threading.Event(), threading.Event()
    wrong: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", wrong.append)

    def make(self: Any, step: int) -> Any:
        if step == 2:
            dropped.wait(30)
            gc.collect()
            collected.set()
        return real(self, step)

    class Cycle:
        pass

    before = threading.active_count()
    gc.collect()
    gc.disable()
    try:
        monkeypatch.setattr(_batches._Maker, "__call__", make)
        c: Any = Cycle()
        c.it = iter(w.batches(64, order="exact", prefetch=3))
        next(c.it)
        c.c = c
        del c
        dropped.set()
        assert collected.wait(30)
    finally:
        gc.enable()
    for _ in range(1000):
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before
    assert not wrong
    assert not [n for n in _batches._shuffling.values() if n]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_loops_may_be_collected_while_others_begin_and_end(
    path: Path, monkeypatch: pytest.MonkeyPatch, prefetch: int
) -> None:
    store = wstore.open(path)
    log: list[int] = []

    class Mapping:
        def madvise(self, option: int, start: int = 0, length: int = 0) -> None:
            if not length:
                gc.collect()  # closes a loop over the same mapping, while this one is being counted
                log.append(option)

        def size(self) -> int:
            return path.stat().st_size

    mapping: Any = Mapping()
    store._arrays = store._use()._replace(map=mapping)
    w = store.windows(20)

    class Cycle:
        pass

    def leave() -> None:
        c: Any = Cycle()
        c.it, c.c = iter(w.batches(64, order="exact", prefetch=prefetch)), c
        next(c.it)

    def work() -> None:
        gc.disable()
        try:
            for _ in range(5):
                leave()
                it = iter(w.batches(64, order="exact", prefetch=prefetch))
                next(it)
                assert len(_batches._shuffling[mapping]) in (1, 2)
                leave()
                it.close()  # type: ignore[attr-defined]
                gc.collect()
                assert _batches._shuffling[mapping] == []
                assert log[-1] == mmap.MADV_NORMAL
        finally:
            gc.enable()

    finished(work)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="no reading without waiting here")
def test_advice_that_fails_fails_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = wstore.open(path).windows(20)
    want, _ = w.gather(range(len(w)))
    opened: list[int] = []
    closed: list[int] = []
    open_, close = os.open, os.close

    def fail(*_: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    def opening(*given: Any) -> int:
        opened.append(open_(*given))
        return opened[-1]

    def closing(fd: int) -> None:
        closed.append(fd)
        close(fd)

    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(os, "close", closing)
    monkeypatch.setattr(os, "preadv", fail)
    _batches._resting.clear()
    assert np.array_equal(w.gather(range(len(w)))[0], want)
    for order in ("exact", "blocked"):
        assert sum(b.valid for b in w.batches(64, order=order)) == len(w)
    assert len(opened) >= 3
    assert opened == closed
    _batches._resting.clear()
    with monkeypatch.context() as m:
        m.setattr(_batches, "place_extents", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            w.gather(range(len(w)))
        assert opened == closed
    with monkeypatch.context() as m:
        m.setattr(os, "fstat", fail)
        probe = _batches._Probe(w._store)
    assert probe.fd == -1
    assert opened == closed
