"""WindowDataset: the windows that gather gives, by all of DataLoader's ways."""

from __future__ import annotations

import hashlib
import pickle
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from encode import encode
from files import large_file
from hypothesis import given, settings
from panels import any_panel, any_question, small
from test_batches import panel
from test_windows import SEEDS, ask
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler, Subset, default_collate

import wstore
from wstore.torch import WindowDataset, WindowLoader

WAYS = ["fork", "spawn", "forkserver"] if sys.platform != "win32" else ["spawn"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    out = tmp_path / "panel.wst"
    out.write_bytes(encode(panel()))
    return out


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large_file(tmp_path_factory.getbasetemp())


def same(t: torch.Tensor, a: Any) -> bool:
    """Equal in shape, type and bits."""
    got = t.numpy()
    return got.dtype == a.dtype and got.shape == a.shape and got.tobytes() == np.ascontiguousarray(a).tobytes()


@settings(max_examples=150)
@given(SEEDS)
def test_items_are_what_gather_gives(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    w = ask(wstore.open_bytes(encode(p)), any_question(r, p))
    if len(w) and r.random() < 0.3:
        w = w.select(r.choices(range(len(w)), k=r.randint(1, 9)))
    sides = ("x", "y") if w.targets else ("x",)
    d = WindowDataset(w)
    full = WindowDataset(w, (*sides, *(f"{s}_present" for s in sides), "id", "ticker", "time"))
    assert len(d) == len(w)
    assert d.fields == sides
    ids = r.choices(range(-len(w), len(w)), k=r.randint(0, 9)) if len(w) else []
    positive = [i % len(w) for i in ids]
    x, y, x_present, y_present = w.gather(positive, mask=True)
    code, time, _ = w.locate(positive)
    want = [a for a in (x, y, x_present, y_present) if a is not None]
    want += [np.array(positive, np.int64), code, time.view(np.int64)]
    got = full.__getitems__(ids)
    assert len(got) == len(ids)
    assert all(same(t, a) for t, a in zip(got.batch, want, strict=True))
    for k, i in enumerate(ids):
        for item in (full[i], got[k]):
            assert all(same(t, a[k]) for t, a in zip(item, want, strict=True))
        assert all(same(t, a[k]) for t, a in zip(d[np.int64(i)], want, strict=False))


def test_a_batch_is_gathered_at_once_whatever_collates_it(path: Path) -> None:
    w = wstore.open(path).windows(20, horizon=[1, 3, 4], target_length=2, inputs=["a", "weight"], targets=["b", "a"])
    d = WindowDataset(w)
    want = w.gather(range(64))

    def check(batch: Any) -> None:
        assert isinstance(batch, list)
        assert all(same(t, a) for t, a in zip(batch, want, strict=True))

    check(next(iter(DataLoader(d, 64))))
    check(next(iter(DataLoader(Subset(d, range(64)), 64))))
    check(next(iter(DataLoader(d, 64, collate_fn=lambda items: default_collate([(x, y) for x, y in items])))))
    check(list(next(iter(DataLoader(d, None, sampler=BatchSampler(SequentialSampler(d), 64, drop_last=False))))))
    check(default_collate(list(d.__getitems__(range(64)))))
    check(default_collate([d[i] for i in range(64)]))
    assert same(d[np.arange(64)][0], want[0])
    assert same(d[:64][1], want[1])
    assert same(d[63::-1][0], want[0][::-1])
    assert [len(items) for items in (d.__getitems__(range(9))[2:5], d.__getitems__([]))] == [3, 0]


@pytest.mark.parametrize("way", WAYS)
def test_workers_give_the_same_bits(path: Path, way: str) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b").select(Random(1).sample(range(2000), 600))
    d = WindowDataset(w, ("x", "y", "id", "time"))
    loader = DataLoader(d, 50, shuffle=True, num_workers=2, persistent_workers=True, multiprocessing_context=way)
    orders = []
    for _ in range(2):
        seen = []
        for x, y, number, time in loader:
            ids = number.numpy()
            for t, a in zip((x, y, time), (*w.gather(ids), w.locate(ids)[1].view(np.int64)), strict=True):
                assert same(t, a)
            seen += ids.tolist()
            x.mul_(0)
        assert sorted(seen) == list(range(600))
        orders.append(seen)
    assert orders[0] != orders[1]


def test_distributed_samplers_share_it(path: Path) -> None:
    w = wstore.open(path).windows(20)
    d = WindowDataset(w, "id")
    seen: list[int] = []
    for rank in range(2):
        sampler: Any = DistributedSampler(d, num_replicas=2, rank=rank, shuffle=True, drop_last=True)
        seen += torch.cat([ids for (ids,) in DataLoader(d, 64, sampler=sampler)]).tolist()
    assert len(seen) == len(w) // 2 * 2
    assert len(set(seen)) == len(seen)


def test_a_worker_is_sent_a_path_and_a_query(path: Path) -> None:
    store = wstore.open(path)
    w = store.windows(20, horizon=1, targets="b")
    train = w.split(train=(None, 300), test=(300, None), embargo=5).train
    for windows in (w, w[100:1000:3], train):
        d = WindowDataset(windows, ("x", "y", "id"))
        raw = pickle.dumps(d)
        assert len(raw) < 2048
        again = pickle.loads(raw)
        assert again.fields == d.fields
        assert all(same(t, a.numpy()) for t, a in zip(again[7], d[7], strict=True))
    other = panel()
    other.tickers["T0"].values["a"][0] = -1.0
    raw = pickle.dumps(WindowDataset(w))
    path.with_suffix(".new").write_bytes(encode(other))
    path.with_suffix(".new").replace(path)
    with pytest.raises(wstore.StaleError):
        pickle.loads(raw)


def test_what_is_written_into_items_does_not_reach_the_file(path: Path) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    d = WindowDataset(w)
    want = w.gather(range(8))
    for x, y in (d[3], d.__getitems__(range(8)).batch):
        x.fill_(7)
        y.mul_(0)
        x[0].numpy()[:] = 9
    assert all(np.array_equal(a, b) for a, b in zip(w.gather(range(8)), want, strict=True))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_windows_of_one_item_larger_than_a_piece(large: Path) -> None:
    store = wstore.open(large)
    for inputs in (None, ["c0", "c2", "c4", "c6", "c8"], ["c1", "c5"], [f"c{i}" for i in (0, 1, 2, 4, 5, 6, 7, 8, 9)]):
        w = store.windows(8000, horizon=1, inputs=inputs, targets="c3")
        x, y = WindowDataset(w).__getitems__([5, 300_000]).batch
        assert all(same(t, a) for t, a in zip((x, y), w.gather([5, 300_000]), strict=True))
        resident = WindowLoader(w.select([5, 300_000]), 2, order="sequential", resident=True)
        assert all(torch.equal(a, b) for a, b in zip((x, y), next(iter(resident)), strict=True))


def test_errors_say_what_would_do(path: Path) -> None:
    store = wstore.open(path)
    w = store.windows(20)
    d = WindowDataset(w)
    n = len(w)
    for wrong in (n, -n - 1):
        with pytest.raises(IndexError, match=f"there are {n}"):
            d[wrong]
        with pytest.raises(IndexError, match="possible: 0 to"):
            d.__getitems__([0, wrong])
        with pytest.raises(IndexError, match=f"there are {n}"):
            WindowDataset(w, "id")[wrong]
    with pytest.raises(wstore.ArgumentError, match="ints"):
        d.__getitems__([0.5])  # type: ignore[list-item]
    with pytest.raises(wstore.ArgumentError, match="int"):
        WindowDataset(w, "id")["x"]
    with pytest.raises(wstore.ArgumentError, match="no field 'z'"):
        WindowDataset(w, ("x", "z"))
    with pytest.raises(wstore.ArgumentError, match="needs targets"):
        WindowDataset(w, ("x", "y"))
    with pytest.raises(wstore.ArgumentError, match=r"Store\.windows returns, not Store"):
        WindowDataset(store)  # type: ignore[arg-type]
    store.close()
    with pytest.raises(wstore.ClosedError):
        d[0]
    with pytest.raises(wstore.ClosedError):
        d.__getitems__([0])


def test_missing_cells_are_told(tmp_path: Path) -> None:
    path = tmp_path / "small.wst"
    path.write_bytes(encode(small()))
    w = wstore.open(path).windows(2, inputs=["a", "b"], optional="a", targets=())
    x, present = WindowDataset(w, ("x", "x_present")).__getitems__(range(len(w))).batch
    assert torch.equal(present, ~torch.isnan(x))
    assert not present.all()
