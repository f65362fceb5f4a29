package spec

import (
	"math"
	"slices"
	"strings"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
)

// valid is a vector of a file that passes every check.
type valid struct {
	name, note string
	content    *craft.Content
	edit       func(f *craft.File) // may be nil
	queries    []oracle.Query      // those that a rule refuses included
}

func column(names ...string) []format.Column {
	var all []format.Column
	for _, n := range names {
		all = append(all, format.Column{Name: n})
	}
	return all
}

func floats(name string, columns ...string) format.Group {
	return format.Group{Name: name, DType: format.Float32, Columns: column(columns...)}
}

func ends(name, columnName string) format.Group {
	return format.Group{Name: name, DType: format.Int64, Columns: []format.Column{{Name: columnName, Role: format.LabelEnd}}}
}

// steps returns n times from start on.
func steps(start, step int64, n int) []int64 {
	times := make([]int64, n)
	for i := range times {
		times[i] = start + step*int64(i)
	}
	return times
}

// ramp returns n cells from start on, with missing ones at the given rows.
func ramp(start float32, n int, missing ...int) []float32 {
	cells := make([]float32, n)
	for i := range cells {
		cells[i] = start + float32(i)
	}
	for _, r := range missing {
		cells[r] = format.Missing()
	}
	return cells
}

// ticker returns a ticker of a schema; columns hold []float32 or []int64. The breaks of gap sets are computed.
func ticker(s *format.Schema, name string, times []int64, breaks [][]int64, columns ...any) oracle.Ticker {
	t := oracle.Ticker{Name: name, Times: times, Breaks: make([][]int64, len(s.Breaks))}
	copy(t.Breaks, breaks)
	for i, b := range s.Breaks {
		if b.Kind == format.BreakGap {
			t.Breaks[i] = oracle.Gaps(times, b.MaxGap)
		}
	}
	for _, c := range columns {
		cells, _ := c.([]float32)
		labels, _ := c.([]int64)
		t.Cells, t.Ends = append(t.Cells, cells), append(t.Ends, labels)
	}
	return t
}

// empty returns a ticker without rows.
func empty(s *format.Schema, name string) oracle.Ticker {
	return ticker(s, name, nil, nil, make([]any, s.Columns())...)
}

func at(v int64) *int64 { return &v }

// base is the file that the invalid ones are made of.
func base() *craft.Content {
	s := &format.Schema{
		Zone: "America/New_York",
		Groups: []format.Group{
			floats("features", "x", "y"),
			{Name: "targets", DType: format.Float32, Columns: []format.Column{{Name: "r", ReachKind: format.ReachColumn, Reach: 3}}},
			ends("ends", "e"),
			{Name: "masks", DType: format.Float32, Columns: []format.Column{{Name: "m", Role: format.Mask}}},
		},
		Breaks: []format.BreakSet{
			{Name: "gap", Kind: format.BreakGap, MaxGap: 60},
			{Name: "session", Kind: format.BreakColumn, Source: "day"},
			{Name: "given", Kind: format.BreakGiven},
		},
	}
	aa := append(steps(0, 10, 5), 200, 210, 220)
	one := func(n int) []float32 { return slices.Repeat([]float32{1}, n) }
	return &craft.Content{Schema: s, Provenance: []byte(`{"by":"vectors"}`), Tickers: []oracle.Ticker{
		ticker(s, "AA", aa, [][]int64{nil, {2}, nil}, ramp(1, 8, 0, 1), ramp(11, 8), ramp(21, 8), aa, one(8)),
		empty(s, "B"),
		ticker(s, "C", aa[1:5], [][]int64{nil, nil, {1, 3}}, ramp(31, 4, 0, 1), ramp(41, 4), ramp(51, 4), aa[1:5], one(4)),
		ticker(s, "D", steps(5, 10, 5), [][]int64{nil, {2}, nil},
			ramp(61, 5), ramp(71, 5, 3), ramp(81, 5), []int64{math.MinInt64, 15, 25, 35, 45}, one(5)),
	}}
}

