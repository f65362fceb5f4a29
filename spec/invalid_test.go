package spec

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
)

var le = binary.LittleEndian

// invalid is a vector of a file that fails, when it is opened or when it is verified.
type invalid struct {
	name   string
	code   format.Code
	verify bool // it opens
	note   string
	file   []byte
}

// put32 and put64 write numbers over those at a byte.
func put32(b []byte, at int, v uint32) { le.PutUint32(b[at:], v) }
func put64(b []byte, at int, v uint64) { le.PutUint64(b[at:], v) }

// add64 adds to the number at a byte.
func add64(b []byte, at int, d int64) { put64(b, at, le.Uint64(b[at:])+uint64(d)) }

// splice returns b with n bytes at a place replaced.
func splice(b []byte, at, n int, with ...byte) []byte {
	return slices.Concat(b[:at], with, b[at+n:])
}

func concat[T any](lists ...[]T) []T { return slices.Concat(lists...) }

func invalids() []invalid {
	whole := base().Build()
	return concat(sizes(whole), slots(whole), catalogs(whole), checksums(whole), schemas(whole), tickers(whole),
		calendars(whole), blocks(whole), indexes(whole), layouts(whole), verifies(whole), labels(labelled().Build()))
}

// raw returns a vector of a file whose bytes are edited, and nothing else.
func raw(whole []byte, name string, code format.Code, note string, edit func(b []byte) []byte) invalid {
	return invalid{name: name, code: code, note: note, file: edit(slices.Clone(whole))}
}

// parts returns a vector of a file whose parts are edited and put together again.
func parts(whole []byte, name string, code format.Code, note string, edit func(f *craft.File)) invalid {
	f := craft.Split(whole)
	edit(f)
	return invalid{name: name, code: code, note: note, file: f.Join()}
}

func sizes(whole []byte) []invalid {
	catalog := int(le.Uint64(whole[56:]))
	var all []invalid
	cut := func(name string, n int, code format.Code, note string) {
		all = append(all, invalid{name: name, code: code, note: note, file: slices.Clone(whole[:n])})
	}
	foreign := func(name, note string, b []byte) {
		all = append(all, invalid{name: name, code: format.NotWstore, note: note, file: b})
	}
	foreign("empty", "no bytes at all", []byte{})
	foreign("foreign-text", "a CSV file", []byte(strings.Repeat("date,ticker,close\n2020-01-01,A,1\n", 300)))
	foreign("foreign-short", "a few bytes of text", []byte("PK\x03\x04"))
	foreign("foreign-zeros", "zeros only", make([]byte, 9000))
	foreign("newlines-translated", "CR LF became LF", bytes.Replace(whole, []byte("\r\n"), []byte("\n"), 1))
	foreign("seven-bits", "the high bit of each byte was lost", func() []byte {
		b := slices.Clone(whole)
		for i := range b {
			b[i] &= 0x7f
		}
		return b
	}())
	cut("cut-magic", 7, format.NotWstore, "cut within the magic")
	cut("cut-after-magic", 8, format.Truncated, "cut behind the magic")
	cut("cut-slot", 511, format.Truncated, "cut within slot 0")
	cut("cut-after-slot", 512, format.Truncated, "cut behind slot 0")
	cut("cut-before-slot-1", 4096, format.Truncated, "cut before slot 1")
	cut("cut-before-data", 8191, format.Truncated, "cut within the padding behind slot 1")
	cut("cut-data", 8192, format.Truncated, "cut before the data")
	cut("cut-in-data", 8300, format.Truncated, "cut within the data")
	cut("cut-catalog", catalog, format.Truncated, "cut before the catalog")
	cut("cut-last-byte", len(whole)-1, format.Truncated, "the last byte is missing")
	grow := func(name, note string, more ...byte) {
		all = append(all, invalid{name: name, code: format.Trailing, note: note, file: concat(whole, more)})
	}
	grow("trailing-zero", "one zero byte behind the end", 0)
	grow("trailing-newline", "a newline behind the end", '\n')
	grow("trailing-file", "the file twice", whole...)
	return all
}

func slots(whole []byte) []invalid {
	var all []invalid
	catalog, end := le.Uint64(whole[56:]), uint64(len(whole))
	add := func(name string, code format.Code, note string, edit func(b []byte) []byte) {
		all = append(all, raw(whole, name, code, note, edit))
	}
	// sealed edits slot 0 and makes its checksum right.
	sealed := func(name string, code format.Code, note string, edit func(b []byte)) {
		add(name, code, note, func(b []byte) []byte {
			edit(b)
			craft.SealSlot(b, 0)
			return b
		})
	}
	// toSlot1 moves slot 0 to slot 1 with another commit number.
	toSlot1 := func(b []byte, commit uint64) []byte {
		copy(b[4096:], b[:512])
		put64(b, 4096+40, commit)
		craft.SealSlot(b, 1)
		return b
	}
	set := func(at int, v uint64) func(b []byte) { return func(b []byte) { put64(b, at, v) } }

	add("slot-checksum", format.SlotDamaged, "a bit of slot 0's checksum is flipped", func(b []byte) []byte { b[504] ^= 1; return b })
	add("slot-field", format.SlotDamaged, "a bit of slot 0's end is flipped", func(b []byte) []byte { b[48] ^= 1; return b })
	add("slot-unsupported-damaged", format.SlotDamaged, "an unknown incompat bit under a wrong checksum is damage", func(b []byte) []byte { b[39] ^= 0x80; return b })
	add("slot-magic", format.NotWstore, "slot 0's magic is damaged, slot 1 is empty", func(b []byte) []byte { b[1] ^= 1; return b })
	add("slot-magic-second", format.SlotDamaged, "slot 0's magic is damaged, slot 1 has a magic and a wrong checksum", func(b []byte) []byte {
		b = toSlot1(b, 1)
		b[1] ^= 1
		b[4096+504] ^= 1
		return b
	})
	add("slot-both-damaged", format.SlotDamaged, "both slots have the magic and wrong checksums", func(b []byte) []byte {
		b = toSlot1(b, 1)
		b[48] ^= 1
		b[4096+48] ^= 1
		return b
	})
	add("slot-1-only-damaged", format.SlotDamaged, "slot 0 is zero, slot 1 has the magic and a wrong checksum", func(b []byte) []byte {
		b = toSlot1(b, 1)
		clear(b[:512])
		b[4096+504] ^= 1
		return b
	})
	sealed("slot-commit-odd", format.SlotInvalid, "commit 1 in slot 0", set(40, 1))
	sealed("slot-commit-2", format.SlotInvalid, "commit 2 in a sealed file", set(40, 2))
	sealed("slot-commit-overflow", format.SlotInvalid, "commit 2^63", set(40, 1<<63))
	add("slot-1-only", format.SlotInvalid, "slot 0 is zero, slot 1 holds commit 1 of a sealed file", func(b []byte) []byte {
		b = toSlot1(b, 1)
		clear(b[:512])
		return b
	})
	add("slot-1-commit-even", format.SlotInvalid, "slot 0 is zero, slot 1 holds commit 0", func(b []byte) []byte {
		b = toSlot1(b, 0)
		clear(b[:512])
		return b
	})
	add("slot-1-newer", format.SlotInvalid, "slot 1 holds commit 1 of a sealed file, slot 0 its commit 0", func(b []byte) []byte { return toSlot1(b, 1) })
	add("slot-1-newer-slot-0-damaged", format.SlotInvalid, "slot 1 holds commit 1 of a sealed file, slot 0 is damaged", func(b []byte) []byte {
		b = toSlot1(b, 1)
		b[504] ^= 1
		return b
	})
	sealed("open-file", format.Unsupported, "incompat bit 0, open", set(32, 1))
	sealed("incompat-bit-1", format.Unsupported, "an unknown incompat bit", set(32, 2))
	sealed("incompat-bit-63", format.Unsupported, "an unknown incompat bit", set(32, 1<<63))
	sealed("incompat-first", format.Unsupported, "an unknown incompat bit and an alignment out of range: the bit is found first", func(b []byte) {
		put64(b, 32, 1<<40)
		put32(b, 12, 0)
	})
	add("incompat-truncated", format.Unsupported, "an unknown incompat bit in a truncated file: the bit is found first", func(b []byte) []byte {
		put64(b, 32, 4)
		craft.SealSlot(b, 0)
		return b[:len(b)-1]
	})
	for _, v := range []struct {
		name string
		log2 uint32
	}{{"slot-align-5", 5}, {"slot-align-17", 17}, {"slot-align-64", 64}, {"slot-align-overflow", 1<<32 - 1}} {
		sealed(v.name, format.SlotInvalid, "an alignment out of range", func(b []byte) { put32(b, 12, v.log2) })
	}
	sealed("slot-reserved-first", format.SlotInvalid, "the first reserved byte is not zero", func(b []byte) { b[80] = 1 })
	sealed("slot-reserved-last", format.SlotInvalid, "the last reserved byte is not zero", func(b []byte) { b[503] = 1 })
	sealed("slot-end-overflow", format.SlotInvalid, "an end of 2^64 - 1", set(48, math.MaxUint64))
	sealed("slot-end-less", format.SlotInvalid, "the end is before that of the catalog", set(48, end-8))
	sealed("slot-end-more", format.SlotInvalid, "the end is behind that of the catalog", set(48, end+8))
	sealed("slot-catalog-overflow", format.SlotInvalid, "a catalog offset of 2^63", set(56, 1<<63))
	sealed("slot-catalog-low", format.SlotInvalid, "a catalog offset below 8192", func(b []byte) { put64(b, 56, 8184); put64(b, 64, end-8184) })
	sealed("slot-catalog-odd", format.SlotInvalid, "a catalog offset that is no multiple of 8", func(b []byte) { add64(b, 56, 4); add64(b, 48, 4) })
	sealed("slot-catalog-behind", format.SlotInvalid, "a catalog offset behind the end", set(56, end+8))
	sealed("slot-catalog-empty", format.SlotInvalid, "a catalog of no bytes", func(b []byte) { put64(b, 64, 0); put64(b, 48, catalog) })
	sealed("slot-catalog-length", format.SlotInvalid, "a catalog length that is not 8 + 40 n", func(b []byte) { add64(b, 64, 1); add64(b, 48, 1) })
	sealed("slot-catalog-length-overflow", format.SlotInvalid, "a catalog length of 2^64 - 32", set(64, math.MaxUint64-31))
	sealed("slot-truncated", format.Truncated, "end and catalog length say that there is one section more than there are bytes", func(b []byte) { add64(b, 48, 40); add64(b, 64, 40) })
	sealed("slot-trailing", format.Trailing, "end and catalog length say that there is one section less", func(b []byte) { add64(b, 48, -40); add64(b, 64, -40) })
	return all
}

