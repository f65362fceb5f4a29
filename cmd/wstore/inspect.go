package main

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

func newInspect(a *app) *cobra.Command {
	var q queryFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Tell what a file holds, how many windows, and where its bytes go",
		Long: `inspect opens a file, checks its structure, and tells what it holds. It reads the catalog
and the times, not the data: ` + "`wstore verify`" + ` reads all.

With --lookback it counts the windows of that query and says what the index costs for each.`,
		Example: `  wstore inspect prices.wst
  wstore inspect prices.wst --lookback 60 --horizon 1,5,20 --targets close
  wstore inspect prices.wst --lookback 60 --json`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if other := q.given(cmd); other != "" && !cmd.Flags().Changed("lookback") {
				return usagef("--%s needs --lookback", other)
			}
			s, err := a.open(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			i, err := inspect(s)
			if err != nil {
				return err
			}
			var w *reader.Windows
			if cmd.Flags().Changed("lookback") {
				query, err := q.query(cmd, s)
				if err != nil {
					return err
				}
				if w, err = s.Windows(query); err != nil {
					return err
				}
				n := w.Len()
				i.Windows = &n
			}
			if asJSON {
				return writeJSON(a.out, i)
			}
			return a.printInspection(s, i, w)
		},
	}
	q.add(cmd, 0, "count windows of `ROWS` rows")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// inspection is what inspect --json prints. The bytes add up to those of the file.
type inspection struct {
	Schema       int            `json:"schema"`
	Tickers      int            `json:"tickers"`
	Rows         int64          `json:"rows"`
	Columns      int            `json:"columns"`
	Groups       int            `json:"groups"`
	TimeMin      *string        `json:"time_min"` // null without rows
	TimeMax      *string        `json:"time_max"`
	Windows      *int           `json:"windows,omitempty"`
	Categories   map[string]int `json:"categories"` // how many each column that has some has
	Attributes   []string       `json:"attributes"` // their names
	FileBytes    int64          `json:"file_bytes"`
	DataBytes    int64          `json:"data_bytes"`  // calendars and blocks
	IndexBytes   int64          `json:"index_bytes"` // the window index and its catalog entry
	CatalogBytes int64          `json:"catalog_bytes"`
	PaddingBytes int64          `json:"padding_bytes"`
	DeadBytes    int64          `json:"dead_bytes"`
	SpareBytes   int64          `json:"spare_bytes"`
	Commit       int64          `json:"commit"`
	Sealed       bool           `json:"sealed"`
	Digest       string         `json:"digest"`
}

func inspect(s *reader.Store) (*inspection, error) {
	m := s.Meta()
	i := &inspection{
		Schema: jsonSchema, Tickers: len(m.Tickers.Names), Columns: m.Schema.Columns(), Groups: len(m.Schema.Groups),
		FileBytes: m.Newest.End, IndexBytes: m.Section(format.TagIndex).Length + format.CatalogEntry,
		Commit: m.Newest.Commit, Sealed: m.Newest.Sealed(), Digest: hex.EncodeToString(m.Digest[:]),
		Categories: map[string]int{}, Attributes: []string{},
	}
	places := m.Schema.Places()
	for _, d := range m.Categories {
		p := places[d.Column]
		i.Categories[m.Schema.Groups[p.Group].Columns[p.Column].Name] = len(d.Categories)
	}
	for _, a := range m.Attributes {
		i.Attributes = append(i.Attributes, a.Name)
	}
	for _, n := range m.Tickers.Rows {
		i.Rows += n
	}
	for _, n := range m.Calendars.Entries {
		i.DataBytes += 8 * n
	}
	for _, n := range m.Schema.RowBytes() {
		i.DataBytes += n * i.Rows
	}
	for _, p := range m.Layout.Padding {
		i.PaddingBytes += p.To - p.From
	}
	// What is neither data, index nor padding is the slots, the other sections and the catalog itself.
	i.CatalogBytes = i.FileBytes - i.DataBytes - i.IndexBytes - i.PaddingBytes
	first, last, ok, err := timeRange(s)
	if ok {
		c := newClock(m.Schema.Unit, false)
		lo, hi := c.text(first), c.text(last)
		i.TimeMin, i.TimeMax = &lo, &hi
	}
	return i, err
}

