"""wstore.write: tables of every library, type and size, and what becomes of failures."""

from __future__ import annotations

import datetime as dt
import decimal
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wstore
from wstore import _cli, _write

posix = pytest.mark.skipif(os.name == "nt", reason="a shell script stands for the tool")


@pytest.fixture(autouse=True)
def _tool(cli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSTORE", str(cli))


def prices() -> pl.DataFrame:
    """Two tickers of 40 days, rows interleaved, a few cells missing."""
    n = 80
    close = [float(i) * 1.25 for i in range(n)]
    return pl.DataFrame(
        {
            "ticker": ["MSFT", "AAPL"] * (n // 2),
            "date": [dt.date(2020, 1, 1) + dt.timedelta(days=i // 2) for i in range(n)],
            "close": [None if i in (7, 8, 30) else c for i, c in enumerate(close)],
            "volume": [10**6 + i for i in range(n)],
            "note": ["x"] * n,
        }
    )


def as_reader(df: pl.DataFrame) -> pa.RecordBatchReader:
    batches = df.to_arrow().to_batches(max_chunksize=7)
    return pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))


def as_relation(df: pl.DataFrame) -> Any:
    return duckdb.from_arrow(df.to_arrow())


FORMS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda df: df,
    "polars in chunks": lambda df: pl.concat([df[:13], df[13:]], rechunk=False),
    "polars shuffled": lambda df: df.sample(fraction=1.0, shuffle=True, seed=1),
    "polars categorical": lambda df: df.with_columns(pl.col("ticker").cast(pl.Categorical)),
    "polars enum": lambda df: df.with_columns(pl.col("ticker").cast(pl.Enum(["MSFT", "AAPL", "IBM"]))),
    "pandas": lambda df: df.to_pandas(),
    "pandas of objects": lambda df: df.to_pandas().astype({"ticker": object, "date": object}),
    "pandas categorical": lambda df: df.to_pandas().astype({"ticker": "category"}),
    "pandas by date": lambda df: df.to_pandas().set_index("date"),
    "pandas by unnamed dates": lambda df: df.to_pandas().set_index("date").rename_axis(None),
    "pandas by both": lambda df: df.to_pandas().set_index(["date", "ticker"]),
    "pandas by an unnamed row": lambda df: df.to_pandas().iloc[::-1],
    "pandas of arrow": lambda df: df.to_pandas(use_pyarrow_extension_array=True),
    "pyarrow": lambda df: df.to_arrow(),
    "pyarrow batch": lambda df: df.to_arrow().combine_chunks().to_batches()[0],
    "reader": as_reader,
    "duckdb": as_relation,
}


@pytest.fixture(scope="module")
def from_csv(cli: Path, tmp_path_factory: pytest.TempPathFactory) -> wstore.Store:
    """What the tool makes of the same rows as text."""
    folder = tmp_path_factory.mktemp("csv")
    prices().write_csv(folder / "prices.csv")
    command = [*map(str, (cli, "convert", folder / "prices.csv", "-o", folder / "prices.wst")), "--ticker", "ticker"]
    subprocess.run(command, check=True, capture_output=True)
    return wstore.open(folder / "prices.wst")


@pytest.mark.parametrize("form", FORMS)
def test_any_table_gives_the_same_file(form: str, from_csv: wstore.Store, tmp_path: Path) -> None:
    report = wstore.write(FORMS[form](prices()), tmp_path / "out.wst")
    store = wstore.open(tmp_path / "out.wst", verify=True)
    assert store.digest == from_csv.digest == report["digest"]
    assert store.columns == ("close", "volume")
    assert (report["tickers"], report["rows_read"], report["rows_kept"]) == (2, 80, 80)
    assert [c["missing"] for c in report["columns"]] == [3, 0]
    assert "note" in [c["name"] for c in report["skipped_columns"]]
    assert os.listdir(tmp_path) == ["out.wst"]


def test_a_store_is_a_table(from_csv: wstore.Store, tmp_path: Path) -> None:
    for form, rows in enumerate((from_csv, from_csv.to_polars(), from_csv.to_pandas(), from_csv.to_arrow())):
        wstore.write(rows, tmp_path / f"{form}.wst")
        assert wstore.open(tmp_path / f"{form}.wst").digest == from_csv.digest


def test_an_untouched_frame() -> None:
    """What is written is not changed, nor its index."""
    df = prices().to_pandas().set_index("date")
    before = df.copy(deep=True)
    table = _write._open(df, "date")
    assert table.columns == ["date", "ticker", "close", "volume", "note"]
    pd.testing.assert_frame_equal(df, before)


def test_report(tmp_path: Path) -> None:
    report = wstore.write(prices(), tmp_path / "out.wst", lookback=30)
    assert repr(report).startswith(f"<wstore.Report '{tmp_path}/out.wst': tickers 2, rows 80, columns 2>")
    assert report["lookback"] == {"lookback": 30, "windows": 7, "too_short": ["MSFT"]}
    assert isinstance(report, dict)
    assert report["schema"] == 1
    assert "--" not in repr(report)


# Types


def column(kind: pa.DataType, values: list[Any]) -> pa.Table:
    n = len(values)
    days = pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(n)])
    return pa.table({"ticker": ["A"] * n, "date": days, "x": pa.array(values, kind)})


