"""Panels to test with: a few fixed ones, and any."""

from __future__ import annotations

import math
from random import Random

from encode import Break, Col, Group, Panel, Ticker, Values
from oracle import Question, expand


def small() -> Panel:
    """Two groups, label ends, breaks of all kinds, missing cells, an empty ticker; every section is there."""

    def ticker(times: list[int], holes: list[int], **breaks: list[int]) -> Ticker:
        n = len(times)
        a: list[float | int | None] = [float(i) for i in range(n)]
        for h in holes:
            a[h] = None
        values: Values = {
            "a": a,
            "b": [10.5 + i for i in range(n)],
            "m": [None if i % 4 == 3 else 1.0 for i in range(n)],
            "ret": [-float(i) for i in range(n)],
            "end": [t + 3 if i != 1 else None for i, t in enumerate(times)],
        }
        return Ticker(times, values, breaks)

    return Panel(
        groups=[
            Group("features", [Col("a"), Col("b")]),
            Group("masks", [Col("m", role=1)]),
            Group("targets", [Col("ret", reach_kind=1, reach=2)]),
            Group("ends", [Col("end", role=2)], dtype=2),
        ],
        tickers={
            "AAPL": ticker([0, 1, 2, 3, 10, 11, 12, 13], [2], session=[3]),
            "BRK.B": ticker([1, 2, 3], []),
            "NA": ticker([], []),
            "株式": ticker([2, 3, 10, 11, 12], [0, 1], session=[3]),
        },
        breaks=[Break("gap", 1, 5), Break("session", 2, 0, "day")],
        unit=0,
        zone="America/New_York",
        prov=b'{"source": "test"}',
    )


def labelled() -> Panel:
    """`small`, with categories of two more columns, and attributes of both kinds."""
    p = small()
    p.groups.insert(1, Group("labels", [Col("sector"), Col("none")]))
    for t in p.tickers.values():
        n = len(t.times)
        t.values["sector"] = [None if i % 5 == 4 else float(i % 3) for i in range(n)]
        t.values["none"] = [None] * n
    p.categories = {"sector": ["Energy", "IT", "é", "株"], "none": []}
    p.attributes = {
        "home": ["US", "US", None, "JP"],
        "beta": [1.5, math.nan, -0.0, 1e-310],
        "sector": ["IT", "Energy", "Energy", None],
        "empty": [None] * 4,
    }
    return p


NAMES = ["A", "AA", "B", "NA", "Ñ", "株", "z 1", "\x00", "c/d"]


def any_panel(r: Random) -> Panel:
    """Up to five tickers of up to 30 rows, whose calendars often have pieces in common."""
    groups = [
        Group("features" if g == 0 else f"g{g}", [Col(f"c{g}{k}") for k in range(r.randint(1, 4))])
        for g in range(r.randint(1, 3))
    ]
    if len(groups) > 1 and r.random() < 0.5:
        groups[-1].name = "targets"
    breaks = [Break("gap", 1, r.randint(2, 8))] if r.random() < 0.5 else []
    breaks += [Break("given")] if r.random() < 0.5 else []
    columns = [c.name for g in groups for c in g.cols]
    holes_in = {c for c in columns if r.random() < 0.4}

    def clock() -> list[int]:
        return sorted(r.sample(range(-40, 60), r.randint(1, 30)))

    common = clock()
    tickers: dict[str, Ticker] = {}
    count = 0
    for name in r.sample(NAMES, r.randint(0, 5)):
        times = common if r.random() < 0.7 else clock()
        lo, hi = (0, len(times)) if r.random() < 0.5 else sorted(r.choices(range(len(times) + 1), k=2))
        times = times[lo:hi]
        n = len(times)
        values: dict[str, list[float | int | None]] = {c: [float(count + i) for i in range(n)] for c in columns}
        for c in sorted(holes_in):
            for hole in r.choices(range(n), k=r.randint(0, 3)) if n else ():
                for row in range(hole, min(n, hole + r.randint(1, 3))):
                    values[c][row] = None
        count += n
        cuts = sorted(set(r.choices(range(1, n), k=r.randint(0, 2)))) if n > 1 else []
        tickers[name] = Ticker(times, values, {"given": cuts})
    p = Panel(groups, tickers, breaks, unit=r.randint(0, 3), align_log2=r.choice([6, 7, 12]))
    for c in columns:
        if r.random() < 0.2:
            p.categories[c] = sorted(r.sample(NAMES, r.randint(0, 4)), key=str.encode)
            n = len(p.categories[c])
            for t in tickers.values():
                t.values[c] = [None if v is None or not n else float(r.randrange(n)) for v in t.values[c]]
    for name in r.sample(NAMES, r.choice([0, 0, 1, 3])):
        among: list[str | float | None] = r.choice([[None, *NAMES], [None, 0.0, -1.5, math.inf, math.nan]])
        p.attributes[name] = r.choices(among, k=len(tickers))
    return p


def any_question(r: Random, p: Panel) -> Question:
    """A valid query that leaves most of its parameters alone, so that most have windows."""
    columns = [c.name for c in p.columns()]

    def chosen(least: int) -> list[str]:
        if r.random() < 0.4:
            return [r.choice(p.groups).name]
        return r.sample(columns, min(len(columns), r.randint(least, 4)))

    def seldom() -> bool:
        return r.random() < 0.25

    q = Question(chosen(1), chosen(0), lookback=r.choice([1, 2, 3, 3, 5, 8]))
    among = sorted({*expand(p, q.inputs), *expand(p, q.targets)})
    if r.random() < 0.4:
        q.optional = r.sample(among, r.randint(1, len(among)))
    q.horizons = sorted(r.sample(range(1 - q.lookback, 6), r.choice([1, 1, 2, 3]))) if q.targets else []
    q.target_length = r.choice([1, 1, 2, 3]) if q.targets else 1
    if r.random() < 0.4:
        q.stride = r.randint(2, 4)
    elif r.random() < 0.4:
        times = sorted({time for t in p.tickers.values() for time in t.times})
        q.at = {*r.sample(times, r.randint(0, len(times))), r.randint(-45, 65)}
    if seldom():
        q.where = r.sample(columns, 1)
    if p.breaks and seldom():
        q.breaks = [b.name for b in p.breaks if r.random() < 0.5]
    if p.tickers and seldom():
        q.tickers = r.choices(sorted(p.tickers), k=3)
    if seldom():
        q.from_ = r.randint(-45, 20)
    if seldom():
        q.to = r.randint(0, 65)
    return q
