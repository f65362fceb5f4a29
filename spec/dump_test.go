package spec

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// small is the file of section 19.
func small() *craft.Content {
	s := &format.Schema{
		Groups: []format.Group{floats("features", "open", "close")},
		Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 259_200}},
	}
	day := int64(86_400)
	start := 19_359 * day // 2023-01-02
	return &craft.Content{Schema: s, Tickers: []oracle.Ticker{
		ticker(s, "AAPL", []int64{start, start + day, start + 2*day, start + 7*day}, nil,
			[]float32{130.5, 126, 127, 131.25}, []float32{format.Missing(), 125, 126.5, 133.5}),
		ticker(s, "KO", []int64{start + day, start + 2*day}, nil, []float32{63.5, 62.75}, []float32{62.5, 63}),
	}}
}

const (
	dumpBegin = "<!-- dump: begin -->\n"
	dumpEnd   = "<!-- dump: end -->"
)

// smallWithLabels is the small file with the categories and attributes that sections 5.8 and 5.9 show.
func smallWithLabels() *craft.Content {
	c := small()
	for i := range c.Tickers {
		for r := range c.Tickers[i].Times {
			c.Tickers[i].Cells[1][r] = float32(i)
		}
	}
	c.Categories = map[string][]string{"close": {"Energy", "Technology"}}
	c.Attributes = []oracle.Attribute{
		{Name: "beta", Numbers: []float64{1.25, math.NaN()}}, {Name: "sector", Texts: []string{"Technology", "Staples"}},
	}
	return c
}

// TestDump holds the dumps in section 19, 5.8 and 5.9 to the files that they show, or writes them.
func TestDump(t *testing.T) {
	text, err := os.ReadFile("SPEC.md")
	require.NoError(t, err)
	want := string(text)
	between := func(begin, end, dump string) {
		before, rest, found := strings.Cut(want, begin)
		require.True(t, found, begin)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, end)
		want = before + begin + dump + end + after
	}
	for _, c := range []*craft.Content{small(), smallWithLabels()} {
		_, err := reader.OpenBytes(c.Build(), &reader.Options{Verify: true})
		require.NoError(t, err)
	}
	between(dumpBegin, dumpEnd, dump(small().Build()))
	for _, tag := range []string{format.TagCategories, format.TagAttributes} {
		d := &dumper{b: craft.Split(smallWithLabels().Build()).Section(tag).Bytes}
		d.text.WriteString("```\n")
		d.section(tag, nil)
		require.Len(t, d.b, d.pos, "the dump does not reach the end of the section")
		d.text.WriteString("```\n")
		between("<!-- dump: "+tag+" -->\n", "<!-- dump: end of "+tag+" -->\n", d.text.String())
	}
	if *update {
		require.NoError(t, os.WriteFile("SPEC.md", []byte(want), 0o666))
		return
	}
	require.Equal(t, want, string(text), "run go test ./spec -update")
}

// dumper writes a file's bytes with what they mean, from the first to the last.
type dumper struct {
	b    []byte
	pos  int
	text strings.Builder
}

// take dumps n bytes, sixteen a line, zeros in one.
func (d *dumper) take(n int, meaning string, args ...any) []byte {
	b := d.b[d.pos : d.pos+n]
	meaning = fmt.Sprintf(meaning, args...)
	if n > 8 && strings.Trim(string(b), "\x00") == "" {
		fmt.Fprintf(&d.text, "%5d  00 × %-19d  %s\n", d.pos, n, meaning)
		d.pos += n
		return b
	}
	for i := 0; i < n; i += 8 {
		line := fmt.Sprintf("%5d  % -24x  %s", d.pos+i, b[i:min(n, i+8)], meaning)
		d.text.WriteString(strings.TrimRight(line, " ") + "\n")
		meaning = ""
	}
	d.pos += n
	return b
}

func (d *dumper) head(title string) { fmt.Fprintf(&d.text, "\n       --- %s\n", title) }

func (d *dumper) u16(name string) int { return d.number(2, name, "") }
func (d *dumper) u32(name string) int { return d.number(4, name, "") }
func (d *dumper) u64(name string) int { return d.number(8, name, "") }

func (d *dumper) u8(name, note string) int { return d.number(1, name, note) }

func (d *dumper) number(n int, name, note string) int {
	v := le.Uint64(append(append([]byte{}, d.b[d.pos:d.pos+n]...), make([]byte, 8-n)...))
	if note != "" {
		note = ", " + note
	}
	d.take(n, "%s: %d%s", name, v, note)
	return int(v)
}

func (d *dumper) str(name string) string {
	n := int(le.Uint16(d.b[d.pos:]))
	return string(d.take(2+n, "%s: %d bytes, %q", name, n, d.b[d.pos+2:d.pos+2+n])[2:])
}

func (d *dumper) texts() {
	n, from := d.u32("n"), 0
	ends := make([]int, n)
	for i := range ends {
		ends[i] = d.u32(fmt.Sprintf("end of text %d", i))
	}
	for i, end := range ends {
		d.take(end-from, "text %d: %s", i, d.b[d.pos:d.pos+end-from])
		from = end
	}
}

func (d *dumper) sum(of string) { d.take(8, "checksum of %s", of) }

func (d *dumper) padding(to int) {
	if to > d.pos {
		d.take(to-d.pos, "padding")
	}
}

