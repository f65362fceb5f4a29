package spec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata" // for machines that know no zones

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/order"
	"github.com/wstore/wstore/reader"
)

// splitFile is a file of the split vectors and what is asked of it.
type splitFile struct {
	name    string
	content *craft.Content
	queries []splitQuery
}

type splitQuery struct {
	query  oracle.Query
	splits []oracle.Splits
	walks  []splitWalk
}

// splitWalk is a walk, as text and for the oracle, whose embargo and reach are in rules.
type splitWalk struct {
	every, train, valid string
	walk                oracle.Walk
	rules               oracle.Splits
}

func walk(every, train, valid string, start *int64, unit time.Duration, rules oracle.Splits) splitWalk {
	period := func(text string) (p oracle.Period) {
		if text == "" {
			return p
		}
		r, err := reader.ParsePeriod(text)
		if err != nil {
			panic(err)
		}
		return oracle.Period{Months: int64(r.Months), Units: int64(r.Duration / unit), Times: int64(r.Times)}
	}
	return splitWalk{every, train, valid, oracle.Walk{Every: period(every), Train: period(train), Valid: period(valid), Start: start}, rules}
}

// dailyFile has days at four in the afternoon in New York, from the end of January to the middle of April 2021, over a
// change of clocks, weekends left out; targets of every reach.
func dailyFile() splitFile {
	const day = 86400
	s := &format.Schema{Zone: "America/New_York", Groups: []format.Group{
		floats("features", "x"),
		{Name: "targets", DType: format.Float32, Columns: []format.Column{{Name: "ret3", ReachKind: format.ReachRows, Reach: 3}}},
		{Name: "others", DType: format.Float32, Columns: []format.Column{
			{Name: "week", ReachKind: format.ReachDuration, Reach: 7 * day}, {Name: "event", ReachKind: format.ReachColumn, Reach: 5}, {Name: "raw"},
		}},
		ends("ends", "event end"),
	}}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		panic(err)
	}
	var days []int64
	for d := time.Date(2021, 1, 29, 16, 0, 0, 0, zone); len(days) < 56; d = d.AddDate(0, 0, 1) {
		if wd := d.Weekday(); wd != time.Saturday && wd != time.Sunday {
			days = append(days, d.Unix())
		}
	}
	one := func(name string, times []int64, missing ...int) oracle.Ticker {
		n := len(times)
		labels := make([]int64, n)
		for r := range labels {
			switch r % 7 {
			case 2, 5:
				labels[r] = format.NoTime
			case 4:
				labels[r] = times[min(n-1, r+6)] + 60
			default:
				labels[r] = times[min(n-1, r+1)]
			}
		}
		return ticker(s, name, times, nil, ramp(1, n, missing...), ramp(101, n), ramp(201, n), ramp(301, n), ramp(401, n), labels)
	}
	thin := slices.DeleteFunc(slices.Clone(days), func(t int64) bool { return t/day%3 == 0 })
	c := &craft.Content{Schema: s, Tickers: []oracle.Ticker{
		one("AAA", days, 0, 17), one("BBB", days[20:45]), empty(s, "CCC"), one("DDD", thin, 3, 4),
	}}
	at := func(i int) *int64 { return &days[i] }
	ranges := func(bounds ...*int64) (out []oracle.Range) {
		for i := 0; i < len(bounds); i += 2 {
			out = append(out, oracle.Range{From: bounds[i], To: bounds[i+1]})
		}
		return out
	}
	three := oracle.Splits{Train: ranges(nil, at(25)), Valid: ranges(at(25), at(40)), Test: ranges(at(40), nil)}
	mixed := oracle.Splits{Train: ranges(nil, at(10), at(14), at(30), at(36), nil), Valid: ranges(at(33), at(36)), Test: ranges(at(30), at(33), at(10), at(14))}
	with := func(s oracle.Splits, change func(*oracle.Splits)) oracle.Splits { change(&s); return s }
	rows := func(n int64) *oracle.Reach { return &oracle.Reach{Kind: oracle.ReachRows, Amount: n} }
	variants := func(sets ...oracle.Splits) (out []oracle.Splits) {
		for _, sp := range sets {
			out = append(out, sp,
				with(sp, func(s *oracle.Splits) { s.Embargo = 2*day + 1 }),
				with(sp, func(s *oracle.Splits) { s.EmbargoTimes = 3 }),
				with(sp, func(s *oracle.Splits) { s.Reach = rows(0) }),
				with(sp, func(s *oracle.Splits) { s.Reach = &oracle.Reach{Kind: oracle.ReachDuration, Amount: 4 * day} }))
		}
		return out
	}
	walks := []splitWalk{
		walk("1mo", "1mo", "", nil, time.Second, oracle.Splits{}),
		walk("1mo", "", "2w", at(15), time.Second, oracle.Splits{EmbargoTimes: 1, Reach: rows(1)}),
		walk("10", "15", "5", nil, time.Second, oracle.Splits{Embargo: day, Reach: rows(2)}),
		walk("7", "", "3", at(9), time.Second, oracle.Splits{Reach: rows(0)}),
		walk("2w", "1mo", "36h", nil, time.Second, oracle.Splits{Reach: rows(0)}),
	}
	return splitFile{"daily", c, []splitQuery{
		{oracle.Query{Lookback: 5, Horizons: []int64{0}}, variants(three, mixed), walks},
		{oracle.Query{Lookback: 3, Stride: 4}, variants(three, mixed), walks[:1]},
		{oracle.Query{Lookback: 4, Targets: []string{"week"}, Horizons: []int64{-2, 0, 3}, TargetLength: 2}, variants(three), nil},
		{oracle.Query{Lookback: 2, Targets: []string{"event", "ret3"}, Horizons: []int64{0, 2}}, variants(three, mixed), nil},
		{oracle.Query{Lookback: 2, Targets: []string{"raw"}}, variants(mixed), nil},
		{oracle.Query{Lookback: 2, Targets: []string{"raw"}, Horizons: []int64{0}}, variants(three), nil},
		{oracle.Query{Lookback: 1, Targets: []string{}}, variants(mixed), walks[1:2]},
	}}
}

