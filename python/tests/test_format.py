"""Files that break one rule each, files with any byte changed, and files that are cut."""

from __future__ import annotations

import contextlib
import re
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from encode import (
    MAGIC,
    Break,
    Col,
    Group,
    Panel,
    Patch,
    Ticker,
    attributes,
    categories,
    encode,
    slot,
    texts,
    u64,
    uvarint,
    xxh,
)
from encode import schema as encode_schema
from hypothesis import given, settings
from hypothesis import strategies as st
from panels import any_panel, labelled, small

import wstore

GOOD = encode(small())
LABELLED = encode(labelled())


def code_of(b: bytes) -> str | None:
    """The code of the error that opening and verifying a file gives; None if it is fine."""
    try:
        wstore.open_bytes(b).verify()
    except wstore.FileError as e:
        error = e
    else:
        return None
    assert error.path == "<bytes>"
    assert error.code in str(error)
    assert isinstance(error, wstore.UnsupportedError) == (error.code == "unsupported")
    return error.code


def sealed(change: Callable[[Patch], object]) -> bytes:
    p = Patch(GOOD)
    change(p)
    return p.seal()


def with_slot(offset: int, b: bytes) -> bytes:
    return Patch(GOOD).put(offset, b).seal()


def test_the_encoder_makes_good_files() -> None:
    assert code_of(GOOD) is None
    assert code_of(Patch(GOOD).seal()) is None
    assert code_of(LABELLED) is None


@pytest.mark.parametrize(
    ("code", "b"),
    [
        ("not_wstore", b""),
        ("not_wstore", MAGIC[:7]),
        ("not_wstore", b"PK" + bytes(9000)),
        ("truncated", MAGIC),
        ("truncated", GOOD[:8191]),
        ("truncated", GOOD[:8192]),
        ("truncated", GOOD[:-1]),
        ("trailing", GOOD + b"\0"),
        ("slot_damaged", GOOD[:100] + b"\1" + GOOD[101:]),
        ("slot_damaged", Patch(GOOD).put(4096, b"\1").seal()),
        ("slot_invalid", Patch(GOOD).put(4096, GOOD[:512]).seal()),
        ("slot_invalid", with_slot(12, b"\5")),
        ("slot_invalid", with_slot(12, b"\x11")),
        ("slot_invalid", with_slot(12, b"\xff\xff\xff\xff")),
        ("slot_invalid", with_slot(80, b"\1")),
        ("slot_invalid", with_slot(503, b"\1")),
        ("slot_invalid", with_slot(40, b"\1")),
        ("slot_invalid", with_slot(40, b"\2")),
        ("slot_invalid", with_slot(56, u64(1 << 63))),
        ("slot_invalid", with_slot(56, u64(8191))),
        ("slot_invalid", with_slot(64, u64(0))),
        ("slot_invalid", with_slot(48, u64((1 << 64) - 8))),
        ("unsupported", with_slot(32, b"\1")),
        ("unsupported", with_slot(39, b"\x80")),
        ("unsupported", encode(small(), [("ZZZZ", 1, 0, b"x")])),
        ("unsupported", encode(small(), [("CATX", 3, 0, b"x")])),
        (None, encode(small(), [("ZZZZ", 0, 0, b"x"), ("STAR", 2, 7, b"yy")])),
        ("catalog_invalid", encode(small(), [("CATS", 1, 0, b"x")])),
        ("catalog_invalid", encode(small(), [("STAT", 2, 0, b"x")])),
        ("catalog_invalid", encode(small(), [("STAT", 0, 1, b"x")])),
        (None, with_slot(16, b"\xff" * 16)),
        (None, with_slot(8, b"\xff" * 4)),
        ("catalog_checksum", Patch(GOOD).put(len(GOOD) - 1, b"\0").seal("")),
    ],
)
def test_slots_and_size(code: str | None, b: bytes) -> None:
    assert code_of(b) == code


def test_the_newest_slot_decides() -> None:
    catalog = Patch(GOOD).catalog
    newer = slot(6, len(GOOD), catalog, GOOD[catalog:], commit=1)
    assert code_of(Patch(GOOD).put(4096, newer).seal()) == "slot_invalid"
    opened = slot(6, len(GOOD), catalog, GOOD[catalog:], commit=1, incompat=1)
    with pytest.raises(wstore.UnsupportedError, match="open"):
        wstore.open_bytes(bytes(Patch(GOOD).put(4096, opened).b))
    # A damaged slot beside a valid one: the file opens.
    assert len(wstore.open_bytes(Patch(GOOD).put(4096, MAGIC).seal()).tickers) == 4


def entry(tag: str, offset: int, b: bytes) -> Callable[[Patch], object]:
    return lambda p: p.put(p.entry(tag) + offset, b)


