package reader

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/index"
)

// Query says which windows are wanted: SPEC section 11. A name stands for a column or for the columns of a group.
type Query struct {
	Inputs       []string    // nil: the group `features`
	Targets      []string    // nil: the group `targets` if there is one, else none; empty: none
	Optional     []string    // those of the two whose cells may be missing
	Lookback     int         // rows of a window, at least 1
	Horizons     []int       // strictly increasing, from 1-Lookback on; nil: 1 if there are targets
	TargetLength int         // rows from each horizon on; 0: 1
	Stride       int         // 0: 1
	At           []time.Time // take the anchors of these times, in any order, instead of every Stride-th; nil: don't
	Breaks       []string    // the break sets that count; nil: all; empty: none
	Tickers      []string    // tickers to keep; nil: all
	Where        []string    // columns that must be present at the anchor
	From, To     time.Time   // anchors in [From, To); zero: no bound
}

// Layout says how the rows of one side of a window lie in View.At's slice: for each start, Length rows from it on. Row r
// of start s and column k are at element (Starts[s]+r)*Width + Columns[k]. Gather packs: there they are at element
// (s*Length+r)*len(Names) + k.
type Layout struct {
	Starts  []int    // 0 for inputs; of targets one for each horizon, from the first on
	Length  int      // lookback, or target length
	Width   int      // elements from one row to the next; 0 if the columns span groups
	Columns []int    // places of the columns in a row; nil if they span groups
	Names   []string // of the columns
}

// Span returns the rows of View.At's slice.
func (l *Layout) Span() int {
	if len(l.Starts) == 0 {
		return 0
	}
	return l.Starts[len(l.Starts)-1] + l.Length
}

// Size returns the elements that Gather writes for a window.
func (l *Layout) Size() int { return len(l.Starts) * l.Length * len(l.Names) }

// Whole reports whether the slice is exactly what was asked for: every column of the group, in order, and every row.
func (l *Layout) Whole() bool {
	if len(l.Columns) != l.Width || len(l.Starts)*l.Length != l.Span() {
		return false
	}
	for i, c := range l.Columns {
		if c != i {
			return false
		}
	}
	return true
}

// Windows are the windows of a query, numbered from 0 in ticker order, then by time. They are arithmetic only, safe for
// concurrent use, and need no closing.
type Windows struct {
	s        *Store
	query    Query // with the defaults filled in
	ix       *index.Windows
	inputs   side
	targets  side
	lookback int64
	first    int64 // of the target rows, from the anchor on
}

// side is what is copied of one window: rows of columns.
type side struct {
	layout Layout
	pieces []piece
}

// piece is a set of columns of one group that stand side by side in the output.
type piece struct {
	group   int
	stride  int   // columns of the group in all
	at, n   int   // columns in the output
	from    int   // first column in the group, if they stand side by side there too
	columns []int // in the group, if they don't
}

// fewColumns is the number of neighbouring columns below which copying them one by one is faster.
const fewColumns = 4

// Windows answers a query by arithmetic: time and memory are those of runs, not of windows. An unknown name matches
// ErrNotFound, anything else that can't be matches ErrQuery.
func (s *Store) Windows(q Query) (*Windows, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	defer s.release()
	w := &Windows{s: s, query: q, lookback: int64(q.Lookback)}
	iq, err := s.resolve(w)
	if err != nil {
		return nil, err
	}
	var timesErr error
	err = s.guard(func() (err error) {
		s.resolveTimes(&w.query, iq, &timesErr)
		w.ix, err = index.New(index.Panel{Rows: s.meta.Tickers.Rows, Index: s.meta.Index}, *iq)
		return err
	})
	if err := errors.Join(timesErr, err); err != nil {
		return nil, err
	}
	if w.Len() > 0 && (!s.addressable(&w.inputs) || !s.addressable(&w.targets)) {
		return nil, badQuery("a window of %d rows is more than this machine can address", q.Lookback)
	}
	return w, nil
}

// addressable reports whether a window, copied or as it lies in the file, is of a size that an int can hold. On a 64-bit
// machine all are.
func (s *Store) addressable(d *side) bool {
	l := &d.layout
	if len(l.Starts) == 0 {
		return true
	}
	rows := int64(l.Starts[len(l.Starts)-1]) + int64(l.Length)
	most := int64(len(l.Starts)) * int64(l.Length) * 4 * int64(len(l.Names))
	for _, p := range d.pieces {
		most = max(most, rows*s.rowBytes[p.group])
	}
	return l.Starts[len(l.Starts)-1] >= 0 && most <= math.MaxInt
}

