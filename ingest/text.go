package ingest

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// textFormat is a text of lines of cells.
type textFormat struct {
	dialect
	raw   string // the text up to the first row, as rewritten
	scale []int  // per column, the power of ten that its numbers are stored times; nil: of none
}

// sampleText reads the header and first rows of one file. It reads into buf and
// returns it for the next.
func sampleText(m *sample, src Source, o *Options, buf []byte) ([]byte, error) {
	d, err := o.Text.resolve()
	if err != nil {
		return buf, err
	}
	f, err := open(src, d.asked, nil)
	if err != nil {
		return buf, err
	}
	defer f.Close()
	d.encoding = f.encoding
	buf = buf[:0]
	for size := sampleSize; ; size *= 4 {
		buf = slices.Grow(buf, size+1-len(buf))
		n, err := io.ReadFull(f, buf[len(buf):size])
		buf = buf[:len(buf)+n]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return buf, err
		}
		err = m.parseText(src.Path, buf, last, d)
		// A long header or long rows need more of the file.
		if err == nil && m.rows == 0 && !last && size < chunkSize {
			continue
		}
		if err == nil && m.layout == nil && !last {
			err = errLongRow(src.Path, 1)
		}
		m.whole = last
		return buf, err
	}
}

// parseText samples the first bytes of a file, which last says is all of it.
func (m *sample) parseText(path string, b []byte, last bool, d dialect) error {
	if bytes.IndexByte(b, 0) >= 0 {
		return &UnusableError{Path: path, Reason: "looks like a binary file: it holds a NUL byte", Hint: "convert it to CSV first"}
	}
	if bytes.IndexByte(b, '\n') < 0 {
		if !last && len(b) < chunkSize {
			return nil
		}
		d.cr = bytes.IndexByte(b, '\r') >= 0
	}
	if d.comma == 0 {
		d.comma = d.sniff(b)
	}
	text := b
	if d.rewrites() {
		var err error
		if text, err = io.ReadAll(newRewriter(bytes.NewReader(b), &d, path)); err != nil && last {
			return err
		}
	}
	if !last {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	if len(bytes.TrimLeft(text, "\r\n")) == 0 {
		return nil
	}
	names, unnamed, raw, err := d.head(path, text)
	if err != nil || names == nil {
		return err
	}
	h := &textFormat{dialect: d, raw: string(text[:raw]), scale: d.preset.scales(names)}
	text = text[raw:]
	if !last {
		text = text[:lastRow(text)]
		if len(text) == 0 && len(b) < chunkSize {
			return nil
		}
	}
	m.init(&layout{format: h, key: fmt.Sprintf("%s, %d\x00%s", &d, len(names), h.raw), names: names})
	for i := range names {
		m.columns[i].Unnamed = unnamed[i]
		m.columns[i].Unused = d.preset != nil && slices.Contains(d.preset.unused, names[i])
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord = rune(h.comma), -1
	lines := strings.Count(h.raw, "\n")
	shapes := make([]timeFormat, len(names))
	var one string       // first cell of the first row
	var first, cells int // the line of that row, and its cells
	ragged := true       // no sampled row has as many cells as it should
	for m.rows < m.most {
		rec, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return quoteError(path, int64(lines), err)
		}
		line, _ := r.FieldPos(0)
		line += lines
		if m.rows == 0 {
			one, first, cells = rec[0], line, len(rec)
		}
		ragged = ragged && len(rec) != h.width(len(names))
		for i := range min(len(names), len(rec)) {
			m.look(i, cell{text: rec[i], path: path, line: int64(line)}, &shapes[i])
		}
		m.rows++
	}
	m.constant = nil
	if m.rows > 0 && ragged {
		e := h.ragged(one, cells, len(names))
		e.Path, e.Line = path, int64(first)
		e.Hint = "skip lines before the header with --skip-lines, or give it a name for each cell"
		if h.names != nil {
			e.Hint = "give a name for each cell"
		}
		return e
	}
	return nil
}

// width is how many cells a row has.
func (h *textFormat) width(columns int) int { return columns + h.extra }

// ragged is the error of a row, of which text is the first cell, with another
// number of cells than it should have.
func (h *textFormat) ragged(text string, cells, columns int) *RowError {
	whose := "the header has"
	switch {
	case h.names == nil:
	case h.preset != nil:
		whose = "preset " + h.preset.Name + " has"
	default:
		whose = "the names given are"
	}
	if cells > 1 {
		text = "" // it says nothing of the rest
	}
	return &RowError{Value: clip(text), Reason: fmt.Sprintf("has %s, while %s %d", count(cells, "cell"), whose, h.width(columns)), Hint: hintSkip}
}

// look takes one cell into account.
func (m *sample) look(i int, one cell, shape *timeFormat) {
	c := &m.columns[i]
	if m.rows == 0 {
		m.constant[i] = strings.Clone(one.text)
	}
	c.Constant = c.Constant && one.text != "" && one.text == m.constant[i]
	of, lettered := Float, false
	if b := trim([]byte(one.text)); isDecimal(b) {
		m.styles[i].add(b)
	} else {
		if missingKind(b) != notNumber {
			return
		}
		of = Text
		if _, reason := shape.scan(b); shape.family != noFamily && reason == "" {
			of = Time
		} else {
			g := shapeOf(b)
			if shape.family == noFamily {
				*shape = g
			}
			if g.family != noFamily && shape.sameShape(&g) {
				of = Time
			}
		}
		if of == Text {
			var number bool
			if number, lettered = m.styles[i].add(b); number && !lettered {
				of = Float
			}
		}
	}
	one.text = clip(one.text)
	if len(m.cells[i]) < m.keep {
		m.cells[i] = append(m.cells[i], one)
	}
	switch {
	case of == Float:
		m.numbers[i]++
	case !lettered: // what 5M is the others tell
		m.numbers[i]--
	}
	if c.Kind == Empty {
		c.Kind = of
	} else if c.Kind != of {
		c.Kind = Text
	}
	if c.Kind == Text && of != Float && c.Example == "" {
		c.Example = one.text
	}
}

// columnNames checks and completes the names in a header.
func columnNames(path string, line int, rec []string) ([]string, error) {
	names := make([]string, len(rec))
	seen := make(map[string]int, len(rec))
	data, angled, numbers, dates := true, true, 0, 0
	var twice error
	for i, name := range rec {
		name = strings.Clone(strings.TrimSpace(name))
		if !utf8.ValidString(name) {
			return nil, &UnusableError{Path: path, Reason: fmt.Sprintf("the name of column %d is not UTF-8: %q", i+1, clip(name)), Hint: hintEncoding}
		}
		switch {
		case isDecimal([]byte(name)):
			numbers++
		case shapeOf([]byte(name)).family != noFamily:
			dates++
		case name != "":
			data = false
		}
		angled = angled && len(name) > 2 && name[0] == '<' && name[len(name)-1] == '>'
		if name == "" {
			name = fmt.Sprintf("column %d", i+1)
		}
		if j, ok := seen[name]; ok && twice == nil {
			twice = &UnusableError{Path: path, Reason: fmt.Sprintf("columns %d and %d are both named %q", j+1, i+1, clip(name)),
				Hint: "rename one of them in the header, or name all with --skip-lines and --names"}
		}
		seen[name] = i
		names[i] = name
	}
	if numbers+dates > 0 && data || numbers > 0 && dates > 0 {
		return nil, &UnusableError{Path: path, Reason: fmt.Sprintf("has no header: line %d looks like a row of data: %s", line, quoteAll(rec)),
			Hint: "name the columns with --names A,B,…, or what wrote the file with --preset (" + strings.Join(PresetNames(), ", ") + ")"}
	}
	if twice != nil {
		return nil, twice
	}
	if angled {
		for i, name := range names {
			names[i] = name[1 : len(name)-1]
		}
	}
	return names, nil
}

const (
	reasonQuote = "has a quoted cell that does not end in a quote before the separator"
	hintQuote   = "look for a quote that is missing or not doubled"
)

// quoteError turns an error of encoding/csv in text whose first line is line+1
// into one of ours.
func quoteError(path string, line int64, err error) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return &UnusableError{Path: path, Reason: "cannot be read as CSV", Err: err}
	}
	e := &RowError{Path: path, Line: line + int64(p.StartLine)}
	switch {
	case errors.Is(err, csv.ErrBareQuote):
		e.Reason, e.Hint = "has a quote inside a cell that does not begin with one", `quote the whole cell and double the quote: "5"" pipe"`
	default:
		e.Reason, e.Hint = reasonQuote, hintQuote
	}
	return e
}

