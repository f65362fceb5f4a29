package main

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/format"
)

// tableNames are the names of a long table's columns that are no columns of the file.
type tableNames struct {
	ticker, time string
	breaks       []string // of the column that counts a break set's breaks; empty: its rule finds them again
}

// namesFor finds names that no column of the file has. Breaks are counted under the name of the column that made them,
// so that the same --break makes them again, or under the set's own.
func namesFor(s *format.Schema) tableNames {
	taken := map[string]bool{}
	for g := range s.Groups {
		for _, c := range s.Groups[g].Columns {
			taken[c.Name] = true
		}
	}
	take := func(name string) string {
		for taken[name] {
			name += "_"
		}
		taken[name] = true
		return name
	}
	n := tableNames{ticker: take("ticker"), time: take("time"), breaks: make([]string, len(s.Breaks))}
	for i, b := range s.Breaks {
		switch {
		case b.Kind == format.BreakGap:
		case b.Kind == format.BreakColumn && !taken[b.Source]:
			n.breaks[i] = take(b.Source)
		default:
			n.breaks[i] = take(b.Name)
		}
	}
	return n
}

// counter counts the breaks of a ticker, from its first row on.
type counter struct {
	rows []int64 // before which there is one
	n    int
}

// counters returns one for each break set that has a column.
func (p *panel) counters(ticker int) []counter {
	var out []counter
	index := p.s.Meta().Index
	for set, name := range p.names.breaks {
		if name == "" {
			continue
		}
		var c counter
		uses := index.Breaks[set]
		if i, ok := slices.BinarySearchFunc(uses, ticker, func(u format.Use, t int) int { return u.Ticker - t }); ok {
			c.rows = index.BreakLists[uses[i].List]
		}
		out = append(out, c)
	}
	return out
}

// at returns the number of breaks up to a row. Rows must ascend from call to call.
func (c *counter) at(row int) int {
	if c.n == 0 {
		c.n, _ = slices.BinarySearch(c.rows, int64(row))
	}
	for c.n < len(c.rows) && c.rows[c.n] <= int64(row) {
		c.n++
	}
	return c.n
}

// metaKey is the key under which a table's metadata say what it is.
const metaKey = "wstore"

// tableMeta is the JSON under metaKey, which docs/export.md describes.
type tableMeta struct {
	Schema int                  `json:"schema"`
	Unit   string               `json:"unit"`
	Zone   string               `json:"zone"`
	Ticker string               `json:"ticker"`
	Time   string               `json:"time"`
	Groups []convert.TableGroup `json:"groups"`
	Breaks []convert.TableBreak `json:"breaks"`
	tickerLabels
}

// tickerLabels are what a file says of its tickers rather than of their rows.
type tickerLabels struct {
	Empty      []string    `json:"empty_tickers"`
	Attributes []attribute `json:"attributes"`
}

type attribute struct {
	Name   string         `json:"name"`
	Kind   string         `json:"kind"`
	Values map[string]any `json:"values"` // by ticker
}

// meta returns the JSON that says of the table what its columns don't.
func (p *panel) meta() (string, error) {
	schema := p.s.Meta().Schema
	m := tableMeta{
		Schema: jsonSchema, Unit: schema.Unit.String(), Zone: schema.Zone, Ticker: p.names.ticker, Time: p.names.time,
		Breaks: []convert.TableBreak{}, tickerLabels: p.labels(),
	}
	places := schema.Places()
	for _, g := range schema.Groups {
		group := convert.TableGroup{Name: g.Name}
		for _, c := range g.Columns {
			out := convert.TableColumn{Name: c.Name, Role: c.Role.String(), Categories: p.categories[c.Name] != nil}
			switch c.ReachKind {
			case format.ReachRows:
				out.ReachRows = &c.Reach
			case format.ReachDuration:
				out.ReachDuration = &c.Reach
			case format.ReachColumn:
				at := places[c.Reach]
				out.ReachColumn = schema.Groups[at.Group].Columns[at.Column].Name
			}
			group.Columns = append(group.Columns, out)
		}
		m.Groups = append(m.Groups, group)
	}
	for i, b := range schema.Breaks {
		m.Breaks = append(m.Breaks, convert.TableBreak{Name: b.Name, Kind: b.Kind.String(), MaxGap: b.MaxGap, Source: b.Source, Column: p.names.breaks[i]})
	}
	var text strings.Builder
	err := writeJSON(&text, m)
	return strings.TrimSpace(text.String()), err
}

