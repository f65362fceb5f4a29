package spec

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/internal/craft"
	"github.com/wstore/wstore/internal/oracle"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

var update = flag.Bool("update", false, "write the vectors and the example in SPEC.md anew")

const folder = "vectors"

// entry is one vector's line in the manifest.
type entry struct {
	Name    string  `json:"name"`
	File    string  `json:"file"`
	Valid   bool    `json:"valid"`
	Stage   *string `json:"stage"`
	Code    *string `json:"code"`
	Decoded *string `json:"decoded"`
	Note    string  `json:"note"`
}

// TestVectors compares the files in vectors/ with what the tests make, byte by byte, or writes them.
func TestVectors(t *testing.T) {
	want := map[string][]byte{}
	put := func(name string, b []byte) {
		require.NotContains(t, want, name)
		want[name] = b
	}
	var lines []any
	for _, v := range valids() {
		f := v.build()
		decoded := v.name + ".json"
		put(v.name+".wst", f)
		put(decoded, decode(t, &v, f))
		lines = append(lines, entry{Name: v.name, File: v.name + ".wst", Valid: true, Decoded: &decoded, Note: v.note})
	}
	for _, v := range invalids() {
		put(v.name+".wst", v.file)
		stage, code := "open", string(v.code)
		if v.verify {
			stage = "verify"
		}
		lines = append(lines, entry{Name: v.name, File: v.name + ".wst", Stage: &stage, Code: &code, Note: v.note})
	}
	put("manifest.json", object("schema", 1, "vectors", lines))

	if *update {
		for name, b := range want {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), b, 0o666))
		}
	}
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, f := range files {
		if f.Name() == "README.md" {
			continue
		}
		if _, ok := want[f.Name()]; !ok && *update {
			require.NoError(t, os.Remove(filepath.Join(folder, f.Name())))
			continue
		}
		require.Contains(t, want, f.Name(), "a file that no vector has; remove it, or add it to the test")
	}
	for name, b := range want {
		got, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, got), "%s is not what the test makes. Released vectors never change: add others. If it is new, run go test ./spec -update", name)
	}
}

func (v *valid) build() []byte {
	b := v.content.Build()
	if v.edit != nil {
		f := craft.Split(b)
		v.edit(f)
		b = f.Join()
	}
	return b
}

