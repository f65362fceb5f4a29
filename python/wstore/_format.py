"""Bytes to structures: everything that section 9 of the specification has a reader check before it opens a file.

Nothing here reads the data (calendars and blocks); what the functions return is plain and immutable. Every count is
compared with the bytes that are really there before anything is allocated.
"""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt
import xxhash

from .errors import CorruptError, UnsupportedError

MAGIC = b"\x89WST\r\n\x1a\n"
SLOT_SIZE = 512
SLOT_OFFSETS = (0, 4096)
DATA_START = 8192
CHUNK = 65536
MISSING_BITS = 0x7FC00000
TICKERS_MAX = 1 << 24
GROUPS_MAX = 1024
COLUMNS_MAX = 65535
BREAK_SETS_MAX = 64
SECTIONS_MIN, SECTIONS_MAX = 6, 65536
NAME_MAX = 255
ATTRIBUTES_MAX = 65535
TEXTS_MAX = 1 << 24
TEXT_MAX = 65535
MISSING_NUMBER = 0x7FF8000000000000

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
Read = Callable[[int, int], bytes]
Unit = Literal["s", "ms", "us", "ns"]
UNITS: tuple[Unit, ...] = ("s", "ms", "us", "ns")

Role = Literal["value", "mask", "label_end"]
_ROLES: tuple[Role, ...] = ("value", "mask", "label_end")
ReachKind = Literal["none", "rows", "duration", "label_end"]
_REACH_KINDS: tuple[ReachKind, ...] = ("none", "rows", "duration", "label_end")
BreakKind = Literal["gap", "column", "given"]
_BREAK_KINDS: tuple[BreakKind, ...] = ("gap", "column", "given")

# Tags that a version 1 reader knows, with the flags that each must have.
_FLAGS = {
    b"BLKS": 1,
    b"CALS": 1,
    b"CATS": 0,
    b"DGST": 1,
    b"PROV": 2,
    b"SCHM": 1,
    b"STAT": 0,
    b"TICK": 1,
    b"WIDX": 1,
}
_ORDER = (b"SCHM", b"TICK", b"CALS", b"BLKS", b"WIDX", b"DGST")

_SLOT = struct.Struct("<8sIIQQQQQQQQ")
_ENTRY = struct.Struct("<4sIQQQQ")
_TAG_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its group's number and its place there, and how far a target of it looks ahead.

    By `reach_kind`, `reach` is a number of rows, a duration in the file's unit, or the number of a column of label
    ends.
    """

    name: str
    group: int
    place: int
    role: Role
    reach_kind: ReachKind
    reach: int


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that are stored together, row by row; `first` is the number of the first of them."""

    name: str
    dtype: Literal["float32", "int64"]
    columns: tuple[str, ...]
    first: int

    @property
    def row_bytes(self) -> int:
        return len(self.columns) * 4 if self.dtype == "float32" else 8


@dataclass(frozen=True, slots=True)
class BreakSet:
    """A rule for places that no window may cross; `max_gap` is in the file's unit."""

    name: str
    kind: BreakKind
    max_gap: int
    source: str


