package ingest

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// row is one row, with its strings.
type row struct {
	Source int
	Line   int64
	Ticker string
	Time   int64
	Cells  []uint32 // bits
	Stamps []int64
	Texts  []string
}

// rows reads all rows.
func rows(ctx context.Context, s *Survey, p Plan) (out []row, st *Stats, err error) {
	nf, nt, nx := len(p.Floats), len(p.Times), len(p.Texts)
	st, err = s.Read(ctx, p, func(b *Batch) error {
		if b.Rows == 0 || len(b.Line) != b.Rows || len(b.Tickers) != b.Rows || len(b.Times) != b.Rows || len(b.Cells) != nf*b.Rows || len(b.Stamps) != nt*b.Rows || len(b.Texts) != nx*b.Rows {
			return fmt.Errorf("a batch of another shape: %d rows, %d cells", b.Rows, len(b.Cells))
		}
		for i := range b.Rows {
			r := row{Source: b.Source, Line: b.Line[i], Ticker: b.Dict[b.Tickers[i]], Time: b.Times[i], Stamps: append([]int64(nil), b.Stamps[i*nt:(i+1)*nt]...)}
			for _, f := range b.Cells[i*nf : (i+1)*nf] {
				r.Cells = append(r.Cells, math.Float32bits(f))
			}
			for _, c := range b.Texts[i*nx : (i+1)*nx] {
				r.Texts = append(r.Texts, b.Dict[c])
			}
			out = append(out, r)
		}
		return nil
	})
	return out, st, err
}

// read surveys and reads one file with the columns time, ticker, x and y.
func read(tb testing.TB, o Options, text string) ([]row, *Stats, error) {
	tb.Helper()
	s, err := survey(tb, o, "a.csv", text)
	require.NoError(tb, err)
	return rows(tb.Context(), s, Plan{Ticker: s.Index("ticker"), Time: s.Index("time"), Floats: []int{s.Index("x"), s.Index("y")}})
}

const nan = 0x7fc00000

func bitsOf(fs ...float32) (b []uint32) {
	for _, f := range fs {
		b = append(b, math.Float32bits(f))
	}
	return b
}

func at(day int) int64 { return time.Date(2013, 2, day, 0, 0, 0, 0, time.UTC).UnixNano() }

func TestReadEveryUse(t *testing.T) {
	s, err := survey(t, Options{},
		"a.csv", "time,ticker,x,ok,end,session\n2013-02-08, NA ,-0,TRUE,2013-02-10,day\n\r\n2013-02-09,000001,NaN,0,,night \r\n",
		"b.csv", "\xef\xbb\xbfsession;end;ok;x;ticker;time\n\"a;\"\"b\"\"\nc\";NaT;2;\" 1e5 \";TRUE;2013-02-08\n;2013-02-11;false;;1e5;2013-02-09")
	require.NoError(t, err)
	p := Plan{Ticker: 1, Time: 0, Floats: []int{3, 2}, Masks: []bool{true, false}, Times: []int{4}, Texts: []int{5, 2}}
	got, st, err := rows(t.Context(), s, p)
	require.NoError(t, err)
	require.Equal(t, []row{
		{0, 2, " NA ", at(8), bitsOf(1, float32(math.Copysign(0, -1))), []int64{at(10)}, []string{"day", "-0"}},
		{0, 4, "000001", at(9), []uint32{nan, nan}, []int64{math.MinInt64}, []string{"night ", "NaN"}},
		{1, 2, "TRUE", at(8), bitsOf(2, 1e5), []int64{math.MinInt64}, []string{"a;\"b\"\nc", " 1e5 "}},
		{1, 4, "1e5", at(9), []uint32{nan, nan}, []int64{at(11)}, []string{"", ""}},
	}, got)
	require.Equal(t, []ColumnStats{{Missing: 2}, {Missing: 2, NonFinite: 1}}, st.Columns)
	require.Equal(t, int64(4), st.Rows)
	require.Equal(t, s.Sources[0].Size+s.Sources[1].Size, st.Bytes)

	// The ticker from the file's name.
	p.Ticker = -1
	got, _, err = rows(t.Context(), s, p)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a", "b", "b"}, []string{got[0].Ticker, got[1].Ticker, got[2].Ticker, got[3].Ticker})

	for _, p := range []Plan{{Ticker: 9}, {Ticker: -2}, {Time: -2}, {Floats: []int{6}}, {Times: []int{-1}}, {Texts: []int{7}}, {Floats: []int{1}, Masks: []bool{true, false}}} {
		_, err := s.Read(t.Context(), p, nil)
		require.ErrorContains(t, err, "plan")
	}
}

