package oracle

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// maxRows bounds the rows of a drawn ticker, so that one word says which are missing.
const maxRows = 48

var tickerNames = []string{
	"A", "AA", "B", "BRK.B", "BTC/USDT", "CON", "NA", "NaN", "TRUE", "INF", "000001", "600519.SH", "a", " ", "x y",
	"\"q\"", "é", "日経", "\U0001F4C8", "line\nbreak", "\x00",
}

// DrawPanel draws a panel of up to six tickers: some without rows, with calendars of their own, shared and partly
// shared, times near the ends of int64, negative zeros, subnormal numbers, every kind of missing cell, warm-up, scattered,
// whole and equal missing runs, masks, label ends, breaks at gaps and given ones, categories and attributes. It has a
// float32 column of role value.
func DrawPanel(t *rapid.T) *Panel {
	p := &Panel{Groups: drawGroups(t)}
	for i, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"given", "gap"}), 0, 3).Draw(t, "break sets") {
		set := BreakSet{Name: fmt.Sprintf("%s %d", kind, i)}
		if kind == "gap" {
			set.MaxGap = rapid.Int64Range(1, 6).Draw(t, "max gap")
		}
		p.BreakSets = append(p.BreakSets, set)
	}

	var calendars [][]int64
	for range uniform(t, 1, 2, "calendars") {
		calendars = append(calendars, drawCalendar(t))
	}
	n := pick(t, []int{0, 1, 1, 2, 2, 3, 3, 4, 5, 6}, "number of tickers")
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(tickerNames), n, n, rapid.ID[string]).Draw(t, "tickers")
	slices.Sort(names)
	// What is missing in each column, bit by row; drawn afresh or taken over, so that lists are shared.
	absent := make([]uint64, len(p.Columns()))
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed of the cells"), 0))
	for _, name := range names {
		ticker := Ticker{Name: name, Times: drawTimes(t, calendars)}
		rows := len(ticker.Times)
		for _, g := range p.Groups {
			for range g.Columns {
				c := len(ticker.Cells)
				if g.LabelEnd {
					ticker.Cells = append(ticker.Cells, nil)
					ticker.Ends = append(ticker.Ends, drawEnds(rng, ticker.Times))
					continue
				}
				absent[c] = drawAbsent(t, absent[max(0, c-1)], absent[c])
				ticker.Cells = append(ticker.Cells, drawCells(rng, rows, absent[c], g.Columns[0].Mask))
				ticker.Ends = append(ticker.Ends, nil)
			}
		}
		for _, set := range p.BreakSets {
			breaks := Gaps(ticker.Times, set.MaxGap)
			if set.MaxGap == 0 {
				breaks = nil
				bits := drawBits(t, "breaks")
				for r := 1; r < rows; r++ {
					if bits>>r&1 != 0 {
						breaks = append(breaks, int64(r))
					}
				}
			}
			ticker.Breaks = append(ticker.Breaks, breaks)
		}
		p.Tickers = append(p.Tickers, ticker)
	}
	drawCategories(t, rng, p)
	drawAttributes(t, rng, p)
	return p
}

var labels = []string{"", " ", "A", "AA", "Health Care", "IT", "IT\n", "NaN", "b", "é", "日本", "\U0001F4C8"}

// drawCategories makes some columns of role value categories, of which some have none.
func drawCategories(t *rapid.T, rng *rand.Rand, p *Panel) {
	if uniform(t, 0, 3, "categories?") > 0 {
		return
	}
	column := 0
	for _, g := range p.Groups {
		for k := range g.Columns {
			if !g.LabelEnd && !g.Columns[k].Mask && rapid.Bool().Draw(t, "categories") {
				from := uniform(t, 1, len(labels), "first category")
				g.Columns[k].Categories = labels[from:uniform(t, from, len(labels), "behind the last category")]
				for i := range p.Tickers {
					recode(rng, p.Tickers[i].Cells[column], len(g.Columns[k].Categories))
				}
			}
			column++
		}
	}
}