func valids() []valid {
	all := []valid{
		minimal(), widest(), noRows(), one(), several(), groups(), missing(), breaks(), cells(), names(), chunks(), aligned(), wide(),
		categories(), attributes(), attributesOfNone(),
	}
	all = append(all, units()...)
	baseQueries := []oracle.Query{{Lookback: 2}, {Lookback: 2, Stride: 2, Breaks: []string{"given"}}}
	return append(all,
		valid{
			name: "section-19", note: "the file that section 19 shows byte by byte", content: small(),
			queries: []oracle.Query{{Lookback: 1}, {Lookback: 2, Breaks: []string{}}, {Lookback: 1, Targets: []string{"close"}, Inputs: []string{"open"}}},
		},
		valid{name: "base", note: "the file that the invalid ones are made of", content: base(), queries: baseQueries},
		valid{
			name: "labels", note: "the file that those of invalid categories and attributes are made of", content: labelled(),
			queries: []oracle.Query{{Lookback: 1}, {Lookback: 2, Inputs: []string{"country", "sector"}, Optional: []string{"country"}}},
		},
		valid{
			name: "unknown-sections", note: "optional sections of unknown tags, with keys, safe to copy and not",
			content: base(), queries: baseQueries[:1],
			edit: func(f *craft.File) {
				f.Add(craft.Section{Tag: "0ABC", Bytes: []byte("not safe to copy")})
				f.Add(craft.Section{Tag: "XTRA", Flags: 2, Bytes: []byte("safe to copy")})
				f.Add(craft.Section{Tag: "XTRA", Flags: 2, Key: 1<<63 - 1, Bytes: []byte("another")})
			},
		},
		valid{
			name: "unknown-bits", note: "unknown compat and ro_compat bits", content: base(), queries: baseQueries[:1],
			edit: func(f *craft.File) { f.Slot.Compat, f.Slot.ROCompat = 1<<63|1, 1<<63|2 },
		},
		valid{
			name: "version-99", note: "the version number decides nothing", content: base(), queries: baseQueries[:1],
			edit: func(f *craft.File) { f.Slot.Version = 99 },
		},
		valid{
			name: "provenance-not-json", note: "a reader must not refuse a file because of its provenance", content: base(),
			edit: func(f *craft.File) { f.Section("PROV").Bytes = []byte("\xff not JSON") },
		},
	)
}

// labelled is the file that those of invalid categories and attributes are made of.
func labelled() *craft.Content {
	s := &format.Schema{Groups: []format.Group{
		floats("features", "x", "sector"), ends("ends", "e"),
		{Name: "masks", DType: format.Float32, Columns: []format.Column{{Name: "m", Role: format.Mask}}},
		floats("more", "country"),
	}}
	none := format.Missing()
	times := steps(0, 10, 4)
	return &craft.Content{
		Schema: s, Provenance: []byte(`{"by":"vectors"}`),
		Tickers: []oracle.Ticker{
			ticker(s, "AA", times, nil, ramp(1, 4), []float32{2, 0, 0, none}, times, []float32{1, 1, 1, 1}, []float32{1, 0, 1, none}),
			empty(s, "B"),
			ticker(s, "C", times[:2], nil, ramp(11, 2), []float32{0, 2}, times[:2], []float32{1, 1}, []float32{none, none}),
		},
		Categories: map[string][]string{"sector": {"Energy", "Health", "IT"}, "country": {"DE", "US"}},
		Attributes: []oracle.Attribute{
			{Name: "beta", Numbers: []float64{1.5, math.NaN(), -1}},
			{Name: "home", Texts: []string{"DE", "", "DE"}},
			{Name: "sector", Texts: []string{"IT", "Energy", "IT"}},
		},
	}
}

func minimal() valid {
	return valid{
		name: "minimal", note: "no tickers and no calendars",
		content: &craft.Content{Schema: &format.Schema{Groups: []format.Group{floats("features", "x")}}},
		queries: []oracle.Query{{Lookback: 1}, {Lookback: 1, Inputs: []string{"x"}, At: []int64{0}}, {Lookback: 1, Tickers: []string{"A"}}},
	}
}

