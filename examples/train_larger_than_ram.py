#!/usr/bin/env python3
"""Train an LSTM on a panel that is larger than memory; stop it at any time, and start it again to go on.

    python examples/train_larger_than_ram.py [--size MB] [--epochs N] [--run DIR]

The panel is made in DIR at the first start. To see that memory does not matter, allow it a fraction of the file:

    systemd-run --user --scope -p MemoryMax=1G -p MemorySwapMax=0 python examples/train_larger_than_ram.py --size 4000

Ctrl-C ends it after the current step, and saves the model, the optimizer and the place in the epoch; every 200th batch
is saved too, for runs that are killed. The next start trains on exactly the windows that were left, in the same order.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

import panel
import torch
from torch import nn
from tqdm import tqdm

import wstore
from wstore.torch import WindowLoader

LOOKBACK = 60
SAVE_EVERY = 200


class Model(nn.Module):
    def __init__(self, inputs: int, hidden: int = 32) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(x)
        return self.head(states[:, -1])


class Run:
    """What is trained, and where it is."""

    def __init__(self, folder: Path, size: float) -> None:
        store_path = folder / "panel.wst"
        if not store_path.exists():
            print(f"making {store_path}, {size:,.0f} MB")
            panel.make(store_path, size)
        # Targets were computed one row ahead (panel.py): horizon 0 takes the one that stands beside the anchor.
        windows = wstore.open(store_path).windows(LOOKBACK, horizon=0)
        train, _, test = windows.split(train=(None, "2023-01-01"), valid=None, test=("2023-01-01", None), embargo=5)
        self.path = folder / "run.pt"
        torch.manual_seed(0)
        self.model = Model(len(windows.inputs))
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3)
        # Blocked: shuffled, and at the speed of the disk's sequential reading.
        self.train = WindowLoader(train, 256, order="blocked", seed=1)
        self.test = WindowLoader(test, 1024, order="sequential")
        self.loss = 0.0
        self.stopped = False
        if self.path.exists():
            saved = torch.load(self.path)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.train.load_state_dict(saved["loader"])
            self.loss = saved["loss"]

    def stop(self, *_: object) -> None:
        """On Ctrl-C: a batch that was handed out is trained on before, for the loader counts it."""
        self.stopped = True

    def save(self) -> None:
        parts = {"model": self.model, "optimizer": self.optimizer, "loader": self.train}
        saved = {name: part.state_dict() for name, part in parts.items()}
        beside = self.path.with_suffix(".new")
        torch.save(saved | {"loss": self.loss}, beside)
        os.replace(beside, self.path)  # so that a run killed now still has the old one

    def epoch(self) -> None:
        """Trains on what is left of the epoch."""
        total = len(self.train)
        done = self.train.state_dict()["position"] // self.train.batch_size
        with tqdm(total=total, initial=done, desc=f"epoch {self.train.epoch}", unit=" batches", mininterval=0.5) as bar:
            for x, y in self.train:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.loss = 0.99 * self.loss + 0.01 * loss.item() if self.loss else loss.item()
                done += 1
                bar.update()
                bar.set_postfix(loss=f"{self.loss:.4f}", refresh=False)
                if self.stopped:
                    break
                if done % SAVE_EVERY == 0:
                    self.save()
        self.save()

    @torch.no_grad()
    def error(self) -> float:
        """The mean squared error on the test windows."""
        errors = [nn.functional.mse_loss(self.model(x), y, reduction="sum").item() for x, y in self.test]
        return sum(errors) / len(self.test.windows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=float, default=1000, metavar="MB", help="of the panel, when it is made")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument(
        "--run", type=Path, default=Path("build/lstm"), metavar="DIR", help="for the panel and the state"
    )
    a = parser.parse_args()
    a.run.mkdir(parents=True, exist_ok=True)
    run = Run(a.run, a.size)
    signal.signal(signal.SIGINT, run.stop)
    while run.train.epoch < a.epochs:
        run.epoch()
        if run.stopped:
            sys.exit("stopped, and saved: the same command goes on from here")
        stats = run.train.stats()
        print(f"test error {run.error():.4f}; of the epoch {stats.waiting_share:.1%} was waiting for data")


if __name__ == "__main__":
    main()