D = decimal.Decimal
NAN = float("nan")
COLUMNS: list[tuple[str, pa.DataType, list[Any], list[float]]] = [
    ("bool", pa.bool_(), [True, None, False], [1, NAN, 0]),
    ("int8", pa.int8(), [-128, None, 127], [-128, NAN, 127]),
    ("int16", pa.int16(), [-32768, 5, None], [-32768, 5, NAN]),
    ("int32", pa.int32(), [2**24, 2**24 + 1, -(2**31)], [2**24, 2**24, -(2**31)]),
    ("int64", pa.int64(), [2**63 - 1, -(2**63), 3], [2**63, -(2**63), 3]),
    ("uint8", pa.uint8(), [0, 255, None], [0, 255, NAN]),
    ("uint16", pa.uint16(), [0, 65535, None], [0, 65535, NAN]),
    ("uint32", pa.uint32(), [0, 2**32 - 1, None], [0, 2**32, NAN]),
    ("uint64", pa.uint64(), [0, 2**64 - 1, None], [0, 2**64, NAN]),
    # Halfway between two floats but for one part in 2^39: rounded to float64 first it would be a tie.
    ("int64 once", pa.int64(), [2**62 + 2**38 + 1, 1, 2], [2**62 + 2**39, 1, 2]),
    ("float16", pa.float16(), [np.float16(0.5), None, np.float16(2)], [0.5, NAN, 2]),
    ("float32", pa.float32(), [0.1, NAN, float("inf")], [float(np.float32(0.1)), NAN, NAN]),
    ("float64", pa.float64(), [0.1, NAN, -float("inf")], [float(np.float32(0.1)), NAN, NAN]),
    ("float64 small", pa.float64(), [-0.0, 1e-45, 1e-60], [-0.0, 1e-45, 0.0]),
    (
        "decimal128",
        pa.decimal128(30, 5),
        [D("0.10000"), None, D("-12345678901234567890")],
        [0.1, NAN, -1.2345678901234567e19],
    ),
    ("decimal256", pa.decimal256(60, 2), [D("1.25"), None, D("1e30")], [1.25, NAN, 1e30]),
]


@pytest.mark.parametrize(("kind", "values", "want"), [c[1:] for c in COLUMNS], ids=[c[0] for c in COLUMNS])
def test_types(kind: pa.DataType, values: list[Any], want: list[float], tmp_path: Path) -> None:
    wstore.write(column(kind, values), tmp_path / "out.wst", columns="x")
    got = wstore.open(tmp_path / "out.wst", verify=True).series("A", "x")
    expected = np.array(want, np.float32)
    expected[np.isnan(expected)] = np.array(0x7FC00000, np.uint32).view(np.float32)
    assert got.view(np.uint32).tolist() == expected.view(np.uint32).tolist()


