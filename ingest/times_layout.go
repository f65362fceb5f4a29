package ingest

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// CheckTimeFormat says what is wrong with a non-empty Options.TimeFormat, and
// what would be right.
func CheckTimeFormat(format string) error {
	_, err := parseFormat(format)
	return err
}

// counts are the names of the formats that count units, since 1970 or midnight.
var counts = map[string]time.Duration{
	"epoch-s": time.Second, "epoch-ms": time.Millisecond, "epoch-us": time.Microsecond, "epoch-ns": 1,
	"s-of-day": time.Second, "ms-of-day": time.Millisecond, "us-of-day": time.Microsecond, "ns-of-day": 1,
}

// parseFormat reads Options.TimeFormat. A format of a time of day alone is undated,
// and without family where nothing is said of the date.
func parseFormat(s string) (timeFormat, error) {
	bad := func(reason string) (timeFormat, error) {
		const hint = `give strftime such as "%Y-%m-%d %H:%M:%S", a Go layout such as "2006-01-02", epoch-s, epoch-ms, epoch-us, epoch-ns, excel, or for a time of day s-of-day, ms-of-day, us-of-day, ns-of-day`
		return timeFormat{}, fmt.Errorf("time format %q: %s; %s", s, reason, hint)
	}
	l, f := s, timeFormat{family: byLayout, given: s}
	word := s[strings.LastIndexByte(s, ' ')+1:]
	switch unit, ok := counts[word]; {
	case ok && word == s && strings.HasPrefix(s, "epoch"):
		return timeFormat{family: epoch, unit: int64(unit), given: s, example: s}, nil
	case ok && word == s:
		return timeFormat{undated: true, clock: true, unit: int64(unit), given: s, example: s}, nil
	case ok && strings.HasSuffix(word, "-of-day"):
		l, f.unit, f.clock = strings.TrimRight(strings.TrimSuffix(s, word), " "), int64(unit), true
	case s == "excel":
		return timeFormat{family: excel, given: s, example: "43774.39583"}, nil
	}
	if strings.Contains(l, "%") {
		var err error
		if l, err = fromStrftime(l); err != nil {
			return bad(err.Error())
		}
	}
	if strings.Contains(l, "MST") {
		return bad("abbreviations of time zones are ambiguous")
	}
	// What a layout holds shows in what comes back of a time.
	ref := time.Date(2009, 11, 23, 22, 34, 56, 0, time.FixedZone("", 5*3600+1800))
	f.example = ref.Format(l)
	t, err := time.Parse(l, f.example)
	_, off := t.Zone()
	f.aware = off != 0 || strings.HasSuffix(l, "Z")
	switch {
	case err == nil && t.Hour() == ref.Hour()-12:
		return bad("has hours of 12 without AM or PM")
	case err == nil && t.Hour() == ref.Hour() && f.unit == 0 && t.Year() == 0 && t.YearDay() == 1:
		f.undated, f.clock, l = true, true, "2006-01-02 "+l
	case err != nil || t.Year() != 2009 || t.YearDay() != ref.YearDay() && (t.Day() != 1 || t.Month() != 11 && t.Month() != 1):
		return bad("does not hold a date, which is year, month and day, or year and month, or the year alone")
	case f.unit > 0 && t.Hour() != 0:
		return bad("holds the time of day twice")
	}
	if f.layout = l; f.unit > 0 {
		f.example += " " + word
	}
	return f, nil
}

// dated is the format of a time of day behind the date of a file's name.
func (f timeFormat) dated() timeFormat {
	if f.undated && f.family == noFamily {
		f.family, f.sep = yearFirst, '-'
	}
	return f
}

// fromStrftime turns a strftime format into a layout of package time. Numbers that
// do not touch others may lack their leading zeros.
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
		before := b.String()
		switch {
		case s[i] == 'f' && (strings.HasSuffix(before, "5.") || strings.HasSuffix(before, "5,")):
			l = "999999999"
		case s[i] == 'f':
			return "", fmt.Errorf("%%f must follow %%S and a point")
		case !ok:
			return "", fmt.Errorf("%%%c is not supported", s[i])
		}
		alone := (i+1 == len(s) || s[i+1] != '%') && (before == "" || !isDigit(before[len(before)-1]))
		if alone && strings.IndexByte("mdIMS", s[i]) >= 0 {
			l = l[1:]
		}
		b.WriteString(l)
	}
	return b.String(), nil
}

