package ingest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	codecs "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

// panel writes a table of a date, a ticker and float columns of about size bytes.
func panel(tb testing.TB, columns, size int, compressed bool) Source {
	tb.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("date,ticker")
	for i := range columns {
		fmt.Fprintf(&b, ",f%d", i)
	}
	b.WriteByte('\n')
	for row := 0; b.Len() < size; row++ {
		fmt.Fprintf(&b, "20%02d-%02d-%02d,T%03d", row/336%100, row/28%12+1, row%28+1, row/33600)
		for i := range columns {
			b.WriteByte(',')
			if i%7 == 6 { // a volume
				b.WriteString(strconv.Itoa(r.IntN(1e8)))
			} else {
				b.WriteString(strconv.FormatFloat(r.NormFloat64()*100, 'f', 4+i%3, 64))
			}
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(tb.TempDir(), "panel.csv")
	text := b.Bytes()
	if compressed {
		path += ".gz"
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, err := w.Write(text)
		require.NoError(tb, err)
		require.NoError(tb, w.Close())
		text = z.Bytes()
	}
	require.NoError(tb, os.WriteFile(path, text, 0o600))
	return Source{Path: path, Size: int64(len(text))}
}

func benchmarkRead(b *testing.B, src Source, size int64) {
	s, err := NewSurvey(b.Context(), []Source{src}, Options{})
	require.NoError(b, err)
	p := Plan{Ticker: 1, Time: 0}
	for i := 2; i < len(s.Columns); i++ {
		p.Floats = append(p.Floats, i)
	}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		_, err := s.Read(b.Context(), p, func(*Batch) error { return nil })
		require.NoError(b, err)
	}
}

func BenchmarkRead(b *testing.B) {
	const size = 64 << 20
	for _, columns := range []int{5, 61} {
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			src := panel(b, columns, size, false)
			benchmarkRead(b, src, src.Size)
		})
	}
	b.Run("gzip", func(b *testing.B) { benchmarkRead(b, panel(b, 61, size/4, true), size/4) })
}

// BenchmarkBytes reads the same bytes without looking at them.
func BenchmarkBytes(b *testing.B) {
	src := panel(b, 61, 64<<20, false)
	b.SetBytes(src.Size)
	for b.Loop() {
		f, err := os.Open(src.Path)
		require.NoError(b, err)
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, make([]byte, chunkSize))
		require.NoError(b, err)
		require.NoError(b, f.Close())
	}
}

// BenchmarkLines splits the same bytes into lines and parses nothing, on one core.
func BenchmarkLines(b *testing.B) {
	src := panel(b, 61, 64<<20, false)
	b.SetBytes(src.Size)
	for b.Loop() {
		f, err := os.Open(src.Path)
		require.NoError(b, err)
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, chunkSize)
		for lines.Scan() {
		}
		require.NoError(b, lines.Err())
		require.NoError(b, f.Close())
	}
}

// BenchmarkSurvey surveys many small files.
func BenchmarkSurvey(b *testing.B) {
	dir := b.TempDir()
	text, err := os.ReadFile(panel(b, 5, 60_000, false).Path)
	require.NoError(b, err)
	for i := range 500 {
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("T%03d.csv", i)), text, 0o600))
	}
	srcs, _, err := Sources([]string{dir})
	require.NoError(b, err)
	for b.Loop() {
		_, err := NewSurvey(context.Background(), srcs, Options{})
		require.NoError(b, err)
	}
}

// BenchmarkColumnar reads the same numbers from Parquet and Arrow; the bytes are
// those of the float64 cells.
func BenchmarkColumnar(b *testing.B) {
	const rows, columns = 100_000, 61
	r := rand.New(rand.NewPCG(1, 2))
	table := []testColumn{times(rows), {name: "ticker", typ: arrow.BinaryTypes.String, coded: true}}
	for i := range rows {
		table[1].cells = append(table[1].cells, fmt.Sprintf("T%03d", i%500))
	}
	for k := range columns {
		c := testColumn{name: fmt.Sprintf("f%d", k), typ: arrow.PrimitiveTypes.Float64}
		for range rows {
			c.cells = append(c.cells, math.Round(r.NormFloat64()*1e6)/1e6)
		}
		table = append(table, c)
	}
	for _, file := range []struct {
		name string
		data []byte
	}{
		{"parquet", writeParquet(b, table, rows, parquet.WithCompression(codecs.Codecs.Uncompressed))},
		{"parquet-snappy", writeParquet(b, table, rows, parquet.WithCompression(codecs.Codecs.Snappy))},
		{"parquet-zstd", writeParquet(b, table, rows, parquet.WithCompression(codecs.Codecs.Zstd))},
		{"arrow", writeArrow(b, table, false, rows)},
		{"arrow-lz4", writeArrow(b, table, true, rows/8, ipc.WithLZ4())},
	} {
		b.Run(file.name, func(b *testing.B) { benchmarkRead(b, columnarSource(b, file.name, file.data), 8*rows*columns) })
	}
}