// widest has nothing to align: what comes behind the slots starts at 8192 all the same.
func widest() valid {
	v := minimal()
	v.name, v.note = "minimal-align-65536", "no tickers and no calendars, and the greatest alignment"
	v.content.AlignLog2 = format.MaxAlignLog2
	return v
}

// categories has more codes than a byte holds.
func categories() valid {
	many := make([]string, 300)
	for i := range many {
		many[i] = string(rune(0x4e00 + i))
	}
	s := &format.Schema{
		Groups: []format.Group{floats("features", "number", "few", "none"), ends("ends", "e"), floats("targets", "many")},
		Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 15}},
	}
	s.Groups[2].Columns[0].ReachKind = format.ReachRows
	none := slices.Repeat([]float32{format.Missing()}, 300)
	ids, times := ramp(0, 300), steps(0, 10, 300)
	few := make([]float32, 300)
	for i := range few {
		few[i] = float32(i % 3)
		if i%7 == 0 {
			few[i] = format.Missing()
		}
	}
	return valid{
		name: "categories", note: "three columns with categories: of two groups, none at all, more than 256, some that no cell has, texts of any kind and order by bytes",
		content: &craft.Content{Schema: s, AlignLog2: 7,
			Tickers: []oracle.Ticker{
				ticker(s, "A", times, nil, ramp(0, 300), few, none, times, ids), empty(s, "B"),
				ticker(s, "C", times[40:80], nil, ramp(0, 40), few[40:80], none[:40], times[40:80], ids[260:]),
			},
			Categories: map[string][]string{
				"few":  {"\x00", " ", "A", "NaN", strings.Repeat("long ", 60), "é", "\uffff", "\U0001f4c8"},
				"none": {}, "many": many,
			},
		},
		queries: []oracle.Query{
			{Lookback: 3, Inputs: []string{"number", "few"}}, {Lookback: 2, Inputs: []string{"number"}, Targets: []string{"few", "many"}, Horizons: []int64{0}},
			{Lookback: 1}, {Lookback: 2, Optional: []string{"few", "none"}, Stride: 50},
			{Lookback: 1, Inputs: []string{"few"}, Where: []string{"many"}, Tickers: []string{"C"}, Targets: []string{}},
		},
	}
}

func attributes() valid {
	s := &format.Schema{Groups: []format.Group{floats("features", "x")}}
	tick := func(name string, n int) oracle.Ticker { return ticker(s, name, steps(0, 1, n), nil, ramp(0, n)) }
	return valid{
		name: "attributes", note: "texts and numbers, missing ones, of a ticker without rows, numbers at their limits, names in order by bytes, one of them a column's",
		content: &craft.Content{
			Schema: s, Tickers: []oracle.Ticker{tick("A", 3), tick("B", 0), tick("C", 1), tick("D", 2), tick("E", 2)},
			Attributes: []oracle.Attribute{
				{Name: " ", Numbers: []float64{0, math.Copysign(0, -1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}},
				{Name: "all missing", Texts: make([]string, 5)},
				{Name: "none", Numbers: slices.Repeat([]float64{math.NaN()}, 5)},
				{Name: "sector", Texts: []string{"Health", "IT", "Energy", "", "IT"}},
				{Name: "x", Numbers: []float64{1, 2, math.Inf(1), 0.1, -1e300}},
				{Name: "é", Texts: []string{"\x00", "\U0001f4c8", "é", " ", strings.Repeat("long ", 60)}},
			},
		},
		queries: []oracle.Query{{Lookback: 1}},
	}
}

func attributesOfNone() valid {
	v := minimal()
	v.name, v.note = "attributes-no-tickers", "attributes of no tickers"
	v.content.Attributes = []oracle.Attribute{{Name: "number", Numbers: []float64{}}, {Name: "text", Texts: []string{}}}
	return v
}

func noRows() valid {
	s := &format.Schema{Groups: []format.Group{floats("features", "x"), ends("ends", "e")}, Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 1}}}
	return valid{
		name: "no-rows", note: "two tickers, neither of which has rows",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{empty(s, "A"), empty(s, "B")}},
		queries: []oracle.Query{{Lookback: 1}, {Lookback: 1, Inputs: []string{"e"}}},
	}
}

