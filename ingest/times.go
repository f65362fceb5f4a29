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
	packedDate         // 20130208
	dayName            // 8 Feb 2013
	nameDay            // Feb 8, 2013
	yearName           // 2013-Feb-08
	epoch              // a count of units since 1970
	excel              // a count of days since 1899-12-30
	byLayout           // a layout of package time
)

// timeFormat is the one format of a time column.
type timeFormat struct {
	family  family
	sep     byte   // between year, month and day; 0: nothing
	width   int    // packedDate: digits before a blank or T
	month   bool   // yearFirst: there is no day
	weekday bool   // the name of a day of the week stands before
	clock   bool   // there is a time of day
	packed  int    // the time of day has no colons, but 4 digits (930, 0930) or 6 (93000, 093000)
	unit    int64  // epoch: nanoseconds; else, if not 0, the time of day is a count of them
	half    bool   // it has AM or PM
	aware   bool   // there is Z or an offset
	apart   bool   // date and time of day come from two places, joined by a blank
	undated bool   // byLayout: the date comes from the file's name, joined by a blank; of unit: it may
	guessed bool   // epoch: the unit was told from the magnitude
	layout  string // byLayout: for time.Parse
	given   string // what Options.TimeFormat says; "" if the format was found
	example string // what a right cell looks like, for errors
}

const (
	hintTimeFormat = "give its layout with --time-format, such as %d/%m/%Y or epoch-ms"
	hintSkip       = "correct the row, or skip such rows with --on-error skip"
	hintOffset     = "write times with their UTC offset, such as -05:00, or skip such rows with --on-error skip"
	hintTwice      = "choose with --on-ambiguous-time first or last, or write times with their UTC offset, such as -05:00"
)

// moment is a time as it is written: civil fields, and an offset if there is one.
type moment struct {
	days   int64 // since 1970-01-01, in civil days
	second int64 // of the day
	nano   int64
	offset int64 // seconds east of UTC
}

// leastEpoch is the magnitude that a column must reach to be taken for an epoch:
// 35 days in seconds. Dates of spreadsheets, days of the Julian calendar, years and
// row numbers stay below it.
const leastEpoch = 3_000_000

// shapeOf finds the format of one cell: an eitherFirst date where day and month
// could be exchanged, no family where the cell is no time. A time out of range has
// its format like any other.
func shapeOf(cell []byte) timeFormat { return shape(cell, false) }