// printInspection writes the report for a person.
func (a *app) printInspection(s *reader.Store, i *inspection, w *reader.Windows) error {
	m := s.Meta()
	fmt.Fprintln(a.out, clean(s.Path()))
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", clean(name), fmt.Sprintf(format, args...))
	}
	line("tickers", "%s%s", count(i.Tickers), tickerNote(m.Tickers.Names))
	line("rows", "%s%s", count(i.Rows), rowNote(m.Tickers.Rows))
	line("columns", "%s", count(i.Columns))
	times, err := timeNote(s)
	if err != nil {
		return err
	}
	line("times", "%s", times)
	const most = 16
	for g := range min(len(m.Schema.Groups), most) {
		line("group "+m.Schema.Groups[g].Name, "%s", groupNote(m.Schema, g))
	}
	if n := len(m.Schema.Groups) - most; n > 0 {
		line("", "and %s more", plural(n, "group"))
	}
	for _, l := range categoryNotes(m, most) {
		line(l[0], "%s", l[1])
	}
	if len(m.Attributes) > 0 {
		line("attributes", "%s", attributeNote(m.Attributes))
	}
	for set := range m.Schema.Breaks {
		line("breaks "+m.Schema.Breaks[set].Name, "%s", breakNote(m, set))
	}
	line("missing cells", "%s", missingNote(m))
	line("digest", "%s", i.Digest)
	if !i.Sealed {
		line("commit", "%d, open for appending", i.Commit)
	}
	t.Flush()

	if w != nil {
		fmt.Fprintln(a.out)
		q := w.Query()
		line("windows", "%s", count(w.Len()))
		line("query", "%s", queryNote(&q))
		if w.Len() > 0 {
			line("index", "%.3g bytes per window", float64(i.IndexBytes)/float64(w.Len()))
		}
		t.Flush()
	}

	fmt.Fprintln(a.out)
	t = tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, b := range []struct {
		name string
		n    int64
		show bool
	}{
		{"file", i.FileBytes, true}, {"data", i.DataBytes, true}, {"index", i.IndexBytes, true},
		{"catalog", i.CatalogBytes, true}, {"padding", i.PaddingBytes, true},
		{"dead", i.DeadBytes, !i.Sealed}, {"spare", i.SpareBytes, !i.Sealed},
	} {
		if b.show {
			fmt.Fprintf(t, "%-7s\t%s\t%s bytes\t%.1f %%\t\n", b.name, size(b.n), count(b.n), 100*float64(b.n)/float64(i.FileBytes))
		}
	}
	t.Flush()
	if i.PaddingBytes*10 > i.FileBytes && m.Newest.AlignLog2 > format.MinAlignLog2 {
		fmt.Fprintln(a.out, "\nConverted with --align 64 the file would have almost no padding.")
	}
	return nil
}

func tickerNote(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " (" + some(names) + ")"
	}
	return " (" + some(names[:1]) + " to " + some(names[len(names)-1:]) + ")"
}

func rowNote(rows []int64) string {
	if len(rows) == 0 {
		return ""
	}
	if lo, hi := slices.Min(rows), slices.Max(rows); lo != hi {
		return fmt.Sprintf(" (%s to %s a ticker)", count(lo), count(hi))
	}
	return fmt.Sprintf(" (%s a ticker)", count(rows[0]))
}

func timeNote(s *reader.Store) (string, error) {
	schema := s.Meta().Schema
	first, last, ok, err := timeRange(s)
	if err != nil || !ok {
		return "none", err
	}
	v, err := s.View()
	if err != nil {
		return "", err
	}
	defer v.Release()
	dates, err := onlyDates(s, v)
	if err != nil {
		return "", err
	}
	c := newClock(schema.Unit, dates)
	text := c.text(first) + " to " + c.text(last) + ", in " + map[format.Unit]string{
		format.Second: "seconds", format.Millisecond: "milliseconds", format.Microsecond: "microseconds", format.Nanosecond: "nanoseconds",
	}[schema.Unit]
	if schema.Zone != "" {
		text += " UTC; the source's zone is " + clean(schema.Zone)
	}
	return text, nil
}

