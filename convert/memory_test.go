package convert_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
)

// big writes a table of a date, a ticker and float columns, of about size bytes: by date, or one ticker after another,
// each from its newest row back.
func big(t testing.TB, tickers, columns, size int, byDate bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "big.csv")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprint(w, "date,ticker")
	for c := range columns {
		fmt.Fprintf(w, ",f%d", c)
	}
	fmt.Fprintln(w)
	r := rand.New(rand.NewPCG(1, 2))
	var cells []string // of 1000 rows, which come again and again
	for range 1000 {
		var b strings.Builder
		for c := range columns {
			if c%7 == 6 { // a volume
				fmt.Fprintf(&b, ",%d", r.IntN(1e8))
			} else {
				b.WriteString("," + strconv.FormatFloat(r.NormFloat64()*100, 'f', 4+c%3, 64))
			}
		}
		cells = append(cells, b.String()+"\n")
	}
	rows := size / (len(cells[0]) + len("2000-01-01,T000"))
	days := rows / tickers
	start := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range days * tickers {
		day, ticker := i/tickers, i%tickers
		if !byDate {
			day, ticker = days-1-i%days, i/days
		}
		fmt.Fprintf(w, "%s,T%03d%s", start.Add(time.Duration(day)*time.Hour).Format("2006-01-02 15:04"), ticker, cells[i%len(cells)])
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	return path
}

// TestPeak converts for TestMemory, in a process of its own, and prints the most memory that it had.
func TestPeak(t *testing.T) {
	in := os.Getenv("WSTORE_TEST_CONVERT")
	if in == "" {
		t.Skip("TestMemory runs it")
	}
	memory, err := strconv.ParseInt(os.Getenv("WSTORE_TEST_MEMORY"), 10, 64)
	require.NoError(t, err)
	jobs, err := strconv.Atoi(os.Getenv("WSTORE_TEST_JOBS"))
	require.NoError(t, err)
	_, err = convert.Run(context.Background(), convert.Options{
		Inputs: []string{in}, Output: in + ".wst", Ticker: "ticker", Memory: memory, Jobs: jobs,
	})
	require.NoError(t, err)
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	fmt.Println(string(status))
}

func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("reads /proc, and converts some 100 MB")
	}
	for name, in := range map[string]string{
		"by date":      big(t, 500, 40, 100<<20, true),
		"newest first": big(t, 20, 40, 100<<20, false),
		"one ticker":   big(t, 1, 40, 100<<20, false),
		"narrow":       big(t, 3, 1, 40<<20, false),
	} {
		for _, c := range []struct {
			memory int64
			jobs   int
		}{{16 << 20, 2}, {16 << 20, 8}, {48 << 20, 1}} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestPeak$", "-test.v", "-test.timeout=90s")
			cmd.Env = append(os.Environ(), "WSTORE_TEST_CONVERT="+in, fmt.Sprint("WSTORE_TEST_MEMORY=", c.memory), fmt.Sprint("WSTORE_TEST_JOBS=", c.jobs))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NoError(t, os.Remove(in+".wst"))
			peak := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(out)
			require.NotNil(t, peak, "%s", out)
			kib, err := strconv.ParseInt(string(peak[1]), 10, 64)
			require.NoError(t, err)
			t.Logf("%s, Memory %d MiB, %d jobs: at most %d MiB", name, c.memory>>20, c.jobs, kib>>10)
			require.LessOrEqual(t, kib<<10, c.memory+32<<20+int64(c.jobs)*16<<20, "the bound of Options.Memory")
		}
	}
}
