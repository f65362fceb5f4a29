"""The vectors of spec/SPLITS.md, section 5."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wstore

SPEC = Path(__file__).parents[2] / "spec"
if not (SPEC / "splits.json").exists():
    pytest.skip("the vectors are in the repository, not in the package", allow_module_level=True)
FILES = json.loads((SPEC / "splits.json").read_text())["files"]
CASES = [(f, q) for f in FILES for q in f["queries"]]
EACH = pytest.mark.parametrize(("file", "case"), CASES, ids=[f"{f['file']}-{i}" for i, (f, _) in enumerate(CASES)])
NAMES = {"horizons": "horizon", "from": "from_", "to": "to"}
UNIT = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}


def number(v: Any) -> Any:
    """Integers that JSON holds as text."""
    return int(v) if isinstance(v, str) and v.lstrip("-").isdigit() else v


def ask(file: dict[str, Any], query: dict[str, Any]) -> wstore.Windows:
    store = wstore.open(SPEC / file["file"])
    assert store.digest == file["digest"]
    options: dict[str, Any] = {
        NAMES.get(k, k): [number(i) for i in v] if isinstance(v, list) else number(v) for k, v in query.items()
    }
    return store.windows(**options)


def duration(v: Any, w: wstore.Windows) -> dt.timedelta | np.timedelta64:
    return np.timedelta64(int(v), w.store.unit)


def arguments(case: dict[str, Any], w: wstore.Windows) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if case.get("embargo") is not None:
        out["embargo"] = duration(case["embargo"], w)
    if case.get("embargo_times") is not None:
        out["embargo"] = int(case["embargo_times"])
    reach = case.get("reach")
    if reach is not None:
        out["reach"] = int(reach["rows"]) if "rows" in reach else duration(reach["duration"], w)
    return out


def anchors(w: wstore.Windows) -> list[list[int]]:
    code, _, row = w.locate(range(len(w)))
    return [row[code == t].tolist() for t in range(len(w.store.tickers))]


@EACH
def test_windows_and_orders(file: dict[str, Any], case: dict[str, Any]) -> None:
    w = ask(file, case["query"])
    assert len(w) == int(case["windows"])
    assert w.fingerprint == case["fingerprint"]
    for o in case["orders"]:
        more = {"group_bytes": number(o.get("group_bytes"))} if o["order"] == "blocked" else {}
        name = {"by_time-exact": "by_time"}.get(o["order"], o["order"])
        assert w.order_fingerprint(name, seed=int(o["seed"]), **more) == o["fingerprint"], o


@EACH
def test_splits(file: dict[str, Any], case: dict[str, Any]) -> None:
    w = ask(file, case["query"])
    for s in case["splits"]:
        ranges = {
            k: [tuple(number(t) for t in r) for r in s[k]] if s.get(k) else None for k in ("train", "valid", "test")
        }
        if s.get("error"):
            with pytest.raises(wstore.WstoreError):
                w.split(**ranges, **arguments(s, w))
            continue
        got = w.split(**ranges, **arguments(s, w))
        assert {k: anchors(getattr(got, k)) for k in ranges} == s["anchors"], s


@EACH
def test_walks(file: dict[str, Any], case: dict[str, Any]) -> None:
    w = ask(file, case["query"])
    for c in case["walks"]:
        lengths = {k: number(c[k]) for k in ("every", "train", "valid") if c.get(k) is not None}
        start = {} if c.get("start") is None else {"start": number(c["start"])}
        folds = w.walk_forward(**lengths, **start, **arguments(c, w))
        assert len(folds) == len(c["folds"]), c
        for got, want in zip(folds, c["folds"], strict=True):
            for k in ("train", "valid", "test"):
                r = getattr(got, f"{k}_range")
                have = None if r is None else [None if t is None else int(t.astype(np.int64)) for t in r]
                assert have == (None if want[k] is None else [number(t) for t in want[k]]), (c, k)
            assert {k: anchors(getattr(got, k)) for k in ("train", "valid", "test")} == want["anchors"]
