"""TimeSeriesDataset: the same windows, in the same order, as a list of slices made by the rules of the original."""

from __future__ import annotations

import copy
import gc
import math
import multiprocessing
import os
import pickle
import tempfile
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch.utils.data import DataLoader, Subset

import wstore
from wstore.torch import TimeSeriesDataset

DATA = Path(__file__).parents[3] / "testdata"
PRICES = ["open", "high", "low", "close", "volume"]


@pytest.fixture(autouse=True)
def _tool(cli: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSTORE", str(cli))
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))


@pytest.fixture(scope="module")
def article() -> pl.DataFrame:
    """100 tickers of 470 days, in an order that is not that of the windows."""
    parts = [pl.read_csv(p, try_parse_dates=True) for p in sorted((DATA / "article-100x470").glob("*.csv"))]
    return pl.concat(parts, how="vertical_relaxed").sample(fraction=1.0, shuffle=True, seed=1)


@pytest.fixture(scope="module")
def sp500() -> pl.DataFrame:
    """505 tickers of up to five years, with a few blank cells."""
    return pl.read_csv(DATA / "sp500-5yr.csv.gz", try_parse_dates=True)


class Reference:
    """Each group's rows sorted by date, as float32. Of n rows, the windows that begin at row 0 to n - length - 1, each
    with the targets of its last row.
    """

    def __init__(
        self,
        df: pl.DataFrame,
        features: list[str],
        targets: list[str],
        length: int,
        group: str = "Name",
        date: str = "date",
    ) -> None:
        self.length = length
        self.groups: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]] = []
        self.items: list[tuple[int, int]] = []
        for (_,), rows in df.sort(group, date).group_by([group], maintain_order=True):
            x = rows.select(features).to_numpy().astype(np.float32)
            y = rows.select(targets).to_numpy().astype(np.float32)
            if len(x) > length:
                self.items += [(len(self.groups), i) for i in range(len(x) - length)]
                self.groups.append((x, y))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        group, first = self.items[i]
        x, y = self.groups[group]
        return x[first : first + self.length], y[first + self.length - 1]


def same(a: npt.NDArray[np.float32] | torch.Tensor, b: npt.NDArray[np.float32]) -> bool:
    """The same bits, but that one NaN is as good as another, and infinity is one."""
    got = np.asarray(a)
    want = np.where(np.isfinite(b), b, np.float32(math.nan))
    return got.dtype == np.float32 and got.shape == want.shape and np.array_equal(got, want, equal_nan=True)


def check_all(dataset: TimeSeriesDataset, want: Reference, each: int = 8192) -> None:
    """Every item, group by group of the reference and batch by batch of the dataset."""
    assert len(dataset) == len(want)
    at = 0
    for x, y in want.groups:
        n = len(x) - want.length
        windows = sliding_window_view(x, want.length, axis=0)[:n].transpose(0, 2, 1)
        for i in range(0, n, each):
            items = dataset.__getitems__(range(at + i, at + min(n, i + each)))
            assert same(torch.stack([f for f, _ in items]), windows[i : i + each])
            assert same(torch.stack([t for _, t in items]), y[want.length - 1 + i :][: len(items)])
        at += n
    assert at == len(dataset)


def test_every_item_of_the_article(article: pl.DataFrame) -> None:
    dataset = TimeSeriesDataset(article, PRICES, ["close"], 60, group_col="Name")
    want = Reference(article, PRICES, ["close"], 60)
    assert len(dataset) == len(want) == 41_000
    for i in range(41_000):
        x, y = dataset[i]
        assert same(x, want[i][0])
        assert same(y, want[i][1])
    check_all(dataset, want)
    assert (x.shape, y.shape, x.dtype, y.dtype) == ((60, 5), (1,), torch.float32, torch.float32)


def test_every_item_of_real_data(sp500: pl.DataFrame) -> None:
    assert sum(sp500[c].null_count() for c in PRICES) == 27
    dataset = TimeSeriesDataset(sp500, PRICES, ["close", "open"], 60, group_col="Name")
    assert len(dataset) == 588_756
    check_all(dataset, Reference(sp500, PRICES, ["close", "open"], 60))


