"""A file large enough to weigh."""

from __future__ import annotations

import struct
from pathlib import Path

import encode as spec
import numpy as np


def large_file(folder: Path) -> Path:
    """64 MB: 160 tickers × 10,000 rows × 10 columns, written as the specification says, without a digest; once."""
    tickers, rows, columns = 160, 10_000, 10
    path = folder / "large.wst"
    if path.exists():
        return path
    panel = spec.Panel([spec.Group("features", [spec.Col(f"c{i}") for i in range(columns)])], align_log2=12)
    calendar = np.arange(rows, dtype="<i8").tobytes()
    size = spec.align(4 * rows * columns, 4096)
    start = spec.align(8192 + len(calendar), 4096)
    offsets = [start + i * size for i in range(tickers)]
    rng = np.random.default_rng(0)
    sums: list[int] = []
    with path.open("wb") as f:
        f.seek(8192)
        f.write(calendar)
        for at in offsets:
            block = rng.standard_normal(rows * columns, np.float32).tobytes()
            sums += spec.chunk_sums(block)
            f.seek(at)
            f.write(block)
        names = b"".join(b"T%03d" % i for i in range(tickers))
        zeros = [0] * tickers
        sections = {
            b"BLKS": spec.u64(0, tickers, *offsets, *([rows] * tickers), *sums),
            b"CALS": spec.u64(1, 8192, rows, rows, *spec.chunk_sums(calendar)),
            b"DGST": bytes(32),
            b"SCHM": spec.schema(panel),
            b"TICK": spec.u64(tickers, *range(4, 4 * tickers + 4, 4), *zeros, *zeros, *([rows] * tickers)) + names,
            b"WIDX": bytes(3),
        }
        table = b""
        for tag, b in sections.items():
            f.seek(spec.align(f.tell(), 8))
            table += struct.pack("<4sIQQQQ", tag, 1, 0, f.tell(), len(b), spec.xxh(b))
            f.write(b)
        catalog = struct.pack("<II", len(sections), 0) + table
        f.seek(spec.align(f.tell(), 8))
        at = f.tell()
        f.write(catalog)
        f.seek(0)
        f.write(spec.slot(12, at + len(catalog), at, catalog))
    return path
