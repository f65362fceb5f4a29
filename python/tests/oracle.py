"""Section 11.2 of the specification, word by word and row by row, without any cleverness."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from encode import Panel, Ticker


@dataclass
class Question:
    inputs: list[str]
    targets: list[str] = field(default_factory=list)
    optional: list[str] = field(default_factory=list)
    lookback: int = 1
    horizons: list[int] = field(default_factory=lambda: [1])
    target_length: int = 1
    stride: int = 1
    at: set[int] | None = None
    breaks: list[str] | None = None
    tickers: list[str] | None = None
    where: list[str] = field(default_factory=list)
    from_: int | None = None
    to: int | None = None


def expand(p: Panel, names: list[str]) -> list[str]:
    out: list[str] = []
    for n in names:
        group = [g for g in p.groups if g.name == n]
        out += [c.name for c in group[0].cols] if group else [n]
    return out


def windows(p: Panel, q: Question) -> list[tuple[str, int]]:
    """All windows, in order, as (ticker, anchor row)."""
    inputs, targets = expand(p, q.inputs), expand(p, q.targets)
    optional, where = expand(p, q.optional), expand(p, q.where)
    out: list[tuple[str, int]] = []
    for name in p.names():
        t = p.tickers[name]
        n = len(t.times)
        broken = {r for rule in p.breaks if q.breaks is None or rule.name in q.breaks for r in p.break_rows(name, rule)}

        def present(c: str, r: int, t: Ticker = t) -> bool:
            v = t.values[c][r]
            return v is not None and math.isfinite(v)

        def fine(
            first: int,
            end: int,
            columns: list[str],
            n: int = n,
            broken: set[int] = broken,
            present: Callable[[str, int], bool] = present,
        ) -> bool:
            if first < 0 or end > n or any(r in broken for r in range(first + 1, end)):
                return False
            return all(present(c, r) for c in columns if c not in optional for r in range(first, end))

        def valid(a: int, broken: set[int] = broken, fine: Callable[[int, int, list[str]], bool] = fine) -> bool:
            if not fine(a - q.lookback + 1, a + 1, inputs):
                return False
            if not targets:
                return True
            for h in q.horizons:
                first, end = a + h, a + h + q.target_length
                if not fine(first, end, targets):
                    return False
                # Input and target rows lie in one stretch.
                low, high = min(first, a - q.lookback + 1), max(end, a + 1)
                if any(r in broken for r in range(low + 1, high)):
                    return False
            return True

        since = 0  # valid anchors since the run began
        for a in range(n):
            if not valid(a):
                since = 0
                continue
            if a in broken:
                since = 0
            taken = since % q.stride == 0 if q.at is None else t.times[a] in q.at
            since += 1
            if (
                taken
                and (q.tickers is None or name in q.tickers)
                and all(present(c, a) for c in where)
                and (q.from_ is None or t.times[a] >= q.from_)
                and (q.to is None or t.times[a] < q.to)
            ):
                out.append((name, a))
    return out


def content(p: Panel, q: Question, ticker: str, a: int) -> tuple[list[Any], list[Any]]:
    """A window's input rows, and its target rows by horizon."""
    t = p.tickers[ticker]
    inputs, targets = expand(p, q.inputs), expand(p, q.targets)
    x = [[t.values[c][r] for c in inputs] for r in range(a - q.lookback + 1, a + 1)]
    y = [[[t.values[c][r] for c in targets] for r in range(a + h, a + h + q.target_length)] for h in q.horizons]
    return x, y
