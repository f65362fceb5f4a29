package convert_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/internal/fsys"
)

// options has a bit of everything that depends on the order of rows.
func options(inputs ...string) convert.Options {
	return convert.Options{Inputs: inputs, Ticker: "ticker", Targets: []string{"b:1d"}, MaxGap: 36 * 3600e9, Breaks: []convert.Break{{Name: "half", Column: "half"}}}
}

func bytesOf(t *testing.T, o convert.Options) []byte {
	t.Helper()
	_, s := run(t, o)
	b, err := os.ReadFile(s.Path())
	require.NoError(t, err)
	return b
}

// table makes a panel with a column of text besides.
func table(days, tickers int) (header string, rows []string) {
	_, rows = panel(days, tickers)
	for i, r := range rows {
		half := "first"
		if r[5:7] > "06" {
			half = "second"
		}
		rows[i] = strings.TrimSuffix(r, "\n") + "," + half + "\n"
	}
	return "date,ticker,a,b,half\n", rows
}

func TestSameBytesOnAnyNumberOfCores(t *testing.T) {
	header, rows := table(2000, 30) // more than one chunk of input
	dir := t.TempDir()
	write(t, dir, "x.csv", header+strings.Join(rows[:20000], ""))
	write(t, dir, "y.csv", header+strings.Join(rows[20000:], ""))
	want := bytesOf(t, options(dir))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(procs)
		for _, jobs := range []int{0, 1, 3, 16} {
			o := options(dir)
			o.Jobs = jobs
			require.Equal(t, want, bytesOf(t, o), "GOMAXPROCS %d, %d jobs", procs, jobs)
		}
	}
}

func TestSameBytesHoweverInputsAreNamed(t *testing.T) {
	header, rows := table(300, 9)
	dir := t.TempDir()
	var files []string
	for i := range 3 {
		files = append(files, write(t, dir, fmt.Sprintf("part%d.csv", i), header+strings.Join(rows[i*500:(i+1)*500], "")))
	}
	write(t, dir, "README", "of another kind")
	want := bytesOf(t, options(files...))
	for name, inputs := range map[string][]string{
		"reversed": {files[2], files[1], files[0]},
		"twice":    {files[0], files[0], files[1], files[2]},
		"folder":   {dir},
		"slash":    {dir + string(filepath.Separator)},
		"glob":     {filepath.Join(dir, "part*.csv")},
		"mixed":    {files[2], filepath.Join(dir, "part[01].csv")},
	} {
		require.Equal(t, want, bytesOf(t, options(inputs...)), name)
	}
}

func TestSameContentFromOneFileOrMany(t *testing.T) {
	header, rows := table(300, 9)
	whole, shuffled, backward, single := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, whole, "all.csv", header+strings.Join(rows, ""))
	byTicker := map[string]string{}
	for _, r := range rows {
		k := strings.Split(r, ",")[1]
		byTicker[k] += r
	}
	for k, text := range byTicker {
		write(t, single, k+".csv", header+text)
	}
	other := slices.Clone(rows)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	write(t, shuffled, "all.csv", header+strings.Join(other, ""))
	newest := slices.Clone(rows)
	slices.Reverse(newest)
	write(t, backward, "all.csv", header+strings.Join(newest, ""))

	r, s := run(t, options(whole))
	want := contents(t, s)
	for name, dir := range map[string]string{"shuffled": shuffled, "newest first": backward, "a file for each ticker": single} {
		got, s2 := run(t, options(dir))
		require.Equal(t, r.Digest, got.Digest, name)
		requireSame(t, want, contents(t, s2))
	}
	fromNames := options(single)
	fromNames.Ticker = ""
	got, _ := run(t, fromNames)
	require.Equal(t, r.Digest, got.Digest, "tickers from the files' names")
	require.Zero(t, r.UnsortedTickers)
	rs, _ := run(t, options(shuffled))
	require.Equal(t, 9, rs.UnsortedTickers)
}

// recorder counts temporary files that are not the writer's: the first of a conversion whose rows don't fit in memory.
type recorder struct {
	fsys.FS
	made int
}

func (r *recorder) CreateTemp(path string) (fsys.File, error) {
	r.made++
	return r.FS.CreateTemp(path)
}

func TestSameBytesWhenRowsAreSortedOnDisk(t *testing.T) {
	header, rows := table(400, 12)
	other := slices.Clone(rows)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	var one []string // a ticker alone that is larger than the memory
	for _, r := range rows {
		one = append(one, strings.Replace(r, r[10:14], ",ONE", 1))
	}
	one = slices.CompactFunc(one, func(a, b string) bool { return a[:10] == b[:10] })
	for name, text := range map[string]string{
		"by date":    header + strings.Join(rows, ""),
		"shuffled":   header + strings.Join(other, ""),
		"one ticker": header + strings.Join(one, ""),
	} {
		t.Run(name, func(t *testing.T) {
			// Files, since rows are counted when a piece of input has been read.
			dir := t.TempDir()
			lines := strings.SplitAfter(text, "\n")
			for i := 1; i < len(lines)-1; i += 37 {
				write(t, dir, fmt.Sprintf("%04d.csv", i), header+strings.Join(lines[i:min(i+37, len(lines)-1)], ""))
			}
			want := bytesOf(t, options(dir))
			var temps []int
			for _, budget := range []int64{1, 500, 5000, 50_000} {
				o := options(dir)
				fs := &recorder{FS: fsys.OS{}}
				o.Inject(fs, budget)
				require.Equal(t, want, bytesOf(t, o), "%d bytes", budget)
				temps = append(temps, fs.made)
			}
			o := options(dir)
			fs := &recorder{FS: fsys.OS{}}
			o.Inject(fs, 0)
			bytesOf(t, o)
			for _, n := range temps[:3] {
				require.Equal(t, fs.made+1, n, "rows were sorted on disk")
			}
		})
	}
}

func TestDuplicatesResolveAlikeOnDisk(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		write(t, dir, fmt.Sprintf("%02d.csv", i), fmt.Sprintf("date,ticker,a,b,half\n2020-01-0%d,A,%d,%d,x\n", i%3+1, i, i))
	}
	for _, on := range []convert.OnDuplicate{convert.DuplicateFirst, convert.DuplicateLast} {
		o := options(dir)
		o.OnDuplicate = on
		want := bytesOf(t, o)
		o.Inject(nil, 1)
		require.Equal(t, want, bytesOf(t, o), on)
	}
}