// resolve fills in the defaults and turns names and times into numbers.
func (s *Store) resolve(w *Windows) (*index.Query, error) {
	q := &w.query
	if q.Inputs == nil {
		if _, ok := s.group["features"]; !ok {
			return nil, badQuery("no inputs named, and the file has no group `features`; name some of %s", s.names())
		}
		q.Inputs = []string{"features"}
	}
	if _, ok := s.group["targets"]; ok && q.Targets == nil {
		q.Targets = []string{"targets"}
	}
	inputs, err := s.columns("inputs", q.Inputs, once)
	if err != nil {
		return nil, err
	}
	if len(inputs) == 0 {
		return nil, badQuery("no inputs; name some of %s", s.names())
	}
	targets, err := s.columns("targets", q.Targets, once)
	if err != nil {
		return nil, err
	}
	optional, err := s.columns("optional", q.Optional, repeated)
	if err != nil {
		return nil, err
	}
	for _, c := range optional {
		if !slices.Contains(inputs, c) && !slices.Contains(targets, c) {
			return nil, badQuery("optional column %q is neither an input nor a target", s.columnName(c))
		}
	}
	where, err := s.columns("where", q.Where, repeated)
	if err != nil {
		return nil, err
	}
	if err := s.checkSpans(q, len(targets) > 0); err != nil {
		return nil, err
	}
	needed := func(columns []int) []int {
		return slices.DeleteFunc(slices.Clone(columns), func(c int) bool { return slices.Contains(optional, c) })
	}
	iq := &index.Query{
		Inputs: needed(inputs), Targets: needed(targets), Where: where,
		Lookback: int64(q.Lookback), Stride: int64(q.Stride), TargetLength: int64(q.TargetLength),
	}
	for _, h := range q.Horizons {
		iq.Horizons = append(iq.Horizons, int64(h))
	}
	if iq.Breaks, err = s.breakSets(q.Breaks); err != nil {
		return nil, err
	}
	if q.Tickers != nil {
		iq.Tickers = []int{}
		for _, name := range q.Tickers {
			t, err := s.Ticker(name)
			if err != nil {
				return nil, err
			}
			iq.Tickers = append(iq.Tickers, t)
		}
		slices.Sort(iq.Tickers)
		iq.Tickers = slices.Compact(iq.Tickers)
	}
	w.inputs = s.side(inputs, []int{0}, q.Lookback)
	if len(targets) > 0 {
		w.first = int64(q.Horizons[0])
		var starts []int
		for _, h := range q.Horizons {
			starts = append(starts, h-q.Horizons[0])
		}
		w.targets = s.side(targets, starts, q.TargetLength)
	}
	return iq, nil
}

func (s *Store) checkSpans(q *Query, targets bool) error {
	if q.Lookback < 1 || q.Lookback > format.MaxSpan {
		return badQuery("lookback %d, must be 1 to %d rows", q.Lookback, format.MaxSpan)
	}
	if q.Horizons != nil && len(q.Horizons) == 0 {
		return badQuery("no horizons; leave them out for 1")
	}
	if !targets {
		if len(q.Horizons) > 0 {
			return badQuery("horizon %d without targets; name targets, or leave the horizon out", q.Horizons[0])
		}
		if q.TargetLength > 0 {
			return badQuery("target length %d without targets; name targets, or leave it out", q.TargetLength)
		}
	} else if len(q.Horizons) == 0 {
		q.Horizons = []int{1}
	}
	if len(q.Horizons) > format.MaxHorizons {
		return badQuery("%d horizons, at most %d are possible", len(q.Horizons), format.MaxHorizons)
	}
	for i, h := range q.Horizons {
		if h < 1-q.Lookback || h > format.MaxSpan {
			return badQuery("horizon %d, must be %d (the first row of the lookback) to %d", h, 1-q.Lookback, format.MaxSpan)
		}
		if i > 0 && h <= q.Horizons[i-1] {
			return badQuery("horizon %d behind %d, must be strictly increasing", h, q.Horizons[i-1])
		}
	}
	for _, v := range []struct {
		name  string
		value *int
	}{{"stride", &q.Stride}, {"target length", &q.TargetLength}} {
		if *v.value == 0 {
			*v.value = 1
		}
		if *v.value < 1 || *v.value > format.MaxSpan {
			return badQuery("%s %d, must be 1 to %d", v.name, *v.value, format.MaxSpan)
		}
	}
	if q.At != nil && q.Stride != 1 {
		return badQuery("stride %d together with at; leave one of them out", q.Stride)
	}
	return nil
}

// Whether columns may be named twice.
const (
	once     = false
	repeated = true
)