@dataclass(frozen=True, slots=True)
class Schema:
    """Section 5.1: what the columns are."""

    unit: Unit
    zone: str
    groups: tuple[Group, ...]
    columns: tuple[Column, ...]
    breaks: tuple[BreakSet, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A valid commit slot."""

    align: int
    compat: int
    ro_compat: int
    incompat: int
    commit: int
    end: int
    catalog_offset: int
    catalog_length: int
    catalog_checksum: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A section's line in the catalog."""

    tag: bytes
    flags: int
    key: int
    offset: int
    length: int
    checksum: int


@dataclass(frozen=True, slots=True)
class Chunked:
    """Where extents of data (calendars, or blocks) lie, and the checksums of their chunks.

    The chunks of extent i are ``checksums[chunk_ptr[i]:chunk_ptr[i + 1]]``.
    """

    offset: I64
    count: I64
    checksums: U64
    chunk_ptr: I64


@dataclass(frozen=True, slots=True)
class Uses:
    """Which tickers (ascending) have a list, and which list."""

    tickers: I64
    lists: I64


@dataclass(frozen=True, slots=True)
class WindowIndex:
    """Section 5.5. Break list i is ``break_row[break_ptr[i]:break_ptr[i + 1]]``; runs of missing rows likewise."""

    break_ptr: I64
    break_row: I64
    missing_ptr: I64
    missing_start: I64
    missing_end: I64
    breaks: tuple[Uses, ...]
    missing: dict[int, Uses]


@dataclass(frozen=True, slots=True)
class Attribute:
    """Section 5.9: a static value of each ticker.

    Of texts, `values` are u32: 0 where there is none, else the place in `texts` plus 1. Of numbers they are f64, NaN
    where there is none, and `texts` is None.
    """

    name: str
    texts: tuple[str, ...] | None
    values: npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """All of a file's metadata, checked."""

    size: int
    slot: Slot
    slots: tuple[bytes, bytes]
    entries: tuple[Entry, ...]
    schema: Schema
    schema_bytes: bytes
    names: tuple[bytes, ...]
    calendar: I64
    first: I64
    rows: I64
    calendars: Chunked
    blocks: Chunked  # block of ticker t and group g at t * groups + g; counts in rows
    index: WindowIndex
    digest: bytes
    categories: dict[int, tuple[str, ...]]  # section 5.8: the texts of a column's numbers
    attributes: tuple[Attribute, ...]


class _BrokenError(Exception):
    """A rule that a section breaks; the caller knows which section and code."""

    def __init__(self, detail: str, at: int = 0) -> None:
        super().__init__(detail)
        self.at = at


def xxh64(data: bytes | npt.NDArray[Any]) -> int:
    """XXH64 of bytes with seed 0."""
    return xxhash.xxh64_intdigest(data if isinstance(data, bytes) else data.data)


def slot_state(slot: bytes) -> Literal["zero", "valid", "damaged"]:
    """Section 3's three kinds of slots."""
    if not any(slot):
        return "zero"
    if slot[:8] == MAGIC and xxh64(slot[:504]) == int.from_bytes(slot[504:], "little"):
        return "valid"
    return "damaged"


def parse(path: str, size: int, read: Read) -> Layout:
    """Checks a file's structure in the order of section 9 and returns its metadata.

    `read(offset, length)` returns that many bytes of the file, which are inside [0, size), or fewer if the file has
    shrunk since.
    """

    def bad(code: str, section: str, offset: int | None, detail: str) -> NoReturn:
        raise CorruptError(path, section, offset, code, detail) from None

    def get(offset: int, length: int, section: str) -> bytes:
        b = read(offset, length)
        if len(b) != length:
            bad("truncated", section, offset + len(b), "the file was cut while it was being read")
        return b

    # 1, 2: is it one, and whole enough to tell?
    if not any(o + 8 <= size and get(o, 8, "slot") == MAGIC for o in SLOT_OFFSETS):
        bad("not_wstore", "slot 0", 0, "this is not a wstore file (no magic bytes)")
    if size < DATA_START:
        bad("truncated", "file", size, f"the file has {size} bytes, the least is {DATA_START}: it was cut")

    # 3: the newest slot
    slots = (get(SLOT_OFFSETS[0], SLOT_SIZE, "slot 0"), get(SLOT_OFFSETS[1], SLOT_SIZE, "slot 1"))
    parsed = {i: _parse_slot(s) for i, s in enumerate(slots) if slot_state(s) == "valid"}
    if not parsed:
        bad("slot_damaged", "slot 0", 0, "no commit slot has the right checksum")
    which = max(parsed, key=lambda i: (parsed[i].commit, -i))
    slot, slot_at = parsed[which], SLOT_OFFSETS[which]
    section = f"slot {which}"
    if slot.commit % 2 != which:
        bad("slot_invalid", section, slot_at + 40, f"commit {slot.commit} does not belong in slot {which}")

    # 4: features
    if slot.incompat:
        bit = (slot.incompat & -slot.incompat).bit_length() - 1
        name = "open: the file can be appended to, which this reader does not support; seal it with `wstore compact`"
        detail = f"incompat bit {bit} ({name if bit == 0 else 'unknown: a newer reader is needed'})"
        raise UnsupportedError(path, section, slot_at + 32, "unsupported", detail)

    # 5: the slot's rules
    if not 6 <= slot.align.bit_length() - 1 <= 16:
        bad("slot_invalid", section, slot_at + 12, "align_log2 must be 6 to 16")
    if any(slots[which][80:504]):
        bad("slot_invalid", section, slot_at + 80, "reserved bytes are not zero")
    if slot.commit != 0:
        bad("slot_invalid", section, slot_at + 40, f"a sealed file has commit 0, not {slot.commit}")
    if slot.end >> 63:
        bad("slot_invalid", section, slot_at + 48, f"committed end {slot.end} is not below 2^63")
    if slot.catalog_offset < DATA_START or slot.catalog_offset % 8 or slot.catalog_offset > slot.end:
        bad("slot_invalid", section, slot_at + 56, f"catalog offset {slot.catalog_offset} can't be")
    if slot.catalog_length != slot.end - slot.catalog_offset or slot.catalog_length % 40 != 8:
        bad("slot_invalid", section, slot_at + 64, f"catalog length {slot.catalog_length} can't be")

    # 6: size
    if size < slot.end:
        bad("truncated", "file", size, f"the file has {size} of {slot.end} bytes: it was cut")
    if size > slot.end:
        bad("trailing", "file", slot.end, f"the file has {size - slot.end} bytes behind its end")

    # 7: catalog
    if slot.catalog_length > 8 + 40 * SECTIONS_MAX:
        bad("catalog_invalid", "catalog", slot.catalog_offset, f"more than {SECTIONS_MAX} sections")
    raw = get(slot.catalog_offset, slot.catalog_length, "catalog")
    if xxh64(raw) != slot.catalog_checksum:
        bad("catalog_checksum", "catalog", slot.catalog_offset, "the catalog is damaged")
    try:
        entries = _parse_catalog(raw, slot)
    except _BrokenError as e:
        bad("catalog_invalid", "catalog", slot.catalog_offset + e.at, str(e))
    for i, entry in enumerate(entries):
        if entry.tag not in _FLAGS and entry.flags & 1:
            at = slot.catalog_offset + 8 + 40 * i
            detail = f"section {entry.tag.decode()} is required to read the file: a newer reader is needed"
            raise UnsupportedError(path, "catalog", at, "unsupported", detail)

    # 8: sections
    def section_bytes(entry: Entry) -> bytes:
        b = get(entry.offset, entry.length, entry.tag.decode())
        if xxh64(b) != entry.checksum:
            bad("section_checksum", entry.tag.decode(), entry.offset, "the section is damaged")
        return b

    by_tag: dict[bytes, list[Entry]] = {}
    for entry in entries:
        by_tag.setdefault(entry.tag, []).append(entry)
    entry = by_tag[b"SCHM"][0]
    try:
        entry = by_tag[b"SCHM"][0]
        schema_bytes = section_bytes(entry)
        schema = _parse_schema(schema_bytes)
        entry = by_tag[b"TICK"][0]
        names, calendar, first, rows = _parse_tickers(section_bytes(entry))
        entry = by_tag[b"CALS"][0]
        calendars = _parse_calendars(section_bytes(entry), slot.align)
        _check_entries(calendar, first, rows, calendars.count)
        entry = by_tag[b"BLKS"][0]
        block_bytes = [section_bytes(e) for e in by_tag[b"BLKS"]]
        if len(block_bytes) > 1 or entry.key != 0:
            raise _BrokenError("a sealed file has one BLKS section, with key 0")
        blocks = _parse_blocks(block_bytes[0], slot.align, schema, rows)
        entry = by_tag[b"WIDX"][0]
        index = _parse_index(section_bytes(entry), schema, rows)
        entry = by_tag[b"DGST"][0]
        digest = section_bytes(entry)
        if len(digest) != 32:
            raise _BrokenError("the digest must have 32 bytes")
        categories: dict[int, tuple[str, ...]] = {}
        if b"CATS" in by_tag:
            entry = by_tag[b"CATS"][0]
            categories = _parse_categories(section_bytes(entry), schema)
        attributes: tuple[Attribute, ...] = ()
        if b"STAT" in by_tag:
            entry = by_tag[b"STAT"][0]
            attributes = _parse_attributes(section_bytes(entry), len(names))
    except _BrokenError as e:
        bad("section_invalid", entry.tag.decode(), entry.offset + e.at, str(e))

    # 9: layout
    try:
        _check_layout(size, slot, entries, schema, rows, calendars, blocks)
    except _BrokenError as e:
        bad("layout", "file", e.at, str(e))
    return Layout(
        size=size,
        slot=slot,
        slots=slots,
        entries=entries,
        schema=schema,
        schema_bytes=schema_bytes,
        names=names,
        calendar=calendar,
        first=first,
        rows=rows,
        calendars=calendars,
        blocks=blocks,
        index=index,
        digest=digest,
        categories=categories,
        attributes=attributes,
    )


def _parse_slot(b: bytes) -> Slot:
    _, _, align_log2, compat, ro_compat, incompat, commit, end, offset, length, checksum = _SLOT.unpack_from(b)
    align = 1 << min(align_log2, 63)
    return Slot(align, compat, ro_compat, incompat, commit, end, offset, length, checksum)


def _parse_catalog(b: bytes, slot: Slot) -> tuple[Entry, ...]:
    count, reserved = struct.unpack_from("<II", b)
    if count != (len(b) - 8) // 40:
        raise _BrokenError(f"{count} sections in a catalog of {len(b)} bytes")
    if count < SECTIONS_MIN:
        raise _BrokenError(f"{count} sections, the least is {SECTIONS_MIN}")
    if reserved:
        raise _BrokenError("reserved bytes are not zero", 4)
    entries = tuple(Entry(*fields) for fields in _ENTRY.iter_unpack(b[8:]))
    before: Entry | None = None
    for i, e in enumerate(entries):
        at = 8 + 40 * i
        if not _TAG_BYTES.issuperset(e.tag):
            raise _BrokenError(f"tag {e.tag!r}", at)
        name = e.tag.decode()
        if e.flags & ~3 or e.flags != _FLAGS.get(e.tag, e.flags):
            raise _BrokenError(f"section {name} has flags {e.flags}", at + 4)
        if e.key >> 63 or (e.key and e.tag in _FLAGS and e.tag != b"BLKS"):
            raise _BrokenError(f"section {name} has key {e.key}", at + 8)
        if e.offset % 8 or e.offset < DATA_START or e.offset >> 63:
            raise _BrokenError(f"section {name} has offset {e.offset}", at + 16)
        if e.length < 1 or e.offset + e.length > slot.catalog_offset:
            raise _BrokenError(f"section {name} has length {e.length}", at + 24)
        if before is not None and (before.tag, before.key) >= (e.tag, e.key):
            raise _BrokenError(f"section {name} is out of order", at)
        before = e
    placed = sorted(entries, key=lambda e: e.offset)
    for p, q in itertools.pairwise(placed):
        if p.offset + p.length > q.offset:
            raise _BrokenError(f"sections {p.tag.decode()} and {q.tag.decode()} overlap", 8 + 40 * entries.index(q))
    there = {e.tag for e in entries}
    for tag in _ORDER:
        if tag not in there:
            raise _BrokenError(f"section {tag.decode()} is not there")
    return entries


class _Cursor:
    """Reads a section from its first byte to its last."""

    def __init__(self, b: bytes) -> None:
        self.b = b
        self.at = 0

    def take(self, n: int) -> bytes:
        if len(self.b) - self.at < n:
            raise _BrokenError("the section is too short", self.at)
        self.at += n
        return self.b[self.at - n : self.at]

    def uint(self, n: int) -> int:
        return int.from_bytes(self.take(n), "little")

    def count(self) -> int:
        n = self.uint(8)
        if n >> 63:
            raise _BrokenError(f"{n} is not below 2^63", self.at - 8)
        return n

    def zero(self, n: int) -> None:
        if any(self.take(n)):
            raise _BrokenError("reserved bytes are not zero", self.at - n)

    def text(self, what: str, least: int = 1) -> str:
        n = self.uint(2)
        if not least <= n <= NAME_MAX:
            raise _BrokenError(f"{what} of {n} bytes", self.at - 2)
        try:
            return self.take(n).decode()
        except UnicodeDecodeError:
            raise _BrokenError(f"{what} is not valid UTF-8", self.at - n) from None

    def counts(self, n: int) -> I64:
        """n numbers of 8 bytes, each below 2^63; the caller has checked that they are there."""
        a = np.frombuffer(self.take(8 * n), "<i8")
        if n and a.min() < 0:
            i = int(np.argmax(a < 0))
            raise _BrokenError("a number that is not below 2^63", self.at - 8 * (n - i))
        return a

    def texts(self) -> tuple[str, ...]:
        """Section 5.8's list of texts."""
        n = self.uint(4)
        if n > TEXTS_MAX:
            raise _BrokenError(f"{n} texts, at most {TEXTS_MAX} are possible", self.at - 4)
        self.room(n, 5, "texts")
        at = self.at
        ends = np.frombuffer(self.take(4 * n), "<u4").astype(np.int64)
        blob = self.take(int(ends[-1]) if n else 0)
        return tuple(map(bytes.decode, _split(blob, ends, TEXT_MAX, at)))

    def room(self, n: int, each: int, what: str) -> None:
        """n things of at least so many bytes each must still be in the section."""
        if n > (len(self.b) - self.at) // each:
            raise _BrokenError(f"{n} {what} do not fit into the section", self.at)

    def done(self) -> None:
        if self.at != len(self.b):
            raise _BrokenError(f"{len(self.b) - self.at} bytes too many", self.at)


def _parse_schema(b: bytes) -> Schema:
    c = _Cursor(b)
    unit = c.uint(1)
    if unit > 3:
        raise _BrokenError(f"time unit {unit}")
    c.zero(3)
    n_groups = c.uint(4)
    if not 1 <= n_groups <= GROUPS_MAX:
        raise _BrokenError(f"{n_groups} groups, 1 to {GROUPS_MAX} are possible", 4)
    zone = c.text("the zone", 0)
    groups: list[Group] = []
    columns: list[Column] = []
    for g in range(n_groups):
        name = c.text("a group's name")
        dtype = c.uint(1)
        if dtype not in (1, 2):
            raise _BrokenError(f"dtype {dtype} of group {name!r}", c.at - 1)
        c.zero(1)
        width = c.uint(2)
        if width < 1 or (dtype == 2 and width != 1) or len(columns) + width > COLUMNS_MAX:
            raise _BrokenError(f"width {width} of group {name!r}", c.at - 2)
        first = len(columns)
        for place in range(width):
            column = c.text("a column's name")
            role, kind = c.uint(1), c.uint(1)
            reach = c.count()
            if role > 2 or (role == 2) != (dtype == 2):
                raise _BrokenError(f"role {role} of column {column!r}", c.at - 10)
            if kind > 3 or (kind != 0 and role != 0) or (kind == 0 and reach != 0):
                raise _BrokenError(f"reach of column {column!r}", c.at - 9)
            columns.append(Column(column, g, place, _ROLES[role], _REACH_KINDS[kind], reach))
        names = tuple(col.name for col in columns[first:])
        groups.append(Group(name, "float32" if dtype == 1 else "int64", names, first))
    for col in columns:
        if col.reach_kind == "label_end" and (col.reach >= len(columns) or columns[col.reach].role != "label_end"):
            raise _BrokenError(f"reach of column {col.name!r}: column {col.reach} is none of label ends")
    every = [col.name for col in columns] + [g.name for g in groups]
    if len(set(every)) != len(every):
        raise _BrokenError("two columns or groups have the same name")
    n_breaks = c.uint(4)
    if n_breaks > BREAK_SETS_MAX:
        raise _BrokenError(f"{n_breaks} break sets, at most {BREAK_SETS_MAX} are possible", c.at - 4)
    breaks: list[BreakSet] = []
    for _ in range(n_breaks):
        name = c.text("a break set's name")
        break_kind = c.uint(1)
        max_gap = c.count()
        source = c.text("a break set's source", 1 if break_kind == 2 else 0)
        if not 1 <= break_kind <= 3:
            raise _BrokenError(f"kind {break_kind} of break set {name!r}", c.at)
        if (break_kind == 1) != (max_gap > 0) or (break_kind != 2 and source):
            raise _BrokenError(f"the rule of break set {name!r}", c.at)
        breaks.append(BreakSet(name, _BREAK_KINDS[break_kind - 1], max_gap, source))
    if len({s.name for s in breaks}) != len(breaks):
        raise _BrokenError("two break sets have the same name")
    c.done()
    return Schema(UNITS[unit], zone, tuple(groups), tuple(columns), tuple(breaks))


def _parse_tickers(b: bytes) -> tuple[tuple[bytes, ...], I64, I64, I64]:
    c = _Cursor(b)
    n = c.count()
    if n > TICKERS_MAX:
        raise _BrokenError(f"{n} tickers, at most {TICKERS_MAX} are possible")
    c.room(n, 32, "tickers")
    ends, calendar, first, rows = (c.counts(n) for _ in range(4))
    names = _split(c.take(len(b) - c.at), ends, NAME_MAX, 8)
    if ((rows == 0) & ((calendar != 0) | (first != 0))).any():
        raise _BrokenError("a ticker without rows has calendar 0 and first entry 0")
    return names, calendar, first, rows


def _split(blob: bytes, ends: I64, most: int, at: int) -> tuple[bytes, ...]:
    """Texts of 1 to `most` bytes of UTF-8 in strictly ascending order, by where each ends; `at` is the ends' place."""
    n = len(ends)
    if (int(ends[-1]) if n else 0) != len(blob):
        raise _BrokenError(f"{len(blob)} bytes of text, which end at {int(ends[-1]) if n else 0}", at)
    lengths = np.diff(ends, prepend=0)
    wrong = (lengths < 1) | (lengths > most)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise _BrokenError(f"text {i} has {int(lengths[i])} bytes, 1 to {most} are possible", at)
    # Text whose pieces all begin with a character's first byte is valid if and only if each piece is.
    starts = np.frombuffer(blob, np.uint8)[ends[:-1]] if n else np.empty(0, np.uint8)
    try:
        blob.decode()
    except UnicodeDecodeError as e:
        raise _BrokenError(f"the text with byte {e.start} of all is not valid UTF-8", at) from None
    if (starts & 0xC0 == 0x80).any():
        raise _BrokenError("a text ends within a character", at)
    stops = ends.tolist()
    texts = tuple(map(blob.__getitem__, map(slice, [0, *stops[:-1]], stops)))
    if not all(map(operator.lt, texts, texts[1:])):
        raise _BrokenError("texts are not in strictly ascending order", at)
    return texts


def _parse_categories(b: bytes, schema: Schema) -> dict[int, tuple[str, ...]]:
    c = _Cursor(b)
    n = c.uint(4)
    if not 1 <= n <= len(schema.columns):
        raise _BrokenError(f"{n} columns with categories, of {len(schema.columns)}")
    out: dict[int, tuple[str, ...]] = {}
    before = -1
    for _ in range(n):
        column = c.uint(4)
        if not before < column < len(schema.columns):
            raise _BrokenError(f"column {column} behind {before}, of {len(schema.columns)}", c.at - 4)
        if schema.columns[column].role != "value":
            raise _BrokenError(f"column {schema.columns[column].name!r} can't have categories", c.at - 4)
        out[column] = c.texts()
        before = column
    c.done()
    return out


def _parse_attributes(b: bytes, tickers: int) -> tuple[Attribute, ...]:
    c = _Cursor(b)
    n = c.uint(4)
    if not 1 <= n <= ATTRIBUTES_MAX:
        raise _BrokenError(f"{n} attributes, 1 to {ATTRIBUTES_MAX} are possible")
    out: list[Attribute] = []
    for _ in range(n):
        at = c.at
        name = c.text("an attribute's name")
        if out and name.encode() <= out[-1].name.encode():
            raise _BrokenError(f"attribute {name!r} is not behind {out[-1].name!r}", at)
        kind = c.uint(1)
        texts: tuple[str, ...] | None = None
        values: npt.NDArray[Any]
        if kind == 1:
            texts = c.texts()
            at = c.at
            values = np.frombuffer(c.take(4 * tickers), "<u4")
            if (values > len(texts)).any():
                raise _BrokenError(f"a code of attribute {name!r} is above {len(texts)}", at)
            used = np.zeros(len(texts) + 1, bool)
            used[values] = True
            if not used[1:].all():
                text = texts[int(np.argmin(used[1:]))]
                raise _BrokenError(f"no ticker has text {text!r} of attribute {name!r}", at)
        elif kind == 2:
            values = np.frombuffer(c.take(8 * tickers), "<f8")
            odd = ~np.isfinite(values) & (values.view("<u8") != MISSING_NUMBER)
            if odd.any():
                at = c.at - 8 * (tickers - int(np.argmax(odd)))
                raise _BrokenError(f"a number of attribute {name!r} is neither finite nor missing", at)
        else:
            raise _BrokenError(f"kind {kind} of attribute {name!r}", c.at - 1)
        out.append(Attribute(name, texts, values))
    c.done()
    return tuple(out)


def _parse_calendars(b: bytes, align: int) -> Chunked:
    c = _Cursor(b)
    n = c.count()
    c.room(n, 24, "calendars")
    offset, entries, capacity = (c.counts(n) for _ in range(3))
    if n and ((offset % align).any() or offset.min() < DATA_START):
        raise _BrokenError("an offset of a calendar can't be", 8)
    if n and entries.min() < 1:
        raise _BrokenError("a calendar without entries", 8 + 8 * n)
    if (capacity != entries).any():
        raise _BrokenError("a sealed file has no spare capacity", 8 + 16 * n)
    return _parse_chunks(c, offset, entries, 8)


def _check_entries(calendar: I64, first: I64, rows: I64, entries: I64) -> None:
    """A ticker's rows lie inside its calendar."""
    some = np.flatnonzero(rows)
    if not some.size:
        return
    calendar, first, rows = calendar[some], first[some], rows[some]
    bad = calendar >= len(entries)
    if not bad.any():
        n = entries[calendar]
        bad = (rows > n) | (first > n - rows)
    if bad.any():
        raise _BrokenError(f"the rows of ticker {int(some[np.argmax(bad)])} are not in its calendar")


def _parse_blocks(b: bytes, align: int, schema: Schema, rows: I64) -> Chunked:
    c = _Cursor(b)
    first, n = c.count(), c.count()
    if first != 0 or n != len(rows):
        raise _BrokenError(f"blocks of {n} tickers from {first} on, not of {len(rows)} from 0 on")
    groups = len(schema.groups)
    c.room(n, 16 * groups, "tickers")
    offset, capacity = c.counts(n * groups), c.counts(n * groups)
    if (capacity != np.repeat(rows, groups)).any():
        raise _BrokenError("a sealed file has no spare capacity", 16 + 8 * n * groups)
    if ((offset != 0) & ((capacity == 0) | (offset % align != 0) | (offset < DATA_START))).any() or (
        (offset == 0) & (capacity != 0)
    ).any():
        raise _BrokenError("an offset of a block can't be", 16)
    row_bytes = np.tile(np.array([g.row_bytes for g in schema.groups], np.int64), n)
    return _parse_chunks(c, offset, capacity, row_bytes)


def _parse_chunks(c: _Cursor, offset: I64, count: I64, item_bytes: I64 | int) -> Chunked:
    """The rest of a section: the checksums of the chunks of all extents."""
    have = (len(c.b) - c.at) // 8
    # Each extent's bytes come to at most have × CHUNK, which keeps the products below from overflowing.
    if (count > have * CHUNK // item_bytes).any():
        raise _BrokenError("fewer checksums than chunks", c.at)
    chunks = -(-count * item_bytes // CHUNK)
    if chunks.sum(dtype=np.float64) > have or int(chunks.sum()) != have:
        raise _BrokenError(f"{have} checksums, which is not the number of chunks", c.at)
    checksums = np.frombuffer(c.take(8 * have), "<u8")
    c.done()
    return Chunked(offset, count, checksums, ptr(chunks))


def ptr(counts: I64) -> I64:
    """The starts of consecutive pieces of these lengths, and the end of the last."""
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def decode_uvarints(b: bytes) -> I64:
    """All the numbers of a section that holds nothing else; shortest form and 9 bytes at most are required."""
    a = np.frombuffer(b, np.uint8)
    ends = np.flatnonzero(a < 0x80)
    if not ends.size or ends[-1] != a.size - 1:
        raise _BrokenError("the last number is cut", a.size)
    lengths = np.diff(ends, prepend=-1)
    long = lengths > 9
    if long.any():
        raise _BrokenError("a number of more than 9 bytes", int(ends[np.argmax(long)]))
    padded = (a[ends] == 0) & (lengths > 1)
    if padded.any():
        raise _BrokenError("a number that is not in its shortest form", int(ends[np.argmax(padded)]))
    values = a[ends].astype(np.int64)
    for back in range(1, int(lengths.max())):
        some = np.flatnonzero(lengths > back)
        values[some] = values[some] << 7 | (a[ends[some] - back] & 0x7F)
    return values


class _Numbers:
    """Reads the window index, number by number or a row of them at a time."""

    def __init__(self, values: I64) -> None:
        self.values = values
        self.at = 0

    def one(self) -> int:
        if self.at >= len(self.values):
            raise _BrokenError("the section is too short")
        self.at += 1
        return int(self.values[self.at - 1])

    def take(self, n: int, what: str) -> I64:
        if n > len(self.values) - self.at:
            raise _BrokenError(f"{what}: {n} numbers are not there")
        self.at += n
        return self.values[self.at - n : self.at]

    def lists(self, per: int, what: str) -> tuple[I64, I64]:
        """Lists of n × per numbers: where each starts, and the numbers."""
        n = self.one()
        if n > len(self.values) - self.at:
            raise _BrokenError(f"{n} {what} lists are not there")
        lengths = np.zeros(n, np.int64)
        parts: list[I64] = []
        for i in range(n):
            length = self.one() * per
            if length < 1:
                raise _BrokenError(f"{what} list {i} is empty")
            parts.append(self.take(length, f"{what} list {i}"))
            lengths[i] = length
        if len({p.tobytes() for p in parts}) != n:
            raise _BrokenError(f"two {what} lists are equal")
        flat = np.concatenate(parts) if parts else np.empty(0, np.int64)
        if flat.sum(dtype=np.float64) > 2.0**61:
            raise _BrokenError(f"a {what} list goes beyond all rows")
        return ptr(lengths), flat

    def uses(self, tickers: int, lists: int) -> Uses:
        n = self.one()
        if n > tickers:
            raise _BrokenError(f"{n} of {tickers} tickers use a list")
        pairs = self.take(2 * n, "uses")
        gaps, used = pairs[0::2], pairs[1::2]
        if n and (int(gaps.max()) >= tickers or int(used.max()) >= lists):
            raise _BrokenError("an unknown ticker or list is used")
        who = np.cumsum(gaps + 1) - 1
        if n and who[-1] >= tickers:
            raise _BrokenError("an unknown ticker uses a list")
        return Uses(who, used)


def _sums(starts: I64, steps: I64) -> I64:
    """Running sums that begin anew at each start."""
    sums = np.cumsum(steps)
    before = np.zeros(len(starts) - 1, np.int64)
    later = starts[1:-1]
    before[1:] = sums[later - 1]
    return sums - np.repeat(before, np.diff(starts))


def _first_use(uses: list[Uses], lists: int, what: str) -> None:
    order = np.concatenate([u.lists for u in uses]) if uses else np.empty(0, np.int64)
    top = np.maximum.accumulate(order)
    before = np.concatenate([np.array([-1], np.int64), top[:-1]])[: len(order)]
    if (order > before + 1).any():
        raise _BrokenError(f"{what} lists are not numbered in the order of their first use")
    if (int(top[-1]) if len(top) else -1) != lists - 1:
        raise _BrokenError(f"a {what} list is not used")


def _parse_index(b: bytes, schema: Schema, rows: I64) -> WindowIndex:
    n = _Numbers(decode_uvarints(b))
    break_ptr, gaps = n.lists(1, "break")
    break_row = _sums(break_ptr, gaps + 1)
    missing_ptr, pairs = n.lists(2, "missing")
    steps = pairs.copy()
    steps[0::2] += 1
    steps[missing_ptr[:-1]] -= 1
    steps[1::2] += 1
    sums = _sums(missing_ptr, steps)
    missing_ptr //= 2
    start, end = sums[0::2], sums[1::2]

    n_breaks, n_missing = len(break_ptr) - 1, len(missing_ptr) - 1
    breaks = [n.uses(len(rows), n_breaks) for _ in schema.breaks]
    for u in breaks:
        if (break_row[break_ptr[u.lists + 1] - 1] >= rows[u.tickers]).any():
            raise _BrokenError("a break is not inside its ticker's rows")
    _first_use(breaks, n_breaks, "break")

    missing: dict[int, Uses] = {}
    column = -1
    for _ in range(n.one()):
        column += n.one() + 1
        if column >= len(schema.columns) or schema.columns[column].role == "label_end":
            raise _BrokenError(f"column {column} can't have missing cells")
        u = missing[column] = n.uses(len(rows), n_missing)
        if not u.lists.size:
            raise _BrokenError(f"column {column} is listed without missing cells")
        if (end[missing_ptr[u.lists + 1] - 1] > rows[u.tickers]).any():
            raise _BrokenError(f"a missing run of column {column} is not inside its ticker's rows")
    _first_use(list(missing.values()), n_missing, "missing")
    if n.at != len(n.values):
        raise _BrokenError(f"{len(n.values) - n.at} numbers too many")
    return WindowIndex(break_ptr, break_row, missing_ptr, start, end, tuple(breaks), missing)


def _check_layout(
    size: int,
    slot: Slot,
    entries: tuple[Entry, ...],
    schema: Schema,
    rows: I64,
    calendars: Chunked,
    blocks: Chunked,
) -> None:
    """Section 6: every offset of a sealed file follows from its counts."""
    align = slot.align
    by_group = blocks.offset.reshape(len(rows), len(schema.groups)).T
    at = DATA_START
    pieces = [("calendar", calendars.offset, calendars.count, 8)]
    pieces += [("block", by_group[g], rows, s.row_bytes) for g, s in enumerate(schema.groups)]
    for what, offset, count, item_bytes in pieces:
        if (count > size // item_bytes).any():
            raise _BrokenError(f"a {what} is larger than the file", size)
        padded = (count * item_bytes + (align - 1)) // align * align
        if padded.sum(dtype=np.float64) > 2.0 * size + float(align):
            raise _BrokenError(f"the {what}s are larger than the file", size)
        want = at + ptr(padded)
        wrong = offset != np.where(count > 0, want[:-1], 0)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise _BrokenError(f"{what} {i} is at byte {int(offset[i])}, not {int(want[i])}", int(offset[i]))
        last = np.flatnonzero(count)
        if last.size:
            i = int(last[-1])
            end = int(want[i]) + int(count[i]) * item_bytes
            at = int(want[-1])
    if calendars.count.size or rows.any():
        at = end
    for e in entries:
        at = -(-at // 8) * 8
        if e.offset != at:
            raise _BrokenError(f"section {e.tag.decode()} is at byte {e.offset}, not {at}", e.offset)
        at += e.length
    if slot.catalog_offset != -(-at // 8) * 8:
        raise _BrokenError(f"the catalog is at byte {slot.catalog_offset}", slot.catalog_offset)
