package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
)

// A wide table has the cells of many tickers in one row. Its columns are taken together by what they hold: the planner
// sees one column `open` where the table has `AAPL:open` and `KO:open`. spread turns the plan made of them into one of
// the table's own columns.
type wide struct {
	first   int // number of the first column that the planner sees in place of the table's
	names   []string
	tickers []wideTicker // in the order of the table's columns
	own     []bool       // after spread: which of the cells are of one ticker; those of the others are of all
}

// wideTicker is a ticker of a wide table.
type wideTicker struct {
	name    string
	columns []int // the table's column of each of wide.names, or -1
	cells   []int // after spread: where in a batch's row each cell of read.Floats is, or -1
	series  *series
}

// pattern splits names into those of a ticker and a column.
type pattern struct {
	before, between, behind string
	tickerFirst             bool
}

const tickerMark, columnMark = "{ticker}", "{column}"

// parsePattern parses `{ticker}:{column}` and the like. ok is false if the text has no placeholder.
func parsePattern(text string) (p pattern, ok bool, err error) {
	t, c := strings.Index(text, tickerMark), strings.Index(text, columnMark)
	if t < 0 && c < 0 {
		return p, false, nil
	}
	p.tickerFirst = t < c
	first, second := tickerMark, columnMark
	if !p.tickerFirst {
		first, second = second, first
	}
	before, rest, found := strings.Cut(text, first)
	between, behind, found2 := strings.Cut(rest, second)
	p.before, p.between, p.behind = before, between, behind
	if !found || !found2 || between == "" || strings.Contains(before+between+behind, tickerMark) || strings.Contains(before+between+behind, columnMark) {
		return p, true, usage("wide %q; must have {ticker} and {column} once each, with something between, such as {ticker}:{column}", text)
	}
	return p, true, nil
}

// split splits a name. What stands between ticker and column may be in the ticker, not in the column: {ticker}.{column}
// takes BRK.B.open for the column open of BRK.B.
func (p *pattern) split(name string) (ticker, column string, ok bool) {
	rest, ok := strings.CutPrefix(name, p.before)
	if !ok {
		return "", "", false
	}
	if rest, ok = strings.CutSuffix(rest, p.behind); !ok {
		return "", "", false
	}
	at := strings.Index(rest, p.between)
	if p.tickerFirst {
		at = strings.LastIndex(rest, p.between)
	}
	if at < 0 {
		return "", "", false
	}
	ticker, column = rest[:at], rest[at+len(p.between):]
	if !p.tickerFirst {
		ticker, column = column, ticker
	}
	return ticker, column, ticker != "" && column != ""
}

