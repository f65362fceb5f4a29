#!/usr/bin/env python3
"""The Python reader beside what one would write without it, in one run: only the ratios mean something.

    PYTHONPATH=python python bench/python_reader.py [--tickers 10000] [--rows 2500] [--columns 6] [--dir DIR]

Builds a panel file (about 600 MB by default; it is kept in DIR between runs) and the same values as a .npy file.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import wstore

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python" / "tests"))
import encode as spec

L = 60
BATCH = 256


def build(path: Path, tickers: int, rows: int, columns: int) -> np.ndarray:
    """A sealed file of one group and one calendar, and its values as (tickers × rows, columns) in a .npy file."""
    flat = path.with_suffix(".npy")
    if not (path.exists() and flat.exists()):
        rng = np.random.default_rng(0)
        values = rng.standard_normal((tickers * rows, columns), np.float32)
        np.save(flat, values)
        names = [f"T{i:06d}" for i in range(tickers)]
        panel = spec.Panel([spec.Group("features", [spec.Col(f"c{i}") for i in range(columns)])], align_log2=12)
        a, size = 4096, rows * columns * 4
        calendar = np.arange(rows, dtype="<i8").tobytes()
        start = spec.align(spec.align(8192, a) + len(calendar), a)
        offsets = [start + i * spec.align(size, a) for i in range(tickers)]
        sums: list[int] = []
        schema = spec.schema(panel)
        with path.open("wb") as f:
            f.write(bytes(8192))
            f.write(calendar)
            for i, at in enumerate(offsets):
                raw = values[i * rows : (i + 1) * rows].tobytes()
                sums += spec.chunk_sums(raw)
                f.seek(at)
                f.write(raw)
            joined = "".join(names).encode()
            ends = np.arange(1, tickers + 1) * 7
            zeros = [0] * tickers
            sections = [
                ("BLKS", spec.u64(0, tickers, *offsets, *([rows] * tickers), *sums)),
                ("CALS", spec.u64(1, 8192, rows, rows, *spec.chunk_sums(calendar))),
                ("DGST", bytes(32)),
                ("SCHM", schema),
                ("TICK", spec.u64(tickers, *ends.tolist(), *zeros, *zeros, *([rows] * tickers)) + joined),
                ("WIDX", bytes(3)),
            ]
            table = b""
            for tag, b in sections:
                f.seek(spec.align(f.tell(), 8))
                entry = struct.pack("<4sIQQQQ", tag.encode(), 1, 0, f.tell(), len(b), spec.xxh(b))
                f.write(b)
                table += entry
            catalog = struct.pack("<II", len(sections), 0) + table
            at = spec.align(f.tell(), 8)
            f.seek(at)
            f.write(catalog)
            f.seek(0)
            f.write(spec.slot(12, at + len(catalog), at, catalog))
    out: np.ndarray = np.load(flat, mmap_mode="r")
    return out


def best(f: Callable[[], object], seconds: float = 1.0, least: int = 5) -> float:
    """The time of a call: the least of many, since what else runs on the machine only adds."""
    times: list[float] = []
    while sum(times) < seconds or len(times) < least:
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return min(times)


def each(f: Callable[[int], object], ids: list[int]) -> float:
    """The time of one call, of many with different numbers."""

    def loop() -> None:
        for i in ids:
            f(i)

    return best(loop) / len(ids)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tickers", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=2_500)
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "wstore-bench")
    a = parser.parse_args()
    a.dir.mkdir(exist_ok=True)
    path = a.dir / f"{a.tickers}x{a.rows}x{a.columns}.wst"
    values = build(path, a.tickers, a.rows, a.columns)
    print(f"{path}: {path.stat().st_size / 1e6:.0f} MB, {a.tickers} tickers × {a.rows} rows × {a.columns} columns")

    # Opening, and being ready to give any window of 60 rows
    per = a.rows - L

    def baseline_open() -> tuple[np.ndarray, np.ndarray]:
        m = np.load(path.with_suffix(".npy"), mmap_mode="r")
        starts = (np.arange(a.tickers, dtype=np.int64)[:, None] * a.rows + np.arange(per, dtype=np.int64)).ravel()
        return m, starts

    t_open = best(lambda: wstore.open(path).windows(L, inputs="features", targets="c0"))
    t_base = best(baseline_open)
    print(
        f"open + windows {t_open * 1e3:.2f} ms   "
        f"np.load(mmap) + int64 starts {t_base * 1e3:.2f} ms (×{t_base / t_open:.1f})"
    )

    store = wstore.open(path)
    w = store.windows(L, inputs="features", targets="c0")
    plain = store.windows(L, inputs="features", targets=())
    _, starts = baseline_open()
    rng = np.random.default_rng(1)
    ids = rng.integers(0, len(w), 20_000)
    listed = ids.tolist()
    flat = np.asarray(values)

    # One window
    by_number = starts.tolist()[:: max(1, len(starts) // 2_000_000)]
    some = [i % len(by_number) for i in listed]
    t_one = each(lambda i: w[i], listed)
    t_one_x = each(lambda i: plain[i], listed)
    t_memmap = each(lambda i: values[by_number[i] : by_number[i] + L], some)
    t_array = each(lambda i: flat[by_number[i] : by_number[i] + L], some)
    print(
        f"w[i] {t_one * 1e9:.0f} ns, x only {t_one_x * 1e9:.0f} ns   "
        f"np.memmap slice {t_memmap * 1e9:.0f} ns (×{t_memmap / t_one:.2f}, ×{t_memmap / t_one_x:.2f})   "
        f"ndarray slice {t_array * 1e9:.0f} ns"
    )

    # Batches, random. The bound: as many bytes of the same file, copied in pieces that do not overlap
    batches = [ids[i : i + BATCH] for i in range(0, len(ids), BATCH)]
    size = L * a.columns
    mapped = np.asarray(np.memmap(path, np.float32, "r"))
    source = mapped[: mapped.size // size * size].reshape(-1, size)
    blocks = [rng.integers(0, len(source), BATCH) for _ in batches]
    into = np.empty((BATCH, size), np.float32)
    out = np.empty((BATCH, L, a.columns), np.float32)
    views = np.lib.stride_tricks.sliding_window_view(flat, (L, a.columns))[:, 0]
    flat_starts = np.asarray(starts)

    def over(f: Callable[[np.ndarray], object], of: list[np.ndarray]) -> float:
        full = [b for b in of if len(b) == BATCH]

        def all_batches() -> None:
            for b in full:
                f(b)

        return best(all_batches) / (len(full) * BATCH)

    def loop(b: np.ndarray) -> None:
        for j, i in enumerate(b.tolist()):
            s = flat_starts[i]
            out[j] = flat[s : s + L]

    results = {
        "gather(ids)": over(lambda b: plain.gather(b), batches),
        "gather(ids, out)": over(lambda b: plain.gather(b, out=out), batches),
        "gather(ids), x and y": over(lambda b: w.gather(b), batches),
        "copies of whole windows": over(lambda b: np.take(source, b, axis=0), blocks),
        "copies of whole windows, out": over(lambda b: np.take(source, b, axis=0, out=into, mode="clip"), blocks),
        "sliding_window_view[starts[ids]]": over(lambda b: views[flat_starts[b]], batches),
        "Python loop of slices": over(loop, batches),
    }
    bound = results["copies of whole windows, out"]
    for what, t in results.items():
        gb = size * 4 / t / 1e9
        print(f"{what:36s}{1 / t / 1e3:8.0f} k windows/s  {gb:5.1f} GB/s   {bound / t:.2f} of copying")
    # The same windows, from the store and from the array.
    codes, _, rows = plain.locate(ids[:BATCH])
    same = views[codes * a.rows + rows - (L - 1)]
    assert np.array_equal(plain.gather(ids[:BATCH])[0], same), "gather and the baseline differ"


if __name__ == "__main__":
    main()
