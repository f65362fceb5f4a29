package convert

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/internal/fsys"
)

// A record is one row of one ticker: its time, where it stood, its stamps, its cells and the hashes of the texts that
// make breaks, all little-endian. A cell of a column with categories is the number of its text in the order in which they
// came up. Records are kept in memory by ticker until there are too many; then all are sorted and go to a
// temporary file, as one piece for each ticker. Reading merges a ticker's pieces.
type shape struct {
	stamps, cells, texts int
	size                 int // bytes of a record
	small, large         int // log2 of the records of a slab
}

// The first slabs of a series are small, since there may be many tickers; the others are large.
const (
	smallSlabs     = 16
	smallSlabBytes = 1 << 10 // at most, unless a record is longer; every ticker takes at least one slab
	largeSlabBytes = 16 << 10
	slabHeader     = 48        // what a slab takes besides: its place in series.slabs, while that grows
	arenaBytes     = 512 << 10 // of which slabs are cut
)

const (
	timeAt  = 0
	placeAt = 8 // source<<40 | line: the order of the input, complemented where the last comes first
	restAt  = 16
)

const lineBits = 40

func newShape(p *plan) shape {
	s := shape{stamps: len(p.read.Times), cells: len(p.cells), texts: len(p.breakOf)}
	s.size = restAt + 8*s.stamps + 4*s.cells + 8*s.texts
	s.small = max(bits.Len(uint(smallSlabBytes/s.size))-1, 0)
	s.large = max(bits.Len(uint(largeSlabBytes/s.size))-1, 0)
	return s
}

// slab returns the bytes of the k-th slab of a series.
func (s *shape) slab(k int) int {
	if k < smallSlabs {
		return s.size << s.small
	}
	return s.size << s.large
}

// record returns the i-th record in slabs.
func (s *shape) record(slabs [][]byte, i int) []byte {
	shift, k := s.small, 0
	if i >= smallSlabs<<shift {
		i -= smallSlabs << shift
		shift, k = s.large, smallSlabs
	}
	return slabs[k+i>>shift][(i&(1<<shift-1))*s.size:][:s.size]
}

func (s *shape) cellsOf(r []byte) []byte { return r[restAt+8*s.stamps:][:4*s.cells] }
func (s *shape) stamp(r []byte, i int) int64 {
	return int64(binary.LittleEndian.Uint64(r[restAt+8*i:]))
}
func (s *shape) textsOf(r []byte) []byte { return r[restAt+8*s.stamps+4*s.cells:] }

func timeOf(r []byte) int64 { return int64(binary.LittleEndian.Uint64(r[timeAt:])) }

// placeOf returns where a row stood, if its place is not complemented.
func placeOf(r []byte) (source int, line int64) {
	v := binary.LittleEndian.Uint64(r[placeAt:])
	return int(v >> lineBits), int64(v & (1<<lineBits - 1))
}

