package convert

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/near"
	"github.com/wstore/wstore/reader"
)

// plan says what is read and how it is stored.
type plan struct {
	read            ingest.Plan
	groups          []format.Group    // the schema's, each of int64 of one column
	cells           []cellOf          // of each float32 column, in order of the groups
	categories      []string          // columns with categories, in the order of their cells
	breaks          []format.BreakSet // MaxGap and the reaches are in nanoseconds until the unit is known
	breakOf         []int             // the break set of each of read.Texts but the last, which are of the categories
	fills           []fill            // of columns, in their order
	wide            *wide             // nil: each row is one ticker's
	skip            []SkippedColumn   // columns of the inputs that are not stored
	ticker          string            // the column's name, or empty
	time, timeOfDay string
	hints           []string // for the report
	option          string   // for duplicates: that a column may name the tickers
}

// cellOf is where a cell of a row comes from.
type cellOf struct {
	category bool
	at       int // in read.Floats, or in plan.categories
}

// SkippedColumn is a column of the inputs that is not stored.
type SkippedColumn struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// planner resolves the names of Options.
type planner struct {
	o       *Options
	s       *ingest.Survey
	columns []ingest.Column // the survey's, then those that a wide table's make together
	index   map[string]int  // columns by name
	use     map[int]string  // what each used column is for
	ends    []int           // columns of label ends
	table   *exported       // that says what is stored; nil: the options do
	p       *plan
	inputs  string // for errors
}

