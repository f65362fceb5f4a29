package ingest

import (
	"bytes"
	"io"
)

// rewriter turns a text of another dialect into one of RFC 4180, line for line,
// so that all the rest of the package knows only that. It holds one cell and some
// buffers.
type rewriter struct {
	r    io.Reader
	d    *dialect
	path string

	in, buf []byte // what is read and not looked at, and the buffer it is in
	out     []byte // what is rewritten and not handed on
	off     int    // of out
	err     error  // what ends the text

	state  rewriting
	cell   []byte
	any    bool  // the line has something on it
	line   int64 // 1-based
	opened int64 // line on which the last quote stood
}

// rewriting is where in a line a rewriter is.
type rewriting uint8

const (
	lineBegins rewriting = iota
	cellBegins           // behind a separator
	inCell
	inQuotes
	behindQuotes // the cell is complete, or the quote was the first of two
	inComment
	escaped       // behind the escape character
	escapedQuoted // the same within quotes
)

func newRewriter(r io.Reader, d *dialect, path string) *rewriter {
	return &rewriter{r: r, d: d, path: path, buf: make([]byte, 64<<10), line: 1}
}

func (w *rewriter) Read(b []byte) (int, error) {
	for w.off == len(w.out) {
		if w.err != nil {
			return 0, w.err
		}
		w.out, w.off = w.out[:0], 0
		n, err := w.r.Read(w.buf)
		w.in = w.buf[:n]
		if w.err = w.rewrite(); w.err == nil && err != nil {
			if w.err = err; err == io.EOF {
				w.err = w.end()
			}
		}
	}
	n := copy(b, w.out[w.off:])
	w.off += n
	return n, nil
}

// rewrite takes in all of w.in.
func (w *rewriter) rewrite() error {
	d := w.d
	comma := d.comma
	for _, c := range w.in {
		if d.cr && c == '\r' {
			c = '\n'
		}
	again:
		switch w.state {
		case lineBegins:
			if d.comment != 0 && c == d.comment {
				w.state = inComment
				continue
			}
			w.any = false
			fallthrough
		case cellBegins:
			blank := d.spaces && (c == ' ' || c == '\t')
			switch {
			case blank:
				if w.state == lineBegins { // what is blank before the first cell separates nothing
					w.state = cellBegins
				}
				continue
			case c == '\n' && (d.spaces || w.state == lineBegins):
				w.newLine()
				continue
			}
			if w.any {
				w.out = append(w.out, comma)
			}
			w.any = true
			if d.quote != 0 && c == d.quote {
				w.state, w.opened = inQuotes, w.line
				continue
			}
			w.state = inCell
			goto again
		case inCell:
			switch {
			case c == '\n':
				w.cell = bytes.TrimSuffix(w.cell, []byte("\r"))
				w.emit()
				w.newLine()
			case c == comma && !d.spaces, d.spaces && (c == ' ' || c == '\t'):
				w.emit()
				w.state = cellBegins
			case d.escape != 0 && c == d.escape:
				w.state = escaped
			default:
				w.cell = append(w.cell, c)
			}
		case inQuotes:
			switch {
			case c == d.quote:
				w.state = behindQuotes
			case d.escape != 0 && c == d.escape:
				w.state = escapedQuoted
			default:
				if c == '\n' {
					w.line++
				}
				w.cell = append(w.cell, c)
			}
		case behindQuotes:
			switch {
			case c == d.quote:
				w.cell = append(w.cell, c)
				w.state = inQuotes
			case c == '\r':
			case c == '\n':
				w.emit()
				w.newLine()
			case c == comma && !d.spaces, d.spaces && (c == ' ' || c == '\t'):
				w.emit()
				w.state = cellBegins
			default:
				return &RowError{Path: w.path, Line: w.opened, Reason: reasonQuote, Hint: hintQuote}
			}
		case inComment:
			if c == '\n' {
				w.newLine()
			}
		case escaped, escapedQuoted:
			if c == 'N' && len(w.cell) == 0 { // \N is a missing cell
				w.cell = append(w.cell, d.escape)
			}
			if c == '\n' {
				w.line++
			}
			w.cell = append(w.cell, c)
			if w.state == escaped {
				w.state = inCell
			} else {
				w.state = inQuotes
			}
		}
		if len(w.cell) > chunkSize {
			return errLongRow(w.path, w.line)
		}
	}
	return nil
}

// emit hands the cell on, quoted if it needs to be.
func (w *rewriter) emit() {
	if bytes.IndexByte(w.cell, '"') < 0 && bytes.IndexByte(w.cell, w.d.comma) < 0 && !bytes.ContainsAny(w.cell, "\r\n") {
		w.out = append(w.out, w.cell...)
	} else {
		w.out = append(w.out, '"')
		w.out = append(w.out, bytes.ReplaceAll(w.cell, []byte(`"`), []byte(`""`))...)
		w.out = append(w.out, '"')
	}
	w.cell = w.cell[:0]
}

func (w *rewriter) newLine() {
	w.out = append(w.out, '\n')
	w.state, w.line = lineBegins, w.line+1
}

// end completes the last line.
func (w *rewriter) end() error {
	switch w.state {
	case inQuotes, escapedQuoted:
		return &RowError{Path: w.path, Line: w.opened, Reason: reasonQuote, Hint: hintQuote}
	case cellBegins:
		if w.any && !w.d.spaces {
			w.out = append(w.out, w.d.comma)
		}
	case escaped:
		w.cell = append(w.cell, w.d.escape)
		w.emit()
	case inCell:
		w.cell = bytes.TrimSuffix(w.cell, []byte("\r"))
		w.emit()
	case behindQuotes:
		w.emit()
	}
	return io.EOF
}
