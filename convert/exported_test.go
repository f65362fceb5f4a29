package convert_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/format"
)

// arrowTable writes a table of ticker, time, x and end, of two rows, with metadata.
func arrowTable(t *testing.T, path, meta string) {
	t.Helper()
	pairs := arrow.NewMetadata([]string{"wstore"}, []string{meta})
	at := &arrow.TimestampType{Unit: arrow.Second}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "ticker", Type: arrow.BinaryTypes.String}, {Name: "time", Type: at}, {Name: "x", Type: arrow.PrimitiveTypes.Float32}, {Name: "end", Type: at},
	}, &pairs)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"A", "A"}, nil)
	b.Field(1).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{86400, 172800}, nil)
	b.Field(2).(*array.Float32Builder).AppendValues([]float32{1, 2}, nil)
	b.Field(3).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{86401, 172801}, nil)
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	require.NoError(t, w.Write(b.NewRecordBatch()))
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o666))
}

const exportedMeta = `{"schema":1,"unit":"ms","zone":"Asia/Tokyo","ticker":"ticker","time":"time","groups":[` +
	`{"name":"labels","columns":[{"name":"end","role":"label_end"}]},{"name":"g","columns":[{"name":"x","role":"value","reach_column":"end"}]}],` +
	`"breaks":[{"name":"far","kind":"gap","max_gap":1000}],"empty_tickers":["E"],"attributes":[` +
	`{"name":"beta","kind":"number","values":{"A":1.5}},{"name":"sector","kind":"text","values":{"A":"Tech"}},{"name":"none","kind":"text","values":{}}]}`

func TestExportedTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.arrows")
	arrowTable(t, path, exportedMeta)
	r, s := run(t, convert.Options{Inputs: []string{path}, Align: 64})
	require.True(t, r.AsExported)
	require.Equal(t, []string{"labels*=end", "g=x"}, groups(s))
	schema := s.Meta().Schema
	require.Equal(t, format.Millisecond, schema.Unit)
	require.Equal(t, "Asia/Tokyo", schema.Zone)
	require.Equal(t, []format.BreakSet{{Name: "far", Kind: format.BreakGap, MaxGap: 1000}}, schema.Breaks)
	require.Equal(t, format.Column{Name: "x", ReachKind: format.ReachColumn, Reach: 0}, column(t, s, "x"))
	require.Equal(t, []string{"A", "E"}, s.Tickers())
	require.Equal(t, []string{"1.5", ""}, attribute(t, s, "beta"))
	require.Equal(t, []string{"Tech", ""}, attribute(t, s, "sector"))
	require.Equal(t, []string{"", ""}, attribute(t, s, "none"))
	require.Empty(t, r.Hints)
	require.Empty(t, r.SkippedColumns)

	// New attributes win over old ones.
	static := write(t, t.TempDir(), "s.csv", "ticker,beta\nE,2.5\n")
	_, s = run(t, convert.Options{Inputs: []string{path}, Static: static})
	require.Equal(t, []string{"", "2.5"}, attribute(t, s, "beta"))
	require.Equal(t, []string{"Tech", ""}, attribute(t, s, "sector"))

	// Whoever says what is stored is not contradicted, and need not know of it.
	r, s = run(t, convert.Options{Inputs: []string{path}, Ticker: "ticker", Align: 64})
	require.False(t, r.AsExported)
	require.Equal(t, []string{"features=x"}, groups(s))
	require.Empty(t, r.Hints)
}

func TestTablesThatAreNotFollowed(t *testing.T) {
	change := func(from, to string) string {
		require.Contains(t, exportedMeta, from)
		return strings.Replace(exportedMeta, from, to, 1)
	}
	for says, meta := range map[string]string{
		"are not read":                     "{",
		"of schema 2":                      change(`"schema":1`, `"schema":2`),
		`the unit "h"`:                     change(`"unit":"ms"`, `"unit":"h"`),
		`no column "y" of its own`:         change(`{"name":"x"`, `{"name":"y"`),
		`they don't know the column "end"`: change(`{"name":"labels","columns":[{"name":"end","role":"label_end"}]},`, ``) + "",
		`no column of label ends`:          change(`"reach_column":"end"`, `"reach_column":"x"`),
		`the gap of "far" is too long`:     change(`"max_gap":1000`, `"max_gap":9223372036854775807`),
		`has a gap of -1000000`:            change(`"max_gap":1000`, `"max_gap":-1`),
		`no column "x" of its own`:         change(`"name":"end","role":"label_end"`, `"name":"end","role":"label_end"},{"name":"x","role":"label_end"`),
		`the reach of column "x" is too`:   change(`"reach_column":"end"`, `"reach_duration":9223372036854775807`),
	} {
		if strings.Contains(says, "don't know") {
			meta = strings.Replace(meta, `,"reach_column":"end"`, "", 1)
		}
		path := filepath.Join(t.TempDir(), "t.arrows")
		arrowTable(t, path, meta)
		r, s := run(t, convert.Options{Inputs: []string{path}, Align: 64})
		require.False(t, r.AsExported, says)
		require.Equal(t, []string{"features=x"}, groups(s), says)
		require.Contains(t, r.Hints[0], "is not followed: ", says)
		require.Contains(t, r.Hints[0], says)
	}
	// Several that don't agree, one that says nothing, and what can only be found out later.
	dir := t.TempDir()
	arrowTable(t, filepath.Join(dir, "a.arrows"), exportedMeta)
	arrowTable(t, filepath.Join(dir, "b.arrows"), change(`"zone":"Asia/Tokyo"`, `"zone":""`))
	r, _ := run(t, convert.Options{Inputs: []string{dir}})
	require.Contains(t, r.Hints[0], "b.arrows differ from those of ")
	arrowTable(t, filepath.Join(dir, "b.arrows"), "")
	r, _ = run(t, convert.Options{Inputs: []string{dir}})
	require.Contains(t, r.Hints[0], "b.arrows has none, unlike others")
	path := filepath.Join(t.TempDir(), "t.arrows")
	arrowTable(t, path, change(`{"A":1.5}`, `{"A":"x"}`))
	require.ErrorContains(t, fails(t, "", convert.Options{Inputs: []string{path}}), `no number for the attribute "beta" of ticker "A"`)
}