// Tables of any cells come out as a plain loop over encoding/csv reads them,
// whatever the chunks, the goroutines, quoting and line ends.
func TestReadProperty(t *testing.T) {
	cells := rapid.OneOf(rapid.StringMatching(`-?[0-9]{1,9}(\.[0-9]{1,9})?`), rapid.StringMatching(`-?[0-9]{1,22}(\.[0-9]{0,22})?(e-?[0-9])?`), rapid.SampledFrom([]string{"", "NaN", "-inf", "null", "16777217", " 5 "}))
	names := rapid.OneOf(rapid.StringMatching(`[A-Z]{1,4}`), rapid.SampledFrom([]string{"NA", "000001", "a,b", "a\nb", `"q"`, "é ", "1e5"}))
	rapid.Check(t, func(t *rapid.T) {
		n, width := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(0, 6).Draw(t, "width")
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
		quote := func(s string) string {
			if strings.ContainsAny(s, "\",\n") || rapid.IntRange(0, 20).Draw(t, "quote") == 0 {
				return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
			}
			return s
		}
		var b strings.Builder
		b.WriteString("time,ticker")
		p := Plan{Ticker: 1, Time: 0}
		for i := range width {
			fmt.Fprintf(&b, ",c%d", i)
			p.Floats = append(p.Floats, 2+i)
		}
		for i := range n {
			b.WriteString(eol + time.Unix(int64(i)*3600, 0).UTC().Format("2006-01-02 15:04") + "," + quote(names.Draw(t, "ticker")))
			for range width {
				b.WriteString("," + quote(cells.Draw(t, "cell")))
			}
		}
		if rapid.Bool().Draw(t, "last") {
			b.WriteString(eol)
		}
		text := b.String()

		var want []row
		stats := make([]ColumnStats, width)
		r := csv.NewReader(strings.NewReader(text))
		_, err := r.Read()
		require.NoError(t, err)
		for rec, err := r.Read(); err == nil; rec, err = r.Read() {
			line, _ := r.FieldPos(0)
			ts, err := time.Parse("2006-01-02 15:04", rec[0])
			require.NoError(t, err)
			w := row{Line: int64(line), Ticker: rec[1], Time: ts.UnixNano()}
			for i, c := range rec[2:] {
				switch c = strings.TrimSpace(c); c {
				case "", "null":
					stats[i].Missing++
					w.Cells = append(w.Cells, nan)
				case "NaN", "-inf":
					stats[i].Missing++
					stats[i].NonFinite++
					w.Cells = append(w.Cells, nan)
				default:
					f, kind := nearest32(t, c)
					if kind == inexact {
						stats[i].Inexact++
						x, _ := new(big.Rat).SetString(c)
						d := new(big.Rat).Sub(new(big.Rat).SetFloat64(float64(f)), x)
						rel, _ := d.Quo(d.Abs(d), x.Abs(x)).Float64()
						stats[i].MaxRelError = max(stats[i].MaxRelError, rel)
					}
					w.Cells = append(w.Cells, math.Float32bits(f))
				}
			}
			want = append(want, w)
		}

		path := filepath.Join(os.TempDir(), fmt.Sprintf("ingest-%d.csv", os.Getpid()))
		defer os.Remove(path)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for _, jobs := range []int{1, 4} {
			s, err := NewSurvey(context.Background(), []Source{{Path: path}}, Options{Jobs: jobs})
			require.NoError(t, err)
			s.chunk = rapid.IntRange(600, 2000).Draw(t, "chunk")
			got, st, err := rows(context.Background(), s, p)
			require.NoError(t, err)
			require.Equal(t, want, got)
			for i, c := range st.Columns {
				require.InDelta(t, stats[i].MaxRelError, c.MaxRelError, 1e-15)
				c.MaxRelError = stats[i].MaxRelError
				require.Equal(t, stats[i], c)
			}
		}
	})
}