@pytest.mark.parametrize(
    "features", [["close"], ["low", "open"], ["open", "low", "volume"], ["volume", "open", "high"]]
)
@pytest.mark.parametrize("length", [1, 7, 469, 470, 471])
def test_columns_and_lengths(features: list[str], length: int, article: pl.DataFrame) -> None:
    df = article.filter(pl.col("Name") < "AD")
    dataset = TimeSeriesDataset(df, features, ["high", "close"], length, group_col="Name")
    want = Reference(df, features, ["high", "close"], length)
    assert len(want) == max(0, 470 - length) * df["Name"].n_unique()
    check_all(dataset, want)


def test_a_name_instead_of_a_list(article: pl.DataFrame) -> None:
    df = article.filter(pl.col("Name") < "AB")
    dataset = TimeSeriesDataset(df, "close", "open", 5, "Name", "date")
    check_all(dataset, Reference(df, ["close"], ["open"], 5))
    assert (dataset.feature_cols, dataset.target_cols, dataset.sequence_len) == (["close"], ["open"], 5)


def uneven(groups: Any = ("b", "a", "c", "B", "ä")) -> pl.DataFrame:
    """Groups of 0 to 4 rows and more, with missing and infinite cells."""
    r = np.random.default_rng(3)
    sizes = [5, 3, 1, 9, 4]
    n = sum(sizes)
    day = np.concatenate([r.permutation(s) for s in sizes])
    x = r.normal(size=(n, 3))
    x[4, 1], x[9, 2], x[11, 0], x[15, 1] = np.nan, np.inf, -np.inf, 1e38
    return pl.DataFrame(
        {
            "ticker": [g for g, s in zip(groups, sizes, strict=True) for _ in range(s)],
            "date": np.datetime64("2020-02-27") + day,
            "u": x[:, 0],
            "v": x[:, 1],
            "w": x[:, 2],
            "k": r.integers(-(2**40), 2**40, n),
            "flag": r.random(n) < 0.5,
        }
    ).with_columns(u=pl.when(pl.col("u") > 1).then(None).otherwise(pl.col("u")))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 8, 9, 50])
def test_missing_short_and_infinite(length: int) -> None:
    df = uneven()
    features = ["u", "v", "k", "flag"]
    dataset = TimeSeriesDataset(df, features, ["w", "u"], length)
    want = Reference(df, features, ["w", "u"], length, "ticker")
    check_all(dataset, want)
    for i in range(len(want)):
        assert same(dataset[i][0], want[i][0])
        assert same(dataset[i][1], want[i][1])
    if length < 9:
        assert same(dataset[-1][0], want[len(want) - 1][0])
    for wrong in (len(dataset), -len(dataset) - 1):
        with pytest.raises(IndexError):
            dataset[wrong]


@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt8, pl.Categorical, pl.Enum(["7", "10", "200", "9", "100"])])
def test_the_order_of_groups(kind: Any) -> None:
    """Integers by value, categories in their own order, as polars sorts them; text by its bytes."""
    names = ["10", "9", "100", "7", "200"]
    df = uneven(names).with_columns(pl.col("ticker").cast(kind))
    dataset = TimeSeriesDataset(df, ["u", "v"], ["w"], 2)
    want = Reference(df, ["u", "v"], ["w"], 2, "ticker")
    check_all(dataset, want)
    for i in (*range(len(want)), -1, -len(want)):
        assert same(dataset[i][0], want[i][0])
    if kind in (pl.Int64, pl.UInt8):
        for other in (
            df.to_pandas(),
            df.to_pandas().set_index(["date", "ticker"]),
            df.to_arrow(),
            duckdb.from_arrow(df),
        ):
            check_all(TimeSeriesDataset(other, ["u", "v"], ["w"], 2), want)
    assert len(pickle.loads(pickle.dumps(dataset))) == len(want)


@pytest.mark.parametrize("date", [pl.Date, pl.Datetime("ms"), pl.Datetime("ns"), pl.Datetime("us", "UTC"), pl.String])
def test_dates(date: Any) -> None:
    df = uneven().with_columns(pl.col("date").cast(pl.Date).cast(date)).rename({"date": "day"})
    dataset = TimeSeriesDataset(df, ["u", "v"], ["w"], 2, date_col="day")
    check_all(dataset, Reference(df, ["u", "v"], ["w"], 2, "ticker", "day"))


def test_tables_of_other_libraries() -> None:
    df = uneven()
    want = Reference(df, ["u", "v"], ["w"], 3, "ticker")
    for other in (df.to_pandas(), df.to_pandas().set_index("date"), df.to_arrow(), duckdb.from_arrow(df)):
        check_all(TimeSeriesDataset(other, ["u", "v"], ["w"], 3), want)


