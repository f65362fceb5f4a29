package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A columnar source is a list of groups: the row groups of a Parquet file, the
// record batches of Arrow. The cells of a group stand column by column, and can be
// read only from its first row on. So a group is cut into slices of rows, and a
// task is one column of one slice: workers take the tasks of the first slices
// first, and never two of one column at once. The memory in use is that of a few
// slices and of what each column keeps while it is read.

// cells says what the cells of a column are.
type cells uint8

const (
	otherCells   cells = iota // nothing that is read
	nullCells                 // missing, all of them
	floatCells                // float32
	doubleCells               // float64
	intCells                  // int64
	uintCells                 // uint64
	boolCells                 // 0 and 1, as int64
	decimalCells              // integers of width bytes, of which scale digits are decimals
	instantCells              // int64 times in a unit
	clockCells                // int64 times of day in a unit
	textCells
)

// field is a column of a columnar source.
type field struct {
	name     string
	unnamed  bool
	cells    cells
	why      string // of otherCells: what they are
	scale    int32  // of decimalCells
	width    int    // of decimalCells: bytes
	unit     int64  // of instantCells and clockCells: nanoseconds
	zone     string // of instantCells: the name of that in which they are meant; they are UTC all the same
	naive    bool   // of instantCells: without a zone
	unsigned bool   // of intCells: what Parquet stores as negative is large
}

// kind is the column's kind, where its cells don't tell.
func (f *field) kind() Kind {
	switch f.cells {
	case otherCells:
		return Other
	case nullCells:
		return Empty
	case instantCells:
		return Time
	case textCells, clockCells:
		return Text
	}
	return Float
}

// columnarFile is an open columnar source.
type columnarFile interface {
	fields() []field
	// metadata is the value of a key in the metadata of the schema, or "".
	metadata(key string) string
	// next returns the next group, or io.EOF after the last.
	next() (rowGroup, error)
	// done is how many bytes of the file the groups so far make up.
	done() int64
}

// rowGroup is a group of rows of a columnarFile.
type rowGroup interface {
	rows() int64
	// count has what the group holds counted. It is called before column, if at all.
	count(held *groupBytes) error
	// column reads a column's cells from the first row on. It may be called from
	// any goroutine.
	column(i int) (columnReader, error)
}

// columnReader reads the cells of one column of a group, by one goroutine at a
// time.
type columnReader interface {
	// read sets v to the next n cells.
	read(n int, v *vector) error
	// close frees what the reader keeps.
	close()
}

// vector is a run of cells of one column.
type vector struct {
	n    int
	null []bool // which are missing; nil if none is
	f32  []float32
	f64  []float64
	i64  []int64
	u64  []uint64
	text []byte // of textCells, cell i is text[ends[i]:ends[i+1]]; of decimalCells, the integers, big-endian
	ends []int
}

// reset makes v a vector of n cells, none of which is missing, of any content.
func (v *vector) reset(n int) {
	v.n, v.null = n, v.null[:0]
	v.text, v.ends = v.text[:0], append(v.ends[:0], 0)
}

// nulls returns the room for which cells are missing.
func (v *vector) nulls() []bool {
	v.null = slices.Grow(v.null[:0], v.n)[:v.n]
	return v.null
}

// isNull reports whether a cell is missing.
func (v *vector) isNull(i int) bool { return len(v.null) > 0 && v.null[i] }

// mostText is the most bytes of text in one slice of a column.
const mostText = 64 << 20

func errText(cells int) error {
	return tooMuch("leave the column out, or shorten its texts", "%d cells hold more than %d MiB of text", cells, mostText>>20)
}

// put appends a cell to a vector of texts.
func (v *vector) put(cell []byte) error {
	if len(cell) > mostText-len(v.text) {
		return errText(v.n)
	}
	v.text = append(v.text, cell...)
	v.ends = append(v.ends, len(v.text))
	return nil
}