func one() valid {
	s := &format.Schema{Groups: []format.Group{floats("features", "open", "close")}}
	n := 8
	long := int64(math.MaxInt32)
	return valid{
		name: "one-ticker", note: "one ticker, two columns, nothing missing; queries of every parameter, valid and not",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{ticker(s, "A", steps(100, 10, n), nil, ramp(1, n), ramp(101, n))}},
		queries: []oracle.Query{
			{Lookback: 3},
			{Lookback: 3, Targets: []string{"close"}},
			{Lookback: 3, Targets: []string{"close"}, Horizons: []int64{0}},
			{Lookback: 3, Targets: []string{"close", "open"}, Horizons: []int64{-2, 1, 4}},
			{Lookback: 2, Targets: []string{"close"}, Horizons: []int64{1, 2}, TargetLength: 3},
			{Lookback: 1, Targets: []string{"features"}, TargetLength: 2, Inputs: []string{"close"}},
			{Lookback: 2, Inputs: []string{"close", "open"}, Stride: 3},
			{Lookback: 2, Stride: 3, From: at(120), To: at(170)},
			{Lookback: 2, From: at(111), To: at(111)},
			{Lookback: 2, At: []int64{170, 100, 110, 111, 140, 140, math.MaxInt64}},
			{Lookback: 2, At: []int64{}},
			{Lookback: 2, Tickers: []string{}},
			{Lookback: 8}, {Lookback: 9}, {Lookback: long, Targets: []string{"open"}, Horizons: []int64{1 - long, long}, Stride: long, TargetLength: long},
			// Refused:
			{}, {Lookback: -1}, {Lookback: 1 << 31},
			{Lookback: 2, Stride: -1}, {Lookback: 2, Stride: 1 << 31},
			{Lookback: 2, Inputs: []string{}}, {Lookback: 2, Inputs: []string{"close", "close"}},
			{Lookback: 2, Inputs: []string{"features", "open"}}, {Lookback: 2, Inputs: []string{"Open"}},
			{Lookback: 2, Targets: []string{"volume"}}, {Lookback: 2, Targets: []string{"open", "open"}},
			{Lookback: 2, Horizons: []int64{1}}, {Lookback: 2, TargetLength: 1},
			{Lookback: 2, Targets: []string{"open"}, Horizons: []int64{-2}},
			{Lookback: 2, Targets: []string{"open"}, Horizons: []int64{1 << 31}},
			{Lookback: 2, Targets: []string{"open"}, Horizons: []int64{2, 1}},
			{Lookback: 2, Targets: []string{"open"}, Horizons: []int64{1, 1}},
			{Lookback: 2, Targets: []string{"open"}, TargetLength: 1 << 31},
			{Lookback: 2, Targets: []string{"open"}, TargetLength: -1},
			{Lookback: 2, Inputs: []string{"open"}, Optional: []string{"close"}},
			{Lookback: 2, Optional: []string{"none"}}, {Lookback: 2, Where: []string{"none"}},
			{Lookback: 2, Breaks: []string{"gap"}}, {Lookback: 2, Tickers: []string{"B"}},
			{Lookback: 2, At: []int64{110}, Stride: 2},
		},
	}
}

