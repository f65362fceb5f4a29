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
	"slices"
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
	err := c.prepare(ctx)
	if err == nil && o.IfChanged {
		var report *Report
		if report, err = c.unchanged(ctx); report != nil && err == nil {
			return report, c.spool.close()
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.spool.close())
	}
	c.table = newTable(c.plan, c.survey, o.fs, o.Output, o.budget, labelsOf(&o))
	if c.static != nil {
		c.table.used, c.table.labels = c.static.size, c.static.size
	}
	c.table.lastFirst = o.OnDuplicate == DuplicateLast
	report, err := c.run(ctx)
	return report, errors.Join(err, c.table.close(), c.spool.close())
}

// conversion is one run.
type conversion struct {
	o      *Options
	spool  *spool // of standard input
	survey *ingest.Survey
	plan   *plan
	table  *table
	report Report

	hash         hasher    // of the inputs
	static       *static   // nil: there is none
	exported     *exported // nil: the options say what is stored
	staticInputs []input

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
	case !slices.Contains([]string{"", "error", "first", "last"}, o.OnAmbiguousTime):
		return usage("on ambiguous time %q; must be error, first or last", o.OnAmbiguousTime)
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
	if err := ingest.CheckNumberFormat(o.Decimal, o.Thousands); err != nil {
		return usage("%w", err)
	}
	if err := o.Text.Check(); err != nil {
		return usage("%w", err)
	}
	var location *time.Location
	if o.Zone != "" {
		var err error
		if location, err = time.LoadLocation(o.Zone); err != nil || o.Zone == "Local" {
			return usage("zone %q is unknown; use an IANA name such as America/New_York", o.Zone)
		}
	}
	sources, skipped, err := c.sources(ctx)
	if err != nil {
		return err
	}
	if o.Static != "" {
		static, _, err := ingest.Sources([]string{o.Static})
		if err == nil {
			err = c.readStatic(ctx, static)
		}
		if err != nil {
			return fmt.Errorf("attributes: %w", err)
		}
		if len(sources) > len(static) { // they may stand in the folder of the inputs
			sources = slices.DeleteFunc(sources, func(s ingest.Source) bool {
				return slices.ContainsFunc(static, func(t ingest.Source) bool { return same(s.File(), t.File()) })
			})
		}
	}
	c.survey, err = ingest.NewSurvey(ctx, sources, ingest.Options{
		Jobs: o.Jobs, TimeFormat: o.TimeFormat, Location: location, AmbiguousTime: o.OnAmbiguousTime, Decimal: o.Decimal, Thousands: o.Thousands, SkipBad: o.SkipBad, Text: o.Text, MetadataKey: metadataKey, Progress: c.progress(sources),
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
	var why string
	if c.exported, why = readExported(o, c.survey); c.exported != nil && why == "" {
		followed := *o
		c.exported.follow(&followed)
		if c.plan, err = newPlan(&followed, c.survey, c.exported); err == nil {
			*o, c.report.AsExported = followed, true
			return nil
		}
		why = err.Error()
	}
	c.exported = nil
	if why != "" {
		c.report.Hints = append(c.report.Hints, "what wstore export wrote into the metadata of the inputs is not followed: "+why)
	}
	c.plan, err = newPlan(o, c.survey, nil)
	return err
}

// sources finds the inputs' files, after it has looked whether the output can be written.
func (c *conversion) sources(ctx context.Context) (sources []ingest.Source, skipped []string, err error) {
	o := c.o
	if !slices.Contains(o.Inputs, "-") {
		if sources, skipped, err = ingest.Sources(o.Inputs); err == nil {
			err = checkOutput(o, sources)
		}
		return sources, skipped, err
	}
	switch {
	case len(o.Inputs) > 1:
		return nil, nil, usage("standard input (-) is one input of %d; it must be the only one", len(o.Inputs))
	case o.Stdin == nil:
		return nil, nil, usage("there is no standard input")
	case o.Ticker == "" && o.Wide == "":
		return nil, nil, usage("standard input has no file name to take the ticker from; name the column of the ticker with --ticker")
	}
	if err := checkOutput(o, nil); err != nil {
		return nil, nil, err
	}
	c.spool = &spool{fs: o.fs}
	var told func(int64)
	if o.Progress != nil {
		told = func(n int64) { o.Progress(n, 0) }
	}
	if err := c.spool.fill(ctx, o.Stdin, o.Output, told); err != nil {
		return nil, nil, err
	}
	return []ingest.Source{{Path: "standard input", Held: c.spool.file.Name(), Size: c.spool.size}}, nil, nil
}

// checkOutput finds out before the work what would make it useless.
func checkOutput(o *Options, sources []ingest.Source) error {
	if o.Output == "" {
		return usage("no output is named; use -o FILE.wst")
	}
	for _, s := range sources {
		if same(s.File(), o.Output) {
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
	case !o.Overwrite && !o.IfChanged:
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
	var total int64
	for _, s := range sources {
		total += s.Size
	}
	return func(n int64) {
		c.hash.read.Add(n)
		if c.o.Progress != nil {
			c.o.Progress(n, total)
		}
	}
}

func (c *conversion) run(ctx context.Context) (*Report, error) {
	var stats *ingest.Stats
	err := c.hashed(ctx, func() (err error) {
		stats, err = c.survey.Read(ctx, c.plan.read, c.table.add)
		return err
	})
	if err = errors.Join(err, c.spool.close()); err != nil { // the disk space is needed now
		return nil, err
	}
	for _, i := range c.survey.Blank {
		c.report.EmptyFiles = append(c.report.EmptyFiles, filepath.Base(c.survey.Sources[i].Path))
	}
	if c.plan.ticker == "" && c.plan.wide == nil { // every file is a ticker, also one without rows
		for i := range c.survey.Sources {
			if _, err := c.table.ticker(c.survey.Ticker(i)); err != nil {
				return nil, err
			}
		}
	}
	if c.exported != nil {
		for _, name := range c.exported.Empty {
			if _, err := c.table.ticker(name); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range c.plan.breaks {
		c.table.prec.add(k.MaxGap)
	}
	for _, g := range c.plan.groups {
		for _, col := range g.Columns {
			if col.ReachKind == format.ReachDuration {
				c.table.prec.add(col.Reach)
			}
		}
	}
	unit := c.table.prec.unit()
	if c.exported != nil {
		unit = max(unit, c.exported.unit)
	}
	c.schema = c.plan.schema(unit, cmp.Or(c.o.Zone, c.zone()))
	categories, err := c.categories()
	if err != nil {
		return nil, err
	}
	attributes, err := c.attributesOf()
	if err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	c.w, err = writer.Create(c.o.Output, c.schema, &writer.Options{
		Align: c.o.Align, Overwrite: c.o.Overwrite || c.o.IfChanged, FS: c.o.fs, Categories: categories, Attributes: attributes,
	})
	if err != nil {
		return nil, err
	}
	if err := c.write(ctx, stats); err != nil {
		return nil, errors.Join(err, c.w.Abort())
	}
	return &c.report, c.inspect()
}

// categories gives the texts of columns their final numbers.
func (c *conversion) categories() (map[string][]string, error) {
	t := c.table
	for i := range c.plan.fills {
		f := &c.plan.fills[i]
		if from := c.plan.cells[f.cell]; from.category && !f.Forward {
			if _, reason, hint := t.category(t.dictionaries[from.at], f.Value); reason != "" {
				return nil, usage("fill %s: %q %s; %s", f, clip(f.Value), reason, hint)
			}
		}
	}
	all := map[string][]string{}
	for _, d := range t.dictionaries {
		d.sort()
		all[d.name] = d.texts
	}
	for i := range c.plan.fills {
		f := &c.plan.fills[i]
		if from := c.plan.cells[f.cell]; from.category && !f.Forward {
			d := t.dictionaries[from.at]
			f.value = float32(d.renumbered[d.numbers[f.Value]])
		}
	}
	return all, nil
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
	b.begin()
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
			Row:   c.survey.CountsRows(other),
			Reason: fmt.Sprintf("comes twice for ticker %q: %s has %s row",
				s.name, c.survey.Place(source, line), what),
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
	floats []int  // the groups of float32
	stamps []int  // those of int64
	kept   []byte // the row before
	raw    []float32
	rows   int64 // of the ticker so far
	last   int64 // nanoseconds
}

const blockRows = 4096

func (b *block) init(c *conversion) {
	b.c = c
	for g := range c.schema.Groups {
		if c.schema.Groups[g].DType == format.Float32 {
			b.floats = append(b.floats, g)
		} else {
			b.stamps = append(b.stamps, g)
		}
	}
	b.cells = make([]writer.Cells, len(c.schema.Groups))
	b.kept = make([]byte, c.table.shape.size)
	b.raw = make([]float32, c.table.shape.cells)
}

// begin begins a ticker.
func (b *block) begin() {
	b.rows = 0
	b.stretch()
}

// stretch begins a stretch.
func (b *block) stretch() {
	for i := range b.c.plan.fills {
		b.c.plan.fills[i].begin()
	}
}

// add takes a row; before it, where a break column changed, comes a break.
func (b *block) add(r []byte) error {
	sh, plan := &b.c.table.shape, b.c.plan
	tm := timeOf(r)
	if b.rows == 0 {
		b.c.report.span(tm)
	} else {
		b.c.report.gap(b.last, tm)
		if plan.longGap(b.last, tm) {
			b.stretch()
		}
		texts, before := sh.textsOf(r), sh.textsOf(b.kept)
		for k, set := range plan.breakOf {
			if !bytes.Equal(texts[8*k:8*k+8], before[8*k:8*k+8]) {
				if err := b.flush(); err != nil {
					return err
				}
				if err := b.c.w.Break(set); err != nil {
					return err
				}
				b.stretch()
			}
		}
	}
	copy(b.kept, r)
	b.last = tm
	b.rows++
	per := int64(b.c.schema.Unit.Duration())
	b.times = append(b.times, tm/per)
	f32.Decode(b.raw, sh.cellsOf(r))
	for k, c := range plan.cells {
		if c.category && !format.IsMissing(b.raw[k]) {
			b.raw[k] = float32(b.c.table.dictionaries[c.at].renumbered[int(b.raw[k])])
		}
	}
	for i := range plan.fills {
		plan.fills[i].use(b.raw)
	}
	from := 0
	for _, g := range b.floats {
		w := len(b.c.schema.Groups[g].Columns)
		b.cells[g].F32 = append(b.cells[g].F32, b.raw[from:from+w]...)
		from += w
	}
	for k, g := range b.stamps {
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
