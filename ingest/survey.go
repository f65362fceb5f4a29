package ingest

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what the sampled cells of a column are.
type Kind uint8

// Kinds of column. Cells that are missing are not considered.
const (
	Empty Kind = iota // every sampled cell is missing
	Float             // numbers, or more of them than of anything else
	Time              // dates or times in one of the recognised formats; epochs and 20130208 are Float
	Text              // anything else
	Other             // nothing that can be read, such as lists
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"empty", "float", "time", "text", "other"}[k]
}

// Column is a column that all sources have.
type Column struct {
	Name     string
	Kind     Kind
	Unnamed  bool   // the header has no name for it
	Unused   bool   // the preset says that it holds nothing to learn from
	Constant bool   // the sampled cells of each source are not empty and all the same within it
	Same     bool   // and those of all sources are the same
	Example  string // of a text column, the first cell that makes it one, shortened
}

// Options are choices about reading. The zero value is usable.
type Options struct {
	Jobs       int            // goroutines that parse; 0 is GOMAXPROCS
	TimeFormat string         // of all time columns: strftime, a Go layout, epoch-s, epoch-ms, epoch-us or epoch-ns; "" detects
	Location   *time.Location // zone of times without an offset; nil is UTC
	// AmbiguousTime says what becomes of local times without an offset that happened twice because the clocks went back:
	// "first" or "last" takes one; "" is an error.
	AmbiguousTime string
	// Decimal is the decimal separator of all numbers in texts, "point" or "comma", and Thousands what stands between
	// thousands: "none", "comma", "point", "space" or "apostrophe". "" finds out for each column.
	Decimal, Thousands string
	SkipBad            bool                  // leave out and count rows that cannot be parsed, instead of failing; broken quoting still fails
	Text               TextOptions           // how texts are laid out
	MetadataKey        string                // of Survey.Metadata
	Progress           func(bytesRead int64) // told, from any goroutine, how many bytes of the files (as stored) Read has read since it was last told
}

// Survey is what the headers and first rows of a set of sources show.
type Survey struct {
	Sources []Source
	Columns []Column // in the order of the first header
	Blank   []int    // indices of the sources that hold no row
	// Metadata is what each source says of itself under Options.MetadataKey in the metadata of its schema; "" if it says
	// nothing, as texts don't.
	Metadata []string

	o       Options
	chunk   int       // bytes of text parsed at a time
	layouts []*layout // per source; nil where there is not even a header
	samples [][]cell  // per column, its first cells that are not missing, of all sources
	numbers []int     // per column, sampled cells that are numbers, less those that are something else
	shown   []numberSample
	styles  []numberStyle // per column
	open    []bool        // per column: the sample leaves open what commas are
}

// cell is a sampled cell and where it stands.
type cell struct {
	text string // shortened
	path string // of its source
	line int64  // of its row
	row  bool   // line counts rows
	// The type of the column says that it is a time; the text is only for people.
	typed bool
}

// layout is what the columns of one or more sources are and how they are stored.
type layout struct {
	format  format
	key     string   // sources with the same key share a layout
	names   []string // of the columns, in the source's order
	columns []int    // survey column of each
}

// format is a way to store rows. NewSurvey finds it in the first bytes of a
// source, and it holds what else was seen there that Read needs. Its methods are
// called from several goroutines.
type format interface {
	// split cuts the source of x into units of work and sends them, in order. It
	// returns false when x has no use for more.
	split(x *splitter) bool
	// decode appends the rows of a unit to the batch of q.
	decode(q *parser, u *unit) error
}

const (
	chunkSize   = 1 << 20 // bytes of input parsed at a time, and the longest row
	sampleSize  = 64 << 10
	sampleRows  = 10_000 // of all sources together
	leastSample = 20     // rows of one source
	keptCells   = 64     // sampled cells kept per column, to find a time format
)

// sample is what was read of one source.
type sample struct {
	most, keep int // rows to look at; cells of each column to keep

	layout   *layout // nil where there is not even a header
	metadata string
	rows     int
	columns  []Column // in file order
	numbers  []int    // cells that are numbers, less those that are something else
	styles   []numberSample
	constant []string
	cells    [][]cell
	whole    bool // the sample is the whole source
}