// boundsFile has times around ends of months and a change of clocks, in nanoseconds, and times near the end of what they
// can say.
func boundsFile() splitFile {
	s := &format.Schema{Unit: format.Nanosecond, Zone: "Europe/Berlin", Groups: []format.Group{floats("features", "x")}}
	const hour = int64(time.Hour)
	start := time.Date(2020, 1, 31, 1, 30, 0, 5, time.UTC).UnixNano()
	var times []int64
	for i := range int64(80) {
		times = append(times, start+i*37*hour)
	}
	end := []int64{math.MaxInt64 - 3*hour, math.MaxInt64 - hour, math.MaxInt64}
	c := &craft.Content{Schema: s, Tickers: []oracle.Ticker{
		ticker(s, "A", times, nil, ramp(1, 80)), ticker(s, "B", times[3:70], nil, ramp(2, 67)), ticker(s, "Z", end, nil, ramp(3, 3)),
	}}
	zero := oracle.Splits{Reach: &oracle.Reach{Kind: oracle.ReachRows}}
	far := oracle.Splits{
		Test: []oracle.Range{{From: &end[1], To: &end[2]}}, Train: []oracle.Range{{To: &end[1]}}, Valid: []oracle.Range{{From: &end[2]}},
		Embargo: hour, Reach: &oracle.Reach{Kind: oracle.ReachDuration, Amount: 2 * hour},
	}
	return splitFile{"bounds", c, []splitQuery{
		{oracle.Query{Lookback: 1, Targets: []string{"x"}, Horizons: []int64{0}}, []oracle.Splits{far}, nil},
		{oracle.Query{Lookback: 2, Tickers: []string{"A", "B"}}, nil, []splitWalk{
			walk("1mo", "1mo", "", nil, time.Nanosecond, zero),
			walk("1mo", "", "1mo", &times[0], time.Nanosecond, zero),
			walk("2w", "10d", "5d", nil, time.Nanosecond, oracle.Splits{EmbargoTimes: 2}),
			walk("1000h", "", "", &times[7], time.Nanosecond, zero),
		}},
	}}
}

// reachesOf returns the reach of each column.
func reachesOf(s *format.Schema) (out []oracle.Reach) {
	kinds := map[format.ReachKind]oracle.ReachKind{
		format.ReachRows: oracle.ReachRows, format.ReachDuration: oracle.ReachDuration, format.ReachColumn: oracle.ReachColumn,
	}
	for _, p := range s.Places() {
		c := s.Groups[p.Group].Columns[p.Column]
		out = append(out, oracle.Reach{Kind: kinds[c.ReachKind], Amount: c.Reach})
	}
	return out
}

