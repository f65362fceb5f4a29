package format

import (
	"encoding/binary"
	"math"
)

// Extents holds the places and chunk checksums of calendars or blocks, in their order, SPEC sections 5.3 and 5.4.
type Extents struct {
	Offset   []int64
	Capacity []int64 // entries or rows
	sums     []byte  // u64 per chunk, refers to the section's bytes
	sumStart []int64 // first chunk of each extent, and the number of all behind the last
}

// Sums returns the checksums of the chunks of extent i as little-endian u64, 8 bytes each. They refer to the decoded
// section.
func (e *Extents) Sums(i int) []byte { return e.sums[8*e.sumStart[i] : 8*e.sumStart[i+1]] }

// NewExtents returns extents with the given chunk checksums, 8 bytes for each chunk of bytes[i] in turn.
func NewExtents(offset, capacity, bytes []int64, sums []byte) *Extents {
	e := &Extents{Offset: offset, Capacity: capacity, sums: sums, sumStart: make([]int64, len(bytes)+1)}
	for i, n := range bytes {
		e.sumStart[i+1] = e.sumStart[i] + Chunks(n)
	}
	return e
}

// checkOffsets reports an offset that can't be that of an extent, whatever the layout; base is the absolute offset of
// the first.
func (e *Extents) checkOffsets(section string, base, align int64) error {
	for i, off := range e.Offset {
		if e.Capacity[i] == 0 {
			if off != 0 {
				return corrupt(SectionInvalid, section, base+8*int64(i), "offset %d of an empty block, must be 0", off)
			}
		} else if off < DataStart || off%align != 0 {
			return corrupt(SectionInvalid, section, base+8*int64(i), "offset %d, must be a multiple of %d from %d on", off, align, DataStart)
		}
	}
	return nil
}

// Calendars holds the calendars of a file.
type Calendars struct {
	Extents
	Entries []int64
}

// Blocks holds the blocks of a file: that of ticker t and group g at index t·G + g.
type Blocks struct{ Extents }

// AppendCalendars appends the bytes of `CALS`.
func AppendCalendars(dst []byte, c *Calendars) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(c.Entries)))
	dst = appendSizes(dst, c.Offset)
	dst = appendSizes(dst, c.Entries)
	dst = appendSizes(dst, c.Capacity)
	return append(dst, c.sums...)
}

// AppendBlocks appends the bytes of a `BLKS` section that covers all tickers.
func AppendBlocks(dst []byte, b *Blocks, tickers int) []byte {
	dst = appendSizes(dst, []int64{0, int64(tickers)})
	dst = appendSizes(dst, b.Offset)
	dst = appendSizes(dst, b.Capacity)
	return append(dst, b.sums...)
}

// extents reads the chunk checksums of extents of the given bytes; a negative number of bytes stands for an overflow.
func (c *cursor) extents(offset, capacity, bytes []int64) *Extents {
	e := &Extents{Offset: offset, Capacity: capacity, sumStart: make([]int64, len(bytes)+1)}
	for i, n := range bytes {
		chunks := Chunks(n)
		if n < 0 || uint64(e.sumStart[i]+chunks) > c.left()/8 {
			c.fail("the chunk checksums do not fit")
			return e
		}
		e.sumStart[i+1] = e.sumStart[i] + chunks
	}
	e.sums = c.take(8*uint64(e.sumStart[len(bytes)]), "chunk checksums")
	return e
}

// DecodeCalendars decodes the bytes of `CALS` of a sealed file, which start at the absolute offset base.
func DecodeCalendars(b []byte, base int64) (*Calendars, error) {
	c := cursor{b: b, base: base, section: TagCalendars, code: SectionInvalid}
	n := uint64(c.size("calendars"))
	offset, entries, capacity := c.sizes(n, "offset"), c.sizes(n, "entries"), c.sizes(n, "capacity")
	bytes := make([]int64, len(entries))
	for i := range bytes {
		if c.err != nil {
			break
		}
		if entries[i] < 1 || entries[i] > math.MaxInt64/8 {
			c.failAt(8+8*(len(entries)+i), "calendar %d has %d entries", i, entries[i])
		} else if capacity[i] != entries[i] {
			c.failAt(8+8*(2*len(entries)+i), "calendar %d has capacity %d for %d entries in a sealed file", i, capacity[i], entries[i])
		}
		bytes[i] = 8 * entries[i]
	}
	if c.err != nil {
		return nil, c.err
	}
	e := c.extents(offset, capacity, bytes)
	if err := c.done(); err != nil {
		return nil, err
	}
	return &Calendars{Extents: *e, Entries: entries}, nil
}

// CheckTickers reports a ticker whose entries are not in its calendar; base is the absolute offset of `TICK`.
func (c *Calendars) CheckTickers(t *Tickers, base int64) error {
	for i, rows := range t.Rows {
		if rows == 0 {
			continue
		}
		k := t.Calendar[i]
		if k >= int64(len(c.Entries)) || t.First[i] > c.Entries[k] || rows > c.Entries[k]-t.First[i] {
			return corrupt(SectionInvalid, TagTickers, base+8+8*int64(len(t.Rows)+i),
				"rows %d of ticker %q from entry %d on are not in calendar %d", rows, t.Names[i], t.First[i], k)
		}
	}
	return nil
}

// DecodeBlocks decodes the bytes of `BLKS` of a sealed file, which start at the absolute offset base.
func DecodeBlocks(b []byte, base int64, t *Tickers, s *Schema) (*Blocks, error) {
	c := cursor{b: b, base: base, section: TagBlocks, code: SectionInvalid}
	if first := c.size("first_ticker"); first != 0 {
		c.failAt(0, "first_ticker is %d, must be 0 in a sealed file", first)
	}
	if n := c.size("tickers"); n != int64(len(t.Names)) {
		c.failAt(8, "it covers %d tickers of %d", n, len(t.Names))
	}
	rowBytes := s.RowBytes()
	n := uint64(len(t.Names)) * uint64(len(rowBytes))
	offset, capacity := c.sizes(n, "offset"), c.sizes(n, "capacity")
	if c.err != nil {
		return nil, c.err
	}
	bytes := make([]int64, n)
	for i := range bytes {
		rows := t.Rows[i/len(rowBytes)]
		if capacity[i] != rows {
			c.failAt(16+8*(int(n)+i), "the block has capacity %d for %d rows in a sealed file", capacity[i], rows)
			return nil, c.err
		}
		var ok bool
		if bytes[i], ok = mul(rows, rowBytes[i%len(rowBytes)]); !ok {
			bytes[i] = -1
		}
	}
	e := c.extents(offset, capacity, bytes)
	if err := c.done(); err != nil {
		return nil, err
	}
	return &Blocks{*e}, nil
}
