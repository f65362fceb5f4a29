package ingest

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// noStamp is a missing time in Batch.Stamps.
const noStamp = math.MinInt64

// family is a kind of time format.
type family uint8

const (
	noFamily    family = iota
	yearFirst          // 2013-02-08
	dayFirst           // 8/2/2013
	monthFirst         // 2/8/2013
	eitherFirst        // one of the two, not decided yet
	compact            // 20130208
	epoch              // a count of units since 1970
	byLayout           // a layout of package time
)

// timeFormat is the one format of a time column.
type timeFormat struct {
	family  family
	sep     byte   // between year, month and day
	width   int    // compact: digits before a blank or T
	clock   bool   // there is a time of day
	half    bool   // it has AM or PM
	aware   bool   // there is Z or an offset
	unit    int64  // epoch: nanoseconds
	guessed bool   // epoch: the unit was told from the magnitude
	layout  string // layout: for time.Parse
	example string // what a right cell looks like, for errors
}

// monthLayouts are the layouts with month names that are recognised.
var monthLayouts = []string{"2 Jan 2006", "Jan 2 2006", "Jan 2, 2006", "2-Jan-2006", "2 January 2006", "January 2 2006", "January 2, 2006"}

const (
	hintTimeFormat = "give its layout with --time-format, such as %d/%m/%Y or epoch-ms"
	hintSkip       = "correct the row, or skip such rows with --on-error skip"
	hintOffset     = "write times with their UTC offset, such as -05:00, or skip such rows with --on-error skip"
)

// moment is a time as it is written: civil fields, and an offset if there is one.
type moment struct {
	days   int64 // since 1970-01-01, in civil days
	second int64 // of the day
	nano   int64
	offset int64 // seconds east of UTC
}

// shapeOf finds the format of one cell: an eitherFirst date where day and month
// could be exchanged, no family where the cell is no time. A time out of range has
// its format like any other.
func shapeOf(cell []byte) timeFormat {
	cell = trim(cell)
	f := timeFormat{example: clip(string(cell))}
	if !bytes.ContainsAny(cell, "0123456789") {
		return f
	}
	if n := leadingDigits(cell); n == len(cell) || cell[0] == '-' || n >= 9 && cell[n] == '.' {
		if n == 8 || n == 12 || n == 14 {
			f.family, f.width, f.clock = compact, n, n > 8
			if _, reason := f.scan(cell); reason == "" && '1' <= cell[0] && cell[0] <= '2' && (cell[1] == '9' || cell[1] == '0') {
				return f
			}
		}
		f.family, f.unit, f.guessed = epoch, int64(time.Second), true
		if v, _, ok := epochParts(cell); ok && (n >= 5 || cell[0] == '-' && len(cell) > 5) {
			f.unit = unitOf(v)
			return f
		}
		f.family = noFamily
		return f
	}
	for _, l := range monthLayouts {
		if len(cell) > len("September 30, 2006") {
			break
		}
		if _, err := time.Parse(l, string(cell)); err == nil {
			f.family, f.layout = byLayout, l
			return f
		}
	}
	// Try the numeric shapes: the separators are in the text, the rest is a
	// matter of what follows the date.
	n := leadingDigits(cell)
	switch {
	case n == 8 && (cell[n] == ' ' || cell[n] == 'T'):
		f.family, f.width = compact, 8
	case n == 4:
		f.family, f.sep = yearFirst, cell[n]
	case n == 1 || n == 2:
		f.family, f.sep = dayFirst, cell[n]
	default:
		return f
	}
	if f.family != compact && f.sep != '-' && f.sep != '/' && f.sep != '.' {
		f.family = noFamily
		return f
	}
	tries := []family{f.family}
	if f.family == dayFirst {
		tries = []family{dayFirst, monthFirst}
	}
	fits := noFamily
	for _, fam := range tries {
		for _, clock := range []bool{false, true} {
			for _, half := range []bool{false, true} {
				for _, aware := range []bool{false, true} {
					g := f
					g.family, g.clock, g.half, g.aware = fam, clock, half, aware
					if _, reason := g.scan(cell); reason == "" || reason == outOfRange {
						if fits == dayFirst && fam == monthFirst {
							fam = eitherFirst
						}
						f, fits = g, fam
					}
				}
			}
		}
	}
	f.family = fits
	return f
}

// sameShape reports whether two shapes differ at most in what a column decides:
// the order of day and month.
func (f *timeFormat) sameShape(g *timeFormat) bool {
	if f.family == byLayout || g.family == byLayout {
		return f.family == g.family && f.layout == g.layout
	}
	numeric := func(x family) bool { return x == dayFirst || x == monthFirst || x == eitherFirst }
	return (f.family == g.family || numeric(f.family) && numeric(g.family)) && f.sep == g.sep && f.width == g.width &&
		f.clock == g.clock && f.half == g.half && f.aware == g.aware
}

