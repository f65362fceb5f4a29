package convert_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/reader"
)

func TestParseFill(t *testing.T) {
	for text, want := range map[string]convert.Fill{
		"close=ffill":    {Column: "close", Forward: true},
		"close=ffill:5":  {Column: "close", Forward: true, Max: 5},
		"volume=0":       {Column: "volume", Value: "0"},
		"sector=ffilled": {Column: "sector", Value: "ffilled"},
		"x=a=b":          {Column: "x", Value: "a=b"},
	} {
		got, err := convert.ParseFill(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
	}
	for _, text := range []string{"", "close", "=0", "close=", "close=ffill:", "close=ffill:0", "close=ffill:-1", "close=ffill:2147483648", "close=ffill:x"} {
		_, err := convert.ParseFill(text)
		require.Error(t, err, text)
	}
}

// TestAnyFill compares with rules applied to one row after the other, from the newest duplicate to breaks of all kinds.
func TestAnyFill(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		most := rapid.IntRange(0, 3).Draw(r, "max")
		gap := rapid.IntRange(1, 4).Draw(r, "gap")
		text := "time,ticker,x,y,z,session\n"
		want := map[string]series{}
		filled := [2]int64{}
		for _, ticker := range []string{"A", "B"} {
			w := series{cells: map[string][]uint32{}}
			second := 0
			last, run, session := uint32(missing), 0, "am"
			for range rapid.IntRange(1, 30).Draw(r, "rows") {
				step := rapid.IntRange(1, 6).Draw(r, "step")
				now := rapid.SampledFrom([]string{"am", "pm"}).Draw(r, "session")
				if len(w.times) > 0 && (step > gap || now != session) {
					last, run = missing, 0
				}
				second += step
				session = now
				x := rapid.SampledFrom([]string{"", "", "nan", "1.5", "-0.1"}).Draw(r, "x")
				y := rapid.SampledFrom([]string{"", "inf", "2"}).Draw(r, "y")
				w.times = append(w.times, time.Unix(int64(second), 0))
				text += fmt.Sprintf("%s,%s,%s,%s,%s,%s\n", time.Unix(int64(second), 0).UTC().Format("2006-01-02 15:04:05"), ticker, x, y, x, now)
				raw := map[string]uint32{"": missing, "nan": missing, "inf": missing, "1.5": math.Float32bits(1.5), "-0.1": math.Float32bits(-0.1), "2": math.Float32bits(2)}
				bits := raw[x]
				switch {
				case bits != missing:
					last, run = bits, 0
				case last != missing && (most == 0 || run < most):
					bits = last
					run++
					filled[0]++
				}
				w.cells["x"] = append(w.cells["x"], bits)
				bits = raw[y]
				if bits == missing {
					bits = math.Float32bits(-7.25)
					filled[1]++
				}
				w.cells["y"] = append(w.cells["y"], bits)
				w.cells["z"] = append(w.cells["z"], raw[x])
			}
			want[ticker] = w
		}
		in := filepath.Join(dir, "in.csv")
		require.NoError(t, os.WriteFile(in, []byte(text), 0o666))
		o := convert.Options{
			Inputs: []string{in}, Output: filepath.Join(dir, "out.wst"), Ticker: "ticker", Columns: []string{"x", "y", "z"},
			MaxGap: time.Duration(gap) * time.Second, Breaks: []convert.Break{{Name: "session", Column: "session"}},
			Fills: []convert.Fill{{Column: "x", Forward: true, Max: most}, {Column: "y", Value: "-7.25"}},
		}
		report, err := convert.Run(context.Background(), o)
		require.NoError(t, err)
		s, err := reader.Open(o.Output, &reader.Options{Verify: true})
		require.NoError(t, err)
		defer s.Close()
		got := contents(t, s)
		require.Len(t, got, len(want))
		for name := range want {
			for c := range want[name].cells {
				require.Equal(t, want[name].cells[c], got[name].cells[c], "%s %s", name, c)
			}
		}
		require.Equal(t, filled, [2]int64{report.Columns[0].Filled, report.Columns[1].Filled})
		require.Zero(t, report.Columns[2].Filled)
	})
}

// Rows that are filled across the blocks in which rows are written, and those of a next ticker.
func TestLongFill(t *testing.T) {
	var b strings.Builder
	b.WriteString("date,ticker,x\n2020-01-01 00:00,A,3\n")
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := 1; i < 10_000; i++ {
		b.WriteString(start.Add(time.Duration(i)*time.Minute).Format("2006-01-02 15:04") + ",A,\n")
	}
	b.WriteString("2020-01-01 00:00,B,\n")
	r, s := convertText(t, b.String(), convert.Options{Fills: []convert.Fill{{Column: "x", Forward: true, Max: 9000}}})
	require.EqualValues(t, 9000, r.Columns[0].Filled)
	require.EqualValues(t, 10_000, r.Columns[0].Missing, "of the rows that were read")
	got := contents(t, s)
	require.Equal(t, math.Float32bits(3), got["A"].cells["x"][9000])
	require.EqualValues(t, missing, got["A"].cells["x"][9001])
	require.EqualValues(t, missing, got["B"].cells["x"][0])
}

func TestFillsThatCanNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		o    convert.Options
		says string
	}{
		"unknown":     {convert.Options{Fills: []convert.Fill{{Column: "clse", Forward: true}}}, `did you mean "close"?`},
		"not stored":  {convert.Options{Columns: []string{"close"}, Fills: []convert.Fill{{Column: "open", Value: "0"}}}, `column "open" is not stored`},
		"time":        {convert.Options{Fills: []convert.Fill{{Column: "date", Value: "0"}}}, `column "date" is the time`},
		"mask":        {convert.Options{Masks: []string{"tradable"}, Fills: []convert.Fill{{Column: "tradable", Value: "1"}}}, `is a mask`},
		"target":      {convert.Options{Targets: []string{"ret:1"}, Fills: []convert.Fill{{Column: "ret", Forward: true}}}, `only --fill ret=VALUE`},
		"label end":   {convert.Options{Targets: []string{"ret:end"}, Fills: []convert.Fill{{Column: "end", Forward: true}}}, `column "end" is label ends`},
		"twice":       {convert.Options{Fills: []convert.Fill{{Column: "open", Value: "0"}, {Column: "open", Forward: true}}}, `filled twice`},
		"no number":   {convert.Options{Fills: []convert.Fill{{Column: "open", Value: "bfill"}}}, `"bfill" is neither ffill nor a number`},
		"no infinity": {convert.Options{Fills: []convert.Fill{{Column: "open", Value: "inf"}}}, `neither`},
		"too large":   {convert.Options{Fills: []convert.Fill{{Column: "open", Value: "1e39"}}}, `neither`},
		"hexadecimal": {convert.Options{Fills: []convert.Fill{{Column: "open", Value: "0x1p3"}}}, `neither`},
	} {
		c.o.Ticker = "ticker"
		require.ErrorContains(t, fails(t, wide, c.o), c.says, name)
	}
	r, s := convertText(t, "date,ticker,x,ret\n2024-01-02,A,1,\n2024-01-03,A,1,5\n", convert.Options{
		Targets: []string{"ret:1"}, Fills: []convert.Fill{{Column: "ret", Value: "0"}}})
	require.EqualValues(t, 1, r.Columns[1].Filled)
	require.Equal(t, []uint32{0, math.Float32bits(5)}, contents(t, s)["A"].cells["ret"])
}