func catalogs(whole []byte) []invalid {
	var all []invalid
	at := int(le.Uint64(whole[56:]))
	entry := func(tag string) int {
		return at + 8 + 40*slices.IndexFunc(craft.Split(whole).Sections, func(s craft.Section) bool { return s.Tag == tag })
	}
	add := func(name string, code format.Code, note string, edit func(b []byte)) {
		all = append(all, raw(whole, name, code, note, func(b []byte) []byte {
			edit(b)
			craft.SealCatalog(b)
			return b
		}))
	}
	bad := func(name, note string, edit func(b []byte)) { add(name, format.CatalogInvalid, note, edit) }
	split := func(name string, code format.Code, note string, edit func(f *craft.File)) {
		all = append(all, parts(whole, name, code, note, edit))
	}
	all = append(all, raw(whole, "catalog-checksum", format.CatalogChecksum, "a bit of the catalog is flipped", func(b []byte) []byte { b[at+8] ^= 1; return b }))
	all = append(all, raw(whole, "catalog-checksum-last", format.CatalogChecksum, "a bit of the file's last byte is flipped", func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b }))
	bad("catalog-count-less", "one section less than there are entries", func(b []byte) { put32(b, at, 6) })
	bad("catalog-count-more", "one section more than there are entries", func(b []byte) { put32(b, at, 8) })
	bad("catalog-count-huge", "2^32 - 1 sections", func(b []byte) { put32(b, at, math.MaxUint32) })
	bad("catalog-reserved", "the reserved number is not zero", func(b []byte) { put32(b, at+4, 1) })
	bad("catalog-order", "two entries are swapped", func(b []byte) {
		x := slices.Clone(b[entry("BLKS"):][:40])
		copy(b[entry("BLKS"):], b[entry("CALS"):][:40])
		copy(b[entry("CALS"):], x)
	})
	split("catalog-twice", format.CatalogInvalid, "two sections of one tag and key", func(f *craft.File) { f.Add(*f.Section("SCHM")) })
	split("catalog-unknown-twice", format.CatalogInvalid, "two unknown sections of one tag and key", func(f *craft.File) {
		f.Add(craft.Section{Tag: "XTRA", Key: 1, Bytes: []byte{1}})
		f.Add(craft.Section{Tag: "XTRA", Key: 1, Bytes: []byte{1}})
	})
	split("catalog-key-order", format.CatalogInvalid, "keys of one tag out of order", func(f *craft.File) {
		f.Sections = append(f.Sections, craft.Section{Tag: "XTRA", Key: 2, Bytes: []byte{1}}, craft.Section{Tag: "XTRA", Key: 1, Bytes: []byte{1}})
	})
	for _, tag := range []string{"BLKS", "CALS", "DGST", "SCHM", "TICK", "WIDX"} {
		split("catalog-without-"+strings.ToLower(tag), format.CatalogInvalid, tag+" is missing", func(f *craft.File) { f.Remove(tag) })
	}
	split("catalog-no-sections", format.CatalogInvalid, "a catalog without sections", func(f *craft.File) { f.Sections = nil })
	bad("catalog-flag-unknown", "an unknown flag", func(b []byte) { put32(b, entry("PROV")+4, 6) })
	split("catalog-unknown-flag", format.CatalogInvalid, "an unknown flag of an unknown section", func(f *craft.File) {
		f.Add(craft.Section{Tag: "XTRA", Flags: 1 << 31, Bytes: []byte{1}})
	})
	bad("catalog-flags-optional", "SCHM is not required", func(b []byte) { put32(b, entry("SCHM")+4, 0) })
	bad("catalog-flags-copy", "TICK is safe to copy", func(b []byte) { put32(b, entry("TICK")+4, 3) })
	bad("catalog-flags-prov", "PROV is required", func(b []byte) { put32(b, entry("PROV")+4, 1) })
	bad("catalog-key", "SCHM has a key", func(b []byte) { put64(b, entry("SCHM")+8, 1) })
	bad("catalog-key-overflow", "a key of 2^63", func(b []byte) { put64(b, entry("SCHM")+8, 1<<63) })
	bad("catalog-key-overflow-blks", "a key of 2^63 of a section that may have keys", func(b []byte) { put64(b, entry("BLKS")+8, 1<<63) })
	add("blks-key", format.SectionInvalid, "BLKS has a key in a sealed file", func(b []byte) { put64(b, entry("BLKS")+8, 1) })
	split("blks-two", format.SectionInvalid, "two sections BLKS in a sealed file", func(f *craft.File) {
		s := *f.Section("BLKS")
		s.Key = 2
		f.Add(s)
	})
	bad("catalog-tag-lower", "a tag with a small letter", func(b []byte) { b[entry("WIDX")+3] = 'x' })
	bad("catalog-tag-zero", "a tag with a zero byte", func(b []byte) { b[entry("WIDX")+3] = 0 })
	bad("catalog-length-zero", "a section without bytes", func(b []byte) { put64(b, entry("PROV")+24, 0) })
	bad("catalog-length-overflow", "a section of 2^64 - 1 bytes", func(b []byte) { put64(b, entry("PROV")+24, math.MaxUint64) })
	bad("catalog-length-wraps", "offset and length add up to 2^64", func(b []byte) {
		put64(b, entry("PROV")+24, math.MaxUint64-le.Uint64(b[entry("PROV")+16:])+1)
	})
	bad("catalog-offset-low", "a section before byte 8192", func(b []byte) { put64(b, entry("BLKS")+16, 8184) })
	bad("catalog-offset-odd", "an offset that is no multiple of 8", func(b []byte) { add64(b, entry("BLKS")+16, 4) })
	bad("catalog-offset-behind", "a section behind the catalog's offset", func(b []byte) { put64(b, entry("WIDX")+16, uint64(len(b)+8)&^7) })
	bad("catalog-offset-overflow", "an offset of 2^63", func(b []byte) { put64(b, entry("WIDX")+16, 1<<63) })
	bad("catalog-offset-largest", "an offset of 2^63 - 8", func(b []byte) { put64(b, entry("WIDX")+16, 1<<63-8) })
	bad("catalog-into-itself", "a section that ends within the catalog", func(b []byte) { put64(b, entry("WIDX")+24, uint64(at)-le.Uint64(b[entry("WIDX")+16:])+1) })
	bad("catalog-overlap", "two sections overlap, one of them informative", func(b []byte) {
		put64(b, entry("PROV")+16, le.Uint64(b[entry("SCHM")+16:]))
	})
	split("unsupported-section", format.Unsupported, "an unknown required section", func(f *craft.File) {
		f.Add(craft.Section{Tag: "NEWS", Flags: 1, Bytes: []byte{1}})
	})
	split("unsupported-section-copy", format.Unsupported, "an unknown section that is required and safe to copy", func(f *craft.File) {
		f.Add(craft.Section{Tag: "CATX", Flags: 3, Bytes: []byte{1}})
	})
	split("unsupported-after-rules", format.CatalogInvalid, "an unknown required section, and a rule broken behind it: the rule is found first", func(f *craft.File) {
		f.Add(craft.Section{Tag: "NEWS", Flags: 1, Bytes: []byte{1}})
		f.Section("WIDX").Flags = 3
	})
	return all
}