// render appends a cell as the text that stands for it in a CSV file.
func (f *field) render(b []byte, v *vector, i int) []byte {
	if v.isNull(i) {
		return b
	}
	switch f.cells {
	case floatCells:
		return strconv.AppendFloat(b, float64(v.f32[i]), 'f', -1, 32)
	case doubleCells:
		return strconv.AppendFloat(b, v.f64[i], 'f', -1, 64)
	case intCells:
		return strconv.AppendInt(b, v.i64[i], 10)
	case uintCells:
		return strconv.AppendUint(b, v.u64[i], 10)
	case boolCells:
		return strconv.AppendBool(b, v.i64[i] != 0)
	case decimalCells:
		return appendDecimal(b, v.text[i*f.width:(i+1)*f.width], f.scale)
	case textCells:
		return append(b, v.text[v.ends[i]:v.ends[i+1]]...)
	case clockCells:
		return time.Unix(0, v.i64[i]*f.unit).UTC().AppendFormat(b, "15:04:05.999999999")
	case instantCells:
		per := int64(time.Second) / f.unit
		if f.unit > int64(time.Second) {
			return time.Unix(v.i64[i]*(f.unit/int64(time.Second)), 0).UTC().AppendFormat(b, time.DateOnly)
		}
		layout := time.RFC3339Nano
		if f.naive {
			layout = "2006-01-02T15:04:05.999999999"
		}
		sec, rest := floorDiv(v.i64[i], per)
		return time.Unix(sec, rest*f.unit).UTC().AppendFormat(b, layout)
	}
	return b
}

// floorDiv divides so that the rest is not negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}

// numeric reports whether cells of this kind become float32 without a text.
func (c cells) numeric() bool { return c >= nullCells && c <= decimalCells }

// floats stores cells [from, to) as float32, stride apart. Faults are told, with
// the row, until fault returns false.
func (f *field) floats(v *vector, from, to int, dst []float32, stride int, mask bool, st *ColumnStats, fault func(i int) bool) {
	const infinite = 0x7f800000
	var nulls []bool
	if len(v.null) > 0 {
		nulls = v.null
	}
	at := 0
	// The loop of what nearly all cells are stands by itself.
	if f.cells == doubleCells && !mask {
		count, most := int64(0), st.MaxRelError
		for i, x := range v.f64[from:to] {
			y := float32(x)
			switch {
			case nulls != nil && nulls[from+i]:
				y = missing
				st.Missing++
			case math.Float32bits(y)&infinite == infinite:
				if x-x == 0 { // finite
					if !fault(from + i) {
						return
					}
					break
				}
				y = missing
				st.Missing++
				st.NonFinite++
			case float64(y) != x:
				count++
				d, a := math.Abs(float64(y)-x), math.Abs(x)
				if d > most*a {
					most = d / a
				}
			}
			dst[at] = y
			at += stride
		}
		st.Inexact += count
		st.MaxRelError = most
		return
	}
	for i := from; i < to; i++ {
		var y float32
		kind := exact
		var x float64
		switch {
		case f.cells == nullCells, nulls != nil && nulls[i]:
			kind = blank
		case f.cells == floatCells:
			if y = v.f32[i]; math.Float32bits(y)&infinite == infinite {
				kind = nonFinite
			}
		case f.cells == doubleCells:
			x = v.f64[i]
			y, kind = f32FromFloat64(x)
		case f.cells == intCells, f.cells == boolCells:
			var same bool
			if y, same = f32FromInt64(v.i64[i]); !same {
				x, kind = float64(v.i64[i]), inexact
			}
		case f.cells == uintCells:
			var same bool
			if y, same = f32FromUint64(v.u64[i]); !same {
				x, kind = float64(v.u64[i]), inexact
			}
		case f.cells == decimalCells:
			y, x, kind = f32FromDecimalBytes(v.text[i*f.width:(i+1)*f.width], f.scale)
		}
		switch kind {
		case inexact:
			st.inexact(y, x)
		case overflow:
			if !fault(i) {
				return
			}
		case blank:
			y = missing
			st.Missing++
		case nonFinite:
			y = missing
			st.Missing++
			st.NonFinite++
		}
		if mask && y == 0 {
			y = missing
			st.Missing++
		}
		dst[at] = y
		at += stride
	}
}