def test_all_null_and_decimals_of_polars(tmp_path: Path) -> None:
    df = prices().with_columns(nothing=pl.lit(None), d=pl.col("close").cast(pl.Decimal(20, 4)), b=pl.col("close") > 50)
    wstore.write(df, tmp_path / "out.wst", columns=["d", "b", "nothing"])
    store = wstore.open(tmp_path / "out.wst", verify=True)
    assert np.isnan(store.series("AAPL", "nothing")).all()
    np.testing.assert_array_equal(store.series("AAPL", "d"), store.series("AAPL", "d").astype(np.float32))
    assert store.series("MSFT", "b")[-1] == 1


TIMES: list[tuple[str, Any, str, str]] = [
    ("date", pl.Date, "s", ""),
    ("ms", pl.Datetime("ms"), "s", ""),
    ("us", pl.Datetime("us"), "s", ""),
    ("ns", pl.Datetime("ns"), "s", ""),
    ("UTC", pl.Datetime("us", "UTC"), "s", ""),
    ("New York", pl.Datetime("us", "America/New_York"), "s", "America/New_York"),
]


@pytest.mark.parametrize(("kind", "unit", "zone"), [t[1:] for t in TIMES], ids=[t[0] for t in TIMES])
def test_times(kind: Any, unit: str, zone: str, tmp_path: Path) -> None:
    df = prices()
    times = df["date"].cast(pl.Datetime("us"))
    if zone:
        times = times.dt.replace_time_zone(zone)
    elif getattr(kind, "time_zone", None):
        times = times.dt.replace_time_zone("UTC")
    df = df.with_columns(date=times.cast(kind))
    for form in (df, df.to_pandas(), df.to_arrow()):
        wstore.write(form, tmp_path / "out.wst", force=True)
        store = wstore.open(tmp_path / "out.wst", verify=True)
        assert (store.unit, store.zone) == (unit, zone)
        want = times.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if times.dtype.time_zone else times  # type: ignore[attr-defined]
        np.testing.assert_array_equal(store.times("MSFT"), want.gather_every(2).to_numpy())


def test_fine_times(tmp_path: Path) -> None:
    t = np.array(["2020-01-01T00:00:00.000000001", "2020-01-01T00:00:00.000000002"], "M8[ns]")
    wstore.write(pa.table({"ticker": ["A", "A"], "date": t, "x": [1.0, 2.0]}), tmp_path / "out.wst")
    store = wstore.open(tmp_path / "out.wst")
    assert store.unit == "ns"
    assert store.times("A").tolist() == t.tolist()


ODD = [
    *("NA", "NaN", "TRUE", "INF", "000001", "1e5", "1.0", "nan", "null", "-", "CON"),
    *("BRK.B", "BTC/USDT", "Ärzte", "日経", "trailing ", "a b"),
]


@pytest.mark.parametrize("form", ["polars", "pandas", "pandas categorical", "pyarrow", "duckdb", "pandas by both"])
def test_odd_tickers(form: str, tmp_path: Path) -> None:
    n = len(ODD)
    df = pl.DataFrame({"ticker": ODD, "date": [dt.date(2020, 1, 2)] * n, "x": [float(i) for i in range(n)]})
    wstore.write(FORMS[form](df), tmp_path / "out.wst")
    store = wstore.open(tmp_path / "out.wst", verify=True)
    assert list(store.tickers) == sorted(ODD, key=str.encode)
    assert [float(store.series(t, "x")[0]) for t in ODD] == list(range(n))
    assert store.to_polars()["ticker"].to_list() == sorted(ODD, key=str.encode)


def test_tickers_of_integers(tmp_path: Path) -> None:
    df = pl.DataFrame({"ticker": [10, 9, -1], "date": [dt.date(2020, 1, 2)] * 3, "x": [1.0, 2.0, 3.0]})
    wstore.write(df, tmp_path / "out.wst", columns="x")
    assert wstore.open(tmp_path / "out.wst").tickers == ("-1", "10", "9")


