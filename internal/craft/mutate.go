package craft

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/wstore/wstore/format"
)

// Sparse leaves out the zeros between slot 0 and the data, most of a small file, and reports whether it could.
func Sparse(b []byte) ([]byte, bool) {
	if len(b) <= format.DataStart || len(bytes.TrimRight(b[format.SlotSize:format.DataStart], "\x00")) > 0 {
		return b, false
	}
	return slices.Concat(b[:format.SlotSize], b[format.DataStart:]), true
}

// Dense undoes Sparse.
func Dense(b []byte) []byte {
	if len(b) <= format.SlotSize {
		return b
	}
	return slices.Concat(b[:format.SlotSize], make([]byte, format.DataStart-format.SlotSize), b[format.SlotSize:])
}

// Mutate picks one of the files, which must be valid, edits it and makes its checksums right again as far as that is
// possible, so that what stands behind the checksums is reached. Any input is a program of edits.
func Mutate(files [][]byte, input []byte) []byte {
	p := program(input)
	file := Split(files[p.below(len(files))])
	edits, lates := p.below(8), p.below(2)
	for range edits {
		p.edit(file)
	}
	_ = file.Repair()
	b := file.Join()
	for range lates {
		p.late(b)
	}
	return b
}

// program is read as numbers.
type program []byte

func (p *program) next() int {
	if len(*p) == 0 {
		return 0
	}
	v := (*p)[0]
	*p = (*p)[1:]
	return int(v)
}

// below returns a number in [0, n), 0 if n is 0.
func (p *program) below(n int) int {
	if n <= 0 {
		return 0
	}
	v := p.next()
	if n > 256 {
		v = v<<8 | p.next()
	}
	return v % n
}

// odd are numbers at which arithmetic goes wrong.
var odd = []uint64{
	0, 1, 2, 64, 4096, 8192, 1 << 31, 1 << 32, 1 << 60, 1 << 61, 1<<63 - 64, 1<<63 - 8, 1<<63 - 1, 1 << 63, math.MaxUint64 - 7, math.MaxUint64,
}

// edit is one change of a file's parts.
func (p *program) edit(f *File) {
	if len(f.Sections) == 0 {
		return
	}
	s := &f.Sections[p.below(len(f.Sections))]
	at := p.below(len(s.Bytes))
	switch p.next() % 9 {
	case 0: // another byte
		if len(s.Bytes) > 0 {
			s.Bytes[at] += byte(p.next())
		}
	case 1: // another number of 8 bytes
		if at = at &^ 7; at+8 <= len(s.Bytes) {
			le.PutUint64(s.Bytes[at:], odd[p.below(len(odd))])
		}
	case 2: // a little more or less
		if at = at &^ 7; at+8 <= len(s.Bytes) {
			le.PutUint64(s.Bytes[at:], le.Uint64(s.Bytes[at:])+uint64(int8(p.next())))
		}
	case 3:
		s.Bytes = slices.Insert(s.Bytes, at, bytes.Repeat([]byte{byte(p.next())}, 1+p.below(40))...)
	case 4:
		s.Bytes = slices.Delete(s.Bytes, at, min(len(s.Bytes), at+1+p.below(40)))
	case 5: // another cell or half a time
		if n := len(f.Data) / 4; n > 0 {
			bits := []uint32{0, format.MissingBits, 0x7f800000, 0xffc00000, 0x80000000, 1, uint32(p.next())}
			le.PutUint32(f.Data[4*p.below(n):], bits[p.below(len(bits))])
		}
	case 6:
		f.Slot.AlignLog2 += uint32(int8(p.next()))
	case 7:
		masks := []*uint64{&f.Slot.Compat, &f.Slot.ROCompat, &f.Slot.Incompat}
		*masks[p.below(3)] ^= 1 << p.below(64)
	case 8: // another entry
		switch p.next() % 5 {
		case 0:
			s.Flags = uint32(p.next())
		case 1:
			s.Key = odd[p.below(len(odd))]
		case 2:
			f.Sections = append(f.Sections, Section{Tag: "XTRA", Flags: uint32(p.below(4)), Key: uint64(p.next()), Bytes: []byte{1}})
		case 3:
			s.Tag = fmt.Sprintf("%04d", p.next())
		case 4:
			f.Data = append(f.Data, make([]byte, 8*p.below(9))...)
		}
	}
}

// late is a change of the whole file's catalog or slot, with the checksums made right.
func (p *program) late(b []byte) {
	catalog := int(le.Uint64(b[56:]))
	v := odd[p.below(len(odd))]
	switch n := (len(b) - catalog) / 8; p.next() % 3 {
	case 0:
		le.PutUint64(b[catalog+8*p.below(n):], v)
	case 1:
		at := catalog + 8*p.below(n)
		le.PutUint64(b[at:], le.Uint64(b[at:])+uint64(int8(p.next())))
	case 2:
		le.PutUint64(b[16+8*p.below(7):], v)
		SealSlot(b, 0)
		return
	}
	le.PutUint64(b[72:], xxhash.Sum64(b[catalog:]))
	SealSlot(b, 0)
}
