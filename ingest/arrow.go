package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Arrow IPC is read as its specification says. In a stream messages of a
// flatbuffer and a body follow each other: a schema, then dictionaries and record
// batches, then an end mark. In a file a footer has the schema and says where the
// messages are.

const (
	arrowMagic       = "ARROW1"
	featherMagic     = "FEA1"
	arrowContinues   = 0xffffffff // before each message, and all of a stream's first four bytes
	mostMetadata     = 256 << 20  // bytes of a message's flatbuffer
	decoderBytes     = 128 << 10  // of a decoder of zstd, without its window
	mostArrowFields  = 1 << 20    // fields of a schema, nested ones included
	deepestArrow     = 64
	mostInMemory     = 256 << 20 // bytes of the dictionaries of a file, or of the texts of a column of views
	arrowSchema      = 1         // types of message
	arrowDictionary  = 2
	arrowRecordBatch = 3
)

// isArrow reports whether a file's first bytes are those of Arrow IPC.
func isArrow(b []byte) bool {
	return bytes.HasPrefix(b, []byte(arrowMagic+"\x00\x00")) ||
		len(b) >= 8 && binary.LittleEndian.Uint32(b) == arrowContinues && binary.LittleEndian.Uint32(b[4:])-1 < mostMetadata
}

// flat is a table in a flatbuffer. What lies outside the buffer panics.
type flat struct {
	b  []byte
	at int
}

func flatRoot(b []byte) flat { return flat{b, int(binary.LittleEndian.Uint32(b))} }

// slot is where a field of the table is, or 0 if it has the default value.
func (t flat) slot(i int) int {
	v := t.at - int(int32(binary.LittleEndian.Uint32(t.b[t.at:])))
	if size := int(binary.LittleEndian.Uint16(t.b[v:])); 4+2*i+2 > size {
		return 0
	}
	if off := int(binary.LittleEndian.Uint16(t.b[v+4+2*i:])); off > 0 {
		return t.at + off
	}
	return 0
}

func (t flat) u8(i int) byte {
	if at := t.slot(i); at > 0 {
		return t.b[at]
	}
	return 0
}

func (t flat) i16(i int, missing int16) int16 {
	if at := t.slot(i); at > 0 {
		return int16(binary.LittleEndian.Uint16(t.b[at:]))
	}
	return missing
}

func (t flat) i32(i int, missing int32) int32 {
	if at := t.slot(i); at > 0 {
		return int32(binary.LittleEndian.Uint32(t.b[at:]))
	}
	return missing
}

func (t flat) i64(i int) int64 {
	if at := t.slot(i); at > 0 {
		return int64(binary.LittleEndian.Uint64(t.b[at:]))
	}
	return 0
}

func (t flat) offset(at int) int { return at + int(binary.LittleEndian.Uint32(t.b[at:])) }

func (t flat) table(i int) (flat, bool) {
	if at := t.slot(i); at > 0 {
		return flat{t.b, t.offset(at)}, true
	}
	return flat{}, false
}

// vector is the elements of a vector, each of size bytes, and their number.
func (t flat) vector(i, size int) (at, n int) {
	if at = t.slot(i); at == 0 {
		return 0, 0
	}
	at = t.offset(at)
	n = int(binary.LittleEndian.Uint32(t.b[at:]))
	at += 4
	if n > (len(t.b)-at)/size {
		panic("a vector goes beyond its message")
	}
	return at, n
}

func (t flat) text(i int) string {
	at, n := t.vector(i, 1)
	return string(t.b[at : at+n])
}

// arrowField is a field of a schema, as far as its place in a batch matters.
type arrowField struct {
	field
	layout     arrowLayout
	bits       int // width of a fixed cell
	large      bool
	half       bool // float16
	signed     bool
	buffers    int           // that it has itself, without those of a number that varies
	views      bool          // it has a number of buffers that varies
	children   []*arrowField // of cells that are not read
	dictionary int64         // its id, if it is encoded; bits and signed are those of the indices
	encoded    bool
	values     *arrowField // of the dictionary
}

// arrowLayout says how the cells of a column are stored.
type arrowLayout uint8

const (
	arrowNone  arrowLayout = iota
	arrowFixed             // bits each
	arrowVar               // offsets and bytes
	arrowViews             // views and bytes
)

