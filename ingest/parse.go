package ingest

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// longestTicker is the most bytes of a ticker.
const longestTicker = 255

// action is what is done with a cell.
type action uint8

const (
	toFloat action = iota
	toMask
	toTicker
	toTime
	toStamp
	toText
)

// use is one action and the place of its result among those of its kind.
type use struct {
	action action
	at     int
}

// result is what a worker makes of a chunk.
type result struct {
	batch        Batch
	stats        []ColumnStats
	skipped      int64
	firstSkipped string
	err          error // what is wrong with the chunk, before its own err
}

// parser parses chunks, one at a time.
type parser struct {
	s     *Survey
	p     *Plan
	skip  bool    // leave bad rows out
	uses  [][]use // per survey column
	time  clockReader
	times []clockReader

	// Of the current source.
	head   *header
	path   string
	fields [][]use // per file column
	plain  []int32 // per file column: place of the float that is its only use, else -1

	codes   map[string]uint32 // of the batch's Dict
	scratch []byte
	saved   []ColumnStats
	out     *result
}

func newParser(s *Survey, p *Plan, formats []timeFormat) *parser {
	q := &parser{s: s, p: p, skip: s.o.SkipBad, uses: make([][]use, len(s.Columns)), codes: map[string]uint32{}}
	add := func(column int, a action, at int) { q.uses[column] = append(q.uses[column], use{a, at}) }
	if p.Ticker >= 0 {
		add(p.Ticker, toTicker, 0)
	}
	add(p.Time, toTime, 0)
	for i, c := range p.Floats {
		if len(p.Masks) > 0 && p.Masks[i] {
			add(c, toMask, i)
		} else {
			add(c, toFloat, i)
		}
	}
	for i, c := range p.Times {
		add(c, toStamp, i)
		q.times = append(q.times, clockReader{timeFormat: formats[1+i], loc: s.o.Location})
	}
	for i, c := range p.Texts {
		add(c, toText, i)
	}
	q.time = clockReader{timeFormat: formats[0], loc: s.o.Location}
	return q
}

// parse parses a chunk into its result, whose buffers are used again.
func (q *parser) parse(c *chunk) {
	out := &c.out
	b := &out.batch
	*out = result{stats: append(out.stats[:0], make([]ColumnStats, len(q.p.Floats))...), batch: Batch{
		Source: c.source, Line: b.Line[:0], Tickers: b.Tickers[:0], Times: b.Times[:0], Cells: b.Cells[:0],
		Stamps: b.Stamps[:0], Texts: b.Texts[:0], Dict: b.Dict[:0]}}
	q.out = out
	clear(q.codes)
	q.enter(c.source)
	if len(c.text) == 0 {
		return
	}
	if q.p.Ticker < 0 {
		q.code([]byte(q.s.Sources[c.source].Name()))
	}

	text := c.text
	nul := bytes.IndexByte(text, 0)
	if nul >= 0 {
		text = text[:bytes.LastIndexByte(text[:nul], '\n')+1]
	}
	if bytes.IndexByte(text, '"') < 0 {
		out.err = q.plainRows(text, c.line)
	} else {
		out.err = q.quotedRows(text, c.line)
	}
	if out.err == nil && nul >= 0 {
		out.err = &RowError{Path: q.path, Line: c.line + int64(bytes.Count(text, []byte("\n"))), Reason: "holds a NUL byte: this looks like a binary or damaged file",
			Hint: "fetch it again or convert it to CSV"}
	}
	out.batch.Rows = len(out.batch.Line)
}

// enter prepares for a source's order of columns.
func (q *parser) enter(source int) {
	q.path = q.s.Sources[source].Path
	h := q.s.layouts[source]
	if h == q.head {
		return
	}
	q.head = h
	q.fields, q.plain = q.fields[:0], q.plain[:0]
	for _, c := range h.columns {
		uses := q.uses[c]
		q.fields = append(q.fields, uses)
		if len(uses) == 1 && uses[0].action == toFloat {
			q.plain = append(q.plain, int32(uses[0].at))
		} else {
			q.plain = append(q.plain, -1)
		}
	}
}