# Options


def test_options(tmp_path: Path) -> None:
    df = prices().with_columns(
        ret=pl.col("volume") * 2.0,
        far=pl.col("volume") * 3.0,
        label=pl.lit(1.0),
        end=pl.col("date") + pl.duration(days=4),
        tradable=pl.col("volume") % 3 > 0,
        session=pl.col("volume") // 10,
    )
    df = df.rename({"close": 'clo"s,e'})
    for form in (df, df.to_pandas()):
        wstore.write(
            form,
            tmp_path / "out.wst",
            time="date",
            columns=['clo"s,e'],
            target={"ret": 20, "far": dt.timedelta(days=5), "label": "end"},
            groups={"size": "volume"},
            masks=["tradable"],
            max_gap=np.timedelta64(36, "h"),
            breaks={"session": "session"},
            align=64,
            memory="64MiB",
            jobs=1,
            force=True,
        )
        store = wstore.open(tmp_path / "out.wst", verify=True)
        assert store.groups["features"] == ('clo"s,e',)
        assert store.groups["targets"] == ("ret", "far", "label")
        assert store.groups["size"] == ("volume",)
        assert store.groups["masks"] == ("tradable",)
        assert set(store.breaks) == {"gap", "session"}
        reach = {c.name: (c.reach_kind, c.reach) for c in store.schema.columns if c.name in ("ret", "far", "label")}
        assert reach["ret"][1] == 20
        assert reach["far"][1] == 5 * 86_400
        assert np.isnan(store.series("AAPL", "tradable")).any()
        assert store.times("AAPL").size == 40


def test_categories_fills_and_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.wst"
    df = prices().with_columns(session=pl.Series(["b", "a", None, "b"] * 20))
    static = pl.DataFrame({"ticker": ["AAPL", "ZZZ"], "lot": [1.5, 2.0], "sector": ["tech", "none"]})
    static.write_csv(tmp_path / "static.csv")
    forms = static, static.to_pandas().set_index("ticker"), static.to_arrow(), tmp_path / "static.csv"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    digests = set()
    for form in forms:
        report = wstore.write(
            df,
            out,
            time="date",
            columns=["close", "volume"],
            categories="session",
            fill={"close": "ffill:1", "session": "b"},
            static=form,
            force=True,
        )
        assert (report["static"]["rows"], report["static"]["unknown"], report["static"]["without"]) == (2, 1, 1)
        digests.add(report["digest"])
    assert len(digests) == 1
    assert not os.listdir(temporary)
    store = wstore.open(out, verify=True)
    assert store.categories("session") == ["a", "b"]
    assert store.series("MSFT", "session")[:4].tolist() == [1, 1, 1, 1]
    assert store.series("MSFT", "close")[:6].tolist() == [0, 2.5, 5, 7.5, 7.5, 12.5]
    assert np.array_equal(store.attributes["lot"], [1.5, NAN], equal_nan=True)
    assert store.attributes["sector"].tolist() == ["tech", None]
    wstore.write(df, out, static=static.rename({"ticker": "id"}), static_ticker="id", force=True)
    assert store.attributes.keys() == wstore.open(out).attributes.keys()
    with pytest.raises(wstore.ConvertError, match=r"static: row 3: .* comes twice: static: row 1 "):
        wstore.write(df, out, static=pl.concat([static, static]), force=True)
    with pytest.raises(wstore.ConvertError, match=r"absent\.csv does not exist"):
        wstore.write(df, out, static=tmp_path / "absent.csv", force=True)
    with pytest.raises(wstore.ArgumentError, match="not dict"):
        wstore.write(df, out, static={"AAPL": 1}, force=True)
    with pytest.raises(wstore.ArgumentError, match="neither ffill nor a number"):
        wstore.write(df, out, fill={"close": "bfill"}, force=True)
    with pytest.raises(wstore.ArgumentError, match="rename 'a=b'"):
        wstore.write(df.rename({"note": "a=b"}), out, fill={"a=b": 0}, force=True)