// recode makes the cells that are not missing codes of n categories; without any they become missing.
func recode(rng *rand.Rand, cells []float32, n int) {
	for r, v := range cells {
		switch {
		case v-v != 0: // not finite
		case n == 0:
			cells[r] = math.Float32frombits(Missing)
		default:
			cells[r] = float32(rng.IntN(n))
		}
	}
}

func drawAttributes(t *rapid.T, rng *rand.Rand, p *Panel) {
	if uniform(t, 0, 3, "attributes?") > 0 {
		return
	}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(labels[1:]), 1, 4, rapid.ID[string]).Draw(t, "attributes")
	slices.Sort(names)
	for _, name := range names {
		a := Attribute{Name: name}
		if rapid.Bool().Draw(t, "text") {
			a.Texts = make([]string, len(p.Tickers))
			for i := range a.Texts {
				a.Texts[i] = labels[rng.IntN(len(labels))]
			}
		} else {
			a.Numbers = make([]float64, len(p.Tickers))
			for i := range a.Numbers {
				numbers := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(-1), 5e-324, -math.MaxFloat64, rng.NormFloat64()}
				a.Numbers[i] = numbers[rng.IntN(len(numbers))]
			}
		}
		p.Attributes = append(p.Attributes, a)
	}
}

func drawGroups(t *rapid.T) []Group {
	column := 0
	group := func(name string, mask bool, least, most int) Group {
		g := Group{Name: name}
		for range uniform(t, least, most, "columns") {
			g.Columns = append(g.Columns, Column{Name: fmt.Sprintf("c%d", column), Mask: mask})
			column++
		}
		return g
	}
	var groups []Group
	if uniform(t, 0, 4, "label ends") == 4 {
		groups = append(groups, Group{Name: "ends", LabelEnd: true, Columns: []Column{{Name: "end"}}})
	}
	first := pick(t, []string{"features", "features", "features", "data"}, "first group")
	groups = append(groups, group(first, false, 1, 4))
	if rapid.Bool().Draw(t, "targets") {
		groups = append(groups, group("targets", false, 1, 2))
	}
	if rapid.Bool().Draw(t, "masks") {
		groups = append(groups, group("masks", true, 1, 2))
	}
	if uniform(t, 0, 3, "extra") == 3 {
		groups = append(groups, group("extra columns", false, 1, 3))
	}
	return groups
}

// uniform draws from [least, most], which rapid's own ranges would bias towards small numbers.
func uniform(t *rapid.T, least, most int, label string) int {
	return rapid.Custom(func(t *rapid.T) int {
		n := most - least + 1
		bits, v := 2+bits.Len(uint(n)), 0
		for range bits {
			v *= 2
			if rapid.Bool().Draw(t, label) {
				v++
			}
		}
		return least + v*n>>bits
	}).Draw(t, label)
}

// pick draws one of the values, each as likely.
func pick[T any](t *rapid.T, values []T, label string) T {
	return values[uniform(t, 0, len(values)-1, label)]
}

// drawCalendar draws strictly increasing times.
func drawCalendar(t *rapid.T) []int64 {
	start := pick(t, []int64{0, -20, 1_600_000_000, math.MinInt64, math.MaxInt64 - 10_000}, "start")
	times := []int64{start}
	steps := uniform(t, 0, maxRows-1, "steps")
	for _, step := range rapid.SliceOfN(rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 5, 10, 200}), steps, steps).Draw(t, "steps") {
		times = append(times, times[len(times)-1]+step)
	}
	return times
}

// drawTimes draws a ticker's times: none, a calendar, a piece of one, or some of its times.
func drawTimes(t *rapid.T, calendars [][]int64) []int64 {
	calendar := pick(t, calendars, "calendar")
	switch uniform(t, 0, 5, "kind of times") {
	case 0:
		return nil
	case 1, 2:
		return slices.Clone(calendar)
	case 3, 4:
		from := uniform(t, 0, len(calendar)-1, "first")
		return slices.Clone(calendar[from:uniform(t, from+1, len(calendar), "behind")])
	}
	var times []int64
	drop := drawBits(t, "times to drop")
	for i, v := range calendar {
		if drop>>i&1 == 0 {
			times = append(times, v)
		}
	}
	return times
}

