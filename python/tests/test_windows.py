"""Every kind of query on any panel, against the rules taken word by word."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
from encode import Col, Group, Panel, Ticker, encode
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Question, content, windows
from panels import any_panel, any_question, small

import wstore
from wstore import _windows

# Panels and queries follow from a seed: hypothesis' own draws are mostly of panels without any window.
SEEDS = st.integers(0, 2**32 - 1)


def ask(store: wstore.Store, q: Question) -> wstore.Windows:
    options: dict[str, Any] = {}
    if q.targets:
        options |= {"horizon": q.horizons, "target_length": q.target_length}
    return store.windows(
        q.lookback,
        inputs=q.inputs,
        targets=q.targets,
        optional=q.optional,
        stride=q.stride,
        at=q.at,
        breaks=q.breaks,
        tickers=q.tickers,
        where=q.where,
        from_=q.from_,
        to=q.to,
        **options,
    )


def floats(a: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    return np.array(a, dtype=np.float32).reshape(shape)  # None becomes NaN


def same(got: np.ndarray | None, want: np.ndarray | None) -> None:
    assert got is not None
    assert want is not None
    assert got.dtype == np.float32
    assert got.shape == want.shape
    want = want.copy()
    want.view(np.uint32)[np.isnan(want)] = 0x7FC00000
    assert np.array_equal(np.ascontiguousarray(got).view(np.uint32), want.view(np.uint32))


def located(store: wstore.Store, w: wstore.Windows) -> list[tuple[str, int]]:
    codes, _, rows = w.locate(range(len(w)))
    return [(store.tickers[c], int(r)) for c, r in zip(codes, rows, strict=True)]


@settings(max_examples=400)
@given(SEEDS)
def test_every_query_finds_exactly_the_valid_windows(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p), verify=True)
    for _ in range(3):
        q = any_question(r, p)
        w = ask(store, q)
        want = windows(p, q)
        assert len(w) == len(want)
        assert located(store, w) == want
        codes, times, _ = w.locate(range(len(w)))
        assert times.view(np.int64).tolist() == [p.tickers[t].times[a] for t, a in want]
        again = w.find(codes, times)
        assert again.tolist() == list(range(len(w)))

        xs, ys, mx, my = w.gather(range(len(w)), mask=True)
        x_shape, y_shape = w.shapes
        for i, (t, a) in enumerate(want):
            x, y = w[i]
            wx, wy = content(p, q, t, a)
            same(x, floats(wx, x_shape))
            same(xs[i], floats(wx, x_shape))
            assert not x.flags.writeable or not w.zero_copy
            assert np.array_equal(mx[i], ~np.isnan(xs[i]))
            if y_shape is None:
                assert y is None
                assert ys is None
                continue
            same(y, floats(wy, y_shape))
            same(ys[i], floats(wy, y_shape))
            assert np.array_equal(my[i], ~np.isnan(ys[i]))
            if w.zero_copy:
                assert np.shares_memory(x, store._use().data)
                assert np.shares_memory(y, store._use().data)


@given(SEEDS)
def test_gather_takes_ids_in_any_order_and_fills(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p))
    q = any_question(r, p)
    w = ask(store, q)
    ids = r.choices(range(len(w)), k=r.randint(0, 20)) if len(w) else []
    x_shape, y_shape = w.shapes
    x_out = np.full((len(ids), *x_shape), 7, np.float32)
    y_out = None if y_shape is None else np.full((len(ids), *y_shape), 7, np.float32)
    x, y, mx, my = w.gather(np.array(ids, np.int32), out=(x_out, y_out), fill=-5.5, mask=True)
    assert x is x_out
    assert y is y_out
    for j, i in enumerate(ids):
        for side, (got, mask) in enumerate(((x, mx), (y, my))):
            if got is None:
                continue
            raw = w[i][side]
            assert raw is not None
            assert np.array_equal(mask[j], ~np.isnan(raw))
            same(got[j], np.where(np.isnan(raw), np.float32(-5.5), raw))


@given(SEEDS)
def test_views_on_views(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p))
    q = any_question(r, p)
    w = ask(store, q)
    want = list(enumerate(windows(p, q)))
    for _ in range(3):
        kind = r.choice(["between", "slice", "ids", "pickle"])
        if kind == "between":
            lo, hi = r.choice([None, r.randint(-45, 20)]), r.choice([None, r.randint(0, 65)])
            w = w.between(lo, hi)
            kept = []
            for i, (t, a) in want:
                time = p.tickers[t].times[a]
                if (lo is None or time >= lo) and (hi is None or time < hi):
                    kept.append((i, (t, a)))
            want = kept
        elif kind == "slice":
            step = r.choice([None, 1, 2, 5, -1, -3])
            s = slice(r.choice([None, r.randint(-9, 9)]), r.choice([None, r.randint(-9, 9)]), step)
            w = w[s]
            want = want[s]
        elif kind == "ids":
            ids = r.choices(range(len(want)), k=r.randint(0, 2 * len(want))) if want else []
            w = w.select(ids)
            want = [want[i] for i in ids]
        else:
            ids_or_query = w.__reduce__()[1]
            w = _windows._rebuild(*ids_or_query)
        assert len(w) == len(want)
        assert located(store, w) == [place for _, place in want]
    x, _ = w.gather(range(len(w)))
    for i in range(len(w)):
        same(w[i - len(w)][0], np.array(x[i]))
        t, a = want[i][1]
        found = int(w.find(t, p.tickers[t].times[a]))
        assert found == [place for _, place in want].index((t, a))


@given(SEEDS)
def test_find_next_to_a_time(seed: int) -> None:
    r = Random(seed)
    p = any_panel(r)
    store = wstore.open_bytes(encode(p))
    q = any_question(r, p)
    w = ask(store, q)
    anchors = [(t, p.tickers[t].times[a]) for t, a in windows(p, q)]
    for name in p.names():
        own = [(time, i) for i, (t, time) in enumerate(anchors) if t == name]
        times = np.arange(-48, 68)
        exact, pad, back = (w.find(name, times, m) for m in ("exact", "pad", "backfill"))
        for j, time in enumerate(times):
            before = [i for at, i in own if at <= time]
            after = [i for at, i in own if at >= time]
            assert exact[j] == next((i for at, i in own if at == time), -1)
            assert pad[j] == (before[-1] if before else -1)
            assert back[j] == (after[0] if after else -1)


def test_find_takes_names_codes_and_all_kinds_of_times() -> None:
    p = small()
    store = wstore.open_bytes(encode(p))
    w = store.windows(2, inputs="b", targets=(), breaks=())
    t = np.datetime64("1970-01-01T00:00:03")
    assert w.find("AAPL", t) == w.find(0, 3) == w.find("AAPL", "1970-01-01T00:00:03Z") == 2
    assert w.find("AAPL", np.datetime64(3001, "ms")) == -1
    assert w.find("AAPL", np.datetime64(3001, "ms"), "pad") == 2
    assert w.find("AAPL", np.datetime64(2999, "ms"), "backfill") == 2
    assert w.find("AAPL", np.datetime64(3001, "ms"), "backfill") == 3
    assert w.find(["AAPL", "BRK.B", "NA", "株式"], 3).tolist() == [2, 8, -1, 9]
    assert w.find(np.array([[0], [1]]), [2, 3, 99]).tolist() == [[1, 2, -1], [7, 8, -1]]
    for nat in (np.datetime64("NaT"), np.datetime64("NaT", "s"), np.datetime64("NaT", "D")):
        assert w.find("AAPL", nat) == -1
        assert w.find("AAPL", np.array([nat, nat])).tolist() == [-1, -1]
        with pytest.raises(wstore.ArgumentError, match="NaT"):
            w.find("AAPL", nat, "pad")
        with pytest.raises(wstore.ArgumentError, match="NaT"):
            w.between(nat)
    assert w.find("AAPL", np.array([2, 3]).astype("M8")).tolist() == [1, 2]
    with pytest.raises(wstore.NotFoundError, match="did you mean 'AAPL'"):
        w.find("aapl", 3)
    with pytest.raises(wstore.ArgumentError, match="exact"):
        w.find("AAPL", 3, "nearest")  # type: ignore[arg-type]


def test_columns_that_are_evenly_spaced_are_views() -> None:
    cols = [Col(c) for c in "abcdef"]
    t = Ticker(list(range(5)), {c.name: [float(10 * i + r) for r in range(5)] for i, c in enumerate(cols)})
    p = Panel([Group("features", cols), Group("g", [Col("z")])], {"T": t})
    t.values["z"] = [1.0] * 5
    store = wstore.open_bytes(encode(p))
    for inputs, view in [
        ("features", True),
        ("a", True),
        (["a", "c", "e"], True),
        (["b", "c"], True),
        (["a", "b", "d"], False),
        (["b", "a"], False),
        (["a", "z"], False),
        (["features", "z"], False),
    ]:
        w = store.windows(2, inputs=inputs)
        assert w.zero_copy == view, inputs
        assert np.shares_memory(w[0][0], store._use().data) == view
    assert store.windows(2, inputs="a", targets="z", horizon=[0, 1, 2]).zero_copy
    assert not store.windows(2, inputs="a", targets="z", horizon=[0, 1, 3]).zero_copy


def test_windows_larger_than_numpy_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    p = small()
    store = wstore.open_bytes(encode(p))
    q = Question(["b"], ["ret"], lookback=2, horizons=[0, 1], breaks=[])
    plain = ask(store, q)
    monkeypatch.setattr(_windows, "_COUNT_MAX", 0)
    far = ask(store, q)
    assert len(far) == len(plain) > 0
    for i in range(len(far)):
        for a, b in zip(far[i], plain[i], strict=True):
            same(a, np.array(b))
    for a, b in zip(far.gather([2, 0]), plain.gather([2, 0]), strict=True):
        same(a, b)


def test_huge_lookbacks_and_horizons_find_nothing() -> None:
    store = wstore.open_bytes(encode(small()))
    top = (1 << 31) - 1
    for options in ({"horizon": top}, {"horizon": [1 - top, top]}, {"target_length": top}, {"stride": top}):
        w = store.windows(top, inputs="b", targets="ret", **options)
        assert len(w) == 0
        assert w.gather([])[0].shape == (0, top, 1)
        with pytest.raises(wstore.WindowRangeError):
            w[0]


def test_an_array_into_which_to_gather_is_checked() -> None:
    store = wstore.open_bytes(encode(small()))
    w = store.windows(2, inputs="b", breaks=())
    good = np.empty((2, 2, 1), np.float32)
    assert w.gather([0, 1], out=good)[0] is good
    strided = np.empty((2, 2, 3), np.float32)[:, :, 1:2]
    same(w.gather([0, 1], out=(strided, None))[0], good)
    frozen = np.empty((2, 2, 1), np.float32)
    frozen.flags.writeable = False
    for bad in (np.empty((2, 2, 1)), np.empty((3, 2, 1), np.float32), frozen, [1.0]):
        with pytest.raises(wstore.ArgumentError, match="writable float32 array of shape"):
            w.gather([0, 1], out=bad)  # type: ignore[arg-type]
    with pytest.raises(wstore.ArgumentError, match="no targets"):
        store.windows(2, inputs="b", targets=()).gather([0, 1], out=(good, good))


def test_ids_are_checked() -> None:
    store = wstore.open_bytes(encode(small()))
    w = store.windows(2, inputs="b", targets=(), breaks=())
    n = len(w)
    for ids in ([0, n], [-1], np.array([1 << 40]), range(n + 1)):
        for call in (w.gather, w.locate, w.select):
            with pytest.raises(wstore.WindowRangeError, match=f"0 to {n - 1}"):
                call(ids)
    with pytest.raises(wstore.ArgumentError, match="integers"):
        w.gather([0.5])
    with pytest.raises(wstore.ArgumentError, match="integers"):
        w.gather(np.ones(n, bool))
    with pytest.raises(wstore.ArgumentError, match="one-dimensional"):
        w.gather([[0]])
    with pytest.raises(IndexError, match=f"window {n} is not there"):
        w[n]
    with pytest.raises(IndexError):
        w[-n - 1]
    with pytest.raises(wstore.ArgumentError, match="gather"):
        w[[0]]  # type: ignore[call-overload]
    assert np.array_equal(w[np.int64(n - 1)][0], w[-1][0])
    assert len(list(w)) == n


def test_frame_joins_predictions_back() -> None:
    p = small()
    store = wstore.open_bytes(encode(p))
    w = store.windows(2, inputs="b", breaks=())  # targets: ret, which looks two rows ahead
    f = w.frame([0, 3], pred=np.array([0.5, 0.25], np.float32))
    assert list(f) == ["ticker", "time", "label_end", "pred"]
    assert f["ticker"].tolist() == ["AAPL", "AAPL"]
    assert f["time"].dtype == "M8[ms]"  # polars has no seconds
    assert f["time"].astype("M8[s]").view(np.int64).tolist() == [1, 10]
    assert f["label_end"].astype("M8[s]").view(np.int64).tolist() == [10, 13]
    assert len(w.frame()["time"]) == len(w)
    with pytest.raises(wstore.ArgumentError, match="pred"):
        w.frame([0, 3], pred=[1.0])
    with pytest.raises(wstore.ArgumentError, match="one-dimensional"):
        w.frame([[0, 3]])
    with pytest.raises(wstore.ArgumentError, match="one-dimensional"):
        w.select([[0, 3]])
    with pytest.raises(wstore.ArgumentError, match="frame's own"):
        w.frame([0, 3], time=[1, 2])


def test_label_end_by_kind_of_reach() -> None:
    p = small()
    end = next(i for i, c in enumerate(p.columns()) if c.name == "end")
    target = p.groups[2].cols[0]
    want = {(0, 0): [2, 3, 10, 11], (1, 3): [10, 11, 12, 13], (2, 4): [6, 7, 14, 15], (3, end): [5, 6, 13, 14]}
    for (kind, reach), ends in want.items():
        target.reach_kind, target.reach = kind, reach
        store = wstore.open_bytes(encode(p))
        w = store.windows(2, inputs="b", horizon=0 if kind == 1 else 1, breaks=(), tickers="AAPL", from_=1, to=11)
        assert w.label_end(range(4)).view(np.int64).tolist() == ends
    w = store.windows(2, inputs="b", targets=(), breaks=())
    assert np.array_equal(w.label_end(range(len(w))), w.locate(range(len(w)))[1])


def test_pickled_windows_are_small_and_the_same(tmp_path: Any) -> None:
    path = tmp_path / "a.wst"
    path.write_bytes(encode(small()))
    w = wstore.open(path).windows(2, inputs="features", at=range(12), breaks=["gap"], from_="1970-01-01")
    raw = pickle.dumps(w)
    assert len(raw) < 2048
    again = pickle.loads(raw)
    assert len(again) == len(w)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(again, w, strict=True))
    assert pickle.loads(raw).store is again.store
    picked = pickle.loads(pickle.dumps(w[::-1]))
    assert np.array_equal(picked[0][0], w[-1][0])


def test_the_index_costs_by_runs_not_windows() -> None:
    n = 5000
    t = Ticker(list(range(n)), {"a": [float(i) for i in range(n)]})
    store = wstore.open_bytes(encode(Panel([Group("features", [Col("a")])], {"T": t})))
    w = store.windows(60)
    assert (len(w), w.runs) == (n - 59, 1)
    assert w.nbytes_index < 200
    assert w[10:].nbytes_index == w.nbytes_index
    at = store.windows(60, at=range(100, 200))
    assert (len(at), at.runs) == (100, 1)


def test_numbers_out_of_range_are_named_as_given() -> None:
    w = wstore.open_bytes(encode(small())).windows(2, inputs="b", targets=(), breaks=())
    for view in (w, w[1:], w.select(range(3)), w.select([2, 0])):
        n = len(view)
        for i in (-n - 1, -41001, n, 41001):
            with pytest.raises(wstore.WindowRangeError, match=f"window {i} is not there"):
                view[i]


def test_repr() -> None:
    store = wstore.open_bytes(encode(small()))
    w = store.windows(2, inputs="b", horizon=[0, 1, 3], target_length=2, stride=2, breaks=())
    assert repr(w) == (
        f"<wstore.Windows: {len(w)}, x (2, 1), y (3, 2, 1), copies; "
        "lookback=2, horizon=[0, 1, 3], target_length=2, stride=2>"
    )
    w = store.windows(2, inputs="b", targets=(), at=range(3), breaks=())[:1]
    assert repr(w) == "<wstore.Windows: 1 (of 3), x (2, 1), views; lookback=2, at=3 times>"


def test_times_too_far_away_for_milliseconds_stay_seconds() -> None:
    t = Ticker([0, 1 << 60], {"x": [1.0, 1.0]})
    f = wstore.open_bytes(encode(Panel([Group("features", [Col("x")])], {"T": t}))).windows(1).frame()
    assert f["time"].view(np.int64).tolist() == [0, 1 << 60]