// checksums are files with a damaged section.
func checksums(whole []byte) []invalid {
	var all []invalid
	f := craft.Split(whole)
	f.Add(craft.Section{Tag: "XTRA", Bytes: []byte("abc")})
	b := f.Join()
	at := int(le.Uint64(b[56:]))
	for i, s := range f.Sections {
		offset := le.Uint64(b[at+8+40*i+16:])
		v := raw(b, "checksum-"+strings.ToLower(s.Tag), format.SectionChecksum, "a bit of "+s.Tag+" is flipped", func(b []byte) []byte {
			b[offset+uint64(len(s.Bytes))-1] ^= 1
			return b
		})
		v.verify = s.Tag == "PROV" || s.Tag == "XTRA"
		all = append(all, v)
	}
	return append(all, raw(b, "checksum-order", format.SectionChecksum, "SCHM and BLKS are damaged, and TICK breaks a rule", func(b []byte) []byte {
		for i := range f.Sections {
			b[le.Uint64(b[at+8+40*i+16:])] ^= 1
		}
		return b
	}))
}

func schemas(whole []byte) []invalid {
	var all []invalid
	bytesOf := func(name, note string, edit func(b []byte) []byte) {
		all = append(all, parts(whole, "schm-"+name, format.SectionInvalid, note, func(f *craft.File) {
			s := f.Section("SCHM")
			s.Bytes = edit(s.Bytes)
		}))
	}
	change := func(name, note string, edit func(s *format.Schema)) {
		bytesOf(name, note, func([]byte) []byte {
			s := base().Schema
			edit(s)
			return craft.Schema(s)
		})
	}
	long := strings.Repeat("n", 256)
	change("unit", "time unit 4", func(s *format.Schema) { s.Unit = 4 })
	bytesOf("reserved-u8", "the reserved byte behind the time unit is not zero", func(b []byte) []byte { b[1] = 1; return b })
	bytesOf("reserved-u16", "the reserved number is not zero", func(b []byte) []byte { b[3] = 1; return b })
	change("no-groups", "no groups", func(s *format.Schema) { s.Groups = nil })
	bytesOf("groups-more", "one group more than there are", func(b []byte) []byte { b[4]++; return b })
	bytesOf("groups-less", "one group less than there are", func(b []byte) []byte { b[4]--; return b })
	bytesOf("groups-huge", "2^32 - 1 groups", func(b []byte) []byte { put32(b, 4, math.MaxUint32); return b })
	change("groups-1025", "1025 groups", func(s *format.Schema) {
		s.Groups, s.Breaks = nil, nil
		for i := range 1025 {
			s.Groups = append(s.Groups, floats("g"+string(rune(0x4e00+i)), "c"+string(rune(0x4e00+i))))
		}
	})
	change("zone-long", "a zone of 256 bytes", func(s *format.Schema) { s.Zone = long })
	change("zone-utf8", "a zone that is not UTF-8", func(s *format.Schema) { s.Zone = "\xff" })
	change("group-empty", "a group without a name", func(s *format.Schema) { s.Groups[0].Name = "" })
	change("group-long", "a group's name of 256 bytes", func(s *format.Schema) { s.Groups[0].Name = long })
	change("group-utf8", "a group's name that is not UTF-8", func(s *format.Schema) { s.Groups[0].Name = "\xc0\x80" })
	change("group-twice", "two groups of one name", func(s *format.Schema) { s.Groups[3].Name = s.Groups[0].Name })
	change("dtype-0", "dtype 0", func(s *format.Schema) { s.Groups[0].DType = 0 })
	change("dtype-3", "dtype 3", func(s *format.Schema) { s.Groups[0].DType = 3 })
	groupReserved := 8 + 2 + len("America/New_York") + 2 + len("features") + 1
	bytesOf("group-reserved", "the reserved byte of a group is not zero", func(b []byte) []byte { b[groupReserved] = 1; return b })
	change("width-0-int64", "an int64 group without columns", func(s *format.Schema) {
		s.Groups[1].Columns[0] = format.Column{Name: "r"}
		s.Groups[2].Columns = nil
	})
	change("width-0-float32", "a float32 group without columns", func(s *format.Schema) { s.Groups[3].Columns = nil })
	change("width-int64", "an int64 group of two columns", func(s *format.Schema) {
		s.Groups[2].Columns = append(s.Groups[2].Columns, format.Column{Name: "e2", Role: format.LabelEnd})
	})
	change("column-empty", "a column without a name", func(s *format.Schema) { s.Groups[0].Columns[1].Name = "" })
	change("column-long", "a column's name of 256 bytes", func(s *format.Schema) { s.Groups[0].Columns[1].Name = long })
	change("column-utf8", "a column's name that is not UTF-8", func(s *format.Schema) { s.Groups[0].Columns[1].Name = "a\xed\xa0\x80" })
	change("column-twice", "two columns of one name, in one group", func(s *format.Schema) { s.Groups[0].Columns[1].Name = "x" })
	change("column-twice-groups", "two columns of one name, in two groups", func(s *format.Schema) { s.Groups[3].Columns[0].Name = "x" })
	change("column-group", "a column with its group's name", func(s *format.Schema) { s.Groups[3].Name = "m" })
	change("column-later-group", "a column with the name of a later group", func(s *format.Schema) { s.Groups[0].Columns[0].Name = "masks" })
	change("role-3", "role 3", func(s *format.Schema) { s.Groups[0].Columns[0].Role = 3 })
	change("role-label-end", "a label end in a float32 group", func(s *format.Schema) { s.Groups[0].Columns[0].Role = format.LabelEnd })
	change("role-int64-value", "a value in an int64 group", func(s *format.Schema) {
		s.Groups[2].Columns[0].Role = format.Value
		s.Groups[1].Columns[0] = format.Column{Name: "r"}
	})
	change("role-int64-mask", "a mask in an int64 group", func(s *format.Schema) {
		s.Groups[2].Columns[0].Role = format.Mask
		s.Groups[1].Columns[0] = format.Column{Name: "r"}
	})
	reach := func(name, note string, group int, kind format.ReachKind, amount int64) {
		change("reach-"+name, note, func(s *format.Schema) {
			s.Groups[group].Columns[0].ReachKind, s.Groups[group].Columns[0].Reach = kind, amount
		})
	}
	reach("kind-4", "reach kind 4", 0, 4, 0)
	reach("none", "an amount without a kind", 0, format.ReachNone, 1)
	reach("rows-overflow", "a reach of 2^63 rows", 0, format.ReachRows, math.MinInt64)
	reach("duration-overflow", "a reach of 2^63 time units", 0, format.ReachDuration, math.MinInt64)
	reach("column-unknown", "a reach in column 5 of 5", 1, format.ReachColumn, 5)
	reach("column-huge", "a reach in column 2^63 - 1", 1, format.ReachColumn, math.MaxInt64)
	reach("column-overflow", "a reach in column 2^63", 1, format.ReachColumn, math.MinInt64)
	reach("column-value", "a reach in a column that holds no label ends", 1, format.ReachColumn, 0)
	reach("mask", "a mask with a reach", 3, format.ReachRows, 1)
	reach("mask-zero", "a mask with a reach of 0 rows", 3, format.ReachRows, 0)
	reach("label-end", "a label end with a reach", 2, format.ReachColumn, 3)
	change("breaks-65", "65 break sets", func(s *format.Schema) {
		for i := range 62 {
			s.Breaks = append(s.Breaks, format.BreakSet{Name: "b" + string(rune('0'+i)), Kind: format.BreakGiven})
		}
	})
	bytesOf("breaks-huge", "2^32 - 1 break sets", func(b []byte) []byte {
		put32(b, len(craft.Schema(&format.Schema{Zone: base().Schema.Zone, Groups: base().Schema.Groups}))-4, math.MaxUint32)
		return b
	})
	change("break-empty", "a break set without a name", func(s *format.Schema) { s.Breaks[2].Name = "" })
	change("break-long", "a break set's name of 256 bytes", func(s *format.Schema) { s.Breaks[2].Name = long })
	change("break-utf8", "a break set's name that is not UTF-8", func(s *format.Schema) { s.Breaks[2].Name = "\xf4\x90\x80\x80" })
	change("break-twice", "two break sets of one name", func(s *format.Schema) { s.Breaks[2].Name = "gap" })
	change("break-kind-0", "a break set of kind 0", func(s *format.Schema) { s.Breaks[2].Kind = 0 })
	change("break-kind-4", "a break set of kind 4", func(s *format.Schema) { s.Breaks[2].Kind = 4 })
	change("gap-0", "a greatest gap of 0", func(s *format.Schema) { s.Breaks[0].MaxGap = 0 })
	change("gap-overflow", "a greatest gap of 2^63", func(s *format.Schema) { s.Breaks[0].MaxGap = math.MinInt64 })
	change("gap-of-column", "a greatest gap of a set of kind 2", func(s *format.Schema) { s.Breaks[1].MaxGap = 1 })
	change("gap-of-given", "a greatest gap of a set of kind 3", func(s *format.Schema) { s.Breaks[2].MaxGap = 1 })
	change("source-of-gap", "a source of a set of kind 1", func(s *format.Schema) { s.Breaks[0].Source = "x" })
	change("source-of-given", "a source of a set of kind 3", func(s *format.Schema) { s.Breaks[2].Source = "x" })
	change("source-empty", "a set of kind 2 without a source", func(s *format.Schema) { s.Breaks[1].Source = "" })
	change("source-long", "a source of 256 bytes", func(s *format.Schema) { s.Breaks[1].Source = long })
	change("source-utf8", "a source that is not UTF-8", func(s *format.Schema) { s.Breaks[1].Source = "\x80" })
	bytesOf("left-over", "a byte behind the end", func(b []byte) []byte { return append(b, 0) })
	bytesOf("cut", "the last byte is missing", func(b []byte) []byte { return b[:len(b)-1] })
	bytesOf("cut-groups", "cut within the number of groups", func(b []byte) []byte { return b[:7] })
	bytesOf("cut-str", "cut within a text", func(b []byte) []byte { return b[:20] })
	return all
}

