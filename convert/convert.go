package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// Run converts, and reports what it did. Nothing is lost or changed without a word: what can't be stored as it is is an
// error with file and line, unless an option chooses. Errors of the input are [ingest.RowError] and
// [ingest.UnusableError], an unknown column matches reader.ErrNotFound, impossible options are a [UsageError]. After
// an error, or when ctx ends, there is no new output and an old one is unchanged.
func Run(ctx context.Context, o Options) (*Report, error) {
	c := &conversion{o: &o}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	budget := o.Memory
	if budget == 0 {
		budget = DefaultMemory
	}
	// A third for rows: sorting a ticker takes a copy of it, and reading, writing and the collector take the rest.
	c.table = newTable(&c.plan.read, budget/3, o.Output)
	report, err := c.run(ctx)
	return report, errors.Join(err, c.table.close())
}

// conversion is one run.
type conversion struct {
	o      *Options
	survey *ingest.Survey
	plan   *plan
	table  *table
	report Report

	schema *format.Schema
	w      *writer.Writer
	block  block
}

func (c *conversion) prepare(ctx context.Context) error {
	o := c.o
	if o.OnDuplicate == "" {
		o.OnDuplicate = DuplicateError
	}
	switch {
	case o.OnDuplicate != DuplicateError && o.OnDuplicate != DuplicateFirst && o.OnDuplicate != DuplicateLast:
		return usage("on duplicates %q; must be error, first or last", o.OnDuplicate)
	case o.Memory < 0 || o.Memory > 0 && o.Memory < 16<<20:
		return usage("memory %d bytes; must be at least 16 MiB", o.Memory)
	case o.MaxGap < 0:
		return usage("a gap of %s; must be longer than 0", o.MaxGap)
	case o.Lookback < 0:
		return usage("lookback %d; must be at least 1", o.Lookback)
	}
	var location *time.Location
	if o.Zone != "" {
		var err error
		if location, err = time.LoadLocation(o.Zone); err != nil {
			return usage("zone %q is unknown; use an IANA name such as America/New_York", o.Zone)
		}
	}
	sources, skipped, err := ingest.Sources(o.Inputs)
	if err != nil {
		return err
	}
	if err := checkOutput(o, sources); err != nil {
		return err
	}
	c.survey, err = ingest.NewSurvey(ctx, sources, ingest.Options{
		Jobs: o.Jobs, TimeFormat: o.TimeFormat, Location: location, SkipBad: o.SkipBad, Progress: c.progress(sources),
	})
	if err != nil {
		return err
	}
	c.report = Report{Schema: 1, Files: len(sources), SkippedFiles: []string{}, EmptyFiles: []string{}, Gaps: []Gap{}, Hints: []string{}}
	for _, s := range skipped {
		c.report.SkippedFiles = append(c.report.SkippedFiles, filepath.Base(s))
	}
	c.plan, err = newPlan(o, c.survey)
	return err
}

// checkOutput finds out before the work what would make it useless.
func checkOutput(o *Options, sources []ingest.Source) error {
	if o.Output == "" {
		return usage("no output is named; use -o FILE.wst")
	}
	info, err := os.Stat(o.Output)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(o.Output)
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("the output's folder: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("the output's folder: %s is not a folder", dir)
		}
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("the output %s is a folder; name a file", o.Output)
	}
	for _, s := range sources {
		if in, err := os.Stat(s.Path); err == nil && os.SameFile(in, info) {
			return usage("%s is both input and output", s.Path)
		}
	}
	if !o.Overwrite {
		return fmt.Errorf("%w: %s; --force replaces it", fs.ErrExist, o.Output)
	}
	return nil
}

func (c *conversion) progress(sources []ingest.Source) func(int64) {
	if c.o.Progress == nil {
		return nil
	}
	var total int64
	for _, s := range sources {
		total += s.Size
	}
	return func(n int64) { c.o.Progress(n, total) }
}

func (c *conversion) run(ctx context.Context) (*Report, error) {
	stats, err := c.survey.Read(ctx, c.plan.read, c.table.add)
	if err != nil {
		return nil, err
	}
	// A file without rows is a ticker without rows, if files are tickers.
	for _, i := range c.survey.Blank {
		src := c.survey.Sources[i]
		c.report.EmptyFiles = append(c.report.EmptyFiles, filepath.Base(src.Path))
		if c.plan.ticker == "" {
			c.table.ticker(src.Name())
		}
	}
	c.table.prec.add(int64(c.o.MaxGap))
	for _, g := range c.plan.groups {
		for _, col := range g.Columns {
			if col.ReachKind == format.ReachDuration {
				c.table.prec.add(col.Reach)
			}
		}
	}
	c.schema = c.plan.schema(c.table.prec.unit(), c.o.Zone)
	c.w, err = writer.Create(c.o.Output, c.schema, &writer.Options{Align: c.o.Align, Overwrite: c.o.Overwrite})
	if err != nil {
		return nil, err
	}
	if err := c.write(ctx, stats); err != nil {
		return nil, errors.Join(err, c.w.Abort())
	}
	return &c.report, c.inspect()
}