func several() valid {
	s := &format.Schema{
		Unit: format.Second, Groups: []format.Group{floats("features", "a", "b", "c"), floats("targets", "t")},
		Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 60}},
	}
	full := append(steps(0, 60, 8), steps(1000, 60, 6)...)
	tick := func(name string, times []int64, start float32) oracle.Ticker {
		n := len(times)
		return ticker(s, name, times, nil, ramp(start, n), ramp(start+100, n), ramp(start+200, n), ramp(start+300, n))
	}
	holes := slices.Delete(slices.Clone(full), 3, 4)
	return valid{
		name: "several-tickers",
		note: "equal calendars, pieces of one, one that overlaps another and one that equals it but for a time, the same first time; a ticker without rows",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{
			tick("A", full, 1000), tick("B", full[3:9], 2000), empty(s, "C"), tick("D", full, 3000), tick("E", steps(420, 1, 4), 4000),
			tick("F", append(steps(300, 60, 3), 421), 5000), tick("G", holes, 6000), tick("H", full[13:], 7000), tick("I", []int64{421}, 8000),
		}},
		queries: []oracle.Query{
			{Lookback: 1}, {Lookback: 3}, {Lookback: 3, Targets: []string{}}, {Lookback: 2, Breaks: []string{}, Stride: 2},
			{Lookback: 2, Tickers: []string{"G", "A", "G"}, At: []int64{1000, 420, 60, 180}},
			{Lookback: 2, From: at(180), To: at(1060), Stride: 2, Targets: []string{}},
			{Lookback: 2, Inputs: []string{"t", "b"}, Targets: []string{"c", "t"}, Horizons: []int64{-1, 2}},
			{Lookback: 4, Inputs: []string{"targets", "features"}, Targets: []string{}, Tickers: []string{"C", "H"}},
		},
	}
}

func groups() valid {
	s := &format.Schema{
		Unit: format.Millisecond, Zone: "Asia/Tokyo",
		Groups: []format.Group{
			ends("end of the label", "end"),
			{Name: "features", DType: format.Float32, Columns: []format.Column{
				{Name: "a"}, {Name: "b", ReachKind: format.ReachRows}, {Name: "c", Role: format.Mask},
			}},
			{Name: "targets", DType: format.Float32, Columns: []format.Column{
				{Name: "rows", ReachKind: format.ReachRows, Reach: 5}, {Name: "duration", ReachKind: format.ReachDuration, Reach: 86_400_000},
				{Name: "column", ReachKind: format.ReachColumn, Reach: 0}, {Name: "other column", ReachKind: format.ReachColumn, Reach: 8},
				{Name: "far", ReachKind: format.ReachRows, Reach: math.MaxInt64},
			}},
			{Name: "masks", DType: format.Float32, Columns: []format.Column{{Name: "in index", Role: format.Mask}, {Name: "liquid", Role: format.Mask}}},
			ends("second end", "end 2"),
		},
	}
	// "end 2" is column 11: its number is that of its place across groups.
	s.Groups[2].Columns[3].Reach = int64(s.Columns() - 1)
	n := 10
	times := steps(-50_000, 10_000, n)
	mask := func(missing ...int) []float32 {
		m := slices.Repeat([]float32{1}, n)
		for _, r := range missing {
			m[r] = format.Missing()
		}
		return m
	}
	labels := steps(-40_000, 10_000, n)
	labels[n-1] = math.MinInt64
	tick := func(name string, start float32, first, second []float32) oracle.Ticker {
		return ticker(s, name, times, nil, labels, ramp(start, n), ramp(start+10, n, 0), mask(5),
			ramp(start+20, n, n-1), ramp(start+30, n), ramp(start+40, n), ramp(start+50, n), ramp(start+60, n), first, second, times)
	}
	return valid{
		name: "groups", note: "several groups: features, targets of every kind of reach, masks, label ends; an int64 group comes first",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{
			tick("A", 100, mask(), mask(0, 1, 2, 3)), tick("B", 300, mask(4), mask(4, 5, 6, 7, 8, 9)),
		}},
		queries: []oracle.Query{
			{Lookback: 3}, {Lookback: 3, Where: []string{"in index"}}, {Lookback: 2, Where: []string{"masks"}, Inputs: []string{"a"}, Targets: []string{}},
			{Lookback: 2, Inputs: []string{"a"}, Targets: []string{"rows"}, Optional: []string{"rows"}, Where: []string{"liquid"}, Stride: 2},
			{Lookback: 2, Optional: []string{"features", "targets"}, Horizons: []int64{0}},
			{Lookback: 2, Optional: []string{"c"}, Targets: []string{"duration", "a"}},
			{Lookback: 2, Inputs: []string{"far", "liquid", "b", "duration"}, Targets: []string{"masks"}, Optional: []string{"masks"}},
			{Lookback: 2, Inputs: []string{"end"}}, {Lookback: 2, Inputs: []string{"second end"}}, {Lookback: 2, Targets: []string{"end 2"}},
			{Lookback: 2, Where: []string{"end"}},
		},
	}
}