func tickers(whole []byte) []invalid {
	var all []invalid
	const n = 4 // tickers of the base file: AA B C D
	end, calendar, first, rows := func(t int) int { return 8 + 8*t }, func(t int) int { return 8 + 8*(n+t) },
		func(t int) int { return 8 + 8*(2*n+t) }, func(t int) int { return 8 + 8*(3*n+t) }
	names := 8 + 8*4*n
	bad := func(name, note string, edit func(b []byte) []byte) {
		all = append(all, parts(whole, "tick-"+name, format.SectionInvalid, note, func(f *craft.File) {
			s := f.Section("TICK")
			s.Bytes = edit(s.Bytes)
		}))
	}
	set := func(at int, v uint64) func(b []byte) []byte {
		return func(b []byte) []byte { put64(b, at, v); return b }
	}
	bad("count-more", "one ticker more than there are", set(0, n+1))
	bad("count-less", "one ticker less than there are", set(0, n-1))
	bad("count-limit", "2^24 + 1 tickers", set(0, 1<<24+1))
	bad("count-wraps", "2^61 tickers: 8 times that is 0 in 64 bits", set(0, 1<<61))
	bad("count-overflow", "2^63 tickers", set(0, 1<<63))
	bad("cut-count", "cut within the number of tickers", func(b []byte) []byte { return b[:7] })
	bad("cut-rows", "cut within the numbers of rows", func(b []byte) []byte { return b[:names-1] })
	bad("cut-names", "the last byte is missing", func(b []byte) []byte { return b[:len(b)-1] })
	bad("left-over", "a byte behind the names", func(b []byte) []byte { return append(b, 'E') })
	bad("name-end-descending", "a name ends before it starts", set(end(1), 1))
	bad("name-end-behind", "a name ends behind the names", set(end(3), 6))
	bad("name-end-overflow", "a name ends at 2^63", set(end(3), 1<<63))
	bad("name-empty", "a ticker without a name", func(b []byte) []byte {
		for t := range n {
			add64(b, end(t), -2)
		}
		return splice(b, names, 2)
	})
	renamed := func(name, note string, with ...byte) {
		bad(name, note, func(b []byte) []byte {
			put64(b, end(3), uint64(4+len(with)))
			return splice(b, names+4, 1, with...)
		})
	}
	renamed("name-long", "a name of 256 bytes", bytes.Repeat([]byte("D"), 256)...)
	renamed("name-twice", "two tickers of one name", 'C')
	renamed("name-order", "a name before the one before it", 'A')
	bad("name-order-prefix", "a name that is a prefix of the one before it", func(b []byte) []byte { return splice(b, names+2, 1, 'A') })
	renamed("name-utf8-continuation", "a continuation byte alone", 'D', 0x80)
	renamed("name-utf8-overlong", "an overlong zero", 'D', 0xc0, 0x80)
	renamed("name-utf8-surrogate", "half a surrogate pair", 'D', 0xed, 0xa0, 0x80)
	renamed("name-utf8-above", "a code point above U+10FFFF", 'D', 0xf4, 0x90, 0x80, 0x80)
	renamed("name-utf8-cut", "a character that is cut", 'D', 0xe6, 0x97)
	bad("name-split", "a character that is cut in two by the end of a name", func(b []byte) []byte {
		put64(b, end(2), 5)
		put64(b, end(3), 6)
		return splice(b, names+3, 2, 'C', 0xc3, 0xa9)
	})
	bad("calendar-overflow", "calendar 2^63", set(calendar(0), 1<<63))
	bad("first-overflow", "first entry 2^63", set(first(0), 1<<63))
	bad("rows-overflow", "2^63 rows", set(rows(0), 1<<63))
	bad("empty-calendar", "a ticker without rows has calendar 1", set(calendar(1), 1))
	bad("empty-first", "a ticker without rows has first entry 1", set(first(1), 1))
	// These are found with the calendars.
	bad("calendar-unknown", "calendar 2 of 2", set(calendar(3), 2))
	bad("calendar-huge", "calendar 2^63 - 1", set(calendar(3), 1<<63-1))
	bad("rows-behind", "rows behind the calendar's entries", set(first(3), 1))
	bad("first-behind", "a first entry behind the calendar's entries", set(first(3), 6))
	bad("first-wraps", "first entry and rows add up to 2^63 + 4", set(first(3), 1<<63-1))
	bad("rows-huge", "2^63 - 1 rows", set(rows(3), 1<<63-1))
	return all
}