def swap(p: Patch) -> None:
    a, b = p.entry("CALS"), p.entry("DGST")
    p.b[a : a + 40], p.b[b : b + 40] = p.b[b : b + 40], p.b[a : a + 40]


@pytest.mark.parametrize(
    "change",
    [
        entry("SCHM", 0, b"ABCD"),  # one is not there, and the order
        entry("WIDX", 0, b"XIDX"),
        entry("DGST", 0, b"dgst"),
        entry("SCHM", 4, b"\3"),
        entry("PROV", 4, b"\0"),
        entry("PROV", 4, b"\6"),
        entry("TICK", 8, b"\1"),
        entry("BLKS", 8, u64(1 << 63)),
        entry("TICK", 16, b"\1"),
        entry("TICK", 16, u64(8184)),
        entry("TICK", 16, u64(1 << 63)),
        entry("TICK", 24, u64(0)),
        entry("TICK", 24, u64((1 << 64) - 8)),
        lambda p: p.put(p.entry("TICK") + 16, p.b[p.entry("WIDX") + 16 :][:8]),
        lambda p: p.put(p.catalog, b"\6"),
        lambda p: p.put(p.catalog + 4, b"\1"),
        swap,
    ],
)
def test_catalog(change: Callable[[Patch], object]) -> None:
    p = Patch(GOOD)
    change(p)
    assert code_of(p.seal(sums=False)) == "catalog_invalid"


@pytest.mark.parametrize("tag", ["BLKS", "CALS", "CATS", "DGST", "PROV", "SCHM", "STAT", "TICK", "WIDX"])
def test_section_checksums(tag: str) -> None:
    p = Patch(LABELLED)
    at, n = p.section(tag)
    p.put(at + n - 1, bytes([p.b[at + n - 1] ^ 1]))
    assert code_of(p.seal(sums=False)) == "section_checksum"


def schema(change: Callable[[Panel], object]) -> bytes:
    panel = small()
    change(panel)
    return sealed(lambda p: p.replace("SCHM", encode_schema(panel)))


SCHEMAS: list[Callable[[Panel], object]] = [
    lambda p: setattr(p, "unit", 4),
    lambda p: setattr(p, "zone", "z" * 256),
    lambda p: setattr(p, "groups", []),
    lambda p: setattr(p.groups[0], "name", ""),
    lambda p: setattr(p.groups[0], "name", "n" * 256),
    lambda p: setattr(p.groups[0], "name", "masks"),
    lambda p: setattr(p.groups[0], "name", "a"),
    lambda p: setattr(p.groups[0], "dtype", 3),
    lambda p: setattr(p.groups[0], "dtype", 2),
    lambda p: setattr(p.groups[3], "dtype", 1),
    lambda p: setattr(p.groups[0], "cols", []),
    lambda p: setattr(p.groups[0].cols[0], "name", "b"),
    lambda p: setattr(p.groups[0].cols[0], "name", ""),
    lambda p: setattr(p.groups[0].cols[0], "role", 3),
    lambda p: setattr(p.groups[0].cols[0], "reach_kind", 4),
    lambda p: setattr(p.groups[0].cols[0], "reach", 1),
    lambda p: setattr(p.groups[2].cols[0], "reach", 1 << 63),
    lambda p: setattr(p.groups[1].cols[0], "reach_kind", 1),
    lambda p: setattr(p.groups[2].cols[0], "reach_kind", 3),
    lambda p: setattr(p.breaks[0], "max_gap", 0),
    lambda p: setattr(p.breaks[0], "kind", 0),
    lambda p: setattr(p.breaks[0], "kind", 4),
    lambda p: setattr(p.breaks[0], "source", "x"),
    lambda p: setattr(p.breaks[1], "source", ""),
    lambda p: setattr(p.breaks[1], "max_gap", 1),
    lambda p: setattr(p.breaks[0], "name", "session"),
    lambda p: p.breaks.extend(Break(f"b{i}") for i in range(64)),
]


@pytest.mark.parametrize("change", SCHEMAS)
def test_schema(change: Callable[[Panel], object]) -> None:
    assert code_of(schema(change)) == "section_invalid"


def test_schema_reserved_and_length() -> None:
    for change in (
        lambda p: p.in_section("SCHM", 1, b"\1"),
        lambda p: p.in_section("SCHM", 3, b"\1"),
        lambda p: p.replace("SCHM", p.get("SCHM") + b"\0"),
        lambda p: p.replace("SCHM", p.get("SCHM")[:-1]),
        lambda p: p.replace("SCHM", p.get("SCHM").replace(b"ret", b"\xed\xa0\x80")),  # a surrogate
    ):
        assert code_of(sealed(change)) == "section_invalid"


