"""The tables and the plot of bench/peers.py."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contenders import BATCH, CONTENDERS, PLAIN

if TYPE_CHECKING:
    from peers import Results

BEGIN, END = "<!-- {}:begin -->", "<!-- {}:end -->"


def number(v: float | None) -> str:
    """Three digits that mean something."""
    if v is None:
        return ""
    if v == 0:
        return "0"
    if abs(v) >= 1000:
        digits = 10 ** max(0, len(str(int(abs(v)))) - 3)
        return f"{round(v / digits) * digits:,}"
    return f"{v:.3g}" if abs(v) >= 0.0001 else f"{v:.1g}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds * 1e9)} ns"


def ratio(a: float | None, b: float | None) -> str:
    return number(a / b) if a and b else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _mb(b: float) -> str:
    return f"{b / 1e6:,.0f}" if b >= 0.5e6 else "0"


def _speeds(r: Results, memory: bool) -> str:
    own = r.speed.get("wstore", {}).get("batch")
    bound = r.speed.get("memcpy", {}).get("batch")
    head = [
        "",
        "open",
        "index, bytes a window",
        "one window",
        f"windows/s, batches of {BATCH}",
        "of wstore",
        "of memcpy",
    ]
    head += ["own memory, MB", "with the mapped file, MB"] if memory else []
    rows = []
    for name, s in sorted(r.speed.items(), key=lambda item: -item[1]["batch"]):
        windows = "window" in s
        row = [
            _name(name),
            duration(s["open"]) if windows else "",
            number(s["index"]) if windows else "",
            duration(s.get("window")),
            number(s["batch"]),
            ratio(s["batch"], own),
            ratio(s["batch"], bound),
        ]
        if memory:
            row += [_mb(s["own"]), _mb(s["pss"])] if windows else ["", ""]
        rows.append(row)
    return table(head, rows)


def _name(name: str) -> str:
    return f"**{name}**" if name.startswith("wstore") else name


def loaders(r: Results) -> list[tuple[str, str, float]]:
    """Contender, loader, windows/s; the fastest first."""
    every = [
        (name, key.removeprefix("loader: "), v)
        for name, s in r.speed.items()
        for key, v in s.items()
        if key.startswith("loader: ")
    ]
    return sorted(every, key=lambda item: -item[2])


def _loaders(r: Results) -> str:
    every = loaders(r)
    own = max((v for name, _, v in every if name == "wstore"), default=None)
    rows = [[f"{_name(name)}: {loader}", number(v), ratio(v, own)] for name, loader, v in every]
    return table(["", "windows/s", "of wstore"], rows)


def _warm_of(r: Results, label: str) -> float | None:
    name, loader = label.split(": ", 1)
    return r.speed.get(name, {}).get(f"loader: {loader}")


def _cold(r: Results) -> str:
    own = max((c["rate"] for label, c in r.cold.items() if label.startswith("wstore: ") and "rate" in c), default=None)
    rows = []
    for label, c in sorted(r.cold.items(), key=lambda item: -item[1].get("rate", 0)):
        name, loader = label.split(": ", 1)
        row = [f"{_name(name)}: {loader}"]
        if "failed" in c:
            row += [c["failed"], "", "", ""]
        else:
            part = "whole epoch" if c["whole"] else "cut short"
            row += [number(c["rate"]), ratio(c["rate"], own), ratio(c["rate"], _warm_of(r, label)), part]
        rows.append(row)
    return table(["", "windows/s", "of wstore", "of itself in memory", ""], rows)


def _experiments(r: Results) -> str:
    rows = [
        [
            _name(name),
            _mb(one),
            _mb(four),
            number(one / r.file_bytes),
            number(four / r.file_bytes),
        ]
        for name, (one, four) in sorted(r.experiments.items(), key=lambda item: item[1][1])
    ]
    return table(["", "one, MB", "four, MB", "one, of the data", "four, of the data"], rows)


def _goals(big: Results, real: Results) -> str:
    """What wstore is meant to reach, and whether it does in this run."""
    speed, mine = big.speed, big.speed.get("wstore", {})
    warm = {f"{name}: {loader}": v for name, loader, v in loaders(big)}
    cold = {k: v["rate"] for k, v in big.cold.items() if "rate" in v}

    def best(of: dict[str, float], begins: str, ends: str = "") -> float | None:
        return max((v for k, v in of.items() if k.startswith(begins) and k.endswith(ends)), default=None)

    def over(a: float | None, b: float | None) -> float | None:
        return a / b if a and b else None

    own, blocked = best(warm, "wstore: WindowLoader, exact"), best(cold, "wstore: WindowLoader, blocked")
    one = min((speed[n]["window"] for n in ("numpy-loop", "article-after") if n in speed), default=None)
    four = big.experiments.get("wstore", (None, None))[1]
    at_least = [
        ("batches, of memcpy", over(mine.get("batch"), speed.get("memcpy", {}).get("batch")), 0.9),
        ("one window, times as fast as a memmap slice and as the article", over(one, mine.get("window")), 1),
        ("loader, times the article's best", over(own, best(warm, "article")), 5),
        ("loader, times the article's with 2 workers", over(own, best(warm, "article", "2 workers")), 20),
        ("loader, not in memory, of itself in memory", over(blocked, best(warm, "wstore: WindowLoader, blocked")), 0.8),
        ("loader, not in memory, times Lance", over(blocked, best(cold, "lance")), 20),
        ("loader, not in memory, times plain `np.memmap`", over(blocked, best(cold, "numpy")), 1000),
    ]
    at_most = [
        ("memory of four experiments, of the data", over(four, big.file_bytes), 1.1),
        (f"index of {real.panel}, bytes a window", real.speed.get("wstore", {}).get("index"), 0.05),
    ]
    rows = [(what, v, f"≥ {goal:,}", v >= goal) for what, v, goal in at_least if v is not None]
    rows += [(what, v, f"≤ {goal:,}", v <= goal) for what, v, goal in at_most if v is not None]
    return table(
        ["wstore", "", "goal", "reached"],
        [[what, number(v), goal, "yes" if good else "**no**"] for what, v, goal, good in rows],
    )


def tables(results: list[Results], machine: str) -> str:
    big, real = results
    parts = [f"Machine: {machine}.", "![windows per second](peers.svg)"]
    parts += [_goals(big, real)] if "wstore" in big.speed else []
    parts += [f"### {big.panel}: {_mb(big.file_bytes)} MB, {big.windows:,} windows"]
    if big.speed:
        parts += [_speeds(big, memory=True), "Shuffled epochs, as torch tensors, the file in memory:", _loaders(big)]
    if big.cold:
        limit = f"{_mb(big.limit)} MB for it and for what is built from it"
        parts += [f"Shuffled epochs, as torch tensors, the file not in memory, {limit}:", _cold(big)]
    if big.experiments:
        parts += [
            "Memory of one experiment, and of four at once with lookbacks of 20, 40, 60 and 120 rows, with the mapped "
            "file, without what each process takes before it opens the data:",
            _experiments(big),
        ]
    if real.speed:
        parts += [f"### {real.panel}: {_mb(real.file_bytes)} MB, {real.windows:,} windows"]
        parts += [_speeds(real, memory=False), _loaders(real)]
    notes = [f"* {name}: {CONTENDERS[name].what}. Index: {CONTENDERS[name].index}." for name in big.speed]
    return "\n\n".join([*parts, "### The contenders", "\n".join(notes)])


def convert_table(results: list[dict[str, Any]]) -> str:
    """Of bench/convert.py."""
    goals = {"csv": 1.5, "parquet": 1.0}
    rows = []
    for r in results:
        goal = goals[r["format"]]
        good = r["faster"] >= goal and r["memory"] <= 0.25
        rows.append(
            [
                f"{r['format']}, {_mb(r['bytes'])} MB",
                duration(r["polars"]),
                duration(r["wstore"]),
                number(r["faster"]),
                _mb(r["polars memory"]),
                _mb(r["wstore memory"]),
                number(r["memory"]),
                f"≥ {goal:g}, ≤ 0.25",
                "yes" if good else "**no**",
            ]
        )
    head = ["", "polars", "wstore", "times as fast", "polars, MB", "wstore, MB", "of its memory", "goals", "reached"]
    return table(head, rows)


def write(readme: Path, text: str, name: str = "peers") -> None:
    """Replaces what stands between a document's markers."""
    begin, end = BEGIN.format(name), END.format(name)
    old = readme.read_text()
    if old.count(begin) != 1 or old.count(end) != 1:
        raise SystemExit(f"{readme}: needs one line {begin} and one line {end}")
    head, rest = old.split(begin)
    _, tail = rest.split(end)
    readme.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}")


