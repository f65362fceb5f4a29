"""The examples with torch in the README run after those without, and print what is written there."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import pytest

import wstore

README = Path(__file__).parents[2] / "README.md"
DATA = README.parents[1] / "testdata" / "article-100x470"


def test_examples(cli: Path, tmp_path: Path) -> None:
    demo = tmp_path / "demo.wst"
    subprocess.run([cli, "convert", DATA, "-o", demo, "--ticker", "Name"], check=True, capture_output=True)
    w = wstore.open(demo).windows(lookback=60, horizon=1, inputs=["open", "close"], targets="close")
    train = w.split(
        train=(None, "2017-07-01"), valid=("2017-07-01", "2017-10-01"), test=("2017-10-01", None), embargo=5
    ).train
    names = {"train": train, "scale": wstore.Standardizer.fit(train)}
    blocks = re.findall(r"^```py\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for block in blocks:
        test = doctest.DocTestParser().get_doctest(block, {}, README.name, str(README), 0)
        test.globs = names
        runner.run(test, out=said.append, clear_globs=False)
    if said:
        pytest.fail("".join(said), pytrace=False)