func calendars(whole []byte) []invalid {
	var all []invalid
	const n = 2
	offset, entries, capacity := 8, 8+8*n, 8+16*n
	bad := func(name, note string, edit func(b []byte) []byte) {
		all = append(all, parts(whole, "cals-"+name, format.SectionInvalid, note, func(f *craft.File) {
			s := f.Section("CALS")
			s.Bytes = edit(s.Bytes)
		}))
	}
	set := func(at int, v uint64) func(b []byte) []byte {
		return func(b []byte) []byte { put64(b, at, v); return b }
	}
	both := func(v uint64) func(b []byte) []byte {
		return func(b []byte) []byte { put64(b, entries, v); put64(b, capacity, v); return b }
	}
	bad("count-more", "one calendar more than there are", set(0, n+1))
	bad("count-less", "one calendar less than there are", set(0, n-1))
	bad("count-wraps", "2^61 calendars: 8 times that is 0 in 64 bits", set(0, 1<<61))
	bad("count-overflow", "2^63 calendars", set(0, 1<<63))
	bad("offset-overflow", "an offset of 2^63", set(offset, 1<<63))
	bad("offset-odd", "an offset that is no multiple of the alignment", func(b []byte) []byte { add64(b, offset, 8); return b })
	bad("offset-low", "an offset before byte 8192", set(offset, 8192-64))
	bad("entries-0", "a calendar without entries", both(0))
	bad("entries-wraps", "2^61 entries: 8 times that is 0 in 64 bits", both(1<<61))
	bad("entries-overflow", "2^63 entries", both(1<<63))
	bad("entries-largest", "2^63 - 1 entries", both(1<<63-1))
	bad("entries-chunks", "so many entries that there must be more checksums", both(8193))
	bad("capacity-more", "spare capacity in a sealed file", set(capacity, 9))
	bad("capacity-less", "less capacity than entries", set(capacity, 7))
	bad("cut", "the last checksum is cut", func(b []byte) []byte { return b[:len(b)-1] })
	bad("cut-count", "cut within the number of calendars", func(b []byte) []byte { return b[:7] })
	bad("left-over", "a checksum too many", func(b []byte) []byte { return append(b, make([]byte, 8)...) })
	bad("left-over-byte", "a byte behind the end", func(b []byte) []byte { return append(b, 0) })
	return all
}

func blocks(whole []byte) []invalid {
	var all []invalid
	const n = 4 * 4 // tickers × groups
	offset, capacity := 16, 16+8*n
	bad := func(name, note string, edit func(b []byte) []byte) {
		all = append(all, parts(whole, "blks-"+name, format.SectionInvalid, note, func(f *craft.File) {
			s := f.Section("BLKS")
			s.Bytes = edit(s.Bytes)
		}))
	}
	set := func(at int, v uint64) func(b []byte) []byte {
		return func(b []byte) []byte { put64(b, at, v); return b }
	}
	bad("first-ticker", "the first ticker is 1", set(0, 1))
	bad("first-ticker-overflow", "the first ticker is 2^63", set(0, 1<<63))
	bad("tickers-less", "one ticker less than TICK has", set(8, 3))
	bad("tickers-more", "one ticker more than TICK has", set(8, 5))
	bad("tickers-wraps", "2^62 tickers", set(8, 1<<62))
	bad("tickers-overflow", "2^63 tickers", set(8, 1<<63))
	bad("offset-overflow", "an offset of 2^63", set(offset, 1<<63))
	bad("offset-odd", "an offset that is no multiple of the alignment", func(b []byte) []byte { add64(b, offset, 4); return b })
	bad("offset-low", "an offset before byte 8192", set(offset, 8192-64))
	bad("offset-zero", "a block with rows at 0", set(offset, 0))
	bad("offset-empty", "a block without rows that has an offset", func(b []byte) []byte {
		put64(b, offset+8*4, le.Uint64(b[offset:]))
		return b
	})
	bad("capacity-more", "spare capacity in a sealed file", set(capacity, 9))
	bad("capacity-less", "less capacity than rows", set(capacity, 7))
	bad("capacity-empty", "capacity of a ticker without rows", set(capacity+8*4, 1))
	bad("capacity-overflow", "a capacity of 2^63", set(capacity, 1<<63))
	bad("cut", "the last checksum is cut", func(b []byte) []byte { return b[:len(b)-1] })
	bad("cut-head", "cut within the number of tickers", func(b []byte) []byte { return b[:15] })
	bad("left-over", "a checksum too many", func(b []byte) []byte { return append(b, make([]byte, 8)...) })
	all = append(all, parts(whole, "dgst-short", format.SectionInvalid, "a digest of 31 bytes", func(f *craft.File) {
		s := f.Section("DGST")
		s.Bytes = s.Bytes[:31]
	}))
	return append(all, parts(whole, "dgst-long", format.SectionInvalid, "a digest of 33 bytes", func(f *craft.File) {
		s := f.Section("DGST")
		s.Bytes = append(s.Bytes, 0)
	}))
}

// baseIndex is WIDX of the base file; no number takes more than a byte.
var baseIndex = []byte{
	// 0: three lists of breaks, before rows 5; 2; 1 and 3
	3, 1, 4, 1, 1, 2, 0, 1,
	// 8: two lists of missing runs, [0, 2) and [3, 4)
	2, 1, 0, 1, 1, 3, 0,
	// 15: gap: AA has list 0
	1, 0, 0,
	// 18: session: AA and D have list 1
	2, 0, 1, 2, 1,
	// 23: given: C has list 2
	1, 2, 2,
	// 26: two columns: x, AA and C with list 0; y, D with list 1
	2, 0, 2, 0, 0, 1, 0, 0, 1, 3, 1,
}

func indexes(whole []byte) []invalid {
	var all []invalid
	edit := func(name, note string, edit func(b []byte) []byte) {
		all = append(all, parts(whole, "widx-"+name, format.SectionInvalid, note, func(f *craft.File) {
			f.Section("WIDX").Bytes = edit(slices.Clone(baseIndex))
		}))
	}
	cut := func(name, note string, at, n int, with ...byte) {
		edit(name, note, func(b []byte) []byte { return splice(b, at, n, with...) })
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f} // 2^63 - 1
	cut("uvarint-overlong", "3 in two bytes", 0, 1, 0x83, 0x00)
	cut("uvarint-overlong-zero", "0 in two bytes, 80 00", 10, 1, 0x80, 0x00)
	cut("uvarint-overlong-last", "the last number in two bytes", len(baseIndex)-1, 1, 0x81, 0x00)
	cut("uvarint-overlong-nine", "1 in nine bytes", len(baseIndex)-1, 1, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00)
	cut("uvarint-long", "a number of ten bytes, 2^63", 2, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01)
	cut("uvarint-wraps", "a number of ten bytes that is 4 in 64 bits", 2, 1, 0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02)
	cut("uvarint-largest", "a gap of 2^63 - 1", 2, 1, huge...)
	cut("uvarint-cut", "the last number is cut off", len(baseIndex)-1, 1, 0x81)
	cut("cut", "the last number is missing", len(baseIndex)-1, 1)
	cut("cut-lists", "cut within the lists", 2, len(baseIndex)-2)
	cut("left-over", "a byte behind the end", len(baseIndex), 0, 0)
	cut("break-lists-huge", "2^63 - 1 lists of breaks", 0, 1, huge...)
	cut("break-list-huge", "a list of 2^63 - 1 breaks", 1, 1, huge...)
	cut("break-list-empty", "an empty list of breaks", 1, 2, 0)
	cut("break-list-twice", "two equal lists of breaks", 1, 2, 1, 1)
	edit("break-list-unused", "a list of breaks without a use", func(b []byte) []byte {
		b[0] = 4
		return splice(b, 8, 0, 2, 1, 1)
	})
	edit("break-list-order", "lists of breaks out of the order of their first use", func(b []byte) []byte {
		b[2], b[4] = 1, 4
		b[17], b[20], b[22] = 1, 0, 0
		return b
	})
	cut("break-list-unknown", "list 3 of 3", 25, 1, 3)
	cut("break-row", "a break before row 8 of 8", 2, 1, 7)
	edit("break-row-wraps", "rows of breaks that add up to 2^63 + 2", func(b []byte) []byte { return splice(b, 6, 2, concat([]byte{1}, huge)...) })
	cut("break-ticker", "ticker 4 of 4", 21, 1, 3)
	cut("break-ticker-empty", "a break of a ticker without rows", 21, 1, 0)
	cut("break-ticker-wraps", "numbers of tickers that add up to 2^63", 21, 1, huge...)
	cut("break-uses-huge", "2^63 - 1 uses", 15, 1, huge...)
	cut("missing-lists-huge", "2^63 - 1 lists of missing runs", 8, 1, huge...)
	cut("missing-list-huge", "a list of 2^63 - 1 runs", 9, 1, huge...)
	cut("missing-list-empty", "an empty list of missing runs", 9, 3, 0)
	cut("missing-list-twice", "two equal lists of missing runs", 12, 3, 1, 0, 1)
	edit("missing-list-unused", "a list of missing runs without a use", func(b []byte) []byte {
		b[8] = 3
		return splice(b, 15, 0, 1, 1, 0)
	})
	edit("missing-list-order", "lists of missing runs out of the order of their first use", func(b []byte) []byte {
		copy(b[9:], []byte{1, 3, 0, 1, 0, 1})
		b[30], b[32], b[36] = 1, 1, 0
		return b
	})
	cut("missing-list-unknown", "list 2 of 2", 36, 1, 2)
	cut("missing-run", "a run that ends behind the ticker's rows", 11, 1, 4)
	cut("missing-run-wraps", "a run that ends at 2^63", 11, 1, huge...)
	cut("missing-ticker", "ticker 4 of 4", 35, 1, 4)
	cut("missing-column-int64", "missing cells of an int64 column", 33, 1, 2)
	cut("missing-column-unknown", "column 5 of 5", 33, 1, 4)
	cut("missing-column-wraps", "numbers of columns that add up to 2^63", 33, 1, huge...)
	edit("missing-column-unused", "a column without uses", func(b []byte) []byte {
		b[26] = 3
		return append(b, 0, 0)
	})
	cut("missing-columns-huge", "2^63 - 1 columns", 26, 1, huge...)
	cut("missing-columns-less", "one column less than there are", 26, 1, 1)
	return all
}