// labels returns what the file says of the chosen tickers.
func (p *panel) labels() tickerLabels {
	l := tickerLabels{Empty: []string{}, Attributes: []attribute{}}
	for _, s := range p.series {
		if p.s.Rows(s.ticker) == 0 {
			l.Empty = append(l.Empty, p.s.Tickers()[s.ticker])
		}
	}
	for _, a := range p.s.Attributes() {
		out := attribute{a.Name, a.Kind.String(), map[string]any{}}
		for _, s := range p.series {
			name := p.s.Tickers()[s.ticker]
			if text, ok := a.Text(s.ticker); ok {
				out.Values[name] = text
			} else if v := a.Number(s.ticker); !math.IsNaN(v) {
				out.Values[name] = v
			}
		}
		l.Attributes = append(l.Attributes, out)
	}
	return l
}

// table is the rows as one long table of Arrow's types: ticker, time, the columns of the file, counters of breaks.
type table struct {
	p       *panel
	schema  *arrow.Schema
	tickers arrow.Array   // the dictionary: names of the chosen tickers that have rows
	texts   []arrow.Array // the dictionary of each column of the file that has categories
	scale   int64         // of the file's times to the table's
	kind    string        // for errors
}

// newTable describes the rows with times in the given unit, the file's or a finer one.
func (p *panel) newTable(kind string, unit format.Unit) (*table, error) {
	schema := p.s.Meta().Schema
	t := &table{p: p, scale: int64(schema.Unit.Duration() / unit.Duration()), kind: kind}
	var names []string
	for _, s := range p.series {
		if s.from < s.to {
			names = append(names, p.s.Tickers()[s.ticker])
		}
	}
	var err error
	if t.tickers, err = dictionary(kind, "tickers", names); err != nil {
		return nil, err
	}
	times := &arrow.TimestampType{Unit: arrow.TimeUnit(unit), TimeZone: schema.Zone}
	texts := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	fields := []arrow.Field{
		{Name: p.names.ticker, Type: texts},
		{Name: p.names.time, Type: times},
	}
	for _, g := range schema.Groups {
		for _, c := range g.Columns {
			f := arrow.Field{Name: c.Name, Type: arrow.PrimitiveTypes.Float32, Nullable: true}
			var values arrow.Array
			if g.DType == format.Int64 {
				f.Type = times
			} else if names := p.categories[c.Name]; names != nil {
				f.Type = texts
				if values, err = dictionary(kind, fmt.Sprintf("column %q", c.Name), names); err != nil {
					return nil, err
				}
			}
			fields = append(fields, f)
			t.texts = append(t.texts, values)
		}
	}
	for _, name := range p.names.breaks {
		if name != "" {
			fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32})
		}
	}
	text, err := p.meta()
	if err != nil {
		return nil, err
	}
	meta := arrow.NewMetadata([]string{metaKey}, []string{text})
	t.schema = arrow.NewSchema(fields, &meta)
	return t, nil
}

// dictionary returns texts as an array of strings.
func dictionary(kind, what string, texts []string) (arrow.Array, error) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	size := 0
	for _, s := range texts {
		if size += len(s); size > math.MaxInt32 {
			return nil, fmt.Errorf("the texts of %s have more than 2 GiB, which %s does not hold; export csv", what, kind)
		}
		b.Append(s)
	}
	return b.NewStringArray(), nil
}