func isDigit(c byte) bool { return c-'0' < 10 }

// String describes the format for people and in reports: as Options.TimeFormat
// takes it, where it can.
func (f *timeFormat) String() string {
	if f.given != "" {
		return f.given
	}
	var b strings.Builder
	sep := func() {
		if f.sep != 0 {
			b.WriteByte(f.sep)
		}
	}
	parts := func(format ...string) {
		for i, p := range format {
			if i > 0 {
				sep()
			}
			b.WriteString(p)
		}
	}
	if f.weekday {
		b.WriteString("%a, ")
	}
	switch f.family {
	case epoch:
		return "epoch-" + map[int64]string{1e9: "s", 1e6: "ms", 1e3: "us", 1: "ns"}[f.unit]
	case packedDate:
		b.WriteString("%Y%m%d")
	case yearFirst:
		if f.month {
			parts("%Y", "%m")
		} else {
			parts("%Y", "%m", "%d")
		}
	case dayFirst:
		parts("%d", "%m", "%Y")
	case monthFirst:
		parts("%m", "%d", "%Y")
	case dayName:
		parts("%d", "%b", "%Y")
	case nameDay:
		parts("%b", "%d", "%Y")
	case yearName:
		parts("%Y", "%b", "%d")
	}
	if !f.clock {
		return b.String()
	}
	clock := []byte(f.example)
	colons, point := bytes.Count(clock, []byte(":")), false
	if i := bytes.IndexByte(clock, ':'); i >= 0 {
		clock = clock[i:]
		if i := bytes.IndexAny(clock, "+-"); i >= 0 { // without the offset
			colons -= bytes.Count(clock[i:], []byte(":"))
			clock = clock[:i]
		}
		point = bytes.ContainsAny(clock, ".,")
	}
	hour := "%H"
	if f.half {
		hour = "%I"
	}
	switch {
	case f.width == 12:
		return b.String() + "%H%M"
	case f.width == 14:
		return b.String() + "%H%M%S"
	case strings.Contains(f.example, "T") && !f.weekday && f.family <= packedDate:
		b.WriteByte('T')
	default:
		b.WriteByte(' ')
	}
	b.WriteString(hour)
	switch {
	case f.packed == 4:
		b.WriteString("%M")
	case f.packed == 6:
		b.WriteString("%M%S")
	case colons > 1:
		b.WriteString(":%M:%S")
	case colons > 0:
		b.WriteString(":%M")
	}
	if point {
		b.WriteString(".%f")
	}
	if f.half {
		if i := strings.LastIndexByte(strings.ToLower(f.example), 'm'); i > 1 && (f.example[i-2] == ' ' || f.example[i-2] == '-') {
			b.WriteByte(f.example[i-2])
		}
		b.WriteString("%p")
	}
	if f.aware {
		b.WriteString("%z")
	}
	return b.String()
}

// dateInName matches the dates in the names of files.
var dateInName = regexp.MustCompile(`(?:^|[^0-9])((?:19|20)\d\d)([-_.]?)(\d\d)([-_.]?)(\d\d)(?:[^0-9]|$)`)

// nameDate finds the one date in a file's name, as year-month-day. The reason is ""
// or why there is none.
func nameDate(name string) (date, reason string) {
	for at := 0; at < len(name); {
		m := dateInName.FindStringSubmatchIndex(name[at:])
		if m == nil {
			break
		}
		part := func(i int) string { return name[at+m[2*i] : at+m[2*i+1]] }
		text := part(1) + "-" + part(3) + "-" + part(5)
		_, err := time.Parse(time.DateOnly, text)
		switch {
		case err != nil || part(2) != part(4):
		case date != "" && date != text:
			return "", fmt.Sprintf("holds two dates in its name, %s and %s", date, text)
		default:
			date = text
		}
		at += m[1] - 1 // what ends one may begin the next
	}
	if date == "" {
		return "", "holds no date such as 20130208 or 2013-02-08 in its name"
	}
	return date, ""
}