func layouts(whole []byte) []invalid {
	var all []invalid
	bad := func(name, note string, edit func(f *craft.File)) {
		all = append(all, parts(whole, "layout-"+name, format.LayoutInvalid, note, edit))
	}
	cal := func(at int, v uint64) func(f *craft.File) {
		return func(f *craft.File) { put64(f.Section("CALS").Bytes, at, v) }
	}
	blk := func(block int, v uint64) func(f *craft.File) {
		return func(f *craft.File) { put64(f.Section("BLKS").Bytes, 16+8*block, v) }
	}
	f := craft.Split(whole)
	calendar, block := le.Uint64(f.Section("CALS").Bytes[8:]), le.Uint64(f.Section("BLKS").Bytes[16:])
	bad("calendar-later", "a calendar that stands later than it must", cal(8, calendar+64))
	bad("calendar-end", "a calendar behind the end of the file", cal(8, uint64(len(whole)+64)&^63))
	bad("calendar-largest", "a calendar at 2^63 - 64", cal(8, 1<<63-64))
	bad("block-later", "a block that stands later than it must", blk(0, block+64))
	bad("block-largest", "a block at 2^63 - 64", blk(0, 1<<63-64))
	bad("blocks-swapped", "two blocks' offsets are swapped", func(f *craft.File) {
		b := f.Section("BLKS").Bytes
		x, y := le.Uint64(b[16:]), le.Uint64(b[16+8*8:])
		put64(b, 16, y)
		put64(b, 16+8*8, x)
	})
	bad("blocks-shared", "two blocks at one place", blk(8, block))
	all = append(all, parts(whole, "cals-align", format.SectionInvalid, "the alignment is greater than the offsets have", func(f *craft.File) { f.Slot.AlignLog2 = 7 }))
	wider := base()
	wider.AlignLog2 = 8
	all = append(all, parts(wider.Build(), "layout-align", format.LayoutInvalid, "the alignment is less than the offsets have", func(f *craft.File) { f.Slot.AlignLog2 = 6 }))
	bad("sections-later", "8 zero bytes too many before the sections", func(f *craft.File) {
		f.Data = append(f.Data, make([]byte, 8)...)
	})
	all = append(all, raw(whole, "layout-catalog-later", format.LayoutInvalid, "8 zero bytes too many before the catalog", func(b []byte) []byte {
		at := int(le.Uint64(b[56:]))
		b = splice(b, at, 0, make([]byte, 8)...)
		add64(b, 56, 8)
		add64(b, 48, 8)
		craft.SealCatalog(b)
		return b
	}))
	return append(all, raw(whole, "layout-sections-swapped", format.LayoutInvalid, "two sections stand in the other order than their entries", func(b []byte) []byte {
		at := int(le.Uint64(b[56:]))
		x, y := at+8, at+8+40 // BLKS and CALS
		from, to := int(le.Uint64(b[x+16:])), int(le.Uint64(b[y+16:])+le.Uint64(b[y+24:]))
		blks, cals := slices.Clone(b[from:from+int(le.Uint64(b[x+24:]))]), slices.Clone(b[le.Uint64(b[y+16:]):to])
		copy(b[from:], concat(cals, blks)) // both are multiples of 8 long
		put64(b, y+16, uint64(from))
		put64(b, x+16, uint64(from+len(cals)))
		craft.SealCatalog(b)
		return b
	}))
}