// detect finds a column's format from its first cells: that of the first that
// is a time, whose index is at, or -1 if none is. A column of dates whose order
// these cells don't decide is eitherFirst.
func detect(cells []cell) (f timeFormat, at int) {
	at = -1
	var largest int64
	var widest string
	for i, s := range cells {
		g := shapeOf([]byte(s.text))
		switch {
		case g.family == noFamily:
			continue
		case f.family == noFamily, f.family == epoch && g.family == compact: // a date with a slip is a number too
			f, at = g, i
		case f.family == eitherFirst && f.sameShape(&g):
			f.family = g.family
		}
		if v, _, ok := epochParts(trim([]byte(s.text))); ok && max(v, -v) > largest {
			largest, widest = max(v, -v), g.example
		}
	}
	if f.family == epoch && largest > 0 {
		f.unit, f.example = unitOf(largest), widest // the example is the cell that decides
	}
	return f, at
}

// unitOf tells the unit of an epoch from its magnitude: seconds until 2286,
// milliseconds from April 1970 on, and so forth.
func unitOf(v int64) int64 {
	switch v = max(v, -v); {
	case v < 1e10:
		return int64(time.Second)
	case v < 1e13:
		return int64(time.Millisecond)
	case v < 1e16:
		return int64(time.Microsecond)
	}
	return 1
}

func unitName(unit int64) string {
	switch unit {
	case int64(time.Second):
		return "seconds"
	case int64(time.Millisecond):
		return "milliseconds"
	case int64(time.Microsecond):
		return "microseconds"
	}
	return "nanoseconds"
}

// epochParts splits [-] digits [. digits] into the integer and the text of the
// fraction.
func epochParts(cell []byte) (v int64, frac []byte, ok bool) {
	whole, frac, point := bytes.Cut(cell, []byte("."))
	if point && (len(frac) == 0 || leadingDigits(frac) != len(frac)) {
		return 0, nil, false
	}
	if len(whole) == 0 || len(whole) > 20 {
		return 0, nil, false
	}
	v, err := strconv.ParseInt(string(whole), 10, 64)
	return v, frac, err == nil && whole[0] != '+'
}

const (
	notThisFormat = "is not a time"
	noSuchTime    = "is not a date and time that exist"
	outOfRange    = "is outside the years 1677 to 2262, which int64 nanoseconds can hold"
	clocksForward = "does not exist in %s: the clocks went forward over it"
	clocksBack    = "happened twice in %s: the clocks went back over it"
)

// scan reads a trimmed cell in this format, which is neither epoch nor layout.
// The reason is "" or what is wrong with the cell.
func (f *timeFormat) scan(b []byte) (moment, string) {
	var y, mo, d int64
	var ok bool
	switch f.family {
	case compact:
		if len(b) < f.width || leadingDigits(b) != f.width {
			return moment{}, notThisFormat
		}
		y, mo, d = digits(b[:4]), digits(b[4:6]), digits(b[6:8])
		if f.width == 8 {
			b = b[8:]
			break
		}
		m, reason := civil(y, mo, d)
		h, mi, s := digits(b[8:10]), digits(b[10:12]), int64(0)
		if f.width == 14 {
			s = digits(b[12:14])
		}
		if reason == "" && (h > 23 || mi > 59 || s > 59) {
			reason = noSuchTime
		}
		if len(b) != f.width {
			reason = notThisFormat
		}
		m.second = h*3600 + mi*60 + s
		return m, reason
	case yearFirst:
		if y, b, ok = number(b, 4, 4); !ok {
			return moment{}, notThisFormat
		}
		if mo, b, ok = f.after(b, 2); !ok {
			return moment{}, notThisFormat
		}
		if d, b, ok = f.after(b, 2); !ok {
			return moment{}, notThisFormat
		}
	default:
		if d, b, ok = number(b, 1, 2); !ok {
			return moment{}, notThisFormat
		}
		if mo, b, ok = f.after(b, 2); !ok {
			return moment{}, notThisFormat
		}
		if y, b, ok = f.after(b, 4); !ok || y < 1000 {
			return moment{}, notThisFormat
		}
		if f.family == monthFirst {
			d, mo = mo, d
		}
	}
	m, reason := civil(y, mo, d)
	if reason == noSuchTime {
		return m, reason
	}
	if wrong := f.scanClock(&m, b); wrong != "" {
		return m, wrong
	}
	return m, reason
}

