#!/usr/bin/env python3
"""wstore beside what one would use without it, in one run, on a generated panel and on real data.

    PYTHONPATH=python python bench/peers.py [--all] [--only wstore,article,numpy] [--quick] [--dir DIR] [--write]

Only the ratios mean something. Each contender runs in a process of its own, and they take turns: A, B, C, A, B, C; a
figure is the median of its turns. Before it is timed each must give the right windows, bit by bit. The panels, and the
file of each contender, need about 5 GB of disk, 7 GB with --all; they are kept in DIR if it is given, and removed
otherwise. `--write` puts the tables and the plot into bench/README.md.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from contenders import BATCH, CONTENDERS, Bound, Contender, Loader, use
from machine import Limit, describe, drop, join, memory, read_bytes
from panel import ROOT, Panel, generate, sp500

LOOKBACK = 60
EXPERIMENTS = (20, 40, 60, 120)
PACKAGES = ("numpy", "torch", "polars", "pyarrow", "h5py", "pylance", "datasets", "zarr", "tensorstore")
PARTS = ("speed", "cold", "experiments")
FIRST_BATCH = 3  # of a loader in little memory may take so many times as long as all that is measured
WARM_UP = 4  # batches of a loader that are not counted: what is made ahead, and the start of workers

# In a process of its own


def ready(a: argparse.Namespace, to_load: bool = False) -> Contender:
    """A contender that is not open yet, but whose modules are there."""
    c = CONTENDERS[a.contender](Panel(a.data), a.lookback)
    for module in (*c.needs, *(("torch.utils.data", *c.needs_to_load) if to_load else ())):
        use(module)
    return c


def go_over(c: Contender, seconds: float) -> None:
    """Reads nearly every row, so that what stays in memory does; or as many as there is time for."""
    rng = np.random.default_rng(3)
    end = time.perf_counter() + seconds
    for _ in range(max(1, 3 * len(c) // c.lookback // BATCH)):
        c.batch(rng.integers(0, len(c), BATCH))
        if time.perf_counter() > end:
            break


def wrong(c: Contender, what: str) -> None:
    sys.exit(f"{c.name}: {what} differs from the rows of the panel")


def check(c: Contender) -> None:
    """That windows, batches and loaders give what they should."""

    def same(got: Any, want: Any) -> bool:
        g, w = np.asarray(got), np.asarray(want)
        return g.dtype == w.dtype and g.shape == w.shape and g.tobytes() == w.tobytes()

    starts = c.panel.draw(BATCH, c.lookback, 5, whole=True)
    ids = c.numbers(starts)
    if c.window(int(ids[0])) is None:
        return
    x, y = c.panel.windows(starts, c.lookback)
    for j, i in enumerate(ids[:32].tolist()):
        pair = c.window(i)
        if pair is None or not (same(pair[0], x[j]) and same(pair[1], y[j])):
            wrong(c, f"window {i}, which begins at row {starts[j]},")
    if not all(map(same, c.batch(ids), (x, y))):
        wrong(c, "a batch")
    for name, make in c.loaders().items():
        a, b = next(make())
        if a.shape != x.shape or b.shape != y.shape:
            sys.exit(f"{c.name}: {name} gives batches of shape {tuple(a.shape)} and {tuple(b.shape)}")
        if c.panel.csv is None and not all(map(same, (a, b), c.panel.windows(c.panel.recognise(a), c.lookback))):
            wrong(c, name)


def per_call(call: Callable[[int], object], seconds: float, calls: int) -> float:
    """The time of a call, as the median of as many rounds of calls as there is time for; the first is not counted."""
    rounds: list[float] = []
    end = time.perf_counter() + seconds
    for n in itertools.count():
        start = time.perf_counter()
        for i in range(n * calls, (n + 1) * calls):
            call(i)
        now = time.perf_counter()
        rounds.append((now - start) / calls)
        if now > end and n:
            break
    return median(rounds[1:])


def loader_rate(make: Loader, seconds: float) -> float:
    windows, took = 0, 0.0
    while took < seconds:
        batches = make()
        for _ in itertools.islice(batches, WARM_UP):
            pass
        start, before = time.perf_counter(), windows
        for x, _ in batches:
            windows += len(x)
            if took + time.perf_counter() - start > seconds:
                break
        took += time.perf_counter() - start
        del batches
        if windows == before:
            sys.exit("an epoch has too few batches to measure")
    return windows / took


def speed(a: argparse.Namespace) -> dict[str, float]:
    """All that is measured with the file in memory."""
    c = ready(a, to_load=True)
    before = memory()
    start = time.perf_counter()
    c.open()
    opened = time.perf_counter() - start
    go_over(c, 10 * a.seconds)
    gc.collect()
    after = memory()
    out = {"own": after[0] - before[0], "pss": after[1] - before[1], "index": c.index_bytes()}

    check(c)
    opens = [opened]
    while sum(opens) < a.seconds and len(opens) < 20:
        start = time.perf_counter()
        again = type(c)(c.panel, c.lookback)
        again.open()
        opens.append(time.perf_counter() - start)
        del again
    out["open"] = median(opens[1:] or opens)

    ids = c.numbers(c.panel.draw(200 * BATCH, c.lookback, 7 + a.turn))
    listed = ids.tolist()
    if c.window(listed[0]) is not None:
        out["window"] = per_call(lambda i: c.window(listed[i % len(listed)]), a.seconds, 100)
    batches = ids.reshape(-1, BATCH)
    out["batch"] = BATCH / per_call(lambda i: c.batch(batches[i % len(batches)]), a.seconds, 1)
    for name, make in c.loaders().items():
        out[f"loader: {name}"] = loader_rate(make, 2 * a.seconds)
    return out


def cold(a: argparse.Namespace) -> dict[str, Any]:
    """A shuffled epoch, or as much of it as there is time for, in as much memory as there is."""

    def too_slow(*_: object) -> None:
        raise TimeoutError

    c = ready(a, to_load=True)
    if a.cgroup:
        join(a.cgroup)
    c.open()
    before, windows = read_bytes(), 0
    make = c.cold(a.limit)[a.loader]
    signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, FIRST_BATCH * a.seconds)
    start = time.perf_counter()
    try:
        for x, _ in make():
            signal.setitimer(signal.ITIMER_REAL, 0)
            windows += len(x)
            if time.perf_counter() - start > a.seconds:
                break
    except TimeoutError:
        took = time.perf_counter() - start
        return {"failed": f"not one batch in {took:.0f} s, so under {BATCH / took:.2g} windows/s"}
    took = time.perf_counter() - start
    return {"rate": windows / took, "whole": windows == len(c), "read": read_bytes() - before}


def experiment(a: argparse.Namespace) -> None:
    """One of several at once; does each step when it is told to, and says when it is done."""
    c = ready(a)

    def say_when_told(memory_used: int = 0) -> None:
        print(memory_used, flush=True)
        input()

    say_when_told()
    say_when_told(memory()[1])
    c.open()
    go_over(c, a.seconds)
    gc.collect()
    say_when_told()
    say_when_told(memory()[1])


CHILDREN: dict[str, Callable[[argparse.Namespace], object]] = {
    "prepare": lambda a: CONTENDERS[a.contender](Panel(a.data), a.lookback).prepare(),
    "speed": speed,
    "cold": cold,
    "experiment": experiment,
}


# Around them


@dataclass
class Results:
    """Of one panel: each contender's figures, medians of its turns."""

    panel: str
    file_bytes: int
    windows: int
    speed: dict[str, dict[str, float]] = field(default_factory=dict)
    cold: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By "contender: loader"; with `failed`, why, in place of the figures."""
    limit: int = 0
    experiments: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Memory of one and of all, in bytes."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments(mode: str, name: str, data: Path, **more: object) -> list[str]:
    args = [sys.executable, __file__, "--child", mode, "--contender", name, "--data", str(data)]
    for key, value in more.items():
        args += [f"--{key}", str(value)]
    return args


TIMEOUT, KILLED = -1000, -9


class ChildError(Exception):
    """A process that failed; `code` as subprocess gives it, or TIMEOUT."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def child(mode: str, name: str, data: Path, timeout: float = 900, **more: object) -> Any:
    try:
        done = subprocess.run(arguments(mode, name, data, **more), capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise ChildError(TIMEOUT, f"{name}, {mode}: not done in {timeout:.0f} s") from None
    if done.returncode:
        raise ChildError(done.returncode, f"{name}, {mode}: {done.stderr.strip() or f'ended with {done.returncode}'}")
    return json.loads(done.stdout.splitlines()[-1])


def prepare(panel: Panel, name: str, lookback: int) -> None:
    if CONTENDERS[name].prepare is not Contender.prepare:
        child("prepare", name, panel.folder, lookback=lookback)


def warm(panel: Panel, names: list[str], turns: int, seconds: float) -> dict[str, dict[str, float]]:
    every: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for turn in range(turns):
        for name in names:
            say(f"{panel.folder.name}, turn {turn + 1} of {turns}: {name}")
            every[name].append(child("speed", name, panel.folder, lookback=LOOKBACK, seconds=seconds, turn=turn))
    return {name: {k: median(r[k] for r in runs) for k in runs[0]} for name, runs in every.items()}


def cold_one(panel: Panel, name: str, loader: str, limit: int, seconds: float) -> dict[str, Any]:
    group = Limit(limit)
    if group.path is None:
        return {"failed": group.why}
    drop([panel.folder])
    more = {"loader": loader, "limit": limit, "lookback": LOOKBACK, "seconds": seconds, "cgroup": group.path}
    most = 2 * FIRST_BATCH * seconds + 60
    why = {TIMEOUT: f"not one batch in {most:.0f} s", KILLED: "ended by the system: needs more than the limit"}
    try:
        result: dict[str, Any] = child("cold", name, panel.folder, most, **more)
        return result
    except ChildError as e:
        if e.code not in why:
            raise
        return {"failed": why[e.code]}
    finally:
        group.close()


def experiments(panel: Panel, name: str, lookbacks: tuple[int, ...], seconds: float) -> float:
    """The memory that processes take together, without what each takes before it opens anything."""

    def told(p: subprocess.Popen[str]) -> Any:
        assert p.stdin
        p.stdin.write("\n")
        p.stdin.flush()
        return heard(p)

    def heard(p: subprocess.Popen[str]) -> Any:
        assert p.stdout
        if not (line := p.stdout.readline()):
            raise ChildError(p.wait(), f"{name}, experiments: ended with {p.wait()}")
        return json.loads(line)

    for lookback in lookbacks:
        prepare(panel, name, lookback)
    run = [arguments("experiment", name, panel.folder, lookback=n, seconds=seconds) for n in lookbacks]
    all_of = [subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for args in run]
    try:
        for p in all_of:
            heard(p)
        before = [told(p) for p in all_of]
        for p in all_of:  # one after the other: what opening needs for a moment does not add up
            told(p)
        after = [told(p) for p in all_of]
        return float(sum(after) - sum(before))
    finally:
        for p in all_of:
            p.kill()
            p.communicate()


def chosen(a: argparse.Namespace) -> list[str]:
    """The contenders that are asked for and can run here."""
    asked = [n.strip() for n in a.only.split(",")] if a.only else []
    if unknown := [n for n in asked if not any(name.startswith(n) for name in CONTENDERS)]:
        sys.exit(f"--only {','.join(unknown)}: no contender's name begins so; there are {', '.join(CONTENDERS)}")
    names = []
    for name, cls in CONTENDERS.items():
        if asked:
            if not any(name.startswith(n) for n in asked):
                continue
        elif cls.group == "more" and not a.all:
            continue
        missing = [m for m in (*cls.needs, "torch") if importlib.util.find_spec(m.split(".")[0]) is None]
        if missing:
            say(f"{name} is left out: {', '.join(missing)} not installed; see tools/pyenv bench")
        else:
            names.append(name)
    return names


def measure(
    a: argparse.Namespace, folder: Path, names: list[str], keep: Callable[[list[Results]], None]
) -> list[Results]:
    """Measures all that is asked for, and has it kept after each step."""
    say("the panels")
    tickers, rows, columns = (60, 500, 8) if a.quick else (1000, 2500, 60)
    panels = [generate(folder, tickers, rows, columns), sp500(folder, 20 if a.quick else None)]
    results = [Results(p.folder.name, p.values.nbytes, len(p.starts(LOOKBACK))) for p in panels]
    for panel in panels:
        for name in names:
            say(f"{panel.folder.name}: the file of {name}")
            prepare(panel, name, LOOKBACK)
    panel, big = panels[0], results[0]
    for p, r in zip(panels, results, strict=True):
        if "speed" in a.parts:
            r.speed = warm(p, names, a.turns, a.seconds)
            keep(results)
    with_windows = [n for n in names if not issubclass(CONTENDERS[n], Bound)]
    big.limit = max(big.file_bytes // 2, 64 << 20)
    for name in with_windows if "cold" in a.parts else ():
        for loader in CONTENDERS[name](panel, LOOKBACK).cold(big.limit):
            say(f"{panel.folder.name}, cold: {name}, {loader}")
            big.cold[f"{name}: {loader}"] = cold_one(panel, name, loader, big.limit, 15 * a.seconds)
            keep(results)
    if "experiments" in a.parts:
        for name in with_windows[:1] if a.quick else with_windows:
            say(f"{panel.folder.name}, experiments: {name}")
            one = experiments(panel, name, EXPERIMENTS[2:3], 4 * a.seconds)
            big.experiments[name] = one, experiments(panel, name, EXPERIMENTS, 4 * a.seconds)
            keep(results)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also Hugging Face datasets, Zarr, TensorStore, Parquet")
    parser.add_argument("--only", default="", help="contenders whose names begin so, separated by commas")
    parser.add_argument("--quick", action="store_true", help="a small panel and little time: whether all of it works")
    parser.add_argument("--dir", type=Path, help="where files are made, and kept; else a temporary folder")
    parser.add_argument("--write", action="store_true", help="write the tables and the plot into bench/README.md")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    parser.add_argument("--turns", type=int, help="of each contender; default 3")
    for hidden in ("--child", "--contender", "--cgroup", "--loader"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    for number in ("--lookback", "--turn", "--limit"):
        parser.add_argument(number, type=int, default=LOOKBACK if number == "--lookback" else 0, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help="of each measurement; default 0.5")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure; default: %(default)s")
    a = parser.parse_args()
    if a.child:
        out = CHILDREN[a.child](a)
        if a.child != "experiment":
            print(json.dumps(out))
        return

    if sys.platform != "linux":
        sys.exit("bench/peers.py needs Linux: /proc, control groups, posix_fadvise")
    if unknown := set(a.parts.split(",")) - set(PARTS):
        sys.exit(f"--parts {','.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    from report import plot, tables, write

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the files go, too
    a.turns = a.turns or (1 if a.quick else 3)
    a.seconds = a.seconds or (0.05 if a.quick else 0.5)
    names = chosen(a)
    with tempfile.TemporaryDirectory(prefix="wstore-bench-") as temp:
        folder = a.dir or Path(temp)
        folder.mkdir(parents=True, exist_ok=True)
        machine = describe(folder, PACKAGES)

        def keep(results: list[Results]) -> None:
            if a.json:
                a.json.write_text(json.dumps({"machine": machine, "results": [asdict(r) for r in results]}, indent=1))

        start = time.perf_counter()
        try:
            results = measure(a, folder, names, keep)
        except ChildError as e:
            sys.exit(str(e))
        say(f"{time.perf_counter() - start:.0f} s in all")
    text = tables(results, machine)
    print(text)
    if a.write:
        plot(results, ROOT / "bench" / "peers.svg")
        write(ROOT / "bench" / "README.md", text)


if __name__ == "__main__":
    main()
