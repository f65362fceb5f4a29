#!/usr/bin/env python3
"""Four experiments of different lookbacks over one file at once: what memory they take together.

    python examples/four_experiments.py [--size MB] [--dir DIR]

Each is a process of its own that goes through a shuffled epoch. The file's pages are in memory once, whoever reads
them: each process is charged a share of them (PSS, proportional set size; Linux only). What is left is the fixed part,
Python and torch.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from multiprocessing.synchronize import Barrier
from pathlib import Path

import panel
import torch

import wstore
from wstore.torch import WindowLoader

LOOKBACKS = (20, 60, 120, 250)


def memory() -> float:
    """This process's proportional share of memory, in MB."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise OSError("/proc/self/smaps_rollup has no line Pss")


def experiment(
    path: Path, lookback: int, together: Barrier, results: multiprocessing.Queue[tuple[int, int, float, float]]
) -> None:
    torch.set_num_threads(1)
    loader = WindowLoader(wstore.open(path).windows(lookback, horizon=0), 256, order="blocked", seed=lookback)
    for x, y in loader:
        float(x.sum() + y.sum())  # the model stands here
        break
    together.wait()
    fixed = memory()
    for x, y in loader:
        float(x.sum() + y.sum())
    together.wait()  # all have read all
    total = memory()
    together.wait()
    results.put((lookback, len(loader.windows), fixed, total))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=float, default=300, metavar="MB", help="of the panel")
    parser.add_argument("--dir", type=Path, help="for the panel, which is kept there; default: a temporary one")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (a.dir or Path(temporary)) / "panel.wst"
        if not path.exists():
            panel.make(path, a.size)
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        together = context.Barrier(len(LOOKBACKS))
        processes = [context.Process(target=experiment, args=(path, n, together, results)) for n in LOOKBACKS]
        for p in processes:
            p.start()
        found = sorted(results.get() for _ in processes)
        for p in processes:
            p.join()
        size = path.stat().st_size / 1e6
    print("lookback    windows   memory at the first batch   after an epoch")
    for lookback, windows, fixed, total in found:
        print(f"{lookback:8d} {windows:10,d} {fixed:24.0f} MB {total:13.0f} MB")
    fixed, total = (sum(row[k] for row in found) for k in (2, 3))
    print(
        f"together {total:,.0f} MB, {total - fixed:,.0f} MB more than at the first batch; the file has {size:,.0f} MB"
    )


if __name__ == "__main__":
    main()
