package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// TimeColumn picks the time column: the one with a usual name (date, time,
// datetime, timestamp, ..., in any case), or else the only one whose cells are
// times. Of two of which one holds dates and the other times of day it is the
// first; TimeOfDay gives the other. An *UnusableError says that there is none, or
// more than one.
func (s *Survey) TimeColumn() (int, error) {
	var named, timed []int
	for i, c := range s.Columns {
		if isTimeName(c.Name) {
			named = append(named, i)
		}
		if c.Kind == Time {
			timed = append(timed, i)
		}
	}
	pick := named
	if len(pick) == 0 {
		pick = timed
	}
	if len(pick) == 1 {
		return pick[0], nil
	}
	if len(pick) == 2 {
		for i, date := range pick {
			if s.TimeOfDay(date) == pick[1-i] {
				return date, nil
			}
		}
	}
	names := make([]string, len(pick))
	for i, j := range pick {
		names[i] = s.Columns[j].Name
	}
	e := &UnusableError{Path: s.firstPath()}
	switch {
	case len(pick) == 0:
		all := make([]string, len(s.Columns))
		for i, c := range s.Columns {
			all[i] = c.Name
		}
		e.Reason = "no column is named like a time or holds times; the columns are " + quoteAll(all)
		e.Hint = "name the time column with --time; if there is none, add one"
		for i, c := range s.Columns {
			if c.Kind != Text || len(s.samples[i]) == 0 {
				continue
			}
			if one := s.samples[i][0].text; shapeOf(trim([]byte(one))).family != noFamily {
				e.Hint = fmt.Sprintf("column %q begins like one, with %q; --time %q says what is wrong with the rest", clip(c.Name), one, c.Name)
				break
			}
		}
	default:
		e.Reason = "the time may be in any of the columns " + quoteAll(names)
		e.Hint = "name one with --time, or that of the date with --time and that of the time of day with --time-of-day"
	}
	return -1, e
}

// timeNames are the names, in lower case, by which a time column is known.
var timeNames = []string{"date", "time", "datetime", "date_time", "date time", "timestamp", "ts", "day", "open time", "open_time", "date/time"}

// isTimeName reports whether a column is named like one of times.
func isTimeName(name string) bool {
	return slices.Contains(timeNames, strings.ToLower(strings.TrimSpace(name)))
}

