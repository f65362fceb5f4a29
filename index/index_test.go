package index

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/oracle"
	"pgregory.net/rapid"
)

// panelOf makes the window index of a panel, lists numbered in the order of their first use.
func panelOf(o *oracle.Panel) Panel {
	p := Panel{Index: &format.Index{}}
	for _, t := range o.Tickers {
		p.Rows = append(p.Rows, int64(len(t.Times)))
	}
	numbers := map[string]int{}
	for set := range o.BreakSets {
		var uses []format.Use
		for i, t := range o.Tickers {
			if len(t.Breaks[set]) == 0 {
				continue
			}
			key := fmt.Sprint("breaks", t.Breaks[set])
			if _, ok := numbers[key]; !ok {
				numbers[key] = len(p.Index.BreakLists)
				p.Index.BreakLists = append(p.Index.BreakLists, t.Breaks[set])
			}
			uses = append(uses, format.Use{Ticker: i, List: numbers[key]})
		}
		p.Index.Breaks = append(p.Index.Breaks, uses)
	}
	for c := range o.Columns() {
		column := format.ColumnUses{Column: c}
		for i := range o.Tickers {
			t := &o.Tickers[i]
			var list []format.Run
			for r := range int64(len(t.Cells[c])) {
				if !t.IsMissing(c, r) {
					continue
				}
				if n := len(list); n > 0 && list[n-1].To == r {
					list[n-1].To++
				} else {
					list = append(list, format.Run{From: r, To: r + 1})
				}
			}
			if list == nil {
				continue
			}
			key := fmt.Sprint("missing", list)
			if _, ok := numbers[key]; !ok {
				numbers[key] = len(p.Index.MissingLists)
				p.Index.MissingLists = append(p.Index.MissingLists, list)
			}
			column.Uses = append(column.Uses, format.Use{Ticker: i, List: numbers[key]})
		}
		if column.Uses != nil {
			p.Index.Missing = append(p.Index.Missing, column)
		}
	}
	return p
}

// queryOf resolves names and times as a reader does.
func queryOf(t require.TestingT, o *oracle.Panel, q oracle.Query) Query {
	r, err := oracle.Resolve(o, q)
	require.NoError(t, err)
	needed := func(columns []int) []int {
		return slices.DeleteFunc(slices.Clone(columns), func(c int) bool { return slices.Contains(r.Optional, c) })
	}
	got := Query{
		Inputs: needed(r.Inputs), Targets: needed(r.Targets), Horizons: r.Horizons, TargetLength: r.TargetLength,
		Lookback: r.Lookback, Stride: r.Stride, Where: r.Where, Breaks: r.Breaks,
	}
	if r.Tickers != nil {
		got.Tickers = slices.Clone(r.Tickers)
		slices.Sort(got.Tickers)
	}
	row := func(ticker int, time int64) int64 {
		i, _ := slices.BinarySearch(o.Tickers[ticker].Times, time)
		return int64(i)
	}
	if q.From != nil || q.To != nil {
		got.Bounds = func(ticker int) (from, to int64) {
			from, to = math.MinInt64, math.MaxInt64
			if q.From != nil {
				from = row(ticker, *q.From)
			}
			if q.To != nil {
				to = row(ticker, *q.To)
			}
			return from, to
		}
	}
	if q.At != nil {
		got.At = func(ticker int) []int64 {
			var rows []int64
			for i, v := range o.Tickers[ticker].Times {
				if slices.Contains(q.At, v) {
					rows = append(rows, int64(i))
				}
			}
			return rows
		}
	}
	return got
}

type pos struct {
	ticker int
	anchor int64
}

// located lists all windows by Locate, and checks that the other methods agree with it.
func located(t require.TestingT, w *Windows, rows []int64) []pos {
	var all []pos
	for i := range w.Len() {
		ticker, anchor := w.Locate(i)
		all = append(all, pos{ticker, anchor})
		number, ok := w.Number(ticker, anchor)
		require.True(t, ok)
		require.Equal(t, i, number)
	}
	var byRuns []pos
	for r := range w.Runs() {
		require.Positive(t, r.Count)
		require.Positive(t, r.Step)
		for k := range r.Count {
			byRuns = append(byRuns, pos{r.Ticker, r.First + k*r.Step})
		}
	}
	require.Equal(t, all, byRuns)
	next := 0
	for ticker := range rows {
		from, to := w.Range(ticker)
		require.Equal(t, next, from)
		for next < len(all) && all[next].ticker == ticker {
			next++
		}
		require.Equal(t, next, to)
		for row := int64(-2); row < rows[ticker]+2; row++ {
			_, ok := w.Number(ticker, row)
			_, found := slices.BinarySearchFunc(all, pos{ticker, row}, func(a, b pos) int {
				return cmp.Or(cmp.Compare(a.ticker, b.ticker), cmp.Compare(a.anchor, b.anchor))
			})
			require.Equal(t, found, ok, "ticker %d row %d", ticker, row)
		}
	}
	require.Equal(t, w.Len(), next)
	for _, ticker := range []int{-1, len(rows)} {
		from, to := w.Range(ticker)
		require.Equal(t, from, to)
		_, ok := w.Number(ticker, 0)
		require.False(t, ok)
	}
	return all
}

