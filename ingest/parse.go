package ingest

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
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
	toPart // of a ticker in several columns
	toTime
	toDate
	toClock
	toStamp
	toText
	toDouble
	toNothing // the cell must be empty
)

// use is one action and the place of its result among those of its kind.
type use struct {
	action action
	at     int
}

// result is what a worker makes of a unit.
type result struct {
	batch        Batch
	stats        []ColumnStats
	skipped      int64
	firstSkipped string
	twice        int64 // times that were decided by Options.AmbiguousTime
	err          error // what is wrong with the unit, before its own err
}

// parser parses units, one at a time.
type parser struct {
	s     *Survey
	p     *Plan
	skip  bool    // leave bad rows out
	uses  [][]use // per survey column
	time  clockReader
	times []clockReader
	style []numberStyle // per float

	// Of the current source.
	layout *layout
	path   string
	fields [][]use // per column of the source
	text   textParser

	vector  vector            // scratch of columnarUnit
	codes   map[string]uint32 // of the batch's Dict
	scratch []byte
	digits  []byte // scratch of numberStyle
	saved   []ColumnStats
	date    []byte // of a row whose time is in two cells
	clock   []byte
	half    bool     // one of them was read
	parts   [][]byte // of a ticker in several columns
	missing int      // parts of the row that were not read yet
	named   int64    // the time in the source's name
	twice   int64
	out     *result
}

func newParser(s *Survey, p *Plan, formats []timeFormat) *parser {
	q := &parser{s: s, p: p, skip: s.o.SkipBad, uses: make([][]use, len(s.Columns)), codes: map[string]uint32{}}
	add := func(column int, a action, at int) { q.uses[column] = append(q.uses[column], use{a, at}) }
	switch {
	case len(p.Qualifiers) > 0:
		q.parts = make([][]byte, 1+len(p.Qualifiers))
		for i, c := range slices.Concat([]int{p.Ticker}, p.Qualifiers) {
			add(c, toPart, i)
		}
	case p.Ticker >= 0:
		add(p.Ticker, toTicker, 0)
	}
	switch {
	case len(p.Clock) > 0:
		add(p.Time, toDate, 0)
		add(p.Clock[0], toClock, 0)
	case p.Time >= 0:
		add(p.Time, toTime, 0)
	}
	for i, c := range p.Floats {
		q.style = append(q.style, s.styles[c])
		if len(p.Masks) > 0 && p.Masks[i] {
			add(c, toMask, i)
		} else {
			add(c, toFloat, i)
		}
	}
	zone := zone{loc: s.o.Location, twice: s.o.AmbiguousTime, count: &q.twice}
	for i, c := range p.Times {
		add(c, toStamp, i)
		q.times = append(q.times, clockReader{timeFormat: formats[1+i], zone: zone})
	}
	for i, c := range p.Texts {
		add(c, toText, i)
	}
	for i, c := range p.Doubles {
		add(c, toDouble, i)
	}
	q.time = clockReader{timeFormat: formats[0], zone: zone}
	return q
}

// parse parses a unit into its result, whose buffers are used again.
func (q *parser) parse(u *unit) {
	out := &u.out
	b := &out.batch
	*out = result{stats: append(out.stats[:0], make([]ColumnStats, len(q.p.Floats))...), batch: Batch{
		Source: u.source, Line: b.Line[:0], Tickers: b.Tickers[:0], Times: b.Times[:0], Cells: b.Cells[:0],
		Stamps: b.Stamps[:0], Texts: b.Texts[:0], Doubles: b.Doubles[:0], Dict: b.Dict[:0]}}
	q.out = out
	clear(q.codes)
	q.twice = 0
	if u.layout == nil {
		return
	}
	q.enter(u)
	out.err = u.layout.format.decode(q, u)
	out.twice = q.twice
	out.batch.Rows = len(out.batch.Line)
}

// decode parses the text of a unit.
func (h *textFormat) decode(q *parser, u *unit) error {
	q.text.enter(q, h)
	text, line := u.text.text, u.text.line
	nul := bytes.IndexByte(text, 0)
	if nul >= 0 {
		text = text[:bytes.LastIndexByte(text[:nul], '\n')+1]
	}
	var err error
	if bytes.IndexByte(text, '"') < 0 {
		err = q.plainRows(text, line)
	} else {
		err = q.quotedRows(text, line)
	}
	if err == nil && nul >= 0 {
		err = &RowError{Path: q.path, Line: line + int64(bytes.Count(text, []byte("\n"))), Reason: "holds a NUL byte: this looks like a binary or damaged file",
			Hint: "fetch it again or convert it to CSV"}
	}
	return err
}