func missing() valid {
	s := &format.Schema{Unit: format.Second, Groups: []format.Group{floats("features", "a", "b", "c", "d"), floats("more", "e")}}
	n := 200
	warm := func(k int) []int {
		var rows []int
		for r := range k {
			rows = append(rows, r)
		}
		return rows
	}
	every := func(k int) []int {
		var rows []int
		for r := 0; r < n; r += k {
			rows = append(rows, r)
		}
		return rows
	}
	times := steps(0, 1, n)
	return valid{
		name: "missing", note: "missing runs at both ends, scattered and of whole columns; lists that columns and tickers share; uvarints of two bytes",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{
			ticker(s, "A", times, nil, ramp(0, n), ramp(1000, n, warm(20)...), ramp(2000, n, warm(20)...), ramp(3000, n, 7, 150, 151, n-1), ramp(1, n)),
			ticker(s, "B", times, nil, ramp(0, n, every(3)...), ramp(1000, n), ramp(2000, n, warm(20)...), ramp(3000, n, warm(n)...), ramp(1, n)),
			ticker(s, "C", times[:20], nil, ramp(0, 20), ramp(1000, 20, warm(20)...), ramp(2000, 20, 7), ramp(3000, 20, 7), ramp(1, 20)),
			ticker(s, "D", times[:1], nil, ramp(0, 1), ramp(0, 1), ramp(0, 1), ramp(0, 1), ramp(0, 1)),
		}},
		queries: []oracle.Query{
			{Lookback: 2, Stride: 10}, {Lookback: 2, Inputs: []string{"a"}, Stride: 3}, {Lookback: 1, Inputs: []string{"a", "b"}, Tickers: []string{"B"}},
			{Lookback: 4, Inputs: []string{"c"}, Targets: []string{"d"}, Horizons: []int64{-3, 40}, TargetLength: 2, Stride: 7},
			{Lookback: 5, Inputs: []string{"c", "d"}, Optional: []string{"d"}, Stride: 20},
			{Lookback: 150, Inputs: []string{"b", "e"}, Targets: []string{"e"}, Stride: 5},
			{Lookback: 1, Inputs: []string{"e"}, Where: []string{"d", "a"}, Stride: 4},
		},
	}
}

func breaks() valid {
	s := &format.Schema{
		Unit: format.Second, Groups: []format.Group{floats("features", "x")},
		Breaks: []format.BreakSet{
			{Name: "gap", Kind: format.BreakGap, MaxGap: 10}, {Name: "long gap", Kind: format.BreakGap, MaxGap: 100},
			{Name: "session", Kind: format.BreakColumn, Source: "session id"}, {Name: "splits", Kind: format.BreakGiven},
			{Name: "never", Kind: format.BreakGiven},
		},
	}
	// A step of exactly the greatest gap is no break.
	a := []int64{0, 10, 20, 31, 41, 141, 241, 342, 343, 344, 345, 346}
	b := steps(0, 100, 6)
	return valid{
		name: "breaks", note: "break sets of all kinds, overlapping, one without breaks, lists that sets and tickers share",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{
			ticker(s, "A", a, [][]int64{nil, nil, {3, 9}, {3, 11}, nil}, ramp(0, len(a))),
			ticker(s, "B", b, [][]int64{nil, nil, {1, 2, 3, 4, 5}, {1}, nil}, ramp(100, len(b), 2)),
		}},
		queries: []oracle.Query{
			{Lookback: 2}, {Lookback: 2, Breaks: []string{}}, {Lookback: 2, Breaks: []string{"gap"}}, {Lookback: 2, Breaks: []string{"long gap"}},
			{Lookback: 2, Breaks: []string{"splits", "session"}}, {Lookback: 2, Breaks: []string{"never", "long gap"}, Stride: 2},
			{Lookback: 1, Targets: []string{"x"}, Stride: 2, Breaks: []string{"session"}}, {Lookback: 1, Breaks: []string{"x"}},
			{Lookback: 3, Targets: []string{"x"}, Horizons: []int64{-1}, Breaks: []string{"long gap", "session"}},
		},
	}
}