// arrowFile is an open file or stream.
type arrowFile struct {
	f      *os.File
	size   int64
	at     int64   // of the next message, of a stream
	blocks []int64 // where the next messages are, of a file
	stream bool
	read   int64 // bytes of the messages so far

	v4     bool
	root   flat // the schema
	layout []*arrowField
	cols   []field
	dicts  map[int64]*arrowValues
	values int64                 // bytes of dicts
	fresh  int64                 // those of dictionaries since the last batch
	needed map[int64]*arrowField // dictionaries, by id
}

// openArrow opens a file or stream of Arrow IPC.
func openArrow(f *os.File) (columnarFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	a := &arrowFile{f: f, size: info.Size(), dicts: map[int64]*arrowValues{}, needed: map[int64]*arrowField{}}
	var magic [6]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil {
		return nil, cutShort(err)
	}
	if string(magic[:]) == arrowMagic {
		return a, a.footer()
	}
	a.stream = true
	m, err := a.message()
	switch {
	case err == io.EOF:
		return nil, errArrowCut
	case err != nil:
		return nil, err
	case m.kind != arrowSchema:
		return nil, fmt.Errorf("its first message is of type %d, and no schema", m.kind)
	}
	return a, a.schema(m.header)
}

// footer reads what stands at the end of a file.
func (a *arrowFile) footer() error {
	var tail [10]byte
	if _, err := a.f.ReadAt(tail[:], max(a.size-10, 0)); err != nil {
		return cutShort(err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(tail[4:]) != arrowMagic || n > a.size-18 || n > mostMetadata {
		return errArrowCut
	}
	b := make([]byte, n)
	if _, err := a.f.ReadAt(b, a.size-10-n); err != nil {
		return cutShort(err)
	}
	t := flatRoot(b)
	a.v4 = t.i16(0, 0) < 4
	schema, ok := t.table(1)
	if !ok {
		return errors.New("its footer has no schema")
	}
	for _, i := range []int{2, 3} { // dictionaries come first, wherever they are
		at, n := t.vector(i, 24)
		for k := range n {
			a.blocks = append(a.blocks, int64(binary.LittleEndian.Uint64(b[at+24*k:])))
		}
	}
	return a.schema(schema)
}

var (
	errArrowCut  = errors.New("it is cut short")
	errArrowTail = errors.New("its end mark is missing: whatever wrote it stopped in the middle")
)

// cutShort says of a file that ended early.
func cutShort(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errArrowCut
	}
	return err
}

// arrowMessage is a message; its body is still in the file.
type arrowMessage struct {
	kind     byte
	header   flat
	body     int64 // where it is
	bodySize int64
}

// message reads the next message and goes on behind its body.
func (a *arrowFile) message() (m arrowMessage, err error) {
	if !a.stream {
		if len(a.blocks) == 0 {
			return m, io.EOF
		}
		a.at, a.blocks = a.blocks[0], a.blocks[1:]
	}
	left := a.size - a.at
	if a.at < 0 || left < 8 {
		if left == 0 {
			return m, errArrowTail
		}
		return m, errArrowCut
	}
	var b [8]byte
	if _, err := a.f.ReadAt(b[:], a.at); err != nil {
		return m, cutShort(err)
	}
	size, head := int64(binary.LittleEndian.Uint32(b[4:])), int64(8)
	if first := int64(binary.LittleEndian.Uint32(b[:])); first != arrowContinues {
		size, head = first, 4 // as it was before Arrow 0.15
	}
	if size == 0 {
		if !a.stream {
			return m, errors.New("a message is empty")
		}
		if left > head {
			return m, fmt.Errorf("%d bytes follow its end mark; are these several streams in one file?", left-head)
		}
		return m, io.EOF
	}
	if size > mostMetadata {
		return m, fmt.Errorf("a message claims %d bytes of metadata", size)
	}
	if size > left-head {
		return m, errArrowCut
	}
	meta := make([]byte, size)
	if _, err := a.f.ReadAt(meta, a.at+head); err != nil {
		return m, cutShort(err)
	}
	t := flatRoot(meta)
	m.kind, m.bodySize = t.u8(1), t.i64(3)
	if a.stream {
		a.v4 = t.i16(0, 0) < 4
	}
	if v := t.i16(0, 0); v < 3 || v > 4 {
		return m, fmt.Errorf("it is of version %d of Arrow's metadata; 4 and 5 are read", v+1)
	}
	header, ok := t.table(2)
	if !ok {
		return m, errors.New("a message has no header")
	}
	m.header, m.body = header, a.at+head+size
	if m.bodySize < 0 || m.bodySize > a.size-m.body {
		return m, errArrowCut
	}
	a.at = m.body + m.bodySize
	if a.read += head + size + m.bodySize; a.read > a.size {
		return m, errors.New("its messages overlap")
	}
	return m, nil
}

func (a *arrowFile) fields() []field { return a.cols }

func (a *arrowFile) done() int64 { return a.read }

func (a *arrowFile) metadata(key string) string {
	at, n := a.root.vector(2, 4)
	for i := range n {
		pair := flat{a.root.b, a.root.offset(at + 4*i)}
		if k, length := pair.vector(0, 1); string(pair.b[k:k+length]) == key {
			return pair.text(1)
		}
	}
	return ""
}

// schema takes the fields over.
func (a *arrowFile) schema(t flat) error {
	if t.i16(0, 0) != 0 {
		return &UnusableError{Reason: "is Arrow in big-endian byte order", Hint: "write it on a little-endian machine"}
	}
	a.root = t
	at, n := t.vector(1, 4)
	left := mostArrowFields
	for i := range n {
		f, err := a.field(flat{t.b, t.offset(at + 4*i)}, &left, 0)
		if err != nil {
			return err
		}
		a.layout = append(a.layout, f)
		a.cols = append(a.cols, f.field)
	}
	return nil
}

// field reads a field of the schema. left is how many more there may be.
func (a *arrowFile) field(t flat, left *int, depth int) (*arrowField, error) {
	if *left--; *left < 0 || depth > deepestArrow {
		return nil, errors.New("its schema is nested too deep, or too wide")
	}
	f := &arrowField{}
	f.name = t.text(0)
	typ, _ := t.table(3)
	if typ.b == nil {
		return nil, fmt.Errorf("column %q has no type", clip(f.name))
	}
	at, n := t.vector(5, 4)
	for i := range n {
		c, err := a.field(flat{t.b, t.offset(at + 4*i)}, left, depth+1)
		if err != nil {
			return nil, err
		}
		f.children = append(f.children, c)
	}
	if err := f.setType(t.u8(2), typ, a.v4); err != nil {
		return nil, fmt.Errorf("column %q: %w", clip(f.name), err)
	}
	if d, ok := t.table(4); ok {
		values := *f
		values.name = ""
		*f = arrowField{field: values.field, layout: arrowFixed, buffers: 2, dictionary: d.i64(0), encoded: true, values: &values, bits: 32, signed: true}
		f.name = t.text(0)
		if index, ok := d.table(1); ok {
			f.bits, f.signed = int(index.i32(0, 0)), index.u8(1) != 0
		}
		if f.bits != 8 && f.bits != 16 && f.bits != 32 && f.bits != 64 {
			return nil, fmt.Errorf("column %q: a dictionary's indices have %d bits", clip(f.name), f.bits)
		}
		if len(values.children) > 0 {
			f.cells, f.why = otherCells, "a dictionary of "+f.why
		}
		a.needed[f.dictionary] = &values
	}
	return f, nil
}

// setType takes over what the type says.
func (f *arrowField) setType(kind byte, t flat, v4 bool) error {
	fixed := func(c cells, bits int) { f.cells, f.layout, f.bits, f.buffers = c, arrowFixed, bits, 2 }
	other := func(what string, buffers int) { f.cells, f.why, f.buffers = otherCells, what, buffers }
	width := func(bits int32, allowed ...int32) {
		if !slices.Contains(allowed, bits) {
			other(fmt.Sprintf("numbers of %d bits", bits), 2)
		}
	}
	unit := [...]int64{1e9, 1e6, 1e3, 1}
	switch kind {
	case 1: // Null
		f.cells = nullCells
	case 2: // Int
		bits := t.i32(0, 0)
		fixed(intCells, int(bits))
		if f.signed = t.u8(1) != 0; !f.signed && bits == 64 {
			f.cells = uintCells
		}
		width(bits, 8, 16, 32, 64)
	case 3: // FloatingPoint
		switch t.i16(0, 0) {
		case 0:
			fixed(floatCells, 16)
			f.half = true
		case 1:
			fixed(floatCells, 32)
		case 2:
			fixed(doubleCells, 64)
		default:
			return errors.New("a float of unknown precision")
		}
	case 4, 19: // Binary
		f.cells, f.layout, f.buffers, f.large = textCells, arrowVar, 3, kind == 19
	case 5, 20: // Utf8
		f.cells, f.layout, f.buffers, f.large = textCells, arrowVar, 3, kind == 20
	case 6:
		fixed(boolCells, 1)
	case 7: // Decimal
		bits := t.i32(2, 128)
		fixed(decimalCells, int(bits))
		f.scale, f.width = t.i32(1, 0), int(bits)/8
		if f.scale < -1000 || f.scale > 1000 {
			return fmt.Errorf("a decimal of scale %d", f.scale)
		}
		width(bits, 32, 64, 128, 256)
	case 8: // Date
		fixed(instantCells, 64)
		f.unit, f.naive, f.signed = 1e6, true, true
		if t.i16(0, 1) == 0 {
			f.unit, f.bits = 86400e9, 32
		}
	case 9: // Time
		fixed(clockCells, 64)
		u := t.i16(0, 1)
		if u < 0 || u > 3 {
			return errors.New("a time of unknown unit")
		}
		if f.unit, f.signed = unit[u], true; u < 2 {
			f.bits = 32
		}
	case 10: // Timestamp
		fixed(instantCells, 64)
		f.signed, f.zone = true, t.text(1)
		f.naive = f.zone == ""
		u := t.i16(0, 0)
		if u < 0 || u > 3 {
			return errors.New("a time of unknown unit")
		}
		f.unit = unit[u]
	case 11:
		other("intervals", 2)
	case 12, 17, 21: // List, Map, LargeList
		other("lists", 2)
	case 13:
		other("structs", 1)
	case 14: // Union
		other("unions", 1)
		if t.i16(0, 0) == 1 {
			f.buffers++
		}
		if v4 {
			f.buffers++
		}
	case 15: // FixedSizeBinary
		w := t.i32(0, 0)
		fixed(textCells, 8*int(w))
		if w < 0 || w > mostText {
			return fmt.Errorf("cells of %d bytes", w)
		}
	case 16:
		other("lists", 1)
	case 18:
		other("durations", 2)
	case 22:
		other("runs", 0)
	case 23, 24: // BinaryView, Utf8View
		f.cells, f.layout, f.buffers, f.views = textCells, arrowViews, 2, true
	case 25, 26: // ListView, LargeListView
		other("lists", 3)
	default:
		return fmt.Errorf("type %d is not known", kind)
	}
	return nil
}

// arrowBatch is a record batch, or the cells of a dictionary.
type arrowBatch struct {
	a       *arrowFile
	n       int64
	columns []arrowColumn
	codec   int8  // -1: none
	fresh   int64 // bytes of the dictionaries that came just before it
	held    *groupBytes
}

// arrowColumn is where the cells of a column are.
type arrowColumn struct {
	f       *arrowField
	nulls   int64
	buffers []arrowBuffer
	values  *arrowValues // of its dictionary
}

type arrowBuffer struct{ at, size int64 }

const (
	codecNone = -1
	codecLZ4  = 0
	codecZstd = 1
)

// batch reads where the cells of the fields are.
func (a *arrowFile) batch(t flat, m *arrowMessage, fields []*arrowField) (*arrowBatch, error) {
	b := &arrowBatch{a: a, n: t.i64(0), codec: codecNone}
	if b.n < 0 {
		return nil, fmt.Errorf("a batch of %d rows", b.n)
	}
	if c, ok := t.table(3); ok {
		b.codec = int8(c.u8(0))
		if b.codec != codecLZ4 && b.codec != codecZstd || c.u8(1) != 0 {
			return nil, fmt.Errorf("it is compressed in a way (%d) that is not known", b.codec)
		}
	}
	nodes, nodeCount := t.vector(1, 16)
	buffers, bufferCount := t.vector(2, 16)
	varying, varyingCount := t.vector(4, 8)
	i64 := func(at int) int64 { return int64(binary.LittleEndian.Uint64(t.b[at:])) }
	var walk func(f *arrowField, c *arrowColumn) error
	walk = func(f *arrowField, c *arrowColumn) error {
		if nodeCount == 0 {
			return errors.New("a batch has fewer columns than the schema")
		}
		length, nulls := i64(nodes), i64(nodes+8)
		nodes, nodeCount = nodes+16, nodeCount-1
		n := int64(f.buffers)
		if f.views {
			if varyingCount == 0 {
				return errors.New("a batch has fewer buffers than the schema wants")
			}
			if n += i64(varying); n < 2 || n > int64(bufferCount) {
				return errors.New("a batch has fewer buffers than it claims")
			}
			varying, varyingCount = varying+8, varyingCount-1
		}
		if n > int64(bufferCount) {
			return errors.New("a batch has fewer buffers than the schema wants")
		}
		if c != nil {
			if length != b.n || nulls < 0 || nulls > length {
				return fmt.Errorf("column %q has %d cells, %d of them missing, in a batch of %d rows", clip(f.name), length, nulls, b.n)
			}
			c.f, c.nulls = f, nulls
			for range n {
				at, size := i64(buffers), i64(buffers+8)
				if at < 0 || size < 0 || at > m.bodySize || size > m.bodySize-at {
					return fmt.Errorf("column %q: a buffer lies outside its message", clip(f.name))
				}
				c.buffers = append(c.buffers, arrowBuffer{m.body + at, size})
				buffers, bufferCount = buffers+16, bufferCount-1
			}
		} else {
			buffers, bufferCount = buffers+16*int(n), bufferCount-int(n)
		}
		for _, child := range f.children {
			if err := walk(child, nil); err != nil {
				return err
			}
		}
		return nil
	}
	b.columns = make([]arrowColumn, len(fields))
	for i, f := range fields {
		if err := walk(f, &b.columns[i]); err != nil {
			return nil, err
		}
		if f.encoded {
			b.columns[i].values = a.dicts[f.dictionary]
		}
	}
	return b, nil
}

func (a *arrowFile) next() (rowGroup, error) {
	for {
		m, err := a.message()
		if err != nil {
			return nil, err
		}
		switch m.kind {
		case arrowDictionary:
			if err := a.addDictionary(&m); err != nil {
				return nil, err
			}
		case arrowRecordBatch:
			b, err := a.batch(m.header, &m, a.layout)
			if err == nil {
				b.fresh, a.fresh = a.fresh, 0
			}
			return b, err
		default:
			return nil, fmt.Errorf("a message of type %d among its rows", m.kind)
		}
	}
}

// arrowValues are the cells of a dictionary. They don't change: more are put behind
// them, where only later batches look.
type arrowValues struct{ vector }

// bytes is about what they take.
func (d *arrowValues) bytes() int64 { return int64(len(d.text)) + 8*int64(d.n) }

// addDictionary reads the cells of a dictionary.
func (a *arrowFile) addDictionary(m *arrowMessage) error {
	id := m.header.i64(0)
	f := a.needed[id]
	if f == nil {
		return fmt.Errorf("dictionary %d is of no column", id)
	}
	t, ok := m.header.table(1)
	if !ok {
		return fmt.Errorf("dictionary %d has no values", id)
	}
	if f.cells == otherCells || len(f.children) > 0 {
		return nil
	}
	b, err := a.batch(t, m, []*arrowField{f})
	if err != nil {
		return fmt.Errorf("dictionary %d: %w", id, err)
	}
	r, err := b.column(0)
	if err != nil {
		return fmt.Errorf("dictionary %d: %w", id, err)
	}
	defer r.close()
	d := &arrowValues{vector{ends: []int{0}}}
	if old := a.dicts[id]; old != nil {
		if m.header.u8(2) != 0 { // the cells are further ones
			*d = *old
		}
		a.values -= old.bytes()
	}
	before := d.bytes()
	// In pieces, so that no more is allocated than there are bytes to read.
	var v vector
	for left := b.n; left > 0; {
		n := int(min(left, mostSlice))
		if err := r.read(n, &v); err != nil {
			return fmt.Errorf("dictionary %d: %w", id, err)
		}
		d.add(&v)
		if a.values+d.bytes() > mostInMemory {
			return tooMuch("write the columns without dictionaries", "its dictionaries take more than %d MiB", mostInMemory>>20)
		}
		left -= int64(n)
	}
	a.dicts[id] = d
	a.values += d.bytes()
	a.fresh += d.bytes() - before
	return nil
}

func (b *arrowBatch) rows() int64 { return b.n }

func (b *arrowBatch) count(held *groupBytes) error {
	b.held = held
	return held.add(b.fresh)
}

func (b *arrowBatch) column(i int) (_ columnReader, err error) {
	c := &b.columns[i]
	f := c.f
	if f.encoded {
		if c.values == nil && b.n > c.nulls {
			return nil, errors.New("its dictionary comes after the rows that use it, or not at all")
		}
		if c.values == nil {
			c.values = &arrowValues{vector{ends: []int{0}}}
		}
	}
	r := &arrowReader{c: c, f: f}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if f.cells == nullCells && !f.encoded {
		return r, nil
	}
	open := func(k int) io.Reader {
		if err != nil {
			return nil
		}
		var in io.Reader
		in, _, err = r.open(b, c.buffers[k])
		return in
	}
	if c.nulls > 0 {
		r.valid = open(0)
	}
	r.main = open(1)
	switch f.layout {
	case arrowVar:
		r.bytes = open(2)
	case arrowViews:
		total := int64(0)
		for _, buf := range c.buffers[2:] {
			if err != nil {
				break
			}
			var in io.Reader
			var size int64
			if in, size, err = r.open(b, buf); err != nil {
				break
			}
			if total += size; total > mostInMemory {
				return nil, tooMuch("write smaller batches", "its texts take more than %d MiB in one batch", mostInMemory>>20)
			}
			if err = b.held.add(size); err != nil {
				break
			}
			var whole []byte
			if whole, err = readAll(in, size); err != nil {
				break
			}
			r.texts = append(r.texts, whole)
		}
	}
	return r, err
}

// readAll reads size bytes, allocating no more than twice what there is.
func readAll(r io.Reader, size int64) ([]byte, error) {
	var b []byte
	for int64(len(b)) < size {
		n := int(min(size, max(2*int64(len(b)), 1<<20)))
		b = slices.Grow(b, n-len(b))
		m, err := io.ReadFull(r, b[len(b):n])
		b = b[:len(b)+m]
		if err != nil {
			return nil, cutShort(err)
		}
	}
	return b, nil
}

// open returns the bytes of a buffer, decompressed, and their number.
func (r *arrowReader) open(b *arrowBatch, buf arrowBuffer) (io.Reader, int64, error) {
	if buf.size == 0 {
		return bytes.NewReader(nil), 0, nil
	}
	if b.codec == codecNone {
		return io.NewSectionReader(b.a.f, buf.at, buf.size), buf.size, nil
	}
	if buf.size < 8 {
		return nil, 0, errors.New("a compressed buffer without its size")
	}
	var head [8]byte
	if _, err := b.a.f.ReadAt(head[:], buf.at); err != nil {
		return nil, 0, cutShort(err)
	}
	raw := io.NewSectionReader(b.a.f, buf.at+8, buf.size-8)
	size := int64(binary.LittleEndian.Uint64(head[:]))
	switch {
	case size == -1:
		return raw, buf.size - 8, nil
	case size < 0:
		return nil, 0, fmt.Errorf("a compressed buffer of %d bytes", size)
	}
	var frame [zstd.HeaderMaxSize]byte
	n, err := raw.ReadAt(frame[:], 0)
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	if b.codec == codecLZ4 {
		block := int64(8 << 20)                                       // of the old format
		if code := frame[5] >> 4 & 7; frame[0] == 0x04 && code >= 4 { // 64 KiB to 4 MiB
			block = 1 << (8 + 2*code)
		}
		if err := b.held.add(2 * min(block, size)); err != nil {
			return nil, 0, err
		}
		return io.LimitReader(lz4.NewReader(raw), size), size, nil
	}
	var h zstd.Header
	if err := h.Decode(frame[:n]); err != nil {
		return nil, 0, err
	}
	window := max(h.WindowSize, zstd.MinWindowSize)
	if h.SingleSegment {
		window = max(h.FrameContentSize, zstd.MinWindowSize)
	}
	if window > mostInMemory {
		return nil, 0, tooMuch("write it with a lower level of zstd", "a buffer needs more than %d MiB to be decompressed", mostInMemory>>20)
	}
	if err := b.held.add(decoderBytes + int64(min(window, uint64(size)))); err != nil {
		return nil, 0, err
	}
	// One goroutine: those of the package could not be guarded against panics.
	z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, 0, err
	}
	r.zstd = append(r.zstd, z)
	return io.LimitReader(z, size), size, nil
}

