package format

import (
	"errors"
	"fmt"
	"strings"
)

// Code is one of the error codes of SPEC section 12. It is an error, so that errors.Is(err, format.Truncated) asks for
// a specific cause.
type Code string

// The codes, in the order of the specification's table.
const (
	NotWstore       Code = "not_wstore"
	Truncated       Code = "truncated"
	SlotDamaged     Code = "slot_damaged"
	SlotInvalid     Code = "slot_invalid"
	Unsupported     Code = "unsupported"
	Trailing        Code = "trailing"
	CatalogChecksum Code = "catalog_checksum"
	CatalogInvalid  Code = "catalog_invalid"
	SectionChecksum Code = "section_checksum"
	SectionInvalid  Code = "section_invalid"
	LayoutInvalid   Code = "layout"
	PaddingNotZero  Code = "padding"
	DataChecksum    Code = "data_checksum"
	CalendarOrder   Code = "calendar_order"
	CellInvalid     Code = "cell_invalid"
	IndexMismatch   Code = "index_mismatch"
	DigestMismatch  Code = "digest_mismatch"
)

var meanings = map[Code]string{
	NotWstore:       "not a wstore file",
	Truncated:       "the file is shorter than it says",
	SlotDamaged:     "a commit slot is damaged",
	SlotInvalid:     "a commit slot breaks a rule",
	Unsupported:     "the file needs a feature that this version lacks",
	Trailing:        "the file is longer than it says",
	CatalogChecksum: "the catalog is damaged",
	CatalogInvalid:  "the catalog breaks a rule",
	SectionChecksum: "a section is damaged",
	SectionInvalid:  "a section breaks a rule",
	LayoutInvalid:   "an offset is not where it must be",
	PaddingNotZero:  "padding is not zero",
	DataChecksum:    "data are damaged",
	CalendarOrder:   "times are not strictly increasing",
	CellInvalid:     "a cell holds what its column can't",
	IndexMismatch:   "the window index is not that of the data",
	DigestMismatch:  "the content digest is not that of the content",
}

// Error returns what the code means.
func (c Code) Error() string { return meanings[c] }

// Codes returns all codes in the order of the specification.
func Codes() []Code {
	return []Code{
		NotWstore, Truncated, SlotDamaged, SlotInvalid, Unsupported, Trailing, CatalogChecksum, CatalogInvalid,
		SectionChecksum, SectionInvalid, LayoutInvalid, PaddingNotZero, DataChecksum, CalendarOrder, CellInvalid,
		IndexMismatch, DigestMismatch,
	}
}

var (
	// ErrCorrupt is matched by every CorruptError.
	ErrCorrupt = errors.New("wstore: corrupt file")
	// ErrUnsupported is matched by every UnsupportedError.
	ErrUnsupported = errors.New("wstore: unsupported feature")
)

// CorruptError says what is wrong with a file, and where. It matches ErrCorrupt and its Code.
type CorruptError struct {
	Path    string // empty until a layer that knows it fills it in
	Section string // slot 0, catalog, a section's tag, or a block in words; may be empty
	Offset  int64  // absolute byte in the file, or -1
	Code    Code
	Detail  string
}

func (e *CorruptError) Error() string {
	var b strings.Builder
	if e.Path != "" {
		fmt.Fprintf(&b, "%s: ", e.Path)
	}
	b.WriteString(e.Code.Error())
	switch {
	case e.Section != "" && e.Offset >= 0:
		fmt.Fprintf(&b, " (%s, byte %d)", e.Section, e.Offset)
	case e.Section != "":
		fmt.Fprintf(&b, " (%s)", e.Section)
	case e.Offset >= 0:
		fmt.Fprintf(&b, " (byte %d)", e.Offset)
	}
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	return b.String()
}

// Unwrap makes the error match the umbrella and the specific cause.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Code} }

// UnsupportedError names the feature that a file needs and this package lacks. It matches ErrUnsupported and Unsupported.
type UnsupportedError struct {
	Path    string
	Feature string // such as `incompat bit 0 (open)` or `section ABCD`
}

func (e *UnsupportedError) Error() string {
	s := "the file needs " + e.Feature + ", which this version does not support; a newer wstore may"
	if e.Path != "" {
		return e.Path + ": " + s
	}
	return s
}

// Unwrap makes the error match the umbrella and the code.
func (e *UnsupportedError) Unwrap() []error { return []error{ErrUnsupported, Unsupported} }

// WithPath returns err with the path filled in where it is one of this package's errors, and err itself otherwise.
func WithPath(err error, path string) error {
	var c *CorruptError
	if errors.As(err, &c) && c.Path == "" {
		d := *c
		d.Path = path
		return &d
	}
	var u *UnsupportedError
	if errors.As(err, &u) && u.Path == "" {
		return &UnsupportedError{Path: path, Feature: u.Feature}
	}
	return err
}

func corrupt(code Code, section string, off int64, detail string, args ...any) *CorruptError {
	return &CorruptError{Section: section, Offset: off, Code: code, Detail: fmt.Sprintf(detail, args...)}
}