def test_paths(article: pl.DataFrame, tmp_path: Path) -> None:
    df = article.filter(pl.col("Name") < "AC")
    want = Reference(df, PRICES, ["close"], 60)
    df.write_csv(tmp_path / "long.csv")
    wstore.write(df, tmp_path / "all.wst", ticker="Name")
    os.rename(tmp_path / "all.wst", tmp_path / "without a suffix")
    folder = tmp_path / "folder"
    folder.mkdir()
    for (name,), rows in df.group_by(["Name"]):
        rows.drop("Name").write_csv(folder / f"{name}.csv")
    for path, group in (
        (tmp_path / "long.csv", "Name"),
        (str(tmp_path / "without a suffix"), "Name"),
        (folder, None),
    ):
        check_all(TimeSeriesDataset(path, PRICES, ["close"], 60, group), want)
    store = wstore.open(tmp_path / "without a suffix")
    dataset = TimeSeriesDataset(store, PRICES, "close", 60)
    assert dataset.store is store
    check_all(dataset, want)
    with pytest.raises(wstore.ConvertError) as e:
        TimeSeriesDataset(tmp_path / "absent.csv", PRICES, ["close"], 60)
    assert e.value.code == 4


def test_a_file_with_breaks(tmp_path: Path) -> None:
    """The original knows no breaks."""
    df = uneven()
    wstore.write(df, tmp_path / "gaps.wst", columns=["u", "v", "w"], breaks={"flag": "flag"})
    check_all(TimeSeriesDataset(tmp_path / "gaps.wst", ["u"], ["w"], 3), Reference(df, ["u"], ["w"], 3, "ticker"))


def test_errors(tmp_path: Path) -> None:
    df = uneven()
    with pytest.raises(wstore.ConvertError, match="twice") as e:
        TimeSeriesDataset(pl.concat([df, df[:1]]), ["u"], ["w"], 3)
    assert "df.unique(subset=['ticker', 'date']" in e.value.__notes__[0]
    with pytest.raises(wstore.NotFoundError, match="no column 'x'"):
        TimeSeriesDataset(df, ["x"], ["w"], 3)
    with pytest.raises(wstore.NotFoundError, match="no column 'Ticker'; did you mean 'ticker'"):
        TimeSeriesDataset(df, ["u"], ["w"], 3, group_col="Ticker")
    with pytest.raises(wstore.ArgumentError, match="feature_cols must name"):
        TimeSeriesDataset(df, [], ["w"], 3)
    with pytest.raises(wstore.ArgumentError, match="target_cols must name"):
        TimeSeriesDataset(df, ["u"], [], 3)
    with pytest.raises(wstore.ArgumentError, match="folder"):
        TimeSeriesDataset(df, ["u"], ["w"], 3, group_col=None)
    with pytest.raises(wstore.ArgumentError):
        TimeSeriesDataset(df, ["u", "u"], ["w"], 3)
    with pytest.raises(wstore.ArgumentError):
        TimeSeriesDataset(df, ["u"], ["w"], 0)
    for wrong in (slice(3), "a", 0.5):
        with pytest.raises(wstore.ArgumentError, match="an item's number is an int, not"):
            TimeSeriesDataset(df, ["u"], ["w"], 3)[wrong]  # type: ignore[index]
    with pytest.raises(wstore.ConvertError, match="larger than any float32"):
        TimeSeriesDataset(df.with_columns(u=pl.lit(1e300)), ["u"], ["w"], 3)
    with pytest.raises(wstore.ArgumentError, match=r"collect\(\)"):
        TimeSeriesDataset(df.lazy(), ["u"], ["w"], 3)
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(FileExistsError, match="no wstore file"):
        TimeSeriesDataset(df, ["u"], ["w"], 3, cache=other)
    assert other.read_text() == "mine"
    assert os.listdir(tempfile.gettempdir()) == []


# The file


