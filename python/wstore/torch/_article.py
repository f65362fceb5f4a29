"""The dataset of sliding windows that many people have written, with its arguments and items, over a file."""

from __future__ import annotations

import operator
import os
import shutil
import sys
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .. import _store, _write
from .._arguments import Names, names
from .._format import MAGIC
from .._frames import library
from .._store import Store
from ..errors import ArgumentError, ConvertError
from ._dataset import Items, WindowDataset

Order = Callable[[Sequence[str]], list[str]]


class TimeSeriesDataset(Dataset[tuple[Tensor, Tensor]]):
    """Windows of a table's groups. Item i is ``(features, targets)``: float32, (sequence_len, features) and (targets,).

    A drop-in for the class of the same name that holds all windows in a list: the same arguments, length and items, in
    the same order. Groups are sorted, and the rows of each by date; a group of n rows has ``max(0, n - sequence_len)``
    windows of consecutive rows, of which the last row is never the end of one; the targets are those of a window's last
    row (so they are labels that were computed beforehand). Missing values are let through, as NaN. It differs in this:
    infinite values are NaN too, finite ones that float32 can't hold (3.4e38) are an error, and so are two rows of one
    group and date.

    `df`: a polars or pandas DataFrame or anything that :func:`wstore.write` takes, a :class:`wstore.Store`, or a path:
    of a wstore file (`group_col` and `date_col` don't matter), or of CSV, Parquet or Arrow files, or a folder of them,
    which with ``group_col=None`` are a group each. Groups are sorted as polars does, integers by value; those of a file
    by their names' bytes.

    The rows are stored once, in a file that is mapped into memory: at `cache`, where it is kept (and can be given
    instead of `df` the next time; an older one is replaced), or else in the folder of temporary files, until the
    dataset is gone. Workers, forked or spawned, map the same file; the dataset pickles as its path. Items are copies.

    `store` is the file, open: ``dataset.store.windows(…)`` does what this class can't (strides, horizons, splits by
    date). Raises what :func:`wstore.write` and :func:`wstore.open` do.
    """

    def __init__(
        self,
        df: Any,
        feature_cols: Names,
        target_cols: Names,
        sequence_len: int,
        group_col: str | None = "ticker",
        date_col: str = "date",
        *,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self.feature_cols = list(names(feature_cols, "feature_cols", ordered=True))
        self.target_cols = list(names(target_cols, "target_cols", ordered=True))
        self.sequence_len = sequence_len
        for given, what in ((self.feature_cols, "feature_cols"), (self.target_cols, "target_cols")):
            if not given:
                raise ArgumentError(f"{what} must name a column at least")
        columns = list(dict.fromkeys([*self.feature_cols, *self.target_cols]))
        remove: Callable[[], object] = _nothing
        order: Order | None = None
        try:
            if isinstance(df, Store):
                self.store = df
            elif isinstance(df, str | os.PathLike) and _is_store(df):
                self.store = _store.open(df)
            else:
                path, remove = self._place(cache)
                order = _convert(df, path, columns, group_col, date_col)
                self.store = _store.open(path)
            # The row behind the anchor must exist, but nothing of it is used.
            self._windows = self.store.windows(
                sequence_len,
                horizon=[0, 1],
                inputs=self.feature_cols,
                targets=self.target_cols,
                optional=columns,
                breaks=(),
            )
        except BaseException:
            remove()
            raise
        self._batches = WindowDataset(self._windows)
        groups = None if order is None else order(self.store.tickers)
        self._order = None if groups is None or groups == list(self.store.tickers) else self._places(groups)

    def _place(self, cache: str | os.PathLike[str] | None) -> tuple[str, Callable[[], object]]:
        """Where the file is written, and what removes it: of itself when the dataset goes, if it is a temporary one."""
        if cache is not None:
            if os.path.exists(cache) and not _is_store(cache):
                raise FileExistsError(f"cache: {os.fspath(cache)} exists and is no wstore file; it is left as it is")
            return os.fspath(cache), _nothing
        folder = tempfile.mkdtemp(prefix="wstore-")
        return os.path.join(folder, "panel.wst"), weakref.finalize(self, _remove, folder, os.getpid())

    def _places(self, order: Sequence[str]) -> tuple[list[int], list[int]]:
        """The groups' first items, in this order, and what leads from an item to its window's number."""
        counts = np.maximum(self.store.rows - self.sequence_len, 0)
        numbers = np.concatenate(([0], np.cumsum(counts)))
        codes = self.store._codes(order)
        items = np.concatenate(([0], np.cumsum(counts[codes])))[:-1]
        return items.tolist(), (numbers[codes] - items).tolist()

    def __len__(self) -> int:
        return len(self._windows)

    def _number(self, i: int) -> int:
        if self._order is None:
            return i
        n = len(self._windows)
        if not -n <= i < n:
            return i  # refused by number
        i %= n
        items, ahead = self._order
        return i + ahead[bisect_right(items, i) - 1]

    def __getitem__(self, idx: int) -> tuple[Tensor, Tensor]:
        try:
            i = operator.index(idx)
        except TypeError:
            raise ArgumentError(f"an item's number is an int, not {idx!r}") from None
        x, y = self._windows[self._number(i)]
        assert y is not None
        return torch.from_numpy(x.copy()), torch.from_numpy(y[0].copy())

    def __getitems__(self, ids: Sequence[int]) -> Sequence[tuple[Tensor, Tensor]]:
        """The items of a batch, gathered at once; DataLoader calls it, and its default_collate takes them so."""
        x, y = self._batches.__getitems__(ids if self._order is None else [self._number(i) for i in ids]).batch
        return cast(Sequence[tuple[Tensor, Tensor]], Items((x, y[:, 0].contiguous())))

    def __repr__(self) -> str:
        x, y = self._windows.shapes
        assert y is not None
        return f"<TimeSeriesDataset: {len(self):,} of {len(self.store.tickers):,} groups, {x} and {y[1:]}>"


def _is_store(path: str | os.PathLike[str]) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        return f.read(len(MAGIC)) == MAGIC or Path(path).suffix == ".wst"


def _nothing() -> None:
    pass


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked process has the dataset too
        shutil.rmtree(folder, ignore_errors=True)


def _convert(df: Any, path: str, columns: list[str], group: str | None, date: str) -> Order | None:
    """Writes the file. Returns the order of the groups, if it is not that of the file."""
    try:
        if isinstance(df, str | os.PathLike):
            flags = [f"--time={date}", f"--columns={_write.listed(columns)}", "--align=64"]
            if group is not None:
                flags.append(f"--ticker={group}")
            _write.convert([os.fspath(df)], path, flags, force=True)
            return None
        if group is None:
            raise ArgumentError("group_col=None is for a folder of files, one of each group")
        df, order = _order(df, group)
        _write.write(df, path, ticker=group, time=date, columns=columns, align=64, force=True)
        return order
    except ConvertError as e:
        if "on_duplicate" in e.message:
            e.add_note(
                "Here a group has one row of each date. Keep one of several before, such as the last, in polars: "
                f"df.unique(subset=[{group!r}, {date!r}], keep='last', maintain_order=True)"
            )
        raise


def _order(df: Any, group: str) -> tuple[Any, Order | None]:
    """The data, and the order of its groups, if that is not the order of their names' bytes."""
    pl, pd = sys.modules.get("polars"), sys.modules.get("pandas")
    if pl is not None and isinstance(df, pl.DataFrame):
        kind = df.schema.get(group)
        if kind in (pl.Categorical, pl.Enum):
            known = df.select(pl.col(group).unique().sort().cast(pl.String)).to_series().to_list()
            return df, lambda _: known
        return df, _by_value if kind is not None and kind.is_integer() else None
    if pd is not None and isinstance(df, pd.DataFrame):
        if group in df.columns or group in df.index.names:
            found = df[group] if group in df.columns else df.index.get_level_values(group)
            return df, _by_value if pd.api.types.is_integer_dtype(found.dtype) else None
    elif hasattr(df, "__arrow_c_stream__"):
        pa = library("pyarrow", f"reading a {type(df).__name__}")
        df = pa.RecordBatchReader.from_stream(df)  # which can be done once
        if group in df.schema.names:
            return df, _by_value if pa.types.is_integer(df.schema.field(group).type) else None
    return df, None


def _by_value(tickers: Iterable[str]) -> list[str]:
    return sorted(tickers, key=int)
