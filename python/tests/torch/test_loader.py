"""WindowLoader: the batches of Windows.batches as tensors, whatever holds on to them, stops, fails or forks."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import pickle
import threading
import traceback
import weakref
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from children import finish, start
from encode import encode
from files import large_file
from hypothesis import given, settings
from panels import any_panel, any_question, small
from test_batches import ORDERS, panel
from test_windows import SEEDS, ask

import wstore
from wstore.torch import Batch, WindowLoader, _gather

EVERY = ("x", "y", "id", "ticker", "time")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    out = tmp_path / "panel.wst"
    out.write_bytes(encode(panel()))
    return out


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large_file(tmp_path_factory.getbasetemp())


def same(t: torch.Tensor, a: Any) -> bool:
    """Equal in shape, type and bits; times are numbers."""
    a = np.ascontiguousarray(a.view(np.int64) if a.dtype.kind == "M" else a)
    got = t.numpy()
    return bool(got.dtype == a.dtype and got.shape == a.shape and got.tobytes() == a.tobytes())


def ours() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("wstore-")]


@settings(max_examples=200)
@given(SEEDS)
def test_batches_are_those_of_windows(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    w = ask(wstore.open_bytes(encode(p)), any_question(r, p))
    if len(w) and r.random() < 0.3:
        w = w.select(r.choices(range(len(w)), k=r.randint(1, 20)))
    order, world = r.choice(ORDERS), r.randint(1, 3)
    by_time = order.startswith("by_time")
    pad_to = len(p.tickers) + 20 if by_time and r.random() < 0.7 else None
    fields = [f for f in (*EVERY, "x_present", "y_present") if w.targets or f[0] != "y"]
    options: dict[str, Any] = {
        "order": order,
        "seed": r.randint(-9, 9),
        "epoch": r.randint(0, 3),
        "rank": r.randrange(world),
        "world": world,
        "tail": r.choice(["drop", "pad"] if world > 1 else ["keep", "drop", "pad"]),
        "pad_to": pad_to,
        "fill": r.choice([None, -1.0]),
        "prefetch": r.randint(0, 3),
        "fields": r.sample(fields, r.randint(1, len(fields))),
        "anchor": r.sample(list(w.store.columns), r.randint(0, 1)),
    }
    size = 1 if by_time and pad_to is None else r.randint(1, 9)
    want = list(w.batches(size, **options))
    loader = WindowLoader(w, size, **options, resident=r.random() < 0.5)
    got = list(loader)
    assert len(got) == len(want) == len(loader)
    assert loader.epoch == options["epoch"] + 1
    for t, a in zip(got, want, strict=True):
        assert t.fields == tuple(a) == loader.fields
        assert all(same(t[name], a[name]) for name in a)
        assert (t.valid, t.next, t.state) == (a.valid, a.next, a.state)
    stats = loader.stats()
    assert stats.batches == len(want)
    assert stats.windows == stats.made == sum(a.valid for a in want)
    if len(want) and not by_time:
        *_, last = WindowLoader(w, size, **options | {"fields": "mask"})
        assert last.mask.tolist() == [True] * last.valid + [False] * (len(want[-1][options["fields"][0]]) - last.valid)


@pytest.mark.parametrize("resident", [False, True])
def test_a_large_batch_is_copied_by_several_threads(large: Path, resident: bool) -> None:
    w = wstore.open(large).windows(60, horizon=[1, 5], inputs=["c0", "c1", "c5"], targets=["c3", "c7"])
    w = w.between(100, 4000)
    scale = wstore.Standardizer(np.array([1.0, -2.0, 3.0]), np.array([0.5, 3.0, 7.0]))
    loader = WindowLoader(w, 5000, order="exact", fields=EVERY, transform=scale, threads=3, resident=resident)
    for b, _ in zip(loader, range(4), strict=False):
        x, y = w.gather(b.id.numpy())
        assert same(b.x, scale.transform(x))
        assert same(b.y, y)
    assert loader.resident_bytes == (4 * 5 * 160 * (4000 - 100 + 59 + 5) if resident else 0)


def test_a_batch_is_a_tuple_with_names(path: Path) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    for x, y in WindowLoader(w, 16):  # noqa: B007
        pass
    assert x.shape == (len(w) % 16, 20, 2)
    b = next(iter(WindowLoader(w, 16, fields=("x", "mask"), anchor="weight")))
    assert b.fields == ("x", "mask", "weight")
    assert b.x is b[0] is b["x"]
    assert b.weight.shape == b.mask.shape == (16,)
    assert "x (16, 20, 2), mask (16,), weight (16,)" in repr(b)
    with pytest.raises(AttributeError, match="no field 'y': it has x, mask, weight"):
        b.y  # noqa: B018
    with pytest.raises(KeyError, match="no field 'y'"):
        b["y"]
    again = pickle.loads(pickle.dumps(b))
    assert isinstance(again, Batch)
    assert torch.equal(again.x, b.x)
    assert (again.valid, again.next, again.state) == (b.valid, b.next, b.state)
    assert type(b)([t + 0 for t in b]).weight.shape == (16,)  # as libraries do that move batches


# Memory


def test_a_batch_never_changes_while_something_holds_it(path: Path) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    kept = list(WindowLoader(w, 32, order="exact", fields=("x", "y", "id")))
    for b in kept:
        assert all(same(t, a) for t, a in zip(b[:2], w.gather(b.id.numpy()), strict=True))
    held: list[tuple[int, Any]] = []
    weight = torch.ones(2, requires_grad=True)
    losses = []
    for i, (x, ids) in enumerate(WindowLoader(w, 32, order="exact", fields=("x", "id"))):
        first = int(ids[0])
        match i % 4:
            case 0:
                held.append((first, x[0].t()))
            case 1:
                held.append((first, x.numpy()[0].T))
            case 2:
                held.append((first, x.detach().view(-1)[:40].view(20, 2).t()))
            case 3:
                losses.append((ids.tolist(), (x * weight).sum()))  # autograd keeps x
        del x
    for number, some in held:
        assert np.array_equal(np.asarray(some).T, w[number][0])
    for several, loss in losses:
        (gradient,) = torch.autograd.grad(loss, weight)
        assert torch.allclose(gradient, torch.from_numpy(w.gather(several)[0]).sum((0, 1)))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_batch_is_freed_when_nothing_holds_it(path: Path, prefetch: int) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    handed: list[weakref.ref[torch.Tensor]] = []
    for x, _ in WindowLoader(w, 16, prefetch=prefetch):
        handed.append(weakref.ref(x))
        assert sum(r() is not None for r in handed) <= 2
    assert len(handed) > 10


def test_writing_into_batches_does_not_reach_the_file(path: Path) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    want = w.gather(range(len(w)))
    for resident in (False, True):
        loader = WindowLoader(w, 32, fields=("x", "y", "id"), resident=resident)
        for _ in range(2):
            for x, y, ids in loader:
                assert same(x, want[0][ids.numpy()])
                x.zero_().add_(5)
                y.mul_(-1)
                ids.zero_()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


# What is done to batches


def test_transforms_and_filling(tmp_path: Path) -> None:
    path = tmp_path / "small.wst"
    path.write_bytes(encode(small()))
    w = wstore.open(path).windows(2, inputs=["a", "b"], targets="ret", optional="a", horizon=0)
    scale, of_y = wstore.Standardizer.fit(w), wstore.Standardizer.fit(w, of="targets")
    x, y = w.gather(range(len(w)))
    want = scale.transform(x)
    assert np.isnan(want).any()
    for resident in (False, True):
        loader = WindowLoader(
            w,
            4,
            order="sequential",
            fields=("x", "y", "x_present"),
            transform=scale,
            target_transform=of_y,
            fill=0,
            resident=resident,
        )
        got = [torch.cat(f) for f in zip(*loader, strict=True)]
        assert same(got[0], np.nan_to_num(want))
        assert same(got[1], of_y.transform(y))
        assert same(got[2], ~np.isnan(x))
        loader = WindowLoader(w, 4, order="sequential", transform=lambda t: t[:, -1] * 2, resident=resident)
        assert same(torch.cat([b.x for b in loader]), x[:, -1] * 2)


def test_where_batches_are_handed_out(path: Path) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    for resident in (False, True):
        b = next(iter(WindowLoader(w, 16, fields=(*EVERY, "mask"), device="meta", resident=resident)))
        assert all(t.is_meta for t in b)
        assert b.x.shape == (16, 20, 2)
    times = WindowLoader(w, 2, order="by_time", pad_to=9, fields=("x", "y", "y_present"), device="meta", resident=True)
    assert [t.shape[:2] for t in next(iter(times))] == [(2, 9)] * 4
    for x, _ in WindowLoader(w, 16, device="cpu", pin_memory=True):
        assert x.is_pinned() == torch.cuda.is_available()


def test_what_does_not_fit_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    need = WindowLoader(w, resident=True).resident_bytes
    assert need == 4 * 3 * sum(400 - 10 * i for i in range(7))
    monkeypatch.setattr(_gather, "_free", lambda device: need)
    WindowLoader(w, resident=True)
    monkeypatch.setattr(_gather, "_free", lambda device: need - 1)
    with pytest.raises(wstore.ArgumentError, match=r"take 31.1 KB \(2,590 rows\), and cpu has 31.1 KB free: choose"):
        WindowLoader(w, resident=True)
    WindowLoader(w.between(0, 100), resident=True)


def test_the_memory_that_is_free_is_known() -> None:
    free = _gather._free(torch.device("cpu"))
    assert free is None or free > 1 << 20
    assert _gather._free(torch.device("meta")) is None


# Epochs and states


def numbers(loader: WindowLoader, most: int = 10**9) -> list[int]:
    out: list[int] = []
    for i, b in enumerate(loader, 1):
        out += b.id[: b.valid].tolist()
        if i == most:
            break
    return out


def test_each_loop_is_an_epoch(path: Path) -> None:
    w = wstore.open(path).windows(20)
    want = [[int(i) for b in w.batches(64, order="exact", epoch=e, fields="id") for i in b.id] for e in range(4)]
    loader = WindowLoader(w, 64, order="exact", fields="id")
    assert numbers(loader) == want[0]
    assert numbers(loader) == want[1]
    assert loader.epoch == 2
    assert numbers(loader, 3) == want[2][:192]
    assert loader.epoch == 2
    assert loader.state_dict()["position"] == 192
    assert numbers(loader) == want[2]  # it was left before its end, and begins anew
    for epoch in (3, 1, 1):
        loader.set_epoch(epoch)
        assert numbers(loader) == want[epoch]
    assert len(loader) == -(-len(w) // 64)
    first, second = iter(loader), iter(loader)
    next(first)
    next(second)
    next(first)
    assert loader.state_dict()["position"] == 64  # the newer loop counts


@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("order", ["blocked", "exact", "sequential"])
def test_a_state_counts_what_was_handed_out(path: Path, order: Any, prefetch: int) -> None:
    w = wstore.open(path).windows(20)

    def loader(size: int) -> WindowLoader:
        return WindowLoader(w, size, order=order, seed=5, fields="id", prefetch=prefetch, epoch=0)

    whole = loader(100)
    whole.set_epoch(2)
    want = numbers(whole)
    after = numbers(whole)
    for steps, size in ((1, 100), (7, 64), (-(-len(w) // 100), 33)):
        one = loader(100)
        one.set_epoch(2)
        seen = numbers(one, steps)
        state = json.loads(json.dumps(one.state_dict()))
        assert state == {"order": w.order_fingerprint(order, seed=5), "epoch": 2, "position": min(100 * steps, len(w))}
        two = loader(size)
        two.load_state_dict(state)
        if len(seen) == len(want):
            assert two.epoch == 3  # nothing was left
            two.set_epoch(3)
            assert numbers(two) == after
            continue
        two.set_epoch(two.epoch)
        assert two.state_dict() == state
        assert numbers(two, 1) == want[len(seen) :][:size]
        assert numbers(two) == want[len(seen) :]  # anew from where the state was
        assert numbers(two) == after
        again = w.batches(size, order=order, seed=5, fields="id", state=state)
        assert [int(i) for b in again for i in b.id] == want[len(seen) :]
        two.load_state_dict(state)
        two.set_epoch(3)
        assert numbers(two) == after


def test_states_of_something_else_are_refused(path: Path) -> None:
    store = wstore.open(path)
    w = store.windows(20)
    loader = WindowLoader(w, 64, order="exact", seed=1)
    next(iter(loader))
    state = loader.state_dict()
    for windows, order, seed in (
        (store.windows(21), "exact", 1),
        (w[1:], "exact", 1),
        (w, "blocked", 1),
        (w, "exact", 2),
    ):
        other = WindowLoader(windows, 64, order=order, seed=seed)  # type: ignore[arg-type]
        with pytest.raises(wstore.ArgumentError, match="other windows or another order"):
            other.load_state_dict(state)
        assert other.state_dict()["position"] == 0
    for wrong in ({}, {**state, "position": len(w) + 1}, {**state, "epoch": None}):
        with pytest.raises(wstore.ArgumentError):
            loader.load_state_dict(wrong)
    assert loader.state_dict() == state


@settings(max_examples=60)
@given(SEEDS)
def test_windows_come_once_however_often_and_wherever_it_is_stopped(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    w = ask(wstore.open_bytes(encode(p)), any_question(r, p))
    options: dict[str, Any] = {
        "order": r.choice(["blocked", "exact", "sequential"]),
        "seed": seed,
        "fields": "id",
        "tail": "pad",
    }
    state = WindowLoader(w, **options).state_dict()
    seen: list[int] = []
    while state["epoch"] == 0:
        world, size, steps = r.randint(1, 3), r.randint(1, 9), r.randint(1, 4)
        ranks = [WindowLoader(w, size, rank=rank, world=world, **options) for rank in range(world)]
        for loader in ranks:
            loader.load_state_dict(state)
            if loader.epoch == 0:
                seen += numbers(loader, steps)
        assert len({json.dumps(loader.state_dict()) for loader in ranks}) == 1
        state = ranks[0].state_dict()
    assert sorted(seen) == list(range(len(w)))


def test_statistics_of_a_loop(path: Path) -> None:
    w = wstore.open(path).windows(20)
    loader = WindowLoader(w, 64)
    assert loader.stats().waiting_share == loader.stats().gather_rate == 0
    for i, _ in enumerate(loader):
        stats = loader.stats()
        assert stats.batches == i + 1
        assert stats.made >= stats.windows
    assert stats.windows == len(w)
    assert 0 < stats.waited <= stats.seconds
    assert 0 < stats.waiting_share <= 1
    assert stats.gather_rate > 0


# Threads


def test_what_goes_wrong_in_the_thread_is_raised_in_the_loop(path: Path) -> None:
    w = wstore.open(path).windows(20)
    calls = []

    def fails_at_the_third(x: torch.Tensor) -> torch.Tensor:
        calls.append(threading.current_thread().name)
        if len(calls) == 3:
            raise ZeroDivisionError("mine")
        return x

    loader = WindowLoader(w, 64, transform=fails_at_the_third)
    seen: list[Any] = []
    with pytest.raises(ZeroDivisionError, match="mine") as e:
        seen.extend(loader)
    assert len(seen) == 2
    assert any(f.name == "fails_at_the_third" for f in traceback.extract_tb(e.tb))
    assert calls[0].startswith("wstore-batches")
    assert not ours()
    state = loader.state_dict()
    assert state["position"] == 128
    loader.load_state_dict(state)
    assert sum(b.valid for b in loader) == len(w) - 128


def test_a_file_that_is_cut_is_an_error(large: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.wst"
    path.write_bytes(large.read_bytes())
    loader = WindowLoader(wstore.open(path).windows(60, inputs=["c0"]), 64, order="sequential", prefetch=1)
    running = iter(loader)
    next(running)
    os.truncate(path, path.stat().st_size - 4096)
    with pytest.raises(wstore.CorruptError, match="truncated"):
        list(running)


@pytest.mark.parametrize("large_batches", [False, True])
def test_a_loop_that_is_left_leaves_no_thread(large: Path, large_batches: bool) -> None:
    w = wstore.open(large).windows(60)
    loader = WindowLoader(w, 2048 if large_batches else 8)
    for _ in loader:
        assert ours()
        break
    running = iter(loader)
    next(running)
    del running
    gc.collect()
    cycle: list[Any] = [iter(loader)]
    cycle.append(cycle)
    next(cycle[0])
    del cycle
    gc.collect()

    def fails() -> None:
        for _ in loader:
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    for t in threading.enumerate():
        if t.name.startswith("wstore-"):
            t.join(10)
    assert not ours()


def test_a_program_ends_in_the_middle_of_a_loop(path: Path, tmp_path: Path) -> None:
    program = """
        import sys, wstore
        from wstore.torch import WindowLoader
        w = wstore.open(sys.argv[1]).windows(20)
        running = iter(WindowLoader(w, 16))
        next(running)
        other = iter(WindowLoader(w, 16))
        kept = [next(other), other]
        kept.append(kept)
        print("end")
        if sys.argv[2] == "raise":
            raise SystemExit(0)
    """
    assert finish(*(start(tmp_path, program, path, how) for how in ("fall", "raise"))) == ["end\n"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_loop_does_not_go_on_in_a_forked_process(path: Path, tmp_path: Path) -> None:
    program = """
        import os, sys, warnings, wstore
        from wstore.torch import WindowLoader
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        loader = WindowLoader(wstore.open(sys.argv[1]).windows(20), 16, order="exact", fields="id")
        running = iter(loader)
        got = [next(running)]
        child = os.fork()
        if not child:
            try:
                next(running)
            except wstore.WstoreError as e:
                assert "forked" in str(e), e
                assert sum(len(b.id) for b in loader) == len(loader.windows)
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        got += running
        assert sorted(i for b in got for i in b.id.tolist()) == list(range(len(loader.windows)))
        print("parent")
    """
    assert finish(start(tmp_path, program, path)) == ["parent\n"]


def test_wstore_itself_imports_no_torch(tmp_path: Path) -> None:
    assert finish(start(tmp_path, "import sys, wstore; print('torch' in sys.modules)")) == ["False\n"]


# Errors


def test_errors_say_what_would_do(path: Path) -> None:
    store = wstore.open(path)
    w = store.windows(20, horizon=1, targets="b")

    def refused(match: str, *args: Any, **options: Any) -> None:
        with pytest.raises(wstore.ArgumentError, match=match):
            WindowLoader(*(args or (w,)), **options)

    refused(r"Store\.windows returns, not Store", store)
    refused("batch_size must be 1 to", w, 0)
    refused("give both", rank=1)
    refused("tail='drop' or 'pad'", rank=0, world=2)
    refused("rank \\(of a world of 2\\) must be 0 to 1", rank=2, world=2, tail="pad")
    refused("no order 'random'", order="random")
    refused("no field 'z'", fields=("x", "z"))
    refused("not all different|twice", fields=("x", "mask", "mask"))
    refused("pad_to is for", pad_to=3)
    refused(
        "standardizer of x is of 1 columns, and there are 2: a, b",
        transform=wstore.Standardizer(np.zeros(1), np.ones(1)),
    )
    refused("a Standardizer or a function, not 3", target_transform=3)
    refused("threads must be 1 to", threads=0)
    refused("prefetch must be", prefetch=-1)
    loader = WindowLoader(w, 16)
    with pytest.raises(wstore.ArgumentError, match="epoch"):
        loader.set_epoch(0.5)  # type: ignore[arg-type]
    refused("fill must be a number, not '0'", fill="0")
    for wrong, what in ((None, "None"), (np.zeros(3), "a ndarray")):
        with pytest.raises(wstore.ArgumentError, match=f"transforms y must return a tensor.* returned {what}"):
            next(iter(WindowLoader(w, 16, target_transform=lambda y, wrong=wrong: wrong)))
    assert "x, y; epoch 0" in repr(loader)
    loader.set_epoch(7)
    assert "x, y; epoch 7" in repr(loader)
    assert "epoch=7" in repr(loader)
    loader.set_epoch(0)
    with pytest.raises(TypeError, match="make one there"):
        pickle.dumps(loader)
    store.close()
    for closed in (lambda: next(iter(loader)), lambda: w[0]):
        with pytest.raises(wstore.ClosedError, match=r"panel\.wst: the store is closed"):
            closed()
