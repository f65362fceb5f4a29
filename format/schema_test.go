package format_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
)

// name draws a name of 1 to 255 bytes.
func name(t *rapid.T, label string) string {
	return rapid.StringN(1, 60, format.MaxName).Draw(t, label)
}

// schema draws a valid schema.
func schema(t *rapid.T) *format.Schema {
	s := &format.Schema{
		Unit: format.Unit(rapid.IntRange(0, 3).Draw(t, "unit")),
		Zone: rapid.SampledFrom([]string{"", "America/New_York"}).Draw(t, "zone"),
	}
	used := map[string]bool{}
	fresh := func(label string) string {
		for {
			if n := name(t, label); !used[n] {
				used[n] = true
				return n
			}
		}
	}
	for range rapid.IntRange(1, 4).Draw(t, "groups") {
		g := format.Group{Name: fresh("group"), DType: format.Float32}
		if rapid.Bool().Draw(t, "ends") {
			g.DType = format.Int64
			g.Columns = []format.Column{{Name: fresh("column"), Role: format.LabelEnd}}
		} else {
			for range rapid.IntRange(1, 4).Draw(t, "columns") {
				g.Columns = append(g.Columns, format.Column{Name: fresh("column"), Role: format.Role(rapid.IntRange(0, 1).Draw(t, "role"))})
			}
		}
		s.Groups = append(s.Groups, g)
	}
	var ends []int64
	for i, p := range s.Places() {
		if s.Groups[p.Group].DType == format.Int64 {
			ends = append(ends, int64(i))
		}
	}
	for _, p := range s.Places() {
		c := &s.Groups[p.Group].Columns[p.Column]
		if c.Role != format.Value {
			continue
		}
		switch kind := format.ReachKind(rapid.IntRange(0, 3).Draw(t, "reach")); {
		case kind == format.ReachColumn && len(ends) > 0:
			c.ReachKind, c.Reach = kind, rapid.SampledFrom(ends).Draw(t, "end")
		case kind == format.ReachRows, kind == format.ReachDuration:
			c.ReachKind, c.Reach = kind, rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount")
		}
	}
	sets := map[string]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "break sets") {
		b := format.BreakSet{Name: name(t, "set"), Kind: format.BreakKind(rapid.IntRange(1, 3).Draw(t, "kind"))}
		if sets[b.Name] {
			continue
		}
		sets[b.Name] = true
		switch b.Kind {
		case format.BreakGap:
			b.MaxGap = rapid.Int64Range(1, math.MaxInt64).Draw(t, "gap")
		case format.BreakColumn:
			b.Source = name(t, "source")
		}
		s.Breaks = append(s.Breaks, b)
	}
	return s
}

func TestSchemaRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schema(t)
		require.NoError(t, s.Validate())
		b := format.AppendSchema(nil, s)
		require.Equal(t, craft.Schema(s), b, "the specification's bytes")
		got, err := format.DecodeSchema(b, 8192)
		require.NoError(t, err)
		require.Equal(t, s, got)
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		refused(t, format.SectionInvalid, func() error { _, err := format.DecodeSchema(b[:cut], 8192); return err })
		refused(t, format.SectionInvalid, func() error { _, err := format.DecodeSchema(append(slices.Clone(b), 0), 8192); return err })
	})
}

// refused checks that an error has the code, lies at a byte from 8192 on, and says something.
func refused(t require.TestingT, code format.Code, decode func() error) {
	err := decode()
	require.ErrorIs(t, err, code)
	require.ErrorIs(t, err, format.ErrCorrupt)
	var c *format.CorruptError
	require.ErrorAs(t, err, &c)
	require.GreaterOrEqual(t, c.Offset, int64(8192))
	require.NotEmpty(t, c.Detail)
}