T = 4  # tickers of the good file


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.in_section("TICK", 0, u64(5)),
        lambda p: p.in_section("TICK", 0, u64(1 << 63)),
        lambda p: p.in_section("TICK", 0, u64(1 << 60)),
        lambda p: p.in_section("TICK", 8, u64(0)),
        lambda p: p.in_section("TICK", 8, u64(1 << 62)),
        lambda p: p.in_section("TICK", 8, u64(9)),
        lambda p: p.in_section("TICK", 8 + 8 * 3, u64(14)),
        lambda p: p.in_section("TICK", 8 + 32 * T, b"Z"),  # AAPL, not in order
        lambda p: p.in_section("TICK", 8 + 32 * T + 11, b"\xff"),
        lambda p: p.in_section("TICK", 8 + 8 * 2, u64(12)),  # cuts a character in two
        lambda p: p.in_section("TICK", 8 + 8 * T, u64(99)),
        lambda p: p.in_section("TICK", 8 + 8 * (T + 2), u64(1)),  # calendar of the empty ticker
        lambda p: p.in_section("TICK", 8 + 8 * (2 * T + 2), u64(1)),
        lambda p: p.in_section("TICK", 8 + 8 * 2 * T, u64(1)),
        lambda p: p.in_section("TICK", 8 + 8 * 2 * T, u64((1 << 63) - 1)),
        lambda p: p.in_section("TICK", 8 + 8 * 3 * T, u64((1 << 63) - 1)),
        lambda p: p.in_section("TICK", 8 + 8 * 3 * T, u64(7)),
        lambda p: p.replace("TICK", p.get("TICK") + b"x"),
        lambda p: p.replace("CALS", p.get("CALS")[:-8]),
        lambda p: p.replace("CALS", p.get("CALS") + bytes(8)),
        lambda p: p.replace("CALS", p.get("CALS") + b"\0"),
        lambda p: p.in_section("CALS", 0, u64(1 << 40)),
        lambda p: p.in_section("CALS", 8, u64(8193)),
        lambda p: p.in_section("CALS", 8, u64(4096)),
        lambda p: p.in_section("CALS", 16, u64(0)),
        lambda p: p.in_section("CALS", 16, u64((1 << 63) - 1)),
        lambda p: p.in_section("CALS", 24, u64(9)),
        lambda p: p.in_section("BLKS", 0, u64(1)),
        lambda p: p.in_section("BLKS", 8, u64(T + 1)),
        lambda p: p.in_section("BLKS", 16, u64(0)),
        lambda p: p.in_section("BLKS", 16, u64(8200)),
        lambda p: p.in_section("BLKS", 16 + 8 * 8, u64(8192)),
        lambda p: p.in_section("BLKS", 16 + 8 * 4 * T, u64(7)),
        lambda p: p.replace("BLKS", p.get("BLKS")[:-8]),
        lambda p: p.replace("BLKS", p.get("BLKS")[:8]),
        lambda p: p.put(p.entry("BLKS") + 8, u64(3)),
        lambda p: p.replace("DGST", bytes(31)),
        lambda p: p.replace("DGST", bytes(33)),
    ],
)
def test_tickers_calendars_blocks_digest(change: Callable[[Patch], object]) -> None:
    assert code_of(sealed(change)) == "section_invalid"


def test_errors_have_one_traceback() -> None:
    for broken in (sealed(lambda p: p.replace("DGST", b"x" * 31)), sealed(lambda p: p.replace("SCHM", b""))):
        with pytest.raises(wstore.CorruptError) as e:
            wstore.open_bytes(broken)
        text = "".join(traceback.format_exception(e.value))
        assert text.count("Traceback") == 1
        assert "_BrokenError" not in text


def test_two_sections_of_blocks() -> None:
    assert code_of(encode(small(), [("BLKS", 1, 4, u64(4, 0))])) == "section_invalid"


# A panel of ten rows, two tickers, two float columns, one break set: what its index may say.
def indexed(numbers: list[int]) -> str | None:
    t = {n: Ticker(list(range(10)), {"x": [1.0] * 10, "y": [1.0] * 10}) for n in "AB"}
    p = Patch(encode(Panel([Group("features", [Col("x"), Col("y")])], t, [Break("given")])))
    p.replace("WIDX", b"".join(map(uvarint, numbers)))
    try:
        wstore.open_bytes(p.seal())
    except wstore.FileError as e:
        return e.code
    return None