// shape is shapeOf, or that of a date and a time of day joined by a blank.
func shape(cell []byte, apart bool) timeFormat {
	cell = trim(cell)
	f := timeFormat{apart: apart, example: clip(string(cell))}
	if len(cell) > len("Wednesday, September 30, 2006 09:30:00.123456789 AM +00:00") || !bytes.ContainsAny(cell, "0123456789") {
		return f
	}
	n := leadingDigits(cell)
	if n == len(cell) || cell[0] == '-' || n >= 9 && cell[n] == '.' {
		if n == 8 || n == 12 || n == 14 || n == 17 {
			f.family, f.width, f.clock = packedDate, min(n, 14), n > 8
			if _, reason := f.scan(cell); reason == "" && '1' <= cell[0] && cell[0] <= '2' && (cell[1] == '9' || cell[1] == '0') {
				return f
			}
		}
		f.family, f.width, f.unit, f.clock, f.guessed = epoch, 0, int64(time.Second), false, true
		if v, _, ok := epochParts(cell); ok && (n >= 5 || cell[0] == '-' && len(cell) > 5) {
			f.unit = unitOf(v)
			return f
		}
		return timeFormat{apart: apart, example: f.example}
	}
	// Guess what the date is from how it begins; the rest is tried.
	date := cell
	if rest, day := cutWeekday(cell); day >= 0 {
		f.weekday, date, n = true, rest, leadingDigits(rest)
	}
	var tries []family
	switch {
	case n == 8 && len(date) > n && bytes.IndexByte([]byte(" T-"), date[n]) >= 0:
		f.width, tries = 8, []family{packedDate}
	case n == len(date):
		return f
	case n == 0:
		tries = []family{nameDay}
		if _, m := monthName(date); m < len(date) {
			f.sep = date[m]
		}
	default:
		f.sep = date[n]
		if 'A' <= f.sep&^0x20 && f.sep&^0x20 <= 'Z' {
			f.sep = 0
		}
		rest := date[n:]
		if f.sep != 0 {
			rest = rest[1:]
		}
		named := len(rest) > 0 && leadingDigits(rest) == 0
		switch {
		case named && n == 4:
			tries = []family{yearName}
		case named:
			tries = []family{dayName}
		case n == 4:
			tries = []family{yearFirst}
		default:
			tries = []family{dayFirst, monthFirst}
		}
	}
	switch {
	case f.sep == '-' || f.sep == '/' || f.sep == '.' || f.width == 8:
	case (f.sep == ' ' || f.sep == 0) && tries[0] >= dayName:
	default:
		return f
	}
	fits := noFamily
	for _, fam := range tries {
		for _, clock := range []bool{false, true} {
			for _, half := range []bool{false, true} {
				for _, aware := range []bool{false, true} {
					g := f
					g.family, g.clock, g.half, g.aware = fam, clock, half, aware
					if clock {
						g.packed = packedClock(cell, apart, fam)
					}
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
	if f.family = fits; fits == noFamily && n == 4 && (f.sep == '-' || f.sep == '/') {
		f.family, f.month = yearFirst, true
		if _, reason := f.scan(cell); reason != "" && reason != outOfRange {
			f.family = noFamily
		}
	}
	return f
}

// packedClock is timeFormat.packed of a cell with a time of day, which is told from
// the digits that begin it.
func packedClock(cell []byte, apart bool, fam family) int {
	var clock []byte
	switch {
	case apart:
		clock = cell[bytes.LastIndexByte(cell, ' ')+1:]
	case fam == packedDate && len(cell) > 9:
		clock = trimLeft(cell[9:])
	default:
		return 0
	}
	switch n := leadingDigits(clock); {
	case n < len(clock) && clock[n] == ':', n == 0:
		return 0
	case n >= 5:
		return 6
	case apart || n == 4:
		return 4
	}
	return 0
}

// sameShape reports whether two shapes differ at most in what a column decides:
// the order of day and month, and how many digits a time of day has.
func (f *timeFormat) sameShape(g *timeFormat) bool {
	numeric := func(x family) bool { return x == dayFirst || x == monthFirst || x == eitherFirst }
	return (f.family == g.family || numeric(f.family) && numeric(g.family)) && f.sep == g.sep && f.width == g.width && f.month == g.month &&
		f.weekday == g.weekday && f.clock == g.clock && f.half == g.half && f.aware == g.aware && (f.packed == 0) == (g.packed == 0)
}

// detect finds a column's format from its first cells: that of the first that
// is a time, whose index is at, or -1 if none is. A column of dates whose order
// these cells don't decide is eitherFirst.
func detect(cells []cell) (f timeFormat, at int) { return detectFormat(cells, false) }

// detectFormat is detect, or that of dates and times of day joined by blanks.
func detectFormat(cells []cell, apart bool) (f timeFormat, at int) {
	at = -1
	var largest int64
	var widest string
	longest := 0 // of the times of day without colons
	for i, s := range cells {
		g := shape([]byte(s.text), apart)
		switch {
		case g.family == noFamily:
			continue
		case f.family == noFamily, f.family == epoch && g.family == packedDate: // a date with a slip is a number too
			f, at = g, i
		case f.sameShape(&g):
			if f.family == eitherFirst {
				f.family = g.family
			}
			f.packed = max(f.packed, g.packed)
		}
		if g.packed > 0 {
			longest = max(longest, len(s.text)-1-bytes.LastIndexByte([]byte(s.text), ' '))
		}
		if v, _, ok := epochParts(trim([]byte(s.text))); ok && max(v, -v) > largest {
			largest, widest = max(v, -v), g.example
		}
	}
	switch {
	case f.family == epoch && largest < leastEpoch, apart && f.packed > 0 && longest < 3:
		return timeFormat{}, -1
	case f.family == epoch:
		f.unit, f.example = unitOf(largest), widest // the example is the cell that decides
	}
	return f, at
}

// whyNoTime says what a cell is that looks somewhat like a time, and what to try.
func whyNoTime(text string) (reason, hint string) {
	cell := trim([]byte(text))
	n := leadingDigits(cell)
	rest := cell[n:]
	isZone := func(b []byte) bool {
		return bytes.IndexFunc(b, func(r rune) bool { return (r < 'A' || r > 'Z') && r != '/' && r != '_' && (r < 'a' || r > 'z') }) < 0 &&
			!bytes.EqualFold(b, []byte("AM")) && !bytes.EqualFold(b, []byte("PM"))
	}
	switch i := bytes.LastIndexByte(cell, ' '); {
	case n == 4 && (len(rest) == 2 || len(rest) == 3) && (rest[len(rest)-2]|0x20) == 'q':
		return "is a quarter, not a time", "write the first or last day of each quarter instead"
	case n == 4 && len(rest) == 0:
		return "is a year or a number, not a time", "if it is a year, say so with --time-format %Y"
	case n == len(cell) && n > 0, n > 0 && n < 9 && rest[0] == '.' && leadingDigits(rest[1:]) == len(rest)-1:
		return "is a number too small to be taken for a time", "if it counts since 1970, say in what with --time-format epoch-s, -ms, -us or -ns; if it is a day of a spreadsheet, --time-format excel"
	case (n == 1 || n == 2) && len(rest) > 2 && rest[0] == ':':
		return "is a time of day without a date",
			"name its column with --time-of-day and that of the date with --time; if the date is in the files' names, say how it is written, such as --time-format %H:%M:%S"
	case i > 0 && isZone(cell[i+1:]) && shapeOf(cell[:i]).family != noFamily:
		return "names its zone by letters, which are ambiguous", "write the UTC offset instead, such as -05:00, or leave it out and name the zone with --tz"
	}
	if (n == 1 || n == 2) && len(rest) > 0 {
		if p := bytes.Split(cell, rest[:1]); len(p) >= 3 && leadingDigits(p[2]) == 2 && leadingDigits(p[1]) > 0 {
			return "has a year of two digits", "say which part is what with --time-format, such as %d/%m/%y or %m/%d/%y"
		}
	}
	return notRecognised, hintTimeFormat
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
	notRecognised = "is not a time in a format that is recognised"
	noSuchTime    = "is not a date and time that exist"
	noSuchDay     = "does not fall on that day of the week"
	outOfRange    = "is outside the years 1677 to 2262, which int64 nanoseconds can hold"
	badFraction   = "has a fraction of a second that is not 1 to 9 digits"
)

// scan reads a trimmed cell in this format, which is not epoch, excel or layout.
// The reason is "" or what is wrong with the cell.
func (f *timeFormat) scan(b []byte) (moment, string) {
	var y, mo, d int64
	var ok bool
	weekday := -1
	if f.weekday {
		if b, weekday = cutWeekday(b); weekday < 0 {
			return moment{}, notThisFormat
		}
	}
	switch f.family {
	case packedDate:
		if len(b) < f.width || f.width == 0 {
			return moment{}, notThisFormat
		}
		n := leadingDigits(b)
		if n != f.width && (f.width != 14 || n != 17 || n != len(b)) {
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
		m.second = h*3600 + mi*60 + s
		switch rest := b[f.width:]; {
		case n == 17:
			m.nano = digits(rest) * 1e6
		case f.width == 14 && len(rest) > 1 && rest[0] == '.':
			if rest, ok = m.fraction(rest); !ok || len(rest) > 0 {
				return m, badFraction
			}
		case len(rest) > 0:
			reason = notThisFormat
		}
		return m, reason
	case yearFirst, yearName:
		if y, b, ok = number(b, 4, 4); !ok {
			return moment{}, notThisFormat
		}
		if mo, b, ok = f.after(b, 2); !ok {
			return moment{}, notThisFormat
		}
		if f.month {
			d = 1
			break
		}
		if d, b, ok = f.dayOf(b); !ok {
			return moment{}, notThisFormat
		}
	case nameDay:
		var n int
		if mo, n = monthName(b); mo == 0 {
			return moment{}, notThisFormat
		}
		if d, b, ok = f.dayOf(b[n:]); !ok {
			return moment{}, notThisFormat
		}
		if y, b, ok = f.yearOf(b); !ok {
			return moment{}, notThisFormat
		}
	default:
		if d, b, ok = number(b, 1, 2); !ok {
			return moment{}, notThisFormat
		}
		if mo, b, ok = f.after(b, 2); !ok {
			return moment{}, notThisFormat
		}
		if y, b, ok = f.yearOf(b); !ok {
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
	if reason == "" && weekday >= 0 && int64(weekday) != ((m.days+4)%7+7)%7 { // 1970 began on a Thursday
		reason = noSuchDay
	}
	return m, reason
}

// after reads the separator and the month.
func (f *timeFormat) after(b []byte, most int) (int64, []byte, bool) {
	if f.sep != 0 {
		if len(b) == 0 || b[0] != f.sep {
			return 0, nil, false
		}
		b = b[1:]
	}
	if f.family >= dayName && f.family <= yearName {
		m, n := monthName(b)
		return m, b[n:], m > 0
	}
	return number(b, 1, most)
}

// dayOf reads the separator and the day.
func (f *timeFormat) dayOf(b []byte) (int64, []byte, bool) {
	if f.sep != 0 {
		if len(b) == 0 || b[0] != f.sep {
			return 0, nil, false
		}
		b = b[1:]
		if f.sep == ' ' {
			b = trimLeft(b)
		}
	}
	return number(b, 1, 2)
}

// yearOf reads the separator and a year that stands last: of four digits, or
// behind the name of a month two, 69 being 1969.
func (f *timeFormat) yearOf(b []byte) (int64, []byte, bool) {
	named := f.family >= dayName
	if named && len(b) > 0 && b[0] == ',' {
		b = b[1:]
	}
	if f.sep != 0 {
		if len(b) == 0 || b[0] != f.sep {
			return 0, nil, false
		}
		b = b[1:]
	}
	n := leadingDigits(b)
	y := digits(b[:min(n, 4)])
	switch {
	case n == 4 && y >= 1000:
	case n == 2 && named && y < 69:
		y += 2000
	case n == 2 && named:
		y += 1900
	default:
		return 0, nil, false
	}
	return y, b[n:], true
}

// scanClock reads what follows the date: time of day, AM or PM, offset.
func (f *timeFormat) scanClock(m *moment, b []byte) string {
	if f.clock {
		if len(b) > 0 && b[0] == ',' && f.family != packedDate {
			b = b[1:]
		}
		switch {
		case len(b) == 0:
			return notThisFormat
		case b[0] == 'T', b[0] == '-' && f.family == packedDate:
			b = b[1:]
		case b[0] == ' ':
			b = trimLeft(b)
		default:
			return notThisFormat
		}
		if f.unit > 0 {
			return m.count(b, f.unit)
		}
		var h, mi, s int64
		var ok bool
		switch n := leadingDigits(b); {
		case f.packed > 0: // 0930, 093000
			if n == 0 || n > f.packed || !f.apart && n != f.packed {
				return notThisFormat
			}
			v := digits(b[:n])
			if f.packed == 6 {
				v, s = v/100, v%100
			}
			h, mi, b = v/100, v%100, b[n:]
			if f.packed == 6 && len(b) > 0 && b[0] == '.' {
				if b, ok = m.fraction(b); !ok {
					return badFraction
				}
			}
		case n < 1 || n > 2:
			return notThisFormat
		default:
			h, b = digits(b[:n]), b[n:]
			if len(b) == 0 || b[0] != ':' {
				if !f.half {
					return notThisFormat
				}
				break // 9 AM
			}
			if mi, b, ok = number(b[1:], 2, 2); !ok {
				return notThisFormat
			}
			if len(b) > 0 && b[0] == ':' {
				if s, b, ok = number(b[1:], 2, 2); !ok {
					return notThisFormat
				}
				if len(b) > 0 && (b[0] == '.' || b[0] == ',') {
					if b, ok = m.fraction(b); !ok {
						return badFraction
					}
				}
			}
		}
		if f.half {
			if b = trimLeft(b); len(b) > 0 && b[0] == '-' { // 09-AM
				b = b[1:]
			}
			if len(b) < 2 || b[1]|0x20 != 'm' || b[0]|0x20 != 'a' && b[0]|0x20 != 'p' {
				return notThisFormat
			}
			if h < 1 || h > 12 {
				return noSuchTime
			}
			h %= 12
			if b[0]|0x20 == 'p' {
				h += 12
			}
			b = b[2:]
		}
		if h > 23 || mi > 59 || s > 59 {
			return noSuchTime
		}
		m.second = h*3600 + mi*60 + s
	}
	if f.aware {
		b = trimLeft(b)
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

// fraction reads a separator and the 1 to 9 digits of a fraction of a second.
func (m *moment) fraction(b []byte) (rest []byte, ok bool) {
	n := leadingDigits(b[1:])
	if n == 0 || n > 9 {
		return nil, false
	}
	m.nano = digits(b[1:1+n]) * int64(pow10[9-n])
	return b[1+n:], true
}

// count reads a time of day that is a count of units since midnight.
func (m *moment) count(b []byte, unit int64) string {
	const day = 86400 * int64(time.Second)
	v, frac, ok := epochParts(b)
	if !ok || b[0] == '-' {
		return notThisFormat
	}
	if v >= day/unit {
		return fmt.Sprintf("is not a time of day in %s since midnight", unitName(unit))
	}
	part, reason := fractionOf(frac, unit)
	m.second, m.nano = v*unit/int64(time.Second), v*unit%int64(time.Second)+part
	return reason
}

// fractionOf is the value in nanoseconds of the decimals of a count of units.
func fractionOf(frac []byte, unit int64) (part int64, reason string) {
	for _, d := range frac {
		if unit /= 10; unit == 0 && d != '0' {
			return 0, "is not a whole number of nanoseconds"
		}
		part += int64(d-'0') * unit
	}
	return part, ""
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

func trimLeft(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

var (
	monthNames   = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	weekdayNames = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

// monthName reads the English name of a month, in any case: Feb, Feb. or February.
// It gives 1 to 12, or 0 for none, and the length of the name.
func monthName(b []byte) (month int64, n int) {
	i, n := name(b, monthNames[:])
	if i < 0 && n == 4 && strings.EqualFold(string(b[:4]), "Sept") {
		i = 8
	}
	if i < 0 {
		return 0, 0
	}
	if n < len(b) && b[n] == '.' && n <= 4 {
		n++
	}
	return int64(i + 1), n
}

// cutWeekday cuts the English name of a day of the week off, with the comma and
// blanks behind it. The day is 0 for Sunday, or -1 where there is none.
func cutWeekday(b []byte) (rest []byte, day int) {
	day, n := name(b, weekdayNames[:])
	if day < 0 {
		return b, -1
	}
	if rest = b[n:]; len(rest) > 0 && (rest[0] == ',' || rest[0] == '.') {
		rest = rest[1:]
	}
	if len(rest) == 0 || rest[0] != ' ' {
		return b, -1
	}
	return trimLeft(rest), day
}

// name finds the letters that b begins with among names, whole or as their first
// three letters: the index, or -1. n counts the letters.
func name(b []byte, names []string) (i, n int) {
	for n < len(b) && 'a' <= b[n]|0x20 && b[n]|0x20 <= 'z' {
		n++
	}
	if n < 3 || n > len("September") {
		return -1, n
	}
	for i, s := range names {
		if b[0]|0x20 != s[0]|0x20 || b[1]|0x20 != s[1] || b[2]|0x20 != s[2] {
			continue
		}
		if n == 3 || strings.EqualFold(string(b[:n]), s) {
			return i, n
		}
		return -1, n
	}
	return -1, n
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