// nanos is a cell of instants in nanoseconds. The reason is "" or what is wrong.
func (f *field) nanos(v int64, c *clockReader) (ns int64, reason string) {
	var sec, nano int64
	if per := int64(time.Second) / max(f.unit, 1); f.unit <= int64(time.Second) {
		sec, nano = floorDiv(v, per)
		nano *= f.unit
	} else {
		days := f.unit / int64(time.Second)
		if sec = v * days; sec/days != v {
			return 0, outOfRange
		}
	}
	if f.naive {
		return c.localise(sec, nano)
	}
	return nanos(sec, nano)
}

// columnar is the format of columnar sources.
type columnar struct {
	open func(f *os.File) (columnarFile, error)
	cols []field
}

// fieldNames checks and completes the columns' names.
func fieldNames(path string, fields []field) ([]string, error) {
	names := make([]string, len(fields))
	seen := make(map[string]int, len(fields))
	for i := range fields {
		f := &fields[i]
		name := strings.TrimSpace(f.name)
		if !utf8.ValidString(name) {
			return nil, &UnusableError{Path: path, Reason: fmt.Sprintf("the name of column %d is not UTF-8: %q", i+1, clip(name)), Hint: "rename it"}
		}
		if level, ok := strings.CutPrefix(name, "__index_level_"); ok { // what pandas calls an index without a name
			if level = strings.TrimSuffix(level, "__"); level == "0" {
				name, f.unnamed = "index", true
			} else {
				name, f.unnamed = "index "+level, true
			}
			if slices.ContainsFunc(fields, func(g field) bool { return g.name == name }) {
				name = f.name
			}
		}
		if name == "" {
			name, f.unnamed = fmt.Sprintf("column %d", i+1), true
		}
		if j, ok := seen[name]; ok {
			return nil, &UnusableError{Path: path, Reason: fmt.Sprintf("columns %d and %d are both named %q", j+1, i+1, clip(name)), Hint: "rename one of them"}
		}
		seen[name] = i
		names[i], f.name = name, name
	}
	return names, nil
}

// guard turns what is wrong with a columnar source, panics of the packages that
// decode it included, into an *UnusableError.
func guard(path string, do func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case runtime.Error: // says nothing of the file
			err = damaged(path, errors.New("what it says of itself contradicts what it holds"))
		default:
			err = damaged(path, fmt.Errorf("%v", r))
		}
	}()
	err = do()
	var unusable *UnusableError
	var limit *limitError
	var system *os.PathError
	switch {
	case err == nil, errors.As(err, &system):
		return err
	case errors.As(err, &unusable):
		unusable.Path = path
		return unusable
	case errors.As(err, &limit):
		return &UnusableError{Path: path, Reason: "cannot be read", Hint: limit.hint, Err: err}
	}
	return damaged(path, err)
}

// limitError is of a source that may be sound, and is more than is read.
type limitError struct{ what, hint string }

func (e *limitError) Error() string { return e.what }

func tooMuch(hint, what string, args ...any) error {
	return &limitError{fmt.Sprintf(what, args...), hint}
}

func damaged(path string, err error) *UnusableError {
	return &UnusableError{Path: path, Reason: "is damaged", Hint: "fetch or write it again", Err: err}
}