@pytest.mark.parametrize(
    ("numbers", "good"),
    [
        ([0, 0, 0, 0], True),
        ([1, 1, 8, 0, 1, 0, 0, 0], True),  # a break before row 9
        ([1, 1, 9, 0, 1, 0, 0, 0], False),  # before row 10
        ([1, 2, 0, 7, 0, 1, 1, 0, 0], True),
        ([1, 2, 0, 8, 0, 1, 1, 0, 0], False),
        ([1, 0, 0, 1, 0, 0, 0], False),  # an empty list
        ([1, 1, 1, 0, 0, 0], False),  # not used
        ([2, 1, 0, 1, 1, 0, 2, 0, 0, 0, 1, 0], True),
        ([2, 1, 0, 1, 1, 0, 2, 0, 1, 0, 0, 0], False),  # not in order of use
        ([2, 1, 0, 1, 0, 0, 2, 0, 0, 0, 1, 0], False),  # equal
        ([1, 1, 0, 0, 1, 2, 0, 0], False),  # ticker 2
        ([1, 1, 0, 0, 2, 0, 0, 1, 0, 0], False),
        ([1, 1, 0, 0, 1, 0, 1, 0], False),  # list 1
        ([0, 0, 3, 0], False),
        ([0, 1, 1, 0, 9, 0, 1, 0, 1, 0, 0], True),  # all ten rows
        ([0, 1, 1, 0, 10, 0, 1, 0, 1, 0, 0], False),
        ([0, 1, 1, 9, 0, 0, 1, 1, 1, 1, 0], True),  # the last row, of column 1 and ticker 1
        ([0, 1, 1, 9, 0, 0, 1, 2, 1, 1, 0], False),  # column 2
        ([0, 1, 1, 9, 1, 0, 1, 1, 1, 1, 0], False),
        ([0, 1, 2, 0, 0, 7, 0, 0, 1, 0, 1, 0, 0], True),
        ([0, 1, 2, 0, 0, 8, 0, 0, 1, 0, 1, 0, 0], False),
        ([0, 1, 2, 0, 0, 7, 1, 0, 1, 0, 1, 0, 0], False),
        ([0, 1, 2, 0, 0, 6, 0, 0, 1, 0, 1, 0, 0], True),
        ([0, 0, 0, 1, 0, 0], False),  # a column without a use
        ([0, 0, 0, 0, 0], False),  # too long
        ([0, 0, 0], False),
        ([0, 0], False),
        ([1 << 62], False),
        ([0, 1 << 62], False),
        ([1, 1 << 62], False),
        ([0, 1, 1 << 62], False),
        ([0, 0, 1 << 62], False),
        ([0, 0, 0, 1 << 62], False),
        ([0, 0, 0, 1, 1 << 62, 0], False),
        ([1, 1, (1 << 63) - 1, 0, 1, 0, 0, 0], False),
        ([0, 1, 1, 0, (1 << 63) - 1, 0, 1, 0, 1, 0, 0], False),
        ([1, 3, *[1 << 62] * 3, 0, 1, 0, 0, 0], False),
        ([1, 1, 0, 0, 1, 1 << 62, 0, 0], False),
    ],
)
def test_index(numbers: list[int], good: bool) -> None:
    # The missing cells listed are not there, so only opening is asked.
    assert indexed(numbers) == (None if good else "section_invalid"), numbers


@pytest.mark.parametrize(
    "raw", [b"\x80\0\0\0\0", b"\0\0\0\x80", b"\0\0\0\x80\0", b"\xff" * 8 + b"\x81\0", b"\xff" * 9 + b"\1"]
)
def test_uvarints(raw: bytes) -> None:
    assert code_of(sealed(lambda p: p.replace("WIDX", raw))) == "section_invalid"


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.in_section("CALS", 8, u64(8192 + 64)),
        lambda p: p.in_section("BLKS", 16, u64(8192)),
        lambda p: p.in_section("BLKS", 16, u64(1 << 62)),
    ],
)
def test_layout(change: Callable[[Patch], object]) -> None:
    assert code_of(sealed(change)) == "layout"


def test_layout_of_sections() -> None:
    p = Patch(GOOD)
    at = len(GOOD)
    moved = GOOD[: p.catalog] + bytes(8) + GOOD[p.catalog :]
    p = Patch(bytes(Patch(moved).put(48, u64(at + 8, p.catalog + 8)).b))
    assert code_of(p.seal()) == "layout"


def u32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def number(name: bytes, *bits: int) -> bytes:
    return struct.pack("<H", len(name)) + name + b"\2" + u64(*bits)


def words(name: bytes, values: list[str], *codes: int) -> bytes:
    return struct.pack("<H", len(name)) + name + b"\1" + texts(values) + u32(*codes)


ONE = 0x3FF0000000000000