// plainRows parses rows without any quote, each of which ends in LF.
func (q *parser) plainRows(text []byte, line int64) error {
	for pos := 0; pos < len(text); line++ {
		end := pos + bytes.IndexByte(text[pos:], '\n')
		next := end + 1
		if end > pos && text[end-1] == '\r' {
			end--
		}
		if end > pos {
			m := q.begin(line)
			if bad := q.plainRow(text, pos, end); bad != nil {
				if err := q.undo(m, bad); err != nil {
					return err
				}
			}
		}
		pos = next
	}
	return nil
}

// plainRow parses text[i:end]. text[end] is CR or LF.
func (q *parser) plainRow(text []byte, i, end int) *RowError {
	start := i
	comma := q.head.comma
	cells := q.cells()
	stats := q.out.stats
	for j, at := range q.plain {
		if j > 0 {
			if i >= end {
				return q.ragged(bytes.Count(text[start:end], []byte{comma}) + 1)
			}
			i++ // the separator
		}
		if at >= 0 {
			f, v, stop, kind := scanDecimal(text, i)
			if kind != longNumber && (stop == end || text[stop] == comma) {
				cells[at] = f
				if kind == inexact {
					stats[at].inexact(f, v)
				}
				i = stop
				continue
			}
		}
		stop := end
		if n := bytes.IndexByte(text[i:end], comma); n >= 0 {
			stop = i + n
		}
		if uses := q.fields[j]; len(uses) > 0 {
			if err := q.cell(j, uses, text[i:stop], cells); err != nil {
				return err
			}
		}
		i = stop
	}
	if i < end {
		return q.ragged(bytes.Count(text[start:end], []byte{comma}) + 1)
	}
	return nil
}

// quotedRows parses rows with quotes.
func (q *parser) quotedRows(text []byte, line int64) error {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.ReuseRecord = rune(q.head.comma), -1, true
	for {
		rec, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return quoteError(q.path, line-1, err)
		}
		at, _ := r.FieldPos(0)
		m := q.begin(line - 1 + int64(at))
		if bad := q.quotedRow(rec); bad != nil {
			if err := q.undo(m, bad); err != nil {
				return err
			}
		}
	}
}

func (q *parser) quotedRow(rec []string) *RowError {
	if len(rec) != len(q.fields) {
		return q.ragged(len(rec))
	}
	cells := q.cells()
	for j, uses := range q.fields {
		if len(uses) == 0 {
			continue
		}
		q.scratch = slices.Grow(append(append(q.scratch[:0], rec[j]...), '\n'), slack)
		cell := q.scratch[:len(rec[j])]
		if at := q.plain[j]; at >= 0 {
			f, v, stop, kind := scanDecimal(q.scratch, 0)
			if kind != longNumber && stop == len(cell) {
				cells[at] = f
				if kind == inexact {
					q.out.stats[at].inexact(f, v)
				}
				continue
			}
		}
		if err := q.cell(j, uses, cell, cells); err != nil {
			return err
		}
	}
	return nil
}

// mark is where a row begins in the batch.
type mark struct{ rows, tickers, times, cells, stamps, texts, dict int }

// begin begins a row.
func (q *parser) begin(line int64) mark {
	b := &q.out.batch
	m := mark{len(b.Line), len(b.Tickers), len(b.Times), len(b.Cells), len(b.Stamps), len(b.Texts), len(b.Dict)}
	b.Line = append(b.Line, line)
	if q.p.Ticker < 0 {
		b.Tickers = append(b.Tickers, 0)
	}
	b.Stamps = extend(b.Stamps, len(q.p.Times))
	b.Texts = extend(b.Texts, len(q.p.Texts))
	b.Cells = extend(b.Cells, len(q.p.Floats))
	if q.skip {
		q.saved = append(q.saved[:0], q.out.stats...)
	}
	return m
}

// undo takes a row that cannot be read out again and counts it, or returns its
// error where such rows are not skipped.
func (q *parser) undo(m mark, err *RowError) error {
	b := &q.out.batch
	err.Path, err.Line = q.path, b.Line[m.rows]
	if !q.skip {
		return err
	}
	if q.out.skipped++; q.out.skipped == 1 {
		q.out.firstSkipped = err.Error()
	}
	for _, s := range b.Dict[m.dict:] {
		delete(q.codes, s)
	}
	b.Line, b.Tickers, b.Times, b.Cells = b.Line[:m.rows], b.Tickers[:m.tickers], b.Times[:m.times], b.Cells[:m.cells]
	b.Stamps, b.Texts, b.Dict = b.Stamps[:m.stamps], b.Texts[:m.texts], b.Dict[:m.dict]
	copy(q.out.stats, q.saved)
	return nil
}

