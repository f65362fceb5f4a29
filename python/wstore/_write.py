"""Writing: a table goes, batch by batch, as an Arrow stream to the command line tool, which makes the file."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import errno
import io
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from . import _cli
from ._arguments import Names, names
from ._frames import library
from .errors import ArgumentError, ConvertError, NotFoundError

_SCHEMA = 1  # of the tool's report
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 15
_END = bytes.fromhex("ffffffff 00000000")  # of an Arrow stream
# A flag of the tool that `write` has as an option, and a value whose text can be told from what follows.
_FLAG = re.compile(
    r"--(ticker|time-format|time|tz|columns|target|group|mask|category|fill|static-ticker|static|max-gap|break|on-duplicate|on-error"
    r"|lookback|align|memory|jobs|force)(?![\w-])(?: (\"[^\"]*\"|(?:error|first|last|fail|skip|\d+[a-z]*)(?! or)\b))?"
)
# Options that the tool takes as they are.
_PLAIN = ("static_ticker", "on_duplicate", "on_error", "tz", "time_format", "lookback", "align", "memory", "jobs")
_SUCH_AS = {"groups": '{"fast": ["rsi", "ret"]}', "breaks": '{"session": "day"}', "fill": '{"close": "ffill:5"}'}
_NAMES = {"break": "breaks", "category": "categories", "group": "groups", "mask": "masks"}

Duration = str | dt.timedelta | np.timedelta64
Reach = int | Duration | None


class Report(dict[str, Any]):
    """What became of the rows and columns: the command line tool's report, as a dict that prints short.

    Among its keys: `output`, `file_bytes`, `tickers`, `rows_read`, `rows_kept`, `duplicates`, `time_min`, `time_max`,
    `columns` (of each the missing cells, and those that float32 can't hold exactly), `skipped_columns` and why,
    `largest_gaps`, `lookback` (if asked for), `hints`, `digest`.
    """

    def __repr__(self) -> str:
        parts = [f"tickers {self['tickers']:,}", f"rows {self['rows_kept']:,}", f"columns {len(self['columns']):,}"]
        parts += [f"{k} {self[k]:,}" for k in ("duplicates", "rows_skipped") if self.get(k)]
        lines = [f"<wstore.Report {self['output']!r}: {', '.join(parts)}>", *self.get("hints", ())]
        return "\n".join(lines)


def write(
    df: Any,
    path: str | os.PathLike[str],
    *,
    ticker: str = "ticker",
    time: str | None = None,
    target: Names | Mapping[str, Reach] | None = None,
    columns: Names | None = None,
    groups: Mapping[str, Names] | None = None,
    masks: Names | None = None,
    categories: Names | None = None,
    fill: Mapping[str, float | str] | None = None,
    static: Any = None,
    static_ticker: str | None = None,
    max_gap: Duration | None = None,
    breaks: Mapping[str, str] | None = None,
    on_duplicate: str = "error",
    on_error: str = "fail",
    tz: str | None = None,
    time_format: str | None = None,
    lookback: int | None = None,
    align: int | None = None,
    memory: str | int | None = None,
    jobs: int | None = None,
    force: bool = False,
) -> Report:
    """Writes a table as a file of windows, and returns the report. Rows may be in any order.

    `df` is anything with the Arrow C stream interface: a polars or pandas DataFrame, a pyarrow Table or
    RecordBatchReader, a duckdb relation, a :class:`Store`. It goes to the command line tool batch by batch, so a reader
    or a query may be larger than memory. All but polars need pyarrow. Of a pandas index the levels with a name
    are columns, and a DatetimeIndex without a name is the column of times.

    `ticker`, `time`: their columns; without `time` it is found by name or content. `columns`: those of the group
    ``features``; by default all numeric ones without another use. `target`: those of the group ``targets``; as a
    mapping it says how far ahead each looks: rows, a duration ("5d", a timedelta), a column of the times at which its
    labels end, or None. Labels that were computed beforehand need that to be split without leakage. `groups`: more
    groups of columns that are stored together. `masks`: columns in which 0, false and missing mean missing, for
    `where`. `categories`: columns of texts, stored as the place in the sorted list of the column's texts
    (``Store.categories``), in the group ``categories`` unless another option names them. `fill`: what missing cells of
    a column get: "ffill" the last value of the ticker, never from before a break, "ffill:5" for 5 rows at most, or a
    value. `static`: attributes of tickers (``Store.attributes``), a table or the path of a file, with a row for each;
    its tickers are in the column `static_ticker`, by default one of the same name as those of `df`. `max_gap`: a longer
    time between two rows is a break, of the set ``gap``. `breaks`: more break sets, at places where a column changes.
    `tz`: the zone of times that have none; by default that of the column of times, if it names one. `time_format`: of
    times that are text.

    `on_duplicate`: which of the rows of one ticker and time is kept: "first", "last", or "error". `on_error`: "skip"
    leaves out the rows that can't be stored, and counts them. `force`: replaces an existing file. `lookback`: reports
    the tickers that are too short for it. `align`: of blocks, in bytes. `memory`: about how much the tool takes at most
    ("2GiB", or bytes); what does not fit is sorted on disk. `jobs`: the cores it takes.

    The file appears complete or not at all. Raises NotFoundError (an unknown column), ArgumentError, FileExistsError,
    ConvertError (data that can't be stored: which row, and what would do), ImportError (pyarrow is needed).
    """
    table = _open(df, time)
    tz = table.zone(time) if tz is None else tz
    flags, used = _flags(
        table.columns,
        ticker=ticker,
        time=time,
        target=target,
        columns=columns,
        groups=groups,
        masks=masks,
        categories=categories,
        fill=fill,
        static_ticker=static_ticker,
        max_gap=max_gap,
        breaks=breaks,
        on_duplicate=on_duplicate,
        on_error=on_error,
        tz=tz,
        time_format=time_format,
        lookback=lookback,
        align=align,
        memory=memory,
        jobs=jobs,
    )
    # What is not asked for need not be sent; but the tool may have to find the times among all.
    sent = table.columns if columns is None or time is None else [c for c in table.columns if c in used]
    with _as_file(static) as file:
        if file is not None:
            flags.append(f"--static={file}")
        return convert(["-"], path, flags, force, lambda pipe: table.feed(pipe, sent))


@contextlib.contextmanager
def _as_file(table: Any) -> Iterator[str | None]:
    """The path of a file, or of one that a table is written to meanwhile."""
    if table is None or isinstance(table, str | os.PathLike):
        yield None if table is None else os.fspath(table)
        return
    source = _open(table, None)
    with tempfile.TemporaryDirectory(prefix="wstore-") as folder:
        path = os.path.join(folder, "static.arrow")  # the name is kept in the file's provenance
        with open(path, "wb") as f:
            source.feed(f, source.columns)
        try:
            yield path
        except ConvertError as e:
            raise ConvertError(e.code, e.message.replace(path, "static")) from None


def convert(
    inputs: Sequence[str],
    path: str | os.PathLike[str],
    flags: Sequence[str],
    force: bool,
    feed: _cli.Feed | None = None,
) -> Report:
    """Runs ``wstore convert``."""
    out = os.fsdecode(path)
    folder = os.path.dirname(os.path.abspath(out))
    if os.path.isdir(out):
        raise IsADirectoryError(errno.EISDIR, "the output is a folder; name a file in it", out)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the output's folder is not there; make it first", folder)
    if not force and os.path.lexists(out):
        raise FileExistsError(errno.EEXIST, "the output exists; force=True replaces it", out)
    args = ["convert", "--json", f"--output={out}", *flags, *(["--force"] if force else []), "--", *inputs]
    try:
        printed = _cli.run(args, feed)
    except ConvertError as e:
        raise ConvertError(e.code, _in_python(e.message)) from None
    except ArgumentError as e:
        raise ArgumentError(_in_python(str(e).removesuffix("; see wstore convert --help"))) from None
    try:
        report = Report(json.loads(printed))
    except (ValueError, TypeError):
        report = Report()
    if report.get("schema") != _SCHEMA:
        raise ConvertError(
            0, f"{_cli.find()} is not of this package's version: {out} is written, but its report can't be read"
        )
    report["hints"] = [_in_python(h) for h in report.get("hints", ())]
    return report


def _in_python(message: str) -> str:
    """The tool's message, in which flags are named as the options of `write`."""

    def option(m: re.Match[str]) -> str:
        flag, value = m[1], m[2]
        name = _NAMES.get(flag, flag.replace("-", "_"))
        if flag == "force":
            return "force=True"
        return f"{name}=" + ("" if value is None else value if value.isdecimal() or value[0] == '"' else f'"{value}"')

    return _FLAG.sub(option, message.replace("standard input: row", "row").replace("standard input", "the data"))


def _flags(known: Sequence[str], **options: Any) -> tuple[list[str], set[str]]:
    """The tool's flags for the options of `write`, and the columns that they name, which must be known."""
    used: set[str] = set()

    def column(name: str) -> str:
        if name not in known:
            raise NotFoundError("column", name, known)
        used.add(name)
        return name

    def columns(given: Names, what: str) -> str:
        return listed([column(n) for n in names(given, what, ordered=True)])

    for name in ("groups", "breaks", "fill"):
        if not isinstance(options[name], Mapping | None):
            raise ArgumentError(f"{name} must be a dict, such as {_SUCH_AS[name]}, not {options[name]!r}")
    flags: list[str] = []
    try:
        flags.append(f"--ticker={column(options['ticker'])}")
    except NotFoundError as e:
        e.add_note(
            "ticker= names the column of the tickers. Of a table with a column for each ticker make a long one first: "
            "df.stack() of pandas, df.unpivot() of polars"
        )
        raise
    if options["time"] is not None:
        flags.append(f"--time={column(options['time'])}")
    if options["columns"] is not None:
        flags.append(f"--columns={columns(options['columns'], 'columns')}")
    if options["target"] is not None:
        flags.append(f"--target={listed([_target(t, column, known) for t in _pairs(options['target'])])}")
    for name, members in (options["groups"] or {}).items():
        flags.append(f"--group={name}={columns(members, f'groups[{name!r}]')}")
    if options["masks"] is not None:
        flags.append(f"--mask={columns(options['masks'], 'masks')}")
    if options["categories"] is not None:
        flags.append(f"--category={columns(options['categories'], 'categories')}")
    for name, value in (options["fill"] or {}).items():
        if "=" in column(name):
            raise ArgumentError(f"fill: the tool takes no column with '=' in its name; rename {name!r}")
        flags.append(f"--fill={name}={value}")
    if options["max_gap"] is not None:
        flags.append(f"--max-gap={_duration(options['max_gap'])}")
    for name, given in (options["breaks"] or {}).items():
        flags.append(f"--break={name}={column(given)}")
    for name in _PLAIN:
        if options[name] is not None:
            flags.append(f"--{name.replace('_', '-')}={options[name]}")
    return flags, used


def _pairs(given: Names | Mapping[str, Reach]) -> list[tuple[str, str | None]]:
    """Targets and their reach. Without a mapping the reach may be part of the name."""
    if isinstance(given, Mapping):
        return [(name, None if reach is None else _duration(reach)) for name, reach in given.items()]
    return [(name, None) for name in names(given, "target", ordered=True)]


def _target(pair: tuple[str, str | None], column: Callable[[str], str], known: Sequence[str]) -> str:
    """A target as the tool takes it: a column, or a column, a colon and its reach."""
    name, reach = pair
    if reach is None and name not in known and ":" in name:
        name, _, reach = name.rpartition(":")
    if reach is None:
        return column(name)
    if (text := f"{name}:{reach}") in known:
        raise ArgumentError(
            f"target {name!r} with the reach {reach!r} reads as the column {text!r}; rename one of them"
        )
    if reach in known:
        column(reach)
    return f"{column(name)}:{reach}"


def _duration(given: Any) -> str:
    if isinstance(given, np.timedelta64):
        given = given.astype("m8[us]").item()
    if isinstance(given, dt.timedelta):
        return f"{given // dt.timedelta(microseconds=1)}us"
    return str(given)


def listed(fields: Sequence[str]) -> str:
    """Names as the tool's flags take them: with commas, as in CSV."""
    if not fields:
        return ""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue()


class _Table:
    """A table's columns, the zones of those of times that have one, and what writes some as an Arrow stream."""

    def __init__(
        self, columns: Sequence[str], zones: Mapping[str, Any], feed: Callable[[IO[bytes], list[str]], None]
    ) -> None:
        self.columns = list(columns)
        self.zones = zones
        self.feed = feed
        twice = [repr(c) for c, n in Counter(self.columns).items() if n > 1]
        if twice:
            raise ArgumentError(f"columns must have different names, but there are several {', '.join(twice)}")

    def zone(self, time: str | None) -> str | None:
        """The name of the zone of the column of times, unless it is UTC or an offset, which need none."""
        if time is None:
            usual = [c for c in self.columns if c.casefold() in ("date", "time", "datetime", "timestamp")]
            time = usual[0] if len(usual) == 1 else None
        zone = "" if time is None else str(self.zones.get(time) or "")
        return zone if "/" in zone and zone not in ("Etc/UTC", "Etc/GMT") else None


def _open(df: Any, time: str | None) -> _Table:
    pl, pd = sys.modules.get("polars"), sys.modules.get("pandas")
    if pl is not None and isinstance(df, pl.LazyFrame):
        raise ArgumentError("a LazyFrame is a query without data; give its result: df.collect()")
    if pl is not None and isinstance(df, pl.DataFrame):
        return _of_polars(df, pl)
    if pd is not None and isinstance(df, pd.DataFrame):
        return _of_pandas(df, pd, time or "date")
    if not hasattr(df, "__arrow_c_stream__"):
        hint = "; files are converted by the command line tool: wstore convert" if isinstance(df, str) else ""
        raise ArgumentError(
            "the data must be a polars or pandas DataFrame, a pyarrow Table, or something else with the Arrow C stream "
            f"interface, not {type(df).__name__}{hint}"
        )
    pa = library("pyarrow", f"writing a {type(df).__name__}")
    try:  # a reader that went through the interface would lose the exceptions of its source
        reader = df if isinstance(df, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(df)
    except pa.ArrowException as e:
        hint = "; to_frame() makes one" if hasattr(df, "to_frame") else f": {e}"
        raise ArgumentError(f"a {type(df).__name__} is not a table{hint}") from e

    def feed(pipe: IO[bytes], sent: list[str]) -> None:
        if sent == reader.schema.names:
            _send(pipe, reader.schema, reader)
        else:
            schema = pa.schema([reader.schema.field(n) for n in sent])
            _send(pipe, schema, (batch.select(sent) for batch in reader))

    zones = {f.name: getattr(f.type, "tz", None) for f in reader.schema}
    return _Table(reader.schema.names, zones, feed)


def _rows(columns: int) -> int:
    """Rows of a batch. Whoever reads the stream holds a batch or more in memory."""
    return max(1 << 10, min(_BATCH_ROWS, _BATCH_BYTES // (8 * max(1, columns))))


def _send(pipe: IO[bytes], schema: Any, batches: Any) -> None:
    """Writes record batches as an Arrow stream, large ones in pieces. Its end is only written if all went well."""
    pa = library("pyarrow", "writing")
    writer = pa.ipc.new_stream(pipe, schema)
    each = _rows(len(schema))
    for batch in batches:
        for at in range(0, batch.num_rows, each):
            writer.write_batch(batch.slice(at, each))
    writer.close()


def _of_polars(df: Any, pl: Any) -> _Table:
    def feed(pipe: IO[bytes], sent: list[str]) -> None:
        # Polars chooses the size of batches by itself, and of a wide frame they are huge. So each part is made a stream
        # of its own, of which all but the first lose their schema, and all but the last their end.
        part = df.select(sent)
        each = _rows(part.width)
        level = pl.CompatLevel.oldest()
        for at in range(0, max(1, part.height), each):
            out = io.BytesIO()
            part.slice(at, each).write_ipc_stream(out, compat_level=level)
            view = out.getbuffer()
            begin = 0 if at == 0 else 8 + int.from_bytes(view[4:8], "little")
            pipe.write(view[begin : -len(_END)])
        pipe.write(_END)

    return _Table(df.columns, {c: getattr(kind, "time_zone", None) for c, kind in df.schema.items()}, feed)


def _of_pandas(df: Any, pd: Any, time: str) -> _Table:
    pa = library("pyarrow", "writing a pandas DataFrame")
    if df.columns.nlevels > 1:
        raise ArgumentError(
            "the columns have several levels; make the tickers' level a column with df.stack(), and give the others "
            f"one name each: they are {', '.join(map(repr, df.columns[:3]))}{', …' if len(df.columns) > 3 else ''}"
        )
    # Parts of the frame are made when they are written: name -> (first row, end) -> values.
    parts: dict[str, Callable[[int, int], Any]] = {}
    index = df.index
    if index.nlevels > 1 and None in index.names:
        raise ArgumentError(
            "levels of the index have no name; name those of tickers and times: df.rename_axis(['ticker', 'date']). "
            f"The first row's are {index[0] if len(index) else ()}"
        )
    for level, label in enumerate(index.names):
        if label is None and index.nlevels == 1 and isinstance(index, pd.DatetimeIndex) and time not in df.columns:
            label = time
        if label is not None and label not in df.columns:
            parts[str(label)] = lambda a, b, level=level: index[a:b].get_level_values(level)  # type: ignore[misc]
    place = len(parts)
    labels = [*parts, *map(str, df.columns)]
    for i in range(df.shape[1]):
        parts[labels[place + i]] = lambda a, b, i=i: df.iloc[a:b, i]  # type: ignore[misc]

    def values(name: str, a: int, b: int, kind: Any = None) -> Any:
        try:
            out = pa.array(parts[name](a, b), type=kind, from_pandas=True)
        except pa.ArrowException as e:
            raise ArgumentError(f"column {name!r} can't be sent: {e}. Drop it, or name the others with columns=") from e
        return out.combine_chunks() if isinstance(out, pa.ChunkedArray) else out

    def feed(pipe: IO[bytes], sent: list[str]) -> None:
        schema = pa.schema([(n, values(n, 0, len(df) if _is_object(parts[n](0, 0)) else 0).type) for n in sent])

        def batches() -> Iterator[Any]:
            each = _rows(len(schema))
            for a in range(0, len(df), each):
                columns = [values(f.name, a, a + each, f.type) for f in schema]
                yield pa.record_batch(columns, schema=schema)

        _send(pipe, schema, batches())

    return _Table(labels, {n: getattr(part(0, 0).dtype, "tz", None) for n, part in parts.items()}, feed)


def _is_object(part: Any) -> bool:
    """Whether a column's type shows only in its values."""
    kind = getattr(getattr(part.dtype, "categories", part), "dtype", None)
    return bool(kind == np.dtype("O"))
