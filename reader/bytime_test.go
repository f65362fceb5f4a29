package reader_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/order"
	"github.com/wstore/wstore/reader"
)

func TestByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := oracle.DrawPanel(t)
		q := oracle.DrawQuery(t, p)
		want, err := oracle.Windows(p, q)
		require.NoError(t, err)
		byTime := map[int64][]int{}
		times := []int64{}
		for i, w := range want {
			byTime[w.Time] = append(byTime[w.Time], i)
			times = append(times, w.Time)
		}
		slices.Sort(times)
		times = slices.Compact(times)
		access := rapid.SampledFrom([]reader.Access{reader.Map, reader.Read}).Draw(t, "access")
		s, err := reader.OpenBytes(craft.FromPanel(p).Build(), &reader.Options{Access: access})
		require.NoError(t, err)
		w, err := s.Windows(queryOf(q))
		require.NoError(t, err)
		b, err := w.ByTime()
		require.NoError(t, err)
		require.Equal(t, len(times), b.Len())
		require.True(t, slices.Equal(times, b.Times()))
		ids := []int{-7}
		for k, v := range times {
			ids, err = b.IDs(ids[:1], k)
			require.NoError(t, err)
			require.Equal(t, append([]int{-7}, byTime[v]...), ids)
		}
		for _, k := range []int{-1, len(times)} {
			_, err = b.IDs(nil, k)
			require.ErrorIs(t, err, reader.ErrQuery)
		}
	})
}

func TestByTimeOfManyRows(t *testing.T) {
	c := steps(3000, 500, 2999)
	rng := rand.New(rand.NewPCG(3, 4))
	for r := range c.Tickers[1].Times { // a calendar of its own
		c.Tickers[1].Times[r] = int64(r)*7 + int64(rng.IntN(3))
	}
	w := windows(t, open(t, c, reader.Map), reader.Query{Lookback: 60, Stride: 3})
	b, err := w.ByTime()
	require.NoError(t, err)
	n := 0
	for k := range b.Len() {
		ids, err := b.IDs(nil, k)
		require.NoError(t, err)
		require.NotEmpty(t, ids)
		for _, i := range ids {
			p := w.Locate(i)
			require.Equal(t, b.Times()[k], c.Tickers[p.Ticker].Times[p.Anchor])
		}
		n += len(ids)
	}
	require.Equal(t, w.Len(), n)
}

func TestByTimeFails(t *testing.T) {
	s := open(t, steps(50, 50), reader.Map)
	w := windows(t, s, reader.Query{Lookback: 10})
	b, err := w.ByTime()
	require.NoError(t, err)
	blocked, err := order.Blocked(int64(b.Len()), 0, 0, 5, 5)
	require.NoError(t, err)
	_, err = b.OrderFingerprint(blocked)
	require.ErrorIs(t, err, reader.ErrQuery)
	short, err := order.Sequential(int64(b.Len()) - 1)
	require.NoError(t, err)
	_, err = b.OrderFingerprint(short)
	require.ErrorIs(t, err, reader.ErrQuery)
	require.NoError(t, s.Close())
	_, err = b.IDs(nil, 0)
	require.ErrorIs(t, err, reader.ErrClosed)
	_, err = w.ByTime()
	require.ErrorIs(t, err, reader.ErrClosed)
}