// drawBits draws bits of which none, one, few, half or most are set.
func drawBits(t *rapid.T, label string) uint64 {
	kind := uniform(t, 0, 6, label)
	switch kind {
	case 0, 1:
		return 0
	case 2:
		return 1 << uniform(t, 0, maxRows-1, label)
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, label), 1))
	switch kind {
	case 3, 4:
		return rng.Uint64() & rng.Uint64() & rng.Uint64() & rng.Uint64()
	case 5:
		return rng.Uint64()
	}
	return rng.Uint64() | rng.Uint64()
}

// drawAbsent draws the missing rows of a column, given those of the column beside it and of the ticker before.
func drawAbsent(t *rapid.T, beside, before uint64) uint64 {
	switch uniform(t, 0, 7, "missing") {
	case 0, 1, 2:
		return 0
	case 3: // a warm-up
		return 1<<(uniform(t, 0, 100, "warm-up")/2) - 1
	case 4:
		return beside
	case 5:
		return before
	}
	return drawBits(t, "missing cells")
}

var (
	specials = []uint32{
		0, 1 << 31, 1, 1<<31 | 1, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000,
	}
	absences = []uint32{Missing, Missing, Missing, 0xffc00000, 0x7f800001, 0x7fffffff, 0x7f800000, 0xff800000}
)

func drawCells(rng *rand.Rand, rows int, absent uint64, mask bool) []float32 {
	cells := make([]float32, rows)
	for r := range cells {
		switch {
		case absent>>r&1 != 0:
			cells[r] = math.Float32frombits(absences[rng.IntN(len(absences))])
		case mask:
			cells[r] = 1
		case rng.IntN(4) == 0:
			cells[r] = math.Float32frombits(specials[rng.IntN(len(specials))])
		default:
			cells[r] = float32(rng.NormFloat64())
		}
	}
	return cells
}

func drawEnds(rng *rand.Rand, times []int64) []int64 {
	ends := make([]int64, len(times))
	for r := range ends {
		if ends[r] = NoEnd; rng.IntN(4) > 0 {
			ends[r] = times[min(len(times)-1, r+rng.IntN(5))]
		}
	}
	return ends
}

