package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	codecs "github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"
)

// What other programs write is read as they mean it; testdata/make.py has the table.
func TestColumnarOfOthers(t *testing.T) {
	names, err := filepath.Glob("testdata/p*.*")
	require.NoError(t, err)
	require.Len(t, names, 15)
	day := func(d int) int64 { return time.Date(2020, 3, d, 9, 30, 0, 5e8, time.UTC).UnixNano() }
	float := func(x float64) uint32 { return math.Float32bits(float32(x)) }
	tickers := []string{"AAPL", "AAPL", "a ticker of more than twelve bytes", "NA", "ÄÖ", "AAPL", "NA"}
	days := []int{2, 3, 2, 4, 5, 6, 7}
	columns := map[string][]uint32{
		"x":       {float(1.5), nan, nan, float(0.1), 0, float(-16777216), nan},
		"n":       {float(1), float(-2), float(1 << 53), nan, float(5), float(16777216), 0},
		"u":       {float(1 << 64), float(1), float(2), float(3), nan, float(5), float(6)},
		"f":       {float(0.1), nan, float(2.5), 1 << 31, 1, float(3.4e38), float(7)},
		"b":       {float(1), 0, nan, float(1), float(1), 0, float(1)},
		"d":       {float(1.1), float(-2.25), nan, float(16777216), 0, float(0.01), float(99.99)},
		"nothing": {nan, nan, nan, nan, nan, nan, nan},
	}
	notes := []string{"", "", "a text of more than twelve bytes", "1", "x", "x", ""}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			s, err := NewSurvey(t.Context(), []Source{{Path: name}}, Options{})
			require.NoError(t, err)
			p := Plan{Ticker: s.Index("ticker"), Time: s.Index("time")}
			if strings.Contains(name, "pandas") {
				p.Time, err = s.TimeColumn()
				require.NoError(t, err)
				require.Equal(t, map[bool]string{true: "When", false: "index"}[strings.Contains(name, "named")], s.Columns[p.Time].Name)
				p.Floats = []int{s.Index("x")}
				got, _, err := rows(t.Context(), s, p)
				require.NoError(t, err)
				require.Len(t, got, 7)
				for i, r := range got {
					require.Equal(t, day(days[i]), r.Time)
					require.Equal(t, columns["x"][i], r.Cells[0])
				}
				return
			}
			require.Equal(t, Other, s.Columns[s.Index("list")].Kind)
			require.Equal(t, Time, s.Columns[s.Index("day")].Kind)
			var floats []string
			for _, c := range []string{"x", "n", "u", "f", "b", "d", "nothing"} {
				floats = append(floats, c)
				p.Floats = append(p.Floats, s.Index(c))
			}
			p.Times, p.Texts = []int{s.Index("day")}, []int{s.Index("note"), s.Index("n")}
			for _, jobs := range []int{1, 3} {
				s.o.Jobs = jobs
				got, st, err := rows(t.Context(), s, p)
				require.NoError(t, err)
				require.Len(t, got, 7)
				for i, r := range got {
					require.Equal(t, tickers[i], r.Ticker)
					require.Equal(t, day(days[i]), r.Time)
					require.Equal(t, time.Date(2020, 3, days[i], 0, 0, 0, 0, time.UTC).UnixNano(), r.Stamps[0])
					require.Equal(t, notes[i], r.Texts[0])
					for k, c := range floats {
						require.Equal(t, columns[c][i], r.Cells[k], "row %d, column %s", i, c)
					}
				}
				require.Equal(t, "9007199254740993", got[2].Texts[1])
				require.EqualValues(t, []int64{3, 1, 1, 1, 1, 1, 7}, []int64{st.Columns[0].Missing, st.Columns[1].Missing, st.Columns[2].Missing, st.Columns[3].Missing, st.Columns[4].Missing, st.Columns[5].Missing, st.Columns[6].Missing})
				require.EqualValues(t, 2, st.Columns[0].NonFinite)
			}
		})
	}
}