def test_a_round_trip(tmp_path: Path) -> None:
    """With the same options the rows of a store make the same store, from any of its tables."""
    df = prices().with_columns(
        ret=pl.col("volume") * 2.0,
        end=pl.col("date") + pl.duration(days=4),
        tradable=pl.col("volume") % 3 > 0,
        session=pl.col("volume") // 10,
    )
    options: dict[str, Any] = {
        "columns": ["volume", "close"],
        "target": {"ret": "end"},
        "groups": {"s": ["session"]},
        "masks": "tradable",
        "max_gap": "36h",
        "breaks": {"day": "session"},
    }
    wstore.write(df, tmp_path / "first.wst", **options)
    first = wstore.open(tmp_path / "first.wst", verify=True)
    assert len(first.groups) == 5
    for again in (first, first.to_polars(), first.to_pandas(), first.to_arrow(), first.to_arrow_reader(batch_rows=11)):
        wstore.write(again, tmp_path / "second.wst", force=True, **options)
        second = wstore.open(tmp_path / "second.wst", verify=True)
        assert second.schema == first.schema
        assert second.digest == first.digest


def test_a_round_trip_with_a_zone(tmp_path: Path) -> None:
    zone = "America/New_York"
    times = pl.col("date").cast(pl.Datetime("us")).dt.replace_time_zone(zone) + pl.duration(hours=16)
    wstore.write(
        prices().with_columns(date=times, end=times + pl.duration(days=3)), tmp_path / "a.wst", target={"close": "end"}
    )
    first = wstore.open(tmp_path / "a.wst")
    assert first.zone == zone
    for again in (first, first.to_polars(), first.to_pandas(), first.to_pandas().set_index(["ticker", "time"])):
        wstore.write(again, tmp_path / "b.wst", target={"close": "end"}, force=True)
        second = wstore.open(tmp_path / "b.wst", verify=True)
        assert (second.zone, second.digest) == (zone, first.digest)


def test_targets_with_reach_in_the_name(tmp_path: Path) -> None:
    df = prices().rename({"volume": "ret:3"})
    with pytest.raises(wstore.ArgumentError, match="reads as the column 'ret:3'"):
        wstore.write(df.rename({"close": "ret"}), tmp_path / "out.wst", target={"ret": 3})
    wstore.write(df, tmp_path / "out.wst", target="ret:3")
    assert wstore.open(tmp_path / "out.wst").groups["targets"] == ("ret:3",)
    wstore.write(prices(), tmp_path / "out.wst", target=["volume:2w"], force=True)
    assert wstore.open(tmp_path / "out.wst").groups["targets"] == ("volume",)


def test_duplicates(tmp_path: Path) -> None:
    df = pl.concat([prices(), prices()[3:4].with_columns(volume=pl.lit(7, pl.Int64))])
    with pytest.raises(wstore.ConvertError, match=r"AAPL") as e:
        wstore.write(df, tmp_path / "out.wst")
    assert e.value.code == 3
    assert "2020-01-02" in str(e.value)
    assert "on_duplicate=" in str(e.value)
    assert not os.listdir(tmp_path)
    report = wstore.write(df, tmp_path / "out.wst", on_duplicate="last")
    assert report["duplicates"] == report["contradictory"] == 1
    assert "duplicates 1" in repr(report)
    assert wstore.open(tmp_path / "out.wst").series("AAPL", "volume")[1] == 7


# Errors