// before orders records by time, then by their place in the input.
func before(a, b []byte) int {
	if x, y := timeOf(a), timeOf(b); x != y {
		if x < y {
			return -1
		}
		return 1
	}
	x, y := binary.LittleEndian.Uint64(a[placeAt:]), binary.LittleEndian.Uint64(b[placeAt:])
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// series is what is known of one ticker's rows.
type series struct {
	name     string
	slabs    [][]byte // records in memory; all slabs but the last are full
	n        int      // of these records
	sorted   bool     // they are in order
	unsorted bool     // rows of the input were not in order
	last     int64    // time of the last record
	rows     int64
	pieces   []pieceAt
}

// pieceAt is a sorted piece of a ticker's records in the temporary file.
type pieceAt struct{ off, n int64 }

// table collects the rows of all tickers.
type table struct {
	plan   *plan
	survey *ingest.Survey // for errors
	shape  shape
	fs     fsys.FS
	beside string // the temporary file stands beside this one
	budget int64
	used   int64
	series map[string]*series
	active []*series // those with records in memory
	arenas [][]byte
	next   int       // of arenas, that is not yet cut up
	arena  []byte    // the rest of the one before it, of which the next slabs are cut
	byCode []*series // of the current batch's dictionary
	prec   precision
	rows   int64 // so far

	labels     int64 // bytes of used that categories and attributes take, which stay in memory
	mostLabels int64

	dictionaries []*dictionary // of the columns with categories
	plain        bool          // the cells of a row are those of the batch
	row          []float32     // else they are put together here
	absent       int64         // rows of a wide table that a ticker does not have
	missing      []int64       // of a wide table, missing cells in the rows of tickers

	lastFirst bool // of rows of one time, the last of the input comes first

	spill  fsys.File
	end    int64           // of the temporary file
	spills int             // so far: no series has more pieces
	files  []*bufio.Reader // of pieces, for one series after the other
}

func newTable(p *plan, survey *ingest.Survey, fs fsys.FS, beside string, budget, mostLabels int64) *table {
	t := &table{
		plan: p, survey: survey, shape: newShape(p), fs: fs, beside: beside, budget: budget, mostLabels: mostLabels, series: map[string]*series{},
		plain: len(p.categories) == 0 && p.wide == nil, row: make([]float32, len(p.cells)), missing: make([]int64, len(p.cells)),
	}
	for _, name := range p.categories {
		t.dictionaries = append(t.dictionaries, &dictionary{name: name, numbers: map[string]int32{}})
	}
	return t
}

// ticker returns the series of a name.
func (t *table) ticker(name string) (*series, error) {
	s := t.series[name]
	if s == nil {
		if len(t.series) == format.MaxTickers {
			return nil, fmt.Errorf("more than %d tickers, one of them %q; is the right column named with --ticker?", format.MaxTickers, name)
		}
		s = &series{name: name, sorted: true}
		t.series[name] = s
	}
	return s, nil
}

// add takes the rows of a batch.
func (t *table) add(b *ingest.Batch) error {
	t.byCode = append(t.byCode[:0], make([]*series, len(b.Dict))...)
	for _, d := range t.dictionaries {
		d.begin(len(b.Dict))
	}
	width := len(t.plan.read.Floats)
	for i := range b.Rows {
		cells := b.Cells[i*width : (i+1)*width]
		if t.plan.wide != nil {
			if err := t.addWide(b, i, cells); err != nil {
				return err
			}
			continue
		}
		if err := t.number(b, i); err != nil {
			return err
		}
		s := t.byCode[b.Tickers[i]]
		if s == nil {
			var err error
			if s, err = t.ticker(b.Dict[b.Tickers[i]]); err != nil {
				return err
			}
			t.byCode[b.Tickers[i]] = s
		}
		if !t.plain {
			for k, c := range t.plan.cells {
				if !c.category {
					t.row[k] = cells[c.at]
				}
			}
			cells = t.row
		}
		t.put(s, b, i, cells)
	}
	if t.used > t.budget {
		return t.spillAll()
	}
	return nil
}

// number puts the numbers of a row's categories into its cells.
func (t *table) number(b *ingest.Batch, i int) error {
	if len(t.dictionaries) == 0 {
		return nil
	}
	texts := b.Texts[i*len(t.plan.read.Texts):][:len(t.plan.read.Texts)][t.shape.texts:]
	for k, c := range t.plan.cells {
		if !c.category {
			continue
		}
		d, code := t.dictionaries[c.at], texts[c.at]
		n := d.batch[code]
		if n == unseen {
			var reason, hint string
			if n, reason, hint = t.category(d, b.Dict[code]); reason != "" {
				return &ingest.RowError{
					Path: t.survey.Sources[b.Source].Path, Line: b.Line[i], Row: t.survey.CountsRows(b.Source), Column: d.name,
					Value: clip(b.Dict[code]), Reason: reason, Hint: hint,
				}
			}
			d.batch[code] = n
		}
		t.row[k] = float32(n)
		if n == missingText {
			t.row[k] = format.Missing()
			if t.plan.wide == nil { // else it is counted for each ticker
				t.missing[k]++
			}
		}
	}
	return nil
}

// addWide takes a row of a wide table for each ticker that has it.
func (t *table) addWide(b *ingest.Batch, i int, cells []float32) error {
	w, numbered := t.plan.wide, false
	for k := range w.tickers {
		ticker := &w.tickers[k]
		if ticker.series == nil {
			var err error
			if ticker.series, err = t.ticker(ticker.name); err != nil {
				return err
			}
		}
		here := false
		for k, c := range t.plan.cells {
			if c.category {
				continue
			}
			v := format.Missing()
			if at := ticker.cells[c.at]; at >= 0 {
				v = cells[at]
			}
			t.row[k] = v
			here = here || w.own[c.at] && !format.IsMissing(v)
		}
		if !here {
			t.absent++
			continue
		}
		if !numbered {
			if err := t.number(b, i); err != nil {
				return err
			}
			numbered = true
		}
		for k, v := range t.row {
			if format.IsMissing(v) {
				t.missing[k]++
			}
		}
		t.put(ticker.series, b, i, t.row)
	}
	return nil
}

// put takes one row of one ticker, which is row i of a batch but for its cells.
func (t *table) put(s *series, b *ingest.Batch, i int, cells []float32) {
	sh := &t.shape
	tm := b.Times[i]
	t.prec.add(tm)
	back := s.rows > 0 && tm < s.last
	s.unsorted = s.unsorted || back
	if back || t.lastFirst && tm == s.last {
		s.sorted = s.sorted && s.n == 0
	}
	s.last = tm
	s.rows++
	t.rows++
	slab := t.room(s)
	r := binary.LittleEndian.AppendUint64(*slab, uint64(tm))
	place := uint64(b.Source)<<lineBits | uint64(b.Line[i])
	if t.lastFirst {
		place = ^place
	}
	r = binary.LittleEndian.AppendUint64(r, place)
	stamps := b.Stamps[i*sh.stamps : (i+1)*sh.stamps]
	for _, v := range stamps {
		if v != format.NoTime {
			t.prec.add(v)
		}
	}
	r = f32.AppendInt64(r, stamps)
	r = f32.Append(r, cells)
	// Texts are only compared with those of the row before: a hash is enough, however many they are.
	for _, code := range b.Texts[i*len(t.plan.read.Texts):][:sh.texts] {
		r = binary.LittleEndian.AppendUint64(r, xxhash.Sum64String(b.Dict[code]))
	}
	*slab = r
	if s.n++; s.n == 1 {
		t.active = append(t.active, s)
	}
}

// all returns the series of all tickers in the order of their names.
func (t *table) all() []*series { return byName(slices.Collect(maps.Values(t.series))) }

func byName(s []*series) []*series {
	slices.SortFunc(s, func(a, b *series) int { return strings.Compare(a.name, b.name) })
	return s
}

// room returns the last slab of a series, which has room for a record.
func (t *table) room(s *series) *[]byte {
	last := len(s.slabs) - 1
	if last < 0 || len(s.slabs[last]) == cap(s.slabs[last]) {
		last++
		s.slabs = append(s.slabs, t.slab(t.shape.slab(last)))
	}
	return &s.slabs[last]
}

// slab returns an empty slab.
func (t *table) slab(size int) []byte {
	t.used += int64(size) + slabHeader
	if len(t.arena) < size {
		if t.next == len(t.arenas) {
			t.arenas = append(t.arenas, make([]byte, max(size, arenaBytes)))
		}
		t.arena = t.arenas[t.next]
		t.next++
	}
	b := t.arena[:0:size]
	t.arena = t.arena[size:]
	return b
}

// drop forgets the records of a series in memory.
func (t *table) drop(s *series) {
	for _, b := range s.slabs {
		t.used -= int64(cap(b)) + slabHeader
	}
	s.slabs, s.n, s.sorted = s.slabs[:0], 0, true
}

// inOrder returns a function that returns the k-th record in memory.
func (t *table) inOrder(s *series) func(k int) []byte {
	record := func(i int) []byte { return t.shape.record(s.slabs, i) }
	if s.sorted {
		return record
	}
	order := make([]int, s.n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return before(record(a), record(b)) })
	return func(k int) []byte { return record(order[k]) }
}

