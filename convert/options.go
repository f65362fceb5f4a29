package convert

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/internal/fsys"
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
	// Inputs are files, folders and globs; or "-" alone for Stdin. The order of their files, on which the choice among duplicates depends, is that of
	// the bytes of the paths as they are named here.
	Inputs []string
	Stdin  io.Reader // is copied to a temporary file beside the output first
	Output string

	Ticker     string // column of the ticker, or several, joined by commas, whose cells joined by slashes are it; empty: the files' names
	Time       string // column of the time; empty: found by its name or content
	TimeFormat string // strftime, a Go layout or epoch-s, -ms, -us, -ns; empty: found out
	// TimeOfDay is the column of the time of day where Time is that of the date; empty: none, or found together with Time.
	TimeOfDay string
	// DateFromName makes the time the beginning of the day that the file's name gives, such as 2024-01-02.csv or
	// closes_20240102.csv.gz: each file is a cross-section, and Ticker or Wide says whose its rows are.
	DateFromName bool
	Zone         string // IANA name of the zone of times without an offset; empty: as they are
	// OnAmbiguousTime says what becomes of times that happened twice in Zone, as the clocks went back: first, last, or
	// error, which is the default.
	OnAmbiguousTime string
	// Decimal is the decimal separator of all numbers in texts, point or comma, and Thousands what stands between
	// thousands: none, comma, point, space or apostrophe; empty: found out for each column.
	Decimal, Thousands string
	Columns            []string // of the group features, in this order; nil: all numeric ones that have a name and no other use
	// Targets make the group targets. Each is a column, or a column and its reach, how far ahead its values were computed:
	// rows (`ret_20:20`, at most 2^31-1), a duration (`ret:5d`), or a column of the times at which labels end (`ret:end`),
	// which is kept in a group of its own, `label_end.end`. If a column has the whole name, colon and all, that one is meant.
	Targets []string
	Groups  []Group  // more groups
	Masks   []string // columns of the group masks, in which 0, false and empty are missing
	// Categories are columns of texts, whose cells are the place of the text among all of the column, sorted by their
	// bytes; an empty one is missing, and NA is a text like others. They stand in the group that names them, or else in the
	// group categories. A column has at most 2^24 texts, and those of all columns take, with Static, a sixth of Memory at most.
	Categories []string
	// Fills give missing cells values, after duplicates are resolved.
	Fills []Fill
	// Wide says that each row has the cells of many tickers: the name of the column that they are, where each numeric
	// column is a ticker; or a pattern of the columns' names, such as {ticker}:{column}, of which the column's part does
	// not contain what stands between. A row of a ticker whose own cells are all missing is none, and counted. A column of
	// no ticker may be named, and then is that of all.
	Wide string
	// Static names files of one row for each ticker, whose other columns are attributes: numbers in float64, or texts.
	// StaticTicker is the column of their tickers; empty: that of the name of Ticker, or one with a usual name.
	Static, StaticTicker string

	MaxGap time.Duration // a time between two rows strictly longer than this is a break, of the set gap; 0: none is
	Breaks []Break       // more break sets

	Text ingest.TextOptions // how texts are laid out, where that is not to be found out

	OnDuplicate OnDuplicate // empty: error
	SkipBad     bool        // leave rows out that can't be read, and count them
	Lookback    int         // report the tickers that are too short for it; 0: don't

	Align int // bytes; 0: the writer's default
	// Memory is what rows take at most, in bytes, with their sorting and what the collector has not freed yet; at least
	// 16 MiB; 0: DefaultMemory. Where it is not enough they are sorted on disk. Besides it the process takes up to 32 MiB,
	// 16 MiB for each job, and some hundred bytes for each ticker, break and run of missing cells. This is with the default
	// GOGC; a program that needs a firmer limit sets debug.SetMemoryLimit.
	Memory    int64
	Jobs      int  // goroutines that parse; 0: all cores
	Overwrite bool // replace an existing output
	// IfChanged leaves an existing output alone if the same version made it of the same inputs, as their sizes and hashes
	// tell, with the same options, and replaces it otherwise; but never a file that is no store.
	IfChanged bool

	Version string // of the program, for the provenance
	// Progress is told, from any goroutine, that n more of the inputs' total bytes were read. While Stdin is copied the
	// total is 0; then its bytes are told again as they are read.
	Progress func(n, total int64)

	fs     fsys.FS // nil: the operating system's
	budget int64   // bytes of rows in memory; 0: a third of Memory
}

// DefaultMemory is the default of Options.Memory.
const DefaultMemory = 256 << 20

// Group names columns that are stored together, in this order. A column is in one group only.
type Group struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// Break makes a break set of the places where the text of a column changes from one row of a ticker to the next. The
// column may be of any kind; it is not stored unless it is named elsewhere too. Texts are compared by their 64-bit hashes:
// a change goes unnoticed with a probability of 2^-64, unless texts are made for it.
type Break struct {
	Name   string `json:"name"`
	Column string `json:"column"`
}

// durations are texts whose only fault can be their length.
var durations = regexp.MustCompile(`^((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w))+$`)

var dayOrWeek = regexp.MustCompile(`(\d+\.?\d*|\.\d+)[dw]`)

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
	if err != nil && durations.MatchString(s) {
		return 0, fmt.Errorf("%q is too long: a duration is at most 106751 days, which is 292 years", s)
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 90m, 36h, 3d or 1w", s)
	}
	return d, nil
}
