package ingest

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	parquetfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	parquetschema "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/stretchr/testify/require"
)

func surveyOf(t *testing.T, name string, text []byte, o Options) *Survey {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o666))
	srcs, _, err := Sources([]string{path})
	require.NoError(t, err)
	s, err := NewSurvey(context.Background(), srcs, o)
	require.NoError(t, err)
	return s
}

// Rows without a time, and numbers in float64.
func TestRowsWithoutTime(t *testing.T) {
	s := surveyOf(t, "in.csv", []byte("sym,cap,share\nA,\"16,777,217\",0.1\nB,na,1e-300\n\"C\",\"1,234,567,891\",\n"), Options{})
	var got []float64
	var tickers []string
	stats, err := s.Read(context.Background(), Plan{Ticker: 0, Time: -1, Doubles: []int{2, 1}}, func(b *Batch) error {
		require.Empty(t, b.Times)
		got = append(got, b.Doubles...)
		for _, code := range b.Tickers {
			tickers = append(tickers, b.Dict[code])
		}
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 3, stats.Rows)
	require.Equal(t, []string{"A", "B", "C"}, tickers)
	for i, want := range []float64{0.1, 16777217, 1e-300, math.NaN(), math.NaN(), 1234567891} {
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(got[i]), i)
		} else {
			require.Equal(t, math.Float64bits(want), math.Float64bits(got[i]), i)
		}
	}
	_, err = surveyOf(t, "in.csv", []byte("sym,x\nA,1\nB,2\nC,3\nD,oops\n"), Options{}).Read(context.Background(), Plan{Ticker: 0, Time: -1, Doubles: []int{1}}, nil)
	require.ErrorContains(t, err, `in.csv:5: column "x": "oops" is not a number`)

	// A row that is skipped takes its numbers along.
	s = surveyOf(t, "in.csv", []byte("sym,x,y\nA,1,1\nB,2,2\nC,3,oops\nD,4,4\n"), Options{SkipBad: true})
	got = nil
	_, err = s.Read(context.Background(), Plan{Ticker: 0, Time: -1, Doubles: []int{1, 2}}, func(b *Batch) error {
		got = append(got, b.Doubles...)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1, 2, 2, 4, 4}, got)
}

// A ticker of several columns has its parts in the order of the plan, whatever that of the columns, and no two of
// different parts are the same.
func TestTickerOfSeveralColumns(t *testing.T) {
	read := func(o Options, name string, text []byte, columns ...string) (got []string, skipped int64, err error) {
		s := surveyOf(t, name, text, o)
		p := Plan{Ticker: s.Index(columns[0]), Time: -1, Floats: []int{s.Index("x")}}
		for _, c := range columns[1:] {
			p.Qualifiers = append(p.Qualifiers, s.Index(c))
		}
		stats, err := s.Read(t.Context(), p, func(b *Batch) error {
			for _, code := range b.Tickers {
				got = append(got, b.Dict[code])
			}
			return nil
		})
		if err == nil {
			skipped = stats.Skipped
		}
		return got, skipped, err
	}
	text := []byte("venue,x,sym,no\nNA,1,BTC/USDT,007\n\"b,c\",2,A,1\n,3,A,2\nNA,4,BTC/USDT,007\nd/e,5,A,1\nNA,6,,1\nNA,7,A ,1\n")
	_, _, err := read(Options{}, "in.csv", text, "sym", "venue")
	require.ErrorContains(t, err, `in.csv:4: column "venue": is a part of a ticker that is empty`)
	got, skipped, err := read(Options{SkipBad: true}, "in.csv", text, "sym", "venue", "no")
	require.NoError(t, err)
	require.Equal(t, []string{"BTC/USDT/NA/007", "A/b,c/1", "BTC/USDT/NA/007", "A /NA/1"}, got)
	require.EqualValues(t, 3, skipped)
	_, _, err = read(Options{}, "in.csv", []byte("sym,pair,x\nA,B,1\nA,B/C,2\n"), "sym", "pair")
	require.ErrorContains(t, err, `in.csv:3: column "pair": "B/C" holds a slash, which joins the columns of a ticker; name this column first in --ticker`)
	_, _, err = read(Options{}, "in.csv", []byte("sym,pair,x\n"+strings.Repeat("A", 200)+","+strings.Repeat("B", 55)+",1\n"), "sym", "pair")
	require.ErrorContains(t, err, "is a ticker that has 256 bytes, more than 255")

	columns := []testColumn{{name: "sym", typ: arrow.BinaryTypes.String, coded: true, cells: []any{"A", "A", "B", "B"}}, {name: "no", typ: arrow.PrimitiveTypes.Int64, cells: []any{int64(1), int64(2), int64(1), int64(1)}}, numbers("x", 1.0, 2.0, 3.0, 4.0)}
	for name, table := range map[string][]byte{"in.arrow": writeArrow(t, columns, false, 3), "in.parquet": writeParquet(t, columns, 3)} {
		got, _, err = read(Options{}, name, table, "sym", "no")
		require.NoError(t, err)
		require.Equal(t, []string{"A/1", "A/2", "B/1", "B/1"}, got, name)
	}
}

