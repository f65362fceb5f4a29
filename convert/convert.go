package convert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/f32"
	"github.com/wstore/wstore/internal/fsys"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// Run converts, and reports what it did. Nothing is lost or changed without a word: what can't be stored as it is is an
// error with file and line, unless an option chooses. Errors of the input are [ingest.RowError] and
// [ingest.UnusableError], an unknown column matches reader.ErrNotFound, an existing output fs.ErrExist, and impossible
// options are a [UsageError]. After an error, or when ctx ends, no temporary file is left and an old output is unchanged;
// a new one never appears in part.
func Run(ctx context.Context, o Options) (*Report, error) {
	c := &conversion{o: &o}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	c.table = newTable(&c.plan.read, o.fs, o.Output, o.budget)
	c.table.lastFirst = o.OnDuplicate == DuplicateLast
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
	o.OnDuplicate = cmp.Or(o.OnDuplicate, DuplicateError)
	o.Align = cmp.Or(o.Align, writer.DefaultAlign)
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	// A third for rows: sorting takes up to 8 bytes for each of at least 20, and the collector lets the heap double.
	o.budget = cmp.Or(o.budget, o.Memory/3)
	if o.fs == nil {
		o.fs = fsys.OS{}
	}
	switch {
	case o.OnDuplicate != DuplicateError && o.OnDuplicate != DuplicateFirst && o.OnDuplicate != DuplicateLast:
		return usage("on duplicates %q; must be error, first or last", o.OnDuplicate)
	case o.Memory < 16<<20:
		return usage("memory %d bytes; must be at least 16 MiB", o.Memory)
	case o.Jobs < 0:
		return usage("jobs %d; must be at least 1, or 0 for all cores", o.Jobs)
	case o.MaxGap < 0:
		return usage("a gap of %s; must be longer than 0", o.MaxGap)
	case o.Lookback < 0 || o.Lookback > format.MaxSpan:
		return usage("lookback %d; must be 1 to %d rows", o.Lookback, format.MaxSpan)
	case o.Align < 1<<format.MinAlignLog2 || o.Align > 1<<format.MaxAlignLog2 || o.Align&(o.Align-1) != 0:
		return usage("alignment %d; must be a power of two from %d to %d", o.Align, 1<<format.MinAlignLog2, 1<<format.MaxAlignLog2)
	}
	if o.TimeFormat != "" {
		if err := ingest.CheckTimeFormat(o.TimeFormat); err != nil {
			return usage("%w", err)
		}
	}
	var location *time.Location
	if o.Zone != "" {
		var err error
		if location, err = time.LoadLocation(o.Zone); err != nil || o.Zone == "Local" {
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
	c.report = Report{
		Schema: 1, Files: len(sources), SkippedFiles: []string{}, EmptyFiles: []string{}, SkippedColumns: []SkippedColumn{},
		Gaps: []Gap{}, Hints: []string{},
	}
	for _, s := range skipped {
		if !same(s, o.Output) { // an earlier output in the folder is none of its data
			name := filepath.Base(s)
			if strings.HasSuffix(s, "/") {
				name += "/"
			}
			c.report.SkippedFiles = append(c.report.SkippedFiles, name)
		}
	}
	c.plan, err = newPlan(o, c.survey)
	return err
}

// checkOutput finds out before the work what would make it useless.
func checkOutput(o *Options, sources []ingest.Source) error {
	if o.Output == "" {
		return usage("no output is named; use -o FILE.wst")
	}
	for _, s := range sources {
		if same(s.Path, o.Output) {
			return usage("%s is both input and output", s.Path)
		}
	}
	info, err := os.Lstat(o.Output)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(o.Output)
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("the output's folder: %w; make it first", err)
		} else if !info.IsDir() {
			return fmt.Errorf("the output's folder: %s is not a folder", dir)
		}
		return nil
	case err != nil:
		return fmt.Errorf("the output: %w", err)
	case info.IsDir():
		return fmt.Errorf("the output %s is a folder; name a file in it", o.Output)
	case !info.Mode().IsRegular():
		return fmt.Errorf("the output %s is not a regular file, and would be replaced by one; name another", o.Output)
	case !o.Overwrite:
		return fmt.Errorf("the output %s: %w; --force replaces it", o.Output, fs.ErrExist)
	}
	return nil
}

