package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Plan says which columns to read and as what. Columns are indices into
// Survey.Columns; one column may have several uses.
type Plan struct {
	Ticker int // or -1: the ticker is Survey.Ticker
	// Qualifiers are columns whose cells tell tickers of one name apart and are put behind it, each after a slash, as in
	// BTC/USDT/kraken. They hold no slash themselves, so that other cells make another ticker.
	Qualifiers []int
	Time       int   // -1: rows have no time; else never missing; of times of day, if Options.TimeFormat is one: their date is in the file's name
	Clock      []int // none, or the column of the time of day, where Time is that of the date
	// NameDate makes the time that of Survey.NameTime. Time is -1 then.
	NameDate bool
	Floats   []int  // in the order of Batch.Cells
	Masks    []bool // parallel to Floats, or nil: 0, false and empty are missing, true is 1
	Times    []int  // further times, in the order of Batch.Stamps
	Texts    []int  // columns kept as text, in the order of Batch.Texts
	// Doubles are columns of numbers that are rounded once to float64, in the order of Batch.Doubles. One that is too large
	// for a float32 is an error.
	Doubles []int
}

// Batch is a run of rows of one source. It and its slices, but not the strings
// in Dict, are used again when yield returns.
type Batch struct {
	Source  int       // index into Survey.Sources
	Rows    int       // at least 1
	Line    []int64   // 1-based line of each row's first byte
	Tickers []uint32  // per row, index into Dict
	Times   []int64   // per row, nanoseconds since 1970-01-01 UTC
	Cells   []float32 // row-major, Rows x len(Plan.Floats); missing is 0x7fc00000, all others are finite
	Stamps  []int64   // row-major, Rows x len(Plan.Times); missing is math.MinInt64
	Texts   []uint32  // row-major, Rows x len(Plan.Texts), index into Dict
	Doubles []float64 // row-major, Rows x len(Plan.Doubles); missing is NaN, all others are finite
	Dict    []string  // distinct strings in order of appearance
}

// check reports a plan that does not fit the survey. It is a mistake of the
// caller, not of the input.
func (p *Plan) check(columns int) error {
	if p.Time == -1 && len(p.Clock) > 0 {
		return errors.New("ingest: plan names a column for the time of day, and none for the date")
	}
	for _, c := range slices.Concat([]int{max(p.Time, 0)}, p.Clock, p.Qualifiers, p.Floats, p.Times, p.Texts, p.Doubles) {
		if c < 0 || c >= columns {
			return fmt.Errorf("ingest: plan names column %d of %d", c, columns)
		}
	}
	if len(p.Clock) > 1 || len(p.Clock) == 1 && p.Clock[0] == p.Time {
		return fmt.Errorf("ingest: plan names columns %d for the time of day", p.Clock)
	}
	if p.NameDate && p.Time >= 0 {
		return errors.New("ingest: plan takes the time from a column, and from the files' names")
	}
	if p.Time < -1 {
		return fmt.Errorf("ingest: plan names column %d as time", p.Time)
	}
	if p.Ticker < -1 || p.Ticker >= columns {
		return fmt.Errorf("ingest: plan names column %d of %d as ticker", p.Ticker, columns)
	}
	if p.Ticker == -1 && len(p.Qualifiers) > 0 {
		return errors.New("ingest: plan completes tickers that no column has")
	}
	if len(p.Masks) != 0 && len(p.Masks) != len(p.Floats) {
		return fmt.Errorf("ingest: plan has %d masks for %d floats", len(p.Masks), len(p.Floats))
	}
	return nil
}

// checkNames reports the first source whose name cannot be a ticker.
func (s *Survey) checkNames() error {
	for i, src := range s.Sources {
		if reason := tickerFault([]byte(s.Ticker(i))); reason != "" {
			return &UnusableError{Path: src.Path, Reason: fmt.Sprintf("the file's name gives the ticker %q, which %s", clip(s.Ticker(i)), reason),
				Hint: "rename the file, or name the column of the ticker with --ticker"}
		}
	}
	return nil
}

