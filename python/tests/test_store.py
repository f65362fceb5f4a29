"""The store: opening, looking, closing, pickling, and what becomes of it when the file changes."""

from __future__ import annotations

import gc
import mmap
import multiprocessing
import os
import pickle
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from encode import Col, Group, Panel, Patch, Ticker, encode
from panels import small

import wstore

GOOD = encode(small())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    p = tmp_path / "small.wst"
    p.write_bytes(GOOD)
    return p


@pytest.mark.parametrize("access", ["map", "load"])
def test_what_is_in_it(path: Path, access: wstore._store.Access) -> None:
    store = wstore.open(path, access=access, verify=True)
    assert store.path == str(path)
    assert store.tickers == ("AAPL", "BRK.B", "NA", "株式")
    assert store.columns == ("a", "b", "m", "ret", "end")
    assert dict(store.groups) == {"features": ("a", "b"), "masks": ("m",), "targets": ("ret",), "ends": ("end",)}
    assert store.rows.tolist() == [8, 3, 0, 5]
    assert (store.unit, store.zone) == ("s", "America/New_York")
    assert len(bytes.fromhex(store.digest)) == 32
    assert list(store.breaks) == ["gap", "session"]
    assert store.breaks["session"].source == "day"
    assert store.schema.columns[3].reach == 2
    assert store.provenance == {"source": "test"}

    assert store.times("AAPL").dtype == "M8[s]"
    assert store.times("株式").view(np.int64).tolist() == [2, 3, 10, 11, 12]
    assert store.times("NA").size == 0
    assert np.array_equal(store.series("AAPL", "a"), [0, 1, np.nan, 3, 4, 5, 6, 7], equal_nan=True)
    assert store.series(1, "features").tolist() == [[0, 10.5], [1, 11.5], [2, 12.5]]
    assert store.series("NA", "features").shape == (0, 2)
    assert store.series("BRK.B", "end").view(np.int64).tolist() == [4, -(1 << 63), 6]
    assert np.isnat(store.series("BRK.B", "ends")[1, 0])
    assert store.calendar(0).size == store.calendar("AAPL").size == store.calendar().size == 8
    assert store.calendar("NA").size == 0
    for a in (store.times(0), store.series(0, "a"), store.series(0, "ends"), store.rows, store.calendar(0)):
        assert not a.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            a[0] = a[1]
    for a in (store.times(0), store.series(0, "a"), store.series(0, "end"), store.calendar(0)):
        assert np.shares_memory(a, store._use().data)
    with pytest.raises(wstore.NotFoundError, match="calendar"):
        store.calendar(1)
    with pytest.raises(wstore.NotFoundError):
        store.series("AAPL", "nope")
    for ticker in (4, -1, True, None):
        with pytest.raises(wstore.NotFoundError):
            store.times(ticker)  # type: ignore[arg-type]


def test_several_calendars() -> None:
    t = {n: Ticker(times, {"x": [1.0] * len(times)}) for n, times in {"A": [1, 3], "B": [2, 3], "C": [3]}.items()}
    store = wstore.open_bytes(encode(Panel([Group("g", [Col("x")])], t)))
    assert store.calendar().view(np.int64).tolist() == [1, 2, 3]
    assert store.calendar("C").view(np.int64).tolist() == [1, 3]
    assert store.calendar("B").view(np.int64).tolist() == [2, 3]


def test_nothing_in_it() -> None:
    for tickers in ({}, {"A": Ticker([], {"x": []})}):
        store = wstore.open_bytes(encode(Panel([Group("features", [Col("x")])], tickers)), verify=True)
        assert store.calendar().size == 0
        assert f"tickers {len(tickers)}" in repr(store)
        for options in ({}, {"at": [1]}, {"from_": 1, "to": 2}, {"where": "x"}):
            w = store.windows(3, **options)
            assert len(w) == len(list(w)) == 0
            assert w.gather([])[0].shape == (0, 3, 1)
            assert w.find([0] * len(tickers), [1] * len(tickers)).tolist() == [-1] * len(tickers)
            assert w.frame()["ticker"].size == 0


def test_repr(path: Path) -> None:
    store = wstore.open(path)
    text = repr(store)
    for part in (
        "small.wst",
        "tickers 4",
        "rows 16",
        "features (a, b)",
        "1970-01-01T00:00:13",
        "America/New_York",
        "gap",
    ):
        assert part in text
    assert "small.wst" in store._repr_html_()
    assert "<th>" in store._repr_html_()
    store.close()
    assert "closed" in repr(store)
    p = small()
    p.groups[0].name = "<script>"
    assert "<script>" not in wstore.open_bytes(encode(p))._repr_html_()


def test_closing_keeps_arrays_and_refuses_the_rest(path: Path) -> None:
    with wstore.open(path) as store:
        a, (x, _) = store.series("AAPL", "b"), store.windows(2, inputs="b")[0]
        w = store.windows(2, inputs="b")
        assert not store.closed
    assert store.closed
    assert a[0] == 10.5
    assert x[1, 0] == 11.5
    store.close()
    for call in (
        lambda: store.series("AAPL", "a"),
        lambda: store.times("AAPL"),
        lambda: store.calendar(),
        lambda: store.windows(2),
        lambda: store.verify(),
        lambda: store.provenance,
        lambda: store.__enter__(),
        lambda: w[0],
        lambda: w.gather([0]),
        lambda: w.locate([0]),
        lambda: w.find("AAPL", 0),
        lambda: w.frame([0]),
        lambda: w.between(0),
        lambda: pickle.dumps(store),
    ):
        with pytest.raises(wstore.ClosedError):
            call()
    assert store.tickers[0] == "AAPL"


