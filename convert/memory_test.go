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

	"github.com/klauspost/compress/zstd"
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
	report, err := convert.Run(context.Background(), convert.Options{
		Inputs: []string{in}, Output: in + ".wst", Ticker: "ticker", Memory: memory, Jobs: jobs,
	})
	require.NoError(t, err)
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	fmt.Println("digest", report.Digest)
	fmt.Println(string(status))
}

func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("reads /proc, and converts some 100 MB")
	}
	for _, in := range map[string]string{
		"by date":      big(t, 500, 40, 100<<20, true),
		"newest first": big(t, 20, 40, 100<<20, false),
		"one ticker":   big(t, 1, 40, 100<<20, false),
		"narrow":       big(t, 3, 1, 40<<20, false),
	} {
		for _, c := range []struct {
			memory int64
			jobs   int
		}{{16 << 20, 2}, {16 << 20, 8}, {48 << 20, 1}} {
			peak(t, in, c.memory, c.jobs)
		}
	}
}

// peak converts in a process of its own, makes sure that it kept to the bound of Options.Memory, and returns the digest.
// The process says itself how much it had: what the system tells its parent includes the parent's.
func peak(t *testing.T, in string, memory int64, jobs int) (digest string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPeak$", "-test.v", "-test.timeout=300s")
	cmd.Env = append(os.Environ(), "WSTORE_TEST_CONVERT="+in, fmt.Sprint("WSTORE_TEST_MEMORY=", memory), fmt.Sprint("WSTORE_TEST_JOBS=", jobs))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Remove(in+".wst"))
	found := regexp.MustCompile(`(?s)digest (\w+).*VmHWM:\s*(\d+) kB`).FindSubmatch(out)
	require.NotNil(t, found, "%s", out)
	kib, err := strconv.ParseInt(string(found[2]), 10, 64)
	require.NoError(t, err)
	t.Logf("%s, Memory %d MiB, %d jobs: at most %d MiB", filepath.Base(in), memory>>20, jobs, kib>>10)
	require.LessOrEqual(t, kib<<10, memory+32<<20+int64(jobs)*16<<20, "the bound of Options.Memory")
	return string(found[1])
}

// large writes a table of several times 256 MiB, compressed: half of its rows are of one ticker, which takes more than that
// alone. They come ticker by ticker, from the newest back, or by date.
func large(t *testing.T, byDate bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "large.csv.zst")
	f, err := os.Create(path)
	require.NoError(t, err)
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest))
	require.NoError(t, err)
	w := bufio.NewWriterSize(z, 1<<20)
	const columns, minutes, others = 40, 1_700_000, 100
	fmt.Fprint(w, "date,ticker")
	for c := range columns {
		fmt.Fprintf(w, ",f%d", c)
	}
	fmt.Fprintln(w)
	var cells [997]string // which come again and again
	for i := range cells {
		for c := range columns {
			cells[i] += fmt.Sprintf(",%d.%d", (i*7+c)%90, (i+c*3)%10)
		}
		cells[i] += "\n"
	}
	start := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
	line := make([]byte, 0, 512)
	row := func(minute, ticker int) {
		line = start.Add(time.Duration(minute)*time.Minute).AppendFormat(line[:0], "2006-01-02 15:04")
		line = append(strconv.AppendInt(append(line, ",T"...), int64(ticker), 10), cells[(minute*3+ticker)%len(cells)]...)
		_, err := w.Write(line)
		require.NoError(t, err)
	}
	// Ticker 0 has every minute, the others one of them after the other.
	if byDate {
		for m := range minutes {
			row(m, 0)
			row(m, 1+m%others)
		}
	} else {
		for m := minutes - 1; m >= 0; m-- {
			row(m, 0)
		}
		for k := range others {
			for m := minutes - others + k; m >= 0; m -= others {
				row(m, 1+k)
			}
		}
	}
	require.NoError(t, w.Flush())
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	return path
}

// TestMemoryOfLargeInput converts 730 MB of text, and as much in rows, within 256 MiB.
func TestMemoryOfLargeInput(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("reads /proc, and needs 2 GB of disk")
	}
	var digests []string
	for _, byDate := range []bool{true, false} {
		in := large(t, byDate)
		const limit, jobs = 256 << 20, 2
		digests = append(digests, peak(t, in, limit, jobs))
	}
	require.Equal(t, digests[0], digests[1])
}