// init prepares for the columns of a layout.
func (m *sample) init(l *layout) {
	n := len(l.names)
	m.layout = l
	m.styles = make([]numberSample, n)
	m.columns, m.cells, m.numbers, m.constant = make([]Column, n), make([][]cell, n), make([]int, n), make([]string, n)
	for i, name := range l.names {
		m.columns[i] = Column{Name: name, Constant: true}
	}
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
	if p, err := findPreset(o.Text.Preset); err == nil {
		o.TimeFormat = cmp.Or(o.TimeFormat, p.TimeFormat)
	}
	if o.TimeFormat != "" {
		if _, err := parseFormat(o.TimeFormat); err != nil {
			return nil, err
		}
	}
	separators, err := numberOptions(o.Decimal, o.Thousands)
	if err != nil {
		return nil, err
	}
	if err := o.Text.Check(); err != nil {
		return nil, err
	}
	samples, err := sampleAll(ctx, srcs, o)
	if err != nil {
		return nil, err
	}

	s := &Survey{Sources: slices.Clone(srcs), o: o, chunk: chunkSize, layouts: make([]*layout, len(srcs))}
	first := slices.IndexFunc(samples, func(m *sample) bool { return m.layout != nil })
	if first < 0 || !slices.ContainsFunc(samples, func(m *sample) bool { return m.rows > 0 || !m.whole }) {
		return nil, errNoRow(srcs, slices.ContainsFunc(samples, func(m *sample) bool { return m.layout == nil || m.layout.text() }))
	}
	for _, c := range samples[first].columns {
		s.Columns = append(s.Columns, Column{Name: c.Name, Unnamed: c.Unnamed, Unused: c.Unused, Constant: true, Same: true})
	}
	s.samples = make([][]cell, len(s.Columns))
	s.numbers = make([]int, len(s.Columns))
	s.shown = make([]numberSample, len(s.Columns))
	shared := map[string]*layout{}
	for i, m := range samples {
		s.Metadata = append(s.Metadata, m.metadata)
		if m.rows == 0 && m.whole {
			s.Blank = append(s.Blank, i)
		}
		if m.layout == nil {
			continue
		}
		l := shared[m.layout.key]
		if l == nil {
			l = m.layout
			if err := s.mapColumns(l, srcs[first].Path, srcs[i].Path); err != nil {
				return nil, err
			}
			shared[l.key] = l
		}
		s.layouts[i] = l
		if m.rows > 0 {
			s.merge(m, l)
		}
	}
	for i := range s.Columns {
		// A few cells that are no numbers among many that are must stop Read, not make the column text.
		if c := &s.Columns[i]; c.Kind == Text && s.numbers[i] > 0 {
			c.Kind, c.Example = Float, ""
		}
	}
	s.styles, s.open = stylesOf(s.shown, func(i int) bool { return s.Columns[i].Kind == Float }, separators)
	return s, nil
}

// errNoRow is the error of inputs that together hold no row; text says that one may be a text.
func errNoRow(srcs []Source, text bool) error {
	e := &UnusableError{Reason: "the inputs hold no row", Hint: "look at what wrote them"}
	if len(srcs) == 1 {
		e.Path, e.Reason, e.Hint = srcs[0].Path, "holds no row", "look at what wrote it"
	}
	if text {
		e.Hint = "a text needs a header and rows below it"
	}
	return e
}

// Index gives the column of a name, or -1.
func (s *Survey) Index(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// firstPath is the path of the first source that has a header.
func (s *Survey) firstPath() string {
	return s.Sources[slices.IndexFunc(s.layouts, func(l *layout) bool { return l != nil })].Path
}

// mapColumns finds the survey's column of each of the layout's names.
func (s *Survey) mapColumns(l *layout, firstPath, path string) error {
	at := make(map[string]int, len(s.Columns))
	for i, c := range s.Columns {
		at[c.Name] = i
	}
	l.columns = make([]int, len(l.names))
	var extra []string
	for i, name := range l.names {
		j, ok := at[name]
		if !ok {
			extra = append(extra, name)
		}
		delete(at, name)
		l.columns[i] = j
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
func (s *Survey) merge(m *sample, l *layout) {
	for i, c := range m.columns {
		j := l.columns[i]
		t := &s.Columns[j]
		t.Constant = t.Constant && c.Constant
		s.numbers[j] += m.numbers[i]
		s.shown[j].merge(&m.styles[i])
		switch {
		case t.Kind == Empty:
			t.Kind, t.Example = c.Kind, c.Example
		case c.Kind == Other:
			t.Kind, t.Example = Other, c.Example
		case c.Kind != Empty && c.Kind != t.Kind && t.Kind != Other:
			t.Kind, t.Example = Text, cmp.Or(t.Example, c.Example)
			if t.Example == "" { // numbers in one source, times in another
				t.Example = slices.Concat(s.samples[j], m.cells[i])[0].text
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
				buf, errs[i] = sampleSource(m, srcs[i], &o, buf)
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

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
