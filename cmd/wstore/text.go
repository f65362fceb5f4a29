package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

// jsonSchema is the version of what --json prints: keys are added under the same number, never changed.
const jsonSchema = 1

// writeJSON writes one object on one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// clean escapes what could disturb a terminal: control characters, invisible ones and what is not UTF-8.
func clean(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		s = s[n:]
	}
	return b.String()
}

// some lists names for a person: at most eight of them, long ones cut.
func some(names []string) string {
	const most, longest = 8, 40
	var parts []string
	for i, n := range names {
		if i == most && len(names) > most+1 {
			parts = append(parts, fmt.Sprintf("and %s more", count(len(names)-i)))
			break
		}
		if n = clean(n); utf8.RuneCountInString(n) > longest {
			n = string([]rune(n)[:longest]) + "…"
		}
		parts = append(parts, n)
	}
	return strings.Join(parts, ", ")
}

// count writes a number with commas.
func count[T int | int64](n T) string { return humanize.Comma(int64(n)) }

// plural writes a number and its noun.
func plural[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

// size writes a number of bytes.
func size(n int64) string { return humanize.IBytes(uint64(n)) }

// span writes an amount of time in the largest unit that it is a whole number of.
func span(v int64, unit format.Unit) string {
	perSecond := int64(time.Second / unit.Duration())
	for _, u := range []struct {
		name    string
		seconds int64
	}{{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}} {
		if v%(u.seconds*perSecond) == 0 {
			return plural(v/(u.seconds*perSecond), u.name)
		}
	}
	return count(v) + " " + unit.String()
}

// clock writes a file's times, in UTC: as RFC 3339 with the digits of the file's unit, or as dates. A time that RFC 3339
// has no year for is written as a number of units. It is for one goroutine; copies are independent.
type clock struct {
	dates  bool
	per    int64 // units in a second
	digits int   // of a fraction
	day    int64 // that date holds; none before the first use
	date   string
}

func newClock(unit format.Unit, dates bool) clock {
	return clock{dates: dates, per: int64(time.Second / unit.Duration()), digits: 3 * int(unit)}
}

const secondsPerDay = 86400

// append appends the text of a time in units of the file.
func (c *clock) append(dst []byte, v int64) []byte {
	const year0, year10000 = -62167219200, 253402300800
	second, rest := floorDiv(v, c.per)
	if second < year0 || second >= year10000 {
		return strconv.AppendInt(dst, v, 10)
	}
	day, second := floorDiv(second, secondsPerDay)
	if day != c.day || c.date == "" {
		c.day, c.date = day, time.Unix(day*secondsPerDay, 0).UTC().Format(time.DateOnly)
	}
	dst = append(dst, c.date...)
	if c.dates {
		return dst
	}
	dst = append(dst, 'T')
	dst = appendTwo(dst, second/3600)
	dst = appendTwo(append(dst, ':'), second/60%60)
	dst = appendTwo(append(dst, ':'), second%60)
	if c.digits > 0 {
		dst = append(dst, '.')
		for d := c.per / 10; d > 0; d /= 10 {
			dst = append(dst, byte('0'+rest/d%10))
		}
	}
	return append(dst, 'Z')
}

func (c *clock) text(v int64) string { return string(c.append(nil, v)) }

func appendTwo(dst []byte, n int64) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// floorDiv returns quotient and remainder, which is never negative.
func floorDiv(a, b int64) (q, r int64) {
	if q, r = a/b, a%b; r < 0 {
		q, r = q-1, r+b
	}
	return q, r
}

// midnight reports whether all times but those that stand for none are midnight UTC.
func midnight(unit format.Unit, times []int64) bool {
	day := secondsPerDay * int64(time.Second/unit.Duration())
	for _, t := range times {
		if t%day != 0 && t != format.NoTime {
			return false
		}
	}
	return true
}

// onlyDates reports whether a file's times are dates: of a source without a zone, and all of them midnight.
func onlyDates(s *reader.Store, v *reader.View) (bool, error) {
	schema := s.Meta().Schema
	if schema.Zone != "" {
		return false, nil
	}
	dates := true
	seen := map[format.Piece]bool{} // many tickers share their times
	err := v.Guard(func() error {
		for t := range s.Tickers() {
			key := s.Meta().Tickers.Piece(t)
			if seen[key] {
				continue
			}
			seen[key] = true
			times, err := v.Times(t)
			if err != nil {
				return err
			}
			if dates = midnight(schema.Unit, times); !dates {
				return nil
			}
		}
		return nil
	})
	return dates, err
}
