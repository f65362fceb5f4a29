package index_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/index"
)

func anchors(r index.Run) (out []int64) {
	for k := range r.Count {
		out = append(out, r.Anchor(k))
	}
	return out
}

func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := index.Run{
			Ticker: 3, First: rapid.Int64Range(0, 20).Draw(t, "first"), Count: rapid.Int64Range(0, 12).Draw(t, "count"),
			Step: rapid.Int64Range(1, 5).Draw(t, "step"),
		}
		from, to := rapid.Int64Range(-5, 90).Draw(t, "from"), rapid.Int64Range(-5, 90).Draw(t, "to")
		var want []int64
		for _, a := range anchors(r) {
			if from <= a && a < to {
				want = append(want, a)
			}
		}
		require.Equal(t, want, anchors(r.Clip(from, to)))
	})
}

// Filtering runs by any predicate and numbering what is left keeps exactly the anchors that pass, in order.
func TestFromRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type at struct {
			ticker int
			anchor int64
		}
		var runs []index.Run
		var want []at
		for ticker := range rapid.IntRange(0, 4).Draw(t, "tickers") {
			row := int64(0)
			for range rapid.IntRange(0, 6).Draw(t, "runs") {
				r := index.Run{
					Ticker: ticker, First: row + rapid.Int64Range(0, 4).Draw(t, "gap"),
					Count: rapid.Int64Range(0, 5).Draw(t, "count"), Step: rapid.Int64Range(1, 4).Draw(t, "step"),
				}
				runs = append(runs, r)
				for _, a := range anchors(r) {
					want = append(want, at{ticker, a})
					row = a + 1
				}
			}
		}
		w, err := index.FromRuns(slices.Values(runs))
		require.NoError(t, err)
		require.Equal(t, len(want), w.Len())
		for i, x := range want {
			ticker, anchor := w.Locate(i)
			require.Equal(t, x, at{ticker, anchor})
		}
	})
}