func wanted(t require.TestingT, o *oracle.Panel, q oracle.Query) []pos {
	windows, err := oracle.Windows(o, q)
	require.NoError(t, err)
	var all []pos
	for _, w := range windows {
		all = append(all, pos{w.Ticker, w.Anchor})
	}
	return all
}

func TestSpecExamples(t *testing.T) {
	spec, err := os.ReadFile("../spec/SPEC.md")
	require.NoError(t, err)
	examples, err := oracle.Examples(string(spec))
	require.NoError(t, err)
	o := oracle.ExamplePanel()
	p := panelOf(o)
	for _, e := range examples {
		w, err := New(p, queryOf(t, o, e.Query))
		require.NoError(t, err)
		var anchors []int64
		for _, at := range located(t, w, p.Rows) {
			anchors = append(anchors, at.anchor)
		}
		require.Equal(t, e.Anchors, anchors, e.Line)
	}
}

// TestOracle compares with the reference, several queries of each of some thousand panels.
func TestOracle(t *testing.T) {
	for part := range 20 {
		t.Run(fmt.Sprint(part), rapid.MakeCheck(func(t *rapid.T) {
			o := oracle.DrawPanel(t)
			p := panelOf(o)
			for range 5 {
				q := oracle.DrawQuery(t, o)
				w, err := New(p, queryOf(t, o, q))
				require.NoError(t, err)
				require.Equal(t, wanted(t, o, q), located(t, w, p.Rows), "%+v", q)
			}
		}))
	}
}

// TestAtEveryNth takes at = every n-th row, which must give one run, whatever the rows' gaps in time.
func TestAtEveryNth(t *testing.T) {
	w, err := New(Panel{Rows: []int64{1000, 1000}}, Query{
		Lookback: 10, Stride: 1, TargetLength: 1,
		At: func(ticker int) (rows []int64) {
			for r := int64(ticker); r < 1000; r += 5 {
				rows = append(rows, r)
			}
			return rows
		},
	})
	require.NoError(t, err)
	require.Equal(t, []Run{{0, 10, 198, 5}, {1, 11, 198, 5}}, slices.Collect(w.Runs()))
}

// TestJoin pins which runs join: those of a filter that leaves every third row are one.
func TestJoin(t *testing.T) {
	var absent []format.Run
	for r := int64(0); r < 300; r += 3 {
		absent = append(absent, format.Run{From: r + 1, To: r + 3})
	}
	p := Panel{Rows: []int64{300}, Index: &format.Index{
		MissingLists: [][]format.Run{absent},
		Missing:      []format.ColumnUses{{Column: 7, Uses: []format.Use{{Ticker: 0, List: 0}}}},
	}}
	w, err := New(p, Query{Where: []int{7}, Lookback: 5, Stride: 1, TargetLength: 1})
	require.NoError(t, err)
	require.Equal(t, []Run{{0, 6, 98, 3}}, slices.Collect(w.Runs()))
	w, err = New(p, Query{Where: []int{7}, Lookback: 5, Stride: 2, TargetLength: 1})
	require.NoError(t, err)
	require.Equal(t, []Run{{0, 6, 49, 6}}, slices.Collect(w.Runs()))
}

// TestSkew draws runs of lengths from one to millions, so that some buckets hold many runs and most none.
func TestSkew(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, shape := range []func(i int) int64{
		func(int) int64 { return 1 },
		func(i int) int64 { return 1 + int64(i%2)*1_000_000 },
		func(i int) int64 { return 1 << (i % 18) },
		func(i int) int64 { return 1 + int64(max(0, i-4998))*1_500_000_000 }, // all but the last in one bucket
		func(i int) int64 { return 1 + int64(max(0, 2-i))*700_000_000 },
		func(int) int64 { return 1 + int64(math.Exp(18*rng.Float64())/20) },
	} {
		b := builder{}
		var starts []int64
		end := int64(0)
		for i := range 5000 {
			n := max(1, min(shape(i), math.MaxInt32-end-10_000)) // fits an int of 32 bits
			b.first = len(b.runs)                                // a ticker of its own: nothing joins
			require.NoError(t, b.add(i, 10*int64(i), n, 1))
			starts = append(starts, end)
			end += n
		}
		w := newWindows(b.runs)
		require.Equal(t, int(end), w.Len())
		require.LessOrEqual(t, len(w.buckets), 2*len(w.runs))
		for k, start := range starts {
			next := end
			if k+1 < len(starts) {
				next = starts[k+1]
			}
			for _, i := range []int64{start, next - 1, start + rng.Int64N(next-start)} {
				ticker, anchor := w.Locate(int(i))
				require.Equal(t, pos{k, 10*int64(k) + i - start}, pos{ticker, anchor})
				number, ok := w.Number(ticker, anchor)
				require.True(t, ok)
				require.Equal(t, int(i), number)
			}
		}
	}
}

