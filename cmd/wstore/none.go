package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wstore/wstore/reader"
)

// whyNone says why a query has no windows, and what to try: it counts those of the query with parts left out.
func whyNone(s *reader.Store, q reader.Query) (string, error) {
	longest := int64(0)
	for _, n := range s.Meta().Tickers.Rows {
		longest = max(longest, n)
	}
	if longest == 0 {
		return "the file has no rows", nil
	}
	all, why, err := unfiltered(s, q)
	if why != "" || err != nil {
		return why, err
	}
	w, err := s.Windows(all)
	if err != nil {
		return "", err
	}
	columns := slices.Concat(w.Inputs().Names, w.Targets().Names)
	present := all
	present.Optional = columns
	n, err := windowCount(s, present)
	switch {
	case err != nil:
		return "", err
	case n > 0:
		return whyMissing(s, all, columns)
	}
	present.Breaks = []string{}
	n, err = windowCount(s, present)
	switch {
	case err != nil:
		return "", err
	case n > 0:
		return "breaks leave no ticker enough rows in one stretch; try a smaller --lookback, or --breaks ''", nil
	}
	full := w.Query()
	rows := int64(full.Lookback)
	if h := full.Horizons; len(h) > 0 {
		rows += max(0, int64(h[len(h)-1])+int64(full.TargetLength)-1)
	}
	return fmt.Sprintf("each needs %s with its targets, and the longest ticker has %s; try a smaller --lookback",
		plural(rows, "row"), count(longest)), nil
}

// unfiltered drops what only chooses among windows from a query without windows, and says what chooses none of them;
// nothing, if there are none to choose from.
func unfiltered(s *reader.Store, q reader.Query) (all reader.Query, why string, err error) {
	all = q
	var flags []string
	for _, f := range []struct {
		flag  string
		given bool
		drop  func(*reader.Query)
	}{
		{"--tickers", q.Tickers != nil, func(q *reader.Query) { q.Tickers = nil }},
		{"--where", len(q.Where) > 0, func(q *reader.Query) { q.Where = nil }},
		{"--at", q.At != nil, func(q *reader.Query) { q.At = nil }},
		{"--from", !q.From.IsZero(), func(q *reader.Query) { q.From = time.Time{} }},
		{"--to", !q.To.IsZero(), func(q *reader.Query) { q.To = time.Time{} }},
	} {
		if !f.given {
			continue
		}
		without := q
		f.drop(&without)
		f.drop(&all)
		n, err := windowCount(s, without)
		if err != nil {
			return all, "", err
		}
		if n > 0 {
			why, err = noneOf(s, n, f.flag)
			return all, why, err
		}
		flags = append(flags, f.flag)
	}
	n, err := windowCount(s, all)
	if n > 0 { // no flag alone leaves none
		why, err = noneOf(s, n, flags...)
	}
	return all, why, err
}

// noneOf says that flags together choose none of n windows.
func noneOf(s *reader.Store, n int, flags ...string) (string, error) {
	why := fmt.Sprintf("without %s the query has %s", strings.Join(flags, " and "), count(n))
	if !slices.ContainsFunc(flags, func(f string) bool { return f == "--at" || f == "--from" || f == "--to" }) {
		return why, nil
	}
	times, err := timeNote(s)
	return why + "; the file's times are " + times, err
}

// whyMissing says which columns' missing cells leave a query no windows.
func whyMissing(s *reader.Store, q reader.Query, columns []string) (string, error) {
	var empty, sparse []string
	for _, c := range columns {
		others := q
		others.Optional = append(slices.DeleteFunc(slices.Clone(columns), func(o string) bool { return o == c }), q.Optional...)
		n, err := windowCount(s, others)
		if err != nil {
			return "", err
		}
		if n > 0 {
			continue
		}
		if n, err = windowCount(s, reader.Query{Inputs: []string{c}, Targets: []string{}, Lookback: 1}); err != nil {
			return "", err
		}
		if n == 0 {
			empty = append(empty, c)
		} else {
			sparse = append(sparse, c)
		}
	}
	switch {
	case len(empty) > 0:
		return fmt.Sprintf("all cells are missing of %s; leave it out, or name it in --optional", some(empty)), nil
	case len(sparse) > 0:
		return fmt.Sprintf("missing cells interrupt every stretch of enough rows in %s; try a smaller --lookback, or --optional", some(sparse)), nil
	}
	return "missing cells interrupt every stretch of enough rows; try a smaller --lookback, or --optional", nil
}

func windowCount(s *reader.Store, q reader.Query) (int, error) {
	w, err := s.Windows(q)
	if err != nil {
		return 0, err
	}
	return w.Len(), nil
}