def test_the_mapping_goes_with_the_last_array(path: Path) -> None:
    store = wstore.open(path)
    assert store._arrays is not None
    kept = store.series("AAPL", "a")
    mapped = weakref.ref(store._arrays.data.base if isinstance(store._arrays.data.base, mmap.mmap) else kept)
    w = store.windows(2)
    gone = weakref.ref(store), weakref.ref(w)
    gc.disable()  # reference counts alone must do
    try:
        del store, w
        assert [g() for g in gone] == [None, None]
        assert mapped() is not None
        assert kept[0] == 0
    finally:
        gc.enable()


def test_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        wstore.open(tmp_path / "nope.wst")
    with pytest.raises(IsADirectoryError):
        wstore.open(tmp_path)
    empty = tmp_path / "empty.wst"
    empty.touch()
    with pytest.raises(wstore.CorruptError, match="not a wstore file") as e:
        wstore.open(empty)
    assert (e.value.code, e.value.path, e.value.offset) == ("not_wstore", str(empty), 0)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(wstore.CorruptError, match="not a regular file"):
            wstore.open(tmp_path / "pipe")
    with pytest.raises(wstore.ArgumentError, match="'map' or 'load'"):
        wstore.open(empty, access="read")  # type: ignore[arg-type]


def test_errors_pickle() -> None:
    with pytest.raises(wstore.CorruptError) as e:
        wstore.open_bytes(b"")
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.code, again.section) == (str(e.value), "not_wstore", "slot 0")
    missing = pickle.loads(pickle.dumps(wstore.NotFoundError("ticker", "A", ["AA"])))
    assert str(missing) == "no ticker 'A'; did you mean 'AA'? (known: 'AA')"


def test_bytes_need_not_be_aligned() -> None:
    shifted = memoryview(b"?" + GOOD)[1:]
    store = wstore.open_bytes(shifted, verify=True)
    assert store.series("AAPL", "b")[0] == 10.5
    assert not store.stale()
    array = bytearray(GOOD)
    with pytest.raises(ValueError, match="read-only"):
        wstore.open_bytes(array).series("AAPL", "b")[0] = 1
    with pytest.raises(TypeError, match="open_bytes"):
        pickle.dumps(store)


def test_stale(path: Path) -> None:
    store = wstore.open(path)
    assert not store.stale()
    other = path.with_suffix(".new")
    other.write_bytes(GOOD)
    other.replace(path)
    assert store.stale()
    assert store.series("AAPL", "b")[0] == 10.5
    store = wstore.open(path)
    path.unlink()
    assert store.stale()
    store.verify()


@pytest.mark.skipif(os.name == "nt", reason="an open file can't be cut")
def test_a_file_that_is_cut_while_open(path: Path) -> None:
    mapped, loaded = wstore.open(path), wstore.open(path, access="load")
    w, v = mapped.windows(2), loaded.windows(2)
    os.truncate(path, 4096)
    for call in (lambda: w.gather([0]), mapped.verify):
        with pytest.raises(wstore.CorruptError, match="cut while it was open") as e:
            call()
        assert e.value.code == "truncated"
    v.gather([0])
    loaded.verify()


def test_pickled_stores_are_opened_once(path: Path) -> None:
    store = wstore.open(path, access="load")
    raw = pickle.dumps(store)
    assert len(raw) < 2048
    a, b = pickle.loads(raw), pickle.loads(raw)
    assert a is b
    assert a._access == "load"
    assert a is not store
    a.close()
    assert not pickle.loads(raw).closed
    del a, b
    gc.collect()
    assert not wstore._store._REOPENED or all(s is not None for s in wstore._store._REOPENED.values())


def test_a_pickled_store_refuses_another_file(path: Path) -> None:
    store = wstore.open(path)
    raw = pickle.dumps(store.windows(2))
    same = pickle.loads(raw)
    changed = small()
    changed.tickers["BRK.B"].values["b"][0] = 0.0
    other = path.with_suffix(".new")
    other.write_bytes(encode(changed))
    other.replace(path)
    with pytest.raises(wstore.StaleError, match="not the one that was pickled"):
        pickle.loads(raw)
    # The same content in another file will do.
    other.write_bytes(GOOD)
    other.replace(path)
    assert len(pickle.loads(raw)) == len(same)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(raw)


def _total(w: wstore.Windows) -> float:
    return float(sum(x.sum() for x, _ in w) + w.gather(range(len(w)))[0].sum())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes(path: Path, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    w = wstore.open(path).windows(2, inputs="b")
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_total, [w] * 4) == [_total(w)] * 4


def test_threads(path: Path) -> None:
    w = wstore.open(path).windows(2, inputs=["b", "a"], optional="a")
    want = [w[i][0].tobytes() for i in range(len(w))]
    wrong: list[int] = []

    def look() -> None:
        for _ in range(200):
            got = w.gather(range(len(w)))[0]
            wrong.extend(i for i in range(len(w)) if w[i][0].tobytes() != want[i] or got[i].tobytes() != want[i])

    threads = [threading.Thread(target=look) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_provenance_that_is_no_json_is_none() -> None:
    p = small()
    p.prov = b"[" * 100_000
    assert wstore.open_bytes(encode(p), verify=True).provenance is None
    p.prov = None
    assert wstore.open_bytes(encode(p), verify=True).provenance is None
    damaged = Patch(GOOD)
    damaged.in_section("PROV", 0, b"?")
    store = wstore.open_bytes(damaged.seal(sums=False))
    with pytest.raises(wstore.CorruptError) as e:
        _ = store.provenance
    assert (e.value.code, e.value.section) == ("section_checksum", "PROV")