func (c *conversion) write(ctx context.Context, stats *ingest.Stats) error {
	c.block.init(c)
	for _, name := range c.table.names() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.ticker(c.table.series[name]); err != nil {
			return err
		}
	}
	c.fill(stats)
	provenance, err := c.provenance()
	if err != nil {
		return err
	}
	return c.w.Finish(ctx, provenance)
}

// ticker writes one ticker's rows.
func (c *conversion) ticker(s *series) error {
	if err := c.w.Begin(s.name); err != nil {
		return err
	}
	if s.unsorted {
		c.report.UnsortedTickers++
	}
	c.report.Tickers++
	b := &c.block
	b.start()
	// One row is held back: the next may have the same time.
	held, have := make([]byte, c.table.shape.size), false
	err := c.table.each(s, func(r []byte) error {
		if have && timeOf(r) == timeOf(held) {
			if err := c.duplicate(s, held, r); err != nil {
				return err
			}
			if c.o.OnDuplicate == DuplicateLast {
				copy(held, r)
			}
			return nil
		}
		if have {
			if err := b.add(held); err != nil {
				return err
			}
		}
		copy(held, r)
		have = true
		return nil
	})
	if err == nil && have {
		err = b.add(held)
	}
	if err == nil {
		err = b.flush()
	}
	return err
}

// duplicate counts a row of the same time as the one before, or refuses it.
func (c *conversion) duplicate(s *series, held, r []byte) error {
	same := bytes.Equal(held[restAt:], r[restAt:])
	if c.o.OnDuplicate == DuplicateError {
		source, line := placeOf(held)
		other, otherLine := placeOf(r)
		what := "another"
		if same {
			what = "the same"
		}
		e := &ingest.RowError{
			Path: c.survey.Sources[other].Path, Line: otherLine, Column: c.plan.time,
			Value: time.Unix(0, timeOf(r)).UTC().Format(time.RFC3339Nano),
			Reason: fmt.Sprintf("comes twice for ticker %q: %s:%d has %s row of that time",
				s.name, c.survey.Sources[source].Path, line, what),
			Hint: "--on-duplicate first or last keeps one of them",
		}
		if c.plan.hint != "" {
			e.Hint = c.plan.hint
		}
		return e
	}
	c.report.Duplicates++
	if !same {
		c.report.Contradictory++
	}
	return nil
}

// block collects rows for the writer.
type block struct {
	c      *conversion
	times  []int64
	cells  []writer.Cells
	widths []int // of the float32 groups
	raw    []float32
	texts  []byte // of the row before
	rows   int64  // of the ticker so far
	last   int64  // nanoseconds
	gapSet int    // 1 if the first break set is the one of gaps
}

const blockRows = 4096

func (b *block) init(c *conversion) {
	b.c = c
	for _, g := range c.schema.Groups {
		if g.DType == format.Float32 {
			b.widths = append(b.widths, len(g.Columns))
		}
	}
	b.cells = make([]writer.Cells, len(c.schema.Groups))
	b.raw = make([]float32, c.table.shape.cells)
	if c.o.MaxGap > 0 {
		b.gapSet = 1
	}
}

func (b *block) start() { b.rows = 0 }

// add takes a row; before it, where a break column changed, comes a break.
func (b *block) add(r []byte) error {
	sh := &b.c.table.shape
	tm := timeOf(r)
	texts := sh.textsOf(r)
	if b.rows > 0 {
		b.c.report.gap(b.last, tm)
		for k := range sh.texts {
			if !bytes.Equal(texts[4*k:4*k+4], b.texts[4*k:4*k+4]) {
				if err := b.flush(); err != nil {
					return err
				}
				if err := b.c.w.Break(b.gapSet + k); err != nil {
					return err
				}
			}
		}
	}
	b.texts = append(b.texts[:0], texts...)
	b.last = tm
	b.rows++
	per := int64(b.c.schema.Unit.Duration())
	b.times = append(b.times, tm/per)
	f32.Decode(b.raw, sh.cellsOf(r))
	from := 0
	for g, w := range b.widths {
		b.cells[g].F32 = append(b.cells[g].F32, b.raw[from:from+w]...)
		from += w
	}
	for k := range sh.stamps {
		g := len(b.widths) + k
		v := sh.stamp(r, k)
		if v != math.MinInt64 {
			v /= per
		}
		b.cells[g].I64 = append(b.cells[g].I64, v)
	}
	if len(b.times) == blockRows {
		return b.flush()
	}
	return nil
}

func (b *block) flush() error {
	err := b.c.w.Append(b.times, b.cells)
	b.c.report.RowsKept += int64(len(b.times))
	b.times = b.times[:0]
	for g := range b.cells {
		b.cells[g].F32, b.cells[g].I64 = b.cells[g].F32[:0], b.cells[g].I64[:0]
	}
	return err
}

// inspect completes the report with what the finished file says.
func (c *conversion) inspect() error {
	s, err := reader.Open(c.o.Output, nil)
	if err != nil {
		return err
	}
	return errors.Join(c.report.read(s, c.o.Lookback), s.Close())
}
