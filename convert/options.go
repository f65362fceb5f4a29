package convert

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// OnDuplicate says what becomes of rows of one ticker that have the same time.
type OnDuplicate string

// The choices. Rows stand in the order of the inputs' paths, then lines.
const (
	DuplicateError OnDuplicate = "error"
	DuplicateFirst OnDuplicate = "first"
	DuplicateLast  OnDuplicate = "last"
)

// Options say what is converted and how. Inputs and Output are needed, the rest has defaults.
type Options struct {
	Inputs []string // files, folders and globs
	Output string

	Ticker     string // column of the ticker; empty: the files' names
	Time       string // column of the time; empty: found by its name or content
	TimeFormat string // empty: found out
	Zone       string // IANA name of the zone of times without one; empty: as they are
	Columns    []string
	Targets    []string // names, each optionally with a reach: `ret_20:20`, `ret:5d`, `ret:end_column`
	Groups     []Group
	Masks      []string // columns in which 0, false and empty are missing
	MaxGap     time.Duration
	Breaks     []Break

	OnDuplicate OnDuplicate // empty: error
	SkipBad     bool        // leave rows out that can't be read, and count them
	Lookback    int         // report the tickers that are too short for it; 0: don't

	Align     int   // bytes; 0: the writer's default
	Memory    int64 // bytes that rows may take in memory; 0: DefaultMemory
	Jobs      int   // 0: all cores
	Overwrite bool

	Version  string                  // of the program, for the provenance
	Progress func(done, total int64) // bytes of the inputs that were read; may be called from any goroutine
}

// DefaultMemory is the default of Options.Memory.
const DefaultMemory = 1 << 30

// Group names columns that are stored together.
type Group struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// Break makes a break set of the places where a column changes.
type Break struct {
	Name   string `json:"name"`
	Column string `json:"column"`
}

var dayOrWeek = regexp.MustCompile(`(\d+(?:\.\d+)?)([dw])`)

// ParseDuration parses what time.ParseDuration does, and days and weeks: `3d`, `1w2d`, `1d12h`. Days have 24 hours.
func ParseDuration(s string) (time.Duration, error) {
	inHours := dayOrWeek.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.ParseFloat(m[:len(m)-1], 64) // the pattern admits numbers only
		if m[len(m)-1] == 'w' {
			n *= 7
		}
		return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(inHours)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90m, 36h, 3d or 1w", s)
	}
	return d, nil
}