func TestOddParquet(t *testing.T) {
	odd := func(name string) (*Survey, error) {
		return NewSurvey(t.Context(), []Source{{Path: filepath.Join("../testdata/odd", name)}}, Options{})
	}
	s, err := odd("stallion.parquet")
	require.NoError(t, err)
	p := Plan{Ticker: s.Index("agency"), Time: s.Index("date"), Floats: []int{s.Index("volume"), s.Index("price_actual")}, Texts: []int{s.Index("sku")}}
	got, st, err := rows(t.Context(), s, p)
	require.NoError(t, err)
	require.EqualValues(t, 21000, st.Rows)
	require.Equal(t, row{Line: 1, Ticker: "Agency_22", Time: time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), Cells: bitsOf(52.272, 1069.166193), Texts: []string{"SKU_01"}}, got[0])

	s, err = odd("84_parquet_int32_decimal.parquet")
	require.NoError(t, err)
	require.Equal(t, Float, s.Columns[0].Kind)
	_, err = s.TimeColumn()
	require.ErrorContains(t, err, "no column is named like a time")

	_, err = odd("86_parquet_zero_rows_zero_groups.parquet")
	require.ErrorContains(t, err, "holds no row")

	// One column's page is marked as an index, which holds no cells; pyarrow refuses it too.
	s, err = odd("85_parquet_decimal128_decimal256_dictionary_all_types.parquet")
	require.NoError(t, err)
	p = Plan{Ticker: -1, Time: s.Index("timestamp_ms_gmt"), Floats: []int{s.Index("int32"), s.Index("float64"), s.Index("decimal128"), s.Index("uint64")}, Texts: []int{s.Index("time32_ms"), s.Index("dict")}}
	got, _, err = rows(t.Context(), s, p)
	require.NoError(t, err)
	require.Len(t, got, 5)
	p.Time = s.Index("timestamp_us_no_tz")
	_, _, err = rows(t.Context(), s, p)
	require.ErrorContains(t, err, `column "timestamp_us_no_tz", from row 1 on: its pages hold fewer cells than there are rows`)
}

// hostileTable is small, and has columns of several kinds.
func hostileTable() []testColumn {
	n := 40
	c := []testColumn{times(n), {name: "ticker", typ: arrow.BinaryTypes.String, coded: true}, {name: "note", typ: arrow.BinaryTypes.StringView}, numbers("x"),
		{name: "n", typ: arrow.PrimitiveTypes.Int64}, {name: "b", typ: arrow.FixedWidthTypes.Boolean}, {name: "d", typ: &arrow.Decimal128Type{Precision: 20, Scale: 2}}}
	for i := range n {
		c[1].cells = append(c[1].cells, []any{"AAPL", "MSFT"}[i%2])
		c[2].cells = append(c[2].cells, []any{"", "a text longer than a view", nil}[i%3])
		c[3].cells = append(c[3].cells, []any{float64(i) / 3, nil}[min(i%5, 1)])
		c[4].cells = append(c[4].cells, int64(i)<<40)
		c[5].cells = append(c[5].cells, []any{true, false, nil}[i%3])
	}
	c[6] = c[4]
	c[6].name = "m"
	return c
}

// hostileFiles are small files of all kinds.
func hostileFiles(tb testing.TB) map[string][]byte {
	c := hostileTable()
	files := map[string][]byte{
		"stream":      writeArrow(tb, c, true, 25),
		"stream.lz4":  writeArrow(tb, c, true, 25, ipc.WithLZ4()),
		"file":        writeArrow(tb, c, false, 25),
		"file.zstd":   writeArrow(tb, c, false, 25, ipc.WithZstd()),
		"pq.snappy":   writeParquet(tb, c, 25, parquet.WithCompression(codecs.Codecs.Snappy), parquet.WithDataPageSize(64), parquet.WithBatchSize(7)),
		"pq.zstd":     writeParquet(tb, c, 40, parquet.WithCompression(codecs.Codecs.Zstd), parquet.WithDataPageVersion(parquet.DataPageV2)),
		"pq.gzip":     writeParquet(tb, c, 40, parquet.WithCompression(codecs.Codecs.Gzip)),
		"pq.lz4":      writeParquet(tb, c, 40, parquet.WithCompression(codecs.Codecs.Lz4Raw)),
		"pq.brotli":   writeParquet(tb, c, 40, parquet.WithCompression(codecs.Codecs.Brotli)),
		"pq.encoding": writeParquet(tb, c, 40, parquet.WithEncodingFor("note", parquet.Encodings.DeltaByteArray), parquet.WithEncodingFor("n", parquet.Encodings.DeltaBinaryPacked), parquet.WithEncodingFor("x", parquet.Encodings.ByteStreamSplit)),
	}
	return files
}

