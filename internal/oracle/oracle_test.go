package oracle

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func anchors(windows []Window) []int64 {
	var rows []int64
	for _, w := range windows {
		rows = append(rows, w.Anchor)
	}
	return rows
}

func TestSpecExamples(t *testing.T) {
	spec, err := os.ReadFile("../../spec/SPEC.md")
	require.NoError(t, err)
	examples, err := Examples(string(spec))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(examples), 11)
	p := ExamplePanel()
	require.NoError(t, p.Check())
	for _, e := range examples {
		windows, err := Windows(p, e.Query)
		require.NoError(t, err, e.Line)
		require.Equal(t, e.Anchors, anchors(windows), e.Line)
	}
}

func TestCells(t *testing.T) {
	p := ExamplePanel()
	p.Tickers[0].Cells[0][5] = float32(math.Copysign(0, -1))
	windows, err := Windows(p, Query{
		Inputs: []string{"y", "x"}, Targets: []string{"x"}, Optional: []string{"x"}, Lookback: 2, Horizons: []int64{-1, 2},
		TargetLength: 2, Stride: 3,
	})
	require.NoError(t, err)
	require.Equal(t, []int64{1}, anchors(windows)) // of 1, 2 and 3; rows 7 to 9 are too few
	bits := math.Float32bits
	require.Equal(t, []uint32{bits(0), bits(0), bits(10), bits(1)}, windows[0].Inputs)
	require.Equal(t, []uint32{bits(0), bits(1), Missing, bits(4)}, windows[0].Targets)

	windows, err = Windows(p, Query{Inputs: []string{"x"}, Lookback: 1, Where: []string{"x"}, At: []int64{5, 3}})
	require.NoError(t, err)
	require.Equal(t, []uint32{1 << 31}, windows[0].Inputs)
	require.Len(t, windows, 1)
}

// TestFilters pins that filters do not shift the stride's phase, and that a break does.
func TestFilters(t *testing.T) {
	p := ExamplePanel()
	three, eight := int64(3), int64(8)
	q := Query{Inputs: []string{"y"}, Lookback: 1, Stride: 2}
	for _, c := range []struct {
		change func(*Query)
		want   []int64
	}{
		{func(q *Query) {}, []int64{0, 2, 4, 6, 7, 9}},
		{func(q *Query) { q.Breaks = []string{} }, []int64{0, 2, 4, 6, 8}},
		{func(q *Query) { q.From = &three }, []int64{4, 6, 7, 9}},
		{func(q *Query) { q.To = &eight }, []int64{0, 2, 4, 6, 7}},
		{func(q *Query) { q.Where = []string{"x"}; q.Stride = 3 }, []int64{0, 6, 7}},
		{func(q *Query) { q.Inputs = []string{"x"}; q.Stride = 3 }, []int64{0, 4, 7}},
		{func(q *Query) { q.Tickers = []string{} }, nil},
		{func(q *Query) { q.At, q.Stride = []int64{9, 1, -4}, 1 }, []int64{1, 9}},
		{func(q *Query) { q.At, q.Stride = []int64{}, 0 }, nil},
	} {
		changed := q
		c.change(&changed)
		windows, err := Windows(p, changed)
		require.NoError(t, err)
		require.Equal(t, c.want, anchors(windows), "%+v", changed)
	}
}