// extend lengthens s by n elements, of any content.
func extend[T any](s []T, n int) []T {
	s = slices.Grow(s, n)
	return s[:len(s)+n]
}

// cells is the current row's part of the batch.
func (q *parser) cells() []float32 {
	c := q.out.batch.Cells
	return c[len(c)-len(q.p.Floats):]
}

// cell does what the plan wants with one cell.
func (q *parser) cell(column int, uses []use, cell []byte, cells []float32) *RowError {
	b := &q.out.batch
	for _, u := range uses {
		switch u.action {
		case toFloat, toMask:
			f, reason, hint := q.number(cell, u)
			if reason != "" {
				return q.fault(column, cell, reason, hint)
			}
			cells[u.at] = f
		case toTicker:
			if reason := tickerFault(cell); reason != "" {
				return q.fault(column, cell, "is a ticker that "+reason, hintSkip)
			}
			b.Tickers = append(b.Tickers, q.code(cell))
		case toTime:
			ns, reason := q.time.parse(cell)
			if reason != "" {
				return q.fault(column, cell, reason, q.time.hint(cell, reason))
			}
			b.Times = append(b.Times, ns)
		case toStamp:
			at := len(b.Stamps) - len(q.p.Times) + u.at
			if missingKind(trim(cell)) != notNumber {
				b.Stamps[at] = noStamp
				continue
			}
			ns, reason := q.times[u.at].parse(cell)
			if reason != "" {
				return q.fault(column, cell, reason, q.times[u.at].hint(cell, reason))
			}
			b.Stamps[at] = ns
		case toText:
			b.Texts[len(b.Texts)-len(q.p.Texts)+u.at] = q.code(cell)
		}
	}
	return nil
}

// number reads a float or mask cell.
func (q *parser) number(cell []byte, u use) (f float32, reason, hint string) {
	f, v, kind := parseNumber(cell)
	st := &q.out.stats[u.at]
	switch kind {
	case inexact:
		st.inexact(f, v)
	case overflow:
		return 0, "is larger than any float32 (3.4e38)", "scale the column, or leave it out with --columns"
	case blank:
		st.Missing++
	case nonFinite:
		st.Missing++
		st.NonFinite++
	case notNumber:
		word := bytes.ToLower(trim(cell))
		switch {
		case u.action == toMask && string(word) == "true":
			return 1, "", ""
		case u.action == toMask && string(word) == "false":
			st.Missing++
			return missing, "", ""
		case string(word) == "true" || string(word) == "false":
			return 0, "is not a number", "read the column as a mask with --mask"
		case bytes.IndexByte(word, ',') >= 0:
			return 0, "is not a number", "write numbers without thousands separators and with a decimal point"
		}
		return 0, "is not a number", "leave the column out with --columns, or skip such rows with --on-error skip"
	}
	if u.action == toMask && f == 0 {
		st.Missing++
		return missing, "", ""
	}
	return f, "", ""
}

// tickerFault says what is wrong with a ticker, or "".
func tickerFault(t []byte) string {
	switch {
	case len(t) == 0:
		return "is empty"
	case len(t) > longestTicker:
		return fmt.Sprintf("has %d bytes, more than %d", len(t), longestTicker)
	case !utf8.Valid(t):
		return "is not UTF-8"
	}
	return ""
}

// code is the code of a string in the batch's Dict.
func (q *parser) code(s []byte) uint32 {
	code, ok := q.codes[string(s)]
	if !ok {
		b := &q.out.batch
		code = uint32(len(b.Dict))
		str := string(s)
		q.codes[str] = code
		b.Dict = append(b.Dict, str)
	}
	return code
}

// fault is the error of one cell; path and line are added by undo.
func (q *parser) fault(column int, cell []byte, reason, hint string) *RowError {
	return &RowError{Column: q.head.names[column], Value: clip(string(cell)), Reason: reason, Hint: hint}
}

// ragged is the error of a row with another number of cells than the header.
func (q *parser) ragged(n int) *RowError {
	return &RowError{Reason: fmt.Sprintf("has %s, while the header has %d", count(n, "cell"), len(q.fields)),
		Hint: hintSkip}
}
