package format

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// cursor reads bytes that can't be trusted. The first error sticks and stops everything after it; its offset is absolute.
type cursor struct {
	b       []byte
	pos     int
	base    int64 // absolute offset of b[0]
	section string
	code    Code
	err     *CorruptError
}

func (c *cursor) fail(detail string, args ...any) {
	c.failAt(c.pos, detail, args...)
}

func (c *cursor) failAt(pos int, detail string, args ...any) {
	if c.err == nil {
		c.err = corrupt(c.code, c.section, c.base+int64(pos), detail, args...)
	}
}

func (c *cursor) left() uint64 { return uint64(len(c.b) - c.pos) }

// take returns the next n bytes, which refer to the input, or nil at an error.
func (c *cursor) take(n uint64, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n > c.left() {
		c.fail("%s needs %d bytes, %d are left", what, n, c.left())
		return nil
	}
	b := c.b[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u8(what string) uint8 {
	if b := c.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16(what string) uint16 {
	if b := c.take(2, what); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32(what string) uint32 {
	if b := c.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// size reads a u64 that must be below 2^63.
func (c *cursor) size(what string) int64 {
	v := c.u64(what)
	if v > 1<<63-1 {
		c.failAt(c.pos-8, "%s is %d, above 2^63-1", what, v)
		return 0
	}
	return int64(v)
}

// sizes reads n u64 that must be below 2^63. The bytes present are checked before anything is allocated.
func (c *cursor) sizes(n uint64, what string) []int64 {
	if c.err == nil && n > c.left()/8 {
		c.fail("%s needs %d numbers of 8 bytes, %d bytes are left", what, n, c.left())
	}
	if c.err != nil {
		return nil
	}
	s := make([]int64, n)
	for i := range s {
		s[i] = c.size(what)
	}
	return s
}

// zero reads reserved bytes.
func (c *cursor) zero(n uint64, what string) {
	for i, b := range c.take(n, what) {
		if b != 0 {
			c.failAt(c.pos-int(n)+i, "reserved byte of %s is %#02x, must be zero", what, b)
			return
		}
	}
}

// str reads a length of two bytes and a text of lo to hi bytes.
func (c *cursor) str(what string, lo, hi int) string {
	at := c.pos
	s := string(c.take(uint64(c.u16(what)), what))
	if c.err != nil {
		return ""
	}
	if len(s) < lo || len(s) > hi {
		c.failAt(at, "%s has %d bytes, must have %d to %d", what, len(s), lo, hi)
	} else if !utf8.ValidString(s) {
		c.failAt(at, "%s is not valid UTF-8", what)
	}
	return s
}

// uvarint reads a number in shortest form and below 2^63.
func (c *cursor) uvarint(what string) int64 {
	if c.err != nil {
		return 0
	}
	b := c.b[c.pos:]
	if len(b) > 0 && b[0] < 0x80 {
		c.pos++
		return int64(b[0])
	}
	var v uint64
	for i := 0; i < len(b) && i < MaxUvarint; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			if b[i] == 0 {
				c.fail("%s: uvarint is not in its shortest form", what)
				return 0
			}
			c.pos += i + 1
			return int64(v)
		}
	}
	if len(b) < MaxUvarint {
		c.fail("%s: uvarint is cut off", what)
	} else {
		c.fail("%s: uvarint is longer than %d bytes", what, MaxUvarint)
	}
	return 0
}

// count reads a uvarint that counts things of at least unit bytes each, so that it is bounded by the bytes left.
func (c *cursor) count(what string, unit uint64) int {
	at := c.pos
	n := c.uvarint(what)
	if c.err == nil && uint64(n) > c.left()/unit {
		c.failAt(at, "%s is %d, %d bytes are left", what, n, c.left())
		return 0
	}
	return int(n)
}

// done reports the sticky error, or bytes that are left over.
func (c *cursor) done() error {
	if c.err == nil && c.left() > 0 {
		c.fail("%d bytes are left over", c.left())
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

func appendStr(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

func appendSizes(dst []byte, s []int64) []byte {
	for _, v := range s {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

// mul returns a*b of non-negative numbers, and whether it is below 2^63.
func mul(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(lo), hi == 0 && lo < 1<<63
}

// alignUp returns the smallest multiple of a power of two that is not below x, and whether it is below 2^63.
func alignUp(x, a int64) (int64, bool) {
	y := (uint64(x) + uint64(a) - 1) &^ (uint64(a) - 1)
	return int64(y), y < 1<<63
}

// Chunks returns the number of checksum chunks of n bytes.
func Chunks(n int64) int64 { return n/ChunkSize + min(n%ChunkSize, 1) }
