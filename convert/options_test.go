package convert_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

// groups describes the groups of a schema: name and columns, label ends marked by an asterisk.
func groups(s *reader.Store) (out []string) {
	for _, g := range s.Meta().Schema.Groups {
		var names []string
		for _, c := range g.Columns {
			names = append(names, c.Name)
		}
		name := g.Name
		if g.DType == format.Int64 {
			name += "*"
		}
		out = append(out, name+"="+strings.Join(names, ","))
	}
	return out
}

func column(t *testing.T, s *reader.Store, name string) format.Column {
	t.Helper()
	for _, g := range s.Meta().Schema.Groups {
		for _, c := range g.Columns {
			if c.Name == name && c.Role != format.LabelEnd {
				return c
			}
		}
	}
	require.Fail(t, "no such column", name)
	return format.Column{}
}

const wide = `date,ticker,open,close,volume,ret,tradable,session,end
2024-01-02,A,1,10,100,0.1,1,am,2024-01-05
2024-01-03,A,2,20,200,0.2,0,am,
2024-01-04,A,3,30,300,0.3,1,pm,2024-01-09
2024-01-05,A,4,40,400,0.4,,am,2024-01-10
`

func TestGroups(t *testing.T) {
	_, s := convertText(t, wide, convert.Options{})
	require.Equal(t, []string{"features=open,close,volume,ret,tradable"}, groups(s), "all numeric columns in their order")

	_, s = convertText(t, wide, convert.Options{Columns: []string{"volume", "open"}})
	require.Equal(t, []string{"features=volume,open"}, groups(s), "in the order asked for")
	require.Equal(t, truth(t, strings.NewReader(wide), "ticker", "date", time.DateOnly, "volume", "open"), contents(t, s))

	_, s = convertText(t, wide, convert.Options{
		Targets: []string{"ret"}, Masks: []string{"tradable"}, Groups: []convert.Group{{Name: "size", Columns: []string{"volume"}}},
	})
	require.Equal(t, []string{"features=open,close", "size=volume", "targets=ret", "masks=tradable"}, groups(s))

	_, s = convertText(t, wide, convert.Options{Columns: []string{}, Targets: []string{"ret"}, Lookback: 2})
	require.Equal(t, []string{"targets=ret"}, groups(s), "no features, if none are named")

	var usage *convert.UsageError
	for says, o := range map[string]convert.Options{
		`column "ret" is a target and a feature`:   {Columns: []string{"ret"}, Targets: []string{"ret"}},
		`column "ret" is a target and a target`:    {Targets: []string{"ret", "ret:5"}},
		`column "date" is the time and a feature`:  {Columns: []string{"date"}},
		`column "ticker" is the ticker and a mask`: {Masks: []string{"ticker"}},
		`"close" names both a group and a column`:  {Groups: []convert.Group{{Name: "close", Columns: []string{"open"}}}},
		`two groups are named "features"`:          {Groups: []convert.Group{{Name: "features", Columns: []string{"open"}}}},
		`two break sets are named "gap"`:           {MaxGap: 1, Breaks: []convert.Break{{Name: "gap", Column: "session"}}},
		`a group has no name`:                      {Groups: []convert.Group{{Columns: []string{"open"}}}},
		`on duplicates "maybe"`:                    {OnDuplicate: "maybe"},
		`memory 1 bytes; must be at least 16 MiB`:  {Memory: 1},
		`jobs -1`:                               {Jobs: -1},
		`a gap of -1s`:                          {MaxGap: -time.Second},
		`lookback -1`:                           {Lookback: -1},
		`alignment 100; must be a power of two`: {Align: 100},
		`alignment 32; must be a power of two from`: {Align: 32},
	} {
		o.Ticker = "ticker"
		err := fails(t, wide, o)
		require.ErrorAs(t, err, &usage, says)
		require.ErrorContains(t, err, says)
	}
}

func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	text := "date,ticker,a," + long + "\n2024-01-02,A,1,2\n"
	var usage *convert.UsageError
	err := fails(t, text, convert.Options{Ticker: "ticker"})
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "has 300 bytes, at most 255 are possible; rename the column in the inputs, or leave it out with --columns")
	require.NotContains(t, err.Error(), "--group")
	_, s := convertText(t, text, convert.Options{Columns: []string{"a"}})
	require.Equal(t, []string{"features=a"}, groups(s))
	err = fails(t, text, convert.Options{Ticker: "ticker", Columns: []string{}, Groups: []convert.Group{{Name: long, Columns: []string{"a"}}}})
	require.ErrorContains(t, err, "choose another name with --group")
}