func TestBig(t *testing.T) {
	const rows = 1 << 40
	p := Panel{Rows: []int64{rows}, Index: &format.Index{
		BreakLists: [][]int64{{1 << 39}}, Breaks: [][]format.Use{{{Ticker: 0, List: 0}}},
	}}
	q := Query{
		Breaks: []int{0}, Lookback: math.MaxInt32, Stride: 1000,
		TargetLength: math.MaxInt32, Horizons: []int64{math.MaxInt32},
	}
	w, err := New(p, q)
	require.NoError(t, err)
	half := (int64(1<<39)-3*math.MaxInt32+1)/1000 + 1
	require.Equal(t, []Run{
		{0, math.MaxInt32 - 1, half, 1000}, {0, 1<<39 + math.MaxInt32 - 1, half, 1000},
	}, slices.Collect(w.Runs()))
	ticker, anchor := w.Locate(w.Len() - 1)
	require.Equal(t, pos{0, 1<<39 + math.MaxInt32 - 1 + (half-1)*1000}, pos{ticker, anchor})
	require.Less(t, w.Bytes(), 200)

	// 5,000 tickers of minute bars over ten years.
	p = Panel{Rows: slices.Repeat([]int64{982_800}, 5000)}
	w, err = New(p, Query{Lookback: 60, Stride: 1, TargetLength: 1})
	if math.MaxInt == math.MaxInt32 {
		require.ErrorContains(t, err, "more than 2147483647 windows")
		return
	}
	require.NoError(t, err)
	each := 982_800 - 59
	require.Equal(t, 5000*each, w.Len())
	i := 4999*each + 17
	ticker, anchor = w.Locate(i)
	require.Equal(t, pos{4999, 59 + 17}, pos{ticker, anchor})
	number, ok := w.Number(4999, 76)
	require.True(t, ok)
	require.Equal(t, i, number)
	require.LessOrEqual(t, w.Bytes(), 5000*(24+16))

	_, err = New(Panel{Rows: slices.Repeat([]int64{maxRows}, 9)}, Query{Lookback: 1, Stride: 1, TargetLength: 1})
	require.ErrorContains(t, err, "windows")
}

// TestWideSteps has single anchors further apart than a run's step can say.
func TestWideSteps(t *testing.T) {
	at := []int64{0, 1 << 33, 1 << 34, 1<<34 + 5, 1<<34 + 10}
	w, err := New(Panel{Rows: []int64{1 << 35}}, Query{
		Lookback: 1, Stride: 1, TargetLength: 1, At: func(int) []int64 { return at },
	})
	require.NoError(t, err)
	for i, want := range at {
		_, anchor := w.Locate(i)
		require.Equal(t, want, anchor)
	}
	require.Equal(t, []Run{{0, 0, 1, 1}, {0, 1 << 33, 1, 1}, {0, 1 << 34, 3, 5}}, slices.Collect(w.Runs()))
}

func TestLocateOutOfRange(t *testing.T) {
	for _, rows := range []int64{0, 1, 100} {
		w, err := New(Panel{Rows: []int64{rows}}, Query{Lookback: 1, Stride: 1, TargetLength: 1})
		require.NoError(t, err)
		for _, i := range []int{-1, int(rows), int(rows) + 1, math.MinInt, math.MaxInt} {
			require.PanicsWithValue(t, fmt.Sprintf("index: window %d is out of range with %d windows", i, rows),
				func() { w.Locate(i) })
		}
	}
}

func TestLocateAllocates(t *testing.T) {
	w, err := New(Panel{Rows: []int64{100}}, Query{Lookback: 1, Stride: 1, TargetLength: 1})
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() { w.Locate(50); w.Number(0, 50); w.Range(0) }))
	require.EqualValues(t, runBytes, unsafe.Sizeof(run{}))
	require.EqualValues(t, bucketBytes, unsafe.Sizeof(w.buckets[0]))
}