func TestReadRefusesRows(t *testing.T) {
	const head = "time,ticker,x,y\n2013-02-08,A,1,2\n"
	for line, want := range map[string]string{
		"2013-02-09,A,1":               "a.csv:3: has 3 cells, while the header has 4",
		"2013-02-09,A,1,2,":            "a.csv:3: has 5 cells",
		"2013-02-09":                   "has 1 cell,",
		"2013-02-09,A,\"1\"":           "a.csv:3: has 3 cells",
		"2013-02-09,A,1;5,2":           `a.csv:3: column "x": "1;5" is not a number`,
		"2013-02-09,A,\"4,787,699\",2": "is not written like the numbers of this column (plain)",
		"2013-02-09,A,TRUE,2":          "--mask",
		"2013-02-09,A,1e39,2":          "is larger than any float32 (3.4e38); scale",
		"2013-02-09,A,1,-4e38":         `column "y": "-4e38" is larger`,
		"2013-02-09,,1,2":              "is a ticker that is empty",
		"2013-02-09,\"\",1,2":          "is empty",
		"2013-02-09,A\xff,1,2":         "is not UTF-8",
		"2013-02-09,A\x00,1,2":         "a.csv:3: holds a NUL byte",
		"2013-02-30,A,1,2":             "is not a time like \"2013-02-08\"",
		",A,1,2":                       "the time is empty; " + hintSkip,
		"total,A,1,2":                  hintSkip,
		"2013-02-09 09:30,A,1,2":       "has a time of day",
		"2013-02-09,A,1,\"2":           "a.csv:3: has a quoted cell that does not end",
		"2013-02-09,A,1,2\"":           "a.csv:3: has a quote inside",
		"2013-02-09," + strings.Repeat("A", 256) + ",1,2": "has 256 bytes, more than 255",
	} {
		// Beyond the sample, so that Read has to find them.
		text := head + line + "\n" + "2013-02-10,B,x,y,z\n"
		s, err := survey(t, Options{}, "a.csv", head)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(s.Sources[0].Path, []byte(text), 0o600))
		_, _, err = rows(t.Context(), s, Plan{Ticker: 1, Time: 0, Floats: []int{2, 3}})
		var bad *RowError
		require.ErrorAs(t, err, &bad, line)
		require.ErrorContains(t, err, want, line)
		require.Equal(t, int64(3), bad.Line)
		require.NotEmpty(t, bad.Hint)
	}
	got, _, err := read(t, Options{}, head+"2013-02-09,"+strings.Repeat("é", 127)+"x,1,2\n")
	require.NoError(t, err)
	require.Len(t, got[1].Ticker, 255)

	s, err := survey(t, Options{}, ".csv", head, "a.csv", head)
	require.NoError(t, err) // a folder does not give it
	s.Sources[0].Path = filepath.Join(filepath.Dir(s.Sources[0].Path), ".csv")
	_, _, err = rows(t.Context(), s, Plan{Ticker: -1, Time: 0})
	require.ErrorContains(t, err, "the file's name gives the ticker")
}

func TestReadSkipsBadRows(t *testing.T) {
	text := "time,ticker,x,y\n2013-02-08,A,1,0.1\n2013-02-09,B,0.1,oops\n2013-02-09,C,0.1\n\"2013-02-09\",D,0.3,NaN\nx,E,1,1\n2013-02-10,F,1e39,\n"
	for _, text := range []string{text, strings.ReplaceAll(text, `"`, "")} {
		got, st, err := read(t, Options{SkipBad: true}, text)
		require.NoError(t, err)
		require.Equal(t, []row{
			{0, 2, "A", at(8), bitsOf(1, 0.1), nil, nil},
			{0, 5, "D", at(9), []uint32{math.Float32bits(0.3), nan}, nil, nil},
		}, got)
		require.Equal(t, int64(4), st.Skipped)
		require.Contains(t, st.FirstSkipped, `a.csv:3: column "y": "oops" is not a number`)
		// Cells of skipped rows don't count.
		require.Equal(t, int64(1), st.Columns[0].Inexact)
		require.Equal(t, ColumnStats{Missing: 1, NonFinite: 1, Inexact: 1, MaxRelError: st.Columns[1].MaxRelError}, st.Columns[1])
	}
	_, _, err := read(t, Options{SkipBad: true}, "time,ticker,x,y\n2013-02-08,,1,1\n")
	var unusable *UnusableError
	require.ErrorAs(t, err, &unusable)
	require.ErrorContains(t, err, "none of the 1 rows")
}