@pytest.mark.parametrize(
    ("tag", "b", "good"),
    [
        ("CATS", u32(1, 2) + texts([]), True),
        ("CATS", u32(2, 2) + texts(["A", "B"]) + u32(5) + texts(["x"]), True),
        ("CATS", b"\1\0", False),
        ("CATS", u32(0), False),
        ("CATS", u32(8), False),
        ("CATS", u32((1 << 32) - 1), False),
        ("CATS", u32(1, 2), False),
        ("CATS", u32(1, 2) + texts([]) + b"\0", False),
        ("CATS", u32(2, 2) + texts([]), False),
        ("CATS", u32(2, 2) + texts([]) + u32(2) + texts([]), False),
        ("CATS", u32(2, 2) + texts([]) + u32(0) + texts([]), False),
        ("CATS", u32(1, 4) + texts([]), False),  # a mask
        ("CATS", u32(1, 6) + texts([]), False),  # label ends
        ("CATS", u32(1, 7) + texts([]), False),
        ("CATS", u32(1, 2, (1 << 32) - 1), False),
        ("CATS", u32(1, 2, 1 << 24), False),
        ("CATS", u32(1, 2, 2, 2, 1) + b"AB", False),
        ("CATS", u32(1, 2, 1, (1 << 32) - 1) + b"A", False),
        ("CATS", u32(1, 2, 1, 2) + b"A", False),
        ("CATS", u32(1, 2) + texts([""]), False),
        ("CATS", u32(1, 2) + texts(["", "A"]), False),
        ("CATS", u32(1, 2) + texts(["A" * 65535]), True),
        ("CATS", u32(1, 2) + texts(["A" * 65536]), False),
        ("CATS", u32(1, 2) + texts(["B", "A"]), False),
        ("CATS", u32(1, 2) + texts(["A", "A"]), False),
        ("CATS", u32(1, 2, 1, 1) + b"\xff", False),
        ("CATS", u32(1, 2, 2, 1, 2) + b"\xc3\xa9", False),
        ("STAT", u32(1) + words(b"a", [], 0, 0, 0, 0), True),
        ("STAT", u32(1) + words(b"a", ["A", "B"], 2, 1, 1, 0), True),
        ("STAT", u32(2) + number(b"a", ONE, 0, 1 << 63, 0x7FF8 << 48) + words(b"b", [], 0, 0, 0, 0), True),
        ("STAT", u32(0), False),
        ("STAT", u32(65536), False),
        ("STAT", u32(2) + number(b"a", 0, 0, 0, 0), False),
        ("STAT", u32(1) + number(b"a", 0, 0, 0, 0) + b"\0", False),
        ("STAT", u32(1) + number(b"a", 0, 0, 0), False),
        ("STAT", u32(1) + number(b"", 0, 0, 0, 0), False),
        ("STAT", u32(1) + number(b"a" * 256, 0, 0, 0, 0), False),
        ("STAT", u32(1) + number(b"\xff", 0, 0, 0, 0), False),
        ("STAT", u32(2) + number(b"a", 0, 0, 0, 0) + number(b"a", 0, 0, 0, 0), False),
        ("STAT", u32(2) + number(b"b", 0, 0, 0, 0) + number(b"a", 0, 0, 0, 0), False),
        ("STAT", u32(1) + number(b"a", 0x7FF0 << 48, 0, 0, 0), False),
        ("STAT", u32(1) + number(b"a", 0, 0, 0, 0xFFF0 << 48), False),
        ("STAT", u32(1) + number(b"a", 0, 0, 0, 0xFFF8 << 48), False),
        ("STAT", u32(1) + number(b"a", 0, 0, 0, (0x7FF8 << 48) + 1), False),
        ("STAT", u32(1) + b"\1\0a\0" + u64(0, 0, 0, 0), False),
        ("STAT", u32(1) + b"\1\0a\3" + u64(0, 0, 0, 0), False),
        ("STAT", u32(1) + words(b"a", ["A"], 1, 2, 0, 0), False),
        ("STAT", u32(1) + words(b"a", ["A"], 1, (1 << 32) - 1, 0, 0), False),
        ("STAT", u32(1) + words(b"a", ["A"], 0, 0, 0, 0), False),
        ("STAT", u32(1) + words(b"a", ["B", "A"], 1, 2, 0, 0), False),
        ("STAT", u32(1) + words(b"a", ["A"], 1, 0, 0), False),
    ],
)
def test_labels(tag: str, b: bytes, good: bool) -> None:
    # The digest is not that of the labels, so only opening is asked.
    changed = Patch(LABELLED).replace(tag, b).seal()
    if good:
        wstore.open_bytes(changed)
        assert code_of(changed) in ("cell_invalid", "digest_mismatch")
        return
    with pytest.raises(wstore.CorruptError) as e:
        wstore.open_bytes(changed)
    assert (e.value.code, e.value.section) == ("section_invalid", tag)