func TestErrors(t *testing.T) {
	lists := func(breaks []int64, missing []format.Run) *format.Index {
		return &format.Index{
			BreakLists: [][]int64{breaks}, MissingLists: [][]format.Run{missing},
			Breaks:  [][]format.Use{{{Ticker: 0, List: 0}}},
			Missing: []format.ColumnUses{{Column: 1, Uses: []format.Use{{Ticker: 0, List: 0}}}},
		}
	}
	for _, c := range []struct {
		want   string
		change func(*Panel, *Query)
	}{
		{"lookback 0 is not in 1 to 2147483647", func(_ *Panel, q *Query) { q.Lookback = 0 }},
		{"lookback 2147483648 is", func(_ *Panel, q *Query) { q.Lookback = 1 << 31 }},
		{"stride -1 is", func(_ *Panel, q *Query) { q.Stride = -1 }},
		{"target length 0 is", func(_ *Panel, q *Query) { q.TargetLength = 0 }},
		{"horizon -2 is not in -1 to", func(_ *Panel, q *Query) { q.Horizons = []int64{-2} }},
		{"horizon 2147483648 is", func(_ *Panel, q *Query) { q.Horizons = []int64{1 << 31} }},
		{"horizon 1 after 1", func(_ *Panel, q *Query) { q.Horizons = []int64{1, 1} }},
		{"4097 horizons", func(_ *Panel, q *Query) { q.Horizons = make([]int64, 4097) }},
		{"1 targets, but no horizon", func(_ *Panel, q *Query) { q.Targets = []int{1} }},
		{"stride 2 together with", func(_ *Panel, q *Query) { q.Stride, q.At = 2, func(int) []int64 { return nil } }},
		{"row 3 after 3", func(_ *Panel, q *Query) { q.At = func(int) []int64 { return []int64{3, 3} } }},
		{"break set 1 of 1", func(_ *Panel, q *Query) { q.Breaks = []int{1} }},
		{"break set -1 of 1", func(_ *Panel, q *Query) { q.Breaks = []int{-1} }},
		{"break set 0 of 0", func(p *Panel, q *Query) { p.Index = nil; q.Breaks = []int{0} }},
		{"ticker 2 of 2", func(_ *Panel, q *Query) { q.Tickers = []int{2} }},
		{"ticker 1 after 1", func(_ *Panel, q *Query) { q.Tickers = []int{1, 1} }},
		{"16777217 tickers", func(p *Panel, _ *Query) { p.Rows = make([]int64, 1<<24+1) }},
		{"ticker 1: -1 rows", func(p *Panel, _ *Query) { p.Rows[1] = -1 }},
		{"ticker 1: 1152921504606846977 rows", func(p *Panel, _ *Query) { p.Rows[1] = 1<<60 + 1 }},
		{"ticker 0: break before row 0", func(p *Panel, _ *Query) { p.Index = lists([]int64{0}, nil) }},
		{"ticker 0: break before row 10", func(p *Panel, _ *Query) { p.Index = lists([]int64{4, 10}, nil) }},
		{"ticker 0: break before row 4, behind 4", func(p *Panel, _ *Query) { p.Index = lists([]int64{4, 4}, nil) }},
		{"missing rows [-1, 1)", func(p *Panel, _ *Query) { p.Index = lists(nil, []format.Run{{From: -1, To: 1}}) }},
		{"missing rows [2, 2)", func(p *Panel, _ *Query) { p.Index = lists(nil, []format.Run{{From: 2, To: 2}}) }},
		{"missing rows [2, 11)", func(p *Panel, _ *Query) { p.Index = lists(nil, []format.Run{{From: 2, To: 11}}) }},
		{"missing rows [1, 3), behind 2", func(p *Panel, _ *Query) {
			p.Index = lists(nil, []format.Run{{From: 0, To: 2}, {From: 1, To: 3}})
		}},
		{"breaks: ticker 2 of 2 uses list 0 of 1", func(p *Panel, _ *Query) {
			p.Index = lists([]int64{1}, nil)
			p.Index.Breaks[0][0].Ticker = 2
		}},
		{"missing runs: ticker 0 of 2 uses list 1 of 1", func(p *Panel, _ *Query) {
			p.Index = lists([]int64{1}, nil)
			p.Index.Missing[0].Uses[0].List = 1
		}},
	} {
		p := Panel{Rows: []int64{10, 10}, Index: lists([]int64{3}, []format.Run{{From: 1, To: 2}})}
		q := Query{Inputs: []int{0, 1}, Breaks: []int{0}, Lookback: 2, Stride: 1, TargetLength: 1}
		_, err := New(p, q)
		require.NoError(t, err)
		c.change(&p, &q)
		_, err = New(p, q)
		require.ErrorContains(t, err, c.want)
	}
}