// enter prepares for a unit's source.
func (q *parser) enter(u *unit) {
	q.path = q.s.Sources[u.source].Path
	if q.p.Ticker < 0 {
		q.code([]byte(q.s.Ticker(u.source)))
	}
	if q.p.NameDate {
		q.named, _ = q.s.NameTime(u.source) // Read has looked at all
	}
	date, _ := nameDate(filepath.Base(q.path)) // where it matters there is one
	q.time.date = append(q.time.date[:0], date...)
	for i := range q.times {
		q.times[i].date = q.time.date
	}
	if u.layout == q.layout {
		return
	}
	q.layout = u.layout
	q.fields = q.fields[:0]
	for _, c := range q.layout.columns {
		q.fields = append(q.fields, q.uses[c])
	}
}

// textParser is what a parser knows of the text of the current source.
type textParser struct {
	format *textFormat
	fields [][]use // per cell of a row: the column's, then of cells that must be empty
	plain  []int32 // per cell: place of the float that is its only use, else -1
	number []byte  // scratch
}

// enter prepares for a source's order of columns.
func (t *textParser) enter(q *parser, h *textFormat) {
	if h == t.format {
		return
	}
	t.format, t.fields, t.plain = h, append(t.fields[:0], q.fields...), t.plain[:0]
	for range h.extra {
		t.fields = append(t.fields, []use{{action: toNothing}})
	}
	for j, uses := range t.fields {
		if len(uses) == 1 && uses[0].action == toFloat && q.style[uses[0].at].fast() && (h.scale == nil || h.scale[j] == 0) {
			t.plain = append(t.plain, int32(uses[0].at))
		} else {
			t.plain = append(t.plain, -1)
		}
	}
}