def plot(results: list[Results], path: Path) -> None:
    """Bars of the generated panel: batches, loaders, and loaders beyond memory."""
    plt = importlib.import_module("matplotlib.pyplot")
    big = results[0]
    every = {
        f"random batches of {BATCH}, the file in memory": {n: s["batch"] for n, s in big.speed.items()},
        "shuffled epoch of tensors, the file in memory": {f"{n}: {loader}": v for n, loader, v in loaders(big)},
        "shuffled epoch of tensors, memory for half of the file": {
            k: v["rate"] for k, v in big.cold.items() if "rate" in v
        },
    }
    sides = {title: bars for title, bars in every.items() if bars}
    rates = [v for bars in sides.values() for v in bars.values()]
    span = 10.0 ** math.floor(math.log10(min(rates))), max(rates) * 3
    heights = [len(bars) + 2 for bars in sides.values()]
    with plt.rc_context({"svg.hashsalt": "wstore", "svg.fonttype": "none", "font.size": 9}):
        size = (9, 0.24 * sum(heights) + 0.6)
        figure, axes = plt.subplots(
            len(sides), figsize=size, height_ratios=heights, layout="constrained", squeeze=False, sharex=True
        )
        for ax, (title, bars) in zip(axes[:, 0], sides.items(), strict=True):
            _bars(ax, title, bars, span)
        axes[-1, 0].set_xlabel("windows of 60 rows a second, logarithmic")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _bars(ax: Any, title: str, bars: dict[str, float], span: tuple[float, float]) -> None:
    """The fastest on top."""
    colours = {"wstore": "#1f6f8b", "memcpy": "#8c8c8c"}
    names = sorted(bars, key=bars.__getitem__)
    rates = [bars[n] for n in names]
    drawn = ax.barh(
        [n.replace(": " + PLAIN, "") for n in names],
        rates,
        color=[colours.get(n.split(":")[0].split("-")[0], "#d8b26e") for n in names],
        height=0.75,
    )
    ax.bar_label(drawn, [number(v) for v in rates], padding=3)
    ax.set_xscale("log")
    ax.set_xlim(*span)
    ax.set_title(title, loc="left", fontweight="bold")
    ax.margins(y=0.02)
    ax.spines[["top", "right"]].set_visible(False)