def test_the_file_lives_as_long_as_the_dataset(tmp_path: Path) -> None:
    dataset = TimeSeriesDataset(uneven(), ["u"], ["w"], 3)
    path = Path(dataset.store.path)
    subset = Subset(dataset, [0, 1])
    item = dataset[0]
    del dataset
    gc.collect()
    assert path.exists()
    assert subset[0][0].equal(item[0]) or item[0].isnan().any()
    del subset
    gc.collect()
    assert not path.parent.exists()

    kept = tmp_path / "kept.wst"
    first = TimeSeriesDataset(uneven(), ["u"], ["w"], 3, cache=kept)
    second = TimeSeriesDataset(uneven(), ["v"], ["w"], 3, cache=kept)  # replaces it; the first goes on
    assert len(first) == len(second)
    assert first[0][0].shape == second[0][0].shape
    del first, second
    gc.collect()
    check_all(TimeSeriesDataset(kept, ["v"], ["w"], 3), Reference(uneven(), ["v"], ["w"], 3, "ticker"))


def test_copies_and_pickles(article: pl.DataFrame) -> None:
    dataset = TimeSeriesDataset(article, PRICES, ["close"], 60, group_col="Name")
    small = pickle.dumps(dataset)
    assert len(small) < 1000
    for other in (pickle.loads(small), copy.copy(dataset), copy.deepcopy(dataset)):
        assert other[40_999][0].equal(dataset[40_999][0])
        del other
        gc.collect()
        assert Path(dataset.store.path).exists()
    assert repr(dataset) == "<TimeSeriesDataset: 41,000 of 100 groups, (60, 5) and (1,)>"


def test_items_are_copies(article: pl.DataFrame) -> None:
    dataset = TimeSeriesDataset(article, PRICES, ["close"], 60, group_col="Name")
    x, y = dataset[0]  # warnings, such as torch's of read-only memory, are errors here
    before = x.clone()
    x += 1
    y += 1
    assert dataset[0][0].equal(before)
    assert dataset[1][0][:-1].equal(before[1:])
    (x, _), _ = dataset.__getitems__([0, 1])
    x += 1
    assert dataset[0][0].equal(before)


def _fork_and_leave(dataset: TimeSeriesDataset) -> None:
    del dataset
    gc.collect()


@pytest.mark.parametrize(("context", "workers"), [("fork", 0), ("fork", 2), ("spawn", 1)])
def test_loaders(workers: int, context: str, article: pl.DataFrame) -> None:
    if context not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {context} here")
    df = article.filter(pl.col("Name") < "AB")
    dataset = TimeSeriesDataset(df, PRICES, ["close"], 60, group_col="Name")
    want = Reference(df, PRICES, ["close"], 60)
    options: dict[str, Any] = {"multiprocessing_context": context, "num_workers": workers} if workers else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks in a program with threads
        batches = list(DataLoader(dataset, batch_size=100, **options))
        if context == "fork" and workers:
            process = multiprocessing.get_context("fork").Process(target=_fork_and_leave, args=(dataset,))
            process.start()
            process.join()
            assert process.exitcode == 0
    x, y = (torch.cat(side) for side in zip(*batches, strict=True))
    assert same(x, np.stack([want[i][0] for i in range(len(want))]))
    assert same(y, np.stack([want[i][1] for i in range(len(want))]))
    shuffled = next(iter(DataLoader(dataset, batch_size=len(dataset), shuffle=True)))
    assert torch.allclose(shuffled[0].sort(0).values, x.sort(0).values)
    assert Path(dataset.store.path).exists()


def test_memory(sp500: pl.DataFrame) -> None:
    """Less than a tenth of what a list of slices takes, the file included, and not more while it is made."""

    def slices() -> list[tuple[Any, Any]]:
        items = []
        for _, rows in sp500.sort("Name", "date").group_by("Name", maintain_order=True):
            x = rows.select(PRICES).to_numpy().astype(np.float32)
            y = rows.select(["close"]).to_numpy().astype(np.float32)
            items += [(x[i : i + 60], y[i + 59]) for i in range(len(x) - 60)]
        return items

    def measured(make: Callable[[], Any]) -> tuple[int, int, Any]:
        gc.collect()
        tracemalloc.start()
        try:
            made = make()
            gc.collect()
            return *tracemalloc.get_traced_memory(), made
        finally:
            tracemalloc.stop()

    kept, most, dataset = measured(lambda: TimeSeriesDataset(sp500, PRICES, ["close"], 60, group_col="Name"))
    slices_kept, slices_most, items = measured(slices)
    assert len(dataset) == len(items) == 588_756
    assert (kept + os.path.getsize(dataset.store.path)) * 10 < slices_kept
    assert most * 10 < slices_most