// batches yields the rows in batches of at most most rows and about cells cells. Each is valid until the next one.
func (t *table) batches(ctx context.Context, most, cells int) iter.Seq2[arrow.RecordBatch, error] {
	const least = 1024 // a batch has its price too
	rows := min(max(least, cells/t.schema.NumFields()), most)
	return func(yield func(arrow.RecordBatch, error) bool) {
		b := newBatch(t, int(min(int64(rows), t.p.rows)))
		code := int32(-1) // of the ticker in the dictionary
		for _, s := range t.p.series {
			if s.from < s.to {
				code++
			}
			for s.from < s.to {
				if err := ctx.Err(); err != nil {
					yield(nil, err)
					return
				}
				n := min(s.to-s.from, rows-b.n)
				err := t.p.v.Guard(func() error { return b.add(code, series{s.ticker, s.from, s.from + n}) })
				if err != nil {
					yield(nil, err)
					return
				}
				if s.from += n; b.n < rows {
					continue
				}
				if !yield(b.record(), nil) {
					return
				}
				b.clear()
			}
		}
		if b.n > 0 {
			yield(b.record(), nil)
		}
	}
}

// batch collects rows, column by column.
type batch struct {
	t       *table
	n       int // rows so far
	codes   []int32
	times   []int64
	columns []column
	breaks  [][]int32
}

// column holds the cells of a column, of which some may be missing.
type column struct {
	floats []float32 // or
	codes  []int32   // in a dictionary, or
	times  []int64
	valid  []byte // a bit for each row
	nulls  int
}

func newBatch(t *table, rows int) *batch {
	b := &batch{t: t, codes: make([]int32, rows), times: make([]int64, rows)}
	for _, g := range t.p.s.Meta().Schema.Groups {
		for range g.Columns {
			c := column{valid: make([]byte, bitutil.BytesForBits(int64(rows)))}
			switch {
			case g.DType == format.Int64:
				c.times = make([]int64, rows)
			case t.texts[len(b.columns)] != nil:
				c.codes = make([]int32, rows)
			default:
				c.floats = make([]float32, rows)
			}
			b.columns = append(b.columns, c)
		}
	}
	for _, name := range t.p.names.breaks {
		if name != "" {
			b.breaks = append(b.breaks, make([]int32, rows))
		}
	}
	b.clear()
	return b
}

// clear makes all rows present and none taken.
func (b *batch) clear() {
	b.n = 0
	for i := range b.columns {
		c := &b.columns[i]
		c.nulls = 0
		for j := range c.valid {
			c.valid[j] = 0xff
		}
	}
}

// add appends rows of a ticker, whose name is that of the code in the dictionary.
func (b *batch) add(code int32, s series) error {
	v, n := b.t.p.v, s.to-s.from
	times, err := v.Times(s.ticker)
	if err != nil {
		return err
	}
	for i, at := range times[s.from:s.to] {
		b.codes[b.n+i] = code
		if b.times[b.n+i], err = b.t.time(s.ticker, at); err != nil {
			return err
		}
	}
	next := 0 // number of the group's first column
	for g, group := range b.t.p.s.Meta().Schema.Groups {
		width := len(group.Columns)
		if group.DType == format.Int64 {
			ends, err := v.LabelEnds(s.ticker, g)
			if err != nil {
				return err
			}
			if err := b.addTimes(&b.columns[next], s.ticker, ends[s.from:s.to]); err != nil {
				return err
			}
		} else {
			cells, err := v.Series(s.ticker, g)
			if err != nil {
				return err
			}
			cells = cells[s.from*width : s.to*width]
			b.addFloats(b.columns[next:next+width], cells)
			for i := range width {
				if b.t.texts[next+i] == nil {
					continue
				}
				if err := b.addCodes(next+i, s.ticker, cells[i:], width); err != nil {
					return err
				}
			}
		}
		next += width
	}
	counters := b.t.p.counters(s.ticker)
	for i := range counters {
		for row := s.from; row < s.to; row++ {
			b.breaks[i][b.n+row-s.from] = int32(counters[i].at(row))
		}
	}
	b.n += n
	return nil
}

