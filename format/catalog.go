package format

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// The tags of the sections, SPEC section 4.
const (
	TagBlocks     = "BLKS"
	TagCalendars  = "CALS"
	TagCategories = "CATS"
	TagDigest     = "DGST"
	TagProvenance = "PROV"
	TagSchema     = "SCHM"
	TagAttributes = "STAT"
	TagTickers    = "TICK"
	TagIndex      = "WIDX"
)

// The flags of a section.
const (
	FlagRequired   = 1 << 0 // who does not know the section must refuse the file
	FlagSafeToCopy = 1 << 1 // a rewriting program may copy the section without knowing it
)

// tagFlags holds the flags that each known section has.
var tagFlags = map[string]uint32{
	TagBlocks: FlagRequired, TagCalendars: FlagRequired, TagDigest: FlagRequired, TagProvenance: FlagSafeToCopy,
	TagSchema: FlagRequired, TagTickers: FlagRequired, TagIndex: FlagRequired, TagCategories: 0, TagAttributes: 0,
}

// Section is an entry of the catalog, SPEC section 4.
type Section struct {
	Tag      string
	Flags    uint32
	Key      int64
	Offset   int64
	Length   int64
	Checksum uint64
}

// Check compares the section's bytes with its checksum.
func (s *Section) Check(b []byte) error {
	if got := xxhash.Sum64(b); got != s.Checksum {
		return corrupt(SectionChecksum, s.Tag, s.Offset, "checksum %016x, must be %016x", got, s.Checksum)
	}
	return nil
}

// NewSection returns the entry of a known section with these bytes; the offset is left to the layout.
func NewSection(tag string, b []byte) Section {
	return Section{Tag: tag, Flags: tagFlags[tag], Length: int64(len(b)), Checksum: xxhash.Sum64(b)}
}

// AppendCatalog appends the catalog of the sections, which must be in order of tag and key.
func AppendCatalog(dst []byte, sections []Section) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(len(sections)))
	dst = le.AppendUint32(dst, 0)
	for _, s := range sections {
		dst = append(dst, s.Tag[:4]...)
		dst = le.AppendUint32(dst, s.Flags)
		dst = appendSizes(dst, []int64{s.Key, s.Offset, s.Length})
		dst = le.AppendUint64(dst, s.Checksum)
	}
	return dst
}

// DecodeCatalog makes check 7 of SPEC section 9 on the catalog's bytes.
func DecodeCatalog(b []byte, slot *Slot) ([]Section, error) {
	c := cursor{b: b, base: slot.CatalogOffset, section: "catalog", code: CatalogInvalid}
	if got := xxhash.Sum64(b); got != slot.CatalogChecksum {
		return nil, corrupt(CatalogChecksum, "catalog", slot.CatalogOffset, "checksum %016x, must be %016x", got, slot.CatalogChecksum)
	}
	n := c.u32("count")
	c.zero(4, "catalog")
	if c.err == nil && uint64(n)*CatalogEntry != c.left() {
		c.failAt(0, "%d sections do not take %d bytes", n, c.left())
	}
	if c.err != nil {
		return nil, c.err
	}
	sections := make([]Section, n)
	seen := map[string]bool{}
	for i := range sections {
		at := c.pos
		s := Section{Tag: string(c.take(4, "tag")), Flags: c.u32("flags"), Key: c.size("key"), Offset: c.size("offset"), Length: c.size("length"), Checksum: c.u64("checksum")}
		for _, r := range []byte(s.Tag) {
			if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
				c.failAt(at, "tag %q is not four capitals or digits", s.Tag)
			}
		}
		flags, known := tagFlags[s.Tag]
		switch {
		case s.Flags&^(FlagRequired|FlagSafeToCopy) != 0 || known && s.Flags != flags:
			c.failAt(at+4, "section %s has flags %#x", s.Tag, s.Flags)
		case known && s.Key != 0 && s.Tag != TagBlocks:
			c.failAt(at+8, "section %s has key %d, must have 0", s.Tag, s.Key)
		case i > 0 && (s.Tag < sections[i-1].Tag || s.Tag == sections[i-1].Tag && s.Key <= sections[i-1].Key):
			c.failAt(at, "section %s %d is not behind %s %d", s.Tag, s.Key, sections[i-1].Tag, sections[i-1].Key)
		case s.Length < 1:
			c.failAt(at+24, "section %s is empty", s.Tag)
		case s.Offset < DataStart || s.Offset%SectionAlign != 0 || s.Offset > slot.CatalogOffset || s.Length > slot.CatalogOffset-s.Offset:
			c.failAt(at+16, "section %s, %d bytes from %d, does not lie between %d and the catalog at %d",
				s.Tag, s.Length, s.Offset, DataStart, slot.CatalogOffset)
		}
		if c.err != nil {
			return nil, c.err
		}
		sections[i] = s
		seen[s.Tag] = true
	}
	placed := slices.SortedFunc(slices.Values(sections), func(a, b Section) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(placed); i++ {
		if a, b := &placed[i-1], &placed[i]; b.Offset-a.Offset < a.Length {
			c.failAt(0, "sections %s, %d bytes from %d, and %s, from %d, overlap", a.Tag, a.Length, a.Offset, b.Tag, b.Offset)
			return nil, c.err
		}
	}
	for _, tag := range []string{TagBlocks, TagCalendars, TagDigest, TagSchema, TagTickers, TagIndex} {
		if !seen[tag] {
			c.failAt(0, "section %s is missing", tag)
			return nil, c.err
		}
	}
	for _, s := range sections {
		if _, known := tagFlags[s.Tag]; !known && s.Flags&FlagRequired != 0 {
			return nil, &UnsupportedError{Feature: fmt.Sprintf("section %s", s.Tag)}
		}
	}
	return sections, nil
}
