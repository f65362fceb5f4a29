package format

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Slot is a commit slot, SPEC section 3.
type Slot struct {
	Version         uint32
	AlignLog2       uint32
	Compat          uint64
	ROCompat        uint64
	Incompat        uint64
	Commit          int64
	End             int64 // committed end; the size of a sealed file
	CatalogOffset   int64
	CatalogLength   int64
	CatalogChecksum uint64
}

// Sealed reports whether the file is never written again.
func (s *Slot) Sealed() bool { return s.Incompat&IncompatOpen == 0 }

// Align returns the alignment of blocks in bytes.
func (s *Slot) Align() int64 { return 1 << s.AlignLog2 }

// AppendSlot appends the 512 bytes of a slot.
func AppendSlot(dst []byte, s Slot) []byte {
	at := len(dst)
	dst = append(dst, Magic...)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, s.Version)
	dst = le.AppendUint32(dst, s.AlignLog2)
	for _, v := range []uint64{
		s.Compat, s.ROCompat, s.Incompat, uint64(s.Commit), uint64(s.End),
		uint64(s.CatalogOffset), uint64(s.CatalogLength), s.CatalogChecksum,
	} {
		dst = le.AppendUint64(dst, v)
	}
	dst = append(dst, make([]byte, at+SlotSize-8-len(dst))...)
	return le.AppendUint64(dst, xxhash.Sum64(dst[at:]))
}

// slotState is what can be said of a slot before its fields are looked at.
type slotState uint8

const (
	slotZero slotState = iota
	slotValid
	slotDamaged
)

func classify(b []byte) slotState {
	zero := true
	for _, v := range b {
		zero = zero && v == 0
	}
	switch {
	case zero:
		return slotZero
	case string(b[:len(Magic)]) == Magic && binary.LittleEndian.Uint64(b[SlotSize-8:]) == xxhash.Sum64(b[:SlotSize-8]):
		return slotValid
	}
	return slotDamaged
}

// Slots is what the head of a file says.
type Slots struct {
	Newest  Slot
	Damaged *CorruptError // the other slot is damaged: the file can be read, but does not verify
	Unused  bool          // the other slot is zero
}

// DecodeSlots makes the checks 1 to 6 of SPEC section 9. The head is the first min(size, DataStart) bytes of a file of
// the given size.
func DecodeSlots(head []byte, size int64) (Slots, error) {
	hasMagic := func(at int) bool {
		return len(head) >= at+len(Magic) && string(head[at:at+len(Magic)]) == Magic
	}
	if !hasMagic(0) && !hasMagic(SlotStride) {
		what := "it does not start with the magic bytes"
		if size == 0 {
			what = "it is empty"
		}
		return Slots{}, corrupt(NotWstore, "", 0, "%s", what)
	}
	if size < DataStart || len(head) < DataStart {
		return Slots{}, corrupt(Truncated, "", size, "%d bytes, the slots alone take %d", size, DataStart)
	}
	var raw [2][]byte
	var state [2]slotState
	newest := -1
	var commits [2]uint64
	for i := range raw {
		raw[i] = head[i*SlotStride : i*SlotStride+SlotSize]
		state[i] = classify(raw[i])
		commits[i] = binary.LittleEndian.Uint64(raw[i][40:])
		if state[i] == slotValid && (newest < 0 || commits[i] > commits[newest]) {
			newest = i
		}
	}
	if newest < 0 {
		at := 0
		if state[0] == slotZero {
			at = 1
		}
		return Slots{}, damagedSlot(at)
	}
	s, err := decodeSlot(raw[newest], newest, size)
	if err != nil {
		return Slots{}, err
	}
	out := Slots{Newest: s, Unused: state[1-newest] == slotZero}
	if state[1-newest] == slotDamaged {
		out.Damaged = damagedSlot(1 - newest)
	}
	return out, nil
}

func damagedSlot(i int) *CorruptError {
	return corrupt(SlotDamaged, fmt.Sprintf("slot %d", i), int64(i)*SlotStride, "it is neither empty nor has the right magic and checksum")
}

func decodeSlot(b []byte, number int, size int64) (Slot, error) {
	c := cursor{b: b, base: int64(number) * SlotStride, section: fmt.Sprintf("slot %d", number), code: SlotInvalid}
	le := binary.LittleEndian
	if commit := le.Uint64(b[40:]); commit%2 != uint64(number) {
		c.failAt(40, "commit %d must be in the other slot", commit)
		return Slot{}, c.err
	}
	s := Slot{
		Version: le.Uint32(b[8:]), AlignLog2: le.Uint32(b[12:]),
		Compat: le.Uint64(b[16:]), ROCompat: le.Uint64(b[24:]), Incompat: le.Uint64(b[32:]),
	}
	if unknown := s.Incompat &^ KnownIncompat; unknown != 0 {
		return Slot{}, &UnsupportedError{Feature: featureName(bits.TrailingZeros64(unknown))}
	}
	if s.AlignLog2 < MinAlignLog2 || s.AlignLog2 > MaxAlignLog2 {
		c.failAt(12, "align_log2 is %d, must be %d to %d", s.AlignLog2, MinAlignLog2, MaxAlignLog2)
	}
	c.pos = 40
	s.Commit = c.size("commit")
	s.End = c.size("end")
	s.CatalogOffset = c.size("catalog_offset")
	s.CatalogLength = c.size("catalog_length")
	s.CatalogChecksum = le.Uint64(b[72:])
	c.pos = 80
	c.zero(SlotSize-8-80, "slot")
	if s.Sealed() && s.Commit != 0 {
		c.failAt(40, "a sealed file has commit %d, must be 0", s.Commit)
	}
	if s.CatalogOffset < DataStart || s.CatalogOffset%SectionAlign != 0 {
		c.failAt(56, "catalog_offset is %d, must be a multiple of %d from %d on", s.CatalogOffset, SectionAlign, DataStart)
	}
	if s.CatalogLength < CatalogHead || (s.CatalogLength-CatalogHead)%CatalogEntry != 0 {
		c.failAt(64, "catalog_length is %d, must be %d and %d for each section", s.CatalogLength, CatalogHead, CatalogEntry)
	}
	if rest := s.End - s.CatalogOffset; s.CatalogLength > rest || s.Sealed() && s.CatalogLength != rest {
		c.failAt(48, "the catalog, %d bytes from %d, does not fit the committed end %d", s.CatalogLength, s.CatalogOffset, s.End)
	}
	if c.err != nil {
		return Slot{}, c.err
	}
	if size < s.End {
		return Slot{}, corrupt(Truncated, "", size, "it has %d of %d bytes; it may be half a download: fetch it again", size, s.End)
	}
	if size > s.End && s.Sealed() {
		return Slot{}, corrupt(Trailing, "", s.End, "it has %d bytes, %d of them behind its end", size, size-s.End)
	}
	return s, nil
}

func featureName(bit int) string {
	if 1<<bit == IncompatOpen {
		return fmt.Sprintf("incompat bit %d (open)", bit)
	}
	return fmt.Sprintf("incompat bit %d", bit)
}
