"""The conformance vectors of the specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wstore

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
if not VECTORS.exists():
    pytest.skip("the vectors are in the repository, not in the package", allow_module_level=True)
MANIFEST = json.loads((VECTORS / "manifest.json").read_text())["vectors"]


def pick(stage: str | None) -> pytest.MarkDecorator:
    chosen = [v for v in MANIFEST if v["stage"] == stage]
    return pytest.mark.parametrize("vector", chosen, ids=[v["name"] for v in chosen])


ACCESS = pytest.mark.parametrize("access", ["map", "load"])


def bits(a: np.ndarray | None) -> str:
    assert a is not None
    return np.ascontiguousarray(a).astype(">f4").tobytes().hex()


def test_every_stage_is_known() -> None:
    assert {v["stage"] for v in MANIFEST} == {None, "open", "verify"}


@ACCESS
@pick("open")
def test_refused_when_opened(vector: dict[str, Any], access: Any) -> None:
    with pytest.raises(wstore.FileError) as e:
        wstore.open(VECTORS / vector["file"], access=access)
    assert e.value.code == vector["code"], vector["note"]
    assert isinstance(e.value, wstore.UnsupportedError) == (vector["code"] == "unsupported")


@ACCESS
@pick("verify")
def test_refused_when_verified(vector: dict[str, Any], access: Any) -> None:
    store = wstore.open(VECTORS / vector["file"], access=access)
    with pytest.raises(wstore.CorruptError) as e:
        store.verify()
    assert e.value.code == vector["code"], vector["note"]


@ACCESS
@pick(None)
def test_content(vector: dict[str, Any], access: Any) -> None:
    store = wstore.open(VECTORS / vector["file"], access=access, verify=True)
    want = json.loads((VECTORS / vector["decoded"]).read_text())
    layout, schema = store._layout, store.schema

    slot = layout.slot
    assert {k: str(getattr(slot, k)) for k in ("compat", "ro_compat", "incompat")} == {
        k: want[k] for k in ("compat", "ro_compat", "incompat")
    }
    assert slot.align == want["align"]
    assert [(e.tag.decode(), e.flags, str(e.key), e.length) for e in layout.entries] == [
        (s["tag"], s["flags"], s["key"], s["bytes"]) for s in want["sections"]
    ]
    assert store.digest == want["digest"]
    assert (store.unit, store.zone) == (want["time_unit"], want["zone"])
    prov = [e for e in layout.entries if e.tag == b"PROV"]
    raw = store._use().data[prov[0].offset :][: prov[0].length].tobytes().hex() if prov else None
    assert raw == want["provenance"]
    assert store.provenance is None or isinstance(store.provenance, dict | list | str | int | float)

    kinds = {"column": "label_end"}
    assert list(store.groups) == [g["name"] for g in want["groups"]]
    for got, g in zip(schema.groups, want["groups"], strict=True):
        assert got.dtype == g["dtype"]
        columns = schema.columns[got.first : got.first + len(got.columns)]
        for c, wanted in zip(columns, g["columns"], strict=True):
            assert (c.name, c.role, str(c.reach)) == (wanted["name"], wanted["role"], wanted["reach"])
            assert c.reach_kind == kinds.get(wanted["reach_kind"], wanted["reach_kind"])
    assert [(b.name, b.kind, str(b.max_gap), b.source) for b in schema.breaks] == [
        (b["name"], b["kind"], b["max_gap"], b["source"]) for b in want["break_sets"]
    ]

    assert [[str(t) for t in store.calendar(c).view(np.int64)] for c in range(len(want["calendars"]))] == want[
        "calendars"
    ]
    assert store.tickers == tuple(t["name"] for t in want["tickers"])
    categories = {schema.columns[c["column"]].name: c["texts"] for c in want.get("categories", ())}
    assert {c: store.categories(c) for c in store.columns} == {c: categories.get(c) for c in store.columns}
    assert list(store.attributes) == [a["name"] for a in want.get("attributes", ())]
    for a in want.get("attributes", ()):
        of = store.attributes[a["name"]]
        values = of.tolist() if a["kind"] == "text" else [f"{v:016x}" for v in of.view(np.uint64).tolist()]
        assert values == a["values"]
    for t, ticker in enumerate(want["tickers"]):
        assert store.rows[t] == ticker["rows"]
        assert (layout.calendar[t], layout.first[t]) == (ticker["calendar"], ticker["first"])
        times = want["calendars"][ticker["calendar"]][ticker["first"] :][: ticker["rows"]] if ticker["rows"] else []
        assert [str(x) for x in store.times(ticker["name"]).view(np.int64)] == times
        for g, group in enumerate(schema.groups):
            values, cells = store.series(t, group.name), want["cells"][g][t]
            if group.dtype == "int64":
                assert [str(x) for x in values.ravel().view(np.int64)] == cells
            else:
                assert bits(values) == cells
                for k, name in enumerate(group.columns):
                    assert bits(store.series(t, name)) == bits(values[:, k])


@pick(None)
def test_index(vector: dict[str, Any]) -> None:
    from wstore._verify import _Verifier

    store = wstore.open(VECTORS / vector["file"])
    want = json.loads((VECTORS / vector["decoded"]).read_text())
    index = _Verifier(store.path, store._layout, store._use().data)
    for c, column in enumerate(want["missing"]):
        for t, runs in enumerate(column):
            assert np.array(index.missing(c, t)).T.tolist() == runs
    for b, rule in enumerate(want["breaks"]):
        for t, rows in enumerate(rule):
            assert index.breaks(b, t).tolist() == rows


@pick(None)
def test_queries(vector: dict[str, Any]) -> None:
    store = wstore.open(VECTORS / vector["file"])
    want = json.loads((VECTORS / vector["decoded"]).read_text())
    for q in want["queries"]:
        query = dict(q["query"])
        if "horizons" in query:
            query["horizon"] = query.pop("horizons")
        for key, name in (("from", "from_"), ("to", "to")):
            if key in query:
                query[name] = int(query.pop(key))
        if "at" in query:
            query["at"] = [int(t) for t in query["at"]]
        if q.get("error"):
            with pytest.raises((wstore.ArgumentError, wstore.NotFoundError)):
                store.windows(query.pop("lookback", 0), **query)
            continue
        w = store.windows(**query)
        codes, times, rows = w.locate(range(len(w)))
        first = rows - w.lookback + 1
        got = [list(row) for row in zip(codes, first, rows, map(str, times.view(np.int64)), strict=True)]
        assert got == q["windows"], q["query"]
        assert w.find(codes, times).tolist() == list(range(len(w)))
        for cell in q["cells"]:
            for x, y in (w[cell["window"]], [None if a is None else a[0] for a in w.gather([cell["window"]])]):
                assert bits(x) == cell["x"]
                assert ("" if y is None else bits(y)) == cell["y"]
