#!/usr/bin/env python3
"""A shuffled epoch over a file twice as large as the memory: beside the same in memory, and beside a plain np.memmap.

    PYTHONPATH=python python bench/beyond_ram.py [--tickers 10000] [--rows 2500] [--columns 6] [--limit MIB] [--dir DIR]

Only the ratios mean something. Each run is a process of its own in a memory cgroup (version 1 or 2; where none may be
made, it says so and runs without a limit). The file, 600 MB by default, is kept in DIR between calls, and is dropped
from the page cache before each cold run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import Limit, drop, join, read_bytes, readahead

import wstore

LOOKBACK = 60
BATCH = 256


# Runs, in a process of their own


def epoch(path: Path, order: Any, group_bytes: int | None, seconds: float) -> dict[str, Any]:
    """Goes through an epoch, or as much of it as there is time for."""
    w = wstore.open(path).windows(LOOKBACK, inputs="features", targets="c0")
    total, windows = 0.0, 0
    start = time.perf_counter()
    for b in w.batches(BATCH, order=order, group_bytes=group_bytes, seed=1, reuse=True):
        total += float(b.x[0, 0, 0])
        windows += len(b.x)
        if time.perf_counter() - start > seconds:
            break
    took = time.perf_counter() - start
    return {"windows": windows, "seconds": took, "all": windows == len(w)}


def memmap(path: Path, rows: int, seconds: float) -> dict[str, Any]:
    """The same windows in random order, by slices of a memmap."""
    values = np.load(path.with_suffix(".npy"), mmap_mode="r")
    per = rows - LOOKBACK
    rng = np.random.default_rng(1)
    n = len(values) // rows * per
    out = np.empty((BATCH, LOOKBACK, values.shape[1]), np.float32)
    windows = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for j, i in enumerate(rng.integers(0, n, BATCH).tolist()):
            ticker, row = divmod(i, per)
            out[j] = values[ticker * rows + row : ticker * rows + row + LOOKBACK]
            windows += 1
            if time.perf_counter() - start > seconds:
                break
    return {"windows": windows, "seconds": time.perf_counter() - start, "all": False}


def child(a: argparse.Namespace) -> None:
    if a.cgroup:
        join(a.cgroup)
    path = Path(a.file)
    if a.child == "warm":
        path.read_bytes()
        epoch(path, "blocked", a.group_bytes, 2.0)
    before = read_bytes()
    result = memmap(path, a.rows, a.seconds) if a.child == "memmap" else epoch(path, a.order, a.group_bytes, a.seconds)
    result["read"] = read_bytes() - before
    print(json.dumps(result))


# Around them


def run(a: argparse.Namespace, path: Path, mode: str, order: str, limit: int | None, seconds: float) -> dict[str, Any]:
    drop([path, path.with_suffix(".npy")])
    group = None if limit is None and a.limit == 0 else a.group_bytes
    cgroup = None if limit is None else Limit(limit)
    if cgroup is not None and cgroup.path is None:
        print(f"  {cgroup.why}; the next run has no limit")
    args = ["--child", mode, "--file", str(path), "--rows", str(a.rows), "--seconds", str(seconds), "--order", order]
    if cgroup is not None and cgroup.path is not None:
        args += ["--cgroup", str(cgroup.path)]
    if group is not None and order == "blocked":
        args += ["--group-bytes", str(group)]
    done = subprocess.run([sys.executable, __file__, *args], capture_output=True, text=True)
    hits = "" if cgroup is None else cgroup.failures()
    if cgroup is not None:
        cgroup.close()
    if done.returncode:
        sys.exit(f"{mode}: {done.stderr or f'killed ({done.returncode})'}")
    result: dict[str, Any] = json.loads(done.stdout)
    result["hits"] = hits
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tickers", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=2_500)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--limit", type=int, default=0, help="MiB of memory; half the file by default")
    parser.add_argument("--seconds", type=float, default=600, help="stop an epoch after so long")
    parser.add_argument(
        "--group-bytes", type=int, help="of the blocked order; by default a sixth of the limit, or 128 MiB"
    )
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "wstore-bench")
    for hidden in ("--child", "--file", "--cgroup", "--order"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        child(a)
        return

    from python_reader import build

    a.dir.mkdir(exist_ok=True)
    path = a.dir / f"{a.tickers}x{a.rows}x{a.columns}.wst"
    build(path, a.tickers, a.rows, a.columns)
    size = path.stat().st_size
    limit = a.limit << 20 or size // 2
    a.group_bytes = a.group_bytes or min(128 << 20, limit // 6)
    print(
        f"{path}: {size / 1e6:.0f} MB; limit {limit / 1e6:.0f} MB; groups of {a.group_bytes / 1e6:.0f} MB; "
        f"windows of {LOOKBACK} × {a.columns}, batches of {BATCH}; read_ahead_kb {readahead(path)}"
    )
    rates: dict[str, float] = {}
    for name, mode, order, most, seconds in (
        ("blocked, in memory", "warm", "blocked", None, a.seconds),
        ("blocked, cold, limited", "cold", "blocked", limit, a.seconds),
        ("exact, cold, limited", "cold", "exact", limit, min(10, a.seconds)),
        ("np.memmap, random, cold, limited", "memmap", "", limit, min(10, a.seconds)),
    ):
        r = run(a, path, mode, order, most, seconds)
        rates[name] = rate = r["windows"] / r["seconds"]
        part = "whole epoch" if r["all"] else f"{r['windows']:,} windows"
        hits = f", limit hit {r['hits']}×" if r["hits"] else ""
        print(
            f"{name:34}{rate:12,.0f} windows/s   {part} in {r['seconds']:.1f} s, {r['read'] / 1e6:,.0f} MB read{hits}"
        )
    cold = rates["blocked, cold, limited"]
    print(f"\nblocked cold / in memory   {cold / rates['blocked, in memory']:.2f}")
    print(f"blocked cold / np.memmap   {cold / rates['np.memmap, random, cold, limited']:,.0f}×")


if __name__ == "__main__":
    main()
