package convert

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/reader"
)

// Report says what a conversion read, kept, left out and changed. Its JSON form is stable.
type Report struct {
	Schema          int             `json:"schema"`
	Files           int             `json:"files"`
	SkippedFiles    []string        `json:"skipped_files"`      // of folders, of other kinds; folders in them end in a slash
	EmptyFiles      []string        `json:"empty_files"`        // without rows
	Dialects        []DialectUse    `json:"dialects,omitempty"` // of texts that are not plain CSV, in the order of the inputs
	Tickers         int             `json:"tickers"`
	RowsRead        int64           `json:"rows_read"` // that could be read
	RowsKept        int64           `json:"rows_kept"`
	RowsSkipped     int64           `json:"rows_skipped"` // that could not be read, with Options.SkipBad
	FirstSkipped    string          `json:"first_skipped,omitempty"`
	Duplicates      int64           `json:"duplicates"`    // rows left out because another has their ticker and time
	Contradictory   int64           `json:"contradictory"` // those of them that differ, in what is stored, from the row that is kept
	UnsortedTickers int             `json:"unsorted_tickers"`
	Columns         []ColumnReport  `json:"columns"`
	SkippedColumns  []SkippedColumn `json:"skipped_columns"`
	Gaps            []Gap           `json:"largest_gaps"` // longest first; none if all rows are equally far apart
	TimeMin         *time.Time      `json:"time_min"`
	TimeMax         *time.Time      `json:"time_max"`
	TimeFormat      string          `json:"time_format,omitempty"`     // as Options.TimeFormat takes it; empty where the column's type is a time
	AmbiguousTimes  int64           `json:"ambiguous_times,omitempty"` // that happened twice and were decided by Options.OnAmbiguousTime
	AsExported      bool            `json:"as_exported,omitempty"`     // what is stored was said by the metadata that wstore export writes
	Wide            *WideReport     `json:"wide,omitempty"`
	Static          *StaticReport   `json:"static,omitempty"`
	Hints           []string        `json:"hints"`

	*FileReport // nil in the provenance, which lacks skipped_files too

	step uint64 // the least time from one row to the next, in nanoseconds; 0: none yet
}

// FileReport is what the finished file says.
type FileReport struct {
	Output   string       `json:"output"`
	Bytes    int64        `json:"file_bytes"`
	Padding  int64        `json:"padding_bytes"`
	Index    int64        `json:"index_bytes"` // of the window index, with its header and checksum
	Digest   string       `json:"digest"`      // of the content
	Lookback *LookbackUse `json:"lookback,omitempty"`
	// Unchanged says that the output was there already and was left alone (Options.IfChanged).
	Unchanged bool `json:"unchanged"`
}

// WideReport says what became of a wide table. Then Report.RowsRead counts rows of tickers.
type WideReport struct {
	Rows   int64 `json:"rows"`   // of the table
	Absent int64 `json:"absent"` // rows that a ticker does not have, since all of its own cells are missing
}

// DialectUse says how texts are laid out that are not plain CSV in UTF-8.
type DialectUse struct {
	Dialect string `json:"dialect"` // such as "cells separated by tabs, 2 lines before the header left out"
	Files   int    `json:"files"`
}

// ColumnReport says what became of a float32 column's cells, of all rows read.
type ColumnReport struct {
	Name        string  `json:"name"`
	Group       string  `json:"group"`
	Style       string  `json:"number_style,omitempty"` // how its numbers are written, if not plainly: "decimal comma"
	Missing     int64   `json:"missing"`
	NonFinite   int64   `json:"non_finite"`           // those of the missing that were NaN or infinite
	Filled      int64   `json:"filled,omitempty"`     // cells of the rows kept that Options.Fills gave a value
	Categories  *int    `json:"categories,omitempty"` // of a column of texts
	Inexact     int64   `json:"inexact"`              // values that float32 can't hold exactly
	MaxRelError float64 `json:"max_relative_error"`
}

// Gap is a time without rows between two rows of a ticker.
type Gap struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Tickers int       `json:"tickers"` // that have it
}

// LookbackUse says what a lookback finds.
type LookbackUse struct {
	Lookback int      `json:"lookback"`
	Windows  int      `json:"windows"`
	TooShort []string `json:"too_short"` // tickers that have no window
}

const keptGaps = 5

// gap notes the time between two rows, in nanoseconds since the epoch, if it is among the largest.
func (r *Report) gap(from, to int64) {
	length := uint64(to) - uint64(from)
	if r.step == 0 || length < r.step {
		r.step = length
	}
	if len(r.Gaps) == keptGaps {
		least := &r.Gaps[keptGaps-1]
		if l := gapLength(least); length < l || length == l && from > least.From.UnixNano() {
			return
		}
	}
	g := Gap{time.Unix(0, from).UTC(), time.Unix(0, to).UTC(), 1}
	at := 0
	for ; at < len(r.Gaps); at++ {
		if r.Gaps[at].From.Equal(g.From) && r.Gaps[at].To.Equal(g.To) {
			r.Gaps[at].Tickers++
			return
		}
		if l := gapLength(&r.Gaps[at]); l < length || l == length && g.From.Before(r.Gaps[at].From) {
			break
		}
	}
	r.Gaps = slices.Insert(r.Gaps, at, g)
	r.Gaps = r.Gaps[:min(len(r.Gaps), keptGaps)]
}

// span notes the time of a row, in nanoseconds since the epoch.
func (r *Report) span(at int64) {
	if r.TimeMin == nil {
		t := time.Unix(0, at).UTC()
		r.TimeMin, r.TimeMax = &t, &t
		return
	}
	switch t := time.Unix(0, at).UTC(); {
	case t.Before(*r.TimeMin):
		r.TimeMin = &t
	case t.After(*r.TimeMax):
		r.TimeMax = &t
	}
}

