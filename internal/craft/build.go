package craft

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/oracle"
)

var le = binary.LittleEndian

// Content is what a file holds.
type Content struct {
	Schema     *format.Schema
	Tickers    []oracle.Ticker // as the schema has it, ascending by name
	AlignLog2  uint32          // 0: 6, that is 64 bytes
	Provenance []byte          // nil: none
	Categories map[string][]string
	Attributes []oracle.Attribute // ascending by name
}

// Panel returns the content as the oracle has it.
func (c *Content) Panel() *oracle.Panel {
	p := &oracle.Panel{Tickers: c.Tickers, Attributes: c.Attributes}
	for _, g := range c.Schema.Groups {
		group := oracle.Group{Name: g.Name, LabelEnd: g.DType == format.Int64}
		for _, col := range g.Columns {
			group.Columns = append(group.Columns, oracle.Column{
				Name: col.Name, Mask: col.Role == format.Mask, Categories: c.Categories[col.Name],
			})
		}
		p.Groups = append(p.Groups, group)
	}
	for _, b := range c.Schema.Breaks {
		p.BreakSets = append(p.BreakSets, oracle.BreakSet{Name: b.Name, MaxGap: b.MaxGap})
	}
	return p
}

// FromPanel returns the content of a panel whose times are in nanoseconds.
func FromPanel(p *oracle.Panel) *Content {
	s := &format.Schema{Unit: format.Nanosecond}
	categories := map[string][]string{}
	for _, g := range p.Groups {
		group := format.Group{Name: g.Name, DType: format.Float32}
		for _, col := range g.Columns {
			column := format.Column{Name: col.Name}
			switch {
			case g.LabelEnd:
				group.DType, column.Role = format.Int64, format.LabelEnd
			case col.Mask:
				column.Role = format.Mask
			}
			if col.Categories != nil {
				categories[col.Name] = col.Categories
			}
			group.Columns = append(group.Columns, column)
		}
		s.Groups = append(s.Groups, group)
	}
	for _, b := range p.BreakSets {
		set := format.BreakSet{Name: b.Name, Kind: format.BreakGiven}
		if b.MaxGap > 0 {
			set.Kind, set.MaxGap = format.BreakGap, b.MaxGap
		}
		s.Breaks = append(s.Breaks, set)
	}
	return &Content{Schema: s, Tickers: p.Tickers, Categories: categories, Attributes: p.Attributes}
}

// Build returns the one sealed file of the content.
func (c *Content) Build() []byte {
	f := &File{Slot: format.Slot{Version: 1, AlignLog2: cmp.Or(c.AlignLog2, 6)}}
	place := func(b []byte) (offset uint64, sums []byte) {
		if len(b) == 0 {
			return 0, nil
		}
		f.Data = pad(f.Data, 8192, 1<<f.Slot.AlignLog2)
		offset = 8192 + uint64(len(f.Data))
		f.Data = append(f.Data, b...)
		return offset, chunkSums(b)
	}

	calendars, calendar, first := c.Calendars()
	cals := u64s(uint64(len(calendars)))
	var entries, calSums []byte
	for _, times := range calendars {
		offset, sums := place(int64s(times))
		cals = le.AppendUint64(cals, offset)
		entries = le.AppendUint64(entries, uint64(len(times)))
		calSums = append(calSums, sums...)
	}
	cals = slices.Concat(cals, entries, entries, calSums)

	tickers, groups := len(c.Tickers), len(c.Schema.Groups)
	offsets, sums := make([]uint64, tickers*groups), make([][]byte, tickers*groups)
	for g := range groups {
		for t := range tickers {
			offsets[t*groups+g], sums[t*groups+g] = place(c.block(t, g))
		}
	}
	blks := u64s(0, uint64(tickers))
	blks = append(blks, u64s(offsets...)...)
	tick := u64s(uint64(tickers))
	var names []byte
	for _, t := range c.Tickers {
		names = append(names, t.Name...)
		tick = le.AppendUint64(tick, uint64(len(names)))
		for range groups {
			blks = le.AppendUint64(blks, uint64(len(t.Times)))
		}
	}
	blks = append(blks, slices.Concat(sums...)...)
	tick = append(tick, u64s(calendar...)...)
	tick = append(tick, u64s(first...)...)
	for _, t := range c.Tickers {
		tick = le.AppendUint64(tick, uint64(len(t.Times)))
	}
	tick = append(tick, names...)

	schema := Schema(c.Schema)
	d := newDigest(schema, tickers)
	for i, t := range c.Tickers {
		d.ticker(t.Name, int64s(t.Times), sums[i*groups:(i+1)*groups], t.Breaks)
	}
	cats, stat := c.categories(), c.attributes()
	d.section("CATS", cats)
	d.section("STAT", stat)
	f.Sections = []Section{
		{Tag: "BLKS", Flags: 1, Bytes: blks},
		{Tag: "CALS", Flags: 1, Bytes: cals},
		{Tag: "CATS", Bytes: cats},
		{Tag: "DGST", Flags: 1, Bytes: d.sum()},
		{Tag: "PROV", Flags: 2, Bytes: c.Provenance},
		{Tag: "SCHM", Flags: 1, Bytes: schema},
		{Tag: "STAT", Bytes: stat},
		{Tag: "TICK", Flags: 1, Bytes: tick},
		{Tag: "WIDX", Flags: 1, Bytes: c.index()},
	}
	f.Sections = slices.DeleteFunc(f.Sections, func(s Section) bool { return s.Bytes == nil })
	return f.Join()
}