func cells() valid {
	s := &format.Schema{Groups: []format.Group{floats("features", "x")}}
	bits := []uint32{
		0x80000000, 0x00000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, format.MissingBits, 0x3f800000, 0x3eaaaaab,
	}
	return valid{
		name: "cells", note: "negative zero, subnormal numbers and the greatest ones: compare bits",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{ticker(s, "A", steps(0, 1, len(bits)), nil, craft.Cells(bits...))}},
		queries: []oracle.Query{{Lookback: 1}, {Lookback: 4, Optional: []string{"x"}}},
	}
}

func names() valid {
	long := strings.Repeat("é", 127) + "x"
	s := &format.Schema{
		Zone:   "America/Argentina/ComodRivadavia",
		Groups: []format.Group{floats("特徴", "終値", "Объём", " "), floats(long, "\U0001F4C8", "a\x00b")},
		Breaks: []format.BreakSet{{Name: "جلسة", Kind: format.BreakColumn, Source: "日付"}, {Name: "終値", Kind: format.BreakGiven}},
	}
	list := []string{
		"\x00", "\t", " ", " A", "\"q\"", "../x", "000001", "1e5", "A", "A ", "A\nB", "AA", "BRK.B", "BTC/USDT", "CON", "INF", "NA", "NaN", "TRUE",
		"a", "null", long, "e\u0301", "\u200b", "\u2028", "日経", "\ue000", "\uffff", "\U00010000", "\U0001F4C8",
	}
	slices.Sort(list)
	c := &craft.Content{Schema: s}
	for i, n := range list {
		c.Tickers = append(c.Tickers, ticker(s, n, steps(int64(i), 1, 2), [][]int64{nil, {1}}, ramp(float32(i), 2), ramp(0, 2), ramp(0, 2), ramp(1, 2), ramp(0, 2)))
	}
	return valid{
		name: "names", note: "names of tickers, groups, columns and break sets in several scripts, with odd bytes, one of 255 bytes; a break set with a column's name; U+FFFF sorts before U+10000, as bytes do and UTF-16 does not",
		content: c,
		queries: []oracle.Query{
			{Lookback: 1, Inputs: []string{"特徴"}}, {Lookback: 2, Inputs: []string{long}, Breaks: []string{"جلسة"}, Tickers: []string{"日経", "A "}},
			{Lookback: 1, Inputs: []string{"a\x00b", " "}, Tickers: []string{"\x00", "\uffff"}},
			{Lookback: 1, Inputs: []string{" "}, Tickers: []string{"\u00e9"}}, {Lookback: 1},
		},
	}
}

func chunks() valid {
	s := &format.Schema{Unit: format.Second, Groups: []format.Group{floats("features", "a", "b")}, Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 60}}}
	n := 8193 // 8 bytes more than a chunk, of times and of cells
	times := steps(1_600_000_000, 60, n)
	times[n-1]++
	return valid{
		name: "chunks", note: "a calendar and a block of two chunks; a gap at the chunks' border",
		content: &craft.Content{Schema: s, Tickers: []oracle.Ticker{ticker(s, "A", times, nil, ramp(0, n, 8191), ramp(10000, n, 0))}},
		queries: []oracle.Query{{Lookback: 60, Stride: 500}, {Lookback: 1, From: at(times[8189])}, {Lookback: 2, Targets: []string{"b"}, Inputs: []string{"b"}, Stride: 1000}},
	}
}