// decimal is a time as a text, null if there is none.
func decimal(v *int64) any {
	if v == nil {
		return nil
	}
	return strconv.FormatInt(*v, 10)
}

func decimals(r oracle.Range) [2]any { return [2]any{decimal(r.From), decimal(r.To)} }

// anchorsOf lists the anchor rows of each ticker.
func anchorsOf(tickers int, windows []oracle.Window) [][]int64 {
	rows := make([][]int64, tickers)
	for t := range rows {
		rows[t] = []int64{}
	}
	for _, w := range windows {
		rows[w.Ticker] = append(rows[w.Ticker], w.Anchor)
	}
	return rows
}

func partsOf(tickers int, p oracle.Parts) map[string]any {
	return map[string]any{"train": anchorsOf(tickers, p.Train), "valid": anchorsOf(tickers, p.Valid), "test": anchorsOf(tickers, p.Test)}
}

// rulesOf describes what a split and a walk have in common.
func rulesOf(s oracle.Splits) map[string]any {
	out := map[string]any{}
	if s.Embargo != 0 {
		out["embargo"] = decimal(&s.Embargo)
	}
	if s.EmbargoTimes != 0 {
		out["embargo_times"] = s.EmbargoTimes
	}
	if r := s.Reach; r != nil {
		out["reach"] = map[string]any{string(r.Kind): decimal(&r.Amount)}
	}
	return out
}

