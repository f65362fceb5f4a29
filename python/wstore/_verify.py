"""Section 10 of the specification: every byte of a file checked, in bounded memory."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ._format import CHUNK, I64, MISSING_BITS, SLOT_OFFSETS, SLOT_SIZE, Chunked, Layout, slot_state, xxh64
from .errors import CorruptError

_STEP = 64 * CHUNK  # bytes that are looked at together


def verify(path: str, layout: Layout, data: npt.NDArray[np.uint8]) -> None:
    """Raises a CorruptError for the first check of section 10 that fails."""
    _Verifier(path, layout, data).run()


def is_code(bits: npt.NDArray[np.uint32], count: int) -> npt.NDArray[np.bool_]:
    """Which float32 are a number from 0 to count - 1, bit by bit."""
    value = bits.view("<f4")
    with np.errstate(invalid="ignore"):
        inside = (value >= 0) & (value < count)
    number = np.where(inside, value, 0).astype(np.uint32)
    same: npt.NDArray[np.bool_] = number.astype("<f4").view("<u4") == bits
    return inside & same


class _Verifier:
    def __init__(self, path: str, layout: Layout, data: npt.NDArray[np.uint8]) -> None:
        self.path = path
        self.layout = layout
        self.data = data

    def bad(self, code: str, section: str, offset: int | None, detail: str) -> NoReturn:
        raise CorruptError(self.path, section, offset, code, detail)

    def run(self) -> None:
        self.slots()
        self.padding()
        self.sections()
        for c in range(len(self.layout.calendars.count)):
            self.calendar(c)
        for g, group in enumerate(self.layout.schema.groups):
            for t in range(len(self.layout.names)):
                if self.layout.rows[t]:
                    self.block(t, g, group.row_bytes, group.dtype == "float32")
        for b, rule in enumerate(self.layout.schema.breaks):
            if rule.kind == "gap":
                for t in range(len(self.layout.names)):
                    self.gaps(t, b, rule.max_gap)
        self.digest()

    def slots(self) -> None:
        for i, slot in enumerate(self.layout.slots):
            if slot_state(slot) == "damaged":
                self.bad("slot_damaged", f"slot {i}", SLOT_OFFSETS[i], "the slot is neither zero nor valid")
        if any(self.layout.slots[1]):
            self.bad("slot_invalid", "slot 1", SLOT_OFFSETS[1], "slot 1 of a sealed file must be zero")

    def padding(self) -> None:
        at = SLOT_SIZE
        for start, end in self.live():
            for piece in range(at, start, _STEP):
                part = self.data[piece : min(piece + _STEP, start)]
                if part.any():
                    self.bad("padding", "padding", piece + int(np.argmax(part != 0)), "padding is not zero")
            at = max(at, end)

    def live(self) -> Iterator[tuple[int, int]]:
        """What lies behind slot 0 and is not padding, in order of place: that of section 6."""
        layout = self.layout
        yield SLOT_OFFSETS[1], SLOT_OFFSETS[1] + SLOT_SIZE
        for o, n in zip(layout.calendars.offset.tolist(), layout.calendars.count.tolist(), strict=True):
            yield o, o + 8 * n
        groups = layout.schema.groups
        for g, group in enumerate(groups):
            offsets = layout.blocks.offset[g :: len(groups)]
            for o, n in zip(offsets.tolist(), layout.rows.tolist(), strict=True):
                if n:
                    yield o, o + n * group.row_bytes
        for e in layout.entries:
            yield e.offset, e.offset + e.length
        yield layout.slot.catalog_offset, layout.size

    def sections(self) -> None:
        checked = {b"SCHM", b"TICK", b"CALS", b"BLKS", b"WIDX", b"DGST", b"CATS", b"STAT"}
        for e in self.layout.entries:
            if e.tag not in checked and xxh64(self.data[e.offset : e.offset + e.length]) != e.checksum:
                self.bad("section_checksum", e.tag.decode(), e.offset, "the section is damaged")

    def chunks(self, of: Chunked, i: int, item_bytes: int, section: str, what: str) -> None:
        start = int(of.offset[i])
        end = start + int(of.count[i]) * item_bytes
        sums = of.checksums[of.chunk_ptr[i] : of.chunk_ptr[i + 1]].tolist()
        for at, want in zip(range(start, end, CHUNK), sums, strict=True):
            if xxh64(self.data[at : min(at + CHUNK, end)]) != want:
                self.bad("data_checksum", section, at, f"{what} is damaged")

    def times(self, calendar: int, first: int, rows: int) -> I64:
        at = int(self.layout.calendars.offset[calendar]) + 8 * first
        return self.data[at : at + 8 * rows].view("<i8")

    def calendar(self, c: int) -> None:
        calendars = self.layout.calendars
        self.chunks(calendars, c, 8, "calendar", f"calendar {c}")
        n = int(calendars.count[c])
        for at in range(0, n - 1, _STEP // 8):
            t = self.times(c, at, min(_STEP // 8 + 1, n - at))
            wrong = t[1:] <= t[:-1]
            if wrong.any():
                i = at + int(np.argmax(wrong)) + 1
                byte = int(calendars.offset[c]) + 8 * i
                self.bad(
                    "calendar_order",
                    "calendar",
                    byte,
                    f"calendar {c}: entry {i} is not later than the one before",
                )

    def block(self, t: int, g: int, row_bytes: int, is_float: bool) -> None:
        layout = self.layout
        i = t * len(layout.schema.groups) + g
        group = layout.schema.groups[g]
        what = f"ticker {layout.names[t].decode()!r}, group {group.name!r}"
        self.chunks(layout.blocks, i, row_bytes, "block", what)
        if not is_float:
            return
        rows, width = int(layout.rows[t]), len(group.columns)
        start = int(layout.blocks.offset[i])
        runs = [self.missing(group.first + k, t) for k in range(width)]
        categories = {c - group.first: len(v) for c, v in layout.categories.items() if 0 <= c - group.first < width}
        step = max(1, _STEP // row_bytes)
        mismatch: tuple[int, str] | None = None
        for row in range(0, rows, step):
            n = min(step, rows - row)
            at = start + row * row_bytes
            bits = self.data[at : at + n * row_bytes].view("<u4").reshape(n, width)
            missing = bits == MISSING_BITS
            invalid = (bits & 0x7F800000 == 0x7F800000) & ~missing
            for k, count in categories.items():
                invalid[:, k] |= ~missing[:, k] & ~is_code(bits[:, k], count)
            if invalid.any():
                cell = int(np.argmax(invalid))
                k = cell % width
                rule = "no number of a category" if k in categories else "neither finite nor missing"
                self.bad("cell_invalid", "block", at + 4 * cell, f"{what}: {group.columns[k]!r} is {rule}")
            if mismatch is not None:
                continue
            for k, (starts, ends) in enumerate(runs):
                wrong = missing[:, k]
                lo = int(np.searchsorted(ends, row, "right"))
                hi = int(np.searchsorted(starts, row + n, "left"))
                if lo < hi:
                    edges = np.zeros(n + 1, np.int8)
                    edges[np.maximum(starts[lo:hi] - row, 0)] += 1
                    edges[np.minimum(ends[lo:hi] - row, n)] -= 1
                    wrong = wrong != np.cumsum(edges[:n], dtype=np.int8).astype(bool)
                if wrong.any():
                    r = int(np.argmax(wrong))
                    text = f"{what}: {group.columns[k]!r}, row {row + r}: cells and index differ on what is missing"
                    mismatch = at + r * row_bytes + 4 * k, text
                    break
        if mismatch is not None:
            self.bad("index_mismatch", "block", *mismatch)

    def missing(self, column: int, t: int) -> tuple[I64, I64]:
        index = self.layout.index
        uses = index.missing.get(column)
        if uses is not None:
            i = int(np.searchsorted(uses.tickers, t))
            if i < len(uses.tickers) and uses.tickers[i] == t:
                a, b = index.missing_ptr[uses.lists[i] : uses.lists[i] + 2]
                return index.missing_start[a:b], index.missing_end[a:b]
        none = np.empty(0, np.int64)
        return none, none

    def breaks(self, b: int, t: int) -> I64:
        index = self.layout.index
        uses = index.breaks[b]
        i = int(np.searchsorted(uses.tickers, t))
        if i < len(uses.tickers) and uses.tickers[i] == t:
            return index.break_row[index.break_ptr[uses.lists[i]] : index.break_ptr[uses.lists[i] + 1]]
        return np.empty(0, np.int64)

    def gaps(self, t: int, b: int, max_gap: int) -> None:
        layout = self.layout
        rows = int(layout.rows[t])
        listed = self.breaks(b, t)
        for row in range(0, rows - 1, _STEP // 8):
            n = min(_STEP // 8 + 1, rows - row)
            times = self.times(int(layout.calendar[t]), int(layout.first[t]) + row, n)
            # Differences of i64 need 64 unsigned bits.
            gaps = np.flatnonzero(np.diff(times.view("<u8")) > np.uint64(max_gap)) + row + 1
            lo, hi = np.searchsorted(listed, (row + 1, row + n))
            if not np.array_equal(gaps, listed[lo:hi]):
                rule, ticker = layout.schema.breaks[b].name, layout.names[t].decode()
                text = f"ticker {ticker!r}: the breaks {rule!r} are not those of its times"
                self.bad("index_mismatch", "WIDX", None, text)

    def digest(self) -> None:
        layout = self.layout
        h = hashlib.sha256(b"wstore-digest-1\n")
        u64 = struct.Struct("<Q").pack
        h.update(u64(len(layout.schema_bytes)) + layout.schema_bytes + u64(len(layout.names)))
        groups = len(layout.schema.groups)
        known: dict[tuple[int, int, int], int] = {}
        for t, name in enumerate(layout.names):
            where = int(layout.calendar[t]), int(layout.first[t]), int(layout.rows[t])
            if where not in known:
                known[where] = xxh64(self.times(*where) if where[2] else b"")
            h.update(u64(len(name)) + name + u64(where[2]) + u64(known[where]))
            a, b = layout.blocks.chunk_ptr[t * groups], layout.blocks.chunk_ptr[(t + 1) * groups]
            h.update(layout.blocks.checksums[a:b].tobytes())
            for s in range(len(layout.schema.breaks)):
                rows = self.breaks(s, t)
                h.update(u64(len(rows)) + rows.astype("<u8").tobytes())
        for e in layout.entries:
            if e.tag in (b"CATS", b"STAT"):
                h.update(e.tag + u64(e.length) + self.data[e.offset : e.offset + e.length].tobytes())
        if h.digest() != layout.digest:
            at = next(e.offset for e in layout.entries if e.tag == b"DGST")
            self.bad("digest_mismatch", "DGST", at, "the digest is not that of the content")