// sampleColumnar reads the columns and first rows of a columnar source.
func sampleColumnar(m *sample, src Source, o *Options, open func(*os.File) (columnarFile, error)) error {
	path := src.Path
	return guard(path, func() error {
		f, err := os.Open(src.File())
		if err != nil {
			return err
		}
		defer f.Close()
		file, err := open(f)
		if err != nil {
			return err
		}
		if o.MetadataKey != "" {
			m.metadata = file.metadata(o.MetadataKey)
		}
		h := &columnar{open: open, cols: slices.Clone(file.fields())}
		names, err := fieldNames(path, h.cols)
		if err != nil {
			return err
		}
		m.init(&layout{format: h, key: fmt.Sprintf("columnar %v", h.cols), names: names})
		for i, c := range h.cols {
			m.columns[i].Unnamed = c.unnamed
		}
		if len(names) == 0 {
			return &UnusableError{Path: path, Reason: "has no column", Hint: "convert a table with columns"}
		}
		shapes := make([]timeFormat, len(names))
		var first int64
		for m.rows < m.most {
			g, err := file.next()
			if err == io.EOF {
				m.whole = true
				break
			}
			if err != nil {
				return err
			}
			n := int(min(g.rows(), int64(m.most-m.rows)))
			if n == 0 {
				continue
			}
			for i := range h.cols {
				m.lookAt(i, &h.cols[i], g, n, path, first, &shapes[i])
			}
			m.rows += n
			first += g.rows()
		}
		return nil
	})
}

// lookAt takes the first n cells of a column of a group into account. Of numbers
// the type says all there is to know. Cells that are damaged are for Read to tell:
// who does not want the column need not know.
func (m *sample) lookAt(i int, f *field, g rowGroup, n int, path string, first int64, shape *timeFormat) {
	c := &m.columns[i]
	switch f.cells {
	case otherCells:
		c.Kind, c.Example, c.Constant = Other, f.why, false
		return
	case nullCells:
		c.Constant = false
		return
	case floatCells, doubleCells, decimalCells:
		if !slices.Contains(timeNames, strings.ToLower(f.name)) { // else they may be epochs, whose unit the cells tell
			c.Kind, c.Constant = Float, false
			m.numbers[i] += n
			return
		}
	}
	if f.cells == instantCells {
		m.numbers[i] -= n // of null too the type says that it is a time
	}
	var v vector
	err := guard(path, func() error {
		r, err := g.column(i)
		if err != nil {
			return err
		}
		defer r.close()
		return r.read(n, &v)
	})
	if err != nil {
		if c.Kind, c.Constant = f.kind(), false; c.Kind == Text {
			c.Kind, c.Example = Other, "damaged cells"
		}
		m.cells[i] = append(m.cells[i], cell{path: path, line: first + 1, row: true, typed: true})
		return
	}
	var b []byte
	rows := m.rows
	for k := range n {
		b = f.render(b[:0], &v, k)
		one := cell{text: string(b), path: path, line: first + int64(k) + 1, row: true}
		if f.cells == textCells || f.cells == clockCells {
			m.look(i, one, shape)
			m.rows++ // look tells the first row from the others by it
			continue
		}
		if rows == 0 && k == 0 {
			m.constant[i] = one.text
		}
		c.Constant = c.Constant && one.text != "" && one.text == m.constant[i]
		if one.text == "" {
			continue
		}
		c.Kind = f.kind()
		if f.cells == instantCells {
			one.typed = true
		} else {
			m.numbers[i]++
		}
		if len(m.cells[i]) < m.keep {
			one.text = clip(one.text)
			m.cells[i] = append(m.cells[i], one)
		}
	}
	m.rows = rows
}

// columnarUnit is the slice of rows of a unit.
type columnarUnit struct {
	g     *slicedGroup
	at    int   // number of the slice in the group
	first int64 // 1-based row of the source
	n     int

	// While its tasks are done, under the group's lock.
	q     *parser
	out   *result
	cells []float32
	kept  []vector // of the columns that are not only numbers to store, by place in g.wanted
	left  int      // tasks not done
	err   error    // of the first column that is damaged
	errAt int      // its place
	bad   *RowError
	badAt int // its place in g.wanted
}

