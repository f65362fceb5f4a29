package format

import "slices"

// Meta is everything that a file says of itself: the decoded slots, catalog and sections. It is immutable once decoded.
type Meta struct {
	Slots
	Sections    []Section
	Schema      *Schema
	SchemaBytes []byte // as they stand in the file; the content digest covers them
	Tickers     *Tickers
	Calendars   *Calendars
	Blocks      *Blocks
	Index       *Index
	Categories  []Dictionary // ascending by column
	Attributes  []*Attribute // ascending by name
	Digest      [DigestSize]byte
	Layout      *Layout
}

// Section returns the entry with the tag, or nil.
func (m *Meta) Section(tag string) *Section {
	for i := range m.Sections {
		if m.Sections[i].Tag == tag {
			return &m.Sections[i]
		}
	}
	return nil
}

// Decode makes all checks of SPEC section 9 on a file of the given size. The function read returns n bytes from offset
// off on, which Decode only asks for inside the file; an error of it is returned as it is. Memory and time are
// proportional to the catalog and the sections, not to the data.
func Decode(size int64, read func(off, n int64) ([]byte, error)) (*Meta, error) {
	head, err := read(0, min(size, DataStart))
	if err != nil {
		return nil, err
	}
	slots, err := DecodeSlots(head, size)
	if err != nil {
		return nil, err
	}
	slot := &slots.Newest
	if n := (slot.CatalogLength - CatalogHead) / CatalogEntry; n > MaxSections {
		return nil, corrupt(CatalogInvalid, "catalog", slot.CatalogOffset, "%d sections, at most %d are possible", n, MaxSections)
	}
	catalog, err := read(slot.CatalogOffset, slot.CatalogLength)
	if err != nil {
		return nil, err
	}
	m := &Meta{Slots: slots}
	if m.Sections, err = DecodeCatalog(catalog, slot); err != nil {
		return nil, err
	}
	for _, tag := range []string{
		TagSchema, TagTickers, TagCalendars, TagBlocks, TagIndex, TagDigest, TagCategories, TagAttributes,
	} {
		var first *Section // only of BLKS may there be more
		var body []byte
		for i := range m.Sections {
			s := &m.Sections[i]
			if s.Tag != tag {
				continue
			}
			b, err := read(s.Offset, s.Length)
			if err != nil {
				return nil, err
			}
			if err := s.Check(b); err != nil {
				return nil, err
			}
			if first == nil {
				first, body = s, b
			}
		}
		if first == nil { // of the last two
			continue
		}
		if err := m.decodeSection(first, body); err != nil {
			return nil, err
		}
	}
	if err := m.checkLayout(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Meta) decodeSection(s *Section, b []byte) (err error) {
	switch tag := s.Tag; tag {
	case TagSchema:
		m.SchemaBytes = b
		m.Schema, err = DecodeSchema(b, s.Offset)
	case TagTickers:
		m.Tickers, err = DecodeTickers(b, s.Offset)
	case TagCalendars:
		if m.Calendars, err = DecodeCalendars(b, s.Offset); err != nil {
			return err
		}
		if err := m.Calendars.checkOffsets(tag, s.Offset+8, m.Newest.Align()); err != nil {
			return err
		}
		return m.Calendars.CheckTickers(m.Tickers, m.Section(TagTickers).Offset)
	case TagBlocks:
		if i := slices.IndexFunc(m.Sections, func(o Section) bool { return o.Tag == tag && o.Key != 0 }); i >= 0 {
			return corrupt(SectionInvalid, tag, m.Sections[i].Offset, "it has key %d; a sealed file has one, with key 0", m.Sections[i].Key)
		}
		if m.Blocks, err = DecodeBlocks(b, s.Offset, m.Tickers, m.Schema); err != nil {
			return err
		}
		return m.Blocks.checkOffsets(tag, s.Offset+16, m.Newest.Align())
	case TagIndex:
		m.Index, err = DecodeIndex(b, s.Offset, m.Tickers, m.Schema)
	case TagDigest:
		if len(b) != DigestSize {
			return corrupt(SectionInvalid, TagDigest, s.Offset, "it has %d bytes, must have %d", len(b), DigestSize)
		}
		copy(m.Digest[:], b)
	case TagCategories:
		m.Categories, err = DecodeCategories(b, s.Offset, m.Schema)
	case TagAttributes:
		m.Attributes, err = DecodeAttributes(b, s.Offset, len(m.Tickers.Names))
	}
	return err
}

// checkLayout compares every offset with the one that follows from the counts.
func (m *Meta) checkLayout() error {
	l, err := PlanData(m.Newest.Align(), m.Calendars.Entries, m.Tickers.Rows, m.Schema.RowBytes())
	if err != nil {
		return corrupt(LayoutInvalid, "", -1, "%s", err)
	}
	lengths := make([]int64, len(m.Sections))
	for i, s := range m.Sections {
		lengths[i] = s.Length
	}
	if err := l.PlanSections(lengths); err != nil {
		return corrupt(LayoutInvalid, "", -1, "%s", err)
	}
	for i, want := range l.Calendars {
		if got := m.Calendars.Offset[i]; got != want {
			return corrupt(LayoutInvalid, TagCalendars, got, "calendar %d is at %d, must be at %d", i, got, want)
		}
	}
	groups := len(m.Schema.Groups)
	for i, want := range l.Blocks {
		if got := m.Blocks.Offset[i]; got != want {
			return corrupt(LayoutInvalid, TagBlocks, got, "the block of ticker %q and group %q is at %d, must be at %d",
				m.Tickers.Names[i/groups], m.Schema.Groups[i%groups].Name, got, want)
		}
	}
	for i, want := range l.Sections {
		if got := m.Sections[i].Offset; got != want {
			return corrupt(LayoutInvalid, m.Sections[i].Tag, got, "the section is at %d, must be at %d", got, want)
		}
	}
	if m.Newest.CatalogOffset != l.Catalog {
		return corrupt(LayoutInvalid, "catalog", m.Newest.CatalogOffset, "the catalog must be at %d", l.Catalog)
	}
	m.Layout = l
	return nil
}
