package ingest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Of a Parquet file the package arrow-go decodes the metadata, levels and values;
// the pages are read here. Its readers are called in our goroutines and start none.

const (
	parquetMagic  = "PAR1"
	parquetSealed = "PARE" // encrypted
	mostFooter    = 256 << 20
)

type parquetFile struct {
	f      *os.File
	meta   *metadata.FileMetaData
	cols   []field
	leaves []int // per column, its place among the leaves of the schema
	group  int   // the next
	read   int64 // bytes of the groups so far
}

// openParquet opens a Parquet file.
func openParquet(f *os.File) (columnarFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	var tail [8]byte
	if size < 12 {
		return nil, errParquetCut
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil {
		return nil, cutShort(err)
	}
	sealed := &UnusableError{Reason: "is an encrypted Parquet file", Hint: "write it without encryption"}
	switch string(tail[4:]) {
	case parquetMagic:
	case parquetSealed:
		return nil, sealed
	default:
		return nil, errParquetCut
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 {
		return nil, errParquetCut
	}
	if n > mostFooter {
		return nil, tooMuch("write it with larger row groups", "its metadata have %d bytes, more than %d MiB", n, mostFooter>>20)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, size-8-n); err != nil {
		return nil, cutShort(err)
	}
	if err := checkFooter(b); err != nil {
		return nil, err
	}
	meta, err := metadata.NewFileMetaData(b, nil)
	if err != nil {
		return nil, err
	}
	if meta.IsSetEncryptionAlgorithm() {
		return nil, sealed
	}
	p := &parquetFile{f: f, meta: meta}
	root := meta.Schema.Root()
	leaf := 0
	for i := range root.NumFields() {
		node := root.Field(i)
		p.leaves = append(p.leaves, leaf)
		c := field{name: node.Name()}
		if prim, ok := node.(*schema.PrimitiveNode); ok {
			c.setParquet(prim)
			leaf++
		} else {
			c.why = nested(node)
			leaf += leavesOf(node)
		}
		p.cols = append(p.cols, c)
	}
	if leaf != meta.Schema.NumColumns() {
		return nil, errors.New("its schema is damaged")
	}
	if kept := meta.KeyValueMetadata().FindValue("ARROW:schema"); kept != nil {
		p.setArrow(*kept)
	}
	total := int64(0) // that no bytes are read twice bounds what a small file can become
	for i := range meta.NumRowGroups() {
		g := meta.RowGroup(i)
		if g.NumRows() < 0 || g.NumColumns() != leaf {
			return nil, fmt.Errorf("row group %d has %d rows and %d columns", i+1, g.NumRows(), g.NumColumns())
		}
		for k := range leaf {
			c := meta.RowGroups[i].Columns[k].MetaData
			if c == nil {
				return nil, fmt.Errorf("row group %d lacks the metadata of column %d", i+1, k+1)
			}
			if c.TotalCompressedSize < 0 || c.TotalCompressedSize > size-total {
				return nil, fmt.Errorf("row group %d: column %d claims %d bytes", i+1, k+1, c.TotalCompressedSize)
			}
			total += c.TotalCompressedSize
		}
	}
	return p, nil
}

var errParquetCut = errors.New("it is cut short, or was not finished: its end is no end of a Parquet file")

// nested says what a column of several leaves holds.
func nested(n schema.Node) string {
	switch n.LogicalType().(type) {
	case schema.ListLogicalType:
		return "lists"
	case schema.MapLogicalType:
		return "maps"
	}
	if n.RepetitionType() == parquet.Repetitions.Repeated {
		return "lists"
	}
	return "structs"
}

func leavesOf(n schema.Node) int {
	g, ok := n.(*schema.GroupNode)
	if !ok {
		return 1
	}
	total := 0
	for i := range g.NumFields() {
		total += leavesOf(g.Field(i))
	}
	return total
}

// setParquet takes over what a leaf's type says.
func (c *field) setParquet(n *schema.PrimitiveNode) {
	if n.RepetitionType() == parquet.Repetitions.Repeated {
		c.why = "lists"
		return
	}
	physical := n.PhysicalType()
	switch l := n.LogicalType().(type) {
	case schema.NullLogicalType, *schema.NullLogicalType:
		c.cells = nullCells
		return
	case schema.DecimalLogicalType:
		c.setDecimal(n, l.Scale())
		return
	case *schema.DecimalLogicalType:
		c.setDecimal(n, l.Scale())
		return
	case schema.DateLogicalType:
		c.cells, c.unit, c.naive = instantCells, 86400e9, true
		return
	case schema.TimestampLogicalType:
		c.setTimestamp(l.TimeUnit(), l.IsAdjustedToUTC())
		return
	case *schema.TimestampLogicalType:
		c.setTimestamp(l.TimeUnit(), l.IsAdjustedToUTC())
		return
	case schema.TimeLogicalType:
		c.setClock(l.TimeUnit())
		return
	case *schema.TimeLogicalType:
		c.setClock(l.TimeUnit())
		return
	case schema.IntervalLogicalType:
		c.why = "intervals"
		return
	case schema.UUIDLogicalType:
		c.why = "UUIDs"
		return
	case schema.Float16LogicalType:
		c.cells = floatCells
		return
	case *schema.IntLogicalType:
		c.cells = intCells
		if !l.IsSigned() {
			c.unsigned = true
			if physical == parquet.Types.Int64 {
				c.cells = uintCells
			}
		}
		return
	case schema.IntLogicalType:
		c.cells = intCells
		if !l.IsSigned() {
			c.unsigned = true
			if physical == parquet.Types.Int64 {
				c.cells = uintCells
			}
		}
		return
	}
	switch physical {
	case parquet.Types.Boolean:
		c.cells = boolCells
	case parquet.Types.Int32, parquet.Types.Int64:
		c.cells = intCells
	case parquet.Types.Int96: // nanoseconds of a day, and the day
		c.cells, c.unit, c.naive = instantCells, 1, true
	case parquet.Types.Float:
		c.cells = floatCells
	case parquet.Types.Double:
		c.cells = doubleCells
	case parquet.Types.ByteArray, parquet.Types.FixedLenByteArray:
		c.cells = textCells
	default:
		c.why = "cells of an unknown type"
	}
}

func (c *field) setTimestamp(unit schema.TimeUnitType, utc bool) {
	c.cells, c.naive, c.unit = instantCells, !utc, nanosOf(unit)
}

func (c *field) setClock(unit schema.TimeUnitType) { c.cells, c.unit = clockCells, nanosOf(unit) }

func nanosOf(unit schema.TimeUnitType) int64 {
	switch unit {
	case schema.TimeUnitMillis:
		return 1e6
	case schema.TimeUnitMicros:
		return 1e3
	}
	return 1
}

// setArrow takes over what only the Arrow schema says that is kept with the
// metadata: the zones of times, and integers that are durations. It is advice: what
// is wrong with it is let be.
func (p *parquetFile) setArrow(kept string) {
	b, err := base64.StdEncoding.DecodeString(kept)
	if err != nil || len(b) < 12 {
		return
	}
	if binary.LittleEndian.Uint32(b) == arrowContinues {
		b = b[4:]
	}
	a := &arrowFile{needed: map[int64]*arrowField{}}
	err = guard("", func() error {
		header, ok := flatRoot(b[4:]).table(2)
		if !ok {
			return errArrowCut
		}
		return a.schema(header)
	})
	if err != nil {
		return
	}
	said := map[string]field{}
	for _, f := range a.cols {
		said[f.name] = f
	}
	for i := range p.cols {
		c := &p.cols[i]
		switch f := said[c.name]; {
		case c.cells == instantCells && !c.naive && f.cells == instantCells:
			c.zone = f.zone
		case c.cells == intCells && f.cells == otherCells && f.why != "":
			c.cells, c.why = otherCells, f.why
		}
	}
}

func (c *field) setDecimal(n *schema.PrimitiveNode, scale int32) {
	c.cells, c.scale = decimalCells, scale
	switch n.PhysicalType() {
	case parquet.Types.Int32, parquet.Types.Int64:
		c.width = 8
	case parquet.Types.FixedLenByteArray:
		c.width = n.TypeLength()
	default:
		c.width = 32
	}
	if c.width < 1 || c.width > 32 || scale < -1000 || scale > 1000 {
		c.cells, c.why = otherCells, "decimals of an unknown width"
	}
}

func (p *parquetFile) fields() []field { return p.cols }

func (p *parquetFile) metadata(key string) string {
	for _, pair := range p.meta.FileMetaData.KeyValueMetadata {
		if pair.Key == key && pair.Value != nil {
			return *pair.Value
		}
	}
	return ""
}

func (p *parquetFile) done() int64 { return p.read }

func (p *parquetFile) next() (rowGroup, error) {
	if p.group == p.meta.NumRowGroups() {
		return nil, io.EOF
	}
	g := &parquetGroup{p: p, at: p.group, meta: p.meta.RowGroup(p.group)}
	for _, c := range p.meta.RowGroups[p.group].Columns {
		p.read += c.MetaData.TotalCompressedSize
	}
	p.group++
	return g, nil
}

// parquetGroup is a row group.
type parquetGroup struct {
	p    *parquetFile
	at   int
	meta *metadata.RowGroupMetaData
	held *groupBytes
}

func (g *parquetGroup) rows() int64 { return g.meta.NumRows() }

func (g *parquetGroup) count(held *groupBytes) error {
	g.held = held
	return nil
}

// columnBuffers is what the package's readers share.
var columnBuffers = sync.Pool{New: func() any { return memory.NewResizableBuffer(memory.DefaultAllocator) }}

func (g *parquetGroup) column(i int) (columnReader, error) {
	f := &g.p.cols[i]
	if f.cells == nullCells {
		return &parquetReader{f: f}, nil
	}
	descr := g.p.meta.Schema.Column(g.p.leaves[i])
	c, err := g.meta.ColumnChunk(g.p.leaves[i])
	if err != nil {
		return nil, err
	}
	switch {
	case c.FilePath() != "":
		return nil, errors.New("its cells are in another file")
	case c.Type() != descr.PhysicalType():
		return nil, fmt.Errorf("row group %d has cells of another type than the schema", g.at+1)
	case c.NumValues() != g.rows():
		return nil, fmt.Errorf("row group %d has %d rows, and %d of the column", g.at+1, g.rows(), c.NumValues())
	case descr.MaxRepetitionLevel() != 0 || descr.MaxDefinitionLevel() > 1:
		return nil, errors.New("its cells are nested")
	}
	from := c.DataPageOffset()
	if c.HasDictionaryPage() && c.DictionaryPageOffset() > 0 && c.DictionaryPageOffset() < from {
		from = c.DictionaryPageOffset()
	}
	info, err := g.p.f.Stat()
	if err != nil {
		return nil, err
	}
	if from < 4 || from > info.Size() || c.TotalCompressedSize() > info.Size()-from {
		return nil, fmt.Errorf("row group %d claims bytes outside the file", g.at+1)
	}
	pages := &pageReader{f: g.p.f, at: from, end: from + c.TotalCompressedSize(), values: c.NumValues(), codec: c.Compression(),
		levels: descr.MaxDefinitionLevel() > 0, held: g.held}
	switch descr.PhysicalType() {
	case parquet.Types.Int32, parquet.Types.Float:
		pages.fixed = 4
	case parquet.Types.Int64, parquet.Types.Double:
		pages.fixed = 8
	case parquet.Types.Int96:
		pages.fixed = 12
	case parquet.Types.FixedLenByteArray:
		pages.fixed = descr.TypeLength()
		if pages.fixed < 0 || pages.fixed > mostText {
			return nil, fmt.Errorf("cells of %d bytes", pages.fixed)
		}
	}
	r := &parquetReader{f: f, pages: pages, levels: pages.levels, width: pages.fixed}
	//nolint:staticcheck // the only way to give it pages that were looked at
	r.r = file.NewColumnReader(descr, pages, memory.DefaultAllocator, &columnBuffers)
	return r, nil
}

// parquetReader reads a column of a row group.
type parquetReader struct {
	f      *field
	r      file.ColumnChunkReader
	pages  *pageReader
	levels bool
	width  int // of cells of a fixed length

	defs  []int16
	i32   []int32
	bools []bool
	i96   []parquet.Int96
	bytes []parquet.ByteArray
	fixed []parquet.FixedLenByteArray
}

func (r *parquetReader) close() {
	if r.pages != nil {
		r.pages.close()
	}
}

func (r *parquetReader) read(n int, v *vector) error {
	v.reset(n)
	if r.f.cells == nullCells {
		null := v.nulls()
		for i := range null {
			null[i] = true
		}
		return nil
	}
	if r.levels {
		r.defs = slices.Grow(r.defs[:0], n)[:n]
	}
	var err error
	switch rd := r.r.(type) {
	case *file.Float64ColumnChunkReader:
		if v.f64, err = readValues(r, n, v.f64, rd.ReadBatchInPage); err == nil {
			v.f64 = spread(r, v, v.f64)
		}
	case *file.Float32ColumnChunkReader:
		if v.f32, err = readValues(r, n, v.f32, rd.ReadBatchInPage); err == nil {
			v.f32 = spread(r, v, v.f32)
		}
	case *file.Int64ColumnChunkReader:
		if v.i64, err = readValues(r, n, v.i64, rd.ReadBatchInPage); err == nil {
			v.i64 = spread(r, v, v.i64)
			r.integers(v)
		}
	case *file.Int32ColumnChunkReader:
		if r.i32, err = readValues(r, n, r.i32, rd.ReadBatchInPage); err == nil {
			v.i64 = slices.Grow(v.i64[:0], n)[:n]
			for i, x := range r.i32 {
				if v.i64[i] = int64(x); r.f.unsigned {
					v.i64[i] = int64(uint32(x))
				}
			}
			v.i64 = spread(r, v, v.i64)
			r.integers(v)
		}
	case *file.Int96ColumnChunkReader:
		if r.i96, err = readValues(r, n, r.i96, rd.ReadBatchInPage); err == nil {
			v.i64 = slices.Grow(v.i64[:0], n)[:n]
			for i, x := range r.i96 {
				if v.i64[i], err = fromInt96(x); err != nil {
					return err
				}
			}
			v.i64 = spread(r, v, v.i64)
		}
	case *file.BooleanColumnChunkReader:
		if r.bools, err = readValues(r, n, r.bools, rd.ReadBatchInPage); err == nil {
			v.i64 = slices.Grow(v.i64[:0], n)[:n]
			for i, x := range r.bools {
				v.i64[i] = 0
				if x {
					v.i64[i] = 1
				}
			}
			v.i64 = spread(r, v, v.i64)
		}
	case *file.ByteArrayColumnChunkReader:
		err = readBytes(r, n, v, &r.bytes, rd.ReadBatchInPage)
	case *file.FixedLenByteArrayColumnChunkReader:
		err = readBytes(r, n, v, &r.fixed, rd.ReadBatchInPage)
	default:
		err = errors.New("cells of an unknown type")
	}
	return err
}

// readBatch is ReadBatchInPage of one of the package's readers.
type readBatch[T any] func(n int64, values []T, defs, reps []int16) (int64, int, error)

// readValues reads n cells; those that are there stand close together.
func readValues[T any](r *parquetReader, n int, values []T, read readBatch[T]) ([]T, error) {
	values = slices.Grow(values[:0], n)[:n]
	rows, got := 0, 0
	for rows < n {
		k, m, err := r.batch(n-rows, rows, func(k int64, defs []int16) (int64, int, error) { return read(k, values[got:], defs, nil) })
		if err != nil {
			return values, err
		}
		rows, got = rows+k, got+m
	}
	return values[:got], nil
}

// batch reads up to n cells of one page.
func (r *parquetReader) batch(n, from int, read func(n int64, defs []int16) (int64, int, error)) (rows, values int, err error) {
	var defs []int16
	if !r.r.HasNext() {
		if err := r.r.Err(); err != nil {
			return 0, 0, err
		}
		return 0, 0, errors.New("its pages hold fewer cells than there are rows")
	}
	if r.levels {
		defs = r.defs[from : from+n]
	}
	k, m, err := read(int64(n), defs)
	if err != nil {
		return 0, 0, err
	}
	if k <= 0 || k > int64(n) || m < 0 || !r.levels && int64(m) != k {
		return 0, 0, errors.New("a page holds fewer cells than it claims")
	}
	if r.levels {
		there := 0
		for _, d := range defs[:k] {
			there += int(d)
		}
		if there != m {
			return 0, 0, errors.New("a page holds fewer cells than it claims")
		}
	}
	return int(k), m, nil
}

// missing notes which cells are missing, and reports whether any is.
func (r *parquetReader) missing(v *vector) bool {
	if !r.levels || !slices.Contains(r.defs[:v.n], 0) {
		return false
	}
	null := v.nulls()
	for i, d := range r.defs[:v.n] {
		null[i] = d == 0
	}
	return true
}

// spread puts values that stand close together where their cells are.
func spread[T any](r *parquetReader, v *vector, values []T) []T {
	if !r.missing(v) {
		return values
	}
	got := 0
	for _, d := range r.defs[:v.n] {
		got += int(d)
	}
	values = values[:v.n]
	for i := v.n - 1; i >= 0 && got < i+1; i-- {
		if r.defs[i] != 0 {
			got--
			values[i] = values[got]
		}
	}
	return values
}

// integers turns int64 into what the column says they are.
func (r *parquetReader) integers(v *vector) {
	switch r.f.cells {
	case uintCells:
		v.u64 = slices.Grow(v.u64[:0], v.n)[:v.n]
		for i, x := range v.i64[:v.n] {
			v.u64[i] = uint64(x)
		}
	case decimalCells:
		v.text = slices.Grow(v.text[:0], 8*v.n)[:8*v.n]
		for i, x := range v.i64[:v.n] {
			binary.BigEndian.PutUint64(v.text[8*i:], uint64(x))
		}
	}
	v.i64 = v.i64[:v.n]
}

// fromInt96 gives the nanoseconds since 1970 of a day's number and its nanoseconds.
func fromInt96(x parquet.Int96) (int64, error) {
	const day, unix = 86400e9, 2440588 // 1970-01-01 is this Julian day
	nanos, days := binary.LittleEndian.Uint64(x[:]), int64(int32(binary.LittleEndian.Uint32(x[8:])))-unix
	if nanos >= 2*day || days < -106751 || days > 106750 {
		return 0, errors.New("a time (INT96) " + outOfRange)
	}
	return days*day + int64(nanos), nil
}

// readBytes reads cells that are bytes: text, decimals or half-precision floats.
func readBytes[T ~[]byte](r *parquetReader, n int, v *vector, scratch *[]T, read readBatch[T]) error {
	half := r.f.cells == floatCells
	if half {
		if r.width != 2 {
			return fmt.Errorf("a float of %d bytes", r.width)
		}
		v.f32 = slices.Grow(v.f32[:0], n)[:n]
	}
	for rows := 0; rows < n; {
		// Values that share beginnings are put together for all of a batch at once.
		most := n - rows
		if !r.r.HasNext() {
			most = 1 // batch tells what is wrong
		} else if r.pages.encoding == parquet.Encodings.DeltaByteArray {
			most = min(most, max(1, mostText/max(r.pages.size, 1)))
		}
		*scratch = slices.Grow((*scratch)[:0], most)[:most]
		k, m, err := r.batch(most, rows, func(k int64, defs []int16) (int64, int, error) { return read(k, *scratch, defs, nil) })
		if err != nil {
			return err
		}
		at := 0
		for i := rows; i < rows+k; i++ {
			var cell []byte
			if !r.levels || r.defs[i] != 0 {
				cell = (*scratch)[at]
				at++
			}
			switch {
			case half:
				if len(cell) == 2 {
					v.f32[i] = fromHalf(binary.LittleEndian.Uint16(cell))
				}
			case r.f.cells == decimalCells:
				if len(cell) > r.f.width {
					return fmt.Errorf("a decimal of %d bytes", len(cell))
				}
				fill := byte(0)
				if len(cell) > 0 && cell[0] >= 0x80 {
					fill = 0xff
				}
				for range r.f.width - len(cell) {
					v.text = append(v.text, fill)
				}
				v.text = append(v.text, cell...)
			default:
				if err := v.put(cell); err != nil {
					return err
				}
			}
		}
		clear((*scratch)[:m]) // they point into the page
		rows += k
	}
	r.missing(v)
	return nil
}

// isParquet reports whether a file's first bytes are those of Parquet.
func isParquet(b []byte) bool {
	return bytes.HasPrefix(b, []byte(parquetMagic)) || bytes.HasPrefix(b, []byte(parquetSealed))
}
