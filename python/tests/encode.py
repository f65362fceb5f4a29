"""Builds sealed files from plain panels, straight from the specification: nothing here comes from the reader."""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass, field

import xxhash

MAGIC = bytes.fromhex("8957 5354 0d0a 1a0a".replace(" ", ""))
MISSING = 0x7FC00000
I64_MIN = -(1 << 63)


@dataclass
class Col:
    name: str
    role: int = 0
    reach_kind: int = 0
    reach: int = 0


@dataclass
class Group:
    name: str
    cols: list[Col]
    dtype: int = 1


@dataclass
class Break:
    name: str
    kind: int = 3
    max_gap: int = 0
    source: str = ""


Values = dict[str, list[float | int | None]]


@dataclass
class Ticker:
    """Times, and values by column: a float, or None for missing; ints (or None) in a column of label ends.

    Breaks of kinds 2 and 3 are given by the set's name; those of kind 1 follow from the times.
    """

    times: list[int] = field(default_factory=list)
    values: Values = field(default_factory=dict)
    breaks: dict[str, list[int]] = field(default_factory=dict)


@dataclass
class Panel:
    groups: list[Group]
    tickers: dict[str, Ticker] = field(default_factory=dict)
    breaks: list[Break] = field(default_factory=list)
    unit: int = 0
    zone: str = ""
    align_log2: int = 6
    prov: bytes | None = None
    categories: dict[str, list[str]] = field(default_factory=dict)  # by column
    attributes: dict[str, list[str | float | None]] = field(default_factory=dict)  # a value per ticker, in order

    def names(self) -> list[str]:
        return sorted(self.tickers, key=str.encode)

    def columns(self) -> list[Col]:
        return [c for g in self.groups for c in g.cols]

    def break_rows(self, ticker: str, rule: Break) -> list[int]:
        t = self.tickers[ticker]
        if rule.kind == 1:
            return [r for r in range(1, len(t.times)) if t.times[r] - t.times[r - 1] > rule.max_gap]
        return sorted(t.breaks.get(rule.name, []))


def xxh(b: bytes) -> int:
    return xxhash.xxh64_intdigest(b)


def u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def text(s: str) -> bytes:
    b = s.encode()
    return struct.pack("<H", len(b)) + b