@pytest.mark.parametrize(
    "bits", [0x40800000, 0xBF800000, 0x80000000, 0x3F800001, 1, 0x4B800000, 0x7F800000, 0xFFC00000]
)
def test_cells_are_codes(bits: int) -> None:
    p = labelled()
    p.tickers["BRK.B"].values["sector"][1] = struct.unpack("<f", u32(bits))[0]
    b = encode(p)
    if bits & 0x7F800000 == 0x7F800000:  # the encoder makes it a missing one
        assert code_of(b) is None
    else:
        assert code_of(b) == "cell_invalid"
    p.categories["sector"].append("鸡")
    assert (code_of(encode(p)) is None) == (bits in (0x40800000, 0x7F800000, 0xFFC00000))


def test_labels_as_python_has_them() -> None:
    store = wstore.open_bytes(LABELLED)
    assert store.categories("sector") == ["Energy", "IT", "é", "株"]
    assert store.categories("none") == []
    assert store.categories("a") is None
    with pytest.raises(wstore.NotFoundError, match="did you mean 'sector'"):
        store.categories("secto")
    assert list(store.attributes) == ["beta", "empty", "home", "sector"]
    home, beta = store.attributes["home"], store.attributes["beta"]
    assert home.tolist() == ["US", "US", None, "JP"]
    assert beta.dtype == np.float64
    assert str(beta.tolist()) == "[1.5, nan, -0.0, 1e-310]"
    assert store.attributes["home"] is home
    for a in store.attributes.values():
        assert not a.flags.writeable
    assert wstore.open_bytes(GOOD).attributes == {}


def test_labels_are_in_the_digest() -> None:
    changes: list[Callable[[Panel], object]] = [
        lambda p: p.attributes.clear(),
        lambda p: p.attributes.update(beta=[1.5, 1.5, 1.5, 1.5]),
        lambda p: p.categories["sector"].append("鸡"),
    ]
    for change in changes:
        p = labelled()
        change(p)
        other = encode(p)
        assert code_of(other) is None
        assert wstore.open_bytes(other).digest != wstore.open_bytes(LABELLED).digest


def data_at(p: Patch, ticker: int, group: int) -> int:
    at: int = struct.unpack_from("<Q", p.get("BLKS"), 16 + 8 * (ticker * 4 + group))[0]
    return at


def rehash(p: Patch) -> Patch:
    """Sets the chunk checksums of calendars and blocks right, all of which have one chunk here."""
    cals = bytearray(p.get("CALS"))
    (n,) = struct.unpack_from("<Q", cals)
    for c in range(n):
        o, e = struct.unpack_from("<Q", cals, 8 + 8 * c)[0], struct.unpack_from("<Q", cals, 8 + 8 * (n + c))[0]
        struct.pack_into("<Q", cals, 8 + 24 * n + 8 * c, xxh(bytes(p.b[o : o + 8 * e])))
    p.in_section("CALS", 0, bytes(cals))
    blks = bytearray(p.get("BLKS"))
    at = 16 + 16 * T * 4
    for i in range(T * 4):
        o, rows = struct.unpack_from("<Q", blks, 16 + 8 * i)[0], struct.unpack_from("<Q", blks, 16 + 8 * (T * 4 + i))[0]
        if rows:
            struct.pack_into("<Q", blks, at, xxh(bytes(p.b[o : o + rows * (8, 4, 4, 8)[i % 4]])))
            at += 8
    p.in_section("BLKS", 0, bytes(blks))
    return p


NAN = struct.pack("<I", 0x7FC00000)


DAMAGED: list[tuple[str, Callable[[Patch], object]]] = [
    ("data_checksum", lambda p: p.put(8192, b"\1")),
    ("data_checksum", lambda p: p.put(data_at(p, 0, 0), b"\1")),
    ("data_checksum", lambda p: p.put(data_at(p, 3, 3), b"\1")),
    ("padding", lambda p: p.put(512, b"\1")),
    ("padding", lambda p: p.put(8191, b"\1")),
    ("padding", lambda p: p.put(p.catalog - 1, b"\1")),
    ("padding", lambda p: p.put(data_at(p, 3, 0) - 1, b"\1")),
    ("calendar_order", lambda p: rehash(p.put(8200, u64(0)))),
    ("calendar_order", lambda p: rehash(p.put(8200, struct.pack("<q", -1)))),
    ("cell_invalid", lambda p: rehash(p.put(data_at(p, 0, 0), struct.pack("<f", float("inf"))))),
    ("cell_invalid", lambda p: rehash(p.put(data_at(p, 0, 1), struct.pack("<f", float("-inf"))))),
    ("cell_invalid", lambda p: rehash(p.put(data_at(p, 0, 0), struct.pack("<I", 0x7FC00001)))),
    ("cell_invalid", lambda p: rehash(p.put(data_at(p, 0, 0), struct.pack("<I", 0xFFC00000)))),
    # A wrong cell behind one that the index does not list: the cell comes first.
    ("cell_invalid", lambda p: rehash(p.put(data_at(p, 0, 0), NAN + struct.pack("<I", 0x7F800001)))),
    ("index_mismatch", lambda p: rehash(p.put(data_at(p, 0, 0), NAN))),
    ("index_mismatch", lambda p: rehash(p.put(data_at(p, 0, 0) + 2 * 8, struct.pack("<f", 1.0)))),
    ("index_mismatch", lambda p: rehash(p.put(data_at(p, 0, 1), NAN))),
    ("index_mismatch", lambda p: rehash(p.put(8192 + 7 * 8, u64(100)))),
    ("index_mismatch", lambda p: rehash(p.put(8192 + 4 * 8, u64(8)))),
    ("digest_mismatch", lambda p: rehash(p.put(data_at(p, 0, 0), struct.pack("<f", -1.5)))),
    ("digest_mismatch", lambda p: rehash(p.put(data_at(p, 0, 3), u64(77)))),
    ("digest_mismatch", lambda p: p.in_section("DGST", 0, b"\1\2")),
]


