#!/usr/bin/env python3
"""`wstore convert` beside the polars job that it replaces, on CSV and on Parquet: time, and peak memory.

    make build; PYTHONPATH=python python bench/convert.py [--quick] [--dir DIR] [--write]

The job reads the file, sorts by ticker and date, splits by ticker, and saves an array of float32 for each. The two run
in turn, each time as a process of its own, and a ratio is the median over the pairs. Time is that of the whole process,
for polars without the start of Python and its imports. Memory is the most that was resident.

The data, 500 tickers × 1,259 rows × 61 columns in order of time, are made once in DIR, which needs 1.5 GB; without it
they are removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

# Nothing large is imported here: the peak memory of a process that starts another counts as the other's.

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"csv": "CSV", "parquet": "Parquet"}


# In processes of their own


def generate(a: argparse.Namespace) -> None:
    """Rows by date, then ticker, as daily data are collected: numbers of six decimals, of all sizes up to a million."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    n = a.tickers * a.rows
    day = np.repeat(np.arange(15_000, 15_000 + a.rows, dtype=np.int32), a.tickers)
    ticker = np.tile(np.array([f"T{i:04d}" for i in range(a.tickers)]), a.rows)
    df = pl.DataFrame([pl.Series("date", day).cast(pl.Date), pl.Series("ticker", ticker)])
    df = df.with_columns(
        pl.Series(f"c{i}", np.round(rng.standard_normal(n) * 10.0 ** (i % 3), 6)) for i in range(a.columns)
    )
    df.write_csv(a.source.with_suffix(".csv"))
    df.write_parquet(a.source.with_suffix(".parquet"))


def polars(a: argparse.Namespace) -> None:
    import numpy as np
    import polars as pl

    start = time.perf_counter()
    a.out.mkdir()
    read = pl.read_csv if a.source.suffix == ".csv" else pl.read_parquet
    df = read(a.source).sort("ticker", "date")
    columns = [c for c in df.columns if c not in ("ticker", "date")]
    for (name,), rows in df.group_by("ticker", maintain_order=True):
        np.save(a.out / f"{name}.npy", rows.select(columns).to_numpy().astype(np.float32))
    print(time.perf_counter() - start)


def compare(a: argparse.Namespace) -> None:
    """That both made the same: `out` holds the arrays of polars, `source` is the store."""
    import numpy as np

    import wstore

    store = wstore.open(a.source)
    if sorted(store.tickers) != sorted(f.stem for f in a.out.iterdir()):
        sys.exit("the store and the arrays differ: other tickers")
    for ticker in store.tickers[:: max(1, len(store.tickers) // 20)]:
        want = np.load(a.out / f"{ticker}.npy")
        got = np.stack([store.series(ticker, c) for c in store.columns], axis=1)
        if got.tobytes() != np.ascontiguousarray(want).tobytes():
            sys.exit(f"the store and the arrays differ: {ticker}")


CHILDREN: dict[str, Callable[[argparse.Namespace], None]] = {
    "generate": generate,
    "polars": polars,
    "compare": compare,
}


# Around them


def run(command: list[str]) -> tuple[float, float, str]:
    """Seconds, bytes of memory at most, and what it printed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        p = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(p.pid, 0)
        took = time.perf_counter() - start
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if p.returncode:
            sys.exit(f"{' '.join(command)}: {err.read().strip() or f'ended with {p.returncode}'}")
        return took, usage.ru_maxrss * 1024.0, out.read()


def child(mode: str, a: argparse.Namespace, source: Path, out: Path) -> tuple[float, float, str]:
    size = [f"--{k}={getattr(a, k)}" for k in ("tickers", "rows", "columns")]
    return run([sys.executable, __file__, "--child", mode, "--source", str(source), "--out", str(out), *size])


def measure(a: argparse.Namespace, folder: Path) -> list[dict[str, float | str]]:
    base = folder / f"panel-{a.tickers}x{a.rows}x{a.columns}"
    if not all(base.with_suffix(f".{f}").exists() for f in NAMES):
        print(f"making {base}.csv and .parquet", file=sys.stderr)
        part = folder / "part"
        child("generate", a, part, part)
        for f in NAMES:
            part.with_suffix(f".{f}").rename(base.with_suffix(f".{f}"))
    arrays, store = folder / "arrays", folder / "convert.wst"
    results: list[dict[str, float | str]] = []
    for f in a.formats.split(","):
        source = base.with_suffix(f".{f}")
        convert = [a.wstore, "convert", str(source), "-o", str(store), "--ticker", "ticker", "--time", "date"]
        pairs = []
        for turn in range(a.turns + 1):
            shutil.rmtree(arrays, ignore_errors=True)
            store.unlink(missing_ok=True)
            _, theirs_most, printed = child("polars", a, source, arrays)
            ours, ours_most, _ = run(convert)
            print(f"{source.name}: polars {float(printed):.2f} s, wstore {ours:.2f} s", file=sys.stderr)
            if turn:  # the first finds the file not in memory
                pairs.append((float(printed), theirs_most, ours, ours_most))
            else:
                child("compare", a, store, arrays)
        shutil.rmtree(arrays)
        store.unlink()
        results.append(
            {
                "format": f,
                "bytes": source.stat().st_size,
                "polars": median(p[0] for p in pairs),
                "wstore": median(p[2] for p in pairs),
                "faster": median(p[0] / p[2] for p in pairs),
                "polars memory": median(p[1] for p in pairs),
                "wstore memory": median(p[3] for p in pairs),
                "memory": median(p[3] / p[1] for p in pairs),
            }
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small panel: whether all of it works")
    parser.add_argument("--formats", default="csv,parquet")
    parser.add_argument("--tickers", type=int, default=500)
    parser.add_argument("--rows", type=int, default=1259)
    parser.add_argument("--columns", type=int, default=61)
    parser.add_argument("--turns", type=int, default=7, help="how many pairs")
    parser.add_argument("--dir", type=Path, help="where files are made, and kept; else a temporary folder")
    parser.add_argument("--write", action="store_true", help="write the table into bench/README.md")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    parser.add_argument("--wstore", default=os.environ.get("WSTORE", str(ROOT / "bin" / "wstore")))
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    for hidden in ("--source", "--out"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        CHILDREN[a.child](a)
        return
    if not Path(a.wstore).exists():
        sys.exit(f"{a.wstore} is not there: run make build, or give --wstore")
    if unknown := set(a.formats.split(",")) - set(NAMES):
        sys.exit(f"--formats {','.join(sorted(unknown))}: there are csv and parquet")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the files go, too
    if a.quick:
        a.tickers, a.rows, a.columns, a.turns = 20, 100, 5, 1
    with tempfile.TemporaryDirectory(prefix="wstore-bench-") as temp:
        folder = a.dir or Path(temp)
        folder.mkdir(parents=True, exist_ok=True)
        results = measure(a, folder)
        from machine import describe
        from report import convert_table, write

        machine = describe(folder, ("polars", "numpy"))
    if a.json:
        a.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    size = f"{a.tickers:,} tickers × {a.rows:,} rows × {a.columns} columns"
    text = f"{size}. Machine: {machine}.\n\n{convert_table(results)}"
    print(text)
    if a.write:
        write(ROOT / "bench" / "README.md", text, "convert")


if __name__ == "__main__":
    main()