// addFloats turns rows into columns, some rows at a time so that they stay in the processor's cache.
func (b *batch) addFloats(columns []column, cells []float32) {
	const tile = 256
	width := len(columns)
	for first := 0; first*width < len(cells); first += tile {
		rows := cells[first*width : min((first+tile)*width, len(cells))]
		for i := range columns {
			c := &columns[i]
			if c.floats == nil {
				continue
			}
			at := b.n + first
			for j := i; j < len(rows); j += width {
				v := rows[j]
				if format.IsMissing(v) {
					bitutil.ClearBit(c.valid, at)
					c.nulls++
				}
				c.floats[at] = v
				at++
			}
		}
	}
}

// addCodes adds every width-th of cells, the places in a dictionary.
func (b *batch) addCodes(number, ticker int, cells []float32, width int) error {
	c, n := &b.columns[number], b.t.texts[number].Len()
	for i, at := 0, b.n; i < len(cells); i, at = i+width, at+1 {
		switch v := cells[i]; {
		case format.IsMissing(v):
			bitutil.ClearBit(c.valid, at)
			c.nulls++
			c.codes[at] = 0
		case format.IsCode(v, n):
			c.codes[at] = int32(v)
		default:
			return notCode(b.t.p, ticker, b.t.schema.Field(2+number).Name, v)
		}
	}
	return nil
}

// notCode is the error of a cell that is none of its column's categories, which only a damaged file has.
func notCode(p *panel, ticker int, column string, v float32) error {
	return tell(errUnusable, "%s: ticker %q has the cell %g in column %q, which is the number of none of its categories; `wstore verify` tells more",
		p.s.Path(), p.s.Tickers()[ticker], v, column)
}

func (b *batch) addTimes(c *column, ticker int, times []int64) (err error) {
	for i, at := range times {
		if at == format.NoTime {
			bitutil.ClearBit(c.valid, b.n+i)
			c.nulls++
			at = 0
		}
		if c.times[b.n+i], err = b.t.time(ticker, at); err != nil {
			return err
		}
	}
	return nil
}

// time turns a time of the file into one of the table.
func (t *table) time(ticker int, v int64) (int64, error) {
	if most := math.MaxInt64 / t.scale; v > most || v < -most {
		return 0, fmt.Errorf("ticker %q has the time %d %s, which is beyond what %s holds; export it as csv or arrow",
			t.p.s.Tickers()[ticker], v, t.p.s.Meta().Schema.Unit, t.kind)
	}
	return v * t.scale, nil
}

// record returns the rows, valid until they are cleared.
func (b *batch) record() arrow.RecordBatch {
	fields := b.t.schema.Fields()
	var out []arrow.Array
	add := func(t arrow.DataType, values, valid []byte, nulls int) {
		buffers := []*memory.Buffer{nil, memory.NewBufferBytes(values)}
		if nulls > 0 {
			buffers[0] = memory.NewBufferBytes(valid)
		}
		data := array.NewData(t, b.n, buffers, nil, nulls, 0)
		out = append(out, array.MakeFromData(data))
	}
	addCodes := func(codes []int32, valid []byte, nulls int, texts arrow.Array) {
		add(arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(codes), valid, nulls)
		last := len(out) - 1
		out[last] = array.NewDictionaryArray(fields[last].Type, out[last], texts)
	}
	addCodes(b.codes[:b.n], nil, 0, b.t.tickers)
	add(fields[1].Type, arrow.Int64Traits.CastToBytes(b.times[:b.n]), nil, 0)
	valid := int(bitutil.BytesForBits(int64(b.n)))
	for i, c := range b.columns {
		switch {
		case c.floats != nil:
			add(arrow.PrimitiveTypes.Float32, arrow.Float32Traits.CastToBytes(c.floats[:b.n]), c.valid[:valid], c.nulls)
		case c.times != nil:
			add(fields[1].Type, arrow.Int64Traits.CastToBytes(c.times[:b.n]), c.valid[:valid], c.nulls)
		default:
			addCodes(c.codes[:b.n], c.valid[:valid], c.nulls, b.t.texts[i])
		}
	}
	for _, counts := range b.breaks {
		add(arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(counts[:b.n]), nil, 0)
	}
	return array.NewRecordBatch(b.t.schema, out, int64(b.n))
}
