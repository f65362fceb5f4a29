package reader_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
)

// TestWindows compares every window of random queries of random panels with the rules taken row by row: numbers,
// places and bits, through At and Gather, in every way of opening a file.
func TestWindows(t *testing.T) {
	parent := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		p := oracle.DrawPanel(t)
		path := save(t, parent, craft.FromPanel(p).Build())
		defer os.Remove(path)
		stores := everyWay(t, path)
		for range 3 {
			q := oracle.DrawQuery(t, p)
			want, err := oracle.Windows(p, q)
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "ids"), 0))
			for how, s := range stores {
				w, err := s.Windows(queryOf(q))
				require.NoError(t, err, how)
				compareNumbers(t, p, w, want)
				compareViews(t, p, w, want)
				compareGather(t, w, want, rng)
			}
		}
		for _, s := range stores {
			require.NoError(t, s.Close())
		}
	})
}

func compareNumbers(t *rapid.T, p *oracle.Panel, w *reader.Windows, want []oracle.Window) {
	require.Equal(t, len(want), w.Len())
	lookback := int64(w.Query().Lookback)
	for i, o := range want {
		require.Equal(t, reader.Pos{Ticker: o.Ticker, First: o.Anchor - lookback + 1, Anchor: o.Anchor}, w.Locate(i))
		number, ok := w.Number(o.Ticker, o.Anchor)
		require.True(t, ok)
		require.Equal(t, i, number)
		at, err := w.Store().Time(o.Ticker, o.Anchor)
		require.NoError(t, err)
		require.Equal(t, o.Time, at.UnixNano())
	}
	next := 0
	for ticker := range p.Tickers {
		from, to := w.Range(ticker)
		require.Equal(t, next, from)
		for next < len(want) && want[next].Ticker == ticker {
			next++
		}
		require.Equal(t, next, to)
		taken := map[int64]bool{}
		for _, o := range want[from:to] {
			taken[o.Anchor] = true
		}
		for a := range int64(len(p.Tickers[ticker].Times)) {
			_, ok := w.Number(ticker, a)
			require.Equal(t, taken[a], ok)
		}
	}
}

// groupsOf returns the groups that columns stand in.
func groupsOf(p *oracle.Panel, names []string) (groups []string) {
	for _, g := range p.Groups {
		if slices.ContainsFunc(g.Columns, func(c oracle.Column) bool { return slices.Contains(names, c.Name) }) {
			groups = append(groups, g.Name)
		}
	}
	return groups
}

func compareViews(t *rapid.T, p *oracle.Panel, w *reader.Windows, want []oracle.Window) {
	x, y := w.Inputs(), w.Targets()
	v, err := w.View()
	if len(groupsOf(p, x.Names)) > 1 || len(groupsOf(p, y.Names)) > 1 {
		require.ErrorIs(t, err, reader.ErrSpans)
		return
	}
	require.NoError(t, err)
	defer v.Release()
	// pick takes the elements that the layout says are a window's out of At's slice.
	pick := func(l *reader.Layout, cells []float32) (out []float32) {
		require.Len(t, cells, l.Span()*l.Width)
		require.Equal(t, len(cells), cap(cells))
		for _, start := range l.Starts {
			for r := range l.Length {
				for _, c := range l.Columns {
					out = append(out, cells[(start+r)*l.Width+c])
				}
			}
		}
		return out
	}
	n := 0
	for i, window := range v.All() {
		requireBits(t, want[i].Inputs, pick(&x, window.X), "inputs of window %d", i)
		if len(want[i].Targets) == 0 {
			require.Empty(t, window.Y)
		} else {
			requireBits(t, want[i].Targets, pick(&y, window.Y), "targets of window %d", i)
		}
		if x.Whole() {
			requireBits(t, want[i].Inputs, window.X)
		}
		require.Equal(t, n, i)
		n++
	}
	require.Equal(t, len(want), n)
}

func compareGather(t *rapid.T, w *reader.Windows, want []oracle.Window, rng *rand.Rand) {
	var ids []int
	for range min(2*len(want), 40) {
		ids = append(ids, rng.IntN(len(want)))
	}
	x, y := w.Inputs(), w.Targets()
	gotX, gotY := make([]float32, 0), make([]float32, 0)
	var wantX, wantY []uint32
	for _, i := range ids {
		wantX, wantY = append(wantX, want[i].Inputs...), append(wantY, want[i].Targets...)
	}
	if len(ids) > 0 {
		gotX, gotY = make([]float32, len(ids)*x.Size()), make([]float32, len(ids)*y.Size())
	}
	require.NoError(t, w.Gather(ids, gotX, gotY))
	requireBits(t, wantX, gotX, "inputs of %v", ids)
	requireBits(t, wantY, gotY, "targets of %v", ids)
}

