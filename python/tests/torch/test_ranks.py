"""Several processes: every window once, kill -9 and going on, and the memory that they take together."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import finish, start
from encode import encode
from files import large_file
from test_batches import panel

import wstore

# A rank that trains: each step all ranks wait for each other, so that unequal numbers of batches would hang.
RANK = """
    import json, os, sys, time, torch, wstore
    import torch.distributed as dist
    from wstore.torch import WindowLoader

    path, folder, rank, world, options, steps = sys.argv[1:]
    rank, world, steps = int(rank), int(world), int(steps)
    if world > 1:
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
    for run, given in enumerate(json.loads(options)):
        w = wstore.open(path).windows(20, horizon=1, targets="b")
        loader = WindowLoader(w, **given, fields=("x", "y", "id", "mask"))
        saved = f"{folder}/state{run}.json"
        if os.path.exists(saved):
            with open(saved) as f:
                loader.load_state_dict(json.load(f))
        with open(f"{folder}/log{run}.{rank}", "w") as log:
            for step, b in enumerate(loader):
                if step == steps:  # is handed out, but not trained on
                    print("ready", flush=True)
                    time.sleep(100)
                x, y = w.gather(b.id.numpy())
                assert torch.equal(b.x, torch.from_numpy(x)) and torch.equal(b.y, torch.from_numpy(y))
                log.write(json.dumps([b.id.tolist(), b.mask.tolist()]) + "\\n")
                log.flush()
                if world > 1:
                    dist.barrier()
                if rank == 0:
                    with open(saved + ".new", "w") as f:
                        json.dump(loader.state_dict(), f)
                    os.replace(saved + ".new", saved)
        print(json.dumps(loader.state_dict()), flush=True)
    if world > 1:
        dist.destroy_process_group()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    out = tmp_path / "panel.wst"
    out.write_bytes(encode(panel()))
    return out


def logged(folder: Path, run: int, world: int) -> Iterator[tuple[Any, ...]]:
    """Of each step each rank's numbers and which of them are valid."""
    each = [[json.loads(line) for line in (folder / f"log{run}.{r}").read_text().splitlines()] for r in range(world)]
    assert len({len(e) for e in each}) == 1
    yield from zip(*each, strict=True)


def valid(folder: Path, run: int, world: int) -> list[int]:
    """The windows seen, in order of their positions."""
    steps = logged(folder, run, world)
    return [i for step in steps for ids, mask in step for i, v in zip(ids, mask, strict=True) if v]


def test_two_ranks_see_every_window_once(path: Path, tmp_path: Path) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    orders: list[Any] = ["blocked", "exact", "sequential"]
    runs = [
        {"batch_size": 100, "order": order, "seed": 3, "epoch": 2, "tail": tail}
        for order in orders
        for tail in ("pad", "drop")
    ]
    printed = finish(*(start(tmp_path, RANK, path, tmp_path, r, 2, json.dumps(runs), -1) for r in range(2)))
    states = [[json.loads(line) for line in p.splitlines() if line.startswith("{")] for p in printed]
    assert states[0] == states[1]
    assert [s["epoch"] for s in states[0]] == [3] * len(runs)
    for run, given in enumerate(runs):
        want = [int(i) for b in w.batches(100, order=orders[run // 2], seed=3, epoch=2, fields="id") for i in b.id]
        seen = valid(tmp_path, run, 2)
        assert len(set(seen)) == len(seen) == (len(want) if given["tail"] == "pad" else len(want) // 200 * 200)
        assert seen == want[: len(seen)]
        assert all(len(ids) == 100 for step in logged(tmp_path, run, 2) for ids, _ in step)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 2), (2, 1)])
def test_killed_ranks_go_on_with_what_was_not_seen(path: Path, tmp_path: Path, before: int, after: int) -> None:
    w = wstore.open(path).windows(20, horizon=1, targets="b")
    options = json.dumps([{"batch_size": 64, "order": "exact", "seed": 3, "tail": "pad"}])
    ranks = [start(tmp_path, RANK, path, tmp_path, r, before, options, 5) for r in range(before)]
    for p in ranks:
        assert p.stdout is not None
        assert "ready\n" in iter(p.stdout.readline, ""), p.communicate()[1]
    for p in ranks:
        p.send_signal(signal.SIGKILL)
        p.communicate()
    state = json.loads((tmp_path / "state0.json").read_text())
    assert state["position"] == 5 * 64 * before
    seen = valid(tmp_path, 0, before)
    (tmp_path / "meet").unlink(missing_ok=True)
    finish(*(start(tmp_path, RANK, path, tmp_path, r, after, options, -1) for r in range(after)))
    want = [int(i) for b in w.batches(64, order="exact", seed=3, fields="id") for i in b.id]
    assert seen + valid(tmp_path, 0, after) == want


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large_file(tmp_path_factory.getbasetemp())


WORKERS = """
    import multiprocessing, sys, warnings, wstore
    from torch.utils.data import DataLoader, Dataset
    from wstore.torch import WindowDataset

    warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than CPUs

    def pss():
        with open("/proc/self/smaps_rollup") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))

    class Measured(Dataset):
        # Each worker reads all windows, or one, waits for the others, and says how much memory is its part.

        def __init__(self, windows, read, all_there):
            self.dataset, self.read, self.all_there = WindowDataset(windows), read, all_there

        def __len__(self):
            return 4

        def __getitem__(self, i):
            n = len(self.dataset)
            for at in range(0, n if self.read else 1, 64 * 512):
                self.dataset.__getitems__(range(at, min(n, at + 64 * 512), 64))
            self.all_there.wait(60)
            mine = pss()
            self.all_there.wait(60)
            return mine

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[2])
        w = wstore.open(sys.argv[1]).windows(64)
        for read in (False, True):
            d = Measured(w, read, context.Barrier(4))
            print(sum(DataLoader(d, None, num_workers=4, multiprocessing_context=context)))
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no PSS")
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_workers_hold_the_file_once(large: Path, tmp_path: Path, way: str) -> None:
    size = large.stat().st_size // 1024
    fixed, reading = map(int, finish(start(tmp_path, WORKERS, large, way))[0].split())
    assert reading - fixed > 0.5 * size  # all was read
    assert reading <= 1.1 * size + 1.02 * fixed
