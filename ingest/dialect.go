package ingest

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TextOptions say how texts are laid out. What is empty is found out from each
// text by itself.
type TextOptions struct {
	Encoding  string   `json:"encoding,omitempty"`   // of text that does not begin with a byte order mark, by its name on the web; "" is UTF-8, or UTF-16 where every second byte is NUL
	Delimiter string   `json:"delimiter,omitempty"`  // a character, tab, or space for runs of blanks
	Quote     string   `json:"quote,omitempty"`      // a character, or none; "" is a double quote
	Escape    string   `json:"escape,omitempty"`     // a character that takes the meaning from the next; "": there is none
	Comment   string   `json:"comment,omitempty"`    // a character; lines that begin with it are left out
	SkipLines int      `json:"skip_lines,omitempty"` // lines before the header, or before the first row if there are Names
	Names     []string `json:"names,omitempty"`      // of the columns; there is no header
	Preset    string   `json:"preset,omitempty"`     // one of Presets, whose choices stand where there is no other
}

// Check reports choices that are impossible.
func (o *TextOptions) Check() error {
	_, err := o.resolve()
	return err
}

// resolve returns what the options decide.
func (o *TextOptions) resolve() (d dialect, err error) {
	d = dialect{quote: '"', names: o.Names, skip: o.SkipLines, asked: o.Encoding}
	if o.Preset != "" {
		if d.preset, err = findPreset(o.Preset); err != nil {
			return d, err
		}
		if d.names == nil {
			d.names = d.preset.Names
		}
	}
	if o.Encoding != "" {
		if err := CheckEncoding(o.Encoding); err != nil {
			return d, err
		}
	}
	one := func(what, text string) byte {
		c, size := utf8.DecodeRuneInString(text)
		switch {
		case err != nil || text == "":
		case size != len(text) || c >= utf8.RuneSelf || strings.ContainsRune("\r\n\x00.+-", c), '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z':
			err = fmt.Errorf("%s %q; must be one ASCII character that is no letter, digit, point or sign", what, text)
		default:
			return text[0]
		}
		return 0
	}
	switch o.Delimiter {
	case "tab", `\t`:
		d.comma = '\t'
	case "space", " ":
		d.comma, d.spaces = '\t', true
	default:
		d.comma = one("delimiter", o.Delimiter)
	}
	if o.Quote == "none" {
		d.quote = 0
	} else if o.Quote != "" {
		d.quote = one("quote", o.Quote)
	}
	d.escape, d.comment = one("escape", o.Escape), one("comment", o.Comment)
	if err == nil {
		special := []byte{d.comma, d.quote, d.escape, d.comment}
		for i, c := range special {
			if c != 0 && slices.Contains(special[:i], c) {
				return d, fmt.Errorf("%q has two meanings; delimiter, quote, escape and comment must differ", c)
			}
		}
		seen := map[string]bool{}
		for _, n := range d.names {
			if n == "" || seen[n] {
				return d, fmt.Errorf("the column name %q is empty or given twice", n)
			}
			seen[n] = true
		}
	}
	if err == nil && d.skip < 0 {
		err = fmt.Errorf("%d lines to skip; must be 0 or more", d.skip)
	}
	return d, err
}

// dialect says how a text is laid out.
type dialect struct {
	asked    string // the encoding that was asked for
	encoding string // the one that was found, "" if it is UTF-8
	comma    byte   // 0: not known yet; as rewritten
	spaces   bool   // runs of blanks separate cells
	quote    byte   // 0: none
	escape   byte   // 0: none
	comment  byte   // 0: none
	cr       bool   // lines end in CR
	skip     int    // lines to skip
	names    []string
	preset   *Preset

	titles   int    // lines before the header that are no part of the table
	levels   int    // rows of the header
	rowNames bool   // the header has no name for the first cell of the rows
	trailing bool   // rows end with a comma that the header lacks, or the header with one that they lack
	extra    int    // cells behind the last column, which must be empty
	ticker   string // that the header names; "": none
}

// rewrites reports whether the text must be rewritten to be one of RFC 4180.
func (d *dialect) rewrites() bool {
	return d.spaces || d.quote != '"' || d.escape != 0 || d.comment != 0 || d.cr
}