// wide finds the tickers of a wide table in the names of its columns.
func (b *planner) wide() error {
	text := b.o.Wide
	if text == "" {
		return nil
	}
	if b.o.Ticker != "" {
		return usage("a wide table has its tickers in the names of its columns, and none in column %q", b.o.Ticker)
	}
	split, patterned, err := parsePattern(text)
	if err != nil {
		return err
	}
	w := &wide{first: len(b.s.Columns)}
	places := map[string]int{}  // of tickers
	numbers := map[string]int{} // of names
	named := b.asked()
	if !patterned {
		delete(named, text) // that is what the cells are called
	}
	b.columns = slices.Clone(b.columns)
	for i, c := range b.s.Columns {
		ticker, column, ok := c.Name, text, !named[c.Name] && !c.Unnamed && !c.Unused && (c.Kind == ingest.Float || c.Kind == ingest.Empty)
		if patterned {
			ticker, column, ok = split.split(c.Name)
		}
		if !ok || b.use[i] != "" {
			continue
		}
		if err := format.CheckTicker(ticker); err != nil {
			return &ingest.UnusableError{Path: b.inputs, Reason: fmt.Sprintf("the name of column %q gives the ticker %.60q", c.Name, ticker), Err: err}
		}
		n, known := numbers[column]
		if !known {
			n = len(w.names)
			numbers[column] = n
			w.names = append(w.names, column)
			b.columns = append(b.columns, ingest.Column{Name: column})
			b.index[column] = w.first + n
		}
		join(&b.columns[w.first+n], &c)
		t, known := places[ticker]
		if !known {
			t = len(w.tickers)
			places[ticker] = t
			w.tickers = append(w.tickers, wideTicker{name: ticker})
		}
		columns := &w.tickers[t].columns
		for len(*columns) <= n {
			*columns = append(*columns, -1)
		}
		(*columns)[n] = i
		b.use[i] = "of ticker " + ticker
	}
	if len(w.tickers) == 0 {
		e := &ingest.UnusableError{Path: b.inputs, Reason: "has no numeric column that could be a ticker", Hint: "without --wide the tickers are in a column, or in the files' names"}
		if patterned {
			names := make([]string, len(b.s.Columns))
			for i, c := range b.s.Columns {
				names[i] = c.Name
			}
			e.Reason = fmt.Sprintf("has no column with a name like %s; there are %s", text, someOf(names, 5))
			e.Hint = "write --wide as the names are, with {ticker} and {column} for what differs"
		}
		return e
	}
	lacking := 0
	var example string
	for t := range w.tickers {
		columns := &w.tickers[t].columns
		for len(*columns) < len(w.names) {
			*columns = append(*columns, -1)
		}
		if at := slices.Index(*columns, -1); at >= 0 {
			if lacking++; lacking == 1 {
				example = fmt.Sprintf("ticker %q has no column %q", w.tickers[t].name, w.names[at])
			}
		}
	}
	if lacking > 0 {
		b.p.hints = append(b.p.hints, fmt.Sprintf("%s, so its cells are missing; %d of %d tickers lack columns", example, lacking, len(w.tickers)))
	}
	b.p.wide = w
	return nil
}

// join adds a table's column to that which it is part of.
func join(to *ingest.Column, c *ingest.Column) {
	switch {
	case to.Kind == ingest.Empty:
		to.Kind, to.Example = c.Kind, c.Example
	case c.Kind != ingest.Empty && c.Kind != to.Kind && to.Kind != ingest.Text:
		to.Kind = ingest.Text
		if to.Example == "" {
			to.Example = c.Example
		}
	}
}

// asked returns the names of the columns that the options name, which are no tickers.
func (b *planner) asked() map[string]bool {
	all := map[string]bool{}
	add := func(names ...string) {
		for _, n := range names {
			all[n] = true
		}
	}
	add(b.o.Columns...)
	add(b.o.Masks...)
	add(b.o.Categories...)
	for _, g := range b.o.Groups {
		add(g.Columns...)
	}
	for _, k := range b.o.Breaks {
		add(k.Column)
	}
	for _, t := range b.o.Targets {
		add(t)
		if at := strings.LastIndexByte(t, ':'); at >= 0 {
			add(t[:at], t[at+1:])
		}
	}
	return all
}

// common reports whether a column is one of a wide table that holds the cells of no ticker.
func (b *planner) common(i int) bool { return b.p.wide != nil && i < b.p.wide.first }

// spread replaces the plan's columns by the table's.
func (w *wide) spread(p *ingest.Plan) {
	floats, masks := p.Floats, p.Masks
	for _, c := range floats {
		w.own = append(w.own, c >= w.first)
	}
	p.Floats, p.Masks = nil, nil
	at := map[int]int{}
	take := func(column int, mask bool) int {
		if column < 0 {
			return -1
		}
		k, ok := at[column]
		if !ok {
			k = len(p.Floats)
			at[column] = k
			p.Floats = append(p.Floats, column)
			p.Masks = append(p.Masks, mask)
		}
		return k
	}
	for i := range w.tickers {
		t := &w.tickers[i]
		for k, c := range floats {
			if c >= w.first {
				c = t.columns[c-w.first]
			}
			t.cells = append(t.cells, take(c, masks[k]))
		}
	}
}

// someOf lists names for a person.
func someOf(names []string, most int) string {
	var b strings.Builder
	for i, n := range names[:min(most, len(names))] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.60q", n)
	}
	if len(names) > most {
		fmt.Fprintf(&b, " and %d more", len(names)-most)
	}
	return b.String()
}
