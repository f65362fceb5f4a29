"""This reader and the Go reader, side by side: tools/differ is the other half.

Whatever is asked, of files that are valid, damaged or made up, both must give the same: codes of errors when opening
and verifying, which queries are refused, and of the others the windows' places and the bits of all their cells.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import wstore
from wstore import orders
from wstore._batches import ByTime

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "spec" / "vectors"
if not VECTORS.exists():
    pytest.skip("the Go reader is in the repository, not in the package", allow_module_level=True)

Json = dict[str, Any]
REFUSED = (wstore.ArgumentError, wstore.NotFoundError)
# Times beyond these are not asked for: Go's clock ends some way before an int64 of seconds does.
FAR_SECONDS, FAR = 1 << 40, (1 << 63) - (1 << 20)
GATHERED = 256
# What is made of windows; the rest of a query says which.
MADE = ("splits", "walks", "batches", "by_time", "statistics")


# The other side


@pytest.fixture(scope="session")
def corpus(differ: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus")
    subprocess.run([differ, "-root", ROOT, "corpus", path], check=True)
    return path


def ask(differ: Path, questions: Iterable[Json]) -> Iterator[Any]:
    text = "\n".join(json.dumps(q) for q in questions)
    done = subprocess.run([differ, "answer"], input=text, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{done.stderr}after {done.stdout.count(chr(10))} answers")
    return map(json.loads, done.stdout.splitlines())


# What is asked


def questions_of(store: wstore.Store, r: Random, sound: bool) -> list[Json]:
    """Queries that suit a store, and such as must be refused. Only of a sound store by time."""
    schema = store.schema
    groups = [g.name for g in schema.groups if g.dtype == "float32"]
    columns = [c.name for c in schema.columns if c.role != "label_end"]
    ends = [c.name for c in schema.columns if c.role == "label_end"]
    breaks = [b.name for b in schema.breaks]
    if not groups:
        return [{"lookback": 1}, {"lookback": 1, "inputs": ends[:1]}]
    first, last, some = columns[:1], columns[-1:], r.sample(columns[:40], min(len(columns), 3))
    out: list[Json] = [
        {"lookback": 2},
        {"lookback": 1, "inputs": groups[:1], "targets": []},
        {"lookback": 4, "inputs": first, "targets": last},
        {"lookback": 3, "inputs": first, "targets": last, "horizons": [-2, 1, 2], "target_length": 2, "stride": 2},
        {"lookback": 2, "inputs": some, "targets": last, "horizons": [0], "optional": [some[0], *last], "breaks": []},
        {"lookback": 5, "inputs": groups[:1], "targets": some, "horizons": [-4, 0, 3], "stride": 3},
        {"lookback": 2, "inputs": columns[:20], "targets": groups[:1], "horizons": [1, 2, 3], "optional": groups[:1]},
        {"lookback": 2, "inputs": last, "targets": [], "where": some, "breaks": breaks[:1]},
        {"lookback": 1, "inputs": some, "tickers": list(r.sample(store.tickers, len(store.tickers) // 2))},
        {"lookback": 1 << 20, "inputs": first},
    ]
    for q in out[2:6] if sound else ():
        _extend(q, store, r)
    if sound and (times := _times(store)):
        lo, hi = sorted(r.choices(times, k=2))
        at = [*r.sample(times, (len(times) + 1) // 2), lo + 1, hi - 1]
        timed: list[Json] = [
            {"lookback": 2, "inputs": first, "targets": last, "stride": 2, "from": lo, "to": hi},
            {"lookback": 1, "inputs": some, "targets": [], "from": lo + 1},
            {"lookback": 1, "inputs": some, "to": hi + 1, "where": last},
            {"lookback": 2, "inputs": some, "targets": first, "horizons": [-1, 1], "at": at, "optional": first},
            {"lookback": 1, "inputs": last, "targets": [], "at": [], "from": lo},
            {"lookback": 1, "inputs": first, "stride": 1, "at": [0, hi]},
        ]
        for q in (timed[0], timed[3]):
            _extend(q, store, r)
        out += timed
        unit = 10**9 // _per_second(store)
        if abs(lo) < 8 * _per_second(store) * 10**9:
            exact, between = (str(np.datetime64(lo * unit + ns, "ns")) for ns in (0, unit // 2))
            out.append({"lookback": 1, "inputs": some, "from": between, "at": [*at, exact, between]})
            out.append({"lookback": 1, "inputs": some, "from": exact, "to": between})
    out += [
        {"lookback": 0, "inputs": first},
        {"lookback": -1, "inputs": first},
        {"lookback": 1 << 31, "inputs": first},
        {"lookback": 1, "inputs": first, "stride": -1},
        {"lookback": 1, "inputs": first, "stride": 1 << 31},
        {"lookback": 1, "inputs": []},
        {"lookback": 1, "inputs": ["no such column"]},
        {"lookback": 1, "inputs": first, "targets": ["no such column"]},
        {"lookback": 1, "inputs": [*first, *first]},
        {"lookback": 1, "inputs": [groups[0], schema.columns[_group(store, groups[0]).first].name]},
        {"lookback": 1, "inputs": first, "targets": [*last, *last]},
        {"lookback": 2, "inputs": first, "targets": last, "horizons": [-2]},
        {"lookback": 2, "inputs": first, "targets": last, "horizons": [1, 1]},
        {"lookback": 2, "inputs": first, "targets": last, "horizons": [2, 1]},
        {"lookback": 2, "inputs": first, "targets": last, "horizons": []},
        {"lookback": 2, "inputs": first, "targets": last, "horizons": [1 << 31]},
        {"lookback": 2, "inputs": first, "targets": last, "horizons": list(range(4097))},
        {"lookback": 2, "inputs": first, "targets": last, "target_length": -1},
        {"lookback": 2, "inputs": first, "targets": last, "target_length": 1 << 31},
        {"lookback": 2, "inputs": first, "targets": [], "horizons": [1]},
        {"lookback": 2, "inputs": first, "targets": [], "horizons": []},
        {"lookback": 2, "inputs": first, "targets": [], "target_length": 1},
        {"lookback": 1, "inputs": first, "targets": [], "optional": last},
        {"lookback": 1, "inputs": first, "optional": ["no such column"]},
        {"lookback": 1, "inputs": first, "optional": [*first, *first]},
        {"lookback": 1, "inputs": first, "where": ["no such column"]},
        {"lookback": 1, "inputs": first, "where": [*groups, *last]},
        {"lookback": 1, "inputs": first, "breaks": ["no such set"]},
        {"lookback": 1, "inputs": first, "breaks": [*breaks, *breaks]},
        {"lookback": 1, "inputs": first, "tickers": ["no such ticker"]},
        {"lookback": 1, "inputs": first, "tickers": [*store.tickers[:2], *store.tickers[:2]]},
        {"lookback": 1, "inputs": first, "stride": 2, "at": [0]},
        {"lookback": 1, "inputs": ends or ["no such column"]},
        {"lookback": 1, "inputs": first, "targets": ends},
        {"lookback": 1, "inputs": first, "where": ends},
        {"lookback": 1, "inputs": first, "optional": ends},
    ]
    return out


def _group(store: wstore.Store, name: str) -> wstore.Group:
    return next(g for g in store.schema.groups if g.name == name)


def _per_second(store: wstore.Store) -> int:
    return {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[store.unit]


def _times(store: wstore.Store) -> list[int]:
    most = min(FAR, FAR_SECONDS * _per_second(store))
    return [t for t in store.calendar().view(np.int64).tolist() if abs(t) < most]


def _extend(q: Json, store: wstore.Store, r: Random) -> None:
    """Asks for splits and so on too."""
    times = _times(store) or [0]
    a, b, c, d = sorted(r.choices(times, k=4))
    margin = r.choice([{}, {"count": 1}, {"count": 4}, {"seconds": 1}, {"seconds": 86400}])
    reach = r.choice([None, {}, {"count": 2}, {"seconds": 86400}, {"count": 100}])
    q["splits"] = [
        {"train": [[None, b]], "valid": [[b, c]], "test": [[c, None]], "embargo": margin, "reach": reach},
        {"train": [[None, a], [d + 1, None]], "test": [[a, b], [c, d]], "embargo": margin, "reach": reach},
        {"train": [[b, None]], "valid": [[None, a]], "test": [[a, a + 1], [a + 1, b]], "reach": {"count": 0}},
        {"train": [[a, c]], "test": [[b, d]], "reach": {}},
        {"train": [[b, a]], "reach": {}},
        {"train": [[None, None]], "test": [[a, b]], "reach": {}},
        {"test": [[None, None]]},
    ]
    few = len(times) // 20
    q["walks"] = [
        {"every": f"{few + 3}", "train": "5", "valid": "2", "embargo": margin, "reach": reach},
        {"every": f"{few + 4}", "start": b, "embargo": margin, "reach": reach},
        {"every": f"{few + 2}", "train": "1", "start": c + 1, "reach": {"count": 1}},
    ]
    if times[-1] - times[0] > 86400 * _per_second(store):
        q["walks"] += [
            {"every": "1mo", "train": "2mo", "valid": "1w", "embargo": margin, "reach": reach},
            {"every": "5d", "start": b, "reach": {"count": 1}},
            {"every": "36h", "start": b, "train": "1y", "valid": "12h", "reach": {"count": 1}},
            {"every": "1mo", "start": a, "valid": "1mo", "reach": {}},
        ]
    q["batches"] = [
        {"order": "exact", "seed": r.randint(-9, 9), "epoch": 1, "batch": 7, "tail": "keep"},
        {"order": "blocked", "seed": 5, "batch": 3, "group_bytes": 1 << 16, "world": 2, "rank": 1, "tail": "pad"},
        {"order": "sequential", "batch": 4, "world": 3, "rank": 2, "tail": "drop"},
    ]
    q["by_time"] = q["statistics"] = True


# This side


def code(f: Callable[[], Any]) -> str:
    try:
        f()
    except wstore.FileError as e:
        return e.code
    return ""


def windows(store: wstore.Store, q: Json) -> wstore.Windows:
    given = {k: v for k, v in q.items() if v is not None and k not in MADE}
    for key, name in (("horizons", "horizon"), ("from", "from_")):
        if key in given:
            given[name] = given.pop(key)
    for key in ("target_length", "stride"):
        if given.get(key) == 0:
            del given[key]
    return store.windows(given.pop("lookback"), **given)


def records(w: wstore.Windows, cells: bool = True) -> Iterator[bytes]:
    """A window after another: ticker, anchor row, anchor time, x and y."""
    for i in range(0, len(w), GATHERED):
        ids = range(i, min(len(w), i + GATHERED))
        code, time, row = w.locate(ids)
        parts = [np.stack([code, row, time.view(np.int64)], 1).astype("<i8")]
        if cells:
            x, y = w.gather(ids)
            parts += [np.ascontiguousarray(a).reshape(len(ids), -1) for a in (x, y) if a is not None]
        yield np.concatenate([p.view(np.uint8) for p in parts], 1).tobytes()


def digest(pieces: Iterable[bytes]) -> str:
    h = hashlib.sha256()
    for b in pieces:
        h.update(b)
    return h.hexdigest()


def ints(*values: int) -> bytes:
    return np.array(values, "<i8").tobytes()


def margin(m: Json | None) -> Any:
    if m is None or "seconds" not in m:
        return None if m is None else m.get("count", 0)
    return dt.timedelta(seconds=m["seconds"])


def parts(*of: wstore.Windows) -> list[Any]:
    return [[len(w), digest(records(w, cells=False)), w.fingerprint] for w in of]


def split(w: wstore.Windows, s: Json) -> Any:
    ranges = {k: [tuple(r) for r in s[k]] for k in ("train", "valid", "test") if k in s}
    try:
        return parts(*w.split(**ranges, embargo=margin(s.get("embargo", {})), reach=margin(s.get("reach"))))
    except wstore.ArgumentError as e:
        return f"refused: {e}"


def walk(w: wstore.Windows, s: Json) -> Any:
    def length(text: str | None) -> int | str | None:
        return int(text) if text is not None and text.isdigit() else text

    try:
        folds = w.walk_forward(
            every=length(s["every"]),
            train=length(s.get("train")),
            valid=length(s.get("valid")),
            start=s.get("start"),
            embargo=margin(s.get("embargo", {})),
            reach=margin(s.get("reach")),
        )
    except wstore.ArgumentError as e:
        return f"refused: {e}"
    out = []
    for f in folds:
        ends = [*f.train_range, *(f.valid_range or (None, None)), *f.test_range]
        ranges = [None if t is None else int(t.astype(np.int64)) for t in ends]
        out.append([ranges, parts(f.train, f.valid, f.test)])
    return out


def batches(w: wstore.Windows, s: Json) -> Any:
    size = {"group_bytes": s["group_bytes"]} if "group_bytes" in s else {}
    fields = ("id", "x", "y") if w.targets else ("id", "x")
    of = w.batches(
        s["batch"],
        order=s["order"],
        seed=s.get("seed", 0),
        epoch=s.get("epoch", 0),
        rank=s.get("rank", 0),
        world=s.get("world", 1),
        tail=s["tail"],
        fields=fields,
        prefetch=0,
        **size,
    )
    o = of.order
    chunk = [o.chunk, o.chunks_per_group] if isinstance(o, orders.Blocked) else [0, 0]
    pieces = (
        ints(len(b.id), b.valid, b.next, *b.id.tolist()) + b"".join(b[f].tobytes() for f in fields[1:]) for b in of
    )
    return [of.fingerprint, *chunk, len(of), digest(pieces)]


def by_time(w: wstore.Windows) -> str:
    by = ByTime(w)
    pieces = [bytes.fromhex(w.order_fingerprint("by_time", seed=7))]
    for k, t in enumerate(by.times.view(np.int64).tolist()):
        ids = by[k].tolist()
        pieces.append(ints(t, len(ids), *ids))
    return digest(pieces)


def same_statistics(w: wstore.Windows, theirs: list[list[list[Any]] | None]) -> bool:
    """Sums may be rounded in another order."""
    s = w.statistics()
    for m, other in zip((s.inputs, s.targets), theirs, strict=True):
        if m is None:
            if other:
                return False
            continue
        if len(m.columns) != len(other or []):
            return False
        for i, (n, mean, m2, low, high) in enumerate(other or []):
            if m.count[i] != n:
                return False
            if not n:
                continue
            scale = max(abs(low), abs(high))
            if (m.min[i], m.max[i]) != (low, high) or abs(m.mean[i] - mean) > 1e-12 * scale:
                return False
            if abs(m.m2[i] - m2) > 1e-9 * m2 + 1e-12 * n * scale * scale:
                return False
    return True


# The comparison


def first_window(differ: Path, path: Path, w: wstore.Windows, q: Json) -> str:
    """Says where the windows begin to differ."""
    (theirs,) = ask(differ, [{"file": str(path), "queries": [{**q, "full": True}]}])
    theirs = bytes.fromhex(theirs["queries"][0]["full"])
    ours = b"".join(records(w))
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    size = 24 + 4 * sum(int(np.prod(s)) for s in w.shapes if s is not None)
    if at >= min(len(ours), len(theirs)):
        return f"after {at // size} equal windows one side ends"
    at, inside = divmod(at, size)
    what = ("ticker", "anchor row", "anchor time")[inside // 8] if inside < 24 else f"cell {(inside - 24) // 4}"
    width = 8 if inside < 24 else 4
    place = at * size + inside // width * width
    return f"window {at}, {what}: {ours[place:][:width].hex()}, Go {theirs[place:][:width].hex()} (little-endian)"


def differences(differ: Path, path: Path, store: wstore.Store, q: Json, theirs: Json) -> Iterator[str]:
    try:
        w = windows(store, q)
    except REFUSED as e:
        if not theirs["refused"]:
            yield f"refused only by Python: {e}"
        return
    if theirs["refused"]:
        yield f"refused only by Go: {theirs['refused']}"
        return
    if len(w) != theirs["windows"] or digest(records(w)) != theirs["digest"]:
        yield f"{len(w)} windows, Go has {theirs['windows']}: {first_window(differ, path, w, q)}"
        return
    if w.fingerprint != theirs["fingerprint"]:
        yield "the fingerprints of the windows"
    for what, f in (("splits", split), ("walks", walk), ("batches", batches)):
        for s, other in zip(q.get(what) or (), theirs[what] or (), strict=True):
            ours = f(w, s)
            refused = isinstance(ours, str) and isinstance(other, str)  # each in its own words
            if ours != other and not refused:
                yield f"{what} {json.dumps(s)}:\n    {ours}\n  Go:\n    {other}"
    if q.get("by_time") and by_time(w) != theirs["by_time"]:
        yield "the windows by time"
    if q.get("statistics") and not same_statistics(w, theirs["statistics"]):
        yield f"statistics: {w.statistics()}\n  Go:\n    {theirs['statistics']}"


def labels(store: wstore.Store) -> list[Json]:
    """Categories by column, and of each attribute its kind and values: as the other side has them."""
    attributes = {}
    for name, of in store.attributes.items():
        if of.dtype == object:
            attributes[name] = ["text", *of.tolist()]
        else:
            bits = [f"{v:016x}" for v in of.view(np.uint64).tolist()]
            attributes[name] = ["number", *(None if np.isnan(v) else b for v, b in zip(of, bits, strict=True))]
    categories = {c: texts for c in store.columns if (texts := store.categories(c)) is not None}
    return [categories, attributes]


def compare(differ: Path, paths: list[Path]) -> int:
    """Asks both about all files, and fails with the first few differences. Returns how many windows were compared."""
    assert paths
    ours: list[tuple[Path, str, str, wstore.Store | None, list[Json]]] = []
    for path in paths:
        try:
            opened = wstore.open(path)
        except wstore.FileError as e:
            ours.append((path, e.code, "", None, []))
            continue
        verified = code(opened.verify)
        asked = questions_of(opened, Random(path.name), not verified)
        drawn = path.with_suffix(".json")
        if path.parent != VECTORS and drawn.exists():
            more = json.loads(drawn.read_text())
            for q in more[:2]:
                _extend(q, opened, Random(path.name))
            asked += more
        ours.append((path, "", verified, opened, asked))
    answers = ask(differ, ({"file": str(path), "queries": asked} for path, *_, asked in ours))
    found: list[str] = []
    compared = 0
    for (path, refused, verified, store, asked), theirs in zip(ours, answers, strict=True):
        if (refused, verified) != (theirs["open"], theirs["verify"]):
            go = theirs["open"], theirs["verify"]
            found.append(f"{path.name}: open {refused!r}, verify {verified!r}; Go: {go}")
        elif store is not None:
            if labels(store) != [theirs["categories"], theirs["attributes"]]:
                found.append(f"{path.name}: labels {labels(store)}; Go: {theirs['categories']}, {theirs['attributes']}")
            for q, other in zip(asked, theirs["queries"] or (), strict=True):
                compared += other["windows"]
                plain = {k: v for k, v in q.items() if k not in MADE}
                for d in itertools.islice(differences(differ, path, store, q, other), 3):
                    found.append(f"{path.name}: {json.dumps(plain)}:\n  {d}")
        if store is not None:
            store.close()
    if found:
        pytest.fail(f"{len(found)} differences between the readers\n" + "\n".join(found[:10]), pytrace=False)
    return compared


def test_vectors(differ: Path) -> None:
    assert compare(differ, sorted(VECTORS.glob("*.wst"))) > 100_000


@pytest.mark.parametrize("kind", ["open", "fixup", "mutation", "damage", "panel"])
def test_corpus(differ: Path, corpus: Path, kind: str) -> None:
    assert compare(differ, sorted(corpus.glob(f"{kind}-*.wst"))) > 10


def test_orders(differ: Path) -> None:
    r = Random(3)
    asked: list[Json] = []
    for n in (0, 1, 2, 3, 10, 257, 1000, 4096, (1 << 40) + 7, (1 << 62) - 1):
        for seed, epoch in ((0, 0), (-1, 3), ((1 << 63) - 1, 1 << 40)):
            at = list(range(n)) if n <= 5000 else [0, n - 1, *(r.randrange(n) for _ in range(200))]
            asked.append({"order": "exact", "n": n, "seed": seed, "epoch": epoch, "at": at})
            for w, k in ((1, 1), (7, 3), (64, 1000), (1 << 20, 5)):
                asked.append({"order": "blocked", "n": n, "seed": seed, "epoch": epoch, "w": w, "k": k, "at": at})
    (answers,) = ask(differ, [{"orders": asked}])
    for q, theirs in zip(asked, answers, strict=True):
        order: orders.Order
        if q["order"] == "exact":
            order = orders.Exact(q["n"], q["seed"], q["epoch"])
        else:
            order = orders.Blocked(q["n"], q["seed"], q["epoch"], chunk=q["w"], chunks_per_group=q["k"])
        ours = hashlib.sha256(order[np.array(q["at"], np.int64)].astype("<i8").tobytes()).hexdigest()
        assert ours == theirs, {k: v for k, v in q.items() if k != "at"}
