package convert_test

import (
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
	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

// TestAnyTable draws tables of few tickers and times, so that rows are in any order and often of one time, cuts them into
// files, and compares with a map that takes the rows one by one.
func TestAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		type key struct {
			ticker string
			second int64
		}
		type cells struct{ x, session string }
		want, all := map[key]cells{}, map[key][]cells{}
		on := rapid.SampledFrom([]convert.OnDuplicate{convert.DuplicateFirst, convert.DuplicateLast}).Draw(t, "on duplicate")
		gap := rapid.Int64Range(1, 20).Draw(t, "gap")
		rows, kept := 0, 0
		for f := range rapid.IntRange(1, 4).Draw(t, "files") {
			text := "time,ticker,x,session\n"
			for range rapid.IntRange(1, 40).Draw(t, "rows") {
				k := key{rapid.SampledFrom([]string{"B", "A", "NA"}).Draw(t, "ticker"), rapid.Int64Range(-30, 30).Draw(t, "time")}
				c := cells{rapid.SampledFrom([]string{"", "1", "-0.1", "16777217"}).Draw(t, "x"), rapid.SampledFrom([]string{"am", "pm"}).Draw(t, "session")}
				text += fmt.Sprintf("%s,%s,%s,%s\n", time.Unix(k.second, 0).UTC().Format("2006-01-02 15:04:05"), k.ticker, c.x, c.session)
				rows++
				all[k] = append(all[k], c)
				if _, twice := want[k]; !twice || on == convert.DuplicateLast {
					want[k] = c
				}
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.csv", f)), []byte(text), 0o666))
		}
		o := convert.Options{
			Inputs: []string{dir}, Output: filepath.Join(dir, "out.wst"), Ticker: "ticker", Columns: []string{"x"}, OnDuplicate: on,
			MaxGap: time.Duration(gap) * time.Second, Breaks: []convert.Break{{Name: "session", Column: "session"}},
		}
		o.Inject(nil, rapid.Int64Range(1, 4000).Draw(t, "bytes of rows in memory"))
		r, err := convert.Run(t.Context(), o)
		require.NoError(t, err)
		s, err := reader.Open(o.Output, &reader.Options{Verify: true})
		require.NoError(t, err)
		defer s.Close()
		require.Equal(t, format.Second, s.Meta().Schema.Unit)
		v, err := s.View()
		require.NoError(t, err)
		defer v.Release()
		for i, ticker := range s.Tickers() {
			times, err := v.Times(i)
			require.NoError(t, err)
			x, err := v.Series(i, 0)
			require.NoError(t, err)
			kept += len(times)
			var breaks [2][]int64
			for row, at := range times {
				c, ok := want[key{ticker, at}]
				require.True(t, ok, "%s has no row at %d", ticker, at)
				bits := uint32(missing)
				if c.x != "" {
					var f float32
					_, err := fmt.Sscan(c.x, &f)
					require.NoError(t, err)
					bits = math.Float32bits(f)
				}
				require.Equal(t, bits, math.Float32bits(x[row]))
				if row == 0 {
					continue
				}
				before := times[row-1]
				require.Less(t, before, at)
				if at-before > gap {
					breaks[0] = append(breaks[0], int64(row))
				}
				if want[key{ticker, before}].session != c.session {
					breaks[1] = append(breaks[1], int64(row))
				}
			}
			for set, rows := range breaks {
				var stored []int64
				for _, u := range s.Meta().Index.Breaks[set] {
					if u.Ticker == i {
						stored = s.Meta().Index.BreakLists[u.List]
					}
				}
				require.Equal(t, rows, stored, "breaks of set %d in %s", set, ticker)
			}
		}
		require.Len(t, want, kept)
		require.EqualValues(t, kept, r.RowsKept)
		require.EqualValues(t, rows, r.RowsRead)
		require.EqualValues(t, rows-kept, r.Duplicates)
		contradictory := 0
		for k, rows := range all {
			for _, c := range rows {
				if c != want[k] {
					contradictory++
				}
			}
		}
		require.EqualValues(t, contradictory, r.Contradictory)
		require.False(t, strings.Contains(fmt.Sprint(r.Hints), "--max-gap"))
	})
}