// verifies are files that open.
func verifies(whole []byte) []invalid {
	var all []invalid
	f := craft.Split(whole)
	cals, blks := f.Section("CALS").Bytes, f.Section("BLKS").Bytes
	calendar := func(c int) int { return int(le.Uint64(cals[8+8*c:])) }
	block := func(ticker, group int) int { return int(le.Uint64(blks[16+8*(4*ticker+group):])) }
	const aa, c, d = 0, 2, 3 // tickers
	const features, targets, ends, masks = 0, 1, 2, 3
	damaged := func(name string, code format.Code, note string, edit func(b []byte)) {
		v := raw(whole, name, code, note, func(b []byte) []byte { edit(b); return b })
		v.verify = true
		all = append(all, v)
	}
	// wrong edits data and sections and makes all checksums and the digest right.
	wrong := func(name string, code format.Code, note string, edit func(data []byte, f *craft.File)) {
		v := parts(whole, name, code, note, func(f *craft.File) {
			edit(f.Data, f)
			if err := f.Repair(); err != nil {
				panic(err)
			}
		})
		v.verify = true
		all = append(all, v)
	}
	flip := func(at int) func(b []byte) { return func(b []byte) { b[at] ^= 0x10 } }

	damaged("slot-1-damaged", format.SlotDamaged, "slot 1 is neither zero nor valid; the file opens", func(b []byte) { b[4096+17] = 1 })
	damaged("slot-1-checksum", format.SlotDamaged, "slot 1 has the magic and a wrong checksum; the file opens", func(b []byte) {
		copy(b[4096:], b[:512])
		b[4096+40] = 1
	})
	damaged("slot-1-not-zero", format.SlotInvalid, "slot 1 holds commit 0 too; slot 0 is taken", func(b []byte) { copy(b[4096:], b[:512]) })
	damaged("padding-slot-0", format.PaddingNotZero, "a byte behind slot 0", func(b []byte) { b[512] = 1 })
	damaged("padding-before-slot-1", format.PaddingNotZero, "a byte before slot 1", func(b []byte) { b[4095] = 0x80 })
	damaged("padding-slot-1", format.PaddingNotZero, "a byte behind slot 1", func(b []byte) { b[4608] = 1 })
	damaged("padding-before-data", format.PaddingNotZero, "a byte before the data", func(b []byte) { b[8191] = 1 })
	damaged("padding-calendar", format.PaddingNotZero, "a byte behind a calendar", func(b []byte) { b[calendar(1)+8*5] = 1 })
	damaged("padding-block", format.PaddingNotZero, "a byte before a block", func(b []byte) { b[block(d, features)-1] = 1 })
	damaged("padding-catalog", format.PaddingNotZero, "a byte before the catalog", func(b []byte) { b[le.Uint64(b[56:])-1] = 1 })
	damaged("padding-first", format.PaddingNotZero, "padding and data are damaged: padding is found first", func(b []byte) {
		b[calendar(0)] ^= 1
		b[le.Uint64(b[56:])-1] = 1
	})
	damaged("data-calendar", format.DataChecksum, "a bit of a calendar is flipped", flip(calendar(0)+8))
	damaged("data-block", format.DataChecksum, "a bit of a float32 block is flipped", flip(block(d, features)+5))
	damaged("data-block-last", format.DataChecksum, "a bit of a block's last byte is flipped", flip(block(d, masks)+5*4-1))
	damaged("data-int64", format.DataChecksum, "a bit of an int64 block is flipped", flip(block(c, ends)+8))
	damaged("data-swapped", format.DataChecksum, "two blocks of one size have changed places", func(b []byte) {
		x := slices.Clone(b[block(c, targets):][:16])
		copy(b[block(c, targets):], b[block(c, masks):][:16])
		copy(b[block(c, masks):], x)
	})
	damaged("data-zeroed", format.DataChecksum, "a block reads as zeros", func(b []byte) { clear(b[block(aa, targets):][:32]) })

	set := func(at int, v uint64) func([]byte, *craft.File) {
		return func(data []byte, _ *craft.File) { put64(data, at-8192, v) }
	}
	wrong("calendar-equal", format.CalendarOrder, "a time twice", set(calendar(1)+8, 5))
	wrong("calendar-descending", format.CalendarOrder, "a time before the one before it", set(calendar(1)+4*8, 44-10))
	wrong("calendar-signed", format.CalendarOrder, "a negative time last: times are signed", set(calendar(1)+4*8, 1<<64-1))
	// A calendar of two chunks, the second of one entry.
	two := &format.Schema{Groups: []format.Group{floats("features", "x")}}
	n := 8193
	long := (&craft.Content{Schema: two, Tickers: []oracle.Ticker{ticker(two, "A", steps(0, 1, n), nil, ramp(0, n))}}).Build()
	for _, v := range []invalid{
		parts(long, "calendar-equal-chunk", format.CalendarOrder, "the first time of a chunk is the last of the one before", func(f *craft.File) {
			put64(f.Data, 65536, 8191)
			if err := f.Repair(); err != nil {
				panic(err)
			}
		}),
		raw(long, "data-second-chunk", format.DataChecksum, "a bit of a calendar's second chunk is flipped", func(b []byte) []byte {
			b[8192+65536] ^= 1
			return b
		}),
	} {
		v.verify = true
		all = append(all, v)
	}
	cell := func(at int, bits uint32) func([]byte, *craft.File) {
		return func(data []byte, _ *craft.File) { put32(data, at-8192, bits) }
	}
	x0 := block(aa, features)
	for _, v := range []struct {
		name string
		bits uint32
	}{
		{"infinity", 0x7f800000}, {"minus-infinity", 0xff800000}, {"nan-payload", 0x7fc00001}, {"nan-sign", 0xffc00000},
		{"nan-signalling", 0x7f800001}, {"nan-all-ones", 0x7fffffff},
	} {
		wrong("cell-"+v.name, format.CellInvalid, "a cell that the index lists as missing has other bits", cell(x0, v.bits))
	}
	wrong("cell-present-infinity", format.CellInvalid, "a cell that the index does not list is infinite", cell(block(c, targets), 0x7f800000))
	wrong("cell-mask", format.CellInvalid, "a mask is infinite", cell(block(d, masks)+16, 0xff800000))
	wrong("index-unlisted", format.IndexMismatch, "a missing cell that the index does not list", cell(block(c, targets), format.MissingBits))
	wrong("index-unlisted-beside", format.IndexMismatch, "a missing run that is longer than the index says", cell(x0+2*8, format.MissingBits))
	wrong("index-present", format.IndexMismatch, "a cell that is not missing although the index lists it", cell(x0+8, 0x3f800000))
	wrong("index-column", format.IndexMismatch, "the missing cells are those of another column", func(_ []byte, f *craft.File) {
		f.Section("WIDX").Bytes = splice(baseIndex, 33, 1, 1) // column 2 instead of 1
	})
	wrong("index-gap-unlisted", format.IndexMismatch, "a gap that the index does not list", func(_ []byte, f *craft.File) {
		b := splice(baseIndex, 15, 3, 0)
		// Without list 0 the others move up.
		b[18-2], b[20-2], b[22-2], b[25-2] = 2, 0, 0, 1
		f.Section("WIDX").Bytes = splice(b, 0, 3, 2)
	})
	wrong("index-gap-row", format.IndexMismatch, "a gap at another row than the index says", func(_ []byte, f *craft.File) {
		f.Section("WIDX").Bytes = splice(baseIndex, 2, 1, 5)
	})
	wrong("index-gap-too-many", format.IndexMismatch, "the index lists a gap where there is none", func(_ []byte, f *craft.File) {
		f.Section("WIDX").Bytes = splice(baseIndex, 15, 3, 2, 0, 0, 2, 1) // D has list 1, a break before row 2
	})
	wrong("index-gap-equal", format.IndexMismatch, "a gap of exactly the greatest is listed", func(data []byte, _ *craft.File) {
		for i, v := range []uint64{100, 200, 210} { // 40, 100 instead of 40, 200
			put64(data, calendar(0)+8*(5+i)-8192, v)
		}
	})
	wrong("index-first", format.CellInvalid, "an infinite cell of one block and a wrong index of a later one", func(data []byte, f *craft.File) {
		cell(x0, 0x7f800000)(data, f)
		cell(block(c, targets), format.MissingBits)(data, f)
	})
	unrepaired := func(name, note string, edit func(f *craft.File)) {
		v := parts(whole, name, format.DigestMismatch, note, edit)
		v.verify = true
		all = append(all, v)
	}
	unrepaired("digest", "a bit of the digest is flipped", func(f *craft.File) { f.Section("DGST").Bytes[0] ^= 1 })
	unrepaired("digest-name", "a ticker has another name", func(f *craft.File) { b := f.Section("TICK").Bytes; b[len(b)-1] = 'E' })
	unrepaired("digest-zone", "the zone is another", func(f *craft.File) { f.Section("SCHM").Bytes[8+2] = 'a' })
	unrepaired("digest-break", "a break of a given set is at another row", func(f *craft.File) { f.Section("WIDX").Bytes = splice(baseIndex, 7, 1, 0) })
	unrepaired("digest-break-set", "breaks are those of another set", func(f *craft.File) {
		// D's breaks of session become breaks of given, before those of C in the order of uses.
		f.Section("WIDX").Bytes = concat(baseIndex[:18], []byte{1, 0, 1}, []byte{2, 2, 2, 0, 1}, baseIndex[26:])
	})
	unrepaired("digest-cell", "a cell and its chunk's checksum are changed, the digest is not", func(f *craft.File) {
		dgst := slices.Clone(f.Section("DGST").Bytes)
		put32(f.Data, block(d, targets)-8192, 0x3f800000)
		if err := f.Repair(); err != nil {
			panic(err)
		}
		copy(f.Section("DGST").Bytes, dgst)
	})
	return all
}