// readHostile reads all columns of a file in every way, and returns its rows.
func readHostile(ctx context.Context, path string) ([]row, error) {
	s, err := NewSurvey(ctx, []Source{{Path: path}}, Options{Jobs: 2})
	if err != nil {
		return nil, err
	}
	s.chunk = 1
	p := Plan{Ticker: s.Index("ticker"), Time: max(s.Index("date"), s.Index("time"))}
	if p.Ticker < 0 || p.Time < 0 {
		return nil, errors.New("other columns")
	}
	for i, c := range s.Columns {
		if c.Name != "ticker" && c.Name != "date" && c.Kind != Other {
			p.Texts = append(p.Texts, i)
			if c.Kind != Text {
				p.Floats = append(p.Floats, i)
			}
		}
	}
	got, _, err := rows(ctx, s, p)
	return got, err
}

// Every beginning of a file is an error or has the same rows.
func TestColumnarTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for name, b := range hostileFiles(t) {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		whole, err := readHostile(t.Context(), path)
		require.NoError(t, err, name)
		require.Len(t, whole, 40)
		for n := 8; n < len(b); n++ {
			if n > 200 && n < len(b)-200 && n%7 != 0 {
				continue
			}
			require.NoError(t, os.WriteFile(path, b[:n], 0o600))
			got, err := readHostile(t.Context(), path)
			if err == nil {
				require.Equal(t, whole, got, "%s, %d bytes of %d", name, n, len(b))
			}
			if strings.HasPrefix(name, "stream") {
				require.Error(t, err, "%s, %d bytes of %d", name, n, len(b))
			}
		}
	}
}

// No change of a byte makes reading panic, hang or take much memory. What changes
// is read or refused: neither format has checksums of all it holds.
func TestColumnarDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	r := rand.New(rand.NewPCG(3, 4))
	var before, after runtime.MemStats
	for name, b := range hostileFiles(t) {
		runtime.ReadMemStats(&before)
		edits := 400
		for range edits {
			damaged := bytes.Clone(b)
			for range 1 + r.IntN(2) {
				at := r.IntN(len(b))
				if r.IntN(3) == 0 {
					at = len(b) - 1 - r.IntN(min(len(b), 600)) // the metadata
				}
				switch r.IntN(4) {
				case 0:
					damaged[at] ^= 1 << r.IntN(8)
				case 1:
					damaged[at] = 0xff
				case 2:
					damaged[at] = 0x7f
				default:
					damaged[at] = byte(r.IntN(256))
				}
			}
			require.NoError(t, os.WriteFile(path, damaged, 0o600))
			_, err := readHostile(t.Context(), path)
			var row *RowError
			var file *UnusableError
			if err != nil && err.Error() != "other columns" {
				require.True(t, errors.As(err, &row) || errors.As(err, &file), "%s: %v", name, err)
			}
		}
		runtime.ReadMemStats(&after)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)/uint64(edits), uint64(24<<20), name)
	}
}