func (r *arrowReader) close() {
	for _, z := range r.zstd {
		z.Close()
	}
	r.zstd = nil
}

// arrowReader reads a column of a batch.
type arrowReader struct {
	c     *arrowColumn
	f     *arrowField
	valid io.Reader // nil where no cell is missing
	main  io.Reader // cells, offsets or views
	bytes io.Reader // of arrowVar
	texts [][]byte  // of arrowViews
	zstd  []*zstd.Decoder

	buf   []byte
	last  int64 // offset of arrowVar
	begun bool
	index vector
}

// take reads n bytes into the reader's buffer, which is used again.
func (r *arrowReader) take(from io.Reader, n int) ([]byte, error) {
	r.buf = slices.Grow(r.buf[:0], n)[:n]
	_, err := io.ReadFull(from, r.buf)
	return r.buf, cutShort(err)
}

func (r *arrowReader) read(n int, v *vector) error {
	v.reset(n)
	if r.f.cells == nullCells && !r.f.encoded {
		null := v.nulls()
		for i := range null {
			null[i] = true
		}
		for range n {
			v.ends = append(v.ends, 0)
		}
		return nil
	}
	if r.valid != nil {
		b, err := r.take(r.valid, (n+7)/8)
		if err != nil {
			return err
		}
		null := v.nulls()
		for i := range null {
			null[i] = b[i>>3]>>(i&7)&1 == 0
		}
	}
	switch {
	case r.f.encoded:
		return r.decode(n, v)
	case r.f.layout == arrowVar:
		return r.readVar(n, v)
	case r.f.layout == arrowViews:
		return r.readViews(n, v)
	}
	return r.readFixed(n, v, r.f.cells)
}