// scaled is a cell's number as it is meant, with an exponent for the power of ten
// that it is stored times, so that it is rounded once.
func (t *textParser) scaled(j int, cell []byte) []byte {
	if t.format.scale == nil || t.format.scale[j] == 0 || !isDecimal(trim(cell)) {
		return cell
	}
	number, exponent, _ := bytes.Cut(bytes.ToLower(trim(cell)), []byte("e"))
	e, _ := strconv.Atoi(string(exponent)) // too many digits leave the largest int
	e = max(min(e, math.MaxInt32), math.MinInt32) - t.format.scale[j]
	t.number = strconv.AppendInt(append(append(t.number[:0], number...), 'e'), int64(e), 10)
	return t.number
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
	comma := q.text.format.comma
	cells := q.cells()
	stats := q.out.stats
	for j, at := range q.text.plain {
		if j > 0 {
			if i >= end {
				return q.ragged(text[start:end])
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
		if uses := q.text.fields[j]; len(uses) > 0 {
			if err := q.cell(j, uses, q.text.scaled(j, text[i:stop]), cells); err != nil {
				return cmp.Or(q.ragged(text[start:end]), err) // a row of another shape says more than its cells
			}
		}
		i = stop
	}
	if i < end {
		return q.ragged(text[start:end])
	}
	return nil
}

// quotedRows parses rows with quotes.
func (q *parser) quotedRows(text []byte, line int64) error {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.ReuseRecord = rune(q.text.format.comma), -1, true
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
	if len(rec) != len(q.text.fields) {
		return q.text.format.ragged(rec[0], len(rec), len(q.fields))
	}
	cells := q.cells()
	for j, uses := range q.text.fields {
		if len(uses) == 0 {
			continue
		}
		q.scratch = slices.Grow(append(append(q.scratch[:0], rec[j]...), '\n'), slack)
		cell := q.scratch[:len(rec[j])]
		if at := q.text.plain[j]; at >= 0 {
			f, v, stop, kind := scanDecimal(q.scratch, 0)
			if kind != longNumber && stop == len(cell) {
				cells[at] = f
				if kind == inexact {
					q.out.stats[at].inexact(f, v)
				}
				continue
			}
		}
		if err := q.cell(j, uses, q.text.scaled(j, cell), cells); err != nil {
			return err
		}
	}
	return nil
}

// mark is where a row begins in the batch.
type mark struct {
	rows, tickers, times, cells, stamps, texts, doubles, dict int
	twice                                                     int64
}

// begin begins a row.
func (q *parser) begin(line int64) mark {
	b := &q.out.batch
	m := mark{len(b.Line), len(b.Tickers), len(b.Times), len(b.Cells), len(b.Stamps), len(b.Texts), len(b.Doubles), len(b.Dict), q.twice}
	q.half, q.missing = false, len(q.parts)
	b.Line = append(b.Line, line)
	if q.p.NameDate {
		b.Times = append(b.Times, q.named)
	}
	if q.p.Ticker < 0 {
		b.Tickers = append(b.Tickers, 0)
	}
	b.Stamps = extend(b.Stamps, len(q.p.Times))
	b.Texts = extend(b.Texts, len(q.p.Texts))
	b.Cells = extend(b.Cells, len(q.p.Floats))
	b.Doubles = extend(b.Doubles, len(q.p.Doubles))
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
	b.Stamps, b.Texts, b.Doubles, b.Dict = b.Stamps[:m.stamps], b.Texts[:m.texts], b.Doubles[:m.doubles], b.Dict[:m.dict]
	copy(q.out.stats, q.saved)
	q.twice = m.twice
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
			if err := q.ticker(column, cell); err != nil {
				return err
			}
		case toPart:
			switch {
			case len(cell) == 0:
				return q.fault(column, cell, "is a part of a ticker that is empty", hintSkip)
			case u.at > 0 && bytes.IndexByte(cell, '/') >= 0:
				return q.fault(column, cell, "holds a slash, which joins the columns of a ticker", "name this column first in --ticker")
			}
			q.parts[u.at] = append(q.parts[u.at][:0], cell...)
			if q.missing--; q.missing == 0 {
				if err := q.ticker(column, bytes.Join(q.parts, []byte("/"))); err != nil {
					return err
				}
			}
		case toTime:
			ns, reason := q.time.parse(cell)
			if reason != "" {
				return q.fault(column, cell, reason, q.time.hint(cell, reason))
			}
			b.Times = append(b.Times, ns)
		case toDate, toClock:
			part := &q.date
			if u.action == toClock {
				part = &q.clock
			}
			*part = append((*part)[:0], cell...)
			if q.half = !q.half; q.half {
				continue
			}
			ns, reason := q.time.parseBoth(q.date, q.clock)
			if reason != "" {
				both := append(append(q.date, ' '), q.clock...)
				return q.fault(column, both, reason, q.time.hint(both, reason))
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
		case toDouble:
			v, reason, hint := q.double(q.s.styles[q.p.Doubles[u.at]], cell)
			if reason != "" {
				return q.fault(column, cell, reason, hint)
			}
			b.Doubles[len(b.Doubles)-len(q.p.Doubles)+u.at] = v
		case toNothing:
			if len(trim(cell)) > 0 {
				return &RowError{Value: clip(string(cell)), Reason: "stands behind the last column, where all rows before have nothing", Hint: hintSkip}
			}
		}
	}
	return nil
}

// ticker stores a row's ticker, which the column completes.
func (q *parser) ticker(column int, t []byte) *RowError {
	if reason := tickerFault(t); reason != "" {
		hint := hintSkip
		if !utf8.Valid(t) {
			hint = hintEncoding
		}
		return q.fault(column, t, "is a ticker that "+reason, hint)
	}
	q.out.batch.Tickers = append(q.out.batch.Tickers, q.code(t))
	return nil
}

// double reads a number as a float64.
func (q *parser) double(style numberStyle, cell []byte) (v float64, reason, hint string) {
	f, v, kind := missing, 0.0, notNumber
	if style.fast() {
		f, v, kind = parseNumber(cell)
	}
	if kind == notNumber {
		f, v, kind, reason = style.read(&q.digits, cell)
	}
	switch kind {
	case inexact:
		return v, "", ""
	case overflow:
		return 0, reasonOverflow, "scale the column"
	case blank, nonFinite:
		return math.NaN(), "", ""
	case notNumber:
		return 0, reason, hintNumber(reason)
	}
	return float64(f), "", ""
}

// number reads a float or mask cell.
func (q *parser) number(cell []byte, u use) (f float32, reason, hint string) {
	style := &q.style[u.at]
	f, v, kind := missing, 0.0, notNumber
	if style.fast() {
		f, v, kind = parseNumber(cell)
	}
	if kind == notNumber {
		f, v, kind, reason = style.read(&q.digits, cell)
	}
	st := &q.out.stats[u.at]
	switch kind {
	case inexact:
		st.inexact(f, v)
	case overflow:
		return 0, reasonOverflow, hintOverflow
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
			return 0, badNumber, "read the column as a mask with --mask"
		}
		return 0, reason, hintNumber(reason)
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
	if name := q.layout.names[column]; string(trim(cell)) == name {
		reason, hint = "is the column's name: the header comes again", "leave such rows out with --on-error skip"
	}
	return &RowError{Column: q.layout.names[column], Value: clip(string(cell)), Reason: reason, Hint: hint}
}

// ragged is the error of a row without quotes if it has another number of cells
// than it should, else nil.
func (q *parser) ragged(row []byte) *RowError {
	n := bytes.Count(row, []byte{q.text.format.comma}) + 1
	if n == len(q.text.fields) {
		return nil
	}
	return q.text.format.ragged(string(row), n, len(q.fields))
}
