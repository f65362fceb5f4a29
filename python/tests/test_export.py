"""Tables that `wstore export` writes, read by others: the same tickers, times and bits as this reader's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from encode import encode
from panels import any_panel, labelled, small

import wstore

# Names that programs like to take for something else.
HARD = [
    "NA", "NaN", "nan", "null", "None", "TRUE", "INF", "-inf", "000001", "1e5", "-1", "BRK.B", "BTC/USDT", "CON", "con",
    "../up", "Ärzte", "日経", "blank ", " ", "a,b", 'q"q', "#x", "é", "x" * 255, "日" * 85,
]  # fmt: skip


def run(cli: Path, *args: object) -> bytes:
    done = subprocess.run([cli, *map(str, args)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("export")


@pytest.fixture(scope="session")
def hard(cli: Path, folder: Path) -> Path:
    """Three rows of each of the hard names."""
    lines = ["ticker,time,x"]
    for k, name in enumerate(HARD):
        quoted = '"' + name.replace('"', '""') + '"'
        lines += [f"{quoted},2020-01-0{d},{k + d / 8}" for d in (1, 2, 3)]
    source = folder / "hard.csv"
    source.write_text("\n".join(lines) + "\n")
    run(cli, "convert", source, "-o", folder / "hard.wst", "--ticker", "ticker")
    return folder / "hard.wst"


@pytest.fixture(scope="session")
def long(cli: Path, folder: Path) -> Path:
    """Two tickers, together of more rows than a row group or a batch has; breaks, a mask, a target, missing cells."""
    r = np.random.default_rng(1)
    n = 300_000
    at = (np.datetime64("2020-01-01", "ms") + 250 * np.arange(n)).astype(str)
    price = (100 + r.normal(0, 0.01, n).cumsum()).round(3).astype(str)
    price[r.random(n) < 0.01] = ""
    source = folder / "long.csv"
    with source.open("w") as f:
        f.write("sym,at,price,size,open,ret,session\n")
        for name, begin in (("B", 0), ("A", 1000)):
            f.writelines(
                f"{name},{at[i]}Z,{price[i]},{i % 977},{i % 3 > 0},{i / n},{i // 9999}\n" for i in range(begin, n)
            )
    options = ["--columns", "price,size", "--target", "ret:20", "--mask", "open", "--break", "s=session"]
    run(cli, "convert", source, "-o", folder / "long.wst", "--ticker", "sym", *options, "--max-gap", "1h")
    return folder / "long.wst"


@pytest.fixture(scope="session")
def made(folder: Path) -> list[Path]:
    """Panels with label ends, zones, categories, empty tickers, units of all kinds."""
    paths = []
    for i, p in enumerate([small(), labelled(), *(any_panel(Random(seed)) for seed in range(12))]):
        paths.append(folder / f"made{i}.wst")
        paths[-1].write_bytes(encode(p))
    return paths


@pytest.fixture(scope="session", params=["hard", "long", *range(14)])
def store(request: pytest.FixtureRequest, hard: Path, long: Path, made: list[Path]) -> Iterator[wstore.Store]:
    path = {"hard": hard, "long": long}.get(request.param) or made[request.param]
    with wstore.open(path) as s:
        yield s


def pandas_table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def duckdb_table(what: Any) -> pa.Table:
    with duckdb.connect() as c:
        if isinstance(what, Path):
            return c.read_parquet(str(what)).to_arrow_table()
        return c.from_arrow(what).to_arrow_table()


def stream(path: Path) -> pa.Table:
    with pa.ipc.open_stream(path.read_bytes()) as r:
        return r.read_all()


READERS: dict[str, dict[str, Callable[[Path], pa.Table]]] = {
    "parquet": {
        "pyarrow": pa.parquet.read_table,
        "polars": lambda p: pl.read_parquet(p).to_arrow(),
        "pandas": lambda p: pandas_table(pd.read_parquet(p)),
        "duckdb": duckdb_table,
    },
    "arrow": {
        "pyarrow": lambda p: pa.ipc.open_file(p).read_all(),
        "feather": pa.feather.read_table,
        "polars": lambda p: pl.read_ipc(p).to_arrow(),
        "pandas": lambda p: pandas_table(pd.read_feather(p)),
        "duckdb": lambda p: duckdb_table(pa.ipc.open_file(p).read_all()),
    },
    "arrows": {
        "pyarrow": stream,
        "polars": lambda p: pl.read_ipc_stream(p).to_arrow(),
    },
}
KINDS = [(ending, reader) for ending, readers in READERS.items() for reader in readers]

NANOS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def instants(a: pa.ChunkedArray) -> list[int | None]:
    """Times in nanoseconds, whatever the unit and the zone."""
    scale = NANOS[a.type.unit]
    return [None if v is None else v * scale for v in a.cast(pa.timestamp(a.type.unit)).cast(pa.int64()).to_pylist()]


def check_times(a: pa.ChunkedArray, want: np.ndarray[Any, Any]) -> None:
    scale = NANOS[np.datetime_data(want.dtype)[0]]
    assert pa.types.is_timestamp(a.type)
    assert instants(a) == [
        None if empty else int(v) * scale for v, empty in zip(want.view(np.int64), np.isnat(want), strict=True)
    ]


def check(table: pa.Table, s: wstore.Store) -> None:
    """A table holds exactly the rows of a store."""
    names = table.column_names
    assert names[0].startswith("ticker")
    assert names[1].startswith("time")
    assert names[2 : 2 + len(s.columns)] == list(s.columns)
    tickers = [t for i, t in enumerate(s.tickers) for _ in range(s.rows[i])]
    assert table.column(0).cast(pa.string()).to_pylist() == tickers
    check_times(table.column(1), np.concatenate([s.times(t) for t in s.tickers] or [np.empty(0, "M8[s]")]))
    for k, name in enumerate(s.columns, 2):
        got = table.column(k)
        want = np.concatenate([s.series(t, name) for t in s.tickers] or [np.empty(0, np.float32)])
        categories = s.categories(name)
        if want.dtype.kind == "M":
            check_times(got, want)
        elif categories is not None:
            texts = [None if np.isnan(v) else categories[int(v)] for v in want]
            if got.null_count < len(got):
                got = got.cast(pa.string())
            assert got.to_pylist() == texts
        elif len(want):
            assert got.type == pa.float32()
            assert got.null_count == np.isnan(want).sum()
            values = got.to_numpy().astype(np.float32)
            there = ~np.isnan(want)
            assert np.array_equal(there, ~np.isnan(values))
            assert np.array_equal(values[there].view(np.uint32), want[there].view(np.uint32))


@pytest.mark.parametrize(("ending", "reader"), KINDS)
def test_others_read_the_same(store: wstore.Store, cli: Path, folder: Path, ending: str, reader: str) -> None:
    path = folder / f"{Path(store.path).stem}.{ending}"
    if not path.exists():
        run(cli, "export", store.path, "-o", path)
    check(READERS[ending][reader](path), store)


def test_types(cli: Path, hard: Path, made: list[Path], folder: Path) -> None:
    text = pa.dictionary(pa.int32(), pa.string())
    run(cli, "export", made[1], "-o", folder / "types.arrow")
    run(cli, "export", made[1], "-o", folder / "types.parquet")
    file = pa.ipc.open_file(folder / "types.arrow")
    parquet = pa.parquet.read_table(folder / "types.parquet").schema
    for schema, unit in ((file.schema, "s"), (parquet, "ms")):
        time = pa.timestamp(unit, "America/New_York")
        types = {f.name: f.type for f in schema}
        kinds = {"ticker": text, "time": time, "sector": text, "none": text, "end": time, "day": pa.int32()}
        assert types == dict.fromkeys(types, pa.float32()) | kinds
    run(cli, "export", hard, "-o", folder / "naive.arrow")
    assert pa.ipc.open_file(folder / "naive.arrow").schema.field("time").type == pa.timestamp("s")


def test_metadata(cli: Path, made: list[Path], folder: Path) -> None:
    run(cli, "export", made[1], "-o", folder / "meta.parquet")
    stored = json.loads(pa.parquet.read_schema(folder / "meta.parquet").metadata[b"wstore"])
    run(cli, "export", made[1], "-o", folder / "meta.arrow")
    assert stored == json.loads(pa.ipc.open_file(folder / "meta.arrow").schema.metadata[b"wstore"])
    assert stored["schema"] == 1
    assert stored["unit"] == "s"
    assert stored["zone"] == "America/New_York"
    assert [g["name"] for g in stored["groups"]] == ["features", "labels", "masks", "targets", "ends"]
    columns = {c["name"]: c for g in stored["groups"] for c in g["columns"]}
    assert columns["ret"] == {"name": "ret", "role": "value", "reach_rows": 2}
    assert columns["m"] == {"name": "m", "role": "mask"}
    assert columns["sector"] == {"name": "sector", "role": "value", "categories": True}
    assert stored["breaks"] == [
        {"name": "gap", "kind": "gap", "max_gap": 5},
        {"name": "session", "kind": "column", "source": "day", "column": "day"},
    ]
    assert stored["empty_tickers"] == ["NA"]
    attributes = {a["name"]: a for a in stored["attributes"]}
    assert attributes["home"] == {"name": "home", "kind": "text", "values": {"AAPL": "US", "BRK.B": "US", "株式": "JP"}}
    assert attributes["beta"]["values"] == {"AAPL": 1.5, "NA": -0.0, "株式": 1e-310}


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_choice_of_rows(cli: Path, long: Path, folder: Path, ending: str) -> None:
    path = folder / f"choice.{ending}"
    run(cli, "export", long, "-o", path, "--tickers", "A", "--from", "2020-01-01 01:00", "--to", "2020-01-01T02:00:00Z")
    table = {"csv": lambda p: pl.read_csv(p, try_parse_dates=True).to_arrow()}.get(ending) or READERS[ending]["pyarrow"]
    at = instants(table(path).column("time"))
    begin = int(np.datetime64("2020-01-01T01:00", "ns").astype(int))
    assert at == list(range(begin, begin + 3600 * 10**9, 250 * 10**6))


def test_stream_to_a_pipe(cli: Path, hard: Path) -> None:
    with wstore.open(hard) as s:
        with pa.ipc.open_stream(run(cli, "export", hard, "--format", "arrow")) as r:
            check(r.read_all(), s)
        check(pa.parquet.read_table(pa.BufferReader(run(cli, "export", hard, "--format", "parquet"))), s)


def test_arrays(cli: Path, hard: Path, folder: Path) -> None:
    run(cli, "export", hard, "--format", "npy", "-o", folder / "arrays")
    meta = json.loads((folder / "arrays" / "meta.json").read_text())
    with wstore.open(hard) as s:
        assert meta["tickers"] == list(s.tickers)
        cells = np.load(folder / "arrays" / "features.npy", mmap_mode="r")
        assert np.array_equal(cells, np.concatenate([s.series(t, "features") for t in s.tickers]))
    assert sorted(p.name for p in (folder / "arrays").iterdir()) == [
        "features.npy", "meta.json", "ticker_start.npy", "time.npy",
    ]  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "feather"])
@pytest.mark.parametrize("which", ["hard", "long"])
def test_converted_again(cli: Path, hard: Path, long: Path, folder: Path, which: str, ending: str) -> None:
    path = {"hard": hard, "long": long}[which]
    options = {
        "hard": [],
        "long": ["--columns", "price,size", "--target", "ret:20", "--mask", "open", "--break", "s=session"],
    }[which]
    options += ["--max-gap", "1h"] if which == "long" else []
    run(cli, "export", path, "-o", folder / f"again.{which}.{ending}")
    again = folder / f"again.{which}.{ending}.wst"
    keys = ["--ticker", "ticker", "--time", "time"]
    run(cli, "convert", folder / f"again.{which}.{ending}", "-o", again, *keys, *options)
    with wstore.open(path) as a, wstore.open(again) as b:
        assert a.digest == b.digest
