"""How well an order mixes: what a batch's mean says about the mean of all windows.

>>> print(order_quality(w, order="blocked", column="ret"))

An independent draw of m windows has a mean with the variance s²/m. Windows of one ticker, or of one day, have much in
common, and an order that brings them together gives batches whose means vary more than that: a `variance` of 2 is as
noisy a gradient as half the batch. The same over 8, 64 and 256 batches in a row shows slow drift, which a small
learning rate does not average out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from . import orders
from ._arguments import integer
from ._batches import OrderName, is_by_time, make_order
from ._format import I64
from ._query import columns_of
from .errors import ArgumentError

if TYPE_CHECKING:
    from ._windows import Windows

__all__ = ["OrderQuality", "order_quality", "quality"]

F64 = npt.NDArray[np.float64]

# Consecutive batches whose common mean is looked at.
SPANS = (1, 8, 64, 256)
# Below so many means their variance says nothing.
_MEANS_MIN = 8
_PIECE = 1 << 18


@dataclass(frozen=True)
class OrderQuality:
    """A report; `str` is a table of one row with its head, `row` the row alone.

    `order` says how many chunks of how many windows are shuffled at a time, and what share of all that is.

    `variance`: for means of 1, 8, 64 and 256 consecutive batches their variance over that of as many windows drawn
    without putting back, so that 1 is as good as it gets; None where there are fewer than 8 such means. `lag1`: the
    correlation of neighbouring batches' means. `tickers`: distinct ones in a batch, on average; `overlap`: the share of
    windows that have rows in common with another of their batch.
    """

    order: str
    windows: int
    batch: int
    variance: dict[int, float | None]
    lag1: float
    tickers: float
    overlap: float

    @staticmethod
    def head() -> str:
        spans = "".join(f"{f'var {k}':>9}" for k in SPANS)
        return f"{'order':<34}{spans}{'lag-1':>8}{'tickers':>9}{'overlap':>9}"

    def row(self) -> str:
        spans = "".join("        –" if v is None else f"{v:9.2f}" for v in self.variance.values())
        return f"{self.order:<34}{spans}{self.lag1:8.2f}{self.tickers:9.1f}{self.overlap:9.1%}"

    def __str__(self) -> str:
        return f"{self.head()}\n{self.row()}"


def order_quality(
    w: Windows,
    *,
    order: OrderName = "blocked",
    batch: int = 256,
    column: str | None = None,
    values: npt.ArrayLike | None = None,
    seed: int = 0,
    epoch: int = 0,
    group_bytes: int | None = None,
) -> OrderQuality:
    """Reports how an order mixes these windows.

    `column` names the column whose values at the anchor are looked at (by default the first target's, else the first
    input's); windows where it is missing count as average. `values`: instead, a number for each window, such as a
    loss. Takes 8 bytes a window and more, for a while.
    """
    if is_by_time(order):
        raise ArgumentError("orders by time are not meant to mix times: order must be blocked, exact or sequential")
    n = len(w)
    if values is None:
        value = _at_anchors(w, column)
    else:
        value = np.asarray(values, np.float64)
        if value.shape != (n,) or column is not None:
            raise ArgumentError(f"values must be {n} numbers, one a window, and column not be given")
    made, name = make_order(w, order, seed, epoch, group_bytes, None)
    label = name
    if isinstance(made, orders.Blocked):
        share = min(1.0, made.chunks_per_group * made.chunk / max(1, n))
        label = f"blocked, {made.chunks_per_group} × {made.chunk} ({share:.1%})"
    ticker, position = np.empty(n, np.int64), np.empty(n, np.int64)
    for at in range(0, n, _PIECE):
        piece = slice(at, min(n, at + _PIECE))
        ticker[piece], _, row = w.locate(range(piece.start, piece.stop))
        # Rows of all tickers on a line, with room between tickers, so that near means overlapping.
        position[piece] = row + w._store._line[ticker[piece]] + ticker[piece] * w.lookback
    return quality(made, value, ticker, position, w.lookback, batch, label)


def _at_anchors(w: Windows, column: str | None) -> F64:
    store = w._store
    name = column if column is not None else (w.targets or w.inputs)[0]
    (c, *more) = columns_of(store.schema, (name,), "column")
    if more:
        raise ArgumentError(f"column must be one column, and {name!r} is a group")
    from ._batches import _at_anchor

    out = np.empty(len(w), np.float64)
    for at in range(0, len(w), _PIECE):
        end = min(len(w), at + _PIECE)
        code, _, row = w.locate(range(at, end))
        out[at:end] = _at_anchor(store, c, code, row)[1]
    missing = np.isnan(out)
    if missing.any() and not missing.all():
        out[missing] = out[~missing].mean()
    return out


def quality(
    order: orders.Order, values: F64, tickers: I64, positions: I64, lookback: int, batch: int, name: str = ""
) -> OrderQuality:
    """The report from plain arrays, each of shape (n,).

    `positions` are of anchors; two windows overlap if theirs are less than `lookback` apart.
    """
    n, batch = order.n, integer("batch", batch, 1)
    if n < 2 * batch:
        raise ArgumentError(f"a report needs at least two batches of {batch}: there are {n} windows")
    mean, spread = float(values.mean()), float(values.var())
    if not spread > 0:
        raise ArgumentError("the values must differ, and be finite")
    count = n // batch
    means = np.empty(count)
    distinct = overlaps = 0
    each = max(1, _PIECE // batch)
    for b in range(0, count, each):
        end = min(count, b + each)
        ids = order.numbers(b * batch, end * batch).reshape(end - b, batch)
        means[b:end] = values[ids].mean(1)
        t = np.sort(tickers[ids], axis=1)
        distinct += int((t[:, 1:] != t[:, :-1]).sum()) + end - b
        near = np.diff(np.sort(positions[ids], axis=1), axis=1) < lookback
        touched = np.zeros(ids.shape, bool)
        touched[:, 1:] |= near
        touched[:, :-1] |= near
        overlaps += int(touched.sum())
    variance: dict[int, float | None] = {}
    for k in SPANS:
        groups = means[: count // k * k].reshape(-1, k).mean(1)
        m = k * batch
        ideal = spread / m * (n - m) / (n - 1)  # drawn without putting back
        variance[k] = float(np.square(groups - mean).mean() / ideal) if len(groups) >= _MEANS_MIN and ideal else None
    around = means - mean
    total = float(around @ around)
    lag1 = float(around[1:] @ around[:-1]) / total if total else 0.0
    return OrderQuality(name, n, batch, variance, lag1, distinct / count, overlaps / (count * batch))


def simulate(
    tickers: int, rows: int, shares: tuple[float, ...] = (0.05, 0.05, 0.2, 0.7), seed: int = 0, tau: int = 128
) -> F64:
    """Values of shape (tickers, rows) whose variance is shared by ticker, market (time), a local drift, and noise.

    The drift is autoregressive, and forgets in `tau` rows.
    """
    rng = np.random.default_rng(seed)
    ticker, market, drift, noise = np.sqrt(shares)
    out: F64 = ticker * rng.standard_normal((tickers, 1)) + market * rng.standard_normal(rows)
    out += noise * rng.standard_normal((tickers, rows))
    keep = np.exp(-1 / tau)
    state = rng.standard_normal(tickers)
    for r in range(rows):
        out[:, r] += drift * state
        state = keep * state + np.sqrt(1 - keep * keep) * rng.standard_normal(tickers)
    return out