func TestReadDayAndMonth(t *testing.T) {
	row := func(date string) string { return date + ",A,1,2\n" }
	head := "time,ticker,x,y\n" + strings.Repeat(row("03/04/2019"), 20_000)
	_, _, err := read(t, Options{}, head)
	require.ErrorContains(t, err, `a.csv:2: column "time": "03/04/2019" leaves open whether day or month comes first`)
	require.ErrorContains(t, err, "--time-format")

	got, _, err := read(t, Options{}, head+row("13/04/2019"))
	require.NoError(t, err)
	require.Equal(t, time.Date(2019, 4, 3, 0, 0, 0, 0, time.UTC).UnixNano(), got[0].Time)
	got, _, err = read(t, Options{}, head+row("04/13/2019"))
	require.NoError(t, err)
	require.Equal(t, time.Date(2019, 3, 4, 0, 0, 0, 0, time.UTC).UnixNano(), got[0].Time)
	_, _, err = read(t, Options{}, head+row("04/13/2019")+row("13/04/2019"))
	require.ErrorContains(t, err, "a.csv:20003: ")
	require.ErrorContains(t, err, "has its day first, while the column has its month first")
	got, _, err = read(t, Options{TimeFormat: "%m/%d/%Y"}, head)
	require.NoError(t, err)
	require.Equal(t, time.Date(2019, 3, 4, 0, 0, 0, 0, time.UTC).UnixNano(), got[0].Time)

	_, _, err = read(t, Options{}, "time,ticker,x,y\nsoon,A,1,2\n")
	require.ErrorContains(t, err, `a.csv:2: column "time": "soon" is not a time in a format that is recognised; give its layout`)
	_, _, err = read(t, Options{}, "\n\"ti\nme\",ticker,x,y,time\n,A,1,2,\n\n,\"A\nB\",1,2,late\n")
	require.ErrorContains(t, err, `a.csv:6: column "time": "late" is not a time`)
	_, _, err = read(t, Options{}, "time,ticker,x,y\n0001-01-01,A,1,2\n")
	require.ErrorContains(t, err, `a.csv:2: column "time": "0001-01-01" is outside the years 1677 to 2262`)
	require.ErrorContains(t, err, hintSkip)
	got, _, err = read(t, Options{SkipBad: true}, "time,ticker,x,y\n0001-01-01 00:00,A,1,2\n2013-02-08 00:00,A,1,2\n")
	require.NoError(t, err)
	require.Equal(t, at(8), got[0].Time, "a time out of range has a format too")
	_, _, err = read(t, Options{}, "time,ticker,x,y\n,A,1,2\n")
	require.ErrorContains(t, err, "begins without any time")
}

// The error is the first of the input, whatever the number of goroutines.
func TestReadFirstError(t *testing.T) {
	good := "time,ticker,x,y\n" + strings.Repeat("2013-02-08,A,1,2\n", 5000)
	bad := good + "2013-02-08,A,oops,2\n" + strings.Repeat("2013-02-08,A,1,2\nx,y\n", 5000)
	var delivered []int
	for _, jobs := range []int{1, 2, 7} {
		s, err := survey(t, Options{Jobs: jobs}, "a.csv", good, "b.csv", bad, "c.csv", bad)
		require.NoError(t, err)
		s.chunk = 4096
		n := 0
		_, err = s.Read(t.Context(), Plan{Ticker: 1, Time: 0, Floats: []int{2}}, func(b *Batch) error { n += b.Rows; return nil })
		require.ErrorContains(t, err, "b.csv:5002: column \"x\"")
		require.Greater(t, n, 5000)
		delivered = append(delivered, n)
	}
	require.Equal(t, []int{delivered[0], delivered[0], delivered[0]}, delivered)
}

// compress writes text as one or more gzip members.
func compress(tb testing.TB, texts ...string) []byte {
	var b bytes.Buffer
	for _, text := range texts {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(text))
		require.NoError(tb, err)
		require.NoError(tb, w.Close())
	}
	return b.Bytes()
}