// after reads the separator and up to most digits.
func (f *timeFormat) after(b []byte, most int) (int64, []byte, bool) {
	if len(b) == 0 || b[0] != f.sep {
		return 0, nil, false
	}
	return number(b[1:], 1, most)
}

// scanClock reads what follows the date: time of day, AM or PM, offset.
func (f *timeFormat) scanClock(m *moment, b []byte) string {
	if f.clock {
		if len(b) == 0 || b[0] != 'T' && b[0] != ' ' {
			return notThisFormat
		}
		if b[0] == 'T' {
			b = b[1:]
		} else {
			b = trim(b)
		}
		var h, mi, s int64
		var ok bool
		if n := leadingDigits(b); f.family == compact && (n == 4 || n == 6) { // 0930, 093000
			h, mi = digits(b[:2]), digits(b[2:4])
			if n == 6 {
				s = digits(b[4:6])
			}
			b = b[n:]
		} else {
			if h, b, ok = number(b, 1, 2); !ok || len(b) == 0 || b[0] != ':' {
				return notThisFormat
			}
			if mi, b, ok = number(b[1:], 2, 2); !ok {
				return notThisFormat
			}
			if len(b) > 0 && b[0] == ':' {
				if s, b, ok = number(b[1:], 2, 2); !ok {
					return notThisFormat
				}
				if len(b) > 0 && (b[0] == '.' || b[0] == ',') {
					n := leadingDigits(b[1:])
					if n == 0 || n > 9 {
						return "has a fraction of a second that is not 1 to 9 digits"
					}
					m.nano = digits(b[1:1+n]) * int64(pow10[9-n])
					b = b[1+n:]
				}
			}
		}
		if f.half {
			rest := bytes.ToUpper(trim(b))
			pm := bytes.HasPrefix(rest, []byte("PM"))
			if !pm && !bytes.HasPrefix(rest, []byte("AM")) {
				return notThisFormat
			}
			if h < 1 || h > 12 {
				return noSuchTime
			}
			h %= 12
			if pm {
				h += 12
			}
			b = trim(b)[2:]
		}
		if h > 23 || mi > 59 || s > 59 {
			return noSuchTime
		}
		m.second = h*3600 + mi*60 + s
	}
	if f.aware {
		b = trim(b)
		switch {
		case len(b) == 1 && (b[0] == 'Z' || b[0] == 'z'), string(b) == "UTC", string(b) == "GMT":
			return ""
		case len(b) < 3 || b[0] != '+' && b[0] != '-':
			return notThisFormat
		}
		neg := b[0] == '-'
		b = b[1:]
		var h, mi int64
		switch n := leadingDigits(b); {
		case n == 4: // -0500
			h, mi, b = digits(b[:2]), digits(b[2:4]), b[4:]
		case n != 2:
			return notThisFormat
		default: // -05, -05:00
			h, b = digits(b[:2]), b[2:]
			if len(b) > 0 && b[0] == ':' {
				var ok bool
				if mi, b, ok = number(b[1:], 2, 2); !ok {
					return notThisFormat
				}
			}
		}
		if h > 23 || mi > 59 {
			return noSuchTime
		}
		m.offset = h*3600 + mi*60
		if neg {
			m.offset = -m.offset
		}
	}
	if len(b) > 0 {
		return notThisFormat
	}
	return ""
}

// number reads a run of least to most digits.
func number(b []byte, least, most int) (v int64, rest []byte, ok bool) {
	n := leadingDigits(b)
	if n < least || n > most {
		return 0, nil, false
	}
	return digits(b[:n]), b[n:], true
}

// digits is the value of at most 18 digits.
func digits(b []byte) (v int64) {
	for _, c := range b {
		v = v*10 + int64(c-'0')
	}
	return v
}