@pytest.mark.parametrize(("code", "change"), DAMAGED)
def test_data(code: str, change: Callable[[Patch], object]) -> None:
    p = Patch(GOOD)
    change(p)
    b = p.seal()
    store = wstore.open_bytes(b)
    with pytest.raises(wstore.CorruptError) as e:
        store.verify()
    assert e.value.code == code
    with pytest.raises(wstore.CorruptError):
        wstore.open_bytes(b, verify=True)


def test_gaps_are_compared_without_overflow() -> None:
    low, high = -(1 << 63), (1 << 63) - 1
    t = Ticker([low, 0, high], {"x": [1.0] * 3})
    p = Panel([Group("features", [Col("x")])], {"T": t}, [Break("gap", 1, (1 << 63) - 1)])
    store = wstore.open_bytes(encode(p), verify=True)
    assert [len(store.windows(n)) for n in (1, 2, 3)] == [3, 1, 0]


def test_long_blocks_and_calendars_have_several_chunks() -> None:
    n = 20_000
    x: list[float | int | None] = [None if i % 777 == 5 or 9000 < i < 12_000 else float(i) for i in range(n)]
    p = Panel([Group("features", [Col("x"), Col("y")])], {"T": Ticker(list(range(n)), {"x": x, "y": [0.5] * n})})
    b = encode(p)
    assert code_of(b) is None
    store = wstore.open_bytes(b)
    for at in (8192 + 65536, 8192 + 8 * n - 1, int(store._layout.blocks.offset[0]) + 65536, int(b.rindex(b"\0\0\0?"))):
        assert code_of(b[:at] + bytes([b[at] ^ 1]) + b[at + 1 :]) == "data_checksum"


def test_verification_looks_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    from wstore import _verify

    monkeypatch.setattr(_verify, "_STEP", 16)
    assert code_of(GOOD) is None
    for damaged in DAMAGED:
        test_data(*damaged)


def tiny() -> bytes:
    t = Ticker([1, 2, 9], {"x": [1.0, None, -0.0]})
    return encode(Panel([Group("g", [Col("x")])], {"T": t}, [Break("b", 1, 5)]))