// slicedGroup is a group whose slices are being read.
type slicedGroup struct {
	path   string
	group  rowGroup
	format *columnar
	ctx    context.Context
	wanted []int // columns of the source
	file   *sharedFile
	held   *groupBytes

	mu      sync.Mutex
	changed sync.Cond
	readers []groupColumn
	active  []*columnarUnit // in order
	slices  int
	left    int         // slices not finished
	unwatch func() bool // ends the watch over ctx
}

// groupColumn is the state of one wanted column of a slicedGroup.
type groupColumn struct {
	r    columnReader
	next int // slice that it reads next
	busy bool
	dead bool // it failed; so has the reading, at this slice
}

// sharedFile is closed when the last group that is read from it is.
type sharedFile struct {
	*os.File
	mu   sync.Mutex
	uses int
}

func (f *sharedFile) use() {
	f.mu.Lock()
	f.uses++
	f.mu.Unlock()
}

// abandon closes a file that the end of the reading left open.
func (f *sharedFile) abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uses > 0 {
		f.uses = 0
		f.Close()
	}
}

func (f *sharedFile) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uses--; f.uses == 0 {
		f.Close()
	}
}

// mostSlice is the most rows of a slice. Of wide sources its cells take half of a
// chunk of text.
const mostSlice = 16 << 10

func (h *columnar) split(x *splitter) bool {
	file, err := os.Open(x.src.File())
	if err != nil {
		return x.fail(err)
	}
	shared := &sharedFile{File: file, uses: 1}
	x.files = append(x.files, shared)
	defer shared.drop()
	// Rows of a slice are a multiple of 64, so that bits of masks begin at a byte.
	var wanted []int
	width := 16
	for i, c := range x.layout.columns {
		if uses := x.uses[c]; len(uses) > 0 {
			wanted = append(wanted, i)
			width += 4 * len(uses)
		}
	}
	rows := max(64, min(x.chunk/2/width, mostSlice)&^63)
	var src columnarFile
	err = guard(x.path, func() (err error) {
		if src, err = h.open(file); err != nil {
			return err
		}
		fields := slices.Clone(src.fields())
		if _, err = fieldNames(x.path, fields); err == nil && !slices.Equal(fields, h.cols) {
			err = &UnusableError{Path: x.path, Reason: "was changed while it was being read", Hint: "try again"}
		}
		return err
	})
	if err != nil {
		return x.fail(err)
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return x.fail(err)
	}
	told := int64(0)
	tell := func(to int64) {
		if to = min(to, size); x.read != nil && to > told {
			x.read(int(to - told))
			told = to
		}
	}
	for row := int64(1); ; {
		before := src.done()
		var group rowGroup
		err := guard(x.path, func() (err error) {
			group, err = src.next()
			if err == io.EOF {
				group, err = nil, nil
			}
			return err
		})
		if err != nil {
			return x.fail(err)
		}
		if group == nil {
			tell(size)
			return true
		}
		n := group.rows()
		if n == 0 {
			continue
		}
		g := &slicedGroup{path: x.path, group: group, format: h, ctx: x.ctx, wanted: wanted, file: shared, held: x.held.begin(), readers: make([]groupColumn, len(wanted))}
		if err := guard(x.path, func() error { return group.count(g.held) }); err != nil {
			return x.fail(err)
		}
		g.changed.L = &g.mu
		count := (n + int64(rows) - 1) / int64(rows)
		if count > 1<<40 {
			return x.fail(damaged(x.path, fmt.Errorf("a group claims %d rows", n)))
		}
		g.slices, g.left = int(count), int(count)
		g.unwatch = context.AfterFunc(x.ctx, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.changed.Broadcast()
		})
		shared.use()
		for k := int64(0); k < count; k++ {
			u := x.next()
			if u == nil {
				return false
			}
			from := k * int64(rows)
			u.columnar = columnarUnit{g: g, at: int(k), first: row + from, n: int(min(int64(rows), n-from)), kept: u.columnar.kept}
			if !x.send(u) {
				return false
			}
			tell(before + int64(float64(src.done()-before)*float64(k+1)/float64(count)))
		}
		row += n
	}
}