func gapLength(g *Gap) uint64 { return uint64(g.To.UnixNano()) - uint64(g.From.UnixNano()) }

// fill takes over what reading found.
func (c *conversion) fill(stats *ingest.Stats) {
	r := &c.report
	r.RowsRead, r.RowsSkipped, r.FirstSkipped = stats.Rows, stats.Skipped, stats.FirstSkipped
	r.TimeFormat, r.AmbiguousTimes = stats.TimeFormat, stats.AmbiguousTimes
	r.SkippedColumns = append(r.SkippedColumns, c.plan.skip...)
	for i := range c.survey.Sources {
		d := c.survey.Dialect(i)
		at := slices.IndexFunc(r.Dialects, func(u DialectUse) bool { return u.Dialect == d })
		switch {
		case d == "":
		case at < 0:
			r.Dialects = append(r.Dialects, DialectUse{d, 1})
		default:
			r.Dialects[at].Files++
		}
	}
	c.columns(stats)
	r.Gaps = slices.DeleteFunc(r.Gaps, func(g Gap) bool { return gapLength(&g) == r.step })
	r.Hints = append(r.Hints, c.plan.hints...)
	c.blanks()
	for _, col := range r.Columns {
		if col.Missing == r.RowsRead && col.Filled == 0 {
			r.Hints = append(r.Hints, fmt.Sprintf("column %q of group %q holds no value: no window that needs it exists; choose others with --columns", col.Name, col.Group))
		}
	}
	if len(r.Gaps) > 0 && !slices.ContainsFunc(c.plan.breaks, func(b format.BreakSet) bool { return b.Kind == format.BreakGap }) {
		r.Hints = append(r.Hints, "windows cross gaps; --max-gap, such as --max-gap 5d, makes breaks of them")
	}
}

// blanks reports a ticker that is another one with blanks around it: it stays what it is, but is seldom meant.
func (c *conversion) blanks() {
	same, first := 0, ""
	for _, s := range c.table.all() {
		bare := strings.TrimSpace(s.name)
		if bare == s.name || c.table.series[bare] == nil {
			continue
		}
		if same++; same == 1 {
			first = fmt.Sprintf("tickers %q and %q differ only by blanks", bare, s.name)
		}
	}
	switch {
	case same == 1:
		c.report.Hints = append(c.report.Hints, first)
	case same > 1:
		c.report.Hints = append(c.report.Hints, fmt.Sprintf("%s, and so do %d more", first, same-1))
	}
}

// columns reports the float32 columns.
func (c *conversion) columns(stats *ingest.Stats) {
	r, k := &c.report, 0
	if w := c.plan.wide; w != nil {
		r.RowsRead = c.table.rows
		r.Wide = &WideReport{stats.Rows, c.table.absent}
	}
	for _, g := range c.plan.groups {
		if g.DType != format.Float32 {
			continue
		}
		for _, col := range g.Columns {
			one := ColumnReport{Name: col.Name, Group: g.Name, Missing: c.table.missing[k]}
			switch at := c.plan.cells[k]; {
			case at.category:
				n := len(c.table.dictionaries[at.at].texts)
				one.Categories = &n
			case c.plan.wide != nil:
				seen := map[int]bool{} // cells of no ticker are those of all
				for _, t := range c.plan.wide.tickers {
					if i := t.cells[at.at]; i >= 0 && !seen[i] {
						seen[i] = true
						one.add(&stats.Columns[i])
					}
				}
			default:
				one.Missing = stats.Columns[at.at].Missing
				one.add(&stats.Columns[at.at])
			}
			for i := range c.plan.fills {
				if f := &c.plan.fills[i]; f.cell == k {
					one.Filled = f.filled
				}
			}
			r.Columns = append(r.Columns, one)
			k++
		}
	}
}

// add adds all but what is missing.
func (r *ColumnReport) add(s *ingest.ColumnStats) {
	r.Style = cmp.Or(r.Style, s.Style)
	r.NonFinite += s.NonFinite
	r.Inexact += s.Inexact
	r.MaxRelError = max(r.MaxRelError, s.MaxRelError)
}

// read adds what the finished file says.
func (r *Report) read(s *reader.Store, lookback int) error {
	m := s.Meta()
	r.FileReport = &FileReport{Output: s.Path(), Bytes: m.Newest.End, Digest: hex.EncodeToString(m.Digest[:])}
	var aligning int64 // the padding that blocks cause
	for _, p := range m.Layout.Padding {
		r.Padding += p.To - p.From
		if p.From >= format.DataStart {
			aligning += p.To - p.From
		}
	}
	r.Index = m.Section(format.TagIndex).Length + format.CatalogEntry
	if aligning > r.Bytes/10 && m.Newest.Align() > 1<<format.MinAlignLog2 {
		r.Hints = append(r.Hints, fmt.Sprintf("%.0f %% of the file is padding between blocks; --align 64 saves most of it", 100*float64(aligning)/float64(r.Bytes)))
	}
	if lookback == 0 {
		return nil
	}
	q := reader.Query{Lookback: lookback}
	if _, err := s.Group("features"); err != nil {
		q.Inputs = []string{m.Schema.Groups[0].Name}
	}
	w, err := s.Windows(q)
	if err != nil {
		return err
	}
	r.Lookback = &LookbackUse{Lookback: lookback, Windows: w.Len(), TooShort: []string{}}
	for t, name := range s.Tickers() {
		if from, to := w.Range(t); from == to {
			r.Lookback.TooShort = append(r.Lookback.TooShort, name)
		}
	}
	return nil
}