func aligned() valid {
	s := &format.Schema{Unit: format.Second, Groups: []format.Group{floats("features", "a"), floats("targets", "b")}}
	return valid{
		name: "align-4096", note: "an alignment of 4096",
		content: &craft.Content{Schema: s, AlignLog2: 12, Provenance: []byte(`{"sources": ["a.csv"], "note": "naïve"}`), Tickers: []oracle.Ticker{
			ticker(s, "A", steps(0, 1, 20), nil, ramp(0, 20), ramp(100, 20)), empty(s, "B"), ticker(s, "C", steps(10, 1, 5), nil, ramp(50, 5, 2), ramp(150, 5)),
		}},
		queries: []oracle.Query{{Lookback: 3, Stride: 4}, {Lookback: 1, Horizons: []int64{3}, Tickers: []string{"C"}}},
	}
}

func wide() valid {
	s := &format.Schema{}
	for i := range 1024 {
		s.Groups = append(s.Groups, floats("g"+string(rune(0x4e00+i)), "c"+string(rune(0x4e00+i))))
	}
	for i := range 64 {
		s.Breaks = append(s.Breaks, format.BreakSet{Name: string(rune('0' + i)), Kind: format.BreakGiven})
	}
	return valid{
		name: "wide", note: "as many groups and break sets as possible", content: &craft.Content{Schema: s},
		queries: []oracle.Query{{Lookback: 1, Inputs: []string{s.Groups[1023].Name}}},
	}
}

func units() []valid {
	var all []valid
	for _, u := range []struct {
		unit  format.Unit
		name  string
		times []int64
	}{
		{format.Second, "unit-s", []int64{-86_400, -1, 0, 1, 1_700_000_000, 4_102_444_800}},
		{format.Millisecond, "unit-ms", []int64{-86_400_000, -1, 0, 1, 1_700_000_000_123, 4_102_444_800_000}},
		{format.Microsecond, "unit-us", []int64{-86_400_000_000, -1, 0, 1, 1_700_000_000_123_456, 4_102_444_800_000_000}},
		{format.Nanosecond, "unit-ns", []int64{math.MinInt64, -1, 0, 1, 1_700_000_000_123_456_789, math.MaxInt64}},
	} {
		s := &format.Schema{
			Unit: u.unit, Groups: []format.Group{floats("features", "x")},
			Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 1}, {Name: "huge", Kind: format.BreakGap, MaxGap: math.MaxInt64}},
		}
		n := len(u.times)
		tickers := []oracle.Ticker{ticker(s, "A", u.times, nil, ramp(0, n))}
		if u.unit == format.Nanosecond {
			tickers = append(tickers,
				ticker(s, "B", []int64{math.MinInt64, math.MaxInt64}, nil, ramp(10, 2)),
				ticker(s, "C", []int64{math.MinInt64, 0}, nil, ramp(20, 2)),
				ticker(s, "D", []int64{math.MinInt64, -1}, nil, ramp(30, 2)))
		}
		all = append(all, valid{
			name: u.name, note: "times in " + u.unit.String() + ", before 1970 too",
			content: &craft.Content{Schema: s, Tickers: tickers},
			queries: []oracle.Query{
				{Lookback: 1}, {Lookback: 2, Breaks: []string{"huge"}}, {Lookback: 2}, {Lookback: 1, From: at(u.times[1]), To: at(u.times[4])},
				{Lookback: 1, From: at(u.times[0]), To: at(u.times[n-1])}, {Lookback: 1, At: []int64{u.times[4], u.times[0], u.times[4] - 1}},
			},
		})
	}
	all[3].note += ", and at both ends of int64: a difference can be above 2^63"
	return all
}