// decode takes part in the tasks of the group until those of the unit's slice are
// done, and then makes rows of it.
func (h *columnar) decode(q *parser, u *unit) error {
	s := &u.columnar
	g := s.g
	width := len(q.p.Floats)
	b := &q.out.batch
	b.Cells = extend(b.Cells[:0], s.n*width)
	s.q, s.out, s.cells, s.left = q, q.out, b.Cells, len(g.wanted)
	for len(s.kept) < len(g.wanted) {
		s.kept = append(s.kept, vector{})
	}
	b.Cells = b.Cells[:0] // rows take their part of it again

	g.mu.Lock()
	at, _ := slices.BinarySearchFunc(g.active, s.at, func(a *columnarUnit, at int) int { return a.at - at })
	g.active = slices.Insert(g.active, at, s)
	g.changed.Broadcast() // tasks of later slices may wait for this one's
	for s.left > 0 {
		t, c := g.claim()
		if t == nil {
			if g.ctx.Err() != nil {
				g.mu.Unlock()
				return g.ctx.Err()
			}
			g.changed.Wait()
			continue
		}
		g.mu.Unlock()
		bad, err := t.do(q, c)
		g.mu.Lock()
		t.finish(c, bad, err)
	}
	g.active = slices.DeleteFunc(g.active, func(a *columnarUnit) bool { return a == s })
	g.left--
	last := g.left == 0
	g.mu.Unlock()
	if last {
		g.unwatch()
		g.held.end()
		g.file.drop()
	}
	if s.err != nil {
		return s.err
	}
	return s.rows(q)
}

// claim finds a task of the first slices that can be done now.
func (g *slicedGroup) claim() (*columnarUnit, int) {
	for _, s := range g.active {
		if s.left == 0 {
			continue
		}
		for c := range g.readers {
			if r := &g.readers[c]; r.next == s.at && !r.busy {
				r.busy = true
				return s, c
			}
		}
	}
	return nil, 0
}

// finish notes that a task is done, under the group's lock.
func (s *columnarUnit) finish(c int, bad *RowError, err error) {
	r := &s.g.readers[c]
	r.busy = false
	if r.next++; r.next == s.g.slices && r.r != nil {
		r.r.close()
	}
	if err != nil {
		r.dead = true
		if s.err == nil || c < s.errAt {
			s.err, s.errAt = err, c
		}
	}
	if bad != nil && (s.bad == nil || bad.Line < s.bad.Line || bad.Line == s.bad.Line && c < s.badAt) {
		s.bad, s.badAt = bad, c
	}
	s.left--
	s.g.changed.Broadcast()
}

// do reads a column's cells, stores those that are numbers, and keeps the rest
// for rows.
func (s *columnarUnit) do(q *parser, c int) (bad *RowError, err error) {
	g := s.g
	r := &g.readers[c]
	column := g.wanted[c]
	f := &g.format.cols[column]
	if r.dead {
		return nil, damaged(g.path, io.ErrUnexpectedEOF) // after an error that comes first
	}
	v := &q.vector
	uses := s.q.fields[column]
	if s.keeps(f, uses) {
		v = &s.kept[c]
	}
	err = guard(g.path, func() error {
		if f.cells == otherCells {
			return &UnusableError{Path: g.path, Reason: fmt.Sprintf("column %q holds %s, which are not read", f.name, f.why), Hint: "name another column"}
		}
		if r.r == nil {
			if r.r, err = g.group.column(column); err != nil {
				return fmt.Errorf("column %q: %w", f.name, err)
			}
		}
		if err := r.r.read(s.n, v); err != nil {
			return fmt.Errorf("column %q, from row %d on: %w", f.name, s.first, err)
		}
		if s.q.skip || !f.cells.numeric() {
			return nil
		}
		for _, u := range uses {
			if u.action == toFloat || u.action == toMask {
				f.floats(v, 0, s.n, s.cells[u.at:], len(q.p.Floats), u.action == toMask, &s.out.stats[u.at], func(i int) bool {
					if bad == nil {
						bad = s.overflow(f, v, i)
					}
					return false
				})
			}
		}
		return nil
	})
	return bad, err
}