def uvarint(n: int) -> bytes:
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def align(x: int, a: int) -> int:
    return -(-x // a) * a


def chunk_sums(b: bytes) -> list[int]:
    return [xxh(b[i : i + 65536]) for i in range(0, len(b), 65536)]


def schema(p: Panel) -> bytes:
    out = struct.pack("<BBHI", p.unit, 0, 0, len(p.groups)) + text(p.zone)
    for g in p.groups:
        out += text(g.name) + struct.pack("<BBH", g.dtype, 0, len(g.cols))
        for c in g.cols:
            out += text(c.name) + struct.pack("<BBQ", c.role, c.reach_kind, c.reach)
    out += struct.pack("<I", len(p.breaks))
    for b in p.breaks:
        out += text(b.name) + struct.pack("<BQ", b.kind, b.max_gap) + text(b.source)
    return out


def contains(outer: list[int], inner: list[int]) -> int:
    """Where `inner` is a contiguous piece of `outer`; -1 if nowhere. (Times are distinct.)"""
    if inner[0] not in outer:
        return -1
    i = outer.index(inner[0])
    return i if outer[i : i + len(inner)] == inner else -1


def calendars(p: Panel) -> list[list[int]]:
    lists = {tuple(t.times) for t in p.tickers.values() if t.times}
    kept = [list(a) for a in lists if not any(a != b and contains(list(b), list(a)) >= 0 for b in lists)]
    return sorted(kept, key=lambda a: (a[0], -len(a), a))


def cell(v: float | int | None) -> bytes:
    if v is None or not math.isfinite(v):
        return struct.pack("<I", MISSING)
    return struct.pack("<f", v)


def block(t: Ticker, g: Group) -> bytes:
    if g.dtype == 2:
        return b"".join(struct.pack("<q", I64_MIN if v is None else int(v)) for v in t.values[g.cols[0].name])
    return b"".join(cell(t.values[c.name][r]) for r in range(len(t.times)) for c in g.cols)


def missing_runs(values: list[float | int | None]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for r, v in enumerate(values):
        if v is None or not math.isfinite(v):
            if runs and runs[-1][1] == r:
                runs[-1] = runs[-1][0], r + 1
            else:
                runs.append((r, r + 1))
    return runs


def window_index(p: Panel) -> bytes:
    names = p.names()

    def encode(all_uses: list[list[tuple[int, tuple[int, ...]]]]) -> tuple[list[tuple[int, ...]], list[bytes]]:
        lists: dict[tuple[int, ...], int] = {}
        encoded = []
        for uses in all_uses:
            out, before = uvarint(len(uses)), -1
            for t, numbers in uses:
                out += uvarint(t - before - 1) + uvarint(lists.setdefault(numbers, len(lists)))
                before = t
            encoded.append(out)
        return list(lists), encoded

    def breaks(rows: list[int]) -> tuple[int, ...]:
        return tuple(r - 1 if i == 0 else r - rows[i - 1] - 1 for i, r in enumerate(rows))

    def runs(pairs: list[tuple[int, int]]) -> tuple[int, ...]:
        out: list[int] = []
        for i, (s, e) in enumerate(pairs):
            out += [s if i == 0 else s - pairs[i - 1][1] - 1, e - s - 1]
        return tuple(out)

    break_uses = []
    for rule in p.breaks:
        found = [(t, p.break_rows(n, rule)) for t, n in enumerate(names)]
        break_uses.append([(t, breaks(rows)) for t, rows in found if rows])
    missing_columns, missing_uses = [], []
    for c, col in enumerate(p.columns()):
        if col.role == 2:
            continue
        found_runs = [(t, missing_runs(p.tickers[n].values[col.name])) for t, n in enumerate(names)]
        uses = [(t, runs(pairs)) for t, pairs in found_runs if pairs]
        if uses:
            missing_columns.append(c)
            missing_uses.append(uses)
    break_lists, encoded_breaks = encode(break_uses)
    missing_lists, encoded_missing = encode(missing_uses)
    out = uvarint(len(break_lists))
    for numbers in break_lists:
        out += uvarint(len(numbers)) + b"".join(map(uvarint, numbers))
    out += uvarint(len(missing_lists))
    for numbers in missing_lists:
        out += uvarint(len(numbers) // 2) + b"".join(map(uvarint, numbers))
    out += b"".join(encoded_breaks) + uvarint(len(missing_columns))
    before = -1
    for c, uses_bytes in zip(missing_columns, encoded_missing, strict=True):
        out += uvarint(c - before - 1) + uses_bytes
        before = c
    return out


def texts(values: list[str]) -> bytes:
    ends, joined = [], b""
    for v in values:
        joined += v.encode()
        ends.append(len(joined))
    return struct.pack(f"<I{len(ends)}I", len(ends), *ends) + joined


def categories(p: Panel) -> bytes:
    """CATS; empty without categories."""
    out = struct.pack("<I", len(p.categories)) if p.categories else b""
    for i, c in enumerate(p.columns()):
        if c.name in p.categories:
            out += struct.pack("<I", i) + texts(p.categories[c.name])
    return out


def attributes(p: Panel) -> bytes:
    """STAT; empty without attributes. One that has a float is of numbers."""
    out = struct.pack("<I", len(p.attributes)) if p.attributes else b""
    for name in sorted(p.attributes, key=str.encode):
        values = p.attributes[name]
        if any(isinstance(v, float) for v in values):
            out += text(name) + b"\2"
            for v in values:
                good = isinstance(v, float) and math.isfinite(v)
                out += struct.pack("<d", v) if good else u64(0x7FF8000000000000)
            continue
        distinct = sorted({v for v in values if isinstance(v, str)}, key=str.encode)
        out += text(name) + b"\1" + texts(distinct)
        out += b"".join(struct.pack("<I", distinct.index(v) + 1 if isinstance(v, str) else 0) for v in values)
    return out


def digest(p: Panel, schema_bytes: bytes) -> bytes:
    h = hashlib.sha256(b"wstore-digest-1\n" + u64(len(schema_bytes)) + schema_bytes + u64(len(p.tickers)))
    for n in p.names():
        t = p.tickers[n]
        h.update(u64(len(n.encode())) + n.encode() + u64(len(t.times)))
        h.update(u64(xxh(struct.pack(f"<{len(t.times)}q", *t.times))))
        for g in p.groups:
            h.update(u64(*chunk_sums(block(t, g))))
        for rule in p.breaks:
            rows = p.break_rows(n, rule)
            h.update(u64(len(rows), *rows))
    for tag, b in ((b"CATS", categories(p)), (b"STAT", attributes(p))):
        if b:
            h.update(tag + u64(len(b)) + b)
    return h.digest()


def encode(p: Panel, extra: list[tuple[str, int, int, bytes]] | None = None) -> bytes:
    """The file; `extra` sections are (tag, flags, key, bytes)."""
    a = 1 << p.align_log2
    names = p.names()
    cals = calendars(p)
    out = bytearray(8192)

    def place(b: bytes, to: int) -> int:
        out.extend(bytes(align(len(out), to) - len(out)))
        out.extend(b)
        return len(out) - len(b)

    cal_bytes = [struct.pack(f"<{len(c)}q", *c) for c in cals]
    cal_offsets = [place(b, a) for b in cal_bytes]
    offsets: dict[tuple[int, int], int] = {}
    blocks: dict[tuple[int, int], bytes] = {}
    for g, group in enumerate(p.groups):
        for t, n in enumerate(names):
            b = blocks[t, g] = block(p.tickers[n], group)
            offsets[t, g] = place(b, a) if b else 0

    where = []
    for n in names:
        times = p.tickers[n].times
        where.append(next(((c, i) for c, cal in enumerate(cals) if times and (i := contains(cal, times)) >= 0), (0, 0)))
    ends, joined = [], b""
    for n in names:
        joined += n.encode()
        ends.append(len(joined))
    rows = [len(p.tickers[n].times) for n in names]
    order = [(t, g) for t in range(len(names)) for g in range(len(p.groups))]
    schema_bytes = schema(p)
    sections: list[tuple[str, int, int, bytes]] = [
        ("SCHM", 1, 0, schema_bytes),
        (
            "TICK",
            1,
            0,
            u64(len(names), *ends, *(c for c, _ in where), *(f for _, f in where), *rows) + joined,
        ),
        (
            "CALS",
            1,
            0,
            u64(
                len(cals),
                *cal_offsets,
                *map(len, cals),
                *map(len, cals),
                *(s for b in cal_bytes for s in chunk_sums(b)),
            ),
        ),
        (
            "BLKS",
            1,
            0,
            u64(
                0,
                len(names),
                *(offsets[o] for o in order),
                *(rows[t] for t, _ in order),
                *(s for o in order for s in chunk_sums(blocks[o])),
            ),
        ),
        ("WIDX", 1, 0, window_index(p)),
        ("DGST", 1, 0, digest(p, schema_bytes)),
    ]
    if p.prov is not None:
        sections.append(("PROV", 2, 0, p.prov))
    sections += [(tag, 0, 0, b) for tag, b in (("CATS", categories(p)), ("STAT", attributes(p))) if b]
    sections += extra or []
    sections.sort(key=lambda s: (s[0].encode(), s[2]))
    table = b""
    for tag, flags, key, b in sections:
        at = place(b, 8)
        table += struct.pack("<4sIQQQQ", tag.encode(), flags, key, at, len(b), xxh(b))
    catalog = struct.pack("<II", len(sections), 0) + table
    at = place(catalog, 8)
    out[:512] = slot(p.align_log2, len(out), at, catalog)
    return bytes(out)


def slot(align_log2: int, end: int, at: int, catalog: bytes, commit: int = 0, incompat: int = 0) -> bytes:
    head = MAGIC + struct.pack("<IIQQQ", 1, align_log2, 0, 0, incompat)
    head += u64(commit, end, at, len(catalog), xxh(catalog)) + bytes(424)
    return head + u64(xxh(head))


class Patch:
    """A file whose parts are changed, with the checksums above them set right, so that only the change is wrong."""

    def __init__(self, b: bytes) -> None:
        self.b = bytearray(b)
        self.catalog, self.length = struct.unpack_from("<QQ", self.b, 56)

    def entry(self, tag: str, nth: int = 0) -> int:
        """The byte at which a section's line in the catalog begins."""
        found = [
            at for at in range(self.catalog + 8, self.catalog + self.length, 40) if self.b[at : at + 4] == tag.encode()
        ]
        return found[nth]

    def section(self, tag: str) -> tuple[int, int]:
        return struct.unpack_from("<QQ", self.b, self.entry(tag) + 16)

    def get(self, tag: str) -> bytes:
        at, n = self.section(tag)
        return bytes(self.b[at : at + n])

    def put(self, at: int, b: bytes) -> Patch:
        self.b[at : at + len(b)] = b
        return self

    def in_section(self, tag: str, offset: int, b: bytes) -> Patch:
        return self.put(self.section(tag)[0] + offset, b)

    def replace(self, tag: str, b: bytes) -> Patch:
        """Another content of a section, of any length: what is behind it moves."""
        start, _ = self.section(tag)
        moved: list[tuple[int, bytes]] = []
        for at in range(self.catalog + 8, self.catalog + self.length, 40):
            o, m = struct.unpack_from("<QQ", self.b, at + 16)
            if o > start:
                moved.append((at - self.catalog, bytes(self.b[o : o + m])))
        table = bytearray(self.b[self.catalog : self.catalog + self.length])
        struct.pack_into("<Q", table, self.entry(tag) - self.catalog + 24, len(b))
        self.b[start:] = b
        for at, content in sorted(moved, key=lambda m: struct.unpack_from("<Q", table, m[0] + 16)[0]):
            self.b.extend(bytes(-len(self.b) % 8))
            struct.pack_into("<Q", table, at + 16, len(self.b))
            self.b.extend(content)
        self.b.extend(bytes(-len(self.b) % 8))
        self.catalog = len(self.b)
        self.b.extend(table)
        struct.pack_into("<QQ", self.b, 48, len(self.b), self.catalog)
        return self

    def seal(self, upto: str = "slot", sums: bool = True) -> bytes:
        """Sets the checksums of sections, catalog and slot right, or only those above `upto`."""
        if sums and upto == "slot":
            for at in range(self.catalog + 8, self.catalog + self.length, 40):
                o, n = struct.unpack_from("<QQ", self.b, at + 16)
                struct.pack_into("<Q", self.b, at + 32, xxh(bytes(self.b[o : o + n])))
        if upto in ("slot", "catalog"):
            struct.pack_into("<Q", self.b, 72, xxh(bytes(self.b[self.catalog : self.catalog + self.length])))
        struct.pack_into("<Q", self.b, 504, xxh(bytes(self.b[:504])))
        return bytes(self.b)
