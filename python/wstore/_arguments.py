"""What callers give, checked."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from numbers import Real

import numpy as np

from .errors import ArgumentError

Names = str | Iterable[str]

COUNT_MAX = (1 << 31) - 1


def names(given: Names | None, what: str, ordered: bool = False) -> tuple[str, ...]:
    """One name or several, as a tuple. If their order matters, a set, whose own changes from run to run, is refused."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if ordered and isinstance(given, set | frozenset):
        raise ArgumentError(f"{what} must be a list of names, in the order that arrays have; a set has none: {given!r}")
    try:
        out = tuple(given)
    except TypeError:
        raise ArgumentError(f"{what} must be a name or a list of names, not {given!r}") from None
    for n in out:
        if not isinstance(n, str):
            raise ArgumentError(f"{what} must be names, not {n!r}")
    return out


def integer(what: str, value: object, least: int, most: int = COUNT_MAX) -> int:
    """An int in [least, most]."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        n = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentError(f"{what} must be an integer of {least} to {most}, not {value!r}") from None
    if not least <= n <= most:
        raise ArgumentError(f"{what} must be {least} to {most}, not {n}")
    return n


def real(what: str, value: float | None) -> float | None:
    """A number that is not complex, or None."""
    if value is not None and not isinstance(value, Real):
        raise ArgumentError(f"{what} must be a number, not {value!r}")
    return value
