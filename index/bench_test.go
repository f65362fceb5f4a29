package index

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/wstore/wstore/format"
)

// benchPanel is a panel of 1,000 tickers or fewer with so many missing runs in column 0, of uneven spacing, whose
// query has as many runs of windows.
func benchPanel(runs int) (Panel, Query) {
	const lookback = 60
	rng := rand.New(rand.NewPCG(1, uint64(runs)))
	tickers := min(runs, 1000)
	p := Panel{Index: &format.Index{Missing: []format.ColumnUses{{Column: 0}}}}
	for t := range tickers {
		var list []format.Run
		row := int64(0)
		for range runs / tickers {
			from := row + lookback + rng.Int64N(1000)
			row = from + 1 + rng.Int64N(3)
			list = append(list, format.Run{From: from, To: row})
		}
		p.Rows = append(p.Rows, row)
		p.Index.MissingLists = append(p.Index.MissingLists, list)
		p.Index.Missing[0].Uses = append(p.Index.Missing[0].Uses, format.Use{Ticker: t, List: t})
	}
	return p, Query{Inputs: []int{0}, Lookback: lookback, Stride: 1, TargetLength: 1}
}

var benchRuns = []int{100, 10_000, 200_000}

func BenchmarkNew(b *testing.B) {
	for _, runs := range benchRuns {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			p, q := benchPanel(runs)
			b.ReportAllocs()
			for b.Loop() {
				w, err := New(p, q)
				if err != nil || len(w.runs) != runs {
					b.Fatal(len(w.runs), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(runs), "ns/run")
		})
	}
}

// BenchmarkLocate draws windows at random; "search" is a binary search over the same prefix sums.
func BenchmarkLocate(b *testing.B) {
	for _, runs := range benchRuns {
		p, q := benchPanel(runs)
		w, err := New(p, q)
		require.NoError(b, err)
		ids := make([]int, 1<<16)
		rng := rand.New(rand.NewPCG(2, 3))
		for i := range ids {
			ids[i] = rng.IntN(w.Len())
		}
		ends := make([]int64, len(w.runs))
		for i, r := range w.runs {
			ends[i] = r.end
		}
		var sum int64
		b.Run(fmt.Sprintf("runs=%d/buckets", runs), func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(w.Bytes())/float64(runs), "B/run")
			i := 0
			for b.Loop() {
				_, a := w.Locate(ids[i&(1<<16-1)])
				sum += a
				i++
			}
		})
		b.Run(fmt.Sprintf("runs=%d/search", runs), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				n := int64(ids[i&(1<<16-1)])
				k := sort.Search(len(ends), func(k int) bool { return ends[k] > n })
				sum += w.runs[k].anchor(n)
				i++
			}
		})
	}
}