@pytest.mark.parametrize(
    ("said", "want"),
    [
        ("skip them with --on-error skip", 'skip them with on_error="skip"'),
        ("--on-duplicate first or last keeps one", "on_duplicate= first or last keeps one"),
        ("--max-gap, such as --max-gap 5d, makes breaks", 'max_gap=, such as max_gap="5d", makes breaks'),
        ("--align 64 saves most; --columns or --mask", "align=64 saves most; columns= or masks="),
        ('--max-gap "3 days" is not a duration', 'max_gap="3 days" is not a duration'),
        ("--category or --static-ticker", "categories= or static_ticker="),
        ("standard input: row 9: as standard input: row 1", "row 9: as row 1"),
        ("--force replaces it; --time-formats --nothing", "force=True replaces it; --time-formats --nothing"),
    ],
)
def test_messages_name_options(said: str, want: str) -> None:
    assert _write._in_python(said) == want


def test_unknown_columns(tmp_path: Path) -> None:
    out = tmp_path / "out.wst"
    for options in (
        {"ticker": "tickr"},
        {"time": "tickr"},
        {"columns": ["close", "tickr"]},
        {"target": "tickr"},
        {"target": "tickr:3"},
        {"target": {"tickr": 3}},
        {"groups": {"g": "tickr"}},
        {"masks": "tickr"},
        {"categories": "tickr"},
        {"fill": {"tickr": 0}},
        {"breaks": {"b": "tickr"}},
    ):
        with pytest.raises(wstore.NotFoundError, match=r"no column 'tickr'; did you mean 'ticker'\?"):
            wstore.write(prices(), out, **options)
    with pytest.raises(wstore.NotFoundError) as e:
        wstore.write(prices().rename({"ticker": "symbol"}), out)
    assert e.value.__notes__[0].startswith("ticker= names the column of the tickers. ")
    for name in ("groups", "breaks", "fill"):
        wrong: Any = {name: ["close"]}
        with pytest.raises(wstore.ArgumentError, match=f"{name} must be a dict, such as "):
            wstore.write(prices(), out, **wrong)
    assert not os.listdir(tmp_path)


def test_outputs(tmp_path: Path) -> None:
    out = tmp_path / "out.wst"
    wstore.write(prices(), out)
    before = out.read_bytes()
    with pytest.raises(FileExistsError, match="force=True"):
        wstore.write(prices()[:10], out)
    assert out.read_bytes() == before
    wstore.write(prices()[:10], out, force=True)
    assert wstore.open(out).rows.sum() == 10
    with pytest.raises(FileNotFoundError, match="folder is not there"):
        wstore.write(prices(), tmp_path / "absent" / "out.wst")
    with pytest.raises(IsADirectoryError):
        wstore.write(prices(), tmp_path)


def test_what_is_no_table(tmp_path: Path) -> None:
    out = tmp_path / "out.wst"
    with pytest.raises(wstore.ArgumentError, match=r"df\.collect\(\)"):
        wstore.write(prices().lazy(), out)
    with pytest.raises(wstore.ArgumentError, match="wstore convert"):
        wstore.write("prices.csv", out)
    for wrong in ({"a": [1]}, np.zeros(3), None, prices()["close"], pa.array([1, 2])):
        with pytest.raises(wstore.ArgumentError):
            wstore.write(wrong, out)
    wide = prices().to_pandas().pivot(index="date", columns="ticker", values=["close", "volume"])
    with pytest.raises(wstore.ArgumentError, match="several levels"):
        wstore.write(wide, out)
    with pytest.raises(wstore.ArgumentError, match="a Series is not a table; to_frame"):
        wstore.write(prices()["close"], out)
    with pytest.raises(wstore.ArgumentError, match=r"rename_axis.* The first row's are \('MSFT', .*2020-01-01"):
        wstore.write(prices().to_pandas().set_index(["ticker", "date"]).rename_axis([None, "date"]), out)
    twice = prices().to_pandas()
    with pytest.raises(wstore.ArgumentError, match="several 'close'"):
        wstore.write(pd.concat([twice, twice[["close"]]], axis=1), out)
    mixed = prices().to_pandas()
    mixed["odd"] = pd.Series([1, "a"] * 40, dtype=object)
    with pytest.raises(wstore.ArgumentError, match=r"column 'odd' can't be sent: .* columns="):
        wstore.write(mixed, out)
    wstore.write(mixed, out, time="date", columns="close")  # what is not asked for doesn't matter
    out.unlink()
    with pytest.raises(wstore.ConvertError, match="note") as e:
        wstore.write(prices(), out, columns=["note"])
    assert e.value.code == 3
    with pytest.raises(wstore.ArgumentError, match="duplicate"):
        wstore.write(prices(), out, on_duplicate="newest")
    with pytest.raises(wstore.ConvertError):
        wstore.write(prices()[:0], out)
    assert not os.listdir(tmp_path)