func dump(file []byte) string {
	d := &dumper{b: file}
	d.text.WriteString("```\nbyte   hexadecimal               meaning\n")
	d.head("slot 0")
	d.take(8, "magic")
	d.u32("version")
	align := 1 << d.u32("align_log2")
	for _, name := range []string{"compat", "ro_compat", "incompat", "commit", "end", "catalog_offset", "catalog_length"} {
		d.u64(name)
	}
	d.sum("the catalog")
	d.take(424, "reserved")
	d.sum("the slot's first 504 bytes")
	d.padding(4096)
	d.head("slot 1, not used in a sealed file")
	d.take(512, "zero")
	d.padding(8192)

	m, err := format.Decode(int64(len(file)), func(off, n int64) ([]byte, error) { return file[off : off+n], nil })
	if err != nil {
		panic(err)
	}
	for i, n := range m.Calendars.Entries {
		d.padding((d.pos + align - 1) &^ (align - 1))
		d.head(fmt.Sprintf("calendar %d", i))
		for k := range n {
			v := int64(le.Uint64(file[d.pos:]))
			d.take(8, "entry %d: %d, %s", k, v, m.Schema.Unit.Time(v).Format("2006-01-02"))
		}
	}
	g := m.Schema.Groups[0]
	for t, rows := range m.Tickers.Rows {
		d.padding((d.pos + align - 1) &^ (align - 1))
		d.head(fmt.Sprintf("block of ticker %d, %s, and group 0, %s", t, m.Tickers.Names[t], g.Name))
		for r := range rows {
			var cells []string
			for k := range g.Columns {
				v := math.Float32frombits(le.Uint32(file[d.pos+4*k:]))
				cells = append(cells, fmt.Sprintf("%s %v", g.Columns[k].Name, v))
				if format.IsMissing(v) {
					cells[k] = g.Columns[k].Name + " missing"
				}
			}
			d.take(4*len(cells), "row %d: %s", r, strings.Join(cells, ", "))
		}
	}
	for _, s := range m.Sections {
		d.padding(int(s.Offset))
		d.head(fmt.Sprintf("section %s, %d bytes", s.Tag, s.Length))
		d.section(s.Tag, m)
	}
	d.padding(int(m.Newest.CatalogOffset))
	d.head("catalog")
	d.u32("count")
	d.u32("reserved")
	for range m.Sections {
		d.take(4, "tag: %s", file[d.pos:d.pos+4])
		for _, name := range []string{"flags", "key", "offset", "length"} {
			if name == "flags" {
				d.u32(name)
			} else {
				d.u64(name)
			}
		}
		d.sum("the section")
	}
	if d.pos != len(file) {
		panic("the dump does not reach the end of the file")
	}
	d.text.WriteString("```\n")
	return d.text.String()
}

func (d *dumper) section(tag string, m *format.Meta) {
	switch tag {
	case format.TagBlocks:
		d.u64("first_ticker")
		n := d.u64("tickers")
		for _, name := range []string{"offset", "capacity"} {
			for t := range n {
				d.u64(fmt.Sprintf("%s of ticker %d, group 0", name, t))
			}
		}
		for t := range n {
			d.sum(fmt.Sprintf("chunk 0 of ticker %d, group 0", t))
		}
	case format.TagCalendars:
		n := d.u64("calendars")
		for _, name := range []string{"offset", "entries", "capacity"} {
			for i := range n {
				d.u64(fmt.Sprintf("%s of calendar %d", name, i))
			}
		}
		for i := range n {
			d.sum(fmt.Sprintf("chunk 0 of calendar %d", i))
		}
	case format.TagCategories:
		for range d.u32("columns") {
			d.u32("column")
			d.texts()
		}
	case format.TagAttributes:
		for range d.u32("attributes") {
			d.str("name")
			if d.b[d.pos] == byte(format.Text) {
				d.u8("kind", "text")
				d.texts()
				d.number(4, "code of ticker 0", "its text is 1")
				d.number(4, "code of ticker 1", "its text is 0")
				continue
			}
			d.u8("kind", "number")
			d.take(8, "number of ticker 0: %v", math.Float64frombits(le.Uint64(d.b[d.pos:])))
			d.take(8, "number of ticker 1: missing")
		}
	case format.TagDigest:
		d.take(format.DigestSize, "the content digest, SHA-256")
	case format.TagSchema:
		d.u8("time_unit", "seconds")
		d.u8("reserved", "")
		d.u16("reserved")
		groups := d.u32("groups")
		d.str("zone")
		for range groups {
			d.str("name of the group")
			d.u8("dtype", "float32")
			d.u8("reserved", "")
			for range d.u16("width") {
				d.str("name of the column")
				d.u8("role", "value")
				d.u8("reach_kind", "none declared")
				d.u64("reach")
			}
		}
		for range d.u32("break_sets") {
			d.str("name of the break set")
			d.u8("kind", "gap")
			d.u64("max_gap")
			d.str("source")
		}
	case format.TagTickers:
		n := d.u64("tickers")
		for _, name := range []string{"name_end", "calendar", "first", "rows"} {
			for t := range n {
				d.u64(fmt.Sprintf("%s of ticker %d", name, t))
			}
		}
		for _, name := range m.Tickers.Names {
			d.take(len(name), "name: %s", name)
		}
	case format.TagIndex:
		for _, v := range [][2]string{
			{"break_lists"}, {"n", "of list 0"}, {"gap", "from 1: a break before row 3"},
			{"missing_lists"}, {"n", "of list 0"}, {"gap", "the run starts at row 0"}, {"length", "and ends at row 0 + 0 + 1"},
			{"n", "of break set 0: tickers with a list"}, {"ticker_gap", "ticker 0"}, {"list"},
			{"missing_columns"}, {"column_gap", "column 1"}, {"n", "tickers with a list"}, {"ticker_gap", "ticker 0"}, {"list"},
		} {
			d.u8(v[0], v[1])
		}
	}
}