// Texts returns the bytes of a list of texts, whether or not it is valid.
func Texts(texts ...string) []byte {
	b := le.AppendUint32(nil, uint32(len(texts)))
	all := ""
	for _, s := range texts {
		all += s
		b = le.AppendUint32(b, uint32(len(all)))
	}
	return append(b, all...)
}

// Values are an attribute's values by ticker; one of the two is nil.
type Values struct {
	Texts   map[string]string
	Numbers map[string]float64
}

// ByTicker returns the values of each attribute, as a writer takes them.
func (c *Content) ByTicker() map[string]Values {
	all := map[string]Values{}
	for _, a := range c.Attributes {
		v := Values{Texts: map[string]string{}}
		if a.Texts == nil {
			v = Values{Numbers: map[string]float64{}}
		}
		for i, text := range a.Texts {
			v.Texts[c.Tickers[i].Name] = text
		}
		for i, number := range a.Numbers {
			v.Numbers[c.Tickers[i].Name] = number
		}
		all[a.Name] = v
	}
	return all
}

// categories returns the bytes of CATS, or nil.
func (c *Content) categories() (b []byte) {
	if len(c.Categories) == 0 {
		return nil
	}
	b = le.AppendUint32(nil, uint32(len(c.Categories)))
	column := uint32(0)
	for _, g := range c.Schema.Groups {
		for _, col := range g.Columns {
			if texts, ok := c.Categories[col.Name]; ok {
				b = append(le.AppendUint32(b, column), Texts(texts...)...)
			}
			column++
		}
	}
	return b
}

// attributes returns the bytes of STAT, or nil.
func (c *Content) attributes() (b []byte) {
	if len(c.Attributes) == 0 {
		return nil
	}
	b = le.AppendUint32(nil, uint32(len(c.Attributes)))
	for _, a := range c.Attributes {
		b = append(le.AppendUint16(b, uint16(len(a.Name))), a.Name...)
		if a.Texts == nil {
			b = append(b, 2)
			for _, v := range a.Numbers {
				bits := math.Float64bits(v)
				if v-v != 0 { // not finite
					bits = 0x7ff8000000000000
				}
				b = le.AppendUint64(b, bits)
			}
			continue
		}
		var texts []string
		for _, v := range a.Texts {
			if v != "" && !slices.Contains(texts, v) {
				texts = append(texts, v)
			}
		}
		slices.Sort(texts)
		b = append(append(b, 1), Texts(texts...)...)
		for _, v := range a.Texts {
			b = le.AppendUint32(b, uint32(slices.Index(texts, v)+1))
		}
	}
	return b
}