func TestTargets(t *testing.T) {
	text := strings.Replace(wide, "volume", "ret:5", 1)
	_, s := convertText(t, text, convert.Options{Targets: []string{"ret:5"}})
	require.Equal(t, format.Column{Name: "ret:5"}, column(t, s, "ret:5"), "a whole name wins")

	for target, want := range map[string]format.Column{
		"ret":             {Name: "ret"},
		"ret:0":           {Name: "ret", ReachKind: format.ReachRows},
		"ret:20":          {Name: "ret", ReachKind: format.ReachRows, Reach: 20},
		"ret:5d":          {Name: "ret", ReachKind: format.ReachDuration, Reach: 5 * 86400},
		"ret:1m30s":       {Name: "ret", ReachKind: format.ReachDuration, Reach: 90},
		"ret:250ms":       {Name: "ret", ReachKind: format.ReachDuration, Reach: 250}, // the unit of the file gets finer
		"ret:end":         {Name: "ret", ReachKind: format.ReachColumn, Reach: 5},
		"ret:5:20":        {Name: "ret:5", ReachKind: format.ReachRows, Reach: 20},
		"ret:5:end":       {Name: "ret:5", ReachKind: format.ReachColumn, Reach: 5},
		"close:0.5w":      {Name: "close", ReachKind: format.ReachDuration, Reach: 84 * 3600},
		"open:2147483647": {Name: "open", ReachKind: format.ReachRows, Reach: 2147483647},
	} {
		_, s := convertText(t, text, convert.Options{Targets: []string{target}})
		require.Equal(t, want, column(t, s, want.Name), target)
	}
	for target, says := range map[string]string{
		"ret:ed": `reach "ed" of target "ret" is neither rows, a duration nor a column: no column "ed"`,
		"x:5":    `no column "x"`,
	} {
		require.ErrorContains(t, fails(t, wide, convert.Options{Targets: []string{target}}), says)
	}
	var usage *convert.UsageError
	for _, reach := range []string{"-3", "99999999999", "2147483648", "1.5", "5x", "999999999d", ""} {
		err := fails(t, wide, convert.Options{Targets: []string{"close:" + reach}})
		require.ErrorAs(t, err, &usage)
		require.EqualError(t, usage, `reach "`+reach+`" of target "close"; must be rows from 0 to 2147483647, a duration such as 5d, or a column`)
	}
	require.ErrorAs(t, fails(t, wide, convert.Options{Targets: []string{"ret:date"}}), &usage)
	require.ErrorAs(t, fails(t, wide, convert.Options{Targets: []string{"ret:close"}, Columns: []string{"close"}}), &usage)
}

func TestLabelEnds(t *testing.T) {
	for suffix, unit := range map[string]format.Unit{"": format.Second, "T00:00:00.001": format.Millisecond, "T00:00:00.000000001": format.Nanosecond} {
		text := strings.Replace(wide, "2024-01-09", "2024-01-09"+suffix, 1)
		if suffix != "" {
			text = strings.NewReplacer("2024-01-05\n", "2024-01-05T00:00:00\n", "2024-01-10\n", "2024-01-10T00:00:00\n").Replace(text)
		}
		_, s := convertText(t, text, convert.Options{Targets: []string{"ret:end", "close:end"}})
		require.Equal(t, []string{"features=open,volume,tradable", "targets=ret,close", "label_end.end*=end"}, groups(s), "one group, though two targets end with it")
		require.Equal(t, unit, s.Meta().Schema.Unit)
		v, err := s.View()
		require.NoError(t, err)
		ends, err := v.LabelEnds(0, 2)
		require.NoError(t, err)
		layout := time.DateOnly
		if suffix != "" {
			layout = "2006-01-02T15:04:05.999999999"
		}
		third, err := time.Parse(layout, "2024-01-09"+suffix)
		require.NoError(t, err)
		require.Equal(t, []time.Time{
			time.Date(2024, 1, 5, 0, 0, 0, 0, time.UTC), third, time.Date(2024, 1, 10, 0, 0, 0, 0, time.UTC),
		}, []time.Time{unit.Time(ends[0]), unit.Time(ends[2]), unit.Time(ends[3])})
		require.Equal(t, int64(format.NoTime), ends[1], "an empty one stays empty")
		v.Release()
	}
}

func TestMasks(t *testing.T) {
	text := "date,ticker,x,m\n"
	cells := []string{"1", "0", "true", "false", "", "TRUE", "False", "0.0", "-0", "NaN", "2.5", "inf"}
	present := []float32{1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 2.5, 0}
	for i, c := range cells {
		text += fmt.Sprintf("2024-01-%02d,A,%d,%s\n", i+1, i, c)
	}
	r, s := convertText(t, text, convert.Options{Masks: []string{"m"}, Columns: []string{"x"}})
	want := make([]uint32, len(cells))
	for i, v := range present {
		if want[i] = math.Float32bits(v); v == 0 {
			want[i] = missing
		}
	}
	require.Equal(t, want, contents(t, s)["A"].cells["m"])
	require.Equal(t, format.Mask, column(t, s, "m").Role)
	require.EqualValues(t, 8, r.Columns[1].Missing)
	require.Equal(t, 4, windows(t, s, reader.Query{Lookback: 1, Where: []string{"m"}}))
}