// DrawQuery draws a valid query of a panel that has a float32 column.
func DrawQuery(t *rapid.T, p *Panel) Query {
	var q Query
	var groups []Group // of float32
	var columns []string
	hasFeatures, hasTargets := false, false
	for _, g := range p.Groups {
		if !g.LabelEnd {
			groups = append(groups, g)
			columns = append(columns, columnNames(g.Columns)...)
			hasFeatures = hasFeatures || g.Name == "features"
			hasTargets = hasTargets || g.Name == "targets"
		}
	}
	// Columns and groups that name no column twice.
	names := func(label string, least int) []string {
		if uniform(t, 0, 2, label+" by group") == 0 {
			byName := func(g Group) string { return g.Name }
			picked := rapid.SliceOfNDistinct(rapid.SampledFrom(groups), max(1, least), len(groups), byName).Draw(t, label)
			var all []string
			for _, g := range picked {
				if rapid.Bool().Draw(t, label+" spelt out") {
					all = append(all, columnNames(g.Columns)...)
				} else {
					all = append(all, g.Name)
				}
			}
			return all
		}
		return rapid.SliceOfNDistinct(rapid.SampledFrom(columns), least, min(3, len(columns)), rapid.ID[string]).Draw(t, label)
	}
	sometimes := func(label string) bool { return uniform(t, 0, 3, label+"?") == 3 }

	if !hasFeatures || rapid.Bool().Draw(t, "inputs?") {
		q.Inputs = names("inputs", 1)
	}
	switch uniform(t, 0, 3, "targets?") {
	case 0: // the default
	case 1:
		q.Targets = []string{}
	default:
		q.Targets = names("targets", 1)
	}
	targets := len(q.Targets) > 0 || q.Targets == nil && hasTargets

	span := func(label string, most int64) int64 {
		if uniform(t, 0, 19, label+" at the limit") == 19 {
			return math.MaxInt32
		}
		return rapid.Int64Range(1, most).Draw(t, label)
	}
	q.Lookback = span("lookback", 8)
	if sometimes("stride") {
		q.Stride = span("stride", 7)
	}
	if targets {
		if sometimes("target length") {
			q.TargetLength = span("target length", 4)
		}
		if uniform(t, 0, 3, "horizons?") > 0 {
			least := max(1-q.Lookback, -10)
			near := rapid.Int64Range(least, 8)
			horizon := rapid.OneOf(near, near, near, near, near, rapid.SampledFrom([]int64{1 - q.Lookback, 30, math.MaxInt32}))
			most := pick(t, []int{1, 1, 3, 8}, "most horizons")
			q.Horizons = rapid.SliceOfNDistinct(horizon, 1, most, rapid.ID[int64]).Draw(t, "horizons")
			slices.Sort(q.Horizons)
		}
	}
	if q.Stride <= 1 && sometimes("at") {
		q.At = drawAt(t, p)
	}
	if sometimes("optional") {
		r, err := Resolve(p, q)
		if err != nil {
			t.Fatalf("a drawn query is not valid: %v", err)
		}
		all := p.Columns()
		for _, c := range append(slices.Clone(r.Inputs), r.Targets...) {
			if rapid.Bool().Draw(t, "optional") {
				q.Optional = append(q.Optional, all[c].Name)
			}
		}
	}
	if sometimes("breaks") {
		q.Breaks = []string{}
		for _, s := range p.BreakSets {
			if rapid.Bool().Draw(t, "break set") {
				q.Breaks = append(q.Breaks, s.Name)
			}
		}
	}
	if sometimes("tickers") {
		q.Tickers = []string{}
		for _, ticker := range slices.Backward(p.Tickers) {
			if uniform(t, 0, 2, "keep") > 0 {
				q.Tickers = append(q.Tickers, ticker.Name)
			}
		}
	}
	if sometimes("where") {
		q.Where = names("where", 0)
	}
	if sometimes("from") {
		q.From = drawTime(t, p)
	}
	if sometimes("to") {
		q.To = drawTime(t, p)
	}
	return q
}

// drawTime draws a time of a ticker's row, or one beside it or far off.
func drawTime(t *rapid.T, p *Panel) *int64 {
	v := pick(t, []int64{0, math.MinInt64, math.MaxInt64}, "far time")
	if len(p.Tickers) > 0 {
		if times := pick(t, p.Tickers, "ticker of the time").Times; len(times) > 0 {
			v = pick(t, times, "time")
			if v > math.MinInt64 && v < math.MaxInt64 {
				v += rapid.Int64Range(-1, 1).Draw(t, "beside")
			}
		}
	}
	return &v
}

// drawAt draws a set of times in any order: every n-th or some of a ticker's, and some of no ticker.
func drawAt(t *rapid.T, p *Panel) []int64 {
	at := []int64{}
	for _, ticker := range p.Tickers {
		switch uniform(t, 0, 3, "kind of at") {
		case 0:
			n := uniform(t, 1, 6, "every")
			for r := 0; r < len(ticker.Times); r += n {
				at = append(at, ticker.Times[r])
			}
		case 1:
			bits := drawBits(t, "at")
			for r, v := range ticker.Times {
				if bits>>r&1 != 0 {
					at = append(at, v)
				}
			}
		}
	}
	if rapid.Bool().Draw(t, "other times") {
		at = append(at, math.MinInt64, -3, 7, 1_600_000_009)
	}
	slices.Reverse(at)
	return at
}