// Calendars returns the minimal calendars in their order, and for each ticker its calendar and first entry.
func (c *Content) Calendars() (calendars [][]int64, calendar, first []uint64) {
	var lists [][]int64
	for _, t := range c.Tickers {
		if len(t.Times) > 0 && !slices.ContainsFunc(lists, func(l []int64) bool { return slices.Equal(l, t.Times) }) {
			lists = append(lists, t.Times)
		}
	}
	for i, l := range lists {
		if !slices.ContainsFunc(lists, func(o []int64) bool { return len(o) > len(l) && find(o, l) >= 0 }) {
			calendars = append(calendars, lists[i])
		}
	}
	slices.SortFunc(calendars, func(a, b []int64) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(len(b), len(a)), slices.Compare(a, b))
	})
	for _, t := range c.Tickers {
		k, at := 0, 0
		if len(t.Times) > 0 {
			k = slices.IndexFunc(calendars, func(o []int64) bool { return find(o, t.Times) >= 0 })
			at = find(calendars[k], t.Times)
		}
		calendar, first = append(calendar, uint64(k)), append(first, uint64(at))
	}
	return calendars, calendar, first
}

// find returns where the strictly increasing list stands in another as a contiguous piece, or -1.
func find(list, piece []int64) int {
	at, ok := slices.BinarySearch(list, piece[0])
	if ok && at+len(piece) <= len(list) && slices.Equal(list[at:at+len(piece)], piece) {
		return at
	}
	return -1
}

// block returns the bytes of a ticker's block.
func (c *Content) block(ticker, group int) []byte {
	t := &c.Tickers[ticker]
	base := 0
	for _, g := range c.Schema.Groups[:group] {
		base += len(g.Columns)
	}
	g := &c.Schema.Groups[group]
	if g.DType == format.Int64 {
		return int64s(t.Ends[base])
	}
	var b []byte
	for r := range t.Times {
		for k := range g.Columns {
			b = le.AppendUint32(b, t.Bits(base+k, int64(r)))
		}
	}
	return b
}

// Runs returns the maximal runs of missing rows of a ticker's column.
func Runs(t *oracle.Ticker, column int) (runs [][2]int64) {
	for r := range int64(len(t.Cells[column])) {
		if !t.IsMissing(column, r) {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1][1] == r {
			runs[n-1][1]++
		} else {
			runs = append(runs, [2]int64{r, r + 1})
		}
	}
	return runs
}

// lists numbers encoded lists in the order of their first use.
type lists struct {
	number map[string]int
	bytes  []byte
}

// uses encodes which tickers have which list; a ticker without one has no bytes.
func (l *lists) uses(all [][]byte) (b []byte, n int) {
	last := -1
	for t, list := range all {
		if list == nil {
			continue
		}
		i, ok := l.number[string(list)]
		if !ok {
			i = len(l.number)
			l.number[string(list)] = i
			l.bytes = append(l.bytes, list...)
		}
		b = append(b, Uvarints(uint64(t-last-1), uint64(i))...)
		last = t
		n++
	}
	return append(Uvarints(uint64(n)), b...), n
}

func (c *Content) index() []byte {
	breaks, missing := lists{number: map[string]int{}}, lists{number: map[string]int{}}
	each := func(list func(t *oracle.Ticker) []byte) (all [][]byte) {
		for i := range c.Tickers {
			all = append(all, list(&c.Tickers[i]))
		}
		return all
	}
	var sets, columns []byte
	for set := range c.Schema.Breaks {
		b, _ := breaks.uses(each(func(t *oracle.Ticker) (list []byte) {
			if len(t.Breaks[set]) == 0 {
				return nil
			}
			last := int64(0)
			for _, r := range t.Breaks[set] {
				list = append(list, Uvarints(uint64(r-last-1))...)
				last = r
			}
			return append(Uvarints(uint64(len(t.Breaks[set]))), list...)
		}))
		sets = append(sets, b...)
	}
	count, last := 0, -1
	for column := range c.Schema.Columns() {
		b, n := missing.uses(each(func(t *oracle.Ticker) (list []byte) {
			runs := Runs(t, column)
			if len(runs) == 0 {
				return nil
			}
			next := int64(0)
			for _, r := range runs {
				list = append(list, Uvarints(uint64(r[0]-next), uint64(r[1]-r[0]-1))...)
				next = r[1] + 1
			}
			return append(Uvarints(uint64(len(runs))), list...)
		}))
		if n > 0 {
			columns = append(columns, Uvarints(uint64(column-last-1))...)
			columns = append(columns, b...)
			count, last = count+1, column
		}
	}
	return slices.Concat(
		Uvarints(uint64(len(breaks.number))), breaks.bytes,
		Uvarints(uint64(len(missing.number))), missing.bytes,
		sets, Uvarints(uint64(count)), columns,
	)
}

