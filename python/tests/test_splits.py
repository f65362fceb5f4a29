"""Splits against the text of SPLITS.md, window by window, and against what leaks."""

from __future__ import annotations

import datetime as dt
import itertools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from encode import Col, Group, Panel, Ticker, encode
from hypothesis import given, settings
from oracle import Question, expand, windows
from panels import any_panel, any_question, small
from test_windows import SEEDS, ask, located

import wstore
from wstore import _windows

Range = tuple[int | None, int | None]


# The text, word by word


@dataclass
class Setting:
    ranges: list[list[Range]]  # train, valid, test
    embargo: int | dt.timedelta = 0
    reach: int | dt.timedelta | None = None


UNITS = (1, 10**3, 10**6, 10**9)


def units(p: Panel, d: dt.timedelta) -> int:
    return -(-(d // dt.timedelta(microseconds=1)) * UNITS[p.unit] // 10**6)


def interval(p: Panel, q: Question, reach: int | dt.timedelta | None, ticker: str, a: int) -> tuple[int, int]:
    t = p.tickers[ticker]
    targets = expand(p, q.targets)
    if not targets:
        return t.times[a], t.times[a]
    e = len(t.times) - 1
    first = max(0, a + min(0, min(q.horizons)))
    last = a + max(0, max(q.horizons) + q.target_length - 1)
    his = [t.times[a]]
    columns = p.columns()
    for name in targets:
        col = next(c for c in columns if c.name == name)
        kind, amount = col.reach_kind, col.reach
        if reach is not None:
            kind, amount = (1, reach) if isinstance(reach, int) else (2, units(p, reach))
        if kind in (0, 1):
            his.append(t.times[min(e, last + (amount if kind else 0))])
        elif kind == 2:
            his.append(t.times[min(e, last)] + amount)
        else:
            his.append(t.times[min(e, last)])
            ends = t.values[columns[amount].name]
            rows = [r for h in q.horizons for r in range(a + h, a + h + q.target_length)]
            his += [int(end) for r in rows if (end := ends[r]) is not None]
    return t.times[first], max(his)


def widened(p: Panel, embargo: int | dt.timedelta, lo: int, hi: int) -> tuple[int, int]:
    if isinstance(embargo, dt.timedelta):
        return lo - units(p, embargo), hi + units(p, embargo)
    d = sorted({x for t in p.tickers.values() for x in t.times})
    i, j = sum(x < lo for x in d), sum(x <= hi for x in d)
    return min(lo, d[max(0, i - embargo)]), max(hi, d[min(len(d), j + embargo) - 1])


def split_plainly(p: Panel, q: Question, s: Setting, all_windows: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    survivors: list[list[tuple[str, int]]] = []
    above: list[tuple[int, int]] = []
    for ranges in reversed(s.ranges):
        mine = []
        for ticker, a in all_windows:
            time = p.tickers[ticker].times[a]
            if not any((f is None or time >= f) and (t is None or time < t) for f, t in ranges):
                continue
            lo, hi = widened(p, s.embargo, *interval(p, q, s.reach, ticker, a))
            if not any(u <= hi and lo <= v for u, v in above):
                mine.append((ticker, a))
        survivors.append(mine)
        above += [interval(p, q, s.reach, *w) for w in mine]
    return survivors[::-1]


def units_of(t: np.datetime64 | None) -> int:
    assert t is not None
    return int(t.astype(np.int64))


def labelled(r: Random) -> tuple[Panel, Question]:
    """A panel whose columns declare reaches of any kind."""
    p = any_panel(r)
    q = any_question(r, p)
    columns = p.columns()
    p.groups.append(Group("ends", [Col("end", role=2)], dtype=2))
    for t in p.tickers.values():
        t.values["end"] = [r.choice([None, x, x + r.randint(0, 20)]) for x in t.times]
    for c in columns:
        c.reach_kind = r.randint(0, 3)
        c.reach = {0: 0, 1: r.randint(0, 4), 2: r.randint(0, 9), 3: len(columns)}[c.reach_kind]
    return p, q


def any_ranges(r: Random) -> list[list[Range]]:
    cuts: list[int | None] = [*sorted(r.sample(range(-45, 65), r.randint(2, 8)))]
    if r.random() < 0.5:
        cuts[0] = None
    if r.random() < 0.5:
        cuts[-1] = None
    out: list[list[Range]] = [[], [], []]
    for cut in itertools.pairwise(cuts):
        if (which := r.randint(0, 3)) < 3:
            out[which].insert(r.randint(0, len(out[which])), cut)
    return out


def any_duration(r: Random, p: Panel) -> dt.timedelta:
    return dt.timedelta(microseconds=r.randint(0, 12) * max(1, 10**6 // UNITS[p.unit]))


def crowded(r: Random) -> tuple[Panel, Question]:
    """Few columns and no breaks, so that each boundary has windows on both sides, and one kind of reach."""
    p = Panel(
        [
            Group("features", [Col("a")]),
            Group("targets", [Col("b", reach_kind=r.choice([1, 2, 3, 3]))]),
            Group("ends", [Col("end", role=2)], dtype=2),
        ],
        unit=r.randint(0, 3),
    )
    b = p.groups[1].cols[0]
    b.reach = {1: r.randint(0, 4), 2: r.randint(0, 9), 3: 2}[b.reach_kind]
    for name in "ABC"[: r.randint(1, 3)]:
        times = sorted(r.sample(range(-40, 60), r.randint(20, 40)))
        ends = [r.choice([None, x, x + r.randint(0, 12)]) for x in times]
        p.tickers[name] = Ticker(times, {"a": [1.0] * len(times), "b": [2.0] * len(times), "end": [*ends]})
    q = Question(["features"], ["targets"], lookback=r.randint(1, 3), stride=r.choice([1, 1, 2]))
    q.horizons, q.target_length = [r.choice([1 - q.lookback, 0, 1, 3])], r.choice([1, 1, 2])
    return p, q


@settings(max_examples=800)
@given(SEEDS)
def test_splits_are_what_the_text_says(seed: int) -> None:
    r = Random(seed)
    p, q = labelled(r) if r.random() < 0.5 else crowded(r)
    store = wstore.open_bytes(encode(p))
    s = Setting(any_ranges(r))
    embargoes: list[int | dt.timedelta] = [0, r.randint(0, 4), r.randint(0, 60), any_duration(r, p)]
    reaches: list[int | dt.timedelta | None] = [None, None, None, r.randint(0, 4), any_duration(r, p)]
    s.embargo, s.reach = r.choice(embargoes), r.choice(reaches)
    w = ask(store, q)
    listed = windows(p, q)
    selected = bool(listed) and r.random() < 0.25
    if selected:
        ids = r.sample(range(len(listed)), r.randint(0, len(listed)))
        w, listed = w.select(ids), [listed[i] for i in ids]

    def argument(ranges: list[Range]) -> Any:
        return ranges[0] if len(ranges) == 1 and r.random() < 0.5 else ranges or None

    train, valid, test = (argument(x) for x in s.ranges)
    targets = expand(p, q.targets)
    undeclared = any(c.name in targets and c.reach_kind == 0 for c in p.columns())
    if targets and q.horizons[0] <= 0 and undeclared and s.reach is None:
        with pytest.raises(wstore.ArgumentError, match="give reach="):
            w.split(train=train, valid=valid, test=test, embargo=s.embargo)
        return
    got = w.split(train=train, valid=valid, test=test, embargo=s.embargo, reach=s.reach)
    for part, expected in zip(got, split_plainly(p, q, s, listed), strict=True):
        assert located(store, part) == expected
        for i in range(len(part)):
            j = listed.index(expected[i])
            assert np.array_equal(part[i][0], w[j][0], equal_nan=True)
        if selected:
            continue
        codes, times, _ = part.locate(range(len(part)))
        assert part.find(codes, times).tolist() == list(range(len(part)))
        # What is split can be split again, and narrowed.
        lo, hi = sorted(r.choices(range(-45, 65), k=2))
        narrowed = [(t, a) for t, a in expected if lo <= p.tickers[t].times[a] < hi]
        assert located(store, part.between(lo, hi)) == narrowed
        again = part.split(train=(None, lo), test=(lo, None), reach=0)
        assert located(store, again.test) == [(t, a) for t, a in expected if p.tickers[t].times[a] >= lo]


@settings(max_examples=300)
@given(SEEDS)
def test_label_ends_are_those_of_the_text(seed: int) -> None:
    r = Random(seed)
    p, q = labelled(r)
    store = wstore.open_bytes(encode(p))
    w = ask(store, q)
    want = [interval(p, q, None, *i)[1] for i in windows(p, q)]
    assert w.label_end(range(len(w))).view(np.int64).tolist() == want


@settings(max_examples=300)
@given(SEEDS)
def test_distinct_anchor_times(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p))
    q = any_question(r, p)
    w = ask(store, q)
    listed = [p.tickers[t].times[a] for t, a in windows(p, q)]
    assert w.times.view(np.int64).tolist() == sorted({*listed})
    assert w[::2].times.view(np.int64).tolist() == sorted({*listed[::2]})


def test_splits_hold_runs_and_pickle_as_themselves(tmp_path: Path) -> None:
    p = small()
    path = tmp_path / "a.wst"
    path.write_bytes(encode(p))
    store = wstore.open(path)
    for w in (store.windows(1, breaks=()), store.windows(1, breaks=(), at=range(12))):
        train, valid, test = w.split(train=(None, 10), valid=(10, 12), test=(12, None), reach=0)
        assert len(valid)
        for part in (train, valid, test):
            again = pickle.loads(pickle.dumps(part))
            assert located(again.store, again) == located(store, part)
            assert again.fingerprint == part.fingerprint
        picked = pickle.loads(pickle.dumps(train[::-1]))
        assert located(store, picked) == located(store, train)[::-1]

    n = 20_000
    long = Ticker(list(range(n)), {"a": [1.0] * n})
    w = wstore.open_bytes(encode(Panel([Group("features", [Col("a")])], {"T": long}))).windows(60, targets="a")
    train, _, test = w.split(train=(None, 10_000), test=(10_000, None), embargo=5)
    assert (len(train), len(test)) == (10_000 - 59 - 6, 9_999)
    assert train.nbytes_index < 200
    assert len(pickle.dumps(train._runs)) < 2000


def as_seen(w: wstore.Windows) -> tuple[int, str, list[int]]:
    return len(w), w.fingerprint, w.locate(range(0, len(w), 7))[1].view(np.int64).tolist()


def many_tickers(path: Path, count: int) -> wstore.Store:
    """Tickers that each lack some days and cells, so that every one has runs of its own."""
    r = Random(0)
    p = Panel([Group("features", [Col("x")]), Group("targets", [Col("y", reach_kind=1, reach=2)])])
    every = days("2020-01-01", 120)
    for i in range(count):
        times = sorted(r.sample(every, r.randint(90, 120)))
        x: list[float | int | None] = [None if r.random() < 0.02 else 1.0 for _ in times]
        p.tickers[f"T{i:03d}"] = Ticker(times, {"x": x, "y": [1.0] * len(times)})
    path.write_bytes(encode(p))
    return wstore.open(path)


def test_what_is_pickled_does_not_grow_with_the_tickers(tmp_path: Path) -> None:
    store = many_tickers(tmp_path / "many.wst", 300)
    w = store.windows(5, stride=2)
    parts = w.split(train=(None, "2020-03-01"), valid=("2020-03-01", "2020-04-01"), test=("2020-04-01", None))
    assert all(part.runs >= 300 for part in parts)
    again = pickle.loads(pickle.dumps(parts))
    assert [as_seen(p) for p in again] == [as_seen(p) for p in parts]
    assert again.train.store is again.test.store
    folds = w.walk_forward(every="1mo", train="1mo", valid="10d", embargo="1d", reach="2d")
    counted = w.walk_forward(every=20, train=30, embargo=3)
    assert len(folds) > 1
    assert len(counted) > 1
    for f in (*folds, *counted):
        assert len(pickle.dumps(f)) < 2048
        assert repr(pickle.loads(pickle.dumps(f))) == repr(f)
    half = store.windows(3, tickers=store.tickers[::2])
    views = [
        *parts,
        *(part for f in (*folds, *counted) for part in (f.train, f.valid, f.test)),
        half,
        half.between("2020-02-01").split(train=(None, "2020-03-01")).train,
        parts.train.between("2020-01-10", "2020-02-20"),
        parts.train.between("2020-01-10").split(train=(None, "2020-02-01"), test=("2020-02-01", None), embargo=4).train,
        parts.train[5:-5:3],
    ]
    for view in views:
        raw = pickle.dumps(view)
        assert len(raw) < 2048
        assert as_seen(pickle.loads(raw)) == as_seen(view)
        twice = pickle.loads(pickle.dumps(pickle.loads(raw)))
        assert as_seen(twice) == as_seen(view)
    picked = parts.train.select([9, 3, 3])
    assert np.array_equal(pickle.loads(pickle.dumps(picked)).locate(range(3)), picked.locate(range(3)))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(as_seen, parts.train).result() == as_seen(parts.train)


@settings(max_examples=300)
@given(SEEDS)
def test_pickled_parts_are_what_they_were(seed: int) -> None:
    r = Random(seed)
    p, q = labelled(r) if r.random() < 0.5 else crowded(r)
    store = wstore.open_bytes(encode(p))
    w = ask(store, q)
    for _ in range(2):
        train, valid, test = any_ranges(r)
        reach = r.choice([r.randint(0, 4), any_duration(r, p)])
        embargo = r.choice([r.randint(0, 4), any_duration(r, p)])
        parts = w.split(train=train, valid=valid, test=test, embargo=embargo, reach=reach)
        for part in parts:
            again = _windows._rebuild(*part.__reduce__()[1])
            assert located(store, again) == located(store, part)
            assert again.fingerprint == part.fingerprint
        w = parts.train.between(r.randint(-45, 0), None)


def test_durations_longer_than_all_times() -> None:
    w = calendar_panel(days("2020-01-01", 50)).windows(5, targets="a")
    cut = {"train": (None, "2020-02-01"), "test": ("2020-02-01", None)}
    for far in ("99999999999999999999d", "9" * 900 + "w", dt.timedelta.max):
        for more in ({"reach": far}, {"embargo": far}, {"reach": far, "embargo": far}):
            train, _, test = w.split(**cut, **more)
            assert (len(train), len(test)) == (0, 18)
            assert w.walk_forward(every=10, train=10, **more)
    (fold,) = w.walk_forward(every="99999999999999999999d", start="2020-02-01")
    assert len(fold.test) == 18
    with pytest.raises(wstore.ArgumentError, match="not a duration"):
        w.split(**cut, reach="9" * 9999 + "d")


def test_arguments_are_checked() -> None:
    store = wstore.open_bytes(encode(small()))
    w = store.windows(2, inputs="b", breaks=())
    with pytest.raises(wstore.ArgumentError, match=r"must not overlap: .* of train and .* of test"):
        w.split(train=(None, 11), test=(10, None))
    with pytest.raises(wstore.ArgumentError, match="must not overlap"):
        w.split(train=[(0, 5), (4, 6)], test=(10, None))
    with pytest.raises(wstore.ArgumentError, match="ends before it begins"):
        w.split(train=(3, 2))
    for bad in ("2020", 5, [(1, 2, 3)], [1, 2]):
        with pytest.raises(wstore.ArgumentError, match="train"):
            w.split(train=bad)
    with pytest.raises(wstore.ArgumentError, match="embargo"):
        w.split(train=(None, 1), embargo=-1)
    with pytest.raises(wstore.ArgumentError, match="'5d'"):
        w.split(train=(None, 1), embargo="5 fortnights")
    with pytest.raises(wstore.ArgumentError, match="reach"):
        w.split(train=(None, 1), reach=1.5)
    with pytest.raises(wstore.ArgumentError, match="fixed length"):
        w.split(train=(None, 1), embargo=np.timedelta64(1, "M"))
    assert [len(x) for x in w.split(train=(3, 3))] == [0, 0, 0]
    day = w.split(train=(None, 3), test=(3, None), embargo="1d")
    assert len(day.train) == 0
    assert len(day.test) > 0
    for same in (dt.timedelta(days=1), np.timedelta64(24, "h"), "24h"):
        assert located(store, w.split(train=(None, 3), test=(3, None), embargo=same).test) == located(store, day.test)


# Walking forward


def calendar_panel(times: list[int], zone: str = "", unit: int = 0) -> wstore.Store:
    t = Ticker(times, {"a": [float(i) for i in range(len(times))]})
    return wstore.open_bytes(encode(Panel([Group("features", [Col("a")])], {"T": t}, unit=unit, zone=zone)))


def days(first: str, count: int) -> list[int]:
    start = int(np.datetime64(first, "s").astype(np.int64))
    return [start + 86400 * i for i in range(count)]


def test_walk_forward_by_months_tiles_the_anchors() -> None:
    store = calendar_panel(days("2019-01-31", 800))
    w = store.windows(5, targets="a")
    folds = w.walk_forward(every="1mo", train="6mo", valid="2mo", embargo="1d")
    firsts = [str(f.test_range[0]) for f in folds]
    # 2019-02-04 is the first anchor; the last is 2021-04-08.
    assert firsts[0] == "2019-10-04T00:00:00"
    assert firsts[-1] == "2021-04-04T00:00:00"
    assert [f.test_range[1] for f in folds[:-1]] == [f.test_range[0] for f in folds[1:]]
    tested = [i for f in folds for i in f.test.locate(range(len(f.test)))[2].tolist()]
    assert tested == list(range(tested[0], len(w) + 4))
    for f in folds:
        assert f.valid_range is not None
        assert f.train_range[1] == f.valid_range[0]
        assert f.valid_range[1] == f.test_range[0]
        times = [part.locate(range(len(part)))[1] for part in (f.train, f.valid, f.test)]
        assert times[0].min() >= f.train_range[0]
        assert times[0].max() <= times[1].min() - np.timedelta64(2, "D")  # a label of one row, and a day of embargo
        assert times[1].max() <= times[2].min() - np.timedelta64(2, "D")
        assert times[2].max() < f.test_range[1]
    assert "test 31" in repr(folds[0])


def test_months_are_counted_from_the_start_in_the_files_zone() -> None:
    zone = ZoneInfo("America/New_York")
    start = int(dt.datetime(2019, 12, 31, 9, 30, tzinfo=zone).timestamp())
    store = calendar_panel([start + 1800 * i for i in range(48 * 180)], "America/New_York")
    folds = store.windows(1).walk_forward(every="1mo", start=start)
    got = [dt.datetime.fromtimestamp(units_of(f.test_range[0]), zone) for f in folds]
    assert [(t.month, t.day, t.hour, t.minute) for t in got[:5]] == [
        (12, 31, 9, 30),
        (1, 31, 9, 30),
        (2, 29, 9, 30),
        (3, 31, 9, 30),  # summer time since March 8
        (4, 30, 9, 30),
    ]
    assert all(f.train_range[0] is None and f.valid_range is None and not len(f.valid) for f in folds)


@pytest.mark.parametrize(
    ("start", "after"),
    [
        # 02:30 on 2020-03-08 does not exist in New York, and moves on to 03:30.
        (dt.datetime(2020, 2, 8, 7, 30, tzinfo=dt.UTC), dt.datetime(2020, 3, 8, 7, 30, tzinfo=dt.UTC)),
        # 01:30 on 2020-11-01 exists twice; the first is summer time.
        (dt.datetime(2020, 10, 1, 5, 30, tzinfo=dt.UTC), dt.datetime(2020, 11, 1, 5, 30, tzinfo=dt.UTC)),
    ],
)
def test_local_times_that_do_not_exist_or_do_twice(start: dt.datetime, after: dt.datetime) -> None:
    first = int(start.timestamp()) * 1000
    store = calendar_panel([first + 3_600_000 * i for i in range(24 * 40)], "America/New_York", unit=1)
    folds = store.windows(1).walk_forward(every="1mo", start=first)
    assert units_of(folds[1].test_range[0]) == int(after.timestamp()) * 1000


def test_walk_forward_by_numbers_of_times() -> None:
    times = [3 * i * i for i in range(50)]
    w = calendar_panel(times).windows(3, targets="a")  # anchors: rows 2 to 48
    t = times[2:49]
    folds = w.walk_forward(every=10, train=15, valid=5)
    assert [units_of(f.test_range[0]) for f in folds] == [t[20], t[30], t[40]]
    assert units_of(folds[-1].test_range[1]) == t[-1] + 1
    for i, f in enumerate(folds):
        assert [units_of(x) for x in f.train_range] == [t[10 * i], t[10 * i + 15]]
    # Labels of one row: the last two before a boundary are purged, or one where the label ends before it.
    assert [len(f.train) for f in folds] == [14, 14, 14]
    folds = w.walk_forward(every=20, train=100, start=t[5] - 1)
    assert [units_of(f.test_range[0]) for f in folds] == [t[5], t[25], t[45]]
    assert [units_of(f.train_range[0]) for f in folds] == [t[0]] * 3
    assert w.walk_forward(every=10, train=100) == []
    assert w.walk_forward(every=10, start=10**9) == []


def test_folds_without_a_test_window_are_left_out() -> None:
    times = [*days("2020-01-01", 20), *days("2021-06-01", 20)]
    store = calendar_panel(times)
    w = store.windows(1)
    for every in ("1mo", "10d", dt.timedelta(days=10)):
        folds = w.walk_forward(every=every, start="2020-01-01")
        assert [len(f.test) for f in folds] == ([20, 20] if every == "1mo" else [10, 10, 3, 10, 7]), every
    assert w.walk_forward(every="1y", train="100y") == []
    assert store.windows(99).walk_forward(every="1y", train="1y") == []


def test_walk_forward_checks_its_arguments() -> None:
    w = calendar_panel(days("2020-01-01", 50)).windows(1)
    with pytest.raises(wstore.ArgumentError, match="start="):
        w.walk_forward(every="1mo")
    with pytest.raises(wstore.ArgumentError, match="both"):
        w.walk_forward(every="1mo", train=5)
    with pytest.raises(wstore.ArgumentError, match="both"):
        w.walk_forward(every=5, train="1mo")
    with pytest.raises(wstore.ArgumentError, match="above 0"):
        w.walk_forward(every="0mo", train="1mo")
    with pytest.raises(wstore.ArgumentError, match="at least 1"):
        w.walk_forward(every=0, train=1)
    with pytest.raises(wstore.ArgumentError, match="'1mo'"):
        w.walk_forward(every="1 month", train="1mo")
    with pytest.raises(wstore.ArgumentError, match=r"years 1 to 9999: -1 × '20000y'$"):
        w.walk_forward(every="1mo", train="20000y", start="2020-01-20")
    with pytest.raises(wstore.ArgumentError, match="years 1 to 9998"):
        w.walk_forward(every="1mo", start=1 << 60)
    with pytest.raises(wstore.ArgumentError, match="reach"):  # although there is no fold
        w.walk_forward(every=1000, train=1000, reach="5 days")
    with pytest.raises(wstore.ArgumentError, match="tzdata"):
        calendar_panel(days("2020-01-01", 50), "Mars/Olympus").windows(1).walk_forward(every="1mo", train="1mo")


def test_folds_at_the_ends_of_time() -> None:
    for end in (1 << 63) - 1, -(1 << 63) + 1:
        times = list(range(end - 3, end + 1) if end > 0 else range(end, end + 4))
        t = Ticker(times, {"x": [0.0] * 4})
        w = wstore.open_bytes(encode(Panel([Group("features", [Col("x")])], {"T": t}, unit=3))).windows(1)
        folds = w.walk_forward(every="10d", train="10d", start=times[1])
        assert [(len(f.train), len(f.test)) for f in folds] == [(1, 3)]
        (low, _), (_, high) = folds[0].train_range, folds[0].test_range
        assert (low is None, high is None) == (end < 0, end > 0)  # no file has times beyond


# What leaks


def test_noise_can_not_be_predicted() -> None:
    """Returns of 20 rows of pure noise. Each training window's label is known by the nearest test window's neighbour:
    a model that remembers the labels of the latest training rows "predicts" what overlaps them."""
    rng = np.random.default_rng(0)
    tickers, rows, ahead = 40, 600, 20
    panel = Panel([Group("features", [Col("x")]), Group("targets", [Col("ret", reach_kind=1, reach=ahead)])])
    for i in range(tickers):
        r = rng.standard_normal(rows)
        ret: list[float | int | None] = [float(r[j + 1 : j + 1 + ahead].sum()) for j in range(rows - ahead)]
        panel.tickers[f"T{i:02d}"] = Ticker(list(range(rows)), {"x": [0.0] * rows, "ret": [*ret, *([None] * ahead)]})
    store = wstore.open_bytes(encode(panel))
    w = store.windows(5, horizon=0)
    cut, end = 300, 320

    def coefficient(train: wstore.Windows, test: wstore.Windows) -> float:
        """The mean over the test times of the correlation of predictions, each ticker's latest training label."""
        code, time, _ = train.locate(range(len(train)))
        labels = train.gather(range(len(train)))[1][:, 0]
        latest = np.zeros(tickers)
        for t in range(tickers):
            mine = code == t
            latest[t] = labels[mine][np.argmax(time[mine])]
        code, time, _ = test.locate(range(len(test)))
        truth = test.gather(range(len(test)))[1][:, 0]
        return float(np.mean([np.corrcoef(latest[code[time == t]], truth[time == t])[0, 1] for t in np.unique(time)]))

    naive = coefficient(w.between(None, cut), w.between(cut, end))
    train, _, test = w.split(train=(None, cut), test=(cut, end))
    assert len(test) == len(w.between(cut, end))
    assert naive > 0.1
    assert abs(coefficient(train, test)) < 0.1