// Read parses all sources and calls yield with their rows in order of source,
// then line, from the goroutine that called Read. Rows, order and errors are the
// same whatever Options.Jobs is. It holds about 2*Jobs+2 MiB of text, and what
// the rows in it become, whatever the size of the sources.
//
// The error is the first in the order of the input: a *RowError for a row, an
// *UnusableError for a file, that of yield, or ctx's. No batch follows an error,
// and of the chunk that holds a bad row no row is delivered. Inputs that yield
// no row are an *UnusableError. All goroutines have ended when Read returns.
//
// Where a time column leaves open whether day or month comes first, it is read
// ahead up to the first date that decides it; if none does, that is a *RowError
// of the first.
func (s *Survey) Read(ctx context.Context, p Plan, yield func(*Batch) error) (*Stats, error) {
	if err := p.check(len(s.Columns)); err != nil {
		return nil, err
	}
	if p.Ticker < 0 {
		if err := s.checkNames(); err != nil {
			return nil, err
		}
	}
	if err := s.checkStyles(slices.Concat(p.Floats, p.Doubles)); err != nil {
		return nil, err
	}
	for i := range s.Sources {
		if p.NameDate {
			if _, err := s.NameTime(i); err != nil {
				return nil, err
			}
		}
	}
	formats, err := s.timeFormats(ctx, &p)
	if err != nil {
		return nil, err
	}
	if formats[0].undated {
		if err := s.checkDates(); err != nil {
			return nil, err
		}
	}
	stats := &Stats{TimeFormat: formats[0].String(), Columns: make([]ColumnStats, len(p.Floats))}
	for i, c := range p.Floats {
		if s.styles[c] != (numberStyle{}) {
			stats.Columns[i].Style = s.styles[c].String()
		}
	}
	read := func(n int) {
		stats.Bytes += int64(n) // by the splitter only, which ends before run returns
		if s.o.Progress != nil {
			s.o.Progress(int64(n))
		}
	}
	worker := func() *parser { return newParser(s, &p, formats) }
	err = s.run(ctx, worker, read, func(u *unit) error {
		out := &u.out
		if out.err != nil {
			return out.err
		}
		stats.Rows += int64(out.batch.Rows)
		if out.skipped > 0 && stats.Skipped == 0 {
			stats.FirstSkipped = out.firstSkipped
		}
		stats.Skipped += out.skipped
		stats.AmbiguousTimes += out.twice
		for i := range out.stats {
			stats.Columns[i].add(out.stats[i])
		}
		if out.batch.Rows > 0 {
			return yield(&out.batch)
		}
		return nil
	})
	if err == nil && stats.Rows == 0 {
		err = errNoRow(s.Sources, slices.ContainsFunc(s.layouts, func(l *layout) bool { return l == nil || l.text() }))
		if stats.Skipped > 0 {
			err = &UnusableError{Reason: fmt.Sprintf("none of the %d rows can be read; the first: %s", stats.Skipped, stats.FirstSkipped)}
		}
	}
	if err != nil {
		return nil, err
	}
	return stats, nil
}

// run cuts the sources into units of work, has them parsed by Options.Jobs
// workers, and calls consume with each in order, from the calling goroutine.
func (s *Survey) run(ctx context.Context, worker func() *parser, read func(n int), consume func(*unit) error) error {
	ctx, cancel := context.WithCancel(ctx)
	x := &splitter{ctx: ctx, chunk: s.chunk, uses: worker().uses, read: read, held: newHeldBytes(ctx)}
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
		for _, f := range x.files {
			f.abandon()
		}
	}()

	jobs := s.o.jobs()
	inFlight := 2*jobs + 2
	free := make(chan *unit, inFlight)
	for range inFlight {
		free <- &unit{done: make(chan struct{}, 1)}
	}
	// Both hold all units there are, so that sending never blocks.
	work, ordered := make(chan *unit, inFlight), make(chan *unit, inFlight)

	x.take = func() *unit {
		select {
		case u := <-free:
			return u
		case <-ctx.Done():
			return nil
		}
	}
	x.send = func(u *unit) bool {
		work <- u
		ordered <- u
		return ctx.Err() == nil
	}
	wg.Go(func() {
		defer close(ordered)
		defer close(work)
		for i, src := range s.Sources {
			x.source, x.src, x.path, x.layout = i, src, src.Path, s.layouts[i]
			if x.layout != nil && !x.layout.format.split(x) {
				return
			}
		}
	})
	for range jobs {
		wg.Go(func() {
			q := worker()
			for u := range work {
				if ctx.Err() != nil {
					return
				}
				q.parse(u)
				u.done <- struct{}{}
			}
		})
	}
	for u := range ordered {
		select {
		case <-u.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := consume(u); err != nil {
			return err
		}
		if u.err != nil {
			return u.err
		}
		free <- u
	}
	return ctx.Err()
}

// fault is the error of a sampled cell.
func (c cell) fault(column, reason, hint string) *RowError {
	return &RowError{Path: c.path, Line: c.line, Row: c.row, Column: column, Value: c.text, Reason: reason, Hint: hint}
}

// unit is a piece of one source's rows, small enough that several of them fit in
// memory. It is passed from the splitter to a worker and on to the consumer, and
// then used again.
type unit struct {
	source int
	layout *layout // nil where there are no rows
	err    error   // what ends the input after these rows

	text     textUnit     // of a text
	columnar columnarUnit // of a columnar source

	done chan struct{} // a worker has finished
	out  result
}

// splitter is what a format hands its units to. They are sent in order; the last
// carries the error that ended the input, if any.
type splitter struct {
	ctx   context.Context    // of the reading
	take  func() *unit       // a unit to use again; nil when no more are wanted
	send  func(u *unit) bool // hands a unit over; false when no more are wanted
	read  func(n int)        // is told how many bytes of the files were read; may be nil
	chunk int                // bytes of text in a unit
	uses  [][]use            // what is wanted of each survey column
	tail  []byte             // scratch of textFormat
	files []*sharedFile      // of columnar sources
	held  *heldBytes         // by their groups

	// The source that is split.
	source int
	src    Source
	path   string
	layout *layout
}

// next returns a unit of the source to fill, or nil when no more are wanted.
func (x *splitter) next() *unit {
	u := x.take()
	if u != nil {
		u.source, u.layout, u.err = x.source, x.layout, nil
	}
	return u
}

// fail ends the input with an error.
func (x *splitter) fail(err error) bool {
	if u := x.next(); u != nil {
		u.layout, u.err = nil, err
		x.send(u)
	}
	return false
}
