"""A store's rows as tables of pyarrow, polars and pandas, and predictions that join them."""

from __future__ import annotations

import datetime as dt
import math
import sys
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from encode import Col, Group, Panel, Ticker, encode
from panels import any_panel, small

import wstore

UNITS = ("s", "ms", "us", "ns")
Row = tuple[Any, ...]


def rows(
    p: Panel,
    tickers: list[str] | None = None,
    columns: list[str] | None = None,
    start: int | None = None,
    end: int | None = None,
) -> list[Row]:
    """Ticker, time, and the cells, None where there is none: one row at a time. Of categories their texts."""

    def cell(t: Ticker, name: str, i: int) -> Any:
        v = t.values[name][i]
        return p.categories[name][int(v)] if v is not None and name in p.categories else v

    columns = [c.name for c in p.columns()] if columns is None else columns
    out: list[Row] = []
    for name in sorted(p.tickers, key=str.encode):
        t = p.tickers[name]
        if tickers is not None and name not in tickers:
            continue
        for i, time in enumerate(t.times):
            if (start is None or time >= start) and (end is None or time < end):
                out.append((name, time, *(cell(t, c, i) for c in columns)))
    return out


def of_arrow(table: pa.Table) -> list[Row]:
    plain = [
        c.cast(
            pa.int64() if pa.types.is_timestamp(c.type) else pa.string() if pa.types.is_dictionary(c.type) else c.type
        )
        for c in table.columns
    ]
    return list(zip(*(c.to_pylist() for c in plain), strict=True))