// Files that claim much and hold little are refused without making room for it.
func TestColumnarBombs(t *testing.T) {
	var before, after runtime.MemStats
	refused := func(want string, b []byte) {
		t.Helper()
		src := columnarSource(t, "a", b)
		runtime.ReadMemStats(&before)
		_, err := NewSurvey(t.Context(), []Source{src}, Options{})
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, want)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
	}
	footer := func(b ...byte) []byte {
		b = append([]byte("PAR1"), b...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(b)-4))
		return append(b, "PAR1"...)
	}
	// A list of 2^31-1 structs, as schema and as row groups; a group of 2^31-1 columns; lists in lists.
	many := binary.AppendUvarint(nil, math.MaxInt32)
	refused("is damaged", footer(append([]byte{0x29, 0xfc}, many...)...))
	refused("is damaged", footer(append([]byte{0x49, 0xfc}, many...)...))
	refused("a group of 2147483647 columns", footer(append(append([]byte{0x29, 0x1c, 0x55}, binary.AppendUvarint(nil, 2*math.MaxInt32)...), 0, 0)...))
	refused("is damaged", footer(append([]byte{0xf9}, bytes.Repeat([]byte{0x19}, 1<<20)...)...))
	refused("is damaged", footer(append([]byte{0xfc}, bytes.Repeat([]byte{0x1c}, 1<<20)...)...))
	refused("encrypted", append(append([]byte("PARE"), make([]byte, 20)...), "\x04\x00\x00\x00PARE"...))
	refused("cut short", []byte("PAR1\xff\xff\xff\x7fPAR1"))
	refused("is damaged: what it says of itself contradicts what it holds", footer(bytes.Repeat([]byte{0x15}, 1<<10)...))

	// A message with 256 MiB of metadata, a footer that is longer than the file.
	refused("cut short", []byte("\xff\xff\xff\xff\xff\xff\xff\x0f\x10\x00\x00\x00"))
	refused("is damaged", []byte("ARROW1\x00\x00\xff\xff\xff\x7fARROW1"))
	refused("version 1 of Feather", []byte("FEA1\x00\x00\x00\x00"))

	// A list of differences with blocks of 2^31 values.
	for _, c := range []struct {
		want error
		b    []byte
	}{{errDelta, []byte{0x80, 0x80, 0x80, 0x80, 8, 1, 4, 0}}, {errDelta, []byte{0x80, 1, 0, 4, 0}}, {errDelta, []byte{0x80, 1, 4, 40, 0, 2, 65, 0, 0, 0}}, {nil, []byte{0x80, 1, 4, 1, 2}}} {
		_, err := deltaLength(c.b)
		require.ErrorIs(t, err, c.want)
	}

	// Dictionaries of values that take next to nothing, alone or together.
	codes, nulls := array.NewInt32Builder(memory.DefaultAllocator), array.NewNull(40<<20)
	codes.Append(0)
	coded := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.Null}, codes.NewArray(), nulls)
	var stream bytes.Buffer
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: coded.DataType()}}, nil)
	require.NoError(t, ipc.NewWriter(&stream, ipc.WithSchema(schema)).Write(array.NewRecordBatch(schema, []arrow.Array{coded}, 1)))
	_, err := NewSurvey(t.Context(), []Source{columnarSource(t, "a", stream.Bytes())}, Options{})
	require.ErrorContains(t, err, "its dictionaries take more than 256 MiB; write the columns without dictionaries")

	// Texts that many views share.
	views := testColumn{name: "note", typ: arrow.BinaryTypes.StringView}
	long := strings.Repeat("x", 1<<20)
	for range 128 {
		views.cells = append(views.cells, long)
	}
	src := columnarSource(t, "a.parquet", writeParquet(t, []testColumn{times(128), {name: "note", typ: arrow.BinaryTypes.String, cells: views.cells, coded: true}}, 128))
	s, err := NewSurvey(t.Context(), []Source{src}, Options{})
	require.NoError(t, err)
	require.Equal(t, Other, s.Columns[1].Kind)
	_, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Texts: []int{1}})
	require.ErrorContains(t, err, `column "note", from row 1 on: 128 cells hold more than 64 MiB of text`)
}