func newPlan(o *Options, s *ingest.Survey, table *exported) (*plan, error) {
	b := &planner{o: o, s: s, table: table, columns: s.Columns, index: map[string]int{}, use: map[int]string{}, p: &plan{}}
	for i, c := range s.Columns {
		b.index[c.Name] = i
	}
	for i := range s.Sources { // the first that shows the columns
		if !slices.Contains(s.Blank, i) {
			b.inputs = s.Sources[i].Path
			break
		}
	}
	steps := []func() error{b.keys, b.wide, b.named, b.features, b.labelEnds, b.breakSets, b.rows, b.fills}
	if table != nil {
		steps = []func() error{b.keys, b.exported, b.rows, b.fills}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	b.skipped()
	if b.p.wide != nil {
		b.p.wide.spread(&b.p.read)
	}
	b.tickerHint()
	schema := &format.Schema{Groups: b.p.groups, Breaks: b.p.breaks}
	if err := schema.Validate(); err != nil {
		return nil, usage("%w; %s", err, b.schemaHint())
	}
	return b.p, nil
}

// schemaHint says what to try where names don't make a schema.
func (b *planner) schemaHint() string {
	for i, c := range b.columns {
		if len(c.Name) > format.MaxName && (b.use[i] != "" || b.breakColumn(c.Name)) {
			return "rename the column in the inputs, or leave it out with --columns"
		}
	}
	return "choose another name with --group or --break, rename the column in the inputs, or leave it out with --columns"
}

// UsageError is a choice in Options that can't be.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

func (b *planner) column(name string) (int, error) {
	if i, ok := b.index[name]; ok {
		return i, nil
	}
	names := make([]string, len(b.columns))
	for i, c := range b.columns {
		names[i] = c.Name
	}
	return 0, &reader.NotFoundError{Path: b.inputs, Kind: "column", Name: name, Near: near.Names(name, names)}
}

// take resolves a name and notes what the column is for.
func (b *planner) take(name, what string) (int, error) {
	i, err := b.column(name)
	if err != nil {
		return 0, err
	}
	if other, used := b.use[i]; used {
		return 0, usage("column %q is %s and %s; name it once", name, other, what)
	}
	b.use[i] = what
	return i, nil
}

// keys finds the columns of time and ticker.
func (b *planner) keys() (err error) {
	p := b.p
	p.read.Ticker, p.ticker = -1, b.o.Ticker
	if p.ticker != "" {
		names := []string{p.ticker}
		if _, ok := b.index[p.ticker]; !ok {
			names = strings.Split(p.ticker, ",")
		}
		columns := make([]int, len(names))
		for i, name := range names {
			if columns[i], err = b.take(name, "the ticker"); err != nil {
				return err
			}
		}
		p.read.Ticker, p.read.Qualifiers = columns[0], columns[1:]
	}
	if b.o.DateFromName {
		switch {
		case b.o.Time != "" || b.o.TimeOfDay != "" || b.o.TimeFormat != "":
			return usage("the time is in the files' names, and neither in a column nor of a format")
		case b.o.Ticker == "" && b.o.Wide == "":
			return usage("the files' names give the time, so they can't give the ticker too; name its column with --ticker")
		}
		p.read.Time, p.read.NameDate = -1, true
		return nil
	}
	p.timeOfDay = b.o.TimeOfDay
	if p.time = b.o.Time; p.time == "" {
		i, err := b.s.TimeColumn()
		if err != nil {
			return b.datesInNames(err)
		}
		p.time = b.s.Columns[i].Name
		if clock := b.s.TimeOfDay(i); clock >= 0 && p.timeOfDay == "" {
			p.timeOfDay = b.s.Columns[clock].Name
		}
	}
	if p.read.Time, err = b.take(p.time, "the time"); err != nil || p.timeOfDay == "" {
		return err
	}
	clock, err := b.take(p.timeOfDay, "the time of day")
	p.read.Clock = []int{clock}
	return err
}

// datesInNames says in an error that there is no time that the files' names have dates, if they have.
func (b *planner) datesInNames(err error) error {
	var unusable *ingest.UnusableError
	if !errors.As(err, &unusable) || b.o.Ticker == "" && b.o.Wide == "" {
		return err
	}
	for i := range b.s.Sources {
		if _, err := b.s.NameTime(i); err != nil {
			return unusable
		}
	}
	unusable.Hint += ", or take the dates in the files' names with --date-from-name"
	return unusable
}

// named takes the columns of --group, --target and --mask, which `features` then leaves out.
func (b *planner) named() error {
	for _, g := range b.o.Groups {
		if err := b.group(g.Name, g.Columns, "in group "+strconv.Quote(g.Name), format.Value); err != nil {
			return err
		}
	}
	var targets []format.Column
	var names []string
	for _, t := range b.o.Targets {
		c, err := b.target(t)
		if err != nil {
			return err
		}
		names = append(names, c.Name)
		targets = append(targets, c)
	}
	if err := b.group("targets", names, "a target", format.Value); err != nil {
		return err
	}
	if len(targets) > 0 {
		b.p.groups[len(b.p.groups)-1].Columns = targets
	}
	if err := b.group("masks", b.o.Masks, "a mask", format.Mask); err != nil {
		return err
	}
	return b.categories()
}

// categories takes the columns of categories that are not in another group for a group of their own.
func (b *planner) categories() error {
	var apart []string
	for k, name := range b.o.Categories {
		i, err := b.column(name)
		switch {
		case err != nil:
			return err
		case slices.Contains(b.o.Categories[:k], name):
			return usage("column %q is named twice for categories", name)
		case slices.Contains(b.o.Masks, name):
			return usage("column %q is a mask, and can't hold categories", name)
		case i >= len(b.s.Columns):
			return usage("column %q of a wide table can't hold categories", name)
		}
		if b.use[i] == "" && !slices.Contains(b.o.Columns, name) {
			apart = append(apart, name)
		}
	}
	return b.group("categories", apart, "of categories", format.Value)
}

// group adds a float32 group of columns.
func (b *planner) group(name string, columns []string, what string, role format.Role) error {
	if len(columns) == 0 {
		return nil
	}
	g := format.Group{Name: name, DType: format.Float32}
	for _, c := range columns {
		if _, err := b.take(c, what); err != nil {
			return err
		}
		g.Columns = append(g.Columns, format.Column{Name: c, Role: role})
	}
	b.p.groups = append(b.p.groups, g)
	return nil
}

// target resolves a name with a reach: an existing column's whole name wins, else the text is split at its last colon.
func (b *planner) target(text string) (format.Column, error) {
	if _, ok := b.index[text]; ok {
		return format.Column{Name: text}, nil
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		_, err := b.column(text)
		return format.Column{}, err
	}
	c := format.Column{Name: text[:at]}
	reach := text[at+1:]
	if _, err := b.column(c.Name); err != nil {
		return c, err
	}
	if n, err := strconv.ParseUint(reach, 10, 31); err == nil {
		c.ReachKind, c.Reach = format.ReachRows, int64(n)
		return c, nil
	}
	if d, err := ParseDuration(reach); err == nil {
		c.ReachKind, c.Reach = format.ReachDuration, int64(d)
		return c, nil
	}
	i, err := b.column(reach)
	switch {
	case err != nil && (reach == "" || strings.ContainsRune("+-.0123456789", rune(reach[0]))): // a number is no slip in a name
		return c, usage("reach %q of target %q; must be rows from 0 to %d, a duration such as 5d, or a column", reach, c.Name, math.MaxInt32)
	case err != nil:
		return c, fmt.Errorf("reach %q of target %q is neither rows, a duration nor a column: %w", reach, c.Name, err)
	}
	if what := b.use[i]; what != "" && what != "label ends" {
		return c, usage("column %q is %s and the label ends of %q; name it once", reach, what, c.Name)
	}
	if i >= len(b.s.Columns) {
		return c, usage("column %q of a wide table can't hold the label ends of %q", reach, c.Name)
	}
	b.use[i] = "label ends"
	at = slices.Index(b.ends, i)
	if at < 0 {
		at = len(b.ends)
		b.ends = append(b.ends, i)
	}
	c.ReachKind, c.Reach = format.ReachColumn, int64(at) // labelEnds adds the columns before it
	return c, nil
}

// features makes the first group: the columns asked for, or all numeric ones with a name that are left.
func (b *planner) features() error {
	names := b.o.Columns
	if names == nil {
		for i, c := range b.columns {
			if b.use[i] == "" && !b.common(i) && !c.Unnamed && !c.Unused && (c.Kind == ingest.Float || c.Kind == ingest.Empty) && !b.breakColumn(c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	rest := b.p.groups
	b.p.groups = nil
	if err := b.group("features", names, "a feature", format.Value); err != nil {
		return err
	}
	b.p.groups = append(b.p.groups, rest...)
	if len(b.p.groups) == 0 {
		e := &ingest.UnusableError{Path: b.inputs, Reason: "has no numeric column", Hint: "name columns with --columns"}
		if b.skipped(); len(b.p.skip) > 0 {
			e.Reason += fmt.Sprintf(": %q is none, %s", b.p.skip[0].Name, b.p.skip[0].Why)
		}
		return e
	}
	return nil
}

func (b *planner) breakColumn(name string) bool {
	return slices.ContainsFunc(b.o.Breaks, func(k Break) bool { return k.Column == name })
}

// labelEnds adds an int64 group for each column of label ends.
func (b *planner) labelEnds() error {
	floats := int64(0)
	for _, g := range b.p.groups {
		floats += int64(len(g.Columns))
	}
	for gi := range b.p.groups {
		for ci := range b.p.groups[gi].Columns {
			if c := &b.p.groups[gi].Columns[ci]; c.ReachKind == format.ReachColumn {
				c.Reach += floats
			}
		}
	}
	for _, i := range b.ends {
		name := b.columns[i].Name
		b.p.groups = append(b.p.groups, format.Group{
			Name: "label_end." + name, DType: format.Int64, Columns: []format.Column{{Name: name, Role: format.LabelEnd}},
		})
	}
	return nil
}

func (b *planner) breakSets() error {
	if b.o.MaxGap > 0 {
		b.p.breaks = append(b.p.breaks, format.BreakSet{Name: "gap", Kind: format.BreakGap, MaxGap: int64(b.o.MaxGap)})
	}
	for _, k := range b.o.Breaks {
		if err := b.breakSet(format.BreakSet{Name: k.Name, Kind: format.BreakColumn, Source: k.Column}, k.Column); err != nil {
			return err
		}
	}
	return nil
}

// breakSet adds the set of the changes of a column.
func (b *planner) breakSet(set format.BreakSet, column string) error {
	i, err := b.column(column)
	if err != nil {
		return err
	}
	if i >= len(b.s.Columns) {
		return usage("column %q of a wide table can't make breaks", column)
	}
	b.p.read.Texts = append(b.p.read.Texts, i)
	b.p.breakOf = append(b.p.breakOf, len(b.p.breaks))
	b.p.breaks = append(b.p.breaks, set)
	return nil
}

// rows says where the cells of a row come from.
func (b *planner) rows() error {
	p := b.p
	for _, g := range p.groups {
		for _, c := range g.Columns {
			i := b.index[c.Name]
			switch {
			case g.DType == format.Int64:
				p.read.Times = append(p.read.Times, i)
			case slices.Contains(b.o.Categories, c.Name):
				p.cells = append(p.cells, cellOf{true, len(p.categories)})
				p.categories = append(p.categories, c.Name)
				p.read.Texts = append(p.read.Texts, i)
			default:
				p.cells = append(p.cells, cellOf{false, len(p.read.Floats)})
				p.read.Floats = append(p.read.Floats, i)
				p.read.Masks = append(p.read.Masks, c.Role == format.Mask && b.table == nil) // a table has 0 where it is present
			}
		}
	}
	for _, name := range b.o.Categories {
		if !slices.Contains(p.categories, name) {
			return usage("column %q is %s and of categories; name it once", name, b.use[b.index[name]])
		}
	}
	return nil
}

// skipped notes the columns that are left.
func (b *planner) skipped() {
	for i, c := range b.columns {
		if b.use[i] != "" || b.breakColumn(c.Name) {
			continue
		}
		why := "not among --columns"
		switch {
		case b.o.Columns != nil:
		case c.Unused:
			why = fmt.Sprintf("preset %s does not count it among the values; --columns stores it", b.o.Text.Preset)
		case c.Kind == ingest.Float || c.Kind == ingest.Empty:
			why = "the header has no name for it; --columns stores it under this one"
			if b.common(i) && !c.Unnamed {
				why = "it is of no ticker; --columns stores it with the rows of each"
			}
		case c.Kind == ingest.Other:
			why = fmt.Sprintf("it holds %s, which are not read", c.Example)
		case c.Example == "":
			why = "it holds times"
		default:
			why = fmt.Sprintf("it holds text, such as %q", c.Example)
		}
		b.p.skip = append(b.p.skip, SkippedColumn{c.Name, why})
	}
}

// tickerNames are usual names, in lower case, of a column of tickers.
var tickerNames = []string{
	"ticker", "symbol", "sym", "code", "ts_code", "instrument", "security", "asset", "stock", "pair", "coin", "contract",
	"permno", "isin", "unique_id", "name",
}

// tickerHint finds a column that may hold the tickers if files are tickers.
func (b *planner) tickerHint() {
	if b.p.wide != nil {
		return
	}
	// Rows of one time are told apart by a column that changes within a file.
	changing := b.likelyTicker(func(c *ingest.Column) bool { return !c.Constant })
	if changing == nil {
		return
	}
	if b.p.ticker != "" {
		if b.use[b.s.Index(changing.Name)] == "" {
			b.p.option = fmt.Sprintf("if column %q tells them apart, use --ticker %q", changing.Name, b.p.ticker+","+changing.Name)
		}
		return
	}
	b.p.option = fmt.Sprintf("if column %q names tickers, use --ticker %q", changing.Name, changing.Name)
	const files = "tickers are named after the files; "
	if len(b.s.Sources) == 1 {
		if namesTicker(changing) {
			b.p.hints = append(b.p.hints, files+b.p.option)
		}
		return
	}
	switch c := b.likelyTicker(func(c *ingest.Column) bool { return c.Constant && !c.Same }); {
	case c.Constant && !c.Same:
		b.p.hints = append(b.p.hints, files+fmt.Sprintf("column %q is the same throughout each file: --ticker %q takes them from it", c.Name, c.Name))
	case !changing.Constant:
		b.p.hints = append(b.p.hints, files+b.p.option)
	}
}

func namesTicker(c *ingest.Column) bool {
	return slices.Contains(tickerNames, strings.ToLower(c.Name))
}

// likelyTicker finds the first column with a usual name, else one of text that is not stored; of several of a kind, one
// that is better, if there is one.
func (b *planner) likelyTicker(better func(*ingest.Column) bool) (found *ingest.Column) {
	best := 0
	for i := range b.s.Columns {
		c := &b.s.Columns[i]
		var likely int
		switch {
		case namesTicker(c):
			likely = 3
		case c.Kind == ingest.Text && b.use[i] == "":
			likely = 1
		default:
			continue
		}
		if better(c) {
			likely++
		}
		if likely > best {
			found, best = c, likely
		}
	}
	return found
}

// schema returns the schema in the given unit, which must divide every duration of the plan.
func (p *plan) schema(unit format.Unit, zone string) *format.Schema {
	per := int64(unit.Duration())
	s := &format.Schema{Unit: unit, Zone: zone, Breaks: slices.Clone(p.breaks)}
	for i := range s.Breaks {
		s.Breaks[i].MaxGap /= per
	}
	for _, g := range p.groups {
		g.Columns = slices.Clone(g.Columns)
		for i := range g.Columns {
			if c := &g.Columns[i]; c.ReachKind == format.ReachDuration {
				c.Reach /= per
			}
		}
		s.Groups = append(s.Groups, g)
	}
	return s
}

// longGap reports whether there is a break between rows of these times, in nanoseconds, because they are far apart.
func (p *plan) longGap(from, to int64) bool {
	for i := range p.breaks {
		if b := &p.breaks[i]; b.Kind == format.BreakGap && uint64(to)-uint64(from) > uint64(b.MaxGap) {
			return true
		}
	}
	return false
}

// precision finds the coarsest unit that times and durations are whole numbers of.
type precision struct{ rest [3]bool } // some value is no whole number of seconds, milliseconds, microseconds

func (p *precision) add(nanos int64) {
	if p.rest[2] || nanos == 0 {
		return
	}
	for i, per := range [3]time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if nanos%int64(per) == 0 {
			return
		}
		p.rest[i] = true
	}
}

func (p *precision) unit() format.Unit {
	for u, rest := range p.rest {
		if !rest {
			return format.Unit(u)
		}
	}
	return format.Nanosecond
}
