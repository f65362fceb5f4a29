"""Statistics against numpy over the rows that windows hold, each once."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from encode import Col, Group, Panel, Ticker, encode
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import expand, windows
from panels import any_panel, any_question, small
from test_windows import SEEDS, ask

import wstore
from wstore import stats
from wstore.stats import Moments, Standardizer


def check(got: Moments, columns: list[str], cells: dict[str, list[float]]) -> None:
    assert got.columns == tuple(columns)
    for i, c in enumerate(columns):
        a = np.array(cells[c], np.float64)
        assert got.count[i] == len(a)
        if not len(a):
            assert np.isnan([got.mean[i], got.min[i], got.max[i], got.std[i]]).all()
            assert got.m2[i] == 0
            continue
        assert np.isclose(got.mean[i], a.mean(), rtol=1e-12, atol=0)
        assert np.isclose(got.std[i], a.std(), rtol=1e-9, atol=1e-9)
        assert got.min[i] == a.min()
        assert got.max[i] == a.max()


@settings(max_examples=300)
@given(SEEDS)
def test_statistics_take_each_row_once(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p))
    q = any_question(r, p)
    w = ask(store, q)
    listed = windows(p, q)
    kind = r.randint(0, 3)
    if kind == 0 and listed:
        ids = r.choices(range(len(listed)), k=r.randint(1, 20))
        w, listed = w.select(ids), [listed[i] for i in ids]
    elif kind == 1:
        w = w.split(train=(None, 5), reach=0).train
        listed = [(t, a) for t, a in listed if p.tickers[t].times[a] < 5]
    before, stats._PIECE = stats._PIECE, r.choice([1, 3, 1 << 14])
    try:
        got = w.statistics()
    finally:
        stats._PIECE = before

    inputs, targets = expand(p, q.inputs), expand(p, q.targets)
    rows = {(t, a - i) for t, a in listed for i in range(q.lookback)}
    target_rows = {(t, a + h + m) for t, a in listed for h in q.horizons for m in range(q.target_length)}

    def cells(columns: list[str], rows: set[tuple[str, int]]) -> dict[str, list[float]]:
        return {c: [float(v) for t, i in sorted(rows) if (v := p.tickers[t].values[c][i]) is not None] for c in columns}

    check(got.inputs, inputs, cells(inputs, rows))
    if not targets:
        assert got.targets is None
    else:
        assert got.targets is not None
        check(got.targets, targets, cells(targets, target_rows))


def test_large_values_keep_their_deviation() -> None:
    rng = np.random.default_rng(0)
    p = Panel([Group("features", [Col("a")])])
    every = []
    for i in range(30):
        values = (np.float32(16_000_000) + rng.integers(0, 8, 3000)).astype(np.float32)
        every.append(values)
        p.tickers[f"T{i:02d}"] = Ticker(list(range(3000)), {"a": [float(v) for v in values]})
    got = wstore.open_bytes(encode(p)).windows(10).statistics().inputs
    a = np.concatenate(every).astype(np.float64)
    assert np.isclose(got.mean[0], a.mean(), rtol=1e-14)
    assert np.isclose(got.std[0], a.std(), rtol=1e-10)


def test_only_training_rows_count() -> None:
    n = 100
    t = Ticker(list(range(n)), {"a": [1000.0 * (i >= 50) for i in range(n)]})
    w = wstore.open_bytes(encode(Panel([Group("features", [Col("a")])], {"T": t}))).windows(5, targets="a")
    train = w.split(train=(None, 50), test=(50, None)).train
    s = Standardizer.fit(train)
    assert s.mean.tolist() == [0.0]
    assert s.std.tolist() == [1.0]


def test_a_standardizer_transforms_and_inverts() -> None:
    store = wstore.open_bytes(encode(small()))
    w = store.windows(2, optional="a", breaks=())
    s = Standardizer.fit(w)
    found = w.statistics().inputs
    x, y = w.gather(range(len(w)))
    z = s.transform(x)
    assert z.dtype == np.float32
    assert np.allclose(z, (x - found.mean) / found.std, equal_nan=True)
    assert np.allclose(s.inverse(z), x, atol=1e-5, equal_nan=True)
    assert s.transform(x, out=x) is x
    assert np.array_equal(x, z, equal_nan=True)
    assert s.transform(w[0][0]).shape == (2, 2)
    assert s[[1]].mean.tolist() == [found.mean[1]]
    assert len(pickle.dumps(s)) < 1000
    assert np.array_equal(pickle.loads(pickle.dumps(s)).std, s.std)
    of_targets = Standardizer.fit(w, of="targets")
    assert np.allclose(of_targets.inverse(of_targets.transform(y)), y)
    assert s.transform(np.array([[1, 2]])).dtype == np.float64


def exact(s: Standardizer, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    return (x.astype(np.float64) - s.mean) / s.std


@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([1, 2, 50, 300, 9000]))
def test_single_precision_is_near_the_exact_value(seed: int, columns: int, rows: int) -> None:
    r = np.random.default_rng(seed)
    std = 10.0 ** r.uniform(-6, 6, columns)
    mean = std * r.standard_normal(columns) * 10.0 ** r.uniform(-3, 7, columns)
    x = (mean + std * r.standard_normal((rows, columns))).astype(np.float32)
    x[r.random(x.shape) < 0.1] = np.nan
    s = Standardizer(mean, std)
    want = exact(s, x)
    bound = 3e-7 * np.abs(want) + 2e-14 * (1 + np.abs(mean) / std)
    got = s.transform(x)
    assert got.dtype == np.float32
    assert np.array_equal(np.isnan(got), np.isnan(x))
    assert (np.isnan(x) | (np.abs(got - want) <= bound)).all()
    # The same bits, whatever the shape and wherever the result goes
    wide = np.full((rows, columns + 3), 5, np.float32)
    assert np.shares_memory(s.transform(x, out=wide[:, 1:-2]), wide)
    assert wide[:, 1:-2].tobytes() == got.tobytes()
    assert (wide[:, [0, -2, -1]] == 5).all()
    assert s.transform(x[None, :, None])[0, :, 0].tobytes() == got.tobytes()
    assert s.transform(np.asfortranarray(x)).tobytes() == got.tobytes()
    assert s.transform(x[:1]).tobytes() == got[:1].tobytes()
    assert s.transform(x, out=np.empty(x.shape)).tobytes() == want.tobytes()
    assert s.transform(x, out=x) is x
    assert x.tobytes() == got.tobytes()


@pytest.mark.parametrize(
    ("mean", "std"), [(-3e38, 3e38), (1e300, 1e299), (0, 1e-46), (0, 1e-40), (0, 3e38), (1e-40, 1e-30), (1e30, 1)]
)
def test_extremes_are_computed_in_double_precision(mean: float, std: float) -> None:
    s = Standardizer(np.array([mean]), np.array([std]))
    x = np.array([[3.4e38], [-3.4e38], [1e-45], [0], [1]], np.float32)
    with np.errstate(over="ignore"):
        assert np.allclose(s.transform(x), exact(s, x).astype(np.float32), rtol=3e-7, atol=2e-14)


def test_columns_without_spread_are_divided_by_one() -> None:
    nan = np.nan
    m = Moments.of(("a", "b", "c"), np.array([[1, 2, nan], [1, nan, nan]], np.float32))
    s = Standardizer.from_moments(m)
    assert s.mean.tolist() == [1, 2, 0]
    assert s.std.tolist() == [1, 1, 1]
    with pytest.raises(wstore.ArgumentError, match="merged"):
        m.merged(Moments.of(("a",), np.zeros((1, 1))))


def test_arguments_are_checked() -> None:
    w = wstore.open_bytes(encode(small())).windows(2, inputs="b", targets=(), breaks=())
    with pytest.raises(wstore.ArgumentError, match="no targets"):
        Standardizer.fit(w, of="targets")
    with pytest.raises(wstore.ArgumentError, match="'inputs' or 'targets'"):
        Standardizer.fit(w, of="x")  # type: ignore[arg-type]
    s = Standardizer.fit(w)
    with pytest.raises(wstore.ArgumentError, match="last axis"):
        s.transform(np.zeros((3, 2)))
    with pytest.raises(wstore.ArgumentError, match="contiguous"):
        s.transform(np.zeros((3, 2, 1)), out=np.zeros((2, 3, 1)).transpose(1, 0, 2))
    bad: Any
    for bad in (([1.0], [0.0]), ([1.0], [1.0, 2.0]), ([np.nan], [1.0])):
        with pytest.raises(wstore.ArgumentError, match="above 0"):
            Standardizer(*map(np.array, bad))


def test_equal_statistics_are_equal() -> None:
    w = wstore.open_bytes(encode(small())).windows(2, optional="a", breaks=())
    s = Standardizer.fit(w)
    again = pickle.loads(pickle.dumps(s))
    assert s == again
    assert hash(s) == hash(again)
    assert s != s[[0]]
    assert s != Standardizer(s.mean + 1, s.std)
    assert s != 1
    assert {s: 1}[again] == 1
    found = w.statistics()
    assert found == w.statistics()
    assert hash(found) == hash(w.statistics())
    assert found.inputs != found.targets
    none = Moments.of(("a",), np.empty((0, 1)))
    assert none == Moments.of(("a",), np.empty((0, 1)))  # NaN and all
    assert none != 1


def test_nothing_to_fit_to_is_an_error() -> None:
    w = wstore.open_bytes(encode(small())).windows(2, optional="a", breaks=())
    with pytest.raises(wstore.ArgumentError, match="no windows to fit to"):
        Standardizer.fit(w[:0])
