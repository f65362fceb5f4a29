package craft

import (
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/wstore/wstore/format"
)

// File is a sealed file taken apart. Join computes what follows from the rest: the places of the sections, their
// checksums, the catalog and the slot.
type File struct {
	// Slot's fields about the catalog and the end are set by Join.
	Slot format.Slot
	// Data holds the bytes from 8192 on, up to the sections.
	Data     []byte
	Sections []Section
}

// Section is a section and its entry's fields.
type Section struct {
	Tag   string
	Flags uint32
	Key   uint64
	Bytes []byte
}

// Split takes a valid file apart. Nothing refers to b.
func Split(b []byte) *File {
	slot := b[:512]
	f := &File{Slot: format.Slot{
		Version: le.Uint32(slot[8:]), AlignLog2: le.Uint32(slot[12:]), Compat: le.Uint64(slot[16:]),
		ROCompat: le.Uint64(slot[24:]), Incompat: le.Uint64(slot[32:]), Commit: int64(le.Uint64(slot[40:])),
	}}
	catalog := b[le.Uint64(slot[56:]):]
	data := uint64(len(b))
	for i := range le.Uint32(catalog) {
		e := catalog[8+40*i:]
		at, n := le.Uint64(e[16:]), le.Uint64(e[24:])
		data = min(data, at)
		f.Sections = append(f.Sections, Section{
			Tag: string(e[:4]), Flags: le.Uint32(e[4:]), Key: le.Uint64(e[8:]), Bytes: slices.Clone(b[at : at+n]),
		})
	}
	f.Data = slices.Clone(b[8192:data])
	return f
}

// Section returns the section of a tag, which must exist.
func (f *File) Section(tag string) *Section {
	return &f.Sections[slices.IndexFunc(f.Sections, func(s Section) bool { return s.Tag == tag })]
}

// Add puts a section at its place in the table.
func (f *File) Add(s Section) {
	at := slices.IndexFunc(f.Sections, func(o Section) bool { return o.Tag > s.Tag || o.Tag == s.Tag && o.Key > s.Key })
	if at < 0 {
		at = len(f.Sections)
	}
	f.Sections = slices.Insert(f.Sections, at, s)
}

// Remove takes out the section of a tag.
func (f *File) Remove(tag string) {
	f.Sections = slices.DeleteFunc(f.Sections, func(s Section) bool { return s.Tag == tag })
}

// Join puts the file together.
func (f *File) Join() []byte {
	b := append(make([]byte, 8192, 8192+len(f.Data)+1024), f.Data...)
	catalog := le.AppendUint32(nil, uint32(len(f.Sections)))
	catalog = le.AppendUint32(catalog, 0)
	for _, s := range f.Sections {
		b = pad(b, 0, 8)
		catalog = append(catalog, s.Tag...)
		catalog = le.AppendUint32(catalog, s.Flags)
		catalog = append(catalog, u64s(s.Key, uint64(len(b)), uint64(len(s.Bytes)), xxhash.Sum64(s.Bytes))...)
		b = append(b, s.Bytes...)
	}
	b = pad(b, 0, 8)
	slot := append(b[:0:0], "\x89WST\r\n\x1a\n"...)
	slot = le.AppendUint32(slot, f.Slot.Version)
	slot = le.AppendUint32(slot, f.Slot.AlignLog2)
	end := len(b) + len(catalog)
	slot = append(slot, u64s(
		f.Slot.Compat, f.Slot.ROCompat, f.Slot.Incompat, uint64(f.Slot.Commit),
		uint64(end), uint64(len(b)), uint64(len(catalog)), xxhash.Sum64(catalog),
	)...)
	copy(b, slot)
	SealSlot(b, 0)
	return append(b, catalog...)
}

// SealSlot puts the right checksum into slot 0 or 1 of a file.
func SealSlot(b []byte, slot int) {
	s := b[4096*slot:][:512]
	le.PutUint64(s[504:], xxhash.Sum64(s[:504]))
}

// SealCatalog puts the catalog's right checksum into slot 0, and then the slot's.
func SealCatalog(b []byte) {
	at, n := le.Uint64(b[56:]), le.Uint64(b[64:])
	le.PutUint64(b[72:], xxhash.Sum64(b[at:at+n]))
	SealSlot(b, 0)
}

var (
	errMissing = errors.New("craft: a section is missing")
	errPlace   = errors.New("craft: a block lies outside the data")
)

// Repair puts the right chunk checksums into CALS and BLKS and the right digest into DGST. It reports why that is
// impossible: sections that are missing or cannot be decoded, blocks outside the data.
func (f *File) Repair() error {
	for _, tag := range []string{"BLKS", "CALS", "DGST", "SCHM", "TICK", "WIDX"} {
		if !slices.ContainsFunc(f.Sections, func(s Section) bool { return s.Tag == tag }) {
			return errMissing
		}
	}
	cal, blk := f.Section("CALS").Bytes, f.Section("BLKS").Bytes
	schema, err := format.DecodeSchema(f.Section("SCHM").Bytes, 0)
	if err != nil {
		return err
	}
	tickers, err := format.DecodeTickers(f.Section("TICK").Bytes, 0)
	if err != nil {
		return err
	}
	cals, err := format.DecodeCalendars(cal, 0)
	if err != nil {
		return err
	}
	if err := cals.CheckTickers(tickers, 0); err != nil {
		return err
	}
	blocks, err := format.DecodeBlocks(blk, 0, tickers, schema)
	if err != nil {
		return err
	}
	index, err := format.DecodeIndex(f.Section("WIDX").Bytes, 0, tickers, schema)
	if err != nil {
		return err
	}
	piece := func(at, n int64) []byte {
		if at -= 8192; at < 0 || at > int64(len(f.Data)) || n > int64(len(f.Data))-at {
			if n > 0 {
				err = errPlace
			}
			return nil
		}
		return f.Data[at : at+n]
	}
	var sums []byte
	for i, n := range cals.Entries {
		sums = append(sums, chunkSums(piece(cals.Offset[i], 8*n))...)
	}
	if err == nil {
		copy(cal[len(cal)-len(sums):], sums)
	}
	groups := len(schema.Groups)
	sums = nil
	each := make([][]byte, len(blocks.Offset))
	for i, at := range blocks.Offset {
		each[i] = chunkSums(piece(at, tickers.Rows[i/groups]*schema.Groups[i%groups].RowBytes()))
		sums = append(sums, each[i]...)
	}
	if err != nil {
		return err
	}
	copy(blk[len(blk)-len(sums):], sums)

	d := newDigest(f.Section("SCHM").Bytes, len(tickers.Names))
	breaks := make([][][]int64, len(tickers.Names))
	for i := range breaks {
		breaks[i] = make([][]int64, len(schema.Breaks))
	}
	for set, uses := range index.Breaks {
		for _, u := range uses {
			breaks[u.Ticker][set] = index.BreakLists[u.List]
		}
	}
	for i, name := range tickers.Names {
		var times []byte
		if rows := tickers.Rows[i]; rows > 0 {
			times = piece(cals.Offset[tickers.Calendar[i]]+8*tickers.First[i], 8*rows)
		}
		d.ticker(name, times, each[i*groups:(i+1)*groups], breaks[i])
	}
	for _, s := range f.Sections { // in this order
		if s.Tag == "CATS" || s.Tag == "STAT" {
			d.section(s.Tag, s.Bytes)
		}
	}
	f.Section("DGST").Bytes = d.sum()
	return nil
}