// TestSeries reads whole tickers.
func TestSeries(t *testing.T) {
	parent := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		p := oracle.DrawPanel(t)
		path := save(t, parent, craft.FromPanel(p).Build())
		defer os.Remove(path)
		for how, s := range everyWay(t, path) {
			v, err := s.View()
			require.NoError(t, err)
			for i := range p.Tickers {
				ticker := &p.Tickers[i]
				number, err := s.Ticker(ticker.Name)
				require.NoError(t, err)
				require.Equal(t, i, number)
				require.EqualValues(t, len(ticker.Times), s.Rows(i))
				times, err := v.Times(i)
				require.NoError(t, err)
				require.True(t, slices.Equal(ticker.Times, times), how)
				column := 0
				for g, group := range p.Groups {
					if group.LabelEnd {
						ends, err := v.LabelEnds(i, g)
						require.NoError(t, err)
						require.True(t, slices.Equal(ticker.Ends[column], ends), how)
						_, err = v.Series(i, g)
						require.ErrorIs(t, err, reader.ErrQuery)
					} else {
						var want []uint32
						for r := range ticker.Times {
							for c := range group.Columns {
								want = append(want, ticker.Bits(column+c, int64(r)))
							}
						}
						cells, err := v.Series(i, g)
						require.NoError(t, err)
						requireBits(t, want, cells, how)
						_, err = v.LabelEnds(i, g)
						require.ErrorIs(t, err, reader.ErrQuery)
					}
					column += len(group.Columns)
				}
			}
			for _, ticker := range []int{-1, len(p.Tickers)} {
				_, err = v.Times(ticker)
				require.ErrorIs(t, err, reader.ErrQuery)
				_, err = v.Series(ticker, 0)
				require.ErrorIs(t, err, reader.ErrQuery)
				_, err = s.Time(ticker, 0)
				require.ErrorIs(t, err, reader.ErrQuery)
			}
			v.Release()
			require.NoError(t, s.Close())
		}
	})
}

// TestGatherOnAllCores gathers batches large enough for several goroutines, of every shape of columns.
func TestGatherOnAllCores(t *testing.T) {
	c := steps(400, 0, 700, 333)
	for how, a := range accesses {
		s := open(t, c, a)
		for _, inputs := range [][]string{
			{"features"}, {"x"}, {"z", "x"}, {"x", "z"}, {"z", "y", "x"}, {"y", "z"}, {"ret", "y", "z", "live", "x"}, {"masks", "features"},
		} {
			w := windows(t, s, reader.Query{Inputs: inputs, Targets: []string{"ret", "x"}, Lookback: 50, Horizons: []int{-3, 1, 20}, TargetLength: 2})
			places := map[string]int{"x": 0, "y": 1, "z": 2, "ret": 3, "live": 5}
			lx, ly := w.Inputs(), w.Targets()
			rng := rand.New(rand.NewPCG(1, 2))
			ids := make([]int, 3000)
			for k := range ids {
				ids[k] = rng.IntN(w.Len())
			}
			x, y := make([]float32, len(ids)*lx.Size()), make([]float32, len(ids)*ly.Size())
			require.NoError(t, w.Gather(ids, x, y))
			i, j := 0, 0
			for _, id := range ids {
				pos := w.Locate(id)
				cell := func(row int64, name string) float32 { return float32(1000*pos.Ticker + 10*int(row) + places[name]) }
				for row := pos.First; row <= pos.Anchor; row++ {
					for _, name := range lx.Names {
						if x[i] != cell(row, name) {
							require.Equal(t, cell(row, name), x[i], "%s %v window %d row %d column %s", how, inputs, id, row, name)
						}
						i++
					}
				}
				for _, h := range []int64{-3, 1, 20} {
					for row := pos.Anchor + h; row < pos.Anchor+h+2; row++ {
						for _, name := range ly.Names {
							if y[j] != cell(row, name) {
								require.Equal(t, cell(row, name), y[j], "%s %v window %d row %d column %s", how, inputs, id, row, name)
							}
							j++
						}
					}
				}
			}
		}
	}
}