func TestSchemaRefusals(t *testing.T) {
	long := strings.Repeat("x", 256)
	valid := func() *format.Schema {
		return &format.Schema{
			Groups: []format.Group{
				{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y", Role: format.Mask}}},
				{Name: "ends", DType: format.Int64, Columns: []format.Column{{Name: "end", Role: format.LabelEnd}}},
			},
			Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 1}, {Name: "session", Kind: format.BreakColumn, Source: "s"}},
		}
	}
	require.NoError(t, valid().Validate())
	for what, change := range map[string]func(s *format.Schema){
		"unit":                       func(s *format.Schema) { s.Unit = 4 },
		"zone too long":              func(s *format.Schema) { s.Zone = long },
		"zone not UTF-8":             func(s *format.Schema) { s.Zone = "\xff" },
		"no groups":                  func(s *format.Schema) { s.Groups = nil },
		"too many groups":            func(s *format.Schema) { s.Groups = make([]format.Group, 1025) },
		"group without name":         func(s *format.Schema) { s.Groups[0].Name = "" },
		"group name too long":        func(s *format.Schema) { s.Groups[0].Name = long },
		"group name not UTF-8":       func(s *format.Schema) { s.Groups[0].Name = "a\xc0" },
		"group twice":                func(s *format.Schema) { s.Groups[1].Name = "features" },
		"group named like a column":  func(s *format.Schema) { s.Groups[1].Name = "x" },
		"dtype":                      func(s *format.Schema) { s.Groups[0].DType = 3 },
		"no columns":                 func(s *format.Schema) { s.Groups[0].Columns = nil },
		"two int64 columns":          func(s *format.Schema) { s.Groups[1].Columns = make([]format.Column, 2) },
		"column twice":               func(s *format.Schema) { s.Groups[1].Columns[0].Name = "x" },
		"column without name":        func(s *format.Schema) { s.Groups[0].Columns[0].Name = "" },
		"label end of float32":       func(s *format.Schema) { s.Groups[0].Columns[0].Role = format.LabelEnd },
		"value of int64":             func(s *format.Schema) { s.Groups[1].Columns[0].Role = format.Value },
		"role":                       func(s *format.Schema) { s.Groups[0].Columns[0].Role = 3 },
		"reach without kind":         func(s *format.Schema) { s.Groups[0].Columns[0].Reach = 1 },
		"reach of a mask":            func(s *format.Schema) { s.Groups[0].Columns[1].ReachKind = format.ReachRows },
		"reach kind":                 func(s *format.Schema) { s.Groups[0].Columns[0].ReachKind = 4 },
		"reach below 0":              func(s *format.Schema) { s.Groups[0].Columns[0] = format.Column{Name: "x", ReachKind: 1, Reach: -1} },
		"reach in no column":         func(s *format.Schema) { s.Groups[0].Columns[0] = format.Column{Name: "x", ReachKind: 3, Reach: 3} },
		"reach in a value":           func(s *format.Schema) { s.Groups[0].Columns[0] = format.Column{Name: "x", ReachKind: 3, Reach: 1} },
		"too many break sets":        func(s *format.Schema) { s.Breaks = make([]format.BreakSet, 65) },
		"break set without name":     func(s *format.Schema) { s.Breaks[0].Name = "" },
		"break set twice":            func(s *format.Schema) { s.Breaks[1].Name = "gap" },
		"break set kind 0":           func(s *format.Schema) { s.Breaks[0] = format.BreakSet{Name: "gap"} },
		"break set kind 4":           func(s *format.Schema) { s.Breaks[0] = format.BreakSet{Name: "gap", Kind: 4} },
		"gap of 0":                   func(s *format.Schema) { s.Breaks[0].MaxGap = 0 },
		"gap below 0":                func(s *format.Schema) { s.Breaks[0].MaxGap = -1 },
		"gap of another kind":        func(s *format.Schema) { s.Breaks[1].MaxGap = 1 },
		"source of another kind":     func(s *format.Schema) { s.Breaks[0].Source = "s" },
		"break column without name":  func(s *format.Schema) { s.Breaks[1].Source = "" },
		"break column name too long": func(s *format.Schema) { s.Breaks[1].Source = long },
	} {
		t.Run(what, func(t *testing.T) {
			s := valid()
			change(s)
			require.Error(t, s.Validate())
			refused(t, format.SectionInvalid, func() error { _, err := format.DecodeSchema(craft.Schema(s), 8192); return err })
		})
	}
	wide := valid()
	for i := range format.MaxColumns {
		wide.Groups[0].Columns = append(wide.Groups[0].Columns, format.Column{Name: "c" + strings.Repeat("x", i%200) + string(rune('0'+i))})
	}
	require.ErrorContains(t, wide.Validate(), "65538 columns")
	b := format.AppendSchema(nil, valid())
	for _, reserved := range []int{1, 2, 3, 8 + 2 + 2 + 8 + 1} {
		c := slices.Clone(b)
		c[reserved] = 1
		refused(t, format.SectionInvalid, func() error { _, err := format.DecodeSchema(c, 8192); return err })
	}
}

func TestTickerNames(t *testing.T) {
	for _, good := range []string{"NA", "000001", "BTC/USDT", " ", "日経", "\x00", strings.Repeat("x", 255)} {
		require.NoError(t, format.CheckTicker(good))
	}
	for _, bad := range []string{"", "a\xff", strings.Repeat("x", 256)} {
		require.ErrorIs(t, format.CheckTicker(bad), format.ErrName)
	}
}

var allUnits = []format.Unit{format.Second, format.Millisecond, format.Microsecond, format.Nanosecond}

// TestTimes checks that times survive, whatever the unit, and that Ceil gives the least number that is not before.
func TestTimes(t *testing.T) {
	require.Equal(t, "1969-12-31T23:59:59.999Z", format.Millisecond.Time(-1).Format(time.RFC3339Nano))
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.SampledFrom(allUnits).Draw(t, "unit")
		v := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64})).Draw(t, "time")
		got, exact := u.Ceil(u.Time(v))
		require.True(t, exact)
		require.Equal(t, v, got)

		if u.Duration() > 1 && v < math.MaxInt64 {
			beside := u.Time(v).Add(time.Duration(rapid.Int64Range(1, int64(u.Duration())-1).Draw(t, "beside")))
			got, exact = u.Ceil(beside)
			require.False(t, exact)
			require.Equal(t, v+1, got)
		}
	})
}

func TestCeilSaturates(t *testing.T) {
	for _, u := range allUnits[1:] { // all times that Go's calendar has are seconds
		for _, c := range []struct {
			year int
			want int64
		}{{-300_000_000, math.MinInt64}, {300_000_000, math.MaxInt64}} {
			got, exact := u.Ceil(time.Date(c.year, 1, 1, 0, 0, 0, 1, time.UTC))
			require.False(t, exact, "%s %d", u, c.year)
			require.Equal(t, c.want, got)
		}
	}
	for _, c := range []struct {
		at   time.Time
		want int64
	}{
		{format.Nanosecond.Time(math.MinInt64).Add(-1), math.MinInt64},
		{format.Nanosecond.Time(math.MaxInt64).Add(1), math.MaxInt64},
	} {
		got, exact := format.Nanosecond.Ceil(c.at)
		require.False(t, exact)
		require.Equal(t, c.want, got)
	}
	got, exact := format.Nanosecond.Ceil(format.Nanosecond.Time(math.MinInt64).Add(1))
	require.True(t, exact)
	require.Equal(t, int64(math.MinInt64+1), got)
}