// windowsFingerprint is section 7 of ORDERS.md.
func windowsFingerprint(p *oracle.Panel, q oracle.Query, digest [32]byte, windows []oracle.Window) [32]byte {
	r, err := oracle.Resolve(p, q)
	if err != nil {
		panic(err)
	}
	b := append([]byte("wstore-windows-1\n"), digest[:]...)
	put := func(v ...int64) {
		for _, n := range v {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	length := r.TargetLength
	if len(r.Targets) == 0 {
		length = 0
	}
	put(r.Lookback, length, int64(len(r.Horizons)))
	put(r.Horizons...)
	for _, columns := range [][]int{r.Inputs, r.Targets} {
		put(int64(len(columns)))
		for _, c := range columns {
			put(int64(c))
		}
	}
	for t, rows := range anchorsOf(len(p.Tickers), windows) {
		if len(rows) == 0 {
			continue
		}
		sum := int64(0)
		for _, a := range rows {
			sum += a
		}
		put(int64(t), int64(len(rows)), rows[0], rows[len(rows)-1], sum)
	}
	return sha256.Sum256(b)
}

func orderPrint(windows [32]byte, name string, n, seed, w, k int64) string {
	b := append([]byte("wstore-order-1\n"), windows[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
	b = append(b, name...)
	for _, v := range []int64{n, seed, w, k} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ordersOf lists fingerprints of orders, and compares them with those of the reader.
func ordersOf(t *testing.T, w *reader.Windows, windows [32]byte) (out []any) {
	byTime, err := w.ByTime()
	require.NoError(t, err)
	require.Equal(t, windows, w.Fingerprint())
	for _, groupBytes := range []int64{0, 1000} {
		for _, kind := range []order.Kind{order.KindSequential, order.KindExact, order.KindBlocked} {
			if groupBytes > 0 && kind != order.KindBlocked {
				continue
			}
			o, err := w.Order(kind, -7, 1, groupBytes)
			require.NoError(t, err)
			size, chunks := o.Chunk()
			got, err := w.OrderFingerprint(o)
			require.NoError(t, err)
			mark := orderPrint(windows, kind.String(), o.Len(), o.Seed(), size, chunks)
			require.Equal(t, mark, hex.EncodeToString(got[:]))
			line := map[string]any{"order": kind.String(), "n": texts([]int64{o.Len()})[0], "seed": texts([]int64{o.Seed()})[0], "fingerprint": mark}
			if kind == order.KindBlocked {
				line["group_bytes"] = nil
				if groupBytes > 0 {
					line["group_bytes"] = texts([]int64{groupBytes})[0]
				}
				line["w"], line["k"] = texts([]int64{size})[0], texts([]int64{chunks})[0]
			}
			out = append(out, line)
		}
	}
	n := int64(byTime.Len())
	for _, name := range []string{"sequential", "exact"} {
		o, err := order.Sequential(n)
		if name == "exact" {
			o, err = order.Exact(n, 5, 0)
		}
		require.NoError(t, err)
		got, err := byTime.OrderFingerprint(o)
		require.NoError(t, err)
		mark := orderPrint(windows, "by_time-"+name, n, o.Seed(), 0, 0)
		require.Equal(t, mark, hex.EncodeToString(got[:]))
		out = append(out, map[string]any{"order": "by_time-" + name, "n": texts([]int64{n})[0], "seed": texts([]int64{o.Seed()})[0], "fingerprint": mark})
	}
	return out
}

// timeRanges turns ranges of the oracle into those of the reader.
func timeRanges(unit format.Unit, ranges ...oracle.Range) (out []reader.TimeRange) {
	for _, r := range ranges {
		var tr reader.TimeRange
		if r.From != nil {
			tr.From = unit.Time(*r.From)
		}
		if r.To != nil {
			tr.To = unit.Time(*r.To)
		}
		out = append(out, tr)
	}
	return out
}

// sameParts compares the windows of each split with those of the reader.
func sameParts(t *testing.T, tickers int, want oracle.Parts, got reader.Parts) {
	for _, p := range []struct {
		want []oracle.Window
		got  *reader.Windows
	}{{want.Train, got.Train}, {want.Valid, got.Valid}, {want.Test, got.Test}} {
		var windows []oracle.Window
		for i := range p.got.Len() {
			pos := p.got.Locate(i)
			windows = append(windows, oracle.Window{Ticker: pos.Ticker, Anchor: pos.Anchor})
		}
		require.Equal(t, anchorsOf(tickers, p.want), anchorsOf(tickers, windows))
	}
}

// TestSplitVectors compares splits.json and its files with what brute force makes, and that with the reader.
func TestSplitVectors(t *testing.T) {
	want := map[string][]byte{}
	var files []any
	for _, f := range []splitFile{dailyFile(), boundsFile()} {
		file := f.content.Build()
		name := filepath.Join("splits", f.name+".wst")
		want[name] = file
		s, err := reader.OpenBytes(file, &reader.Options{Verify: true})
		require.NoError(t, err)
		digest, unit, p := s.Meta().Digest, f.content.Schema.Unit, f.content.Panel()
		n, reaches := len(p.Tickers), reachesOf(f.content.Schema)
		zone, err := time.LoadLocation(f.content.Schema.Zone)
		require.NoError(t, err)
		var queries []any
		for _, q := range f.queries {
			w, err := s.Windows(reader.Query{
				Targets: q.query.Targets, Tickers: q.query.Tickers, Lookback: int(q.query.Lookback), Stride: int(q.query.Stride),
				Horizons: ints(q.query.Horizons), TargetLength: int(q.query.TargetLength),
			})
			require.NoError(t, err)
			windows, err := oracle.Windows(p, q.query)
			require.NoError(t, err)
			mark := windowsFingerprint(p, q.query, digest, windows)
			var splits, walks []any
			for _, sp := range q.splits {
				line := rulesOf(sp)
				rules := reader.Split{Embargo: time.Duration(sp.Embargo) * unit.Duration(), EmbargoTimes: sp.EmbargoTimes, Reach: reachOf(unit, sp.Reach)}
				for _, part := range []struct {
					name   string
					ranges []oracle.Range
					to     *[]reader.TimeRange
				}{{"train", sp.Train, &rules.Train}, {"valid", sp.Valid, &rules.Valid}, {"test", sp.Test, &rules.Test}} {
					list := [][2]any{}
					for _, r := range part.ranges {
						list = append(list, decimals(r))
					}
					line[part.name] = list
					*part.to = timeRanges(unit, part.ranges...)
				}
				parts, wantErr := oracle.Split(p, q.query, reaches, sp)
				got, err := w.Split(rules)
				if wantErr != nil {
					require.ErrorIs(t, err, reader.ErrQuery)
					line["error"] = true
				} else {
					require.NoError(t, err)
					sameParts(t, n, parts, got)
					line["anchors"] = partsOf(n, parts)
				}
				splits = append(splits, line)
			}
			for _, wk := range q.walks {
				line, folds := walkLine(t, p, q.query, reaches, wk, windows, unit, zone)
				walks = append(walks, line)
				compareWalk(t, w, n, unit, wk, folds)
			}
			query := answer(p, q.query)["query"]
			queries = append(queries, map[string]any{
				"query": query, "windows": len(windows), "fingerprint": hex.EncodeToString(mark[:]), "orders": ordersOf(t, w, mark),
				"splits": orEmpty(splits), "walks": orEmpty(walks),
			})
		}
		files = append(files, map[string]any{"file": filepath.ToSlash(name), "digest": hex.EncodeToString(digest[:]), "queries": queries})
	}
	want["splits.json"] = object("schema", 1, "files", files)
	if *update {
		require.NoError(t, os.MkdirAll("splits", 0o777))
		for name, b := range want {
			require.NoError(t, os.WriteFile(name, b, 0o666))
		}
	}
	for name, b := range want {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, got), "%s is not what the test makes. Released vectors never change: add others. If it is new, run go test ./spec -update", name)
	}
}

// foldParts is a fold and the windows that survive in it.
type foldParts struct {
	oracle.Fold
	oracle.Parts
}

func walkLine(t *testing.T, p *oracle.Panel, q oracle.Query, reaches []oracle.Reach, wk splitWalk, windows []oracle.Window, unit format.Unit, zone *time.Location) (map[string]any, []foldParts) {
	line := rulesOf(wk.rules)
	line["every"] = wk.every
	for key, text := range map[string]string{"train": wk.train, "valid": wk.valid} {
		if text != "" {
			line[key] = text
		}
	}
	if wk.walk.Start != nil {
		line["start"] = decimal(wk.walk.Start)
	}
	var times []int64
	for _, w := range windows {
		times = append(times, w.Time)
	}
	slices.Sort(times)
	var out []foldParts
	var list []any
	for _, f := range oracle.Folds(slices.Compact(times), wk.walk, unit.Duration(), zone) {
		sp := wk.rules
		sp.Train, sp.Test = []oracle.Range{f.Train}, []oracle.Range{f.Test}
		fold := map[string]any{"train": decimals(f.Train), "valid": nil, "test": decimals(f.Test)}
		if f.Valid != nil {
			sp.Valid = []oracle.Range{*f.Valid}
			fold["valid"] = decimals(*f.Valid)
		}
		parts, err := oracle.Split(p, q, reaches, sp)
		require.NoError(t, err)
		fold["anchors"] = partsOf(len(p.Tickers), parts)
		out, list = append(out, foldParts{f, parts}), append(list, fold)
	}
	require.NotEmpty(t, list)
	line["folds"] = list
	return line, out
}

func compareWalk(t *testing.T, w *reader.Windows, tickers int, unit format.Unit, wk splitWalk, want []foldParts) {
	f := reader.WalkForward{
		Embargo: time.Duration(wk.rules.Embargo) * unit.Duration(), EmbargoTimes: wk.rules.EmbargoTimes, Reach: reachOf(unit, wk.rules.Reach),
	}
	for text, p := range map[*string]*reader.Period{&wk.every: &f.Every, &wk.train: &f.Train, &wk.valid: &f.Valid} {
		if *text != "" {
			var err error
			*p, err = reader.ParsePeriod(*text)
			require.NoError(t, err)
		}
	}
	if wk.walk.Start != nil {
		f.Start = unit.Time(*wk.walk.Start)
	}
	got, err := w.WalkForward(f)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i, fold := range want {
		require.Equal(t, timeRanges(unit, fold.Fold.Train, fold.Fold.Test), []reader.TimeRange{got[i].Train, got[i].Test})
		if fold.Fold.Valid != nil {
			require.Equal(t, timeRanges(unit, *fold.Fold.Valid)[0], got[i].Valid)
		}
		sameParts(t, tickers, fold.Parts, got[i].Parts)
	}
}

func reachOf(unit format.Unit, r *oracle.Reach) *reader.Reach {
	switch {
	case r == nil:
		return nil
	case r.Kind == oracle.ReachRows:
		return &reader.Reach{Rows: r.Amount}
	}
	return &reader.Reach{Duration: time.Duration(r.Amount) * unit.Duration()}
}

func ints(v []int64) (out []int) {
	for _, n := range v {
		out = append(out, int(n))
	}
	return out
}

// orEmpty makes a nil list an empty one.
func orEmpty(v []any) []any { return append([]any{}, v...) }