def test_every_flipped_bit_is_found() -> None:
    # All bits where something lives, one of each sixteen bytes elsewhere.
    good = tiny()
    live = np.frombuffer(good, np.uint8) != 0
    for at in range(len(good)):
        near = live[max(0, at - 8) : at + 8].any()
        for bit in range(8) if near else (at // 16 % 8,) if at % 16 == 0 else ():
            b = bytearray(good)
            b[at] ^= 1 << bit
            assert code_of(bytes(b)) is not None, (at, bit)


def test_every_cut_is_found() -> None:
    for n in range(len(GOOD)):
        code = code_of(GOOD[:n])
        assert code == ("not_wstore" if n < 8 else "truncated"), n


@settings(max_examples=300)
@given(st.data())
def test_hostile_files_open_safely_or_not_at_all(data: st.DataObject) -> None:
    """Any change of metadata, with all checksums set right: what opens can be read to the last window."""
    p = Patch(LABELLED)
    tags = ["SCHM", "TICK", "CALS", "BLKS", "WIDX", "CATS", "STAT"]
    places = [(p.catalog, p.length), (0, 512), *map(p.section, tags)]
    for _ in range(data.draw(st.integers(1, 3))):
        start, n = data.draw(st.sampled_from(places))
        at = start + data.draw(st.integers(0, n - 1))
        value = data.draw(
            st.sampled_from([b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff" * 7 + b"\x7f", u64(1 << 60)])
        )
        p.put(at, value[: start + n - at])
    try:
        b = p.seal(sums=True)
    except struct.error:  # the catalog points out of the file, so that its checksums can't be set
        b = p.seal("catalog")
    try:
        store = wstore.open_bytes(b)
    except wstore.FileError:
        return
    read_all(store)


def read_all(store: wstore.Store) -> None:
    repr(store)
    for t in store.tickers:
        assert store.times(t).size == store.series(t, store.columns[0]).size
    for a in store.attributes.values():
        assert a.shape == (len(store.tickers),)
    inputs = [c.name for c in store.schema.columns if c.role != "label_end"]
    for c in inputs:
        store.categories(c)
    for lookback in (1, 3):
        w = store.windows(lookback, inputs=inputs[:1], targets=inputs[-1:], optional=inputs[:1])
        w.gather(range(len(w)))
        w.label_end(range(len(w)))
        for i in range(len(w)):
            assert w[i][0].shape == (lookback, 1)
    store.windows(1, inputs=inputs, from_=0, to=5, where=inputs)
    store.windows(1, inputs=inputs, at=[0, 1, 2])
    with contextlib.suppress(wstore.CorruptError):
        store.verify()


@settings(max_examples=50)
@given(st.data())
def test_random_bytes_as_sections(data: st.DataObject) -> None:
    p = Patch(GOOD)
    tag = data.draw(st.sampled_from(["SCHM", "TICK", "CALS", "BLKS", "WIDX"]))
    p.replace(tag, data.draw(st.binary(min_size=1, max_size=200)))
    with pytest.raises(wstore.FileError) as e:
        wstore.open_bytes(p.seal())
    assert e.value.code == "section_invalid"


@given(st.integers(0, 2**32 - 1))
def test_any_panel_is_read_back(seed: int) -> None:
    p = any_panel(Random(seed))
    store = wstore.open_bytes(encode(p), verify=True)
    assert store.tickers == tuple(p.names())
    for n in p.names():
        assert store.times(n).view(np.int64).tolist() == p.tickers[n].times
        for c in p.columns():
            want = np.array(p.tickers[n].values[c.name], np.float32)
            assert np.array_equal(store.series(n, c.name), want, equal_nan=True)
    assert {c: v for c in store.columns if (v := store.categories(c)) is not None} == p.categories
    assert list(store.attributes) == sorted(p.attributes, key=str.encode)
    for name, values in p.attributes.items():
        got = store.attributes[name]
        if got.dtype == object:
            assert got.tolist() == values
        else:
            want = np.array([np.nan if v is None else v for v in values], np.float64)
            assert np.array_equal(got, np.where(np.isfinite(want), want, np.nan), equal_nan=True)
    # The digest does not depend on alignment or provenance.
    p.align_log2, p.prov = 13, b"{}"
    assert wstore.open_bytes(encode(p)).digest == store.digest


def test_the_small_file_of_the_specification() -> None:
    path = Path(__file__).parents[2] / "spec" / "SPEC.md"
    if not path.exists():
        pytest.skip("the specification is in the repository, not in the package")
    dump = path.read_text().split("<!-- dump: begin -->")[1].split("<!-- dump: end -->")[0]
    b = bytearray()
    for line in dump.splitlines():
        if run := re.match(r" *(\d+)  00 × (\d+) ", line):
            at, piece = int(run[1]), bytes(int(run[2]))
        elif some := re.match(r" *(\d+)  ((?:[0-9a-f]{2} ?)+)", line):
            at, piece = int(some[1]), bytes.fromhex(some[2])
        else:
            continue
        assert at == len(b), line
        b += piece
    days = [1672617600, 1672704000, 1672790400, 1673222400]
    aapl = Ticker(days, {"open": [130.5, 126, 127, 131.25], "close": [None, 125, 126.5, 133.5]})
    ko = Ticker(days[1:3], {"open": [63.5, 62.75], "close": [62.5, 63]})
    p = Panel([Group("features", [Col("open"), Col("close")])], {"AAPL": aapl, "KO": ko}, [Break("gap", 1, 259200)])
    assert bytes(b) == encode(p)
    assert code_of(bytes(b)) is None


def test_the_sections_of_the_specification() -> None:
    path = Path(__file__).parents[2] / "spec" / "SPEC.md"
    if not path.exists():
        pytest.skip("the specification is in the repository, not in the package")
    p = Panel([Group("features", [Col("open"), Col("close")])])
    p.categories = {"close": ["Energy", "Technology"]}
    p.attributes = {"beta": [1.25, None], "sector": ["Technology", "Staples"]}
    for tag, want in (("CATS", categories(p)), ("STAT", attributes(p))):
        dump = path.read_text().split(f"<!-- dump: {tag} -->")[1].split(f"<!-- dump: end of {tag} -->")[0]
        pieces = re.findall(r"(?m)^ *\d+  ((?:[0-9a-f]{2} ?)+)", dump)
        assert b"".join(map(bytes.fromhex, pieces)) == want