// integers reads n integers of the field's width.
func (r *arrowReader) integers(n int, dst []int64) ([]int64, error) {
	dst = slices.Grow(dst[:0], n)[:n]
	b, err := r.take(r.main, n*r.f.bits/8)
	if err != nil {
		return nil, err
	}
	switch {
	case r.f.bits == 8 && r.f.signed:
		for i := range dst {
			dst[i] = int64(int8(b[i]))
		}
	case r.f.bits == 8:
		for i := range dst {
			dst[i] = int64(b[i])
		}
	case r.f.bits == 16 && r.f.signed:
		for i := range dst {
			dst[i] = int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
		}
	case r.f.bits == 16:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case r.f.bits == 32 && r.f.signed:
		for i := range dst {
			dst[i] = int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
		}
	case r.f.bits == 32:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint32(b[4*i:]))
		}
	default:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	return dst, nil
}

func (r *arrowReader) readFixed(n int, v *vector, c cells) (err error) {
	width := r.f.bits / 8
	switch c {
	case intCells, instantCells, clockCells:
		v.i64, err = r.integers(n, v.i64)
	case uintCells:
		var b []byte
		if b, err = r.take(r.main, 8*n); err == nil {
			v.u64 = slices.Grow(v.u64[:0], n)[:n]
			for i := range v.u64 {
				v.u64[i] = binary.LittleEndian.Uint64(b[8*i:])
			}
		}
	case boolCells:
		var b []byte
		if b, err = r.take(r.main, (n+7)/8); err == nil {
			v.i64 = slices.Grow(v.i64[:0], n)[:n]
			for i := range v.i64 {
				v.i64[i] = int64(b[i>>3] >> (i & 7) & 1)
			}
		}
	case floatCells:
		var b []byte
		if b, err = r.take(r.main, width*n); err == nil {
			v.f32 = slices.Grow(v.f32[:0], n)[:n]
			for i := range v.f32 {
				if r.f.half {
					v.f32[i] = fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
				} else {
					v.f32[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
				}
			}
		}
	case doubleCells:
		var b []byte
		if b, err = r.take(r.main, 8*n); err == nil {
			v.f64 = slices.Grow(v.f64[:0], n)[:n]
			for i := range v.f64 {
				v.f64[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
	case decimalCells:
		var b []byte
		if b, err = r.take(r.main, width*n); err == nil {
			v.text = append(v.text[:0], b...)
			for i := range n {
				slices.Reverse(v.text[i*width : (i+1)*width])
			}
		}
	case textCells: // of one width
		if width*n > mostText {
			return errText(n)
		}
		var b []byte
		if b, err = r.take(r.main, width*n); err == nil {
			v.text = append(v.text[:0], b...)
			for i := range n {
				v.ends = append(v.ends, (i+1)*width)
			}
		}
	}
	return err
}

// fromHalf converts a float16.
func fromHalf(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0:
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

func (r *arrowReader) readVar(n int, v *vector) error {
	width := 4
	if r.f.large {
		width = 8
	}
	offset := func(b []byte, i int) int64 {
		if width == 8 {
			return int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	if !r.begun && n > 0 {
		b, err := r.take(r.main, width)
		if err != nil {
			return err
		}
		first := offset(b, 0)
		if first < 0 {
			return errors.New("an offset of a text is negative")
		}
		if _, err := io.CopyN(io.Discard, r.bytes, first); err != nil {
			return cutShort(err)
		}
		r.last, r.begun = first, true
	}
	b, err := r.take(r.main, n*width)
	if err != nil {
		return err
	}
	first := r.last
	for i := range n {
		end := offset(b, i)
		if end < r.last {
			return errors.New("the offsets of its texts are not in order")
		}
		if end-first > mostText {
			return errText(n)
		}
		r.last = end
		v.ends = append(v.ends, int(end-first))
	}
	v.text, err = readInto(r.bytes, v.text, int(r.last-first))
	return err
}

// readInto reads n bytes into b, which is used again, growing it as they come.
func readInto(r io.Reader, b []byte, n int) ([]byte, error) {
	b = b[:0]
	for len(b) < n {
		to := min(n, len(b)+1<<20)
		b = slices.Grow(b, to-len(b))
		m, err := io.ReadFull(r, b[len(b):to])
		b = b[:len(b)+m]
		if err != nil {
			return b, cutShort(err)
		}
	}
	return b, nil
}

func (r *arrowReader) readViews(n int, v *vector) error {
	b, err := r.take(r.main, 16*n)
	if err != nil {
		return err
	}
	for i := range n {
		view := b[16*i : 16*i+16]
		size := int(int32(binary.LittleEndian.Uint32(view)))
		var cell []byte
		switch {
		case v.isNull(i):
		case size < 0:
			return errors.New("a text of negative length")
		case size <= 12:
			cell = view[4 : 4+size]
		default:
			k, at := int(int32(binary.LittleEndian.Uint32(view[8:]))), int(int32(binary.LittleEndian.Uint32(view[12:])))
			if k < 0 || k >= len(r.texts) || at < 0 || at > len(r.texts[k]) || size > len(r.texts[k])-at {
				return errors.New("a text lies outside its buffer")
			}
			cell = r.texts[k][at : at+size]
		}
		if err := v.put(cell); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the indices of cells and looks these up in the dictionary.
func (r *arrowReader) decode(n int, v *vector) (err error) {
	if r.index.i64, err = r.integers(n, r.index.i64); err != nil {
		return err
	}
	d := r.c.values
	index := r.index.i64
	for i, k := range index {
		if v.isNull(i) {
			index[i] = -1
			continue
		}
		if k < 0 || k >= int64(d.n) {
			return fmt.Errorf("a cell has value %d of a dictionary of %d", k, d.n)
		}
		if d.isNull(int(k)) {
			index[i] = -1
		}
	}
	if slices.Contains(index, -1) {
		null := v.nulls()
		for i, k := range index {
			null[i] = k < 0
		}
	} else {
		v.null = v.null[:0]
	}
	return v.lookUp(&r.f.field, &d.vector, index)
}

// lookUp sets v to the values of a dictionary at the indices, of which -1 is a
// missing cell.
func (v *vector) lookUp(f *field, d *vector, index []int64) error {
	n := len(index)
	switch f.cells {
	case floatCells:
		v.f32 = pick(v.f32, d.f32, index)
	case doubleCells:
		v.f64 = pick(v.f64, d.f64, index)
	case intCells, boolCells, instantCells, clockCells:
		v.i64 = pick(v.i64, d.i64, index)
	case uintCells:
		v.u64 = pick(v.u64, d.u64, index)
	case decimalCells:
		v.text = slices.Grow(v.text[:0], n*f.width)[:n*f.width]
		for i, k := range index {
			if k >= 0 {
				copy(v.text[i*f.width:], d.text[int(k)*f.width:(int(k)+1)*f.width])
			}
		}
	case textCells:
		for _, k := range index {
			var cell []byte
			if k >= 0 {
				cell = d.text[d.ends[k]:d.ends[k+1]]
			}
			if err := v.put(cell); err != nil {
				return err
			}
		}
	}
	return nil
}

func pick[T any](dst, values []T, index []int64) []T {
	dst = slices.Grow(dst[:0], len(index))[:len(index)]
	for i, k := range index {
		if k >= 0 {
			dst[i] = values[k]
		}
	}
	return dst
}

// add appends the cells of another vector of the same kind.
func (v *vector) add(w *vector) {
	if len(w.null) > 0 || len(v.null) > 0 {
		v.null = append(v.null, make([]bool, v.n-len(v.null))...)
		v.null = append(v.null, w.null...)
		v.null = append(v.null, make([]bool, v.n+w.n-len(v.null))...)
	}
	v.n += w.n
	v.f32, v.f64, v.i64, v.u64 = append(v.f32, w.f32...), append(v.f64, w.f64...), append(v.i64, w.i64...), append(v.u64, w.u64...)
	from := len(v.text)
	v.text = append(v.text, w.text...)
	for _, end := range w.ends[1:] {
		v.ends = append(v.ends, from+end)
	}
}