// TimeOfDay finds the column named like a time whose cells are times of day that
// complete the dates of another: for Plan.Clock. It is -1 where there is none, or
// more than one, or where dates have a time of day already.
func (s *Survey) TimeOfDay(date int) int {
	if s.o.TimeFormat != "" {
		return -1
	}
	found := -1
	for i, c := range s.Columns {
		if i == date || !isTimeName(c.Name) || !s.complete(date, i) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// complete reports whether all sampled cells of two columns are dates without and
// times of day without a date.
func (s *Survey) complete(date, clock int) bool {
	both := s.joined(date, clock)
	f, at := detectFormat(both, true)
	if at < 0 {
		return false
	}
	if d, at := detect(s.samples[date]); at < 0 || d.clock || d.family == epoch {
		return false
	}
	return !slices.ContainsFunc(both, func(one cell) bool {
		g := shape([]byte(one.text), true)
		return g.family == noFamily || !f.sameShape(&g)
	})
}

// joined joins the sampled cells of two columns that stand in one row.
func (s *Survey) joined(date, clock int) (both []cell) {
	rest := s.samples[clock]
	for _, d := range s.samples[date] {
		i := slices.IndexFunc(rest, func(c cell) bool { return c.path == d.path && c.line == d.line })
		if i < 0 {
			continue
		}
		one := d
		one.text = string(trim([]byte(d.text))) + " " + string(trim([]byte(rest[i].text)))
		both, rest = append(both, one), rest[i+1:]
	}
	return both
}

// timeFormats finds the formats of the plan's time columns, that of Plan.Time
// first. Options.TimeFormat is that of all, but with Plan.Clock of that time only.
func (s *Survey) timeFormats(ctx context.Context, p *Plan) ([]timeFormat, error) {
	formats := make([]timeFormat, 1+len(p.Times))
	given := s.o.TimeFormat
	var err error
	if p.Time < 0 {
		// Rows have none.
	} else if len(p.Clock) > 0 {
		formats[0], err = s.bothFormat(ctx, p.Time, p.Clock[0])
		given = ""
	} else {
		formats[0], err = s.timeFormat(ctx, p.Time, given)
	}
	for i, c := range p.Times {
		if err != nil {
			return nil, err
		}
		formats[1+i], err = s.timeFormat(ctx, c, given)
	}
	return formats, err
}

// timeFormat finds the format of one column.
func (s *Survey) timeFormat(ctx context.Context, column int, given string) (timeFormat, error) {
	if given != "" {
		f, err := parseFormat(given)
		return f.dated(), err
	}
	samples := slices.DeleteFunc(slices.Clone(s.samples[column]), func(one cell) bool { return one.typed })
	f, at := detect(samples)
	switch {
	case at >= 0:
	case len(samples) == 0 && s.numbers[column] < 0:
		return timeFormat{}, nil // their type is a time
	case len(samples) > 0:
		reason, hint := whyNoTime(samples[0].text)
		return f, samples[0].fault(s.Columns[column].Name, reason, hint)
	default:
		return f, s.noTimes(column)
	}
	return s.ordered(ctx, f, samples[at], &Plan{Ticker: -1, Time: column})
}

func (s *Survey) noTimes(column int) error {
	return &UnusableError{Path: s.firstPath(), Reason: fmt.Sprintf("column %q begins without any time", s.Columns[column].Name), Hint: "name a column of times"}
}

// bothFormat finds the format of a date and a time of day in two columns.
func (s *Survey) bothFormat(ctx context.Context, date, clock int) (timeFormat, error) {
	given := s.o.TimeFormat
	if given == "" {
		both := s.joined(date, clock)
		if len(both) == 0 {
			return timeFormat{}, s.noTimes(date)
		}
		f, at := detectFormat(both, true)
		if at >= 0 {
			return s.ordered(ctx, f, both[at], &Plan{Ticker: -1, Time: date, Clock: []int{clock}})
		}
		if d, err := s.timeFormat(ctx, date, ""); err != nil {
			return f, err
		} else if d.clock || d.family == epoch {
			return f, s.samples[date][0].fault(s.Columns[date].Name, "has a time of day itself", "leave --time-of-day out")
		}
		return f, s.samples[clock][0].fault(s.Columns[clock].Name, "is not a time of day in a format that is recognised",
			"give its layout with --time-format, such as %H, %H%M%S, s-of-day or ms-of-day")
	}
	f, err := parseFormat(given)
	if f.apart = true; err != nil || !f.undated {
		return f, err
	}
	// Only the time of day is given.
	d, err := s.timeFormat(ctx, date, "")
	switch {
	case err != nil:
		return f, err
	case d.clock || d.family == epoch:
		return f, s.samples[date][0].fault(s.Columns[date].Name, "has a time of day itself", "leave --time-of-day out")
	case d.family == noFamily: // a date by its type, which is shown so
		d.family, d.sep = yearFirst, '-'
	}
	d.given, d.apart, d.clock = d.String()+" "+given, true, true
	if f.family == noFamily {
		d.unit = f.unit
		return d, nil
	}
	layout, err := fromStrftime(strings.TrimSuffix(d.given, " "+given))
	f.layout, f.undated, f.given = layout+" "+strings.TrimPrefix(f.layout, "2006-01-02 "), false, d.given
	f.example = d.example + " " + f.example
	return f, err
}

// ordered decides whether day or month comes first in a format that one has.
func (s *Survey) ordered(ctx context.Context, f timeFormat, one cell, p *Plan) (timeFormat, error) {
	if f.family != eitherFirst {
		return f, nil
	}
	var err error
	f.family, err = s.decide(ctx, p, f)
	if err == nil && f.family == eitherFirst {
		err = one.fault(s.Columns[p.Time].Name, "leaves open whether day or month comes first, as does the whole column",
			"say so with --time-format, as %d/%m/%Y or %m/%d/%Y")
	}
	return f, err
}

// decide reads a column of dates up to the first that shows whether day or month
// comes first; if none does, it is still eitherFirst.
func (s *Survey) decide(ctx context.Context, p *Plan, f timeFormat) (family, error) {
	decided := eitherFirst
	worker := func() *parser {
		q := newParser(s, p, []timeFormat{f})
		q.time.probe, q.skip = true, true // what is wrong with a row is for Read to say, in order
		return q
	}
	err := s.run(ctx, worker, nil, func(u *unit) error {
		for _, t := range u.out.batch.Times {
			if fam := family(t); fam != eitherFirst {
				decided = fam
				return errDecided
			}
		}
		return nil
	})
	if err == errDecided {
		err = nil
	}
	return decided, err
}

// errDecided ends the reading ahead.
var errDecided = errors.New("decided")

// checkDates reports the first source whose name should give the date of its rows
// and does not.
func (s *Survey) checkDates() error {
	for _, src := range s.Sources {
		if _, reason := nameDate(filepath.Base(src.Path)); reason != "" {
			return &UnusableError{Path: src.Path, Reason: "the times are times of day, and the file " + reason,
				Hint: "name the column of the date with --time and that of the time of day with --time-of-day, or rename the file"}
		}
	}
	return nil
}

// NameTime is the beginning of the day that a source's name gives, such as closes_2013-02-08.csv or 20130208.csv, in
// nanoseconds. A name without a date, or with two, is an *UnusableError.
func (s *Survey) NameTime(source int) (int64, error) {
	path := s.Sources[source].Path
	date, reason := nameDate(filepath.Base(path))
	var ns int64
	if reason == "" {
		day, _ := time.Parse(time.DateOnly, date) // nameDate has parsed it
		var twice int64
		z := zone{loc: s.o.Location, twice: s.o.AmbiguousTime, count: &twice}
		if ns, reason = z.localise(day.Unix(), 0); reason != "" {
			reason = "gives the date " + date + ", whose midnight " + reason
		}
	}
	if reason != "" {
		return 0, &UnusableError{Path: path, Reason: reason, Hint: "rename the file, or name the column of the time with --time"}
	}
	return ns, nil
}

// checkStyles reports the first of the columns of which the sample leaves open what
// the points and commas in its numbers are.
func (s *Survey) checkStyles(columns []int) error {
	for _, c := range columns {
		if !s.open[c] {
			continue
		}
		i := max(0, slices.IndexFunc(s.samples[c], func(one cell) bool { return bytes.ContainsAny([]byte(one.text), ".,") }))
		return s.samples[c][i].fault(s.Columns[c].Name, "leaves open whether its comma is a decimal comma or stands between thousands, as do the first rows",
			"say so with --decimal point or --decimal comma")
	}
	return nil
}
