"""The report on orders, against plain counting and against what is known of drawing at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from encode import encode
from panels import small
from test_batches import panel

import wstore
from wstore import orders, quality
from wstore.quality import order_quality


def test_an_exact_order_is_as_good_as_drawing_and_file_order_is_not() -> None:
    tickers, rows = 200, 1024
    values = quality.simulate(tickers, rows).ravel()
    n = values.size
    code, row = np.divmod(np.arange(n), rows)
    position = code * (rows + 60) + row
    exact = quality.quality(orders.Exact(n, 1), values, code, position, 60, 64)
    assert exact.variance[1] is not None
    assert exact.variance[8] is not None
    assert 0.9 < exact.variance[1] < 1.1
    assert 0.7 < exact.variance[8] < 1.3
    assert abs(exact.lag1) < 0.1
    assert exact.tickers > 50
    file = quality.quality(orders.Sequential(n), values, code, position, 60, 64)
    assert file.variance[1] is not None
    assert file.variance[1] > 5
    assert file.tickers == 1
    assert file.overlap == 1
    blocked = orders.Blocked(n, 1, chunk=64, chunks_per_group=400)
    mixed = quality.quality(blocked, values, code, position, 60, 64)
    assert mixed.variance[1] is not None
    assert exact.variance[1] - 0.1 < mixed.variance[1] < 2
    assert mixed.variance[256] is not None
    assert mixed.variance[256] > 2  # drifts from group to group


def test_the_report_counts_what_batches_hold() -> None:
    w = wstore.open_bytes(encode(panel(3, 120))).windows(10, inputs="a")
    got = order_quality(w, order="exact", batch=16, seed=5)
    ids = [b.id for b in w.batches(16, order="exact", seed=5, fields="id") if len(b.id) == 16]
    code, _, row = w.locate(np.array(ids))
    assert got.tickers == np.mean([len(set(c)) for c in code.tolist()])
    near = (code[:, :, None] == code[:, None, :]) & (abs(row[:, :, None] - row[:, None, :]) < 10)
    assert got.overlap == pytest.approx(np.mean(near.sum(2) > 1))
    value = w.gather(range(len(w)))[0][:, -1, 0].astype(float)
    means = np.array([value[i].mean() for i in ids]) - value.mean()
    n = len(w)
    assert got.variance[1] == pytest.approx(np.square(means).mean() / (value.var() / 16 * (n - 16) / (n - 1)))
    assert got.variance[256] is None
    assert got == order_quality(w, order="exact", batch=16, seed=5, values=value)
    assert str(got).splitlines()[0].split()[:3] == ["order", "var", "1"]
    assert "–" in got.row()
    assert order_quality(w, batch=16).order.startswith("blocked, ")


def test_missing_values_count_as_average() -> None:
    w = wstore.open_bytes(encode(small())).windows(1, optional="a", targets=(), breaks=())
    got = order_quality(w, order="sequential", batch=2, column="a")
    assert got.windows == len(w)


def test_arguments_are_checked() -> None:
    w = wstore.open_bytes(encode(panel(3, 120))).windows(10, inputs="a")
    with pytest.raises(wstore.ArgumentError, match="by time"):
        order_quality(w, order="by_time")
    with pytest.raises(wstore.ArgumentError, match="two batches"):
        order_quality(w, batch=1000)
    with pytest.raises(wstore.ArgumentError, match="one a window"):
        order_quality(w, values=[1.0])
    with pytest.raises(wstore.ArgumentError, match="is a group"):
        order_quality(w, column="features")
    with pytest.raises(wstore.ArgumentError, match="must differ"):
        order_quality(w, batch=16, values=np.zeros(len(w)))
    bad: Any = None
    with pytest.raises(wstore.ArgumentError, match="no order None"):
        order_quality(w, order=bad)
    with pytest.raises(wstore.ArgumentError, match="batch must be"):
        order_quality(w, batch=0)
    small_int: Any = np.int8(100)  # whose multiples it can't hold
    assert order_quality(w, batch=small_int) == order_quality(w, batch=100)