func TestTimeInTheName(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	s := surveyOf(t, "closes_20240705.csv", []byte("sym,x\nA,1\nB,2\n"), Options{Location: zone})
	var got []int64
	_, err = s.Read(context.Background(), Plan{Ticker: 0, Time: -1, NameDate: true, Floats: []int{1}}, func(b *Batch) error {
		got = append(got, b.Times...)
		return nil
	})
	require.NoError(t, err)
	at := time.Date(2024, 7, 5, 4, 0, 0, 0, time.UTC).UnixNano()
	require.Equal(t, []int64{at, at}, got)
	for name, says := range map[string]string{"x.csv": "no date", "2024-01-02_2024-01-03.csv": "two dates"} {
		_, err := surveyOf(t, name, []byte("sym,x\nA,1\n"), Options{}).Read(context.Background(), Plan{Ticker: 0, Time: -1, NameDate: true}, nil)
		var unusable *UnusableError
		require.ErrorAs(t, err, &unusable)
		require.ErrorContains(t, err, says)
	}
	for _, p := range []Plan{{Time: -2}, {Time: 0, NameDate: true}, {Time: -1, Clock: []int{1}}, {Time: -1, Doubles: []int{2}}, {Ticker: -1, Qualifiers: []int{0}}, {Qualifiers: []int{2}}} {
		_, err := s.Read(context.Background(), p, nil)
		require.ErrorContains(t, err, "ingest: plan")
	}
}

// Metadata of the schema are found in each kind of table, and nowhere else.
func TestMetadata(t *testing.T) {
	meta := arrow.NewMetadata([]string{"other", "key"}, []string{"x", `{"a":"ü"}`})
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float32}}, &meta)
	b := array.NewFloat32Builder(memory.DefaultAllocator)
	b.AppendValues([]float32{1, 2}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{b.NewArray()}, 2)
	var stream, table bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(schema))
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "x.arrow")
	f, err := os.Create(path)
	require.NoError(t, err)
	fw, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	require.NoError(t, err)
	require.NoError(t, fw.Write(rec))
	require.NoError(t, fw.Close())
	require.NoError(t, f.Close())
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	root, err := parquetschema.NewGroupNode("schema", parquet.Repetitions.Required, parquetschema.FieldList{parquetschema.NewFloat32Node("x", parquet.Repetitions.Required, -1)}, -1)
	require.NoError(t, err)
	pairs := metadata.NewKeyValueMetadata()
	require.NoError(t, pairs.Append("other", "x"))
	require.NoError(t, pairs.Append("key", `{"a":"ü"}`))
	p := parquetfile.NewParquetWriter(&table, root, parquetfile.WithWriteMetadata(pairs))
	group, err := p.AppendRowGroupChecked()
	require.NoError(t, err)
	column, err := group.NextColumn()
	require.NoError(t, err)
	_, err = column.(*parquetfile.Float32ColumnChunkWriter).WriteBatch([]float32{1, 2}, nil, nil)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	for name, text := range map[string][]byte{"a.arrows": stream.Bytes(), "a.arrow": file, "a.parquet": table.Bytes()} {
		require.Equal(t, []string{`{"a":"ü"}`}, surveyOf(t, name, text, Options{MetadataKey: "key"}).Metadata, name)
		require.Equal(t, []string{""}, surveyOf(t, name, text, Options{MetadataKey: "none"}).Metadata, name)
		require.Equal(t, []string{""}, surveyOf(t, name, text, Options{}).Metadata, name)
	}
	require.Equal(t, []string{""}, surveyOf(t, "a.csv", []byte("key\n1\n"), Options{MetadataKey: "key"}).Metadata)
}
