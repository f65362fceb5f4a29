package format

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Digest builds the content digest of SPEC section 8. Call Ticker for each ticker in order, then Labels, then Sum.
type Digest struct {
	h   hash.Hash
	buf []byte
}

// NewDigest starts a digest of a file with the given bytes of `SCHM` and number of tickers.
func NewDigest(schema []byte, tickers int) *Digest {
	d := &Digest{h: sha256.New()}
	d.h.Write([]byte(digestPreamble))
	d.numbers(uint64(len(schema)))
	d.h.Write(schema)
	d.numbers(uint64(tickers))
	return d
}

func (d *Digest) numbers(n ...uint64) {
	d.buf = d.buf[:0]
	for _, v := range n {
		d.buf = binary.LittleEndian.AppendUint64(d.buf, v)
	}
	d.h.Write(d.buf)
}

// Ticker adds a ticker: its rows, the XXH64 of its times, the chunk checksums of its blocks in order of groups, and its
// breaks per break set.
func (d *Digest) Ticker(name string, rows int64, times uint64, sums [][]byte, breaks [][]int64) {
	d.numbers(uint64(len(name)))
	d.h.Write([]byte(name))
	d.numbers(uint64(rows), times)
	for _, s := range sums {
		d.h.Write(s)
	}
	for _, b := range breaks {
		d.numbers(uint64(len(b)))
		d.buf = appendSizes(d.buf[:0], b)
		d.h.Write(d.buf)
	}
}

// Labels adds categories and attributes. Without any it adds nothing.
func (d *Digest) Labels(categories []Dictionary, attributes []*Attribute) {
	for _, s := range []struct {
		tag string
		b   []byte
	}{{TagCategories, AppendCategories(nil, categories)}, {TagAttributes, AppendAttributes(nil, attributes)}} {
		if len(s.b) > 0 {
			d.h.Write([]byte(s.tag))
			d.numbers(uint64(len(s.b)))
			d.h.Write(s.b)
		}
	}
}

// Sum returns the digest.
func (d *Digest) Sum() (sum [DigestSize]byte) {
	d.h.Sum(sum[:0])
	return sum
}
