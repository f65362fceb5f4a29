package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Kind is what the sampled cells of a column are.
type Kind uint8

// Kinds of column. Cells that are missing are not considered.
const (
	Empty Kind = iota // every sampled cell is missing
	Float             // numbers, or more of them than of anything else
	Time              // dates or times in one of the recognised formats; epochs and 20130208 are Float
	Text              // anything else
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"empty", "float", "time", "text"}[k]
}

// Column is a column that all sources have.
type Column struct {
	Name     string
	Kind     Kind
	Unnamed  bool   // the header has no name for it
	Constant bool   // the sampled cells of each source are not empty and all the same within it
	Same     bool   // and those of all sources are the same
	Example  string // of a text column, the first cell that makes it one, shortened
}

// Options are choices about reading. The zero value is usable.
type Options struct {
	Jobs       int                   // goroutines that parse; 0 is GOMAXPROCS
	TimeFormat string                // of all time columns: strftime, a Go layout, epoch-s, epoch-ms, epoch-us or epoch-ns; "" detects
	Location   *time.Location        // zone of times without an offset; nil is UTC
	SkipBad    bool                  // leave out and count rows that cannot be parsed, instead of failing; broken quoting still fails
	Progress   func(bytesRead int64) // told, from any goroutine, how many bytes of the files (as stored) Read has read since it was last told
}

// Survey is what the headers and first rows of a set of sources show.
type Survey struct {
	Sources []Source
	Columns []Column // in the order of the first header
	Blank   []int    // indices of the sources that hold no row

	o       Options
	chunk   int       // bytes of text parsed at a time
	layouts []*header // per source; nil where there is not even a header
	samples [][]cell  // per column, its first cells that are not missing, of all sources
	numbers []int     // per column, sampled cells that are numbers, less those that are something else
}

// cell is a sampled cell and where it stands.
type cell struct {
	text string // shortened
	path string // of its source
	line int64  // of its row
}

// header is the header row of one or more sources, and how their columns map to
// the survey's.
type header struct {
	raw     string // the bytes of the file up to the first row, byte order mark included
	comma   byte
	names   []string
	columns []int // survey column of each file column
}