// String says in one line what is not as in plain CSV, "" if nothing is.
func (d *dialect) String() string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(d.encoding != "", "%s", d.encoding)
	add(d.cr, "lines end in CR")
	if d.spaces {
		parts = append(parts, "cells separated by blanks")
	} else if d.comma != ',' {
		names := map[byte]string{'\t': "tabs", ';': "semicolons", '|': "bars", ':': "colons"}
		name, ok := names[d.comma]
		if !ok {
			name = fmt.Sprintf("%q", d.comma)
		}
		parts = append(parts, "cells separated by "+name)
	}
	add(d.quote == 0, "no quotes")
	add(d.quote != 0 && d.quote != '"', "quoted with %q", d.quote)
	add(d.escape != 0, "escaped with %q", d.escape)
	add(d.comment != 0, "lines that begin with %q left out", d.comment)
	add(d.titles > 0, "%s before the header left out", count(d.titles, "line"))
	add(d.levels > 1, "a header of %d rows", d.levels)
	if d.preset != nil {
		parts = append(parts, "no header: preset "+d.preset.Name)
	} else if d.names != nil {
		parts = append(parts, "no header: names given")
	}
	add(d.rowNames, "the first column has no name")
	add(d.trailing && d.extra > 0, "rows end with a separator")
	add(d.trailing && d.extra == 0, "the header ends with a separator")
	return strings.Join(parts, ", ")
}

const (
	headLines  = 32 // rows in which the header is looked for
	fewLines   = 4  // that are enough if all have the same width
	sniffLines = 16 // lines from which the delimiter is told
)

// delimiters are found out, the first of those that are as likely.
var delimiters = []byte{',', '\t', ';', '|'}

// sniff finds what separates the cells: the delimiter by which most cells of the
// first lines become numbers and dates.
func (d *dialect) sniff(text []byte) byte {
	if sep := excelSeparator(text); sep != 0 {
		return sep
	}
	// Count each one in every line, outside quotes.
	var counts [][4]int
	var lines [][]byte
	var n [4]int
	quoted, start := false, 0
	for i := 0; i < len(text) && len(lines) < sniffLines; i++ {
		switch c := text[i]; {
		case d.quote != 0 && c == d.quote && (quoted || i == start || bytes.IndexByte(delimiters, text[i-1]) >= 0):
			quoted = !quoted
		case quoted:
		case c == '\n' || d.cr && c == '\r' || i == len(text)-1:
			if k := bytes.IndexByte(delimiters, c); k >= 0 {
				n[k]++
			}
			if line := bytes.TrimRight(text[start:i+1], "\r\n"); len(line) > 0 {
				lines, counts = append(lines, line), append(counts, n)
			}
			n, start = [4]int{}, i+1
		default:
			if k := bytes.IndexByte(delimiters, c); k >= 0 {
				n[k]++
			}
		}
	}
	type score struct{ clean, lines int }
	best, bestScore := -1, score{-1, -1}
	likely := 0
	var usual, agreeing [4]int
	for k := range delimiters {
		usual[k], agreeing[k] = mode(len(counts), func(i int) int { return counts[i][k] })
		if usual[k] > 0 {
			likely++
		}
	}
	for k := range delimiters {
		if usual[k] == 0 {
			continue
		}
		s := score{lines: agreeing[k]}
		for i, line := range lines {
			if likely > 1 && counts[i][k] == usual[k] {
				for cell := range bytes.SplitSeq(line, delimiters[k:k+1]) {
					if cell = trim(bytes.Trim(cell, `"`)); isDecimal(cell) || delimiters[k] != ',' && isDecimal(bytes.Replace(cell, []byte(","), []byte("."), 1)) ||
						shapeOf(cell).family != noFamily {
						s.clean++
					}
				}
			}
		}
		if s.clean > bestScore.clean || s.clean == bestScore.clean && s.lines > bestScore.lines {
			best, bestScore = k, s
		}
	}
	if best >= 0 {
		return delimiters[best]
	}
	for k, c := range delimiters {
		if len(counts) > 0 && counts[0][k] > 0 {
			return c
		}
	}
	return ','
}

// usualWidth is how many cells rows have, those below a header.
func usualWidth(rows []record) int {
	if len(rows) == 0 {
		return 0
	}
	width, _ := mode(len(rows)/2+1, func(i int) int { return len(rows[len(rows)-1-i].cells) })
	return width
}

// mode is the most frequent of n numbers, the greatest of several, and how often
// it comes.
func mode(n int, at func(i int) int) (value, times int) {
	all := make([]int, n)
	for i := range all {
		all[i] = at(i)
	}
	slices.Sort(all)
	for from, to := 0, 0; from < n; from = to {
		for to < n && all[to] == all[from] {
			to++
		}
		if to-from >= times {
			value, times = all[from], to-from
		}
	}
	return value, times
}