// TestGatherAnyColumns gathers any columns of a wide group and a narrow one, in any order.
func TestGatherAnyColumns(t *testing.T) {
	c := &craft.Content{Schema: &format.Schema{Groups: []format.Group{{Name: "wide", DType: format.Float32}, {Name: "narrow", DType: format.Float32}}}}
	ticker := oracle.Ticker{Name: "A", Ends: make([][]int64, 14)}
	var names []string
	for k := range 14 {
		names = append(names, fmt.Sprintf("c%d", k))
		g := &c.Schema.Groups[k/11]
		g.Columns = append(g.Columns, format.Column{Name: names[k]})
		ticker.Cells = append(ticker.Cells, nil)
	}
	for r := range 60 {
		ticker.Times = append(ticker.Times, int64(r))
		for k := range ticker.Cells {
			ticker.Cells[k] = append(ticker.Cells[k], float32(100*r+k))
		}
	}
	c.Tickers = []oracle.Ticker{ticker}
	stores := everyWay(t, save(t, t.TempDir(), c.Build()))
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.Permutation(seq(14)).Draw(t, "columns")[:rapid.IntRange(1, 14).Draw(t, "how many")]
		if rapid.Bool().Draw(t, "ascending") {
			slices.Sort(columns)
		}
		var inputs []string
		for _, k := range columns {
			inputs = append(inputs, names[k])
		}
		ids := rapid.SliceOfN(rapid.IntRange(0, 55), 1, 80).Draw(t, "ids")
		var want []uint32
		for _, i := range ids {
			for r := i; r < i+5; r++ {
				for _, k := range columns {
					want = append(want, math.Float32bits(float32(100*r+k)))
				}
			}
		}
		for how, s := range stores {
			w, err := s.Windows(reader.Query{Inputs: inputs, Lookback: 5})
			require.NoError(t, err)
			got := make([]float32, len(want))
			require.NoError(t, w.Gather(ids, got, nil))
			requireBits(t, want, got, how)
		}
	})
	for _, s := range stores {
		require.NoError(t, s.Close())
	}
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func TestGatherRefuses(t *testing.T) {
	s := open(t, steps(20), reader.Map)
	w := windows(t, s, reader.Query{Inputs: []string{"x"}, Lookback: 3})
	x, y := make([]float32, 6), make([]float32, 2)
	require.NoError(t, w.Gather([]int{0, 5}, x, y))
	require.NoError(t, w.Gather(nil, nil, nil))
	for _, err := range []error{
		w.Gather([]int{0}, x, y), w.Gather([]int{0, 1}, x[:5], y), w.Gather([]int{0, 1}, x, nil), w.Gather(nil, x, y),
		w.Gather([]int{0, -1}, x, y), w.Gather([]int{0, w.Len()}, x, y),
	} {
		require.ErrorIs(t, err, reader.ErrQuery)
	}
	require.ErrorContains(t, w.Gather([]int{0, w.Len()}, x, y), "ids[1] is window 17, there are 17")
	v, err := w.View()
	require.NoError(t, err)
	defer v.Release()
	require.Panics(t, func() { v.At(-1) })
	require.Panics(t, func() { v.At(w.Len()) })
	require.Panics(t, func() { w.Locate(w.Len()) })
}

// TestAllocations pins what is promised: none for a window, and for a batch a number that does not depend on its size.
func TestAllocations(t *testing.T) {
	for how, a := range accesses {
		s := open(t, steps(3000, 3000), a)
		w := windows(t, s, reader.Query{Inputs: []string{"x", "z"}, Targets: []string{"ret"}, Lookback: 20})
		v, err := w.View()
		require.NoError(t, err)
		i := 0
		if a != reader.Read {
			require.Zero(t, testing.AllocsPerRun(100, func() {
				x, y := v.At(i % w.Len())
				sum += x[0] + y[0]
				_ = w.Locate(i % w.Len())
				i += 7
			}), how)
		}
		v.Release()
		batch := func(n int) float64 {
			ids := make([]int, n)
			for k := range ids {
				ids[k] = k * 7 % w.Len()
			}
			x, y := make([]float32, n*40), make([]float32, n)
			return testing.AllocsPerRun(20, func() { require.NoError(t, w.Gather(ids, x, y)) })
		}
		require.Equal(t, batch(16), batch(2048), how)
	}
}

var sum float32