const (
	chunkSize   = 1 << 20 // bytes of input parsed at a time, and the longest row
	sampleSize  = 64 << 10
	sampleRows  = 10_000 // of all sources together
	leastSample = 20     // rows of one source
	keptCells   = 64     // sampled cells kept per column, to find a time format
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// sample is what was read of one source.
type sample struct {
	most, keep int // rows to look at; cells of each column to keep

	head     *header
	rows     int
	columns  []Column // in file order
	numbers  []int    // cells that are numbers, less those that are something else
	constant []string
	cells    [][]cell
	line     int64 // of the first row
	fields   int   // its number of cells
	whole    bool  // the sample is the whole file
	ragged   bool  // no sampled row has as many cells as the header
}

// NewSurvey reads the header and the first rows of each source, in parallel.
//
// All headers must hold the same names, in any order. A source that is empty or
// holds only a header is listed in Blank; if all are, that is an
// *UnusableError, as is a header that repeats a name, looks like a row of data,
// or differs from the first, and a file that is not text. Rows whose
// quoting is broken are a *RowError. What CheckTimeFormat says is returned as it
// is. Of several errors the one of the first
// source is returned.
func NewSurvey(ctx context.Context, srcs []Source, o Options) (*Survey, error) {
	if o.TimeFormat != "" {
		if _, err := parseFormat(o.TimeFormat); err != nil {
			return nil, err
		}
	}
	samples, err := sampleAll(ctx, srcs, o)
	if err != nil {
		return nil, err
	}

	s := &Survey{Sources: slices.Clone(srcs), o: o, chunk: chunkSize, layouts: make([]*header, len(srcs))}
	first := slices.IndexFunc(samples, func(m *sample) bool { return m.head != nil })
	if first < 0 || !slices.ContainsFunc(samples, func(m *sample) bool { return m.rows > 0 || !m.whole }) {
		return nil, errNoRow(srcs)
	}
	for _, c := range samples[first].columns {
		s.Columns = append(s.Columns, Column{Name: c.Name, Unnamed: c.Unnamed, Constant: true, Same: true})
	}
	s.samples = make([][]cell, len(s.Columns))
	s.numbers = make([]int, len(s.Columns))
	// Sources with the same header share one.
	shared := map[string]*header{}
	for i, m := range samples {
		if m.rows == 0 && m.whole {
			s.Blank = append(s.Blank, i)
		}
		if m.head == nil {
			continue
		}
		h := shared[m.head.raw]
		if h == nil {
			h = m.head
			if err := s.mapColumns(h, srcs[first].Path, srcs[i].Path); err != nil {
				return nil, err
			}
			shared[h.raw] = h
		}
		s.layouts[i] = h
		if m.rows > 0 {
			s.merge(m, h)
		}
	}
	for i := range s.Columns {
		// A few cells that are no numbers among many that are must stop Read, not make the column text.
		if c := &s.Columns[i]; c.Kind == Text && s.numbers[i] > 0 {
			c.Kind, c.Example = Float, ""
		}
	}
	return s, nil
}

// errNoRow is the error of inputs that together hold no row.
func errNoRow(srcs []Source) error {
	e := &UnusableError{Reason: "the inputs hold no row", Hint: "each file needs a header and rows below it"}
	if len(srcs) == 1 {
		e.Path, e.Reason = srcs[0].Path, "holds no row"
	}
	return e
}

// Index gives the column of a name, or -1.
func (s *Survey) Index(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// timeNames are the names, in lower case, by which a time column is known.
var timeNames = []string{"date", "time", "datetime", "date_time", "date time", "timestamp", "ts", "day", "open time", "open_time", "date/time"}

// TimeColumn picks the time column: the one with a usual name (date, time,
// datetime, timestamp, ..., in any case), or else the only one whose cells are
// times. An *UnusableError says that there is none, or more than one.
func (s *Survey) TimeColumn() (int, error) {
	var named, timed []int
	for i, c := range s.Columns {
		if slices.Contains(timeNames, strings.ToLower(c.Name)) {
			named = append(named, i)
		}
		if c.Kind == Time {
			timed = append(timed, i)
		}
	}
	pick := named
	if len(pick) == 0 {
		pick = timed
	}
	if len(pick) == 1 {
		return pick[0], nil
	}
	names := make([]string, len(pick))
	for i, j := range pick {
		names[i] = s.Columns[j].Name
	}
	e := &UnusableError{Path: s.firstPath()}
	switch {
	case len(pick) == 0:
		all := make([]string, len(s.Columns))
		for i, c := range s.Columns {
			all[i] = c.Name
		}
		e.Reason = "no column is named like a time or holds times; the columns are " + quoteAll(all)
		e.Hint = "name the time column with --time"
	default:
		e.Reason = "the time may be in any of the columns " + quoteAll(names)
		e.Hint = "name one with --time; a date and a time of day must be joined into one column first"
	}
	return -1, e
}

// firstPath is the path of the first source that has a header.
func (s *Survey) firstPath() string {
	return s.Sources[slices.IndexFunc(s.layouts, func(h *header) bool { return h != nil })].Path
}

// mapColumns finds the survey's column of each of the header's names.
func (s *Survey) mapColumns(h *header, firstPath, path string) error {
	at := make(map[string]int, len(s.Columns))
	for i, c := range s.Columns {
		at[c.Name] = i
	}
	h.columns = make([]int, len(h.names))
	var extra []string
	for i, name := range h.names {
		j, ok := at[name]
		if !ok {
			extra = append(extra, name)
		}
		delete(at, name)
		h.columns[i] = j
	}
	if len(extra) == 0 && len(at) == 0 {
		return nil
	}
	var parts []string
	if len(at) > 0 {
		var lost []string
		for _, c := range s.Columns {
			if _, ok := at[c.Name]; ok {
				lost = append(lost, c.Name)
			}
		}
		parts = append(parts, "lacks "+quoteAll(lost))
	}
	if len(extra) > 0 {
		parts = append(parts, "has "+quoteAll(extra)+" in excess")
	}
	return &UnusableError{Path: path, Reason: fmt.Sprintf("has other columns than %s: it %s", firstPath, strings.Join(parts, " and ")),
		Hint: "convert files of one kind at a time, or give them the same columns"}
}

// merge adds a source's sample to the survey's columns.
func (s *Survey) merge(m *sample, h *header) {
	for i, c := range m.columns {
		j := h.columns[i]
		t := &s.Columns[j]
		t.Constant = t.Constant && c.Constant
		s.numbers[j] += m.numbers[i]
		switch {
		case t.Kind == Empty:
			t.Kind, t.Example = c.Kind, c.Example
		case c.Kind != Empty && c.Kind != t.Kind:
			t.Kind, t.Example = Text, cmp.Or(t.Example, c.Example)
			if t.Example == "" { // numbers in one source, times in another
				t.Example = m.cells[i][0].text
			}
		}
		if room := keptCells - len(s.samples[j]); room > 0 {
			s.samples[j] = append(s.samples[j], m.cells[i][:min(room, len(m.cells[i]))]...)
		}
		t.Same = t.Same && t.Constant && (len(m.cells[i]) == 0 || m.cells[i][0].text == s.samples[j][0].text)
	}
}

// sampleAll samples all sources, and returns the error of the first that fails.
func sampleAll(ctx context.Context, srcs []Source, o Options) ([]*sample, error) {
	samples := make([]*sample, len(srcs))
	errs := make([]error, len(srcs))
	rows := max(leastSample, sampleRows/max(len(srcs), 1))
	var next, failed atomic.Int64
	failed.Store(int64(len(srcs)))
	var wg sync.WaitGroup
	for range min(o.jobs(), len(srcs)) {
		wg.Go(func() {
			var buf []byte
			for {
				i := next.Add(1) - 1
				if i >= failed.Load() || ctx.Err() != nil {
					return
				}
				m := &sample{most: rows, keep: 1}
				if i < keptCells {
					m.keep = keptCells
				}
				samples[i] = m
				buf, errs[i] = m.read(srcs[i].Path, buf)
				if errs[i] != nil {
					for f := failed.Load(); i < f && !failed.CompareAndSwap(f, i); f = failed.Load() {
					}
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f := failed.Load(); f < int64(len(srcs)) {
		return nil, errs[f]
	}
	return samples, nil
}

func (o *Options) jobs() int {
	if o.Jobs > 0 {
		return o.Jobs
	}
	return runtime.GOMAXPROCS(0)
}

// read reads the header and first rows of one file. It reads into buf and
// returns it for the next.
func (m *sample) read(path string, buf []byte) ([]byte, error) {
	f, err := open(path, nil)
	if err != nil {
		return buf, err
	}
	defer f.Close()
	buf = buf[:0]
	for size := sampleSize; ; size *= 4 {
		buf = slices.Grow(buf, size+1-len(buf))
		n, err := io.ReadFull(f, buf[len(buf):size])
		buf = buf[:len(buf)+n]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return buf, err
		}
		err = m.parse(path, buf, last)
		// A long header or long rows need more of the file.
		if err == nil && m.rows == 0 && !last && size < chunkSize {
			continue
		}
		if err == nil && m.head == nil && !last {
			err = errLongRow(path, 1)
		}
		m.whole = last
		return buf, err
	}
}

// parse samples the first bytes of a file, which last says is all of it.
func (m *sample) parse(path string, b []byte, last bool) error {
	if err := checkText(path, b); err != nil {
		return err
	}
	if !last {
		b = b[:lastRow(b)]
		if len(b) == 0 {
			return nil
		}
	}
	text := bytes.TrimPrefix(b, byteOrderMark)
	if len(bytes.TrimLeft(text, "\r\n")) == 0 {
		return nil
	}
	h := &header{comma: findComma(text)}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord = rune(h.comma), -1
	rec, err := r.Read()
	if err != nil {
		return quoteError(path, 0, err)
	}
	h.raw = string(b[:len(b)-len(text)+int(r.InputOffset())])
	if h.names, err = columnNames(path, rec); err != nil {
		return err
	}
	m.head = h

	n := len(h.names)
	m.columns = make([]Column, n)
	m.cells = make([][]cell, n)
	m.numbers = make([]int, n)
	m.constant = make([]string, n)
	shapes := make([]timeFormat, n)
	for i, name := range h.names {
		m.columns[i] = Column{Name: name, Unnamed: strings.TrimSpace(rec[i]) == "", Constant: true}
	}
	m.ragged = true
	for m.rows < m.most {
		rec, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return quoteError(path, 0, err)
		}
		line, _ := r.FieldPos(0)
		if m.rows == 0 {
			m.line, m.fields = int64(line), len(rec)
		}
		m.ragged = m.ragged && len(rec) != n
		for i := range min(n, len(rec)) {
			m.look(i, cell{rec[i], path, int64(line)}, &shapes[i])
		}
		m.rows++
	}
	m.constant = nil
	if m.rows > 0 && m.ragged {
		return &RowError{Path: path, Line: m.line, Reason: fmt.Sprintf("has %s, while the header has %d", count(m.fields, "cell"), n),
			Hint: "remove lines before the header, or give it a name for each cell"}
	}
	return nil
}

// look takes one cell into account.
func (m *sample) look(i int, one cell, shape *timeFormat) {
	c := &m.columns[i]
	if m.rows == 0 {
		m.constant[i] = strings.Clone(one.text)
	}
	c.Constant = c.Constant && one.text != "" && one.text == m.constant[i]
	of := Float
	if b := trim([]byte(one.text)); !isDecimal(b) {
		if missingKind(b) != notNumber {
			return
		}
		of = Text
		if _, reason := shape.scan(b); shape.family != noFamily && shape.family != byLayout && reason == "" {
			of = Time
		} else {
			g := shapeOf(b)
			if shape.family == noFamily {
				*shape = g
			}
			if g.family != noFamily && shape.sameShape(&g) {
				of = Time
			}
		}
	}
	one.text = clip(one.text)
	if len(m.cells[i]) < m.keep {
		m.cells[i] = append(m.cells[i], one)
	}
	if of == Float {
		m.numbers[i]++
	} else {
		m.numbers[i]--
	}
	if c.Kind == Empty {
		c.Kind = of
	} else if c.Kind != of {
		c.Kind = Text
	}
	if c.Kind == Text && of != Float && c.Example == "" {
		c.Example = one.text
	}
}

// columnNames checks and completes the names in a header.
func columnNames(path string, rec []string) ([]string, error) {
	names := make([]string, len(rec))
	seen := make(map[string]int, len(rec))
	data, numbers, dates := true, 0, 0
	var twice error
	for i, name := range rec {
		name = strings.Clone(strings.TrimSpace(name))
		if !utf8.ValidString(name) {
			return nil, &UnusableError{Path: path, Reason: fmt.Sprintf("the name of column %d is not UTF-8: %q", i+1, clip(name)),
				Hint: "save the file as UTF-8"}
		}
		switch {
		case isDecimal([]byte(name)):
			numbers++
		case shapeOf([]byte(name)).family != noFamily:
			dates++
		case name != "":
			data = false
		}
		if name == "" {
			name = fmt.Sprintf("column %d", i+1)
		}
		if j, ok := seen[name]; ok && twice == nil {
			twice = &UnusableError{Path: path, Reason: fmt.Sprintf("columns %d and %d are both named %q", j+1, i+1, clip(name)),
				Hint: "rename one of them in the header"}
		}
		seen[name] = i
		names[i] = name
	}
	if numbers+dates > 0 && data || numbers > 0 && dates > 0 {
		return nil, &UnusableError{Path: path, Reason: fmt.Sprintf("its first line looks like a row of data: %s", quoteAll(rec)),
			Hint: "put a header with the columns' names above it"}
	}
	if twice != nil {
		return nil, twice
	}
	return names, nil
}

// findComma finds what separates the cells of the header: a comma if there is
// one outside quotes, or else tab or semicolon.
func findComma(text []byte) byte {
	var tab, semicolon, quoted bool
	for _, c := range bytes.TrimLeft(text, "\r\n") {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			return ','
		case c == '\t':
			tab = true
		case c == ';':
			semicolon = true
		}
		if c == '\n' && !quoted {
			break
		}
	}
	switch {
	case tab:
		return '\t'
	case semicolon:
		return ';'
	}
	return ','
}

// checkText refuses the first bytes of files that are not CSV.
func checkText(path string, b []byte) error {
	e := &UnusableError{Path: path, Hint: "convert it to CSV first"}
	has := func(magic string) bool { return bytes.HasPrefix(b, []byte(magic)) }
	switch {
	case has("\xff\xfe"), has("\xfe\xff"):
		e.Reason, e.Hint = "is text in UTF-16", "save it as UTF-8"
	case has("PK\x03\x04"):
		e.Reason, e.Hint = "is a zip archive", "unpack it first"
	case has("\x28\xb5\x2f\xfd"), has("\xfd7zXZ\x00"), has("BZh"):
		e.Reason, e.Hint = "is compressed in a way that is not supported", "decompress it, or compress it with gzip"
	case has("PAR1"):
		e.Reason = "is a Parquet file"
	case bytes.IndexByte(b, 0) >= 0:
		e.Reason = "looks like a binary file: it holds a NUL byte"
	case bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') >= 0:
		e.Reason, e.Hint = "has lines that end in CR alone", "save it with LF or CRLF line ends"
	default:
		return nil
	}
	return e
}

// quoteError turns an error of encoding/csv in text whose first line is line+1
// into one of ours.
func quoteError(path string, line int64, err error) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return &UnusableError{Path: path, Reason: "cannot be read as CSV", Err: err}
	}
	e := &RowError{Path: path, Line: line + int64(p.StartLine)}
	switch {
	case errors.Is(err, csv.ErrBareQuote):
		e.Reason, e.Hint = "has a quote inside a cell that does not begin with one", `quote the whole cell and double the quote: "5"" pipe"`
	default:
		e.Reason, e.Hint = "has a quoted cell that does not end in a quote before the separator", "look for a quote that is missing or not doubled"
	}
	return e
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
