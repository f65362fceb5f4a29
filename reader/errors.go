package reader

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrClosed is matched by what is done with a closed store.
	ErrClosed = errors.New("wstore: the store is closed")
	// ErrNotFound is matched by a NotFoundError.
	ErrNotFound = errors.New("wstore: not found")
	// ErrQuery is matched by a query that can't be: what would be right is in the text.
	ErrQuery = errors.New("wstore: bad query")
	// ErrSpans is matched when a view is asked of columns that stand in several groups; Gather copies such.
	ErrSpans = errors.New("wstore: the columns span groups")
)

// NotFoundError says that a store has nothing of that kind and name. It matches ErrNotFound.
type NotFoundError struct {
	Path string
	Kind string // ticker, column, group, break set or attribute
	Name string
	Near []string // names that are alike, best first
}

func (e *NotFoundError) Error() string {
	s := fmt.Sprintf("no %s %q in %s", e.Kind, e.Name, e.Path)
	if len(e.Near) > 0 {
		quoted := make([]string, len(e.Near)) // names may hold anything
		for i, n := range e.Near {
			quoted[i] = strconv.Quote(n)
		}
		s += "; did you mean " + strings.Join(quoted, ", ") + "?"
	}
	return s
}

// Unwrap makes the error match ErrNotFound.
func (e *NotFoundError) Unwrap() error { return ErrNotFound }

func badQuery(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrQuery, fmt.Sprintf(format, args...))
}
