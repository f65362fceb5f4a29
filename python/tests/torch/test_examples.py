"""The programs in examples/ do what they say."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

EXAMPLES = Path(__file__).parents[3] / "examples"


def command(name: str, *args: object) -> list[str]:
    return [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, args)]


def run(name: str, *args: object) -> str:
    done = subprocess.run(command(name, *args), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def saved(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(folder / "run.pt")
    return state


@pytest.mark.skipif(sys.platform == "win32", reason="sends an interrupt")
def test_training_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    args = ("train_larger_than_ram.py", "--size", 4, "--run", tmp_path)
    with subprocess.Popen(command(*args), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        assert p.stderr is not None
        text = b""
        while max(map(int, re.findall(rb" (\d+)/", text)), default=0) < 3:  # the bar skips some
            piece = p.stderr.read1(4096)  # type: ignore[attr-defined]
            assert piece, text.decode()
            text += piece
        p.send_signal(signal.SIGINT)
        text += p.stderr.read()
    assert p.returncode == 1, text.decode()
    assert b"the same command goes on from here" in text
    first = saved(tmp_path)["loader"]
    assert first["epoch"] == 0
    assert first["position"] >= 3 * 256
    done = subprocess.run(command(*args), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # The bar begins where the first run ended.
    begin = re.search(r"(\d+)/(\d+)", done.stderr)
    assert begin is not None
    assert int(begin[1]) == first["position"] // 256
    assert float(re.search(r"test error ([\d.]+);", done.stdout)[1]) > 0  # type: ignore[index]
    assert saved(tmp_path)["loader"]["epoch"] == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_experiments_share_the_file(tmp_path: Path) -> None:
    out = run("four_experiments.py", "--size", 12, "--dir", tmp_path)
    assert [int(n) for n in re.findall(r"^ +(\d+) ", out, re.M)] == [20, 60, 120, 250]
    together = re.search(r"together [\d,]+ MB, (-?[\d,]+) MB more", out)
    assert together is not None, out


def test_walking_forward_joins_predictions() -> None:
    out = run("walk_forward.py")
    last = out.strip().splitlines()[-1]
    found = re.fullmatch(r"mean daily rank correlation [+-]0\.\d+ over (\d+) days, ([\d,]+) predictions", last)
    assert found is not None, out
    folds = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) predicted", out)]
    assert len(folds) > 3
    assert int(found[2].replace(",", "")) == sum(folds)