func TestMaxGapIsStrict(t *testing.T) {
	text := "date,ticker,x\n2024-01-01,A,1\n2024-01-04,A,2\n2024-01-08,A,3\n2024-01-09,A,4\n"
	for gap, want := range map[string][]int64{"3d": {2}, "71h59m59s": {1, 2}, "4d": nil, "71h59m59.5s": {1, 2}, "72h0m0.5s": {2}, "23h": {1, 2, 3}} {
		d, err := convert.ParseDuration(gap)
		require.NoError(t, err)
		_, s := convertText(t, text, convert.Options{MaxGap: d})
		require.Equal(t, want, breaks(t, s, "gap"), gap)
		b := s.Meta().Schema.Breaks
		require.Len(t, b, 1)
		require.Equal(t, d, time.Duration(b[0].MaxGap)*s.Meta().Schema.Unit.Duration(), "kept exactly")
	}
}

func TestUnitFollowsTimes(t *testing.T) {
	for stamp, want := range map[string]format.Unit{
		"10:00:00": format.Second, "10:00:00.5": format.Millisecond, "10:00:00.000001": format.Microsecond, "10:00:00.000000001": format.Nanosecond,
	} {
		text := "time,ticker,x\n1969-12-31T23:59:59,A,1\n2024-01-02T" + stamp + ",A,2\n"
		_, s := convertText(t, text, convert.Options{})
		require.Equal(t, want, s.Meta().Schema.Unit)
		at, err := time.Parse("2006-01-02T15:04:05.999999999", "2024-01-02T"+stamp)
		require.NoError(t, err)
		require.Equal(t, []time.Time{time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC), at}, contents(t, s)["A"].times)
	}
}

func TestBreaks(t *testing.T) {
	text := `date,ticker,x,session,contract
2024-01-01,A,1,am,1
2024-01-02,A,2,am,1
2024-01-03,A,3,pm,1
2024-01-04,A,4,pm,1.0
2024-01-05,A,5,,1.0
2024-01-06,A,6,,2
2024-01-07,B,6,zz,9
`
	o := convert.Options{Breaks: []convert.Break{{Name: "session", Column: "session"}, {Name: "roll", Column: "contract"}}, MaxGap: time.Hour}
	r, s := convertText(t, text, o)
	require.Equal(t, []int64{2, 4}, breaks(t, s, "session"))
	require.Equal(t, []int64{3, 5}, breaks(t, s, "roll"), "the text changes")
	require.Equal(t, []int64{1, 2, 3, 4, 5}, breaks(t, s, "gap"))
	require.Equal(t, []string{"features=x"}, groups(s), "a column of breaks is no feature")
	require.Empty(t, r.SkippedColumns, "and has a use")
	require.Equal(t, []format.BreakSet{
		{Name: "gap", Kind: format.BreakGap, MaxGap: 3600},
		{Name: "session", Kind: format.BreakColumn, Source: "session"},
		{Name: "roll", Kind: format.BreakColumn, Source: "contract"},
	}, s.Meta().Schema.Breaks)

	o.Columns = []string{"contract", "x"}
	_, s = convertText(t, text, o)
	require.Equal(t, []string{"features=contract,x"}, groups(s), "unless it is named")

	// Breaks follow the rows that are kept, in order of time.
	lines := strings.SplitAfter(text, "\n")
	_, s = convertText(t, lines[0]+lines[6]+lines[5]+lines[3]+lines[3]+lines[4]+lines[2]+lines[1], convert.Options{Breaks: o.Breaks, OnDuplicate: convert.DuplicateFirst})
	require.Equal(t, []int64{2, 4}, breaks(t, s, "session"))
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "3d": 3 * day, "1w": 7 * day, "1w2d": 9 * day, "1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour,
		".5d": 12 * time.Hour, "1.d": day, "500ms": 500 * time.Millisecond, "1ns": 1, "0.1d": 144 * time.Minute,
	} {
		got, err := convert.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "3", "0d", "-3d", "3 d", "3dd", "d", ".d", "1mo", "5y", "1e3d", "nand", "+d", "999999999999x"} {
		_, err := convert.ParseDuration(text)
		require.ErrorContains(t, err, "is not a duration such as 90m", text)
	}
	for _, text := range []string{strings.Repeat("9", 400) + "d", "200000w", "999999999999d", "106752d", "9999999h1m"} {
		_, err := convert.ParseDuration(text)
		require.ErrorContains(t, err, "is too long: a duration is at most 106751 days", text)
	}
}

func TestAlign(t *testing.T) {
	a, s := convertText(t, wide, convert.Options{})
	require.EqualValues(t, 4096, s.Meta().Newest.Align())
	b, s2 := convertText(t, wide, convert.Options{Align: 64})
	require.EqualValues(t, 64, s2.Meta().Newest.Align())
	require.Less(t, b.Bytes, a.Bytes)
	require.Equal(t, a.Digest, b.Digest, "the content is the same")
}
