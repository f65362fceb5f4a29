"""A panel of any size, made row by row: what a data vendor would deliver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import wstore

COLUMNS = 60
DAYS = 2500


def make(path: Path, megabytes: float) -> None:
    """Writes so many megabytes of features, and their target, as a file of windows.

    The table never is in memory: its pieces go to the writer as they are made.
    """
    tickers = max(2, round(megabytes * 1e6 / (4 * DAYS * (COLUMNS + 1))))
    names = [f"f{i:02d}" for i in range(COLUMNS)]
    types = [("ticker", pa.string()), ("date", pa.date32()), *((n, pa.float32()) for n in names), ("y", pa.float32())]
    schema = pa.schema(types)
    dates = pa.array(np.busday_offset("2015-01-01", np.arange(DAYS), roll="forward"), pa.date32())

    def pieces() -> Iterator[pa.RecordBatch]:
        for t in range(tickers):
            x, y = one_ticker(np.random.default_rng(t))
            columns = [pa.array([f"T{t:05d}"] * DAYS), dates, *(pa.array(x[:, i]) for i in range(COLUMNS)), pa.array(y)]
            yield pa.record_batch(columns, schema=schema)

    # What y holds lies one row ahead: splits keep that much apart.
    wstore.write(
        pa.RecordBatchReader.from_batches(schema, pieces()), path, time="date", target={"y": 1}, memory="256MiB"
    )


def one_ticker(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features (DAYS, COLUMNS), and the next day's return (DAYS,), of which the last 20 days tell a little."""
    x = rng.standard_normal((DAYS, COLUMNS), np.float32)
    signal = np.convolve(x[:, 0] - x[:, 1], np.full(20, 0.1, np.float32))[:DAYS]
    return x, (signal + rng.standard_normal(DAYS, np.float32)).astype(np.float32)