// spillAll moves all records to the temporary file.
func (t *table) spillAll() error {
	if t.spill == nil {
		f, err := t.fs.CreateTemp(t.beside)
		if err != nil {
			return t.broken(err)
		}
		t.spill = f
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(t.spill, t.end), 1<<20)
	for _, s := range byName(t.active) {
		record := t.inOrder(s)
		for k := range s.n {
			if _, err := w.Write(record(k)); err != nil {
				return t.broken(err)
			}
		}
		n := int64(s.n) * int64(t.shape.size)
		s.pieces = append(s.pieces, pieceAt{t.end, n})
		t.end += n
		t.drop(s)
	}
	t.active, t.next, t.arena = t.active[:0], 0, nil
	t.spills++
	if err := w.Flush(); err != nil {
		return t.broken(err)
	}
	return nil
}

func (t *table) broken(err error) error {
	return fmt.Errorf("sorting rows in a temporary file: %w; free space beside %s, or raise --memory", err, t.beside)
}

// close removes the temporary file. A second call does nothing.
func (t *table) close() error {
	if t.spill == nil {
		return nil
	}
	f := t.spill
	t.spill = nil
	return errors.Join(f.Close(), t.fs.Remove(f.Name()))
}

// each calls use for every record of a ticker in order, and then forgets those in memory. The record is valid during the
// call.
func (t *table) each(s *series, use func(r []byte) error) error {
	defer t.drop(s)
	record := t.inOrder(s)
	if len(s.pieces) == 0 {
		for k := range s.n {
			if err := use(record(k)); err != nil {
				return err
			}
		}
		return nil
	}
	m := &merge{}
	add := func(p *stream) error {
		switch err := p.next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return t.broken(err)
		}
		*m = append(*m, p)
		return nil
	}
	size := t.shape.size
	for k, at := range s.pieces {
		if k == len(t.files) {
			t.files = append(t.files, bufio.NewReaderSize(nil, max(size, int(min(256<<10, t.budget/int64(t.spills+1))))))
		}
		r := t.files[k]
		r.Reset(io.NewSectionReader(t.spill, at.off, at.n))
		p := &stream{record: make([]byte, size)}
		p.next = func() error {
			_, err := io.ReadFull(r, p.record)
			return err
		}
		if err := add(p); err != nil {
			return err
		}
	}
	k, p := 0, &stream{}
	p.next = func() error {
		if k == s.n {
			return io.EOF
		}
		p.record = record(k)
		k++
		return nil
	}
	if err := add(p); err != nil {
		return err
	}
	heap.Init(m)
	for len(*m) > 0 {
		p := (*m)[0]
		if err := use(p.record); err != nil {
			return err
		}
		switch err := p.next(); {
		case err == io.EOF:
			heap.Pop(m)
		case err != nil:
			return t.broken(err)
		default:
			heap.Fix(m, 0)
		}
	}
	return nil
}

// stream is a sorted piece that is being read.
type stream struct {
	record []byte
	next   func() error // sets record; io.EOF at the end
}

// merge is a heap of streams by their record.
type merge []*stream

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return before(m[i].record, m[j].record) < 0 }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)        { *m = append(*m, x.(*stream)) }
func (m *merge) Pop() any {
	old := *m
	x := old[len(old)-1]
	*m = old[:len(old)-1]
	return x
}