// excelSeparator is that of a first line such as sep=; which Excel understands,
// or 0.
func excelSeparator(text []byte) byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.Trim(bytes.TrimRight(line, "\r"), `"`)
	if len(line) == 5 && strings.EqualFold(string(line[:4]), "sep=") && strings.IndexByte(",;|\t:", line[4]) >= 0 {
		return line[4]
	}
	return 0
}

// record is a row near the beginning of a text.
type record struct {
	cells []string
	from  int // of text, at which it begins, or a blank line before it
	to    int // the next one
	line  int // 1-based
}

// records returns the first rows, whatever their quoting.
func (d *dialect) records(text []byte, most int) (out []record) {
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes = rune(d.comma), -1, true
	for len(out) < most {
		from := int(r.InputOffset())
		cells, err := r.Read()
		if err != nil {
			break
		}
		line, _ := r.FieldPos(0)
		out = append(out, record{cells, from, int(r.InputOffset()), line})
	}
	return out
}

// head finds the header in the first rows of a text, and returns the names of the
// columns, with the text up to the first row.
func (d *dialect) head(path string, text []byte) (names []string, unnamed []bool, raw int, err error) {
	skip, at := d.skip, 0
	if skip == 0 && excelSeparator(text) != 0 {
		skip = 1
	}
	for range skip {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return nil, nil, len(text), nil
		}
		at += n + 1
	}
	all := d.records(text[at:], fewLines)
	if slices.ContainsFunc(all, func(r record) bool {
		return len(r.cells) == 1 || len(r.cells) != len(all[0].cells) || r.cells[0] != "" && r.cells[0][0] == '#'
	}) {
		all = d.records(text[at:], headLines)
	}
	if d.names != nil {
		if d.preset != nil {
			lacks := len(d.names) - usualWidth(all)
			if lacks > 0 && lacks <= d.preset.optional && len(d.names) == len(d.preset.Names) {
				d.names = d.names[:len(d.names)-lacks]
			}
		}
		return d.names, make([]bool, len(d.names)), at, nil
	}
	lines := bytes.Count(text[:at], []byte("\n"))
	// Lines that begin with # are no part of the table, but the last may be the header.
	rows := all
	for len(rows) > 0 && strings.HasPrefix(rows[0].cells[0], "#") {
		rows = rows[1:]
	}
	if len(rows) == 0 {
		rows = all
	}
	if len(rows) == 0 {
		return nil, nil, len(text), nil
	}
	width := usualWidth(rows)
	if before := len(all) - len(rows); before > 0 && holdsData(rows[0].cells) && len(all[before-1].cells) == width {
		rows = all[before-1:]
		rows[0].cells = slices.Clone(rows[0].cells)
		rows[0].cells[0] = strings.TrimLeft(rows[0].cells[0], "# ")
	}
	h := 0
	if !d.fits(rows, 0, width) {
		for i := 1; i < len(rows); i++ {
			if likeHeader(rows[i].cells) && d.fits(rows, i, width) {
				h = i
				break
			}
		}
		d.fits(rows, h, width) // of the header that was found
	}
	for line := range bytes.SplitSeq(text[at:at+rows[h].from], []byte("\n")) {
		if len(bytes.TrimRight(line, "\r")) > 0 {
			d.titles++
		}
	}
	cells := rows[h].cells
	d.levels = 1
	raw = at + rows[h].to
	if h+2 < len(rows) && d.stacked(rows[h:h+3]) {
		if cells, err = d.level(path, rows[h:h+3]); err != nil {
			return nil, nil, 0, err
		}
		d.levels, raw = 3, at+rows[h+2].to
	}
	if d.trailing && d.extra == 0 {
		cells = cells[:len(cells)-1]
	}
	if d.rowNames {
		cells = slices.Insert(slices.Clone(cells), 0, "")
	}
	names, err = columnNames(path, lines+rows[h].line, cells)
	unnamed = make([]bool, len(cells))
	for i, c := range cells {
		unnamed[i] = strings.TrimSpace(c) == ""
	}
	return names, unnamed, raw, err
}

// fits reports whether row i may be the header of the table of such a width below
// it, and notes in what way.
func (d *dialect) fits(rows []record, i, width int) bool {
	d.rowNames, d.trailing, d.extra = false, false, 0
	cells := rows[i].cells
	below := rows[i+1:]
	switch {
	case len(cells) == width:
		return true
	case len(below) == 0 || !holdsData(below[0].cells):
		return false
	case len(cells) == width+1 && cells[width] == "":
		d.trailing = true
		return true
	case len(cells) != width-1:
		return false
	}
	empty := true
	for _, r := range below {
		if len(r.cells) == width {
			empty = empty && r.cells[width-1] == ""
		}
	}
	if empty {
		d.trailing, d.extra = true, 1
		return true
	}
	d.rowNames = namesRows(cells, below, width)
	return d.rowNames
}

