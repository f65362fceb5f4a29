#!/usr/bin/env python3
"""How well the orders mix, on real data and on simulated ones; docs/orders.md says what the columns mean.

make build; PYTHONPATH=python python bench/order_quality.py [--wstore bin/wstore] [--epochs 3]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import wstore
from wstore import orders
from wstore.quality import SPANS, OrderQuality, order_quality, quality, simulate

ROOT = Path(__file__).resolve().parent.parent
BATCH = 256
LOOKBACK = 60


def averaged(report: Callable[[int], OrderQuality], epochs: int) -> OrderQuality:
    """The mean over epochs: a few hundred means of batches alone vary by some percent."""
    every = [report(e) for e in range(epochs)]
    variance: dict[int, float | None] = {}
    for k in SPANS:
        known = [v for q in every if (v := q.variance[k]) is not None]
        variance[k] = float(np.mean(known)) if known else None
    first = every[0]
    rest = (float(np.mean([getattr(q, name) for q in every])) for name in ("lag1", "tickers", "overlap"))
    return OrderQuality(first.order, first.windows, first.batch, variance, *rest)


def returns(w: wstore.Windows, rows: int) -> np.ndarray:
    """The return of the close over so many rows up to the anchor, cut at ±50 %, a number for each window."""
    out = np.empty(len(w))
    for at in range(0, len(w), 1 << 14):
        x, _ = w.gather(range(at, min(len(w), at + (1 << 14))))
        close = x[:, :, w.inputs.index("close")].astype(float)
        out[at : at + len(close)] = close[:, -1] / close[:, -1 - rows] - 1
    return np.clip(out, -0.5, 0.5)


def real(cli: Path, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sp500.wst"
        source = ROOT / "testdata" / "sp500-5yr.csv.gz"
        subprocess.run([cli, "convert", source, "-o", path, "--ticker", "Name"], check=True, capture_output=True)
        store = wstore.open(path)
        w = store.windows(LOOKBACK, horizon=1, targets="close")
        print(f"\nsp500-5yr: {len(w):,} windows of {LOOKBACK} days, {len(store.tickers)} tickers")
        sizes: list[tuple[str, int | None]] = [(name, None) for name in ("exact", "sequential")]
        sizes += [("blocked", size) for size in (128 << 20, 2 << 20, 512 << 10)]
        for what, values in (("return of 20 days", returns(w, 20)), ("size of the day's move", abs(returns(w, 1)))):
            print(f"\n{what}\n{OrderQuality.head()}")
            for name, size in sizes:

                def one(e: int, name: str = name, size: int | None = size, values: np.ndarray = values) -> OrderQuality:
                    return order_quality(w, order=name, batch=BATCH, values=values, epoch=e, group_bytes=size)  # type: ignore[arg-type]

                print(averaged(one, epochs).row())


def simulated(tickers: int, rows: int, shares: tuple[float, ...], epochs: int) -> None:
    values = simulate(tickers, rows, shares).ravel()
    n = values.size
    ticker, row = np.divmod(np.arange(n), rows)
    position = ticker * (rows + LOOKBACK) + row
    parts = "ticker {:.0%}, market {:.0%}, drift {:.0%}, noise {:.0%}".format(*shares)
    print(f"\nsimulated: {n:,} windows, {tickers:,} tickers × {rows:,}; variance: {parts}")
    print(OrderQuality.head())

    def blocked(chunk: int, per_group: int) -> Callable[[int], orders.Order]:
        return lambda e: orders.Blocked(n, 0, e, chunk=chunk, chunks_per_group=per_group)

    cases: list[tuple[str, Callable[[int], orders.Order]]] = [
        ("exact", lambda e: orders.Exact(n, 0, e)),
        ("sequential", lambda e: orders.Sequential(n)),
        (f"32 whole tickers at a time ({32 * rows / n:.1%})", blocked(rows, 32)),
    ]
    for chunk, per_group in ((1024, 128), (256, 512), (256, 2048), (256, 8192)):
        share = min(1, chunk * per_group / n)
        cases.append((f"blocked, {per_group} × {chunk} ({share:.1%})", blocked(chunk, per_group)))
    for name, order in cases:

        def one(e: int, name: str = name, order: Callable[[int], orders.Order] = order) -> OrderQuality:
            return quality(order(e), values, ticker, position, LOOKBACK, BATCH, name)

        print(averaged(one, 1 if name == "sequential" else epochs).row())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wstore", type=Path, default=Path(os.environ.get("WSTORE", ROOT / "bin" / "wstore")))
    parser.add_argument("--epochs", type=int, default=3)
    a = parser.parse_args()
    if not a.wstore.exists():
        sys.exit(f"{a.wstore} is not there: run make build, or give --wstore")
    print(f"batches of {BATCH}, mean of {a.epochs} epochs")
    real(a.wstore, a.epochs)
    simulated(1000, 4096, (0.05, 0.05, 0.2, 0.7), a.epochs)
    simulated(1000, 4096, (0.2, 0.1, 0.3, 0.4), a.epochs)


if __name__ == "__main__":
    main()
