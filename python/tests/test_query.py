"""What one may ask, what the answers to wrong questions say, and the specification's examples."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encode import Break, Col, Group, Panel, Ticker, Values, encode
from panels import small

import wstore

SPEC = Path(__file__).parents[2] / "spec" / "SPEC.md"


def example_panel() -> Panel:
    values: Values = {"x": [None if r == 3 else float(r) for r in range(10)], "y": [float(r) for r in range(10)]}
    t = Ticker(list(range(10)), values, {"gap": [7]})
    return Panel([Group("features", [Col("x"), Col("y")])], {"A": t}, [Break("gap", 3)])


def examples() -> list[list[str]]:
    if not SPEC.exists():
        return []
    table = SPEC.read_text().split("<!-- table: examples -->")[1].split("\n\n")[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


@pytest.mark.skipif(not SPEC.exists(), reason="the specification is in the repository, not in the package")
@pytest.mark.parametrize("row", examples(), ids=" ".join)
def test_examples_of_the_specification(row: list[str]) -> None:
    inputs, targets, lookback, horizons, length, stride, breaks, anchors = row
    options: dict[str, Any] = {"targets": targets or ()}
    if horizons:
        options["horizon"] = [int(h) for h in horizons.split(",")]
    if length:
        options["target_length"] = int(length)
    store = wstore.open_bytes(encode(example_panel()))
    w = store.windows(int(lookback), inputs=inputs, stride=int(stride), breaks=breaks.split(), **options)
    assert w.locate(range(len(w)))[2].tolist() == [int(a) for a in anchors.split()]


def test_the_examples_are_there() -> None:
    assert not SPEC.exists() or len(examples()) >= 13


def test_defaults() -> None:
    store = wstore.open_bytes(encode(small()))
    w = store.windows(2)
    assert (w.inputs, w.targets, w.horizons) == (("a", "b"), ("ret",), (1,))
    assert w.shapes == ((2, 2), (1,))
    assert store.windows(2, targets=()).shapes == ((2, 2), None)
    assert store.windows(2, horizon=[0, 1], target_length=3, inputs="b").shapes == ((2, 1), (2, 3, 1))
    assert store.windows(2, horizon=[1], target_length=2, inputs="b").shapes == ((2, 1), (2, 1))
    assert "lookback=2, horizon=1" in repr(w)
    p = example_panel()
    assert wstore.open_bytes(encode(p)).windows(2).targets == ()
    p.groups[0].name = "prices"
    with pytest.raises(wstore.ArgumentError, match=r"no group 'features'.*'prices'"):
        wstore.open_bytes(encode(p)).windows(2)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lookback": 0}, "lookback must be 1 to 2147483647, not 0"),
        ({"lookback": 1 << 31}, "lookback must be"),
        ({"lookback": 1.5}, "lookback must be an integer"),
        ({"lookback": "60"}, "lookback must be an integer"),
        ({"lookback": True}, "lookback must be an integer"),
        ({"stride": 0}, "stride must be 1 to"),
        ({"stride": 2, "at": [1]}, "leave stride=2 out"),
        ({"horizon": -1}, "horizon .with lookback 1. must be 0 to"),
        ({"horizon": [2, 1]}, "strictly increasing"),
        ({"horizon": [1, 1]}, "strictly increasing"),
        ({"horizon": []}, "1 to 4096 horizons"),
        ({"horizon": range(4097)}, "1 to 4096 horizons"),
        ({"target_length": 0}, "target_length must be 1 to"),
        ({"horizon": 1, "targets": ()}, "horizon needs targets"),
        ({"target_length": 1, "targets": []}, "target_length needs targets"),
        ({"inputs": []}, "at least one column"),
        ({"inputs": ["a", "features"]}, "column 'a' is named more than once .'a' and 'features'.; drop one"),
        ({"inputs": ["a", "a"]}, "'a' twice"),
        ({"targets": ["ret", "targets"]}, "targets: column 'ret' is named more than once"),
        ({"inputs": "end"}, "label ends, not float32"),
        ({"targets": "ends"}, "label ends, not float32"),
        ({"where": "end"}, "label ends, not float32"),
        ({"inputs": 3}, "name or a list of names"),
        ({"inputs": [3]}, "must be names"),
        ({"optional": "m"}, "'m' is not among the inputs or targets"),
        ({"inputs": "a", "optional": "features"}, "'b' is not among"),
        ({"at": "yesterday"}, "not a time"),
        ({"at": [1.5]}, "does not hold times"),
        ({"at": [True]}, "does not hold times"),
        ({"at": [None]}, "not a time"),
        ({"at": [1 << 70]}, "int64"),
        ({"at": np.array(["NaT"], "M8[s]")}, "NaT"),
        ({"from_": "now"}, "not a time"),
        ({"from_": "NaT"}, "not a time"),
        ({"from_": np.datetime64("NaT")}, "NaT"),
        ({"from_": "2020-13-01"}, "not a time"),
        ({"from_": "2020-01-01T00:00+9"}, "not a time"),
        ({"from_": "2020-01-01T"}, "not a time"),
        ({"from_": "20200101"}, "not a time"),
        ({"from_": ""}, "not a time"),
        ({"to": 1.5}, "not a time"),
    ],
)
def test_bad_arguments(options: dict[str, Any], text: str) -> None:
    store = wstore.open_bytes(encode(small()))
    with pytest.raises(wstore.ArgumentError, match=text) as e:
        store.windows(**({"lookback": 1} | options))
    assert isinstance(e.value, ValueError)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"inputs": "feature"}, "no column or group 'feature'; did you mean 'features'?"),
        ({"targets": "Ret"}, "did you mean 'ret'"),
        ({"optional": "nope"}, "known: 'features', 'masks'"),
        ({"where": "nope"}, "no column or group 'nope'"),
        ({"breaks": "gaps"}, "no break set 'gaps'; did you mean 'gap'"),
        ({"tickers": ["AAPL", "APPL"]}, "no ticker 'APPL'; did you mean 'AAPL'"),
        ({"tickers": "\ud800"}, "no ticker"),
    ],
)
def test_unknown_names(options: dict[str, Any], text: str) -> None:
    store = wstore.open_bytes(encode(small()))
    with pytest.raises(wstore.NotFoundError) as e:
        store.windows(1, **options)
    assert text in str(e.value)
    assert isinstance(e.value, KeyError)


def test_inputs_and_targets_have_an_order() -> None:
    store = wstore.open_bytes(encode(small()))
    for what in ("inputs", "targets"):
        for unordered in ({"a", "b"}, frozenset({"a", "b"})):
            options: dict[str, Any] = {"inputs": "m"} | {what: unordered}
            with pytest.raises(wstore.ArgumentError, match=f"{what} must be a list"):
                store.windows(1, **options)
    w = store.windows(1, inputs=dict.fromkeys(["b", "a"]).keys(), optional={"a", "b"}, where={"m"}, tickers={"AAPL"})
    assert w.inputs == ("b", "a")


def test_break_sets_of_a_file_without_any() -> None:
    store = wstore.open_bytes(encode(Panel([Group("features", [Col("x")])], {"T": Ticker([0], {"x": [1.0]})})))
    with pytest.raises(
        wstore.NotFoundError, match=r"^no break set 'gap' \(the file has none; convert with --max-gap\)$"
    ) as e:
        store.windows(1, breaks="gap")
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)
    assert len(store.windows(1, breaks=())) == 1


def test_many_known_names_are_cut() -> None:
    p = Panel([Group("features", [Col("x")])], {f"T{i:03}": Ticker([0], {"x": [1.0]}) for i in range(100)})
    with pytest.raises(wstore.NotFoundError, match=r"'T019', … \(100 in all\)"):
        wstore.open_bytes(encode(p)).series("nope", "x")


# 2020-01-31T09:30:00 UTC and two seconds around it, in each unit
NOON = 1580463000
UTC = dt.UTC


@pytest.mark.parametrize("unit", range(4))
@pytest.mark.parametrize(
    "time",
    [
        "2020-01-31T09:30:00",
        "2020-01-31 09:30",
        "2020-01-31T09:30:00Z",
        "2020-01-31T18:30:00+09:00",
        "2020-01-31T04:30:00.000-0500",
        "2020-01-31T05:30-04",
        np.datetime64("2020-01-31T09:30"),
        np.datetime64("2020-01-31T09:30", "ns"),
        np.datetime64("2020-01-31T09:30", "us"),
        dt.datetime(2020, 1, 31, 9, 30),
        dt.datetime(2020, 1, 31, 9, 30, tzinfo=UTC),
        dt.datetime(2020, 1, 31, 18, 30, tzinfo=dt.timezone(dt.timedelta(hours=9))),
    ],
)
def test_times_of_all_kinds(unit: int, time: Any) -> None:
    scale = 1000**unit
    times = [(NOON + s) * scale for s in (-1, 0, 1)]
    t = Ticker(times, {"x": [0.0, 1.0, 2.0]})
    store = wstore.open_bytes(encode(Panel([Group("features", [Col("x")])], {"T": t}, unit=unit)))

    def rows(**options: Any) -> list[int]:
        w = store.windows(1, **options)
        anchors: list[int] = w.locate(range(len(w)))[2].tolist()
        return anchors

    assert rows(from_=time) == [1, 2]
    assert rows(to=time) == [0]
    assert rows(at=time) == rows(at=[time]) == rows(at={time}) == [1]
    assert store.windows(1).find("T", time) == 1
    assert store.windows(1).find("T", [time, time]).tolist() == [1, 1]
    late = np.datetime64(NOON * 10**9 + 1, "ns")
    assert rows(from_=late) == [2]
    assert rows(to=late) == [0, 1]
    assert rows(at=late) == []
    assert rows(at=np.datetime64("2020-01-31T09:30").astype("M8[2m]")) == [1]
    assert rows(at=[times[0], time]) == rows(at=(time, late, times[0])) == [0, 1]


@pytest.mark.parametrize("time", ["2020", "2020-01", dt.date(2020, 1, 1), np.datetime64("2020"), "2020-01-01"])
def test_dates(time: Any) -> None:
    day = 86400
    first = 18262 * day
    t = Ticker([first - day, first, first + day], {"x": [0.0, 1.0, 2.0]})
    store = wstore.open_bytes(encode(Panel([Group("features", [Col("x")])], {"T": t})))
    assert len(store.windows(1, from_=time)) == 2
    assert store.windows(1).between(to=time).locate([0])[2] == 0
    assert store.windows(1).find("T", time) == 1


def test_times_far_away() -> None:
    t = Ticker([-(1 << 63), 0, (1 << 63) - 1], {"x": [0.0, 1.0, 2.0]})
    store = wstore.open_bytes(encode(Panel([Group("features", [Col("x")])], {"T": t}, unit=3)))
    w = store.windows(1)
    assert len(w.between(-(1 << 80), 1 << 80)) == 3
    assert len(w.between(1 << 80, None)) == len(w.between(None, -(1 << 80))) == 0
    assert len(w.between(np.datetime64("9999-01-01"))) == 0
    assert len(w.between(to=np.datetime64("9999-01-01"))) == 3
    assert len(w[:].between(np.datetime64("9999-01-01"))) == 0
    assert len(w[:].between(to=np.datetime64("9999-01-01"))) == 3
    assert len(store.windows(1, at=np.array(["9999-01-01"], "M8[D]"))) == 0
    assert w.find("T", np.datetime64("9999-01-01")) == -1
    assert w.find("T", np.datetime64("9999-01-01"), "pad") == 2
    assert w.find(0, w.locate(range(3))[1]).tolist() == [0, 1, 2]
