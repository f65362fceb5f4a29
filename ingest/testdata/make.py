"""Writes the files of this folder, one table of some days and tickers as polars, pandas and pyarrow store it.

Run with polars, pandas and pyarrow at the versions named in README.md.
"""

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather, ipc

time = [dt.datetime(2020, 3, d, 9, 30, 0, 500_000) for d in (2, 3, 2, 4, 5, 6, 7)]
table = pl.DataFrame(
    {
        "time": pl.Series(time, dtype=pl.Datetime("us")),
        "ticker": ["AAPL", "AAPL", "a ticker of more than twelve bytes", "NA", "ÄÖ", "AAPL", "NA"],
        "x": [1.5, None, float("nan"), 0.1, 1e-50, -16777217.0, float("inf")],
        "n": pl.Series([1, -2, 2**53 + 1, None, 5, 16777217, 0], dtype=pl.Int64),
        "u": pl.Series([2**64 - 1, 1, 2, 3, None, 5, 6], dtype=pl.UInt64),
        "f": pl.Series([0.1, None, 2.5, -0.0, 1e-45, 3.4e38, 7.0], dtype=pl.Float32),
        "b": [True, False, None, True, True, False, True],
        "d": pl.Series(["1.10", "-2.25", None, "16777216.01", "0.00", "0.01", "99.99"]).cast(pl.Decimal(20, 2)),
        "day": [t.date() for t in time],
        "note": ["", None, "a text of more than twelve bytes", "1", "x", "x", ""],
        "list": [[1], [], None, [2, 3], [4], [5], [6]],
        "nothing": pl.Series([None] * 7, dtype=pl.Null),
    }
)

table.write_ipc_stream("polars.arrows")
table.write_ipc_stream("polars_lz4.arrows", compression="lz4")
table.write_ipc("polars_zstd.arrow", compression="zstd")
table.write_parquet("polars.parquet")
categorical = table.with_columns(pl.col("ticker", "note").cast(pl.Categorical))
categorical.write_ipc_stream("polars_categorical.arrows")

arrow = pa.table(
    {
        "time": pa.array(time, pa.timestamp("ns")),
        "ticker": pa.array(table["ticker"].to_list(), pa.large_utf8()),
        "x": pa.array(table["x"].to_list()),
        "n": pa.array(table["n"].to_list(), pa.int64()),
        "u": pa.array(table["u"].to_list(), pa.uint64()),
        "f": pa.array(table["f"].to_list(), pa.float32()),
        "b": pa.array(table["b"].to_list()),
        "d": pa.array(table["d"].to_list(), pa.decimal256(40, 2)),
        "day": pa.array(table["day"].to_list(), pa.date64()),
        "note": pa.array(table["note"].to_list()).dictionary_encode(),
        "list": pa.array(table["list"].to_list(), pa.list_(pa.int64())),
        "nothing": pa.nulls(7),
    }
)
with ipc.new_stream("pyarrow.arrows", arrow.schema) as w:
    w.write_table(arrow, max_chunksize=3)
feather.write_feather(arrow, "pyarrow_lz4.feather", compression="lz4", chunksize=4)
with ipc.new_stream("pyarrow_zstd.arrows", arrow.schema, options=ipc.IpcWriteOptions(compression="zstd")) as w:
    w.write_table(arrow)
# A dictionary that is replaced, and one that grows.
for name, deltas in (("pyarrow_replaced.arrows", False), ("pyarrow_deltas.arrows", True)):
    i = arrow.schema.get_field_index("ticker")
    parts = []
    for k, known in ((0, 2), (3, 4), (6, 4)):
        rows = arrow.slice(k, 3)
        names = list(dict.fromkeys(table["ticker"].to_list()))[:known]
        if not deltas:
            names = sorted(set(rows["ticker"].to_pylist()))
        codes = pa.array([names.index(s) for s in rows["ticker"].to_pylist()], pa.int8())
        coded = pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.large_utf8()))
        parts.append(rows.set_column(i, "ticker", coded))
    with ipc.new_stream(name, parts[0].schema, options=ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)) as w:
        for p in parts:
            w.write_table(p)

flat = arrow.drop_columns(["d"]).append_column("d", arrow["d"].cast(pa.decimal128(20, 2)))
pq.write_table(flat, "pyarrow.parquet", row_group_size=3, compression="gzip")
pq.write_table(
    flat,
    "pyarrow_v2.parquet",
    data_page_version="2.0",
    version="1.0",
    compression="zstd",
    use_dictionary=False,
    write_page_checksum=True,
)
pq.write_table(
    flat,
    "pyarrow_int96.parquet",
    use_deprecated_int96_timestamps=True,
    compression="lz4",
    store_decimal_as_integer=True,
)
frame = pd.DataFrame({"x": table["x"].to_list(), "n": [1.0, -2, 3, None, 5, 6, 7]}, index=pd.DatetimeIndex(time))
frame.to_parquet("pandas_index.parquet")
frame.rename_axis("When").to_parquet("pandas_named.parquet")
