package convert

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/internal/fsys"
)

// A record is one row of one ticker: its time, where it stood, its stamps, cells and texts, all little-endian. Records
// of a ticker are kept in memory until there are too many; then all are sorted and go to a temporary file as one piece
// for each ticker. Reading merges the pieces.
type shape struct {
	stamps, cells, texts int
	size                 int // bytes of a record
}

const (
	timeAt  = 0
	placeAt = 8 // source<<40 | line: the order of the input
	restAt  = 16
)

const lineBits = 40

func newShape(p *ingest.Plan) shape {
	s := shape{stamps: len(p.Times), cells: len(p.Floats), texts: len(p.Texts)}
	s.size = restAt + 8*s.stamps + 4*s.cells + 4*s.texts
	return s
}

func (s *shape) cellsOf(r []byte) []byte { return r[restAt+8*s.stamps:][:4*s.cells] }
func (s *shape) stamp(r []byte, i int) int64 {
	return int64(binary.LittleEndian.Uint64(r[restAt+8*i:]))
}
func (s *shape) textsOf(r []byte) []byte { return r[restAt+8*s.stamps+4*s.cells:] }

func timeOf(r []byte) int64 { return int64(binary.LittleEndian.Uint64(r[timeAt:])) }

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
	buf      []byte // records in memory
	sorted   bool   // they are in order
	unsorted bool   // rows of the input were not in order
	last     int64  // time of the last record
	rows     int64
	pieces   []pieceAt
}

// pieceAt is a sorted piece of a ticker's records in the temporary file.
type pieceAt struct{ off, n int64 }

// table collects the rows of all tickers.
type table struct {
	shape  shape
	fs     fsys.FS
	beside string // the temporary file stands beside this one
	budget int64
	used   int64
	series map[string]*series
	texts  map[string]uint32
	spill  fsys.File
	end    int64 // of the temporary file
	prec   precision
	byCode []*series // of the current batch's dictionary
	codes  []uint32
}

func newTable(p *ingest.Plan, budget int64, beside string) *table {
	return &table{
		shape: newShape(p), fs: fsys.OS{}, beside: beside, budget: budget,
		series: map[string]*series{}, texts: map[string]uint32{},
	}
}

// ticker returns the series of a name.
func (t *table) ticker(name string) *series {
	s := t.series[name]
	if s == nil {
		s = &series{name: name, sorted: true}
		t.series[name] = s
	}
	return s
}

// add takes the rows of a batch.
func (t *table) add(b *ingest.Batch) error {
	t.byCode = append(t.byCode[:0], make([]*series, len(b.Dict))...)
	t.codes = append(t.codes[:0], make([]uint32, len(b.Dict))...)
	sh := &t.shape
	for i := range b.Rows {
		s := t.byCode[b.Tickers[i]]
		if s == nil {
			s = t.ticker(b.Dict[b.Tickers[i]])
			t.byCode[b.Tickers[i]] = s
		}
		tm := b.Times[i]
		t.prec.add(tm)
		if s.rows > 0 && tm < s.last {
			s.unsorted = true
		}
		if len(s.buf) > 0 && tm < s.last {
			s.sorted = false
		}
		s.last = tm
		s.rows++
		old := cap(s.buf)
		r := binary.LittleEndian.AppendUint64(s.buf, uint64(tm))
		r = binary.LittleEndian.AppendUint64(r, uint64(b.Source)<<lineBits|uint64(b.Line[i]))
		stamps := b.Stamps[i*sh.stamps : (i+1)*sh.stamps]
		for _, v := range stamps {
			if v != math.MinInt64 {
				t.prec.add(v)
			}
		}
		r = f32.AppendInt64(r, stamps)
		r = f32.Append(r, b.Cells[i*sh.cells:(i+1)*sh.cells])
		for _, code := range b.Texts[i*sh.texts : (i+1)*sh.texts] {
			r = binary.LittleEndian.AppendUint32(r, t.text(b, code))
		}
		s.buf = r
		t.used += int64(cap(r) - old)
	}
	if t.used > t.budget {
		return t.spillAll()
	}
	return nil
}

// text returns the number of a text over all batches.
func (t *table) text(b *ingest.Batch, code uint32) uint32 {
	if t.codes[code] == 0 {
		n, ok := t.texts[b.Dict[code]]
		if !ok {
			n = uint32(len(t.texts) + 1)
			t.texts[b.Dict[code]] = n
		}
		t.codes[code] = n
	}
	return t.codes[code]
}

// names returns the tickers in order.
func (t *table) names() []string {
	names := make([]string, 0, len(t.series))
	for n := range t.series {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// sort puts the records in memory in order.
func (t *table) sort(s *series) {
	if s.sorted {
		return
	}
	size := t.shape.size
	order := make([]int, len(s.buf)/size)
	for i := range order {
		order[i] = i
	}
	record := func(i int) []byte { return s.buf[i*size:][:size] }
	slices.SortFunc(order, func(a, b int) int { return before(record(a), record(b)) })
	sorted := make([]byte, 0, len(s.buf))
	for _, i := range order {
		sorted = append(sorted, record(i)...)
	}
	s.buf, s.sorted = sorted, true
}

// spillAll moves all records to the temporary file.
func (t *table) spillAll() error {
	if t.spill == nil {
		f, err := t.fs.CreateTemp(t.beside)
		if err != nil {
			return err
		}
		t.spill = f
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(t.spill, t.end), 1<<20)
	for _, name := range t.names() {
		s := t.series[name]
		if len(s.buf) == 0 {
			continue
		}
		t.sort(s)
		if _, err := w.Write(s.buf); err != nil {
			return err
		}
		s.pieces = append(s.pieces, pieceAt{t.end, int64(len(s.buf))})
		t.end += int64(len(s.buf))
		s.buf, s.sorted = nil, true
	}
	t.used = 0
	return w.Flush()
}

// close removes the temporary file.
func (t *table) close() error {
	if t.spill == nil {
		return nil
	}
	return errors.Join(t.spill.Close(), t.fs.Remove(t.spill.Name()))
}

// each calls use for every record of a ticker in order. The record is valid during the call. Memory of the records is
// given back.
func (t *table) each(s *series, use func(r []byte) error) error {
	t.sort(s)
	defer func() { s.buf = nil }()
	size := t.shape.size
	if len(s.pieces) == 0 {
		for b := s.buf; len(b) > 0; b = b[size:] {
			if err := use(b[:size]); err != nil {
				return err
			}
		}
		return nil
	}
	m := &merge{}
	add := func(r io.Reader) error {
		p := &stream{r: r, record: make([]byte, size)}
		switch err := p.next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		*m = append(*m, p)
		return nil
	}
	buffer := max(size, min(256<<10, int(t.budget)/(len(s.pieces)+1)))
	for _, p := range s.pieces {
		if err := add(bufio.NewReaderSize(io.NewSectionReader(t.spill, p.off, p.n), buffer)); err != nil {
			return err
		}
	}
	if err := add(bytes.NewReader(s.buf)); err != nil {
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
			return err
		default:
			heap.Fix(m, 0)
		}
	}
	return nil
}

// stream is a sorted piece that is being read.
type stream struct {
	r      io.Reader
	record []byte
}

func (p *stream) next() error {
	_, err := io.ReadFull(p.r, p.record)
	return err
}

// merge is a heap of streams by their next record.
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