def test_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = prices().to_arrow()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        wstore.write(table, tmp_path / "out.wst")
    wstore.write(prices(), tmp_path / "out.wst")  # polars needs none


# Streams


def stream(batches: int, rows: int, fail: BaseException | None = None) -> pa.RecordBatchReader:
    """Rows of one ticker a batch, made as they are asked for."""
    schema = pa.schema([("ticker", pa.string()), ("date", pa.timestamp("s")), ("a", pa.float64()), ("b", pa.float64())])

    def made() -> Iterator[pa.RecordBatch]:
        for i in range(batches):
            columns = [["T%04d" % i] * rows, np.arange(rows), np.arange(rows) * 0.5, np.full(rows, float(i))]  # noqa: UP031
            yield pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        if fail is not None:
            raise fail

    return pa.RecordBatchReader.from_batches(schema, made())


def test_streams_are_not_held(tmp_path: Path) -> None:
    """200 batches of 0.8 MB: never more than a few of them are in memory."""
    pool = pa.default_memory_pool()
    gc.collect()
    before, most = pool.bytes_allocated(), 0
    reader = stream(200, 25_000)

    def watched() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for batch in reader:
            most = max(most, pool.bytes_allocated() - before)
            yield batch

    report = wstore.write(pa.RecordBatchReader.from_batches(reader.schema, watched()), tmp_path / "out.wst")
    assert report["rows_kept"] == 5_000_000
    assert most < 16 << 20


