package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

// list is a flag of names, A,B: repeatable, and quoted as in CSV. Nil: the flag was not given.
type list []string

func (l *list) Set(s string) error {
	if *l == nil {
		*l = list{}
	}
	if s == "" {
		return nil
	}
	r := csv.NewReader(strings.NewReader(s))
	names, err := r.Read()
	if err != nil {
		return fmt.Errorf("write names with commas or quotes as in CSV, such as '\"a,b\",c'")
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("quote a name with a line break as in CSV")
	}
	*l = append(*l, names...)
	return nil
}

func (l *list) Type() string   { return "list" }
func (l *list) String() string { return "" } // no default is shown

// queryFlags are the flags that say which windows.
type queryFlags struct {
	lookback, stride, targetLength int
	horizons                       []int
	inputs, targets, optional      list
	breaks, tickers, where, at     list
	from, to                       string
	names                          []string
}

func (q *queryFlags) add(cmd *cobra.Command, lookback int, about string) {
	f := cmd.Flags()
	f.IntVar(&q.lookback, "lookback", lookback, about)
	f.IntSliceVar(&q.horizons, "horizon", nil, "`ROWS` from the anchor to the first target row, one or a list (default 1)")
	f.IntVar(&q.targetLength, "target-length", 0, "target `ROWS` from each horizon on (default 1)")
	f.IntVar(&q.stride, "stride", 1, "take every `N`-th window of a run")
	f.Var(&q.inputs, "inputs", "columns or groups `A,B` (default: the group features)")
	f.Var(&q.targets, "targets", "columns or groups `A,B` (default: the group targets, if there is one); '' for none")
	f.Var(&q.optional, "optional", "those inputs and targets `A,B` whose cells may be missing")
	f.Var(&q.breaks, "breaks", "break sets `A,B` that no window may cross (default: all); '' for none")
	f.Var(&q.tickers, "tickers", "only windows of tickers `A,B`")
	f.Var(&q.where, "where", "only windows whose anchor has a value in columns `A,B`")
	f.Var(&q.at, "at", "windows that end at these `TIMES`, in place of a stride")
	f.StringVar(&q.from, "from", "", "only anchors at or after `TIME`")
	f.StringVar(&q.to, "to", "", "only anchors before `TIME`")
	q.names = []string{"lookback", "horizon", "target-length", "stride", "inputs", "targets", "optional", "breaks",
		"tickers", "where", "at", "from", "to"}
	for _, name := range []string{"inputs", "targets", "optional", "where"} {
		completeNames(cmd, name, columnNames)
	}
	completeNames(cmd, "tickers", tickerNames)
	completeNames(cmd, "breaks", breakNames)
}

// given returns the first of the flags that was given, or "".
func (q *queryFlags) given(cmd *cobra.Command) string {
	for _, name := range q.names {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// query turns the flags into a query of a store.
func (q *queryFlags) query(cmd *cobra.Command, s *reader.Store) (reader.Query, error) {
	out := reader.Query{
		Inputs: q.inputs, Targets: q.targets, Optional: q.optional, Lookback: q.lookback, Horizons: q.horizons,
		TargetLength: q.targetLength, Stride: q.stride, Breaks: q.breaks, Tickers: q.tickers, Where: q.where,
	}
	// In a Query 0 stands for the default, and it is not what somebody who writes 0 means.
	for name, v := range map[string]int{"target-length": q.targetLength, "stride": q.stride} {
		if cmd.Flags().Changed(name) && v < 1 {
			return out, usagef("--%s %d, must be at least 1", name, v)
		}
	}
	p := newTimeParser(s)
	if q.at != nil {
		out.At = []time.Time{}
	}
	for _, text := range q.at {
		t, err := p.parse("at", text)
		if err != nil {
			return out, err
		}
		out.At = append(out.At, t)
	}
	var err error
	out.From, out.To, err = p.parseRange(q.from, q.to)
	return out, err
}

// timeParser reads the times of flags for a store.
type timeParser struct {
	s    *reader.Store
	unit format.Unit
}

func newTimeParser(s *reader.Store) *timeParser { return &timeParser{s, s.Meta().Schema.Unit} }

// timeRange returns the first and the last time of a store, and false if it has no rows: then first > last.
func timeRange(s *reader.Store) (first, last int64, ok bool, err error) {
	first, last = math.MaxInt64, math.MinInt64
	v, err := s.View()
	if err != nil {
		return first, last, false, err
	}
	defer v.Release()
	err = v.Guard(func() error {
		for t := range s.Tickers() {
			times, err := v.Times(t)
			if err != nil {
				return err
			}
			if n := len(times); n > 0 {
				first, last, ok = min(first, times[0]), max(last, times[n-1]), true
			}
		}
		return nil
	})
	return first, last, ok, err
}

// Layouts without an offset are UTC, as are all times that are printed.
var layouts = []string{time.RFC3339, time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05Z07:00"}

func (p *timeParser) parse(flag, text string) (time.Time, error) {
	for _, l := range layouts {
		if t, err := time.Parse(l, text); err == nil {
			return t, nil
		}
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, usagef("--%s %q is not a time; write 2019-01-31, 2019-01-31 09:30:00, RFC 3339, or a whole number of the file's unit (%s)", flag, text, p.unit)
	}
	// A year or a date without dashes would mean an instant near 1970, and say so only by its wrong result.
	if (len(text) == 4 || len(text) == 8) && text[0] >= '0' {
		first, last, _, err := timeRange(p.s)
		if err != nil {
			return time.Time{}, err
		}
		if v < first || v > last {
			return time.Time{}, usagef("--%s %s is a number of %s since 1970, which the file does not reach; write a date as 2019-01-31", flag, text, p.unit)
		}
	}
	return p.unit.Time(v), nil
}

// parseRange parses the times of --from and --to; zero: not given.
func (p *timeParser) parseRange(from, to string) (f, t time.Time, err error) {
	if from != "" {
		if f, err = p.parse("from", from); err != nil {
			return f, t, err
		}
	}
	if to != "" {
		if t, err = p.parse("to", to); err != nil {
			return f, t, err
		}
		if t.IsZero() { // of year 1; it stands for no bound otherwise
			t = t.Add(-1)
		}
	}
	if from != "" && to != "" && t.Before(f) {
		return f, t, usagef("--to %s is before --from %s", to, from)
	}
	return f, t, nil
}

// rows returns the rows [from, to) of a ticker's times that lie in a range of times.
func (p *timeParser) rows(times []int64, from, to time.Time) (int, int) {
	first, last := 0, len(times)
	if !from.IsZero() {
		v, _ := p.unit.Ceil(from)
		first, _ = slices.BinarySearch(times, v)
	}
	if !to.IsZero() {
		v, _ := p.unit.Ceil(to)
		last, _ = slices.BinarySearch(times, v)
	}
	return first, max(first, last)
}