var monthDays = [...]int64{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// civil counts the days to a date of the Gregorian calendar.
func civil(y, m, d int64) (moment, string) {
	if m < 1 || m > 12 || d < 1 || d > monthDays[m-1] || m == 2 && d == 29 && (y%4 != 0 || y%100 == 0 && y%400 != 0) {
		return moment{}, noSuchTime
	}
	if y < 1677 || y > 2262 {
		return moment{}, outOfRange
	}
	// Years run from March, so that the leap day is the last.
	if m <= 2 {
		y, m = y-1, m+12
	}
	return moment{days: 365*y + y/4 - y/100 + y/400 + (153*(m-3)+2)/5 + d - 1 - 719468}, ""
}

// clockReader turns the cells of one time column into UTC nanoseconds. It is
// used by one goroutine at a time.
type clockReader struct {
	timeFormat
	loc   *time.Location // zone of naive times; nil is UTC
	probe bool           // parse tells which of the two orders of day and month a cell has

	// Wall seconds for which only this offset applies, from the last look-up.
	from, to, offset int64
}

// parse reads one cell. The reason is "" or what is wrong with the cell.
func (c *clockReader) parse(cell []byte) (ns int64, reason string) {
	cell = trim(cell)
	if c.probe {
		return int64(c.order(cell)), ""
	}
	var m moment
	switch c.family {
	case epoch:
		return c.parseEpoch(cell)
	case byLayout:
		t, err := time.Parse(c.layout, string(cell))
		if err != nil {
			return 0, c.mismatch(cell)
		}
		if c.aware {
			return nanos(t.Unix(), int64(t.Nanosecond()))
		}
		return c.localise(t.Unix(), int64(t.Nanosecond()))
	}
	m, reason = c.scan(cell)
	if reason == notThisFormat || reason == noSuchTime {
		return 0, c.mismatch(cell)
	}
	if reason != "" {
		return 0, reason
	}
	wall := m.days*86400 + m.second
	if c.aware {
		return nanos(wall-m.offset, m.nano)
	}
	return c.localise(wall, m.nano)
}

// hint says what to try about a cell that parse refuses for a reason.
func (c *clockReader) hint(cell []byte, reason string) string {
	switch {
	case reason == fmt.Sprintf(clocksForward, c.loc), reason == fmt.Sprintf(clocksBack, c.loc):
		return hintOffset
	case reason == outOfRange && (c.family != epoch || c.guessed), !bytes.ContainsAny(cell, "0123456789"):
		return hintSkip // no format would make it a time
	}
	return hintTimeFormat
}

// order tells which order of day and month a cell has: eitherFirst if both would
// do, or none.
func (c *clockReader) order(cell []byte) family {
	f := c.timeFormat
	f.family = dayFirst
	_, notDay := f.scan(cell)
	f.family = monthFirst
	_, notMonth := f.scan(cell)
	switch {
	case notDay == "" && notMonth != "":
		return dayFirst
	case notMonth == "" && notDay != "":
		return monthFirst
	}
	return eitherFirst
}

// mismatch says in which way a cell does not have the column's format.
func (c *clockReader) mismatch(cell []byte) string {
	if len(cell) == 0 {
		return "the time is empty"
	}
	like := fmt.Sprintf("is not a time like %q, the format of this column", c.example)
	g := shapeOf(cell)
	switch {
	case g.family == noFamily || c.family == byLayout || c.family == epoch:
		return like
	case c.aware && !g.aware:
		return fmt.Sprintf("has no UTC offset, while the column has (%q)", c.example)
	case !c.aware && g.aware:
		return fmt.Sprintf("has a UTC offset, while the column has none (%q)", c.example)
	case c.family == dayFirst && g.family == monthFirst:
		return fmt.Sprintf("has its month first, while the column has its day first (%q)", c.example)
	case c.family == monthFirst && g.family == dayFirst:
		return fmt.Sprintf("has its day first, while the column has its month first (%q)", c.example)
	case c.clock != g.clock && c.clock:
		return fmt.Sprintf("has no time of day, while the column has (%q)", c.example)
	case c.clock != g.clock:
		return fmt.Sprintf("has a time of day, while the column has none (%q)", c.example)
	}
	return like
}

func (c *clockReader) parseEpoch(cell []byte) (int64, string) {
	v, frac, ok := epochParts(cell)
	if !ok {
		return 0, c.mismatch(cell)
	}
	if c.guessed && v != 0 && unitOf(v) != c.unit {
		return 0, fmt.Sprintf("looks like %s since 1970, while the column is in %s (%q)", unitName(unitOf(v)), unitName(c.unit), c.example)
	}
	ns := v * c.unit
	if ns/c.unit != v {
		return 0, outOfRange
	}
	// The fraction counts towards the sign of the whole.
	unit := c.unit
	var part int64
	for _, d := range frac {
		if unit /= 10; unit == 0 && d != '0' {
			return 0, "is not a whole number of nanoseconds"
		}
		part += int64(d-'0') * unit
	}
	if cell[0] == '-' {
		part = -part
	}
	sum := ns + part
	if part > 0 && sum < ns || part < 0 && sum > ns || sum == noStamp {
		return 0, outOfRange
	}
	return sum, ""
}

// localise converts a wall clock time, given as if it were UTC.
func (c *clockReader) localise(wall, nano int64) (int64, string) {
	if c.loc == nil || c.loc == time.UTC {
		return nanos(wall, nano)
	}
	if wall >= c.from && wall < c.to {
		return nanos(wall-c.offset, nano)
	}
	// The instants that show this wall time are less than 26 h from it, read as
	// UTC; the clocks change at most once in the days around.
	const near, day = 26 * 3600, 86400
	offsetAt := func(unix int64) int64 {
		_, off := time.Unix(unix, 0).In(c.loc).Zone()
		return int64(off)
	}
	before, after := offsetAt(wall-near), offsetAt(wall+near)
	isBefore, isAfter := offsetAt(wall-before) == before, offsetAt(wall-after) == after
	switch {
	case before == after:
		if offsetAt(wall+day+near) == after {
			c.from, c.to, c.offset = wall, wall+day, after
		}
		return nanos(wall-after, nano)
	case isBefore && !isAfter:
		return nanos(wall-before, nano)
	case isAfter && !isBefore:
		return nanos(wall-after, nano)
	case !isBefore:
		return 0, fmt.Sprintf(clocksForward, c.loc)
	}
	return 0, fmt.Sprintf(clocksBack, c.loc)
}

// nanos joins seconds and nanoseconds. The least int64 means a missing stamp and
// is no time.
func nanos(sec, nano int64) (int64, string) {
	const most = math.MaxInt64 / int64(time.Second)
	if sec > most || sec < -most-1 {
		return 0, outOfRange
	}
	// Only the edge seconds can overflow.
	ns := sec*int64(time.Second) + nano
	if sec == most && ns < 0 || sec == -most-1 && (ns > 0 || ns == noStamp) {
		return 0, outOfRange
	}
	return ns, ""
}

// CheckTimeFormat says what is wrong with a non-empty Options.TimeFormat, and
// what would be right.
func CheckTimeFormat(format string) error {
	_, err := parseFormat(format)
	return err
}

// parseFormat reads Options.TimeFormat.
func parseFormat(s string) (timeFormat, error) {
	units := map[string]time.Duration{"epoch-s": time.Second, "epoch-ms": time.Millisecond, "epoch-us": time.Microsecond, "epoch-ns": 1}
	if unit, ok := units[s]; ok {
		return timeFormat{family: epoch, unit: int64(unit), example: s}, nil
	}
	bad := func(reason string) error {
		const hint = `give strftime such as "%Y-%m-%d %H:%M:%S", a Go layout such as "2006-01-02", or epoch-s, epoch-ms, epoch-us, epoch-ns`
		return fmt.Errorf("time format %q: %s; %s", s, reason, hint)
	}
	l := s
	if strings.Contains(s, "%") {
		var err error
		if l, err = fromStrftime(s); err != nil {
			return timeFormat{}, bad(err.Error())
		}
	}
	if strings.Contains(l, "MST") {
		return timeFormat{}, bad("abbreviations of time zones are ambiguous")
	}
	// A layout must hold year, month and day.
	ref := time.Date(2009, 11, 23, 22, 34, 56, 0, time.FixedZone("", 5*3600+1800))
	example := ref.Format(l)
	t, err := time.Parse(l, example)
	if err != nil || t.Year() != 2009 || t.YearDay() != ref.YearDay() {
		return timeFormat{}, bad("does not hold year, month and day")
	}
	if t.Hour() == ref.Hour()-12 {
		return timeFormat{}, bad("has hours of 12 without AM or PM")
	}
	f := timeFormat{family: byLayout, layout: l, example: example}
	_, off := t.Zone()
	f.aware = off != 0 || strings.HasSuffix(l, "Z")
	return f, nil
}

// fromStrftime turns a strftime format into a layout of package time.
func fromStrftime(s string) (string, error) {
	to := map[byte]string{'Y': "2006", 'y': "06", 'm': "01", 'b': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'j': "002",
		'H': "15", 'I': "03", 'p': "PM", 'M': "04", 'S': "05", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04",
		'D': "01/02/06", 'a': "Mon", 'A': "Monday", '%': "%"}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c != '%':
			if '0' <= c && c <= '9' {
				return "", fmt.Errorf("a digit outside a %% directive")
			}
			b.WriteByte(c)
			continue
		case i+1 == len(s):
			return "", fmt.Errorf("ends in a lone %%")
		}
		i++
		l, ok := to[s[i]]
		switch {
		case s[i] == 'f' && (strings.HasSuffix(b.String(), "05.") || strings.HasSuffix(b.String(), "05,")):
			l = "999999999"
		case s[i] == 'f':
			return "", fmt.Errorf("%%f must follow %%S and a point")
		case !ok:
			return "", fmt.Errorf("%%%c is not supported", s[i])
		}
		b.WriteString(l)
	}
	return b.String(), nil
}
