package convert_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/internal/fsys"
)

// failing makes inputs whose conversion has every step: rows sorted on disk, duplicates, breaks, label ends, categories,
// cells that are filled, attributes, and a file without rows.
func failing(t *testing.T) convert.Options {
	header, rows := table(40, 3)
	dir := t.TempDir()
	for i := range 4 {
		write(t, dir, fmt.Sprintf("%d.csv", i), header+strings.Join(rows[i*25:i*25+26], ""))
	}
	write(t, dir, "9.csv", header)
	o := options(dir)
	o.OnDuplicate = convert.DuplicateLast
	o.Categories = []string{"half"}
	o.Fills = []convert.Fill{{Column: "a", Forward: true}, {Column: "half", Value: "none"}}
	o.Static = write(t, t.TempDir(), "static.csv", "ticker,beta,sector\nT00,1.5,Tech\n")
	return o
}

// requireKept makes sure that only the old output is in a folder.
func requireKept(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}

func TestAnyFaultOfTheFileSystem(t *testing.T) {
	o := failing(t)
	want := bytesOf(t, o)
	o.Output = write(t, t.TempDir(), "out.wst", "old")
	o.Overwrite = true
	for _, short := range []bool{false, true} {
		n := int64(0)
		for ; ; n++ {
			faulty := &fsys.Faulty{FS: fsys.OS{}, N: n, Short: short}
			o.Inject(faulty, 100)
			report, err := convert.Run(context.Background(), o)
			if !faulty.Failed() {
				require.NoError(t, err)
				got, err := os.ReadFile(o.Output)
				require.NoError(t, err)
				require.Equal(t, want, got)
				require.NoError(t, os.WriteFile(o.Output, []byte("old"), 0o666))
				break
			}
			require.ErrorIs(t, err, fsys.ErrInjected, "operation %d", n)
			require.Nil(t, report)
			if got, err := os.ReadFile(o.Output); err == nil && string(got) == string(want) {
				// It was complete and had its name already: what failed was tidying up.
				requireAlone(t, o.Output)
				require.NoError(t, os.WriteFile(o.Output, []byte("old"), 0o666))
			}
			requireKept(t, o.Output)
		}
		require.Greater(t, n, int64(50), "there were that many operations to fail")
	}
}

// A wide table, from a file and from standard input, and one that is looked at for changes first.
func TestFaultsOfOtherWays(t *testing.T) {
	text := "date,note,A:x,A:y,B:x\n"
	for i := range 60 {
		text += fmt.Sprintf("2024-01-01 00:%02d,n%d,%d,,%d\n", i, i/7, i, i*i)
	}
	for name, o := range map[string]convert.Options{
		"file":           {Inputs: []string{write(t, t.TempDir(), "in.csv", text)}},
		"standard input": {Inputs: []string{"-"}},
		"if changed":     {Inputs: []string{"-"}, IfChanged: true},
	} {
		o.Wide, o.Categories, o.Fills = "{ticker}:{column}", []string{"note"}, []convert.Fill{{Column: "y", Value: "0"}}
		o.Output, o.Overwrite = filepath.Join(t.TempDir(), "out.wst"), true
		o.Stdin = strings.NewReader("date,A:x\n2024-01-02,1\n")
		_, err := convert.Run(context.Background(), convert.Options{Inputs: []string{"-"}, Stdin: o.Stdin, Wide: o.Wide, Output: o.Output})
		require.NoError(t, err)
		old, err := os.ReadFile(o.Output)
		require.NoError(t, err)
		n := int64(0)
		for ; ; n++ {
			faulty := &fsys.Faulty{FS: fsys.OS{}, N: n}
			o.Inject(faulty, 100)
			o.Stdin = strings.NewReader(text)
			_, err := convert.Run(context.Background(), o)
			requireAlone(t, o.Output)
			if !faulty.Failed() {
				require.NoError(t, err, name)
				break
			}
			require.ErrorIs(t, err, fsys.ErrInjected, "%s, operation %d", name, n)
			got, err := os.ReadFile(o.Output)
			require.NoError(t, err)
			if string(got) != string(old) { // it was complete: what failed was tidying up
				require.NoError(t, os.WriteFile(o.Output, old, 0o666))
			}
		}
		require.Greater(t, n, int64(20), name)
	}
}

// full is a disk that is full for temporary files for rows, or for those of the writer.
type full struct {
	fsys.FS
	from  int // number of the first temporary file that gets no byte
	files int
}

type fullFile struct{ fsys.File }

var errFull = errors.New("no space left on device")

func (f *full) CreateTemp(path string) (fsys.File, error) {
	file, err := f.FS.CreateTemp(path)
	if f.files++; f.files > f.from && err == nil {
		file = fullFile{file}
	}
	return file, err
}

func (fullFile) WriteAt([]byte, int64) (int, error) { return 0, errFull }

func TestFullDisk(t *testing.T) {
	o := failing(t)
	o.Output = write(t, t.TempDir(), "out.wst", "old")
	o.Overwrite = true
	for from := range 4 { // rows, cells and times, output
		o.Inject(&full{FS: fsys.OS{}, from: from}, 100)
		_, err := convert.Run(context.Background(), o)
		require.ErrorIs(t, err, errFull)
		require.ErrorContains(t, err, o.Output, "it says where")
		if from == 0 {
			require.ErrorContains(t, err, "--memory")
		}
		requireKept(t, o.Output)
	}
}

// countdown is a context that ends after it has been asked n times.
type countdown struct {
	context.Context
	left   atomic.Int64
	cancel context.CancelFunc
}

func (c *countdown) Err() error {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

func TestCancelledAnywhere(t *testing.T) {
	o := failing(t)
	o.Output = write(t, t.TempDir(), "out.wst", "old")
	o.Overwrite = true
	o.Inject(nil, 100)
	ended := false
	for n := int64(1); !ended && n < 500; n++ {
		inner, cancel := context.WithCancel(context.Background())
		ctx := &countdown{Context: inner, cancel: cancel}
		ctx.left.Store(n)
		report, err := convert.Run(ctx, o)
		cancel()
		if err == nil {
			require.NotNil(t, report)
			ended = true
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, strings.Count(err.Error(), "context canceled"), err)
		requireKept(t, o.Output)
	}
	require.True(t, ended, "in the end it is not asked any more")
}

func TestCancelledAtAnyTime(t *testing.T) {
	header, rows := table(2000, 20)
	in := write(t, t.TempDir(), "in.csv", header+strings.Join(rows, ""))
	out := write(t, t.TempDir(), "out.wst", "old")
	for after := time.Duration(0); after < 100*time.Millisecond; after = after*3/2 + 100*time.Microsecond {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		o := options(in)
		o.Output, o.Overwrite = out, true
		_, err := convert.Run(ctx, o)
		cancel()
		if err == nil {
			return
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		requireKept(t, out)
	}
}

func TestProgressCountsEveryByte(t *testing.T) {
	header, rows := table(300, 9)
	dir := t.TempDir()
	size := int64(0)
	for i := range 3 {
		text := header + strings.Join(rows[i*500:(i+1)*500], "")
		write(t, dir, fmt.Sprintf("%d.csv", i), text)
		size += int64(len(text))
	}
	var read, total atomic.Int64
	o := options(dir)
	o.Progress = func(n, of int64) {
		read.Add(n)
		total.Store(of)
	}
	run(t, o)
	require.Equal(t, size, read.Load())
	require.Equal(t, size, total.Load())
}