// values are parts of usual names, in lower case, of columns that hold no times.
var values = []string{"open", "high", "low", "close", "price", "volume", "adj", "bid", "ask", "last", "ret"}

// namesRows reports whether it is the first cell of rows, and not another, that a
// header of one name fewer does not name: cells named like times are times, and
// the first one is a number that goes up by one, a word, or the time before a
// column with a usual name for values.
func namesRows(names []string, rows []record, width int) bool {
	before := math.NaN()
	for _, r := range rows {
		if len(r.cells) != width {
			continue
		}
		for k, name := range names {
			if isTimeName(name) && shapeOf([]byte(r.cells[k+1])).family == noFamily {
				return false
			}
		}
		first := trim([]byte(r.cells[0]))
		switch v, err := strconv.ParseFloat(string(first), 64); {
		case err == nil:
			if v != before+1 && before == before {
				return false
			}
			before = v
		case shapeOf(first).family != noFamily:
			usual := func(part string) bool { return strings.Contains(strings.ToLower(names[0]), part) }
			if !slices.ContainsFunc(values, usual) {
				return false
			}
		}
	}
	return true
}

// holdsData reports whether a row has numbers or dates.
func holdsData(cells []string) bool {
	return slices.ContainsFunc(cells, func(c string) bool {
		b := trim([]byte(c))
		return isDecimal(b) || shapeOf(b).family != noFamily
	})
}

// likeHeader reports whether a row below others may be the header: names, and
// nothing else.
func likeHeader(cells []string) bool {
	seen := map[string]bool{}
	for i, c := range cells {
		if c == "" && i > 0 && i < len(cells)-1 || seen[c] {
			return false
		}
		seen[c] = true
	}
	return len(cells) > 1 && !holdsData(cells)
}

// stacked reports whether three rows are a header as pandas writes one of two
// levels: names, more names, and the index's name alone.
func (d *dialect) stacked(rows []record) bool {
	width := len(rows[0].cells)
	if width < 2 || len(rows[1].cells) != width || len(rows[2].cells) != width || rows[2].cells[0] == "" || holdsData(rows[1].cells) {
		return false
	}
	return !slices.ContainsFunc(rows[2].cells[1:], func(c string) bool { return c != "" })
}

// level returns the names of the columns in a header of two levels, of which one
// is the ticker.
func (d *dialect) level(path string, rows []record) ([]string, error) {
	same := func(cells []string) bool {
		return !slices.ContainsFunc(cells, func(c string) bool { return c != cells[0] })
	}
	names, tickers := rows[0].cells[1:], rows[1].cells[1:]
	if strings.EqualFold(rows[0].cells[0], "ticker") || !strings.EqualFold(rows[1].cells[0], "ticker") && !same(tickers) {
		names, tickers = tickers, names
	}
	if !same(tickers) {
		return nil, &UnusableError{Path: path, Reason: fmt.Sprintf("its header of %d rows names several tickers side by side, such as %s", len(rows), quoteAll(slices.Compact(slices.Sorted(slices.Values(tickers))))),
			Hint: `write one file for each, or with pandas df.stack("Ticker").to_csv(...) and --ticker Ticker`}
	}
	d.ticker = strings.TrimSpace(tickers[0])
	return append([]string{rows[2].cells[0]}, names...), nil
}

// Ticker is that of a source's rows where no column names it: the one that the
// header or, with a preset, the file's name tells, or else Source.Name.
func (s *Survey) Ticker(source int) string {
	name := s.Sources[source].Name()
	if h := s.text(source); h != nil {
		return cmp.Or(h.ticker, h.preset.ticker(name), name)
	}
	return name
}

// Dialect says in one line in what a source is not plain CSV in UTF-8, such as
// "cells separated by semicolons, 1 line before the header left out"; "" if it is.
func (s *Survey) Dialect(source int) string {
	if h := s.text(source); h != nil {
		return h.String()
	}
	return ""
}

// text is a source's format, or nil if it is none of text.
func (s *Survey) text(source int) *textFormat {
	if l := s.layouts[source]; l != nil {
		h, _ := l.format.(*textFormat)
		return h
	}
	return nil
}

// text reports whether the layout is that of a text.
func (l *layout) text() bool {
	_, ok := l.format.(*textFormat)
	return ok
}
