package ingest

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// clockReader turns the cells of one time column into UTC nanoseconds. It is
// used by one goroutine at a time.
type clockReader struct {
	timeFormat
	zone
	date  []byte // undated: the date from the file's name
	probe bool   // parse tells which of the two orders of day and month a cell has

	joined []byte // of the cells of date and time of day
}

// parse reads one cell. The reason is "" or what is wrong with the cell.
func (c *clockReader) parse(cell []byte) (ns int64, reason string) {
	cell = trim(cell)
	if c.probe {
		return int64(c.order(cell)), ""
	}
	if c.undated {
		if len(cell) == 0 {
			return 0, c.mismatch(cell)
		}
		return c.parseBoth(c.date, cell)
	}
	switch c.family {
	case epoch:
		return c.parseEpoch(cell)
	case excel:
		return c.parseExcel(cell)
	}
	return c.parseCivil(cell)
}

// parseBoth reads a date and a time of day that stand in two places.
func (c *clockReader) parseBoth(date, clock []byte) (ns int64, reason string) {
	date, clock = trim(date), trim(clock)
	if len(date) == 0 || len(clock) == 0 {
		return 0, "the time is empty"
	}
	c.joined = append(append(append(c.joined[:0], date...), ' '), clock...)
	if c.probe {
		return int64(c.order(c.joined)), ""
	}
	return c.parseCivil(c.joined)
}

// parseCivil reads a date and a time of day of any format but a count since 1970.
func (c *clockReader) parseCivil(cell []byte) (ns int64, reason string) {
	if c.family == byLayout {
		return c.parseLayout(cell)
	}
	m, reason := c.scan(cell)
	switch reason {
	case "":
	case notThisFormat, noSuchTime:
		return 0, c.mismatch(cell)
	default:
		return 0, reason
	}
	wall := m.days*86400 + m.second
	if c.aware {
		return nanos(wall-m.offset, m.nano)
	}
	return c.localise(wall, m.nano)
}

func (c *clockReader) parseLayout(cell []byte) (ns int64, reason string) {
	var m moment
	date := cell
	if c.unit > 0 { // behind a date stands a count of units since midnight
		i := bytes.LastIndexByte(cell, ' ')
		if i < 0 {
			return 0, c.mismatch(cell)
		}
		date = cell[:i]
		if reason := m.count(cell[i+1:], c.unit); reason == notThisFormat {
			return 0, c.mismatch(cell)
		} else if reason != "" {
			return 0, reason
		}
	}
	if strings.HasSuffix(c.layout, "-0700") {
		date = shortOffset(date)
	}
	t, err := time.Parse(c.layout, string(date))
	if err != nil {
		return 0, c.mismatch(cell)
	}
	wall, nano := t.Unix()+m.second, int64(t.Nanosecond())+m.nano
	if c.aware {
		return nanos(wall, nano)
	}
	return c.localise(wall, nano)
}

// shortOffset writes the UTC offset at the end of a cell, Z or -05 or -05:00, as
// package time wants it: -0500.
func shortOffset(cell []byte) []byte {
	n := len(cell)
	sign := func(i int) bool { return i > 0 && (cell[i] == '-' || cell[i] == '+') }
	switch {
	case n > 1 && (cell[n-1] == 'Z' || cell[n-1] == 'z'):
		return append(cell[:n-1:n-1], "+0000"...)
	case sign(n-6) && cell[n-3] == ':':
		return append(cell[:n-3:n-3], cell[n-2:]...)
	case sign(n - 3):
		return append(cell[:n:n], "00"...)
	}
	return cell
}

// hint says what to try about a cell that parse refuses for a reason.
func (c *clockReader) hint(cell []byte, reason string) string {
	switch {
	case reason == fmt.Sprintf(clocksForward, c.loc):
		return hintOffset
	case reason == fmt.Sprintf(clocksBack, c.loc):
		return hintTwice
	case reason == outOfRange && (c.family != epoch || c.guessed), reason == noSuchDay, c.given == "" && shape(cell, c.apart).family == noFamily, !bytes.ContainsAny(cell, "0123456789"):
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
	if c.unit > 0 && c.family != epoch {
		return fmt.Sprintf("is not a time of day in %s since midnight", unitName(c.unit))
	}
	like := fmt.Sprintf("is not a time like %q, the format of this column", c.example)
	g := shape(cell, c.apart)
	if why, _ := whyNoTime(string(cell)); g.family == noFamily && !c.apart && why != notRecognised {
		return fmt.Sprintf("%s, while the column has times like %q", why, c.example)
	}
	switch {
	case g.family == noFamily || c.family >= epoch || g.family >= epoch:
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
	part, reason := fractionOf(frac, c.unit)
	if reason != "" {
		return 0, reason
	}
	if cell[0] == '-' { // the fraction counts towards the sign of the whole
		part = -part
	}
	sum := ns + part
	if part > 0 && sum < ns || part < 0 && sum > ns || sum == noStamp {
		return 0, outOfRange
	}
	return sum, ""
}

// parseExcel reads days since 1899-12-30, of local time, to the nearest
// millisecond, as spreadsheets show them. Days before March 1900, which
// spreadsheets count in another way, are refused.
func (c *clockReader) parseExcel(cell []byte) (int64, string) {
	const first, epochDay = 61, 25569
	days, frac, ok := epochParts(cell)
	switch {
	case !ok || len(frac) > 40:
		return 0, c.mismatch(cell)
	case days < first || days > math.MaxInt32:
		return 0, "is not a day of a spreadsheet from March 1900 on"
	}
	ms := int64(0)
	if n := int64(len(frac)); n > 0 { // rounded once, half up
		x, _ := new(big.Int).SetString(string(frac), 10)
		p := new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil)
		x.Add(x.Mul(x, big.NewInt(2*86400_000)), p)
		ms = x.Div(x, p.Lsh(p, 1)).Int64()
	}
	return c.localise((days-epochDay)*86400+ms/1000, ms%1000*int64(time.Millisecond))
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