func TestInvalidQueries(t *testing.T) {
	p := ExamplePanel()
	p.Groups = append(p.Groups, Group{Name: "ends", LabelEnd: true, Columns: []Column{{Name: "end"}}})
	p.Tickers[0].Cells = append(p.Tickers[0].Cells, nil)
	p.Tickers[0].Ends = append(p.Tickers[0].Ends, make([]int64, 10))
	require.NoError(t, p.Check())
	valid := Query{Inputs: []string{"x"}, Targets: []string{"x"}, Lookback: 3}
	_, err := Windows(p, valid)
	require.NoError(t, err)
	for name, change := range map[string]func(*Query){
		"no inputs":         func(q *Query) { q.Inputs = []string{} },
		"unknown input":     func(q *Query) { q.Inputs = []string{"z"} },
		"input twice":       func(q *Query) { q.Inputs = []string{"features", "x"} },
		"target twice":      func(q *Query) { q.Targets = []string{"y", "y"} },
		"int64 input":       func(q *Query) { q.Inputs = []string{"end"} },
		"int64 where":       func(q *Query) { q.Where = []string{"ends"} },
		"optional unused":   func(q *Query) { q.Optional = []string{"y"} },
		"no lookback":       func(q *Query) { q.Lookback = 0 },
		"large lookback":    func(q *Query) { q.Lookback = 1 << 31 },
		"negative stride":   func(q *Query) { q.Stride = -1 },
		"large length":      func(q *Query) { q.TargetLength = 1 << 31 },
		"horizons unsorted": func(q *Query) { q.Horizons = []int64{2, 1} },
		"horizons equal":    func(q *Query) { q.Horizons = []int64{2, 2} },
		"horizon too low":   func(q *Query) { q.Horizons = []int64{-3} },
		"horizon too high":  func(q *Query) { q.Horizons = []int64{1 << 31} },
		"no horizon":        func(q *Query) { q.Horizons = []int64{} },
		"many horizons":     func(q *Query) { q.Horizons = make([]int64, 4097) },
		"horizon alone":     func(q *Query) { q.Targets, q.Horizons = nil, []int64{1} },
		"length alone":      func(q *Query) { q.Targets, q.TargetLength = nil, 2 },
		"at with stride":    func(q *Query) { q.At, q.Stride = []int64{1}, 2 },
		"unknown ticker":    func(q *Query) { q.Tickers = []string{"a"} },
		"unknown break set": func(q *Query) { q.Breaks = []string{"session"} },
		"unknown where":     func(q *Query) { q.Where = []string{""} },
	} {
		q := valid
		change(&q)
		_, err := Windows(p, q)
		require.Error(t, err, name)
	}
}

// TestDraw checks that what is drawn is valid, and that every kind of panel and query comes up.
func TestDraw(t *testing.T) {
	seen := map[string]int{}
	type draw struct {
		p *Panel
		q Query
	}
	draws := rapid.Custom(func(t *rapid.T) draw {
		p := DrawPanel(t)
		return draw{p, DrawQuery(t, p)}
	})
	for seed := range 3000 {
		d := draws.Example(seed) // the same every time, so that no kind is missed by bad luck
		p, q := d.p, d.q
		require.NoError(t, p.Check())
		windows, err := Windows(p, q)
		require.NoError(t, err, "%+v", q)
		note := func(what string, yes bool) {
			if yes {
				seen[what]++
			}
		}
		note("windows", len(windows) > 0)
		note("no windows", len(windows) == 0)
		note("no tickers", len(p.Tickers) == 0)
		for _, ticker := range p.Tickers {
			note("no rows", len(ticker.Times) == 0)
			for _, b := range ticker.Breaks {
				note("breaks", len(b) > 0)
			}
		}
		for _, c := range p.Columns() {
			note("categories", len(c.Categories) > 0)
			note("no categories", c.Categories != nil && len(c.Categories) == 0)
		}
		for _, a := range p.Attributes {
			note("texts", len(a.Texts) > 0)
			note("numbers", len(a.Numbers) > 0)
		}
		note("all inputs", q.Inputs == nil)
		note("targets", len(windows) > 0 && len(windows[0].Targets) > 0)
		note("several horizons", len(windows) > 0 && len(q.Horizons) > 1)
		note("horizon of 0 or below", len(windows) > 0 && len(q.Horizons) > 0 && q.Horizons[0] <= 0)
		note("stride", len(windows) > 1 && q.Stride > 1)
		note("at", len(windows) > 1 && q.At != nil)
		note("where", len(windows) > 0 && len(q.Where) > 0)
		note("from and to", len(windows) > 0 && q.From != nil && q.To != nil)
		note("some tickers", len(windows) > 0 && q.Tickers != nil)
		note("some breaks", len(windows) > 0 && q.Breaks != nil)
		note("optional", len(windows) > 0 && q.Optional != nil)
		for _, w := range windows {
			for _, bits := range w.Inputs {
				note("missing input", bits == Missing)
				note("negative zero", bits == 1<<31)
				note("subnormal", bits == 1)
			}
		}
	}
	for _, what := range []string{
		"windows", "no windows", "no tickers", "no rows", "breaks", "all inputs", "targets", "stride", "at", "where",
		"from and to", "some tickers", "some breaks", "optional", "several horizons", "horizon of 0 or below", "missing input",
		"negative zero", "subnormal", "categories", "no categories", "texts", "numbers",
	} {
		require.NotZero(t, seen[what], what)
	}
}