// same reports whether two names are of one file that exists.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
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
	for _, i := range c.survey.Blank {
		c.report.EmptyFiles = append(c.report.EmptyFiles, filepath.Base(c.survey.Sources[i].Path))
	}
	if c.plan.ticker == "" { // every file is a ticker, also one without rows
		for _, src := range c.survey.Sources {
			if _, err := c.table.ticker(src.Name()); err != nil {
				return nil, err
			}
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
	c.w, err = writer.Create(c.o.Output, c.schema, &writer.Options{Align: c.o.Align, Overwrite: c.o.Overwrite, FS: c.o.fs})
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
	for _, s := range c.table.all() {
		if err := c.ticker(ctx, s); err != nil {
			return err
		}
	}
	if err := c.table.close(); err != nil { // the disk space is needed now
		return err
	}
	c.fill(stats)
	provenance, err := c.provenance()
	if err != nil {
		return err
	}
	return c.w.Finish(ctx, provenance)
}

// ticker writes one ticker's rows.
func (c *conversion) ticker(ctx context.Context, s *series) error {
	if err := c.w.Begin(s.name); err != nil {
		return err
	}
	if s.unsorted {
		c.report.UnsortedTickers++
	}
	c.report.Tickers++
	b := &c.block
	b.rows = 0
	// The table puts the row that is kept before those of the same time.
	err := c.table.each(s, func(r []byte) error {
		if b.rows > 0 && timeOf(r) == b.last {
			return c.duplicate(s, b.kept, r)
		}
		if err := b.add(r); err != nil {
			return err
		}
		if b.rows%blockRows == 0 {
			return ctx.Err()
		}
		return nil
	})
	if err == nil {
		err = b.flush()
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// duplicate counts a row of the same time as the one that is kept, or refuses it.
func (c *conversion) duplicate(s *series, kept, r []byte) error {
	same := bytes.Equal(kept[restAt:], r[restAt:])
	if c.o.OnDuplicate == DuplicateError {
		source, line := placeOf(kept)
		other, otherLine := placeOf(r)
		what := "another"
		if same {
			what = "the same"
		}
		e := &ingest.RowError{
			Path: c.survey.Sources[other].Path, Line: otherLine, Column: c.plan.time,
			Value: time.Unix(0, timeOf(r)).UTC().Format(time.RFC3339Nano),
			Reason: fmt.Sprintf("comes twice for ticker %q: %s:%d has %s row",
				s.name, c.survey.Sources[source].Path, line, what),
			Hint: "--on-duplicate first or last keeps one of them",
		}
		if c.plan.option != "" {
			e.Hint = c.plan.option + "; else " + e.Hint
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
	widths []int  // of the float32 groups
	kept   []byte // the row before
	raw    []float32
	rows   int64 // of the ticker so far
	last   int64 // nanoseconds
	gapSet int   // 1 if the first break set is the one of gaps
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
	b.kept = make([]byte, c.table.shape.size)
	b.raw = make([]float32, c.table.shape.cells)
	if c.o.MaxGap > 0 {
		b.gapSet = 1
	}
}

// add takes a row; before it, where a break column changed, comes a break.
func (b *block) add(r []byte) error {
	sh := &b.c.table.shape
	tm := timeOf(r)
	if b.rows == 0 {
		b.c.report.span(tm)
	} else {
		b.c.report.gap(b.last, tm)
		texts, before := sh.textsOf(r), sh.textsOf(b.kept)
		for k := range sh.texts {
			if !bytes.Equal(texts[8*k:8*k+8], before[8*k:8*k+8]) {
				if err := b.flush(); err != nil {
					return err
				}
				if err := b.c.w.Break(b.gapSet + k); err != nil {
					return err
				}
			}
		}
	}
	copy(b.kept, r)
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
		if v != format.NoTime {
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
	if b.rows > 0 {
		b.c.report.span(b.last)
	}
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
	s, err := reader.Open(c.o.Output, &reader.Options{Access: reader.Read})
	if err != nil {
		return err
	}
	return errors.Join(c.report.read(s, c.o.Lookback), s.Close())
}
