package ingest

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// RowError is a row that cannot be read.
type RowError struct {
	Path   string
	Line   int64  // 1-based line of the row's first byte, or row if Row is set
	Row    bool   // the source has no lines
	Column string // name of the column; "" when the row as a whole is at fault
	Value  string // the cell's text, shortened; "" when the row as a whole is at fault, unless it is but one cell
	Reason string // what is wrong
	Hint   string // what to try
}

// Error gives path:line or path: row N, column, value, reason and hint.
func (e *RowError) Error() string {
	var b strings.Builder
	b.WriteString(place(e.Path, e.Line, e.Row) + ": ")
	if e.Column != "" {
		fmt.Fprintf(&b, "column %q: ", e.Column)
	}
	if e.Value != "" {
		fmt.Fprintf(&b, "%q ", e.Value)
	}
	b.WriteString(e.Reason)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// place names a row.
func place(path string, line int64, row bool) string {
	if row {
		return fmt.Sprintf("%s: row %d", path, line)
	}
	return fmt.Sprintf("%s:%d", path, line)
}

const (
	reasonOverflow = "is larger than any float32 (3.4e38)"
	hintOverflow   = "scale the column, or leave it out with --columns"
)

// UnusableError is an input that cannot be read at all: not CSV, damaged, with
// a header that does not fit, or without a single row.
type UnusableError struct {
	Path   string // the file, folder or pattern; "" when the inputs together are at fault
	Reason string // what is wrong
	Hint   string // what to try
	Err    error  // the cause, if there is one
}

// Error gives path, reason, cause and hint.
func (e *UnusableError) Error() string {
	var b strings.Builder
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Reason)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *UnusableError) Unwrap() error { return e.Err }

// missingError says in full that something does not exist; it matches
// fs.ErrNotExist.
type missingError string

func (e missingError) Error() string { return string(e) }

func (missingError) Unwrap() error { return fs.ErrNotExist }

// clip shortens text for an error.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// quoteAll lists names for an error, at most eight of them.
func quoteAll(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i == 8 {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(clip(n)))
	}
	return b.String()
}
