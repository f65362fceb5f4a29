package convert

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/near"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// static is what Options.Static says of tickers, by ticker.
type static struct {
	survey     *ingest.Survey
	attributes []writer.Attribute
	tickers    map[string]staticRow
	report     *StaticReport
	size       int64 // bytes of memory, about
}

type staticRow struct {
	source int
	line   int64
}

// StaticReport says what became of the files of attributes.
type StaticReport struct {
	Files      []string          `json:"files"`
	Attributes []AttributeReport `json:"attributes"`
	Rows       int               `json:"rows"`    // one for each ticker in the files
	Unknown    int               `json:"unknown"` // rows of tickers that the store does not have
	Without    int               `json:"without"` // tickers of the store without a row
	// UnknownTickers and WithoutTickers are the first of them.
	UnknownTickers []string        `json:"unknown_tickers"`
	WithoutTickers []string        `json:"without_tickers"`
	SkippedColumns []SkippedColumn `json:"skipped_columns"`
}

// AttributeReport says what became of an attribute.
type AttributeReport struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`    // text or number
	Tickers int    `json:"tickers"` // of the store that have it
}

const reportedTickers = 10

// readStatic reads the files of attributes.
func (c *conversion) readStatic(ctx context.Context, sources []ingest.Source) (err error) {
	st := &static{tickers: map[string]staticRow{}, report: &StaticReport{Attributes: []AttributeReport{}, UnknownTickers: []string{}, WithoutTickers: []string{}, SkippedColumns: []SkippedColumn{}}}
	if st.survey, err = ingest.NewSurvey(ctx, sources, ingest.Options{Jobs: c.o.Jobs}); err != nil {
		return err
	}
	var h hasher
	h.done.Store(true)
	if err := h.hash(ctx, sources); err != nil {
		return err
	}
	c.staticInputs = h.inputs
	for _, s := range sources {
		st.report.Files = append(st.report.Files, filepath.Base(s.Path))
	}
	read := ingest.Plan{Time: -1}
	if read.Ticker, err = st.tickerColumn(c.o); err != nil {
		return err
	}
	skip := func(column ingest.Column, why string) {
		st.report.SkippedColumns = append(st.report.SkippedColumns, SkippedColumn{column.Name, why})
	}
	var numbers []int // for each text, where its number is, or -1
	for i, column := range st.survey.Columns {
		switch {
		case i == read.Ticker:
		case column.Unnamed:
			skip(column, "the header has no name for it")
		case column.Kind == ingest.Other:
			skip(column, "it holds "+column.Example)
		case column.Kind == ingest.Empty:
			skip(column, "it holds no value")
		case column.Kind == ingest.Float:
			numbers = append(numbers, len(read.Doubles))
			read.Doubles = append(read.Doubles, i)
			read.Texts = append(read.Texts, i)
		default:
			numbers = append(numbers, -1)
			read.Texts = append(read.Texts, i)
		}
	}
	texts := make([]map[string]string, len(read.Texts))
	values := make([]map[string]float64, len(read.Doubles))
	codes := make([]bool, len(read.Texts)) // some number is written like 0042, and thus is none
	for k := range texts {
		texts[k] = map[string]string{}
	}
	for k := range values {
		values[k] = map[string]float64{}
	}
	_, err = st.survey.Read(ctx, read, func(b *ingest.Batch) error {
		for i := range b.Rows {
			ticker := strings.Clone(b.Dict[b.Tickers[i]])
			place := func(column, value, reason, hint string) error {
				return &ingest.RowError{Path: sources[b.Source].Path, Line: b.Line[i], Row: st.survey.CountsRows(b.Source), Column: column, Value: clip(value), Reason: reason, Hint: hint}
			}
			column := st.survey.Columns[read.Ticker].Name
			if at, twice := st.tickers[ticker]; twice {
				return place(column, ticker, "comes twice: "+st.survey.Place(at.source, at.line)+" has attributes of it too", "a ticker has one row")
			}
			st.tickers[ticker] = staticRow{b.Source, b.Line[i]}
			st.size += int64(len(ticker)) + perText
			for k, code := range b.Texts[i*len(texts) : (i+1)*len(texts)] {
				text := strings.Clone(b.Dict[code])
				if len(text) > 1 && text[0] == '0' && '0' <= text[1] && text[1] <= '9' {
					codes[k] = true
				}
				if text != "" {
					texts[k][ticker] = text
					st.size += int64(len(text)) + perText
				}
			}
			for k, v := range b.Doubles[i*len(values) : (i+1)*len(values)] {
				if !math.IsNaN(v) {
					values[k][ticker] = v
					st.size += perText
				}
			}
			if st.size > labelsOf(c.o) {
				return place(column, ticker, "and the rows before need a sixth of --memory", "is it a table of one row for each ticker? else raise --memory")
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for k, i := range read.Texts {
		a := writer.Attribute{Name: st.survey.Columns[i].Name}
		if numbers[k] >= 0 && !codes[k] {
			a.Numbers = values[numbers[k]]
		} else {
			a.Texts = texts[k]
		}
		st.attributes = append(st.attributes, a)
	}
	c.static = st
	return nil
}

// tickerColumn finds the column of the tickers.
func (st *static) tickerColumn(o *Options) (int, error) {
	var names []string
	at := map[string]int{} // in lower case
	for i, c := range st.survey.Columns {
		names = append(names, c.Name)
		if _, ok := at[strings.ToLower(c.Name)]; !ok {
			at[strings.ToLower(c.Name)] = i
		}
	}
	if o.StaticTicker != "" {
		if i := st.survey.Index(o.StaticTicker); i >= 0 {
			return i, nil
		}
		return 0, &reader.NotFoundError{Path: st.survey.Sources[0].Path, Kind: "column", Name: o.StaticTicker, Near: near.Names(o.StaticTicker, names)}
	}
	if i := st.survey.Index(o.Ticker); i >= 0 && o.Ticker != "" {
		return i, nil
	}
	for _, name := range tickerNames {
		if i, ok := at[name]; ok {
			return i, nil
		}
	}
	return 0, usage("%s: none of its columns (%s) is called like one of tickers; name it with --static-ticker", st.survey.Sources[0].Path, someOf(names, 8))
}

// attributesOf returns the attributes of the tickers that are stored.
func (c *conversion) attributesOf() ([]writer.Attribute, error) {
	all, err := c.staticAttributes()
	if err != nil || c.exported == nil {
		return all, err
	}
	old, err := c.exported.attributes(all)
	for _, a := range old {
		keep(c.table, a.Texts)
		keep(c.table, a.Numbers)
	}
	return append(all, old...), err
}

func (c *conversion) staticAttributes() ([]writer.Attribute, error) {
	st := c.static
	if st == nil {
		return nil, nil
	}
	r := st.report
	r.Rows = len(st.tickers)
	for name := range st.tickers {
		if c.table.series[name] == nil {
			r.Unknown++
			r.UnknownTickers = append(r.UnknownTickers, name)
		}
	}
	for name := range c.table.series {
		if _, ok := st.tickers[name]; !ok {
			r.Without++
			r.WithoutTickers = append(r.WithoutTickers, name)
		}
	}
	for _, names := range []*[]string{&r.UnknownTickers, &r.WithoutTickers} {
		slices.Sort(*names)
		*names = slices.Clip((*names)[:min(len(*names), reportedTickers)])
	}
	if r.Unknown == r.Rows {
		return nil, &ingest.UnusableError{
			Path:   st.survey.Sources[0].Path,
			Reason: fmt.Sprintf("none of its %d tickers, such as %q, is in the inputs, which have %s", r.Rows, r.UnknownTickers[0], someOf(r.WithoutTickers, 3)),
			Hint:   "name the column of its tickers with --static-ticker",
		}
	}
	for i := range st.attributes {
		a := &st.attributes[i]
		one := AttributeReport{Name: a.Name, Kind: "text"}
		if a.Numbers != nil {
			one.Kind = "number"
		}
		one.Tickers = keep(c.table, a.Texts) + keep(c.table, a.Numbers)
		r.Attributes = append(r.Attributes, one)
	}
	c.report.Static = r
	return st.attributes, nil
}

// keep deletes the values of tickers that are not stored, and counts the rest.
func keep[T any](t *table, values map[string]T) int {
	for name := range values {
		if t.series[name] == nil {
			delete(values, name)
		}
	}
	return len(values)
}