func groupNote(schema *format.Schema, group int) string {
	g := &schema.Groups[group]
	places := schema.Places()
	var names []string
	for _, c := range g.Columns {
		n := c.Name
		switch c.ReachKind {
		case format.ReachRows:
			n += fmt.Sprintf(" (reach %s)", plural(c.Reach, "row"))
		case format.ReachDuration:
			n += fmt.Sprintf(" (reach %s)", span(c.Reach, schema.Unit))
		case format.ReachColumn:
			p := places[c.Reach]
			n += fmt.Sprintf(" (reach %s)", schema.Groups[p.Group].Columns[p.Column].Name)
		}
		if c.Role != format.Value {
			n += " (" + strings.ReplaceAll(c.Role.String(), "_", " ") + ")"
		}
		names = append(names, n)
	}
	return fmt.Sprintf("%s %s: %s", count(len(g.Columns)), g.DType, some(names))
}

// categoryNotes returns a name and a text for each of the first columns that have categories.
func categoryNotes(m *format.Meta, most int) (notes [][2]string) {
	places := m.Schema.Places()
	for i, d := range m.Categories {
		if i == most {
			return append(notes, [2]string{"", fmt.Sprintf("and %s more with categories", count(len(m.Categories)-most))})
		}
		p := places[d.Column]
		text := count(len(d.Categories))
		if len(d.Categories) > 0 {
			text += ": " + some(d.Categories)
		}
		notes = append(notes, [2]string{"categories " + m.Schema.Groups[p.Group].Columns[p.Column].Name, text})
	}
	return notes
}

func attributeNote(all []*format.Attribute) string {
	var names []string
	for _, a := range all {
		names = append(names, fmt.Sprintf("%s (%s)", a.Name, a.Kind))
	}
	return fmt.Sprintf("%s: %s", count(len(all)), some(names))
}

func breakNote(m *format.Meta, set int) string {
	n, tickers := 0, len(m.Index.Breaks[set])
	for _, u := range m.Index.Breaks[set] {
		n += len(m.Index.BreakLists[u.List])
	}
	b := &m.Schema.Breaks[set]
	rule := "as given"
	switch b.Kind {
	case format.BreakGap:
		rule = "rows more than " + span(b.MaxGap, m.Schema.Unit) + " apart"
	case format.BreakColumn:
		rule = "where " + clean(b.Source) + " changes"
	}
	return fmt.Sprintf("%s in %s, %s", count(n), plural(tickers, "ticker"), rule)
}

func missingNote(m *format.Meta) string {
	lists := make([]int64, len(m.Index.MissingLists))
	for i, runs := range m.Index.MissingLists {
		for _, r := range runs {
			lists[i] += r.To - r.From
		}
	}
	type column struct {
		name string
		n    int64
	}
	var columns []column
	var total int64
	places := m.Schema.Places()
	for _, c := range m.Index.Missing {
		p := places[c.Column]
		missing := column{name: m.Schema.Groups[p.Group].Columns[p.Column].Name}
		for _, u := range c.Uses {
			missing.n += lists[u.List]
		}
		total += missing.n
		columns = append(columns, missing)
	}
	if total == 0 {
		return "none"
	}
	slices.SortStableFunc(columns, func(a, b column) int { return cmp.Compare(b.n, a.n) })
	var names []string
	for _, c := range columns {
		names = append(names, c.name+" "+count(c.n))
	}
	return fmt.Sprintf("%s: %s", count(total), some(names))
}

func queryNote(q *reader.Query) string {
	text := fmt.Sprintf("lookback %s, inputs %s", count(q.Lookback), some(q.Inputs))
	if len(q.Targets) > 0 {
		var h []string
		for _, v := range q.Horizons {
			h = append(h, count(v))
		}
		text += fmt.Sprintf(", targets %s at horizon %s", some(q.Targets), some(h))
		if q.TargetLength > 1 {
			text += fmt.Sprintf(", %s long", plural(q.TargetLength, "row"))
		}
	}
	if q.Stride > 1 {
		text += ", stride " + count(q.Stride)
	}
	var at []string
	for _, t := range q.At {
		at = append(at, moment(t.UTC()))
	}
	for _, l := range []struct {
		name  string
		given bool
		names []string
	}{
		{"optional", q.Optional != nil, q.Optional}, {"breaks", q.Breaks != nil, q.Breaks},
		{"tickers", q.Tickers != nil, q.Tickers}, {"where", len(q.Where) > 0, q.Where}, {"at", q.At != nil, at},
	} {
		if l.given {
			text += ", " + l.name + " " + cmp.Or(some(l.names), "none")
		}
	}
	if !q.From.IsZero() {
		text += ", from " + moment(q.From.UTC())
	}
	if !q.To.IsZero() {
		text += ", to " + moment(q.To.UTC())
	}
	return text
}
