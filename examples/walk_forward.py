#!/usr/bin/env python3
"""Walk forward over real prices: retrain every quarter, and join the predictions back to the frame of prices.

    python examples/walk_forward.py [PRICES]

PRICES is by default five years of the S&P 500 (testdata/sp500-5yr.csv.gz). The model is a small network on 20 days of
returns, whose target is the next 5 days' return. Nothing that a fold trains on overlaps in time with what it predicts.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import polars as pl
import torch
from torch import nn

import wstore
from wstore.torch import WindowLoader

REACH = 5
PRICES = Path(__file__).parent.parent / "testdata" / "sp500-5yr.csv.gz"


def features(prices: pl.DataFrame) -> pl.DataFrame:
    """Daily returns, ranges and volumes, and the return of the REACH days to come."""
    close = pl.col("close")
    return (
        prices.rename({"Name": "ticker"})
        .with_columns(pl.col("date").str.to_date())
        .sort("ticker", "date")
        .with_columns(
            ret=(close / close.shift(1)).log().over("ticker"),
            range=(pl.col("high") / pl.col("low")).log(),
            volume=(pl.col("volume") / pl.col("volume").shift(1)).log().over("ticker"),
            ahead=(close.shift(-REACH) / close).log().over("ticker"),
        )
        .select("ticker", "date", "ret", "range", "volume", "ahead")
    )


def fit(train: wstore.Windows, scale: wstore.Standardizer) -> nn.Module:
    torch.manual_seed(0)
    days, inputs = train.shapes[0]
    model = nn.Sequential(nn.Flatten(), nn.Linear(days * inputs, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1)
    for x, y in WindowLoader(train, 1024, order="exact", seed=1, transform=scale):
        loss = nn.functional.huber_loss(model(x), y, delta=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


@torch.no_grad()
def predict(model: nn.Module, test: wstore.Windows, scale: wstore.Standardizer) -> pl.DataFrame:
    batches = WindowLoader(test, 4096, order="sequential", fields="x", transform=scale)
    predicted = torch.cat([model(x).squeeze(1) for (x,) in batches])
    return test.to_polars(pred=predicted.numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("prices", nargs="?", type=Path, default=PRICES)
    table = features(pl.read_csv(parser.parse_args().prices))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "returns.wst"
        wstore.write(table, path, target={"ahead": REACH})
        windows = wstore.open(path).windows(20, horizon=0)
        parts = []
        for fold in windows.walk_forward(every="3mo", train="3y", embargo=REACH):
            scale = wstore.Standardizer.fit(fold.train)
            parts.append(predict(fit(fold.train, scale), fold.test, scale))
            begin = fold.test.times[0].astype("M8[D]")
            print(f"{len(fold.train):8,d} windows trained on, {len(fold.test):7,d} predicted from {begin}")
        predictions = pl.concat(parts)
    joined = table.join(
        predictions.select("ticker", pl.col("time").dt.date().alias("date"), "pred"), on=("ticker", "date"), how="inner"
    )
    daily = joined.group_by("date").agg(ic=pl.corr("pred", "ahead", method="spearman")).sort("date")
    print(joined.tail(5))
    print(f"mean daily rank correlation {daily['ic'].mean():+.4f} over {len(daily)} days, {len(joined):,} predictions")


if __name__ == "__main__":
    main()
