package convert_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/internal/fsys"
)

const long = "date,ticker,x\n2020-01-02,A,1\n2020-01-02,B,2\n2020-01-03,A,3\n"

// fromStdin are the options of a conversion of a stream into a folder of its own.
func fromStdin(t *testing.T, r io.Reader) convert.Options {
	return convert.Options{Inputs: []string{"-"}, Stdin: r, Ticker: "ticker", Output: filepath.Join(t.TempDir(), "out.wst")}
}

func TestStdin(t *testing.T) {
	var told, waiting int64
	o := fromStdin(t, iotest.OneByteReader(strings.NewReader(long)))
	o.Jobs = 1
	o.Progress = func(n, total int64) {
		if total == 0 {
			waiting += n
		} else {
			require.EqualValues(t, len(long), total)
			told += n
		}
	}
	report, err := convert.Run(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, []int64{3, 2, 1}, []int64{report.RowsKept, int64(report.Tickers), int64(report.Files)})
	require.EqualValues(t, len(long), told)
	require.EqualValues(t, len(long), waiting)
	b, err := os.ReadFile(o.Output)
	require.NoError(t, err)
	require.Contains(t, string(b), `"name":"standard input","bytes":59`)
	entries, err := os.ReadDir(filepath.Dir(o.Output))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Whatever fails, no file is left.
func TestStdinFails(t *testing.T) {
	requireNothing := func(o convert.Options) {
		entries, err := os.ReadDir(filepath.Dir(o.Output))
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	for n := int64(0); ; n++ {
		o := fromStdin(t, strings.NewReader(long))
		faulty := &fsys.Faulty{FS: fsys.OS{}, N: n}
		o.Inject(faulty, 1<<20)
		_, err := convert.Run(context.Background(), o)
		if !faulty.Failed() {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, fsys.ErrInjected)
		requireNothing(o)
	}

	broken := errors.New("broken")
	o := fromStdin(t, io.MultiReader(strings.NewReader(long), iotest.ErrReader(broken)))
	_, err := convert.Run(context.Background(), o)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "standard input: ")
	requireNothing(o)

	// The stream blocks when the conversion is ended.
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	o = fromStdin(t, r)
	o.Progress = func(int64, int64) { cancel() }
	go func() { _, _ = io.WriteString(w, long) }()
	_, err = convert.Run(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	requireNothing(o)

	o = fromStdin(t, strings.NewReader("date,ticker,x\n2020-01-02,A,1\n2020-01-03,B,2\n2020-01-03,A,y\n"))
	_, err = convert.Run(context.Background(), o)
	require.ErrorContains(t, err, `standard input:4: column "x": "y" is not a number`)
	requireNothing(o)

	for _, c := range []struct {
		o    convert.Options
		want string
	}{
		{convert.Options{Inputs: []string{"-", "a"}, Ticker: "t", Output: "x"}, "standard input (-) is one input of 2"},
		{convert.Options{Inputs: []string{"-"}, Ticker: "t", Output: "x"}, "there is no standard input"},
		{convert.Options{Inputs: []string{"-"}, Stdin: r, Output: "x"}, "no file name to take the ticker from"},
	} {
		_, err := convert.Run(context.Background(), c.o)
		var usage *convert.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, c.want)
	}
}