def of_polars(df: pl.DataFrame, unit: str) -> list[Row]:
    for name, kind in df.schema.items():
        if isinstance(kind, pl.Datetime):
            df = df.with_columns(pl.col(name).cast(pl.Int64) // (1000 if unit == "s" else 1))
    return df.rows()


def of_pandas(df: pd.DataFrame) -> list[Row]:
    columns: list[list[Any]] = []
    for name in df.columns:
        c = df[name]
        if isinstance(c.dtype, pd.DatetimeTZDtype):
            c = c.dt.tz_convert("UTC").dt.tz_localize(None)
        if c.dtype.kind == "M":
            columns.append([None if pd.isna(v) else int(v.view(np.int64)) for v in c.to_numpy()])
        else:
            columns.append([None if isinstance(v, float) and math.isnan(v) else v for v in c.tolist()])
    return list(zip(*columns, strict=True))


def sql(query: str, **tables: Any) -> list[Row]:
    """What duckdb answers, of anything with the Arrow C stream interface."""
    with duckdb.connect() as db:
        for name, table in tables.items():
            db.register(name, table)
        return db.execute(query).fetchall()


@pytest.mark.parametrize("seed", range(60))
def test_rows(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r) if seed else small()
    store = wstore.open_bytes(encode(p))
    names = [c.name for c in p.columns()]
    for _ in range(4):
        given: dict[str, Any] = {}
        if p.tickers and r.random() < 0.5:
            given["tickers"] = r.choices(sorted(p.tickers), k=r.randint(1, 3))
        if r.random() < 0.5:
            given["columns"] = r.sample(names, r.randint(0, len(names)))
        for bound in ("start", "end"):
            if r.random() < 0.5:
                given[bound] = r.randint(-45, 65)
        want = rows(p, **given)
        assert of_arrow(store.to_arrow(**given)) == want
        assert of_polars(store.to_polars(**given), store.unit) == want
        assert of_pandas(store.to_pandas(**given)) == want
        size = r.randint(1, 9)
        batches = list(store.to_arrow_reader(**given, batch_rows=size))
        assert [b.num_rows for b in batches] == [min(size, len(want) - i) for i in range(0, len(want), size)]
        assert of_arrow(pa.Table.from_batches(batches, store.to_arrow(**given).schema)) == want


def test_types() -> None:
    """The zone is the source's, the instants are UTC's; label ends are times; other libraries' names of all that."""
    store = wstore.open_bytes(encode(small()))
    zone = "America/New_York"
    floats = {"a": pa.float32(), "b": pa.float32(), "m": pa.float32(), "ret": pa.float32()}
    table = store.to_arrow()
    ticker, clock = pa.dictionary(pa.int32(), pa.string()), pa.timestamp("s", zone)
    assert table.schema == pa.schema({"ticker": ticker, "time": clock, **floats, "end": clock})
    assert [table[c].null_count for c in ("a", "b", "m", "ret", "end")] == [3, 0, 3, 0, 3]
    time = pl.Datetime("ms", zone)
    polars = store.to_polars()
    assert dict(polars.schema) == {"ticker": pl.String, "time": time, **dict.fromkeys(floats, pl.Float32), "end": time}
    pandas = store.to_pandas()
    assert pandas["ticker"].dtype == pd.CategoricalDtype(list(store.tickers))
    assert pandas["time"].dtype == pd.DatetimeTZDtype("s", zone)
    assert [str(t) for t in pandas.dtypes.iloc[2:]] == ["float32"] * 4 + [f"datetime64[s, {zone}]"]
    assert str(pandas["time"].iloc[0]) == "1969-12-31 19:00:00-05:00"
    assert list(store.to_pandas("BRK.B")["ticker"].cat.categories) == ["BRK.B"]


@pytest.mark.parametrize("unit", range(4))
def test_units(unit: int) -> None:
    times = [10**9 * 1000**unit + i for i in range(3)]
    p = Panel([Group("features", [Col("x")])], {"A": Ticker(times, {"x": [1.0, None, 3.0]})}, unit=unit)
    store = wstore.open_bytes(encode(p))
    assert store.to_arrow().schema.field("time").type == pa.timestamp(UNITS[unit])
    assert store.to_polars().schema["time"] == pl.Datetime("ms" if unit == 0 else UNITS[unit])  # type: ignore[arg-type]
    assert store.to_pandas()["time"].dtype == np.dtype(f"M8[{UNITS[unit]}]")
    assert store.to_polars()["time"].to_list()[0] == dt.datetime(2001, 9, 9, 1, 46, 40)
    assert store.to_polars()["x"].to_list() == [1.0, None, 3.0]
    assert np.isnan(store.to_pandas()["x"].iloc[1])


def test_categories() -> None:
    texts = ["Energy", "Technology", "Été"]
    cells: list[float | int | None] = [1.0, None, 0.0, 2.0, 0.0]
    p = Panel(
        [Group("features", [Col("x"), Col("sector")]), Group("more", [Col("none")])],
        {t: Ticker([*range(5)], {"x": cells, "sector": cells, "none": [None] * 5}) for t in ("A", "B")},
        categories={"sector": texts, "none": []},
    )
    store = wstore.open_bytes(encode(p), verify=True)
    want = rows(p)
    assert want[0] == ("A", 0, 1.0, "Technology", None)
    for table in (store.to_arrow(), pa.Table.from_batches(store.to_arrow_reader(batch_rows=3))):
        assert of_arrow(table) == want
        assert table.schema.field("sector").type == pa.dictionary(pa.int32(), pa.string())
    assert of_polars(store.to_polars(), "s") == want
    assert of_pandas(store.to_pandas()) == want
    assert list(store.to_pandas()["sector"].cat.categories) == texts


def test_far_times() -> None:
    p = Panel([Group("features", [Col("x")])], {"A": Ticker([2**60], {"x": [1.0]})}, unit=0)
    store = wstore.open_bytes(encode(p))
    assert of_arrow(store.to_arrow()) == [("A", 2**60, 1.0)]
    with pytest.raises(wstore.ArgumentError, match="polars can't hold"):
        store.to_polars()


def test_the_stream_interface() -> None:
    store = wstore.open_bytes(encode(small()))
    want = store.to_arrow()
    assert of_arrow(pa.table(store)) == of_arrow(want)
    assert pl.DataFrame(store).shape == (16, 7)
    assert sql("select count(*), sum(b) from store", store=store) == [(16, 209.0)]
    # Batches are made as they are asked for, and of a store that was closed meanwhile no more.
    reader = store.to_arrow_reader(batch_rows=3)
    assert reader.read_next_batch().num_rows == 3
    store.close()
    with pytest.raises(wstore.ClosedError):
        reader.read_next_batch()
    with pytest.raises(wstore.ClosedError):
        store.to_arrow()


def test_arguments() -> None:
    store = wstore.open_bytes(encode(small()))
    assert store.to_polars(columns="features").columns == ["ticker", "time", "a", "b"]
    assert store.to_polars(columns=["ret", "features", "b"]).columns == ["ticker", "time", "ret", "a", "b"]
    assert store.to_polars(columns=[]).columns == ["ticker", "time"]
    assert store.to_polars(["株式", "BRK.B"])["ticker"].unique().sort().to_list() == ["BRK.B", "株式"]
    assert store.to_polars("NA").shape == (0, 7)
    assert store.to_polars([]).shape == (0, 7)
    assert store.to_arrow(start="1970-01-01T00:00:03", end=dt.datetime(1970, 1, 1, 0, 0, 11)).num_rows == 5
    assert store.to_arrow(start=20).num_rows == store.to_arrow(start=5, end=3).num_rows == 0
    with pytest.raises(wstore.NotFoundError, match="no ticker 'X'"):
        store.to_pandas("X")
    with pytest.raises(wstore.NotFoundError, match="no column or group 'x'"):
        store.to_pandas(columns="x")
    with pytest.raises(wstore.ArgumentError, match="batch_rows"):
        store.to_arrow_reader(batch_rows=0)
    p = Panel([Group("features", [Col("time"), Col("x")])], {"A": Ticker([1], {"x": [1.0], "time": [2.0]})})
    store = wstore.open_bytes(encode(p))
    with pytest.raises(wstore.ArgumentError, match="has a column 'time'"):
        store.to_arrow()
    assert store.to_arrow(columns="x").num_rows == 1


def test_tables_are_copies(tmp_path: Path) -> None:
    path = tmp_path / "small.wst"
    path.write_bytes(encode(small()))
    store = wstore.open(path)
    df = store.to_pandas()
    df.loc[:, "a"] = 7.0
    assert store.series("AAPL", "a")[0] == 0.0


def test_without_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    store = wstore.open_bytes(encode(small()))
    for name in ("polars", "pandas", "pyarrow"):
        with monkeypatch.context() as m:
            m.setitem(sys.modules, name, None)
            m.setitem(sys.modules, f"{name}.ipc", None)
            with pytest.raises(ImportError, match=f"pip install {name}"):
                (store.to_arrow if name == "pyarrow" else getattr(store, f"to_{name}"))()
    with monkeypatch.context() as m:  # these two need no pyarrow
        m.setitem(sys.modules, "pyarrow", None)
        assert len(store.to_polars()) == len(store.to_pandas()) == 16


def test_predictions_join() -> None:
    """A prediction finds the rows of its anchor and of its label's end."""
    store = wstore.open_bytes(encode(small()))
    w = store.windows(2, horizon=1, inputs="b", targets="b", breaks=())
    ids = np.arange(len(w))[::-1]
    pred = ids * 0.5
    want = w.frame(ids, pred=pred)
    stored = {row[:2]: row[2] for row in rows(small(), columns=["b"])}
    codes, times, _ = w.locate(ids)
    at = [stored[store.tickers[c], t] for c, t in zip(codes, times.astype(np.int64).tolist(), strict=True)]

    predicted = w.to_polars(ids, pred=pred)
    joined = predicted.join(store.to_polars(columns="b"), on=["ticker", "time"], how="left", maintain_order="left")
    assert joined["ticker"].to_list() == want["ticker"].tolist()
    assert joined["pred"].to_list() == pred.tolist()
    assert joined["b"].to_list() == at
    ends = predicted.join(
        store.to_polars(columns="b"),
        left_on=["ticker", "label_end"],
        right_on=["ticker", "time"],
        maintain_order="left",
    )
    assert ends["b"].to_list() == w.gather(ids)[1][:, 0].tolist()

    merged = w.to_pandas(ids, pred=pred).merge(store.to_pandas(columns="b"), on=["ticker", "time"], how="left")
    assert merged["b"].tolist() == at
    assert merged["ticker"].tolist() == want["ticker"].tolist()
    arrow = w.to_arrow(ids, pred=pred)
    assert arrow.schema.field("time").type == store.to_arrow().schema.field("time").type
    assert arrow.schema.field("ticker").type == store.to_arrow().schema.field("ticker").type
    both = sql(
        "select pred, b from predicted join store using (ticker, time) order by pred desc", predicted=arrow, store=store
    )
    assert both == list(zip(pred.tolist(), at, strict=True))

    assert len(w.to_polars()) == len(w)
    assert w[:0].to_pandas().shape == (0, 3)
    with pytest.raises(wstore.ArgumentError, match="one value for each window"):
        w.to_polars(ids, pred=np.zeros((len(ids), 2)))
    with pytest.raises(wstore.ArgumentError, match="frame's own"):
        w.to_polars(ids, time=pred)
    with pytest.raises(wstore.ArgumentError, match=r"one value for each window: pred\.squeeze\(1\)"):
        w.to_polars(ids, pred=np.zeros((len(ids), 1)))
