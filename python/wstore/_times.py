"""Times as people write them to times as files hold them: int64 in the file's unit.

A time without a zone is taken as the file's times are: UTC, or a naive source's own clock.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ._format import I64, Unit
from .errors import ArgumentError

I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# numpy's units as (seconds, parts of a second)
_UNITS = {
    "W": (604800, 1),
    "D": (86400, 1),
    "h": (3600, 1),
    "m": (60, 1),
    "s": (1, 1),
    "ms": (1, 10**3),
    "us": (1, 10**6),
    "ns": (1, 10**9),
    "ps": (1, 10**12),
    "fs": (1, 10**15),
    "as": (1, 10**18),
}
_ISO = re.compile(
    r"(?P<date>\d{4}(-\d\d(-\d\d)?)?)"
    r"([T ](?P<clock>\d\d(:\d\d(:\d\d(\.\d+)?)?)?) ?(Z|z|(?P<sign>[+-])(?P<h>\d\d)(:?(?P<m>\d\d))?)?)?"
)
_HINT = "give a numpy.datetime64, a datetime, ISO text such as '2020-01-31T09:30', or an int in the file's unit"


def _ratio(dtype: np.dtype[Any], unit: Unit) -> tuple[int, int]:
    """A count of this datetime64 type times the first, over the second, is one in the file's unit. One of them is 1."""
    seconds, parts = _UNITS[np.datetime_data(dtype)[0]]
    num, den = seconds * PER_SECOND[unit], parts
    common = math.gcd(num, den)
    return num // common, den // common


def _plain(a: npt.NDArray[Any], unit: Unit) -> npt.NDArray[Any]:
    """Years and months have no fixed length, days do; and 1 as the unit's multiple. Without a unit it is the file's."""
    name, multiple = np.datetime_data(a.dtype)
    if name == "generic":  # as np.datetime64("NaT") is
        return a.astype(f"M8[{unit}]")
    if name in ("Y", "M"):
        return a.astype("M8[D]")
    return a if multiple == 1 else a.astype(f"M8[{name}]")


def _scalar(value: object) -> np.datetime64 | int:
    """A datetime64, or an int in the file's unit."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    converted: object = value
    if isinstance(value, str):
        converted = _parse(value)
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        converted = np.datetime64(value, "D")
    elif hasattr(value, "to_datetime64"):  # a pandas Timestamp, which has nanoseconds
        converted = value.to_datetime64()
    elif isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        converted = np.datetime64(value, "us")
    if not isinstance(converted, np.datetime64):
        raise ArgumentError(f"{value!r} is not a time: {_HINT}")
    if np.isnat(converted):
        raise ArgumentError(f"{value!r} is not a time (NaT)")
    return converted


def _parse(text: str) -> np.datetime64:
    iso = _ISO.fullmatch(text.strip())
    try:
        if iso is None:
            raise ValueError(text)
        if iso["clock"] is None:
            return np.datetime64(iso["date"])
        local = np.datetime64(f"{iso['date']}T{iso['clock']}")
        minutes = int(iso["h"] or 0) * 60 + int(iso["m"] or 0)
        return local - np.timedelta64(-minutes if iso["sign"] == "-" else minutes, "m")
    except ValueError:
        raise ArgumentError(f"{text!r} is not a time: {_HINT}") from None


def ceil_time(value: object, unit: Unit) -> int:
    """The least time of the file's unit that is not before the given one; an unbounded int."""
    t = _scalar(value)
    if isinstance(t, int):
        return t
    a = _plain(np.asarray(t), unit)
    num, den = _ratio(a.dtype, unit)
    return -(-int(a.astype(np.int64)) * num // den)


def exact_times(values: object, unit: Unit, nat: bool = False) -> tuple[I64, npt.NDArray[np.bool_]]:
    """Times in the file's unit, rounded down, and which of them are exact (others match no row's time exactly).

    NaT is an error, or with `nat` the least int64, as which a file's time of that value reads.
    """
    if isinstance(values, set | frozenset):
        values = list(values)
    # Of a mixture numpy would make text, or take ints for counts of another unit.
    mixed = isinstance(values, list | tuple) and len({type(v) for v in values}) > 1
    a = np.asarray(values, object if mixed else None)
    if hasattr(values, "to_numpy") and a.dtype.kind == "O":  # e.g. a pandas series with a time zone
        a = np.asarray(values, dtype="M8[ns]")
    if a.dtype.kind in "iu":
        if a.dtype == np.uint64 and (a > I64_MAX).any():
            raise ArgumentError("a time that is not an int64")
        return a.astype(np.int64), np.ones(a.shape, bool)
    if a.dtype.kind != "M":
        items = [_scalar(v) for v in a.ravel().tolist()] if a.dtype.kind in "OU" or not a.size else None
        if items is None:
            raise ArgumentError(f"an array of {a.dtype} does not hold times: {_HINT}")
        out, exact = np.empty(len(items), np.int64), np.ones(len(items), bool)
        for i, t in enumerate(items):
            if isinstance(t, int):
                if not I64_MIN <= t <= I64_MAX:
                    raise ArgumentError(f"{t} is not an int64")
                out[i] = t
            else:
                one, ok = exact_times(np.asarray(t), unit)
                out[i], exact[i] = one[()], ok[()]
        return out.reshape(a.shape), exact.reshape(a.shape)
    missing = np.isnat(a)
    if missing.any() and not nat:
        raise ArgumentError("a time is NaT")
    a = _plain(a, unit)
    num, den = _ratio(a.dtype, unit)
    counts = a.astype(np.int64)
    if den == 1:
        limit = I64_MAX // num
        inside = (counts <= limit) & (counts >= -limit)
        # What an int64 can't hold lies before or behind every time of the file.
        ends = np.where(counts > 0, I64_MAX, I64_MIN)
        return np.where(inside, np.where(inside, counts, 0) * num, ends), np.asarray(inside | missing)
    whole = counts // den
    return np.where(missing, I64_MIN, whole), np.asarray(missing | (whole * den == counts))


def as_datetime(a: npt.NDArray[np.int64], unit: Unit) -> npt.NDArray[np.datetime64]:
    """The same bytes as times; the least int64 reads as NaT."""
    return a.view(f"<M8[{unit}]")
