package reader_test

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/stats"
)

// momentsOf adds up the cells of each of a side's columns over the rows that windows take up, each row once.
func momentsOf(p *oracle.Panel, windows []oracle.Window, columns []int, rowsOf func(a int64) []int64) []stats.Moments {
	out := make([]stats.Moments, len(columns))
	for number := range p.Tickers {
		t := &p.Tickers[number]
		taken := make([]bool, len(t.Times))
		for _, w := range windows {
			if w.Ticker == number {
				for _, r := range rowsOf(w.Anchor) {
					taken[r] = true
				}
			}
		}
		for k, c := range columns {
			var m stats.Moments
			for r := range taken {
				if taken[r] && !t.IsMissing(c, int64(r)) {
					m.Add(float64(t.Cells[c][r]))
				}
			}
			out[k].Merge(&m)
		}
	}
	return out
}

// The statistics are those of the rows that windows take up, to the last bit, whatever the number of cores.
func TestStatistics(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(cores)
	counted := 0
	rapid.Check(t, func(t *rapid.T) {
		p := oracle.DrawPanel(t)
		q := oracle.DrawQuery(t, p)
		want, err := oracle.Windows(p, q)
		require.NoError(t, err)
		r, err := oracle.Resolve(p, q)
		require.NoError(t, err)
		x := momentsOf(p, want, r.Inputs, func(a int64) (rows []int64) {
			for row := a - r.Lookback + 1; row <= a; row++ {
				rows = append(rows, row)
			}
			return rows
		})
		y := momentsOf(p, want, r.Targets, func(a int64) (rows []int64) {
			for _, h := range r.Horizons {
				for row := a + h; row < a+h+r.TargetLength; row++ {
					rows = append(rows, row)
				}
			}
			return rows
		})
		for _, access := range []reader.Access{reader.Map, reader.Read} {
			s, err := reader.OpenBytes(craft.FromPanel(p).Build(), &reader.Options{Access: access})
			require.NoError(t, err)
			w, err := s.Windows(queryOf(q))
			require.NoError(t, err)
			for _, n := range []int{1, 3} {
				runtime.GOMAXPROCS(n)
				gotX, gotY, err := w.Statistics(context.Background())
				require.NoError(t, err)
				require.Equal(t, x, gotX)
				require.Equal(t, y, gotY)
			}
		}
		counted += len(want)
	})
	require.NotZero(t, counted)
}

// A panel of more rows than are read at once, and columns of several groups in an order of their own.
func TestStatisticsOfManyRows(t *testing.T) {
	c := steps(70_000, 3)
	c.Tickers[0].Cells[2][5] = float32(math.NaN())
	for _, access := range []reader.Access{reader.Map, reader.Read} {
		w := windows(t, open(t, c, access), reader.Query{
			Inputs: []string{"z", "ret", "x"}, Optional: []string{"z"}, Targets: []string{"y"}, Lookback: 2, Stride: 7, Horizons: []int{-1, 3},
		})
		x, y, err := w.Statistics(context.Background())
		require.NoError(t, err)
		r := oracle.Query{Inputs: []string{"z", "ret", "x"}, Optional: []string{"z"}, Targets: []string{"y"}, Lookback: 2, Stride: 7, Horizons: []int64{-1, 3}}
		all, err := oracle.Windows(c.Panel(), r)
		require.NoError(t, err)
		require.Equal(t, momentsOf(c.Panel(), all, []int{2, 3, 0}, func(a int64) []int64 { return []int64{a - 1, a} }), x)
		require.Equal(t, momentsOf(c.Panel(), all, []int{1}, func(a int64) []int64 { return []int64{a - 1, a + 3} }), y)
	}
}

func TestStatisticsFails(t *testing.T) {
	s := open(t, steps(100), reader.Map)
	w := windows(t, s, reader.Query{Lookback: 2})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err := w.Statistics(ctx)
	require.ErrorIs(t, err, context.Canceled)
	none, err := w.Between(at(1000), at(2000))
	require.NoError(t, err)
	x, y, err := none.Statistics(context.Background())
	require.NoError(t, err)
	require.Equal(t, make([]stats.Moments, 3), x)
	require.Equal(t, make([]stats.Moments, 1), y)
	require.NoError(t, s.Close())
	_, _, err = w.Statistics(context.Background())
	require.ErrorIs(t, err, reader.ErrClosed)
}