def test_a_source_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    for error in (ValueError("no more"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            wstore.write(stream(20, 10_000, error), tmp_path / "out.wst")
        assert os.listdir(tmp_path) == ["tmp"]
        assert not os.listdir(tmp_path / "tmp")


def script(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell script that stands for the tool."""
    path = tmp_path / "tool"
    path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
    path.chmod(0o755)
    monkeypatch.setenv("WSTORE", str(path))


@posix
@pytest.mark.parametrize("table", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "pyarrow"])
def test_a_tool_that_fails(table: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may end while it is still being written to; its message counts, not the broken pipe."""
    n = 400_000
    df = table({"ticker": ["A"] * n, "date": np.arange(n).astype("M8[ms]"), "x": np.zeros(n)})
    out = tmp_path / "out.wst"
    script(tmp_path, "echo 'wstore: disk full' >&2; exit 1", monkeypatch)
    with pytest.raises(wstore.ConvertError, match=r"^disk full$") as e:
        wstore.write(df, out)
    assert (e.value.code, e.value.message) == (1, "disk full")
    script(tmp_path, "head -c 1000 >/dev/null; echo 'wstore: no such flag' >&2; exit 2", monkeypatch)
    with pytest.raises(wstore.ArgumentError, match=r"^no such flag$"):
        wstore.write(df, out)
    script(tmp_path, "kill -9 $$", monkeypatch)
    with pytest.raises(wstore.ConvertError, match=r"killed by signal 9 .*memory"):
        wstore.write(df, out)
    script(tmp_path, "cat >/dev/null; echo '{\"schema\": 2}'", monkeypatch)
    with pytest.raises(wstore.ConvertError, match="not of this package's version"):
        wstore.write(df, out)
    script(tmp_path, "exit 3", monkeypatch)
    with pytest.raises(wstore.ConvertError, match="exit code 3 and without a message"):
        wstore.write(df, out)


@posix
def test_errors_pickle() -> None:
    import pickle

    e = pickle.loads(pickle.dumps(wstore.ConvertError(3, "bad row")))
    assert (e.code, e.message, str(e)) == (3, "bad row", "bad row")
    assert isinstance(e, wstore.WstoreError)


SLOW = """
    import sys, time
    import numpy as np, pyarrow as pa, wstore
    schema = pa.schema([("ticker", pa.string()), ("date", pa.timestamp("s")), ("a", pa.float64())])
    def made():
        for i in range(10_000):
            columns = [[f"T{i:04d}"] * 20_000, np.arange(20_000), np.arange(20_000) * 0.5]
            yield pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema)], schema=schema)
            if i == 20:
                print("begun", flush=True)
            if i > 20:
                time.sleep(0.05)
    wstore.write(pa.RecordBatchReader.from_batches(schema, made()), sys.argv[1], memory="16MiB")
"""


@posix
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_program(how: signal.Signals, tmp_path: Path) -> None:
    """Nothing is left: no file, no temporary file, no process. Of a program that is killed, too."""
    out, tmp = tmp_path / "out", tmp_path / "tmp"
    out.mkdir()
    tmp.mkdir()
    env = {**os.environ, "TMPDIR": str(tmp), "PYTHONPATH": str(Path(wstore.__file__).parents[1])}
    command = [sys.executable, "-c", textwrap.dedent(SLOW), str(out / "out.wst")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        child.send_signal(how)
        said = child.communicate(timeout=60)[1]
    finally:
        child.kill()
    if how == signal.SIGINT:
        assert b"KeyboardInterrupt" in said
    end = time.monotonic() + 30  # the tool notices by itself that its input has ended
    while (os.listdir(out) or os.listdir(tmp)) and time.monotonic() < end:
        time.sleep(0.05)
    assert os.listdir(out) == []
    assert os.listdir(tmp) == []


# Finding the tool


@posix
def test_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, path = tmp_path / "site" / "wstore", tmp_path / "path"
    package.mkdir(parents=True)
    path.mkdir()
    monkeypatch.setattr(_cli, "_PACKAGE", package)
    monkeypatch.delenv("WSTORE")
    monkeypatch.setenv("PATH", str(path))
    with pytest.raises(wstore.ConvertError, match="installed without it") as e:
        _cli.find()
    assert e.value.code is None
    (path / "wstore").write_text("#!/usr/bin/python\n")  # as the console script, which would find itself
    (path / "wstore").chmod(0o755)
    with pytest.raises(wstore.ConvertError, match="installed without it"):
        _cli.find()
    (path / "wstore").write_bytes(b"\x7fELF")
    assert _cli.find() == str(path / "wstore")
    (package / "_bin").mkdir()
    (package / "_bin" / "wstore").write_bytes(b"\x7fELF")
    assert _cli.find() == str(package / "_bin" / "wstore")
    monkeypatch.setenv("WSTORE", str(tmp_path / "absent"))
    with pytest.raises(wstore.ConvertError, match="is not a program"):
        _cli.find()
    (package / "_bin" / "wstore").chmod(0o755)
    monkeypatch.setenv("WSTORE", str(package / "_bin" / "wstore"))
    with pytest.raises(wstore.ConvertError, match="can't be run"):
        wstore.write(prices(), tmp_path / "out.wst")


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_a_checkout_builds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WSTORE")
    monkeypatch.setenv("WSTORE_CACHE", str(tmp_path))
    _cli._build.cache_clear()
    path = _cli.find()
    assert os.listdir(tmp_path / "bin") == [os.path.basename(path)]
    _cli._build.cache_clear()
    assert _cli.find() == path
    assert b'"schema":1' in _cli.run(["version", "--json"])
    _cli._build.cache_clear()


@posix
def test_main(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; sys.argv = ['wstore', 'inspect', 'absent.wst']; from wstore._cli import main; main()"
    env = {**os.environ, "PYTHONPATH": str(Path(wstore.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 4
    assert "absent.wst" in run.stderr
