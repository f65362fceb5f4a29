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
	Ticker int    // or -1: the ticker is Source.Name
	Time   int    // never missing
	Floats []int  // in the order of Batch.Cells
	Masks  []bool // parallel to Floats, or nil: 0, false and empty are missing, true is 1
	Times  []int  // further times, in the order of Batch.Stamps
	Texts  []int  // columns kept as text, in the order of Batch.Texts
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
	Dict    []string  // distinct strings in order of appearance
}

// check reports a plan that does not fit the survey. It is a mistake of the
// caller, not of the input.
func (p *Plan) check(columns int) error {
	for _, c := range slices.Concat([]int{p.Time}, p.Floats, p.Times, p.Texts) {
		if c < 0 || c >= columns {
			return fmt.Errorf("ingest: plan names column %d of %d", c, columns)
		}
	}
	if p.Ticker < -1 || p.Ticker >= columns {
		return fmt.Errorf("ingest: plan names column %d of %d as ticker", p.Ticker, columns)
	}
	if len(p.Masks) != 0 && len(p.Masks) != len(p.Floats) {
		return fmt.Errorf("ingest: plan has %d masks for %d floats", len(p.Masks), len(p.Floats))
	}
	return nil
}

// checkNames reports the first source whose name cannot be a ticker.
func (s *Survey) checkNames() error {
	for _, src := range s.Sources {
		if reason := tickerFault([]byte(src.Name())); reason != "" {
			return &UnusableError{Path: src.Path, Reason: fmt.Sprintf("the file's name gives the ticker %q, which %s", clip(src.Name()), reason),
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
	formats, err := s.timeFormats(ctx, append([]int{p.Time}, p.Times...))
	if err != nil {
		return nil, err
	}
	stats := &Stats{Columns: make([]ColumnStats, len(p.Floats))}
	read := func(n int) {
		stats.Bytes += int64(n) // by the splitter only, which ends before run returns
		if s.o.Progress != nil {
			s.o.Progress(int64(n))
		}
	}
	worker := func() func(*chunk) { return newParser(s, &p, formats).parse }
	err = s.run(ctx, worker, read, func(c *chunk) error {
		out := &c.out
		if out.err != nil {
			return out.err
		}
		stats.Rows += int64(out.batch.Rows)
		if out.skipped > 0 && stats.Skipped == 0 {
			stats.FirstSkipped = out.firstSkipped
		}
		stats.Skipped += out.skipped
		for i := range out.stats {
			stats.Columns[i].add(out.stats[i])
		}
		if out.batch.Rows > 0 {
			return yield(&out.batch)
		}
		return nil
	})
	if err == nil && stats.Rows == 0 {
		err = errNoRow(s.Sources)
		if stats.Skipped > 0 {
			err = &UnusableError{Reason: fmt.Sprintf("none of the %d rows can be read; the first: %s", stats.Skipped, stats.FirstSkipped)}
		}
	}
	if err != nil {
		return nil, err
	}
	return stats, nil
}

// run cuts the sources into chunks, has them parsed by Options.Jobs workers, and
// calls consume with each in order, from the calling goroutine.
func (s *Survey) run(ctx context.Context, worker func() func(*chunk), read func(n int), consume func(*chunk) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	jobs := s.o.jobs()
	inFlight := 2*jobs + 2
	free := make(chan *chunk, inFlight)
	for range inFlight {
		free <- &chunk{done: make(chan struct{}, 1)}
	}
	// Both hold all chunks there are, so that sending never blocks.
	work, ordered := make(chan *chunk, inFlight), make(chan *chunk, inFlight)

	wg.Go(func() {
		defer close(ordered)
		defer close(work)
		take := func() *chunk {
			select {
			case c := <-free:
				return c
			case <-ctx.Done():
				return nil
			}
		}
		emit := func(c *chunk) bool {
			work <- c
			ordered <- c
			return ctx.Err() == nil
		}
		s.split(take, emit, read)
	})
	for range jobs {
		wg.Go(func() {
			parse := worker()
			for c := range work {
				if ctx.Err() != nil {
					return
				}
				parse(c)
				c.done <- struct{}{}
			}
		})
	}
	for c := range ordered {
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := consume(c); err != nil {
			return err
		}
		if c.err != nil {
			return c.err
		}
		free <- c
	}
	return ctx.Err()
}

// timeFormats finds the format of each of the columns.
func (s *Survey) timeFormats(ctx context.Context, columns []int) ([]timeFormat, error) {
	formats := make([]timeFormat, len(columns))
	for i, c := range columns {
		if s.o.TimeFormat != "" {
			f, err := parseFormat(s.o.TimeFormat)
			if err != nil {
				return nil, err
			}
			formats[i] = f
			continue
		}
		f, at := detect(s.samples[c])
		switch {
		case at >= 0:
		case len(s.samples[c]) > 0:
			return nil, s.samples[c][0].fault(s.Columns[c].Name, "is not a time in a format that is recognised", hintTimeFormat)
		default:
			return nil, &UnusableError{Path: s.firstPath(), Reason: fmt.Sprintf("column %q begins without any time", s.Columns[c].Name),
				Hint: "name a column of times"}
		}
		if f.family == eitherFirst {
			var err error
			f.family, err = s.decide(ctx, c, f)
			if err == nil && f.family == eitherFirst {
				err = s.samples[c][at].fault(s.Columns[c].Name, "leaves open whether day or month comes first, as does the whole column",
					"say so with --time-format, as %d/%m/%Y or %m/%d/%Y")
			}
			if err != nil {
				return nil, err
			}
		}
		formats[i] = f
	}
	return formats, nil
}

// fault is the error of a sampled cell.
func (c cell) fault(column, reason, hint string) *RowError {
	return &RowError{Path: c.path, Line: c.line, Column: column, Value: c.text, Reason: reason, Hint: hint}
}

// decide reads a column of dates up to the first that shows whether day or month
// comes first; if none does, it is still eitherFirst.
func (s *Survey) decide(ctx context.Context, column int, f timeFormat) (family, error) {
	decided := eitherFirst
	worker := func() func(*chunk) {
		q := newParser(s, &Plan{Ticker: -1, Time: column}, []timeFormat{f})
		q.time.probe, q.skip = true, true // what is wrong with a row is for Read to say, in order
		return q.parse
	}
	err := s.run(ctx, worker, nil, func(c *chunk) error {
		for _, t := range c.out.batch.Times {
			if fam := family(t); fam != eitherFirst {
				decided = fam
				return errDecided
			}
		}
		return nil
	})
	if err == errDecided {
		err = nil
	}
	return decided, err
}

// errDecided ends the reading ahead.
var errDecided = errors.New("decided")