func (s *columnarUnit) overflow(f *field, v *vector, i int) *RowError {
	return &RowError{Path: s.g.path, Line: s.first + int64(i), Row: true, Column: f.name, Value: clip(string(f.render(nil, v, i))),
		Reason: reasonOverflow, Hint: hintOverflow}
}

// keeps reports whether a column's cells are needed again when the slice's
// numbers are stored.
func (s *columnarUnit) keeps(f *field, uses []use) bool {
	return s.q.skip || !f.cells.numeric() || slices.ContainsFunc(uses, func(u use) bool { return u.action != toFloat && u.action != toMask })
}

// rest is what a slice's numbers that are stored leave to do of a column.
type rest struct {
	column int // of the source
	place  int // in g.wanted
	f      *field
	v      *vector
	uses   []use
	codes  []uint32 // per use, of the cell before
}

// rows makes rows of the slice's cells.
func (s *columnarUnit) rows(q *parser) error {
	g := s.g
	var todo []rest
	for c, column := range g.wanted {
		f := &g.format.cols[column]
		r := rest{column: column, place: c, f: f, v: &s.kept[c]}
		for _, u := range q.fields[column] {
			if q.skip || !f.cells.numeric() || u.action != toFloat && u.action != toMask {
				r.uses = append(r.uses, u)
			}
		}
		if len(r.uses) > 0 {
			r.codes = make([]uint32, len(r.uses))
			todo = append(todo, r)
		}
	}
	for i := range s.n {
		m := q.begin(s.first + int64(i))
		var bad *RowError
		for k := range todo {
			if s.bad != nil && s.bad.Line == s.first+int64(i) && s.badAt < todo[k].place {
				break
			}
			if bad = s.cell(q, &todo[k], i); bad != nil {
				break
			}
		}
		if bad == nil && s.bad != nil && s.bad.Line == s.first+int64(i) {
			bad = s.bad
		}
		if bad != nil {
			bad.Row = true
			if err := q.undo(m, bad); err != nil {
				return err
			}
		}
	}
	return nil
}

// cell does what is left to do with a cell.
func (s *columnarUnit) cell(q *parser, r *rest, i int) *RowError {
	f, v, b := r.f, r.v, &q.out.batch
	rendered := false
	for k, u := range r.uses {
		switch {
		case (u.action == toFloat || u.action == toMask) && f.cells.numeric():
			var bad *RowError
			f.floats(v, i, i+1, q.cells()[u.at:], len(q.p.Floats), u.action == toMask, &q.out.stats[u.at], func(int) bool {
				bad = s.overflow(f, v, i)
				return false
			})
			if bad != nil {
				return bad
			}
			continue
		case f.cells == instantCells && (u.action == toTime || u.action == toStamp):
			clock := &q.time
			if u.action == toStamp {
				clock = &q.times[u.at]
			}
			ns, reason := int64(noStamp), ""
			switch {
			case clock.probe:
				ns = int64(eitherFirst)
			case !v.isNull(i):
				ns, reason = f.nanos(v.i64[i], clock)
			case u.action == toTime:
				reason = "the time is missing"
			}
			if reason != "" {
				text := f.render(nil, v, i)
				return q.fault(r.column, text, reason, clock.hint(text, reason))
			}
			if u.action == toTime {
				b.Times = append(b.Times, ns)
			} else {
				b.Stamps[len(b.Stamps)-len(q.p.Times)+u.at] = ns
			}
			continue
		case f.cells == textCells && i > 0 && !q.skip && (u.action == toTicker || u.action == toText) && v.sameAsBefore(i):
			// Tickers mostly come in runs.
			if u.action == toTicker {
				b.Tickers = append(b.Tickers, r.codes[k])
			} else {
				b.Texts[len(b.Texts)-len(q.p.Texts)+u.at] = r.codes[k]
			}
			continue
		}
		if !rendered {
			q.scratch = f.render(q.scratch[:0], v, i)
			rendered = true
		}
		if bad := q.cell(r.column, r.uses[k:k+1], q.scratch, q.cells()); bad != nil {
			return bad
		}
		switch u.action {
		case toTicker:
			r.codes[k] = b.Tickers[len(b.Tickers)-1]
		case toText:
			r.codes[k] = b.Texts[len(b.Texts)-len(q.p.Texts)+u.at]
		}
	}
	return nil
}