// object returns a JSON object of keys and values in this order. Each element of a []any stands on a line of its own.
func object(keysAndValues ...any) []byte {
	var b bytes.Buffer
	value := func(v any) {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			panic(err)
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteString("{")
	for i := 0; i < len(keysAndValues); i += 2 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n")
		value(keysAndValues[i])
		b.WriteString(": ")
		list, ok := keysAndValues[i+1].([]any)
		if !ok {
			value(keysAndValues[i+1])
			continue
		}
		b.WriteString("[")
		for k, v := range list {
			if k > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n ")
			value(v)
		}
		b.WriteString("]")
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

func texts(v []int64) []string {
	s := make([]string, len(v))
	for i, n := range v {
		s[i] = strconv.FormatInt(n, 10)
	}
	return s
}

// hexBits returns eight digits for each cell.
func hexBits(bits []uint32) string {
	var s strings.Builder
	for _, v := range bits {
		fmt.Fprintf(&s, "%08x", v)
	}
	return s.String()
}

// decode returns the decoded JSON of a vector. It is made of the content, by the oracle and by craft; of the file only
// the digest is taken.
func decode(t *testing.T, v *valid, file []byte) []byte {
	s, c := v.content.Schema, v.content
	if v.edit != nil {
		c = &craft.Content{Schema: s, Tickers: c.Tickers, AlignLog2: c.AlignLog2, Categories: c.Categories, Attributes: c.Attributes}
	}
	split := craft.Split(file)
	u := func(v uint64) string { return strconv.FormatUint(v, 10) }

	groups := []any{}
	var cells, breaks, missing, tickers, calendars, queries []any
	numbers, calendar, first := c.Calendars()
	for _, times := range numbers {
		calendars = append(calendars, texts(times))
	}
	for i, tk := range c.Tickers {
		tickers = append(tickers, map[string]any{"name": tk.Name, "calendar": calendar[i], "first": first[i], "rows": len(tk.Times)})
	}
	base := 0
	for _, g := range s.Groups {
		columns := []map[string]any{}
		for _, col := range g.Columns {
			columns = append(columns, map[string]any{
				"name": col.Name, "role": col.Role.String(), "reach_kind": col.ReachKind.String(), "reach": texts([]int64{col.Reach})[0],
			})
		}
		groups = append(groups, map[string]any{"name": g.Name, "dtype": g.DType.String(), "columns": columns})
		blocks := []any{}
		for i := range c.Tickers {
			tk := &c.Tickers[i]
			if g.DType == format.Int64 {
				blocks = append(blocks, texts(tk.Ends[base]))
				continue
			}
			var bits []uint32
			for r := range tk.Times {
				for k := range g.Columns {
					bits = append(bits, tk.Bits(base+k, int64(r)))
				}
			}
			blocks = append(blocks, hexBits(bits))
		}
		cells = append(cells, blocks)
		base += len(g.Columns)
	}
	sets := []any{}
	for i, b := range s.Breaks {
		sets = append(sets, map[string]any{"name": b.Name, "kind": b.Kind.String(), "max_gap": texts([]int64{b.MaxGap})[0], "source": b.Source})
		rows := [][]int64{}
		for _, tk := range c.Tickers {
			rows = append(rows, append([]int64{}, tk.Breaks[i]...))
		}
		breaks = append(breaks, rows)
	}
	for column := range s.Columns() {
		runs := [][][2]int64{}
		for i := range c.Tickers {
			runs = append(runs, append([][2]int64{}, craft.Runs(&c.Tickers[i], column)...))
		}
		missing = append(missing, runs)
	}
	panel := c.Panel()
	require.NoError(t, panel.Check(), v.name)
	for _, q := range v.queries {
		queries = append(queries, answer(panel, q))
	}
	var provenance any
	if i := slices.IndexFunc(split.Sections, func(s craft.Section) bool { return s.Tag == "PROV" }); i >= 0 {
		provenance = hex.EncodeToString(split.Sections[i].Bytes)
	}
	sections := []any{}
	for _, sec := range split.Sections {
		sections = append(sections, map[string]any{"tag": sec.Tag, "flags": sec.Flags, "key": u(sec.Key), "bytes": len(sec.Bytes)})
	}
	list := func(v []any) []any { return append([]any{}, v...) }
	return object(slices.Concat([]any{
		"schema", 1,
		"version", split.Slot.Version,
		"align", 1 << split.Slot.AlignLog2,
		"compat", u(split.Slot.Compat), "ro_compat", u(split.Slot.ROCompat), "incompat", u(split.Slot.Incompat),
		"sections", sections,
		"digest", hex.EncodeToString(split.Section("DGST").Bytes),
		"provenance", provenance,
		"time_unit", s.Unit.String(),
		"zone", s.Zone,
		"groups", groups,
		"break_sets", sets,
		"calendars", list(calendars),
		"tickers", list(tickers),
		"cells", list(cells),
		"missing", list(missing),
		"breaks", list(breaks),
		"queries", list(queries),
	}, decodeLabels(c))...)
}

// decodeLabels returns the keys of categories and attributes, of which each is left out if there are none.
func decodeLabels(c *craft.Content) (keys []any) {
	var categories, attributes []any
	for i, col := range c.Panel().Columns() {
		if col.Categories != nil {
			categories = append(categories, map[string]any{"column": i, "texts": col.Categories})
		}
	}
	for _, a := range c.Attributes {
		kind, values := format.Text, []any{}
		if a.Texts == nil {
			kind = format.Number
		}
		for _, v := range a.Texts {
			if v == "" {
				values = append(values, nil)
			} else {
				values = append(values, v)
			}
		}
		for _, v := range a.Numbers {
			bits := math.Float64bits(v)
			if v-v != 0 {
				bits = format.NoNumber
			}
			values = append(values, fmt.Sprintf("%016x", bits))
		}
		attributes = append(attributes, map[string]any{"name": a.Name, "kind": kind.String(), "values": values})
	}
	if categories != nil {
		keys = append(keys, "categories", categories)
	}
	if attributes != nil {
		keys = append(keys, "attributes", attributes)
	}
	return keys
}

// answer asks the oracle. Cells are those of the first, the middle and the last window.
func answer(p *oracle.Panel, q oracle.Query) map[string]any {
	query := map[string]any{"lookback": q.Lookback}
	names := func(key string, v []string) {
		if v != nil {
			query[key] = v
		}
	}
	names("inputs", q.Inputs)
	names("targets", q.Targets)
	names("optional", q.Optional)
	names("breaks", q.Breaks)
	names("tickers", q.Tickers)
	names("where", q.Where)
	if q.Horizons != nil {
		query["horizons"] = q.Horizons
	}
	if q.TargetLength != 0 {
		query["target_length"] = q.TargetLength
	}
	if q.Stride != 0 {
		query["stride"] = q.Stride
	}
	if q.At != nil {
		query["at"] = texts(q.At)
	}
	if q.From != nil {
		query["from"] = texts([]int64{*q.From})[0]
	}
	if q.To != nil {
		query["to"] = texts([]int64{*q.To})[0]
	}
	windows, err := oracle.Windows(p, q)
	if err != nil {
		return map[string]any{"query": query, "error": true}
	}
	list, cells := [][4]any{}, []any{}
	for i, w := range windows {
		list = append(list, [4]any{w.Ticker, w.Anchor - q.Lookback + 1, w.Anchor, strconv.FormatInt(w.Time, 10)})
		if i == 0 || i == len(windows)/2 || i == len(windows)-1 {
			cells = append(cells, map[string]any{"window": i, "x": hexBits(w.Inputs), "y": hexBits(w.Targets)})
		}
	}
	return map[string]any{"query": query, "windows": list, "cells": cells}
}

// TestWriterAgrees writes the valid vectors with package writer.
func TestWriterAgrees(t *testing.T) {
	for _, v := range valids() {
		t.Run(v.name, func(t *testing.T) {
			want := v.content.Build()
			path := filepath.Join(t.TempDir(), "a.wst")
			o := &writer.Options{Align: int(craft.Split(want).Slot.Align()), Categories: v.content.Categories}
			for name, a := range v.content.ByTicker() {
				o.Attributes = append(o.Attributes, writer.Attribute{Name: name, Texts: a.Texts, Numbers: a.Numbers})
			}
			w, err := writer.Create(path, v.content.Schema, o)
			require.NoError(t, err)
			for _, tk := range slices.Backward(v.content.Tickers) {
				writeTicker(t, w, v.content.Schema, &tk)
			}
			require.NoError(t, w.Finish(context.Background(), v.content.Provenance))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
		})
	}
}

// writeTicker gives a ticker to a writer row by row.
func writeTicker(t *testing.T, w *writer.Writer, s *format.Schema, tk *oracle.Ticker) {
	require.NoError(t, w.Begin(tk.Name))
	for r, v := range tk.Times {
		var cells []writer.Cells
		base := 0
		for _, g := range s.Groups {
			var row writer.Cells
			for k := range g.Columns {
				if g.DType == format.Int64 {
					row.I64 = append(row.I64, tk.Ends[base+k][r])
				} else {
					row.F32 = append(row.F32, tk.Cells[base+k][r])
				}
			}
			cells = append(cells, row)
			base += len(g.Columns)
		}
		for set, rows := range tk.Breaks {
			if s.Breaks[set].Kind != format.BreakGap && slices.Contains(rows, int64(r)) {
				require.NoError(t, w.Break(set))
			}
		}
		require.NoError(t, w.Append([]int64{v}, cells))
	}
}

// TestReaderAgrees opens the valid vectors, verifies them and compares every query with the oracle.
func TestReaderAgrees(t *testing.T) {
	for _, v := range valids() {
		t.Run(v.name, func(t *testing.T) {
			file := v.build()
			require.LessOrEqual(t, len(file), 1<<18)
			for _, access := range []reader.Access{reader.Load, reader.Read} {
				s, err := reader.OpenBytes(file, &reader.Options{Access: access, Verify: true})
				require.NoError(t, err)
				if v.edit == nil {
					require.Equal(t, v.content.Schema, s.Meta().Schema)
				}
				calendars, calendar, first := v.content.Calendars()
				require.Len(t, s.Meta().Calendars.Entries, len(calendars))
				for i, tk := range v.content.Tickers {
					require.Equal(t, tk.Name, s.Tickers()[i])
					require.Equal(t, int64(calendar[i]), s.Meta().Tickers.Calendar[i])
					require.Equal(t, int64(first[i]), s.Meta().Tickers.First[i])
				}
				sameRows(t, s, v.content)
				sameLabels(t, s, v.content)
				for _, q := range v.queries {
					agrees(t, s, v.content.Panel(), q)
				}
				require.NoError(t, s.Close())
			}
		})
	}
}

// sameLabels compares categories and attributes.
func sameLabels(t *testing.T, s *reader.Store, c *craft.Content) {
	for _, col := range c.Panel().Columns() {
		got, err := s.Categories(col.Name)
		require.NoError(t, err)
		require.Equal(t, col.Categories, got)
	}
	require.Len(t, s.Attributes(), len(c.Attributes))
	for _, want := range c.Attributes {
		a, err := s.Attribute(want.Name)
		require.NoError(t, err)
		for i := range c.Tickers {
			text, ok := a.Text(i)
			require.Equal(t, want.Texts != nil && want.Texts[i] != "", ok)
			if want.Texts != nil {
				require.Equal(t, want.Texts[i], text)
				continue
			}
			if v := want.Numbers[i]; v-v == 0 {
				require.Equal(t, math.Float64bits(v), math.Float64bits(a.Number(i)))
			} else {
				require.True(t, math.IsNaN(a.Number(i)))
			}
		}
	}
}

// sameRows compares all times, cells and label ends.
func sameRows(t *testing.T, s *reader.Store, c *craft.Content) {
	v, err := s.View()
	require.NoError(t, err)
	defer v.Release()
	for i, tk := range c.Tickers {
		times, err := v.Times(i)
		require.NoError(t, err)
		require.True(t, slices.Equal(tk.Times, times))
		column := 0
		for g, group := range c.Schema.Groups {
			if group.DType == format.Int64 {
				ends, err := v.LabelEnds(i, g)
				require.NoError(t, err)
				require.True(t, slices.Equal(tk.Ends[column], ends))
				column++
				continue
			}
			cells, err := v.Series(i, g)
			require.NoError(t, err)
			width := len(group.Columns)
			require.Len(t, cells, len(tk.Times)*width)
			for k, b := range bitsOf(cells) {
				require.Equal(t, tk.Bits(column+k%width, int64(k/width)), b)
			}
			column += width
		}
	}
}

// agrees compares the windows of a query and all their cells.
func agrees(t *testing.T, s *reader.Store, p *oracle.Panel, q oracle.Query) {
	want, wantErr := oracle.Windows(p, q)
	unit := s.Meta().Schema.Unit
	rq := reader.Query{
		Inputs: q.Inputs, Targets: q.Targets, Optional: q.Optional, Lookback: int(q.Lookback), TargetLength: int(q.TargetLength),
		Stride: int(q.Stride), Breaks: q.Breaks, Tickers: q.Tickers, Where: q.Where,
	}
	if q.Horizons != nil {
		rq.Horizons = []int{}
	}
	for _, h := range q.Horizons {
		rq.Horizons = append(rq.Horizons, int(h))
	}
	if q.At != nil {
		rq.At = []time.Time{}
	}
	for _, v := range q.At {
		rq.At = append(rq.At, unit.Time(v))
	}
	if q.From != nil {
		rq.From = unit.Time(*q.From)
	}
	if q.To != nil {
		rq.To = unit.Time(*q.To)
	}
	w, err := s.Windows(rq)
	if wantErr != nil {
		require.Error(t, err, "%+v: the oracle refuses it: %v", q, wantErr)
		require.True(t, errors.Is(err, reader.ErrQuery) || errors.Is(err, reader.ErrNotFound), "%v", err)
		return
	}
	require.NoError(t, err, "%+v", q)
	require.Equal(t, len(want), w.Len(), "%+v", q)
	if len(want) == 0 {
		return
	}
	ids := make([]int, len(want))
	x, y := make([]float32, len(ids)*len(want[0].Inputs)), make([]float32, len(ids)*len(want[0].Targets))
	for i := range ids {
		ids[i] = i
	}
	require.NoError(t, w.Gather(ids, x, y))
	for i, o := range want {
		require.Equal(t, reader.Pos{Ticker: o.Ticker, First: o.Anchor - q.Lookback + 1, Anchor: o.Anchor}, w.Locate(i), "%+v", q)
		require.Equal(t, o.Inputs, bitsOf(x[:len(o.Inputs)]), "%+v", q)
		require.Equal(t, len(o.Targets), len(bitsOf(y[:len(o.Targets)])))
		for k, b := range bitsOf(y[:len(o.Targets)]) {
			require.Equal(t, o.Targets[k], b)
		}
		x, y = x[len(o.Inputs):], y[len(o.Targets):]
	}
}

func bitsOf(v []float32) []uint32 {
	bits := make([]uint32, len(v))
	for i := range v {
		bits[i] = math.Float32bits(v[i])
	}
	return bits
}

// TestReaderRefuses opens and verifies the invalid vectors.
func TestReaderRefuses(t *testing.T) {
	seen := map[format.Code]bool{}
	for _, v := range invalids() {
		t.Run(v.name, func(t *testing.T) {
			seen[v.code] = true
			for _, access := range []reader.Access{reader.Load, reader.Read} {
				s, err := reader.OpenBytes(v.file, &reader.Options{Access: access})
				if v.verify {
					require.NoError(t, err)
					err = s.Verify(context.Background())
				}
				require.ErrorIs(t, err, v.code)
				if v.code == format.Unsupported {
					require.ErrorIs(t, err, format.ErrUnsupported)
				} else {
					require.ErrorIs(t, err, format.ErrCorrupt)
				}
			}
		})
	}
	for _, c := range format.Codes() {
		require.True(t, seen[c], "no vector has code %s", string(c))
	}
}

// TestIndexOfBase holds the numbers that the invalid indexes are made of to those of the base file.
func TestIndexOfBase(t *testing.T) {
	require.Equal(t, baseIndex, craft.Split(base().Build()).Section("WIDX").Bytes)
}