// Schema returns the bytes of SCHM, whether or not the schema is valid.
func Schema(s *format.Schema) []byte {
	str := func(b []byte, s string) []byte { return append(le.AppendUint16(b, uint16(len(s))), s...) }
	b := []byte{byte(s.Unit), 0, 0, 0}
	b = le.AppendUint32(b, uint32(len(s.Groups)))
	b = str(b, s.Zone)
	for _, g := range s.Groups {
		b = append(str(b, g.Name), byte(g.DType), 0)
		b = le.AppendUint16(b, uint16(len(g.Columns)))
		for _, c := range g.Columns {
			b = append(str(b, c.Name), byte(c.Role), byte(c.ReachKind))
			b = le.AppendUint64(b, uint64(c.Reach))
		}
	}
	b = le.AppendUint32(b, uint32(len(s.Breaks)))
	for _, k := range s.Breaks {
		b = append(str(b, k.Name), byte(k.Kind))
		b = str(le.AppendUint64(b, uint64(k.MaxGap)), k.Source)
	}
	return b
}

// Uvarints returns the shortest LEB128 encodings of the numbers.
func Uvarints(v ...uint64) (b []byte) {
	for _, n := range v {
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		b = append(b, byte(n))
	}
	return b
}

func u64s(v ...uint64) (b []byte) {
	for _, n := range v {
		b = le.AppendUint64(b, n)
	}
	return b
}

func int64s(v []int64) (b []byte) {
	for _, n := range v {
		b = le.AppendUint64(b, uint64(n))
	}
	return b
}

// chunkSums returns the checksum of each chunk.
func chunkSums(b []byte) (sums []byte) {
	for chunk := range slices.Chunk(b, 65536) {
		sums = le.AppendUint64(sums, xxhash.Sum64(chunk))
	}
	return sums
}

// pad appends zeros until the offset of the end, base + len(b), is a multiple of align.
func pad(b []byte, base, align int) []byte {
	for (base+len(b))%align != 0 {
		b = append(b, 0)
	}
	return b
}

// digest collects what the content digest covers.
type digest struct{ b []byte }

func newDigest(schema []byte, tickers int) *digest {
	d := &digest{[]byte("wstore-digest-1\n")}
	d.b = le.AppendUint64(d.b, uint64(len(schema)))
	d.b = append(d.b, schema...)
	d.b = le.AppendUint64(d.b, uint64(tickers))
	return d
}

func (d *digest) ticker(name string, times []byte, sums [][]byte, breaks [][]int64) {
	d.b = append(le.AppendUint64(d.b, uint64(len(name))), name...)
	d.b = le.AppendUint64(d.b, uint64(len(times)/8))
	d.b = le.AppendUint64(d.b, xxhash.Sum64(times))
	d.b = append(d.b, slices.Concat(sums...)...)
	for _, rows := range breaks {
		d.b = le.AppendUint64(d.b, uint64(len(rows)))
		d.b = append(d.b, int64s(rows)...)
	}
}

func (d *digest) section(tag string, b []byte) {
	if len(b) > 0 {
		d.b = append(le.AppendUint64(append(d.b, tag...), uint64(len(b))), b...)
	}
}

func (d *digest) sum() []byte {
	sum := sha256.Sum256(d.b)
	return sum[:]
}

// Cells returns float32 numbers of the given bits.
func Cells(bits ...uint32) []float32 {
	cells := make([]float32, len(bits))
	for i, b := range bits {
		cells[i] = math.Float32frombits(b)
	}
	return cells
}