// sameAsBefore reports whether a text is that of the cell before.
func (v *vector) sameAsBefore(i int) bool {
	return !v.isNull(i) && !v.isNull(i-1) && bytes.Equal(v.text[v.ends[i-1]:v.ends[i]], v.text[v.ends[i]:v.ends[i+1]])
}

// sampleSource reads the columns and first rows of a source of any kind.
func sampleSource(m *sample, src Source, o *Options, buf []byte) ([]byte, error) {
	if src.entry == nil {
		open, err := columnarKind(src)
		switch {
		case err != nil:
			return buf, err
		case open != nil:
			return buf, sampleColumnar(m, src, o, open)
		}
	}
	return sampleText(m, src, o, buf)
}

// columnarKind finds out by a file's first bytes how it is opened; nil if it is
// not columnar.
func columnarKind(src Source) (func(*os.File) (columnarFile, error), error) {
	f, err := os.Open(src.File())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b [8]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case isArrow(b[:n]):
		return openArrow, nil
	case isParquet(b[:n]):
		return openParquet, nil
	case bytes.HasPrefix(b[:n], []byte(featherMagic)):
		return nil, &UnusableError{Path: src.Path, Reason: "is of version 1 of Feather", Hint: "write it as Feather 2 (Arrow IPC) or Parquet"}
	}
	return nil, nil
}

// appendDecimal appends an integer, big-endian in two's complement, of which scale
// digits are decimals.
func appendDecimal(b, integer []byte, scale int32) []byte {
	n := new(big.Int).SetBytes(integer)
	if len(integer) > 0 && integer[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(integer))))
		b = append(b, '-')
	}
	digits := n.Abs(n).String()
	if scale <= 0 {
		return append(append(b, digits...), strings.Repeat("0", int(-scale))...)
	}
	if short := int(scale) + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	at := len(digits) - int(scale)
	b = append(append(b, digits[:at]...), '.')
	return append(b, digits[at:]...)
}

// Zone is the name of the zone that the type of a column's times gives, such as
// "America/New_York"; empty if it gives none, or that of another source is another.
func (s *Survey) Zone(column int) string {
	zone, first := "", true
	for _, l := range s.layouts {
		if l == nil {
			continue
		}
		z := ""
		if h, ok := l.format.(*columnar); ok {
			z = h.cols[slices.Index(l.columns, column)].zone
		}
		if !first && z != zone {
			return ""
		}
		zone, first = z, false
	}
	return zone
}

// CountsRows reports whether the lines of a source's rows count rows from 1, for
// want of lines.
func (s *Survey) CountsRows(source int) bool {
	l := s.layouts[source]
	if l == nil {
		return false
	}
	_, ok := l.format.(*columnar)
	return ok
}

// Place says where a row of Batch.Line is, for people: "a.csv:17" or
// "a.parquet: row 17".
func (s *Survey) Place(source int, line int64) string {
	return place(s.Sources[source].Path, line, s.CountsRows(source))
}
