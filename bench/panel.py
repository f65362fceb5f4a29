"""The data that every contender gets: one panel in a folder, as plain arrays, as Parquet and, if it is real, as CSV."""

from __future__ import annotations

import gzip
import importlib
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]

ROOT = Path(__file__).resolve().parent.parent


def once(path: Path, write: Callable[[Path], object]) -> Path:
    """A file or folder that is written at most once; what a killed run leaves is never taken for it."""
    if not path.exists():
        part = path.with_name(f"part-{path.name}")
        shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)
        write(part)
        part.rename(path)
    return path


class Panel:
    """Rows of all tickers, one ticker after the other in time order: `values`, float32 (rows, columns), mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        meta = json.loads((folder / "meta.json").read_text())
        self.columns: list[str] = meta["columns"]
        self.target: str = meta["target"]
        self.tickers: list[str] = meta["tickers"]
        self.bounds: I64 = np.array(meta["bounds"], np.int64)
        """Row at which each ticker starts, and the end of the last."""
        self.csv = Path(meta["csv"]) if meta["csv"] else None
        self.npy = folder / "values.npy"
        self.parquet = folder / "panel.parquet"
        """ticker, date and the columns; a row group for each ticker."""

    @property
    def values(self) -> F32:
        mapped: F32 = np.load(self.npy, mmap_mode="r")
        return mapped

    @property
    def target_column(self) -> int:
        return self.columns.index(self.target)

    def dates(self) -> npt.NDArray[np.datetime64]:
        """Of each row, in days."""
        days: npt.NDArray[np.datetime64] = np.load(self.folder / "dates.npy").astype("datetime64[D]")
        return days

    def starts(self, lookback: int) -> I64:
        """The first row of every window, 8 bytes for each: what one holds who has no better index.

        None ends in the last row of a ticker: as in the article, which leaves room for a label of the next row.
        """
        of = [np.arange(a, b - lookback, dtype=np.int64) for a, b in itertools.pairwise(self.bounds)]
        return np.concatenate(of)

    def numbers(self, starts: I64, lookback: int) -> I64:
        """The place in `starts(lookback)` of windows that begin at these rows."""
        before = np.cumsum(np.concatenate([[0], np.maximum(0, np.diff(self.bounds) - lookback)]))
        ticker = np.searchsorted(self.bounds, starts, "right") - 1
        numbers: I64 = before[ticker] + starts - self.bounds[ticker]
        return numbers

    def draw(self, n: int, lookback: int, seed: int, whole: bool = False) -> I64:
        """First rows of windows at random. With `whole` none has a missing cell, so that it is one for everybody."""
        rng = np.random.default_rng(seed)
        starts = self.starts(lookback)
        picked = starts[rng.integers(0, len(starts), n)]
        if self.csv or whole:
            bad = np.concatenate([[0], np.cumsum(np.isnan(self.values).any(axis=1))])
            for _ in range(100):
                missing = bad[picked + lookback] > bad[picked]
                if not missing.any():
                    break
                picked[missing] = starts[rng.integers(0, len(starts), int(missing.sum()))]
        return picked

    def recognise(self, x: Any) -> I64:
        """The rows at which windows of a generated panel begin, (n, lookback, columns)."""
        return np.asarray(x)[:, 0, 0].astype(np.int64)

    def windows(self, starts: I64, lookback: int) -> tuple[F32, F32]:
        """What every contender must give, bit by bit: (n, lookback, columns) and (n, 1)."""
        values = self.values
        x = np.stack([values[s : s + lookback] for s in starts.tolist()])
        return x, x[:, -1, [self.target_column]]


def _save(folder: Path, df: pl.DataFrame, columns: list[str], target: str, csv: str) -> Panel:
    """Of a frame in order: ticker, date, float32 columns."""
    values = df.select(columns).to_numpy()
    np.save(folder / "values.npy", np.ascontiguousarray(values, np.float32))
    np.save(folder / "dates.npy", df["date"].cast(pl.Int32).to_numpy())
    counts = df.group_by("ticker", maintain_order=True).len()
    bounds = np.concatenate([[0], np.cumsum(counts["len"].to_numpy().astype(np.int64))]).tolist()
    meta = {
        "columns": columns,
        "target": target,
        "tickers": counts["ticker"].to_list(),
        "bounds": bounds,
        "csv": csv,
    }
    write_parquet(df, folder / "panel.parquet", bounds)
    (folder / "meta.json").write_text(json.dumps(meta))
    return Panel(folder)


def write_parquet(df: pl.DataFrame, path: Path, bounds: list[int]) -> None:
    """A row group for each ticker. Random floats don't compress, real ones hardly: no compression."""
    pq = importlib.import_module("pyarrow.parquet")
    table = df.to_arrow()
    with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=["ticker"]) as w:
        for a, b in itertools.pairwise(bounds):
            w.write_table(table.slice(a, b - a))


def generate(folder: Path, tickers: int, rows: int, columns: int) -> Panel:
    """Random numbers; column c0 is the number of the row, by which any window can be recognised."""

    def write(part: Path) -> None:
        part.mkdir()
        rng = np.random.default_rng(0)
        values = rng.standard_normal((tickers * rows, columns), np.float32)
        values[:, 0] = np.arange(len(values))
        names = [f"c{i}" for i in range(columns)]
        day = np.tile(np.arange(10_000, 10_000 + rows, dtype=np.int32), tickers)
        of = np.repeat(np.array([f"T{i:06d}" for i in range(tickers)]), rows)
        head = [pl.Series("ticker", of), pl.Series("date", day).cast(pl.Date)]
        df = pl.DataFrame(head + [pl.Series(n, np.ascontiguousarray(values[:, i])) for i, n in enumerate(names)])
        del values
        _save(part, df, names, "c0", "")

    return Panel(once(folder / f"panel-{tickers}x{rows}x{columns}", write))


def sp500(folder: Path, tickers: int | None = None) -> Panel:
    """The real data: daily prices of 505 companies, or of so many."""
    folder = folder.absolute() / f"sp500-5yr{f'-{tickers}' if tickers else ''}"
    csv = folder / "some.csv" if tickers else ROOT / "testdata" / "sp500-5yr.csv.gz"

    def write(part: Path) -> None:
        part.mkdir()
        text = gzip.decompress((ROOT / "testdata" / "sp500-5yr.csv.gz").read_bytes())
        if tickers:
            lines = text.splitlines(keepends=True)
            some = set(sorted({line.rpartition(b",")[2] for line in lines[1:]})[:tickers])
            text = b"".join([lines[0], *(line for line in lines[1:] if line.rpartition(b",")[2] in some)])
            (part / csv.name).write_bytes(text)
        df = pl.read_csv(text, schema_overrides={"Name": pl.String}, try_parse_dates=True)
        df = df.rename({"Name": "ticker"}).sort("ticker", "date")
        columns = ["open", "high", "low", "close", "volume"]
        df = df.select("ticker", "date", pl.col(columns).cast(pl.Float32).fill_null(float("nan")))
        _save(part, df, columns, "close", str(csv))

    return Panel(once(folder, write))