// A dictionary that grows from batch to batch costs what it holds, not that times the number of batches.
func TestArrowDictionaryGrows(t *testing.T) {
	c := []testColumn{times(20_000), {name: "note", typ: arrow.BinaryTypes.String, coded: true}}
	for i := range 20_000 {
		c[1].cells = append(c[1].cells, fmt.Sprintf("word %032d", i))
	}
	src := columnarSource(t, "a.arrows", writeArrow(t, c, true, 100))
	s, err := NewSurvey(t.Context(), []Source{src}, Options{Jobs: 2})
	require.NoError(t, err)
	s.chunk = 1
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	_, err = s.Read(t.Context(), Plan{Ticker: -1, Time: 0, Texts: []int{1}}, func(b *Batch) error {
		for i, code := range b.Texts {
			require.Equal(t, c[1].cells[n+i], b.Dict[code])
		}
		n += b.Rows
		return nil
	})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, 20_000, n)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(48<<20))
}

// The first group always has room; those behind it wait for it, and what no group may have is an error.
func TestHeldBytes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := newHeldBytes(ctx)
	first, second, third := h.begin(), h.begin(), h.begin()
	require.NoError(t, second.add(mostHeld-10))
	require.NoError(t, first.add(mostHeld-10))
	require.ErrorContains(t, first.add(11), "takes more than 2048 MiB")
	require.ErrorContains(t, third.add(mostHeld+1), "takes more than 2048 MiB")
	waited := make(chan error, 1)
	go func() { waited <- third.add(20) }()
	first.end()
	select {
	case err := <-waited:
		require.Fail(t, "there was no room", "%v", err)
	case <-time.After(10 * time.Millisecond):
	}
	second.end()
	require.NoError(t, <-waited)
	require.Equal(t, int64(20), h.total)
	fourth := h.begin()
	go func() { waited <- fourth.add(mostHeld) }()
	cancel()
	require.ErrorIs(t, <-waited, context.Canceled)
	require.NoError(t, (*groupBytes)(nil).add(mostHeld+1))
}

// A page that lacks its checksum's bytes is refused.
func TestParquetChecksum(t *testing.T) {
	b, err := os.ReadFile("testdata/pyarrow_v2.parquet")
	require.NoError(t, err)
	found := 0
	for at := 4; at < 1500; at += 3 {
		damaged := bytes.Clone(b)
		damaged[at] ^= 0x10
		_, err := readHostile(t.Context(), columnarSource(t, "a.parquet", damaged).Path)
		if err != nil && strings.Contains(err.Error(), "does not have its checksum") {
			found++
		}
	}
	require.Greater(t, found, 50)
}

// A file that changes between survey and reading is an error.
func TestColumnarChanged(t *testing.T) {
	src := columnarSource(t, "a.arrow", writeArrow(t, []testColumn{times(3), numbers("x", 1.0, 2.0, 3.0)}, false, 3))
	s, err := NewSurvey(t.Context(), []Source{src}, Options{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(src.Path, writeArrow(t, []testColumn{times(3), numbers("y", 1.0, 2.0, 3.0)}, false, 3), 0o600))
	_, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: 0, Floats: []int{1}})
	require.ErrorContains(t, err, "was changed while it was being read")
}

func TestColumnarCancelled(t *testing.T) {
	n := 100_000
	c := []testColumn{times(n), numbers("x"), numbers("y")}
	for i := range n {
		c[1].cells, c[2].cells = append(c[1].cells, float64(i)), append(c[2].cells, float64(i))
	}
	src := columnarSource(t, "a.parquet", writeParquet(t, c, n))
	s, err := NewSurvey(t.Context(), []Source{src}, Options{Jobs: 3})
	require.NoError(t, err)
	s.chunk = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = s.Read(ctx, Plan{Ticker: -1, Time: 0, Floats: []int{1, 2}}, func(b *Batch) error {
		if b.Line[0] > 5000 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	stop := fmt.Errorf("enough")
	_, err = s.Read(t.Context(), Plan{Ticker: -1, Time: 0, Floats: []int{1, 2}}, func(*Batch) error { return stop })
	require.ErrorIs(t, err, stop)
}