// textUnit is the text of a unit.
type textUnit struct {
	line int64  // 1-based line of the first byte
	text []byte // whole rows, the last of which ends in LF
	buf  []byte
}

func (h *textFormat) split(x *splitter) bool {
	in, err := open(x.src, h.asked, x.read)
	if err != nil {
		return x.fail(err)
	}
	defer in.Close()
	r := io.Reader(in)
	if h.rewrites() {
		r = newRewriter(in, &h.dialect, x.path)
	}
	line, first := int64(1), true
	for tail := x.tail[:0]; ; x.tail = tail {
		u := x.next()
		if u == nil {
			return false
		}
		c := &u.text
		c.text = nil
		fail := func(err error) bool {
			u.err = err
			x.send(u)
			return false
		}
		if c.buf == nil {
			c.buf = make([]byte, x.chunk+1+slack) // with room for a missing last LF
		}
		n := copy(c.buf, tail)
		// Chunks are filled, so that where they end depends on the text only.
		m, err := io.ReadFull(r, c.buf[n:x.chunk])
		text := c.buf[:n+m]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return fail(err) // what was read before is not looked at: the file is damaged
		}
		head := first
		if first {
			first = false
			if !bytes.HasPrefix(text, []byte(h.raw)) {
				return fail(&UnusableError{Path: x.path, Reason: "was changed while it was being read", Hint: "try again"})
			}
			text = text[len(h.raw):]
			line += int64(strings.Count(h.raw, "\n"))
		}
		rows := len(text)
		if !last {
			if rows = lastRow(text); rows == 0 && !head {
				return fail(errLongRow(x.path, line))
			}
		}
		tail = append(tail[:0], text[rows:]...)
		text = text[:rows]
		c.line = line
		line += int64(bytes.Count(text, []byte("\n")))
		if n := len(text); n > 0 && text[n-1] != '\n' {
			text = append(text, '\n') // within c.buf
		}
		c.text = text
		if !x.send(u) {
			return false
		}
		if last {
			return true
		}
	}
}

// lastRow is the length of the whole rows at the beginning of b, which begins
// with a row: up to the last LF outside quotes.
func lastRow(b []byte) int {
	quotes := bytes.Count(b, []byte(`"`))
	for n := len(b); ; {
		i := bytes.LastIndexByte(b[:n], '\n')
		if i < 0 {
			return 0
		}
		if quotes > 0 {
			quotes -= bytes.Count(b[i:n], []byte(`"`))
		}
		if quotes&1 == 0 {
			return i + 1
		}
		n = i
	}
}

func errLongRow(path string, line int64) error {
	return &RowError{Path: path, Line: line, Reason: fmt.Sprintf("no row ends within %d bytes, the longest row that is read", chunkSize),
		Hint: "look for a quote that is not closed, or for a file that is not CSV"}
}
