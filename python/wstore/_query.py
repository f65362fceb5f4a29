"""What one asks for: section 11.1 of the specification, checked against a file's schema."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from ._arguments import Names, integer, names
from ._format import I64, Schema
from ._times import ceil_time, exact_times
from .errors import ArgumentError, NotFoundError

HORIZONS_MAX = 4096

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Query:
    """A checked query. Names are as given; tickers are codes; times are in the file's unit."""

    lookback: int
    horizons: tuple[int, ...]  # none without targets
    target_length: int
    stride: int
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    optional: tuple[str, ...]
    where: tuple[str, ...]
    breaks: tuple[str, ...] | None
    tickers: I64 | None
    at: I64 | None
    from_: int | None
    to: int | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Of many tickers as a bit each, so that what is pickled stays small."""
        values = [getattr(self, f.name) for f in fields(self)]
        bits = None
        if self.tickers is not None and self.tickers.size and int(self.tickers[-1]) < 64 * self.tickers.size:
            mask = np.zeros(int(self.tickers[-1]) + 1, bool)
            mask[self.tickers] = True
            bits = np.packbits(mask).tobytes()
            values[[f.name for f in fields(self)].index("tickers")] = None
        return _unpickled, (tuple(values), bits)


def _unpickled(values: tuple[Any, ...], bits: bytes | None) -> Query:
    query = Query(*values)
    if bits is None:
        return query
    return replace(query, tickers=np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))).astype(np.int64))


def columns_of(schema: Schema, given: tuple[str, ...], what: str, once: bool = True) -> tuple[int, ...]:
    """The numbers of float32 columns that names of columns and groups stand for."""
    by_column = {c.name: i for i, c in enumerate(schema.columns)}
    by_group = {g.name: g for g in schema.groups}
    out: list[int] = []
    seen: dict[int, str] = {}
    for name in given:
        if name in by_column:
            some = range(by_column[name], by_column[name] + 1)
        elif name in by_group:
            g = by_group[name]
            some = range(g.first, g.first + len(g.columns))
        else:
            raise NotFoundError("column or group", name, (*by_group, *by_column))
        for c in some:
            column = schema.columns[c]
            if column.role == "label_end":
                raise ArgumentError(f"{what}: {column.name!r} holds times of label ends, not float32 values")
            if c in seen and once:
                both = f"{seen[c]!r} and {name!r}" if seen[c] != name else f"{name!r} twice"
                raise ArgumentError(f"{what}: column {column.name!r} is named more than once ({both}); drop one")
            seen[c] = name
            out.append(c)
    return tuple(out)


def make_query(
    schema: Schema,
    *,
    lookback: int,
    horizon: int | Sequence[int] | None,
    stride: int,
    target_length: int | None,
    inputs: Names | None,
    targets: Names | None,
    optional: Names,
    tickers: I64 | None,
    where: Names,
    at: Any,
    breaks: Names | None,
    from_: Any,
    to: Any,
) -> Query:
    """Checks everything that can be wrong with a query."""
    groups = {g.name for g in schema.groups}
    lookback = integer("lookback", lookback, 1)
    stride = integer("stride", stride, 1)

    if inputs is None:
        if "features" not in groups:
            known = ", ".join(repr(g.name) for g in schema.groups)
            raise ArgumentError(f"inputs must be named: the file has no group 'features' (its groups: {known})")
        inputs = "features"
    if targets is None and "targets" in groups:
        targets = "targets"
    input_names, target_names = names(inputs, "inputs", ordered=True), names(targets, "targets", ordered=True)
    input_columns = columns_of(schema, input_names, "inputs")
    target_columns = columns_of(schema, target_names, "targets")
    if not input_columns:
        raise ArgumentError("inputs must have at least one column")

    if target_columns:
        horizons = _horizons(1 if horizon is None else horizon, lookback)
        target_length = integer("target_length", 1 if target_length is None else target_length, 1)
    else:
        if horizon is not None or target_length is not None:
            which = "horizon" if horizon is not None else "target_length"
            raise ArgumentError(f"{which} needs targets: name some with targets=, or leave {which} out")
        horizons, target_length = (), 1

    optional_names = names(optional, "optional")
    chosen = {*input_columns, *target_columns}
    for c in columns_of(schema, optional_names, "optional", once=False):
        if c not in chosen:
            raise ArgumentError(f"optional: column {schema.columns[c].name!r} is not among the inputs or targets")
    where_names = names(where, "where")
    columns_of(schema, where_names, "where", once=False)

    break_names = None if breaks is None else names(breaks, "breaks")
    known_breaks = [b.name for b in schema.breaks]
    for name in break_names or ():
        if name not in known_breaks:
            raise NotFoundError("break set", name, known_breaks)

    times: I64 | None = None
    if at is not None:
        if stride != 1:
            raise ArgumentError(f"at and stride exclude each other: leave stride={stride} out")
        found, exact = exact_times(np.atleast_1d(at) if np.isscalar(at) else at, schema.unit)
        times = np.unique(found[exact])
    return Query(
        lookback=lookback,
        horizons=horizons,
        target_length=target_length,
        stride=stride,
        inputs=input_names,
        targets=target_names,
        optional=optional_names,
        where=where_names,
        breaks=break_names,
        tickers=tickers,
        at=times,
        from_=None if from_ is None else ceil_time(from_, schema.unit),
        to=None if to is None else ceil_time(to, schema.unit),
    )


def _horizons(given: int | Sequence[int], lookback: int) -> tuple[int, ...]:
    several = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if not 1 <= len(several) <= HORIZONS_MAX:
        raise ArgumentError(f"1 to {HORIZONS_MAX} horizons are possible, not {len(several)}")
    out = tuple(integer(f"horizon (with lookback {lookback})", h, 1 - lookback) for h in several)
    if any(a >= b for a, b in itertools.pairwise(out)):
        raise ArgumentError(f"horizons must be strictly increasing, not {out}")
    return out