// labels are files of bad categories and attributes.
func labels(whole []byte) []invalid {
	var all []invalid
	section := func(tag, name string, code format.Code, note string, edit func(s *craft.Section)) {
		all = append(all, parts(whole, strings.ToLower(tag)+"-"+name, code, note, func(f *craft.File) { edit(f.Section(tag)) }))
	}
	for _, tag := range []string{"CATS", "STAT"} {
		section(tag, "required", format.CatalogInvalid, tag+" is required", func(s *craft.Section) { s.Flags = 1 })
		section(tag, "copy", format.CatalogInvalid, tag+" is safe to copy", func(s *craft.Section) { s.Flags = 2 })
		section(tag, "key", format.CatalogInvalid, tag+" has a key", func(s *craft.Section) { s.Key = 1 })
		all = append(all, raw(whole, "checksum-"+strings.ToLower(tag), format.SectionChecksum, "a bit of "+tag+" is flipped", func(b []byte) []byte {
			i := slices.IndexFunc(craft.Split(b).Sections, func(s craft.Section) bool { return s.Tag == tag })
			b[le.Uint64(b[int(le.Uint64(b[56:]))+8+40*i+16:])] ^= 1
			return b
		}))
		section(tag, "none", format.SectionInvalid, "a section "+tag+" of nothing", func(s *craft.Section) { s.Bytes = make([]byte, 4) })
		section(tag, "cut-count", format.SectionInvalid, "cut within the first number", func(s *craft.Section) { s.Bytes = s.Bytes[:3] })
		section(tag, "cut", format.SectionInvalid, "the last byte is missing", func(s *craft.Section) { s.Bytes = s.Bytes[:len(s.Bytes)-1] })
		section(tag, "left-over", format.SectionInvalid, "a byte behind the end", func(s *craft.Section) { s.Bytes = append(s.Bytes, 0) })
		section(tag, "count-less", format.SectionInvalid, "one less than there are", func(s *craft.Section) { s.Bytes[0]-- })
		section(tag, "count-more", format.SectionInvalid, "one more than there are", func(s *craft.Section) { s.Bytes[0]++ })
		section(tag, "count-huge", format.SectionInvalid, "2^32 - 1 of them", func(s *craft.Section) { put32(s.Bytes, 0, math.MaxUint32) })
	}
	bytesOf := func(tag string) func(name, note string, edit func(b []byte) []byte) {
		return func(name, note string, edit func(b []byte) []byte) {
			section(tag, name, format.SectionInvalid, note, func(s *craft.Section) { s.Bytes = edit(s.Bytes) })
		}
	}
	set := func(at int, v uint32) func(b []byte) []byte {
		return func(b []byte) []byte { put32(b, at, v); return b }
	}

	// CATS: columns 1, sector, of three texts, and 4, country, of two.
	const sector, country = 4, 38
	cats := bytesOf("CATS")
	cats("column-order", "columns out of order", func(b []byte) []byte { return concat(b[:4], b[country:], b[sector:country]) })
	cats("column-twice", "a column twice", set(country, 1))
	cats("column-unknown", "column 5 of 5", set(country, 5))
	cats("column-huge", "column 2^32 - 1", set(country, math.MaxUint32))
	cats("column-label-end", "categories of label ends", set(country, 2))
	cats("column-mask", "categories of a mask", set(country, 3))
	cats("texts-limit", "2^24 + 1 texts", set(sector+4, 1<<24+1))
	cats("texts-huge", "2^32 - 1 texts", set(sector+4, math.MaxUint32))
	cats("end-descending", "a text ends before it starts", set(sector+8, 13))
	cats("end-behind", "the texts end behind the section", set(country+12, 5))
	cats("end-huge", "the texts end at 2^32 - 1", set(country+12, math.MaxUint32))
	texts := func(name, note string, t ...string) {
		cats("text-"+name, note, func(b []byte) []byte { return concat(b[:sector+4], craft.Texts(t...), b[country:]) })
	}
	texts("empty", "an empty text", "", "A", "B")
	texts("long", "a text of 65536 bytes", strings.Repeat("A", 65536))
	texts("order", "texts out of order", "A", "C", "B")
	texts("twice", "a text twice", "A", "B", "B")
	texts("utf8", "a text that is not UTF-8", "A", "B\xff", "C")
	texts("split", "a character that is cut in two by the end of a text", "A", "B\xc3", "\xa9")

	// STAT: the number beta, and the texts home (of one) and sector (of two), of three tickers.
	const beta, home, sectorText, first = 4, 35, 64, 93
	stat := bytesOf("STAT")
	stat("limit", "65536 attributes", set(0, 65536))
	stat("name-order", "names out of order", func(b []byte) []byte { return concat(b[:beta], b[home:sectorText], b[beta:home], b[sectorText:]) })
	stat("name-twice", "two attributes of one name", func(b []byte) []byte { copy(b[home+2:], "beta"); return b })
	stat("name-empty", "an attribute without a name", func(b []byte) []byte { return splice(b, beta, 6, 0, 0) })
	stat("name-long", "a name of 256 bytes", func(b []byte) []byte {
		return splice(b, beta, 6, concat([]byte{0, 1}, bytes.Repeat([]byte("b"), 256))...)
	})
	stat("name-utf8", "a name that is not UTF-8", func(b []byte) []byte { b[beta+5] = 0xc3; return b })
	stat("kind-0", "kind 0", func(b []byte) []byte { b[home-25] = 0; return b })
	stat("kind-3", "kind 3", func(b []byte) []byte { b[home-25] = 3; return b })
	for _, v := range []struct {
		name string
		bits uint64
	}{{"infinity", 0x7ff0 << 48}, {"minus-infinity", 0xfff0 << 48}, {"nan-payload", 0x7ff8<<48 | 1}, {"nan-sign", 0xfff8 << 48}} {
		stat("number-"+v.name, "a number of other bits than missing ones have", func(b []byte) []byte { put64(b, home-16, v.bits); return b })
	}
	stat("code-unknown", "code 3 of two texts", set(first+4, 3))
	stat("code-huge", "code 2^32 - 1", set(first+4, math.MaxUint32))
	stat("text-unused", "a text that no ticker has", set(first+4, 2))
	stat("texts-huge", "2^32 - 1 texts", set(home+7, math.MaxUint32))
	stat("text-empty", "an empty text", func(b []byte) []byte { return splice(b, home+11, 6, 0, 0, 0, 0) })
	stat("text-order", "texts out of order", func(b []byte) []byte { return concat(b[:sectorText+9], craft.Texts("IT", "Energy"), b[first:]) })
	stat("tickers", "values of four tickers, of which there are three", func(b []byte) []byte { return append(b, 1, 0, 0, 0) })

	verify := func(name string, code format.Code, note string, edit func(f *craft.File), repair bool) {
		v := parts(whole, name, code, note, func(f *craft.File) {
			edit(f)
			if !repair {
				return
			}
			if err := f.Repair(); err != nil {
				panic(err)
			}
		})
		v.verify = true
		all = append(all, v)
	}
	blks := craft.Split(whole).Section("BLKS").Bytes
	features, more := int(le.Uint64(blks[16:]))-8192, int(le.Uint64(blks[16+8*3:]))-8192
	cell := func(name, note string, at int, bits uint32) {
		verify("cell-code-"+name, format.CellInvalid, note, func(f *craft.File) { put32(f.Data, at, bits) }, true)
	}
	one := math.Float32bits(1)
	cell("behind", "code 3 of three categories", features+4, math.Float32bits(3))
	cell("last-row", "code 2 of two categories, in a group's only column", more+4*2, math.Float32bits(2))
	cell("negative", "code -1", features+4, math.Float32bits(-1))
	cell("negative-zero", "code -0: bits are compared", features+4, 1<<31)
	cell("fraction", "a code that is not whole", features+4, one+1)
	cell("subnormal", "a code a little above 0", features+12, 1)
	cell("huge", "code 2^24", features+4, math.Float32bits(1<<24))
	cell("infinity", "an infinite code", features+4, 0x7f800000)
	verify("cell-code-none", format.CellInvalid, "a code of a column whose categories are none", func(f *craft.File) {
		s := f.Section("CATS")
		s.Bytes = concat(s.Bytes[:country+4], craft.Texts())
	}, true)
	verify("cell-code-beside", format.CellInvalid, "the categories are another column's", func(f *craft.File) {
		f.Section("CATS").Bytes[sector] = 0
	}, true)
	verify("digest-cats", format.DigestMismatch, "a category is another", func(f *craft.File) { b := f.Section("CATS").Bytes; b[len(b)-1] = 'X' }, false)
	verify("digest-stat", format.DigestMismatch, "an attribute is another", func(f *craft.File) { put64(f.Section("STAT").Bytes, home-24, 0) }, false)
	verify("digest-without-cats", format.DigestMismatch, "the digest is one with categories, the file has none", func(f *craft.File) { f.Remove("CATS") }, false)
	verify("digest-without-stat", format.DigestMismatch, "the digest is one with attributes, the file has none", func(f *craft.File) { f.Remove("STAT") }, false)
	return all
}