// columns resolves names of columns and groups to numbers of float32 columns, each number once.
func (s *Store) columns(what string, names []string, repeats bool) ([]int, error) {
	var out []int
	seen := map[int]bool{}
	add := func(name string, c int) error {
		switch {
		case s.meta.Schema.Groups[s.places[c].Group].DType != format.Float32:
			return badQuery("%s: %q holds times, not float32 values", what, name)
		case seen[c] && repeats:
			return nil
		case seen[c]:
			return badQuery("%s: column %q is named twice", what, s.columnName(c))
		}
		seen[c] = true
		out = append(out, c)
		return nil
	}
	for _, name := range names {
		if c, ok := s.column[name]; ok {
			if err := add(name, c); err != nil {
				return nil, err
			}
			continue
		}
		g, ok := s.group[name]
		if !ok {
			return nil, s.notFound("column or group", name, s.names())
		}
		for i := range s.meta.Schema.Groups[g].Columns {
			if err := add(name, s.base[g]+i); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// names returns the names of groups and columns.
func (s *Store) names() []string {
	var names []string
	for i := range s.meta.Schema.Groups {
		g := &s.meta.Schema.Groups[i]
		names = append(names, g.Name)
		for j := range g.Columns {
			names = append(names, g.Columns[j].Name)
		}
	}
	return names
}

func (s *Store) columnName(c int) string {
	p := s.places[c]
	return s.meta.Schema.Groups[p.Group].Columns[p.Column].Name
}

func (s *Store) breakSets(names []string) ([]int, error) {
	sets := s.meta.Schema.Breaks
	out := []int{}
	known := make([]string, len(sets))
	for i := range sets {
		known[i] = sets[i].Name
		if names == nil || slices.Contains(names, sets[i].Name) {
			out = append(out, i)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, s.notFound("break set", n, known)
		}
	}
	return out, nil
}

// resolveTimes turns times into rows of each ticker, when the index asks for them. An error of reading times is put
// into failed; the rows are then of no use.
func (s *Store) resolveTimes(q *Query, iq *index.Query, failed *error) {
	unit := s.meta.Schema.Unit
	times := s.timesReader(failed)
	if !q.From.IsZero() || !q.To.IsZero() {
		lo, _ := unit.Ceil(q.From)
		hi, _ := unit.Ceil(q.To)
		iq.Bounds = func(t int) (int64, int64) {
			have := times(t)
			from, to := 0, len(have)
			if !q.From.IsZero() {
				from, _ = slices.BinarySearch(have, lo)
			}
			if !q.To.IsZero() {
				to, _ = slices.BinarySearch(have, hi)
			}
			return int64(from), int64(to)
		}
	}
	if q.At == nil {
		return
	}
	at := []int64{}
	for _, v := range q.At {
		if v, exact := unit.Ceil(v); exact {
			at = append(at, v)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	known := map[format.Piece][]int64{} // tickers with the same times have the same rows
	iq.At = func(t int) []int64 {
		key := s.meta.Tickers.Piece(t)
		rows, ok := known[key]
		if !ok {
			have := times(t)
			for _, v := range at {
				if r, found := slices.BinarySearch(have, v); found {
					rows = append(rows, int64(r))
				}
			}
			known[key] = rows
		}
		return rows
	}
}

// timesReader returns a function that returns the times of a ticker, valid until its next call. Without a mapping it
// reads one calendar at a time.
func (s *Store) timesReader(failed *error) func(ticker int) []int64 {
	have := int64(-1)
	var calendar []int64
	return func(t int) []int64 {
		tk := s.meta.Tickers
		if tk.Rows[t] == 0 {
			return nil
		}
		if k := tk.Calendar[t]; k != have {
			var err error
			if calendar, err = s.int64s(s.meta.Calendars.Offset[k], s.meta.Calendars.Entries[k]); err != nil {
				*failed = err
				return nil
			}
			have = k
		}
		return calendar[tk.First[t] : tk.First[t]+tk.Rows[t]]
	}
}

// side prepares the copying of columns.
func (s *Store) side(columns, starts []int, length int) side {
	d := side{layout: Layout{Starts: starts, Length: length}}
	var runs []piece // of columns that are neighbours in both
	for i, c := range columns {
		p := s.places[c]
		d.layout.Names = append(d.layout.Names, s.columnName(c))
		if n := len(runs); n > 0 {
			if last := &runs[n-1]; last.group == p.Group && last.from+last.n == p.Column {
				last.n++
				continue
			}
		}
		runs = append(runs, piece{group: p.Group, from: p.Column, n: 1, stride: len(s.meta.Schema.Groups[p.Group].Columns), at: i})
	}
	for _, r := range runs { // short ones are put together
		if n := len(d.pieces); n > 0 && r.n < fewColumns {
			if last := &d.pieces[n-1]; last.group == r.group && last.n-len(last.columns) < fewColumns {
				for k := len(last.columns); k < last.n; k++ {
					last.columns = append(last.columns, last.from+k)
				}
				for k := range r.n {
					last.columns = append(last.columns, r.from+k)
				}
				last.n += r.n
				continue
			}
		}
		d.pieces = append(d.pieces, r)
	}
	group := s.places[columns[0]].Group
	for _, c := range columns {
		if s.places[c].Group != group {
			return d
		}
		d.layout.Columns = append(d.layout.Columns, s.places[c].Column)
	}
	d.layout.Width = len(s.meta.Schema.Groups[group].Columns)
	return d
}