func TestReadGzip(t *testing.T) {
	text := "time,ticker,x,y\n" + strings.Repeat("2013-02-08,A,1,2\n", 200_000) // more than a chunk
	want, _, err := read(t, Options{}, text)
	require.NoError(t, err)
	z := compress(t, text[:12345], text[12345:])
	var told atomic.Int64
	// The name does not matter, the content does.
	got, st, err := read(t, Options{Progress: func(n int64) { told.Add(n) }}, string(z))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, int64(len(z)), st.Bytes)
	require.Equal(t, st.Bytes, told.Load())

	s, err := survey(t, Options{}, "a.csv.gz", string(z))
	require.NoError(t, err)
	plan := Plan{Ticker: 1, Time: 0, Floats: []int{2, 3}}
	var unusable *UnusableError
	for cut := range []int{1, 8, 20, 1000} {
		require.NoError(t, os.WriteFile(s.Sources[0].Path, z[:len(z)-1-cut], 0o600))
		_, _, err = rows(t.Context(), s, plan)
		require.ErrorAs(t, err, &unusable)
		require.ErrorContains(t, err, "a.csv.gz: its gzip stream is cut short")
	}
	flipped := bytes.Clone(z)
	flipped[len(z)-6] ^= 1
	require.NoError(t, os.WriteFile(s.Sources[0].Path, flipped, 0o600))
	_, _, err = rows(t.Context(), s, plan)
	require.ErrorAs(t, err, &unusable)
	require.ErrorContains(t, err, "its gzip stream is damaged")
}

func TestReadLongRow(t *testing.T) {
	const row = "2013-02-08,A,1,2\n"
	long := "2013-02-08,\"" + strings.Repeat(row, chunkSize/len(row)+1) + "\",1,2\n"
	_, _, err := read(t, Options{}, "time,ticker,x,y\n"+strings.Repeat(row, 10_000)+long)
	require.ErrorContains(t, err, "a.csv:10002: no row ends within 1048576 bytes")
}

func TestReadChangedFile(t *testing.T) {
	s, err := survey(t, Options{}, "a.csv", "time,ticker,x,y\n2013-02-08,A,1,2\n")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.Sources[0].Path, []byte("time,ticker,y,x\n2013-02-08,A,1,2\n"), 0o600))
	_, _, err = rows(t.Context(), s, Plan{Ticker: 1})
	require.ErrorContains(t, err, "was changed")
	require.NoError(t, os.Remove(s.Sources[0].Path))
	_, _, err = rows(t.Context(), s, Plan{Ticker: 1})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Read ends promptly and leaves no goroutine behind, however it ends.
func TestReadStops(t *testing.T) {
	text := "time,ticker,x,y\n" + strings.Repeat("2013-02-08,A,1,2\n", 100_000)
	s, err := survey(t, Options{Jobs: 4}, "a.csv", text)
	require.NoError(t, err)
	s.chunk = 4096
	p := Plan{Ticker: 1, Time: 0, Floats: []int{2, 3}}
	before := runtime.NumGoroutine()

	stop := errors.New("stop")
	calls := 0
	_, err = s.Read(t.Context(), p, func(*Batch) error {
		if calls++; calls == 3 {
			return stop
		}
		return nil
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, 3, calls)

	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	_, err = s.Read(ctx, p, func(*Batch) error {
		if calls++; calls == 2 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, calls)
	_, err = s.Read(ctx, p, func(*Batch) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	_, err = NewSurvey(ctx, s.Sources, Options{})
	require.ErrorIs(t, err, context.Canceled)

	func() {
		defer func() { require.Equal(t, "yield", recover()) }()
		_, _ = s.Read(t.Context(), p, func(*Batch) error { panic("yield") })
	}()
	// A goroutine that is done is still counted for a moment.
	for range 1000 {
		if runtime.NumGoroutine() > before {
			time.Sleep(time.Millisecond)
		}
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// Any bytes end in rows or an error.
func TestReadAnything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"time", "x", ",", ",", "\n", "\n", "\r", `"`, ";", "2013-02-08", "1", "1.5", " ", "\xff", "\x00", "3/4/2019", "é"})).Draw(t, "text"), "")
		if rapid.Bool().Draw(t, "head") {
			text = "time,x\n2013-02-08,1\n" + text
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := NewSurvey(context.Background(), []Source{{Path: path}}, Options{SkipBad: rapid.Bool().Draw(t, "skip")})
		if err != nil {
			require.ErrorContains(t, err, "a.csv")
			return
		}
		s.chunk = rapid.IntRange(100, 300).Draw(t, "chunk")
		i, err := s.TimeColumn()
		if err != nil {
			return
		}
		p := Plan{Ticker: -1, Time: i}
		for j := range s.Columns {
			p.Floats, p.Texts = append(p.Floats, j), append(p.Texts, j)
		}
		_, _, _ = rows(context.Background(), s, p)
	})
}
