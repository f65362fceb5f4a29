//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package convert_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/internal/fsys"
)

// TestChild converts its standard input for TestKilled, in a process of its own.
func TestChild(t *testing.T) {
	out := os.Getenv("WSTORE_TEST_OUTPUT")
	if out == "" {
		t.Skip("TestKilled runs it")
	}
	o := convert.Options{Inputs: []string{"-"}, Stdin: os.Stdin, Output: out, Ticker: "ticker", Overwrite: true}
	o.Inject(slow{fsys.OS{}}, 100)
	_, err := convert.Run(context.Background(), o)
	require.NoError(t, err)
}

// slow takes its time to write, so that there is a file to be killed with.
type slow struct{ fsys.FS }

type slowFile struct{ fsys.File }

func (s slow) CreateTemp(path string) (fsys.File, error) {
	f, err := s.FS.CreateTemp(path)
	return slowFile{f}, err
}

func (f slowFile) WriteAt(b []byte, off int64) (int, error) {
	time.Sleep(2 * time.Millisecond)
	return f.File.WriteAt(b, off)
}

// childOf starts a process that converts what is written to in.
func childOf(t *testing.T, out string) (cmd *exec.Cmd, in io.WriteCloser) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), "WSTORE_TEST_OUTPUT="+out)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, in
}

func temporaries(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestKilled kills conversions at different times. What they leave behind is removed by the next one, which leaves that
// alone which another is just using.
func TestKilled(t *testing.T) {
	header, rows := panel(400, 10)
	text := header + strings.Join(rows, "")
	dir := t.TempDir()
	out := filepath.Join(dir, "out.wst")
	left, most := 0, 0
	for wait := time.Duration(0); wait < 200*time.Millisecond; wait += 20 * time.Millisecond {
		cmd, in := childOf(t, out)
		go func() {
			_, _ = io.WriteString(in, text)
			if wait > 0 { // else it is killed while it waits for more
				_ = in.Close()
			}
		}()
		for begun := time.Now(); len(temporaries(t, dir)) == 0 && time.Since(begun) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(wait)
		_ = cmd.Process.Kill() // it may be done
		_ = cmd.Wait()
		if n := len(temporaries(t, dir)); n > 0 {
			left++
			most = max(most, n)
		}
		_, err := convert.Run(context.Background(), convert.Options{Inputs: []string{write(t, t.TempDir(), "in.csv", text)}, Output: out, Ticker: "ticker", Overwrite: true})
		require.NoError(t, err)
		require.Empty(t, temporaries(t, dir))
	}
	require.Positive(t, left)
	require.Greater(t, most, 1, "of several kinds")

	living, in := childOf(t, out)
	_, err := io.WriteString(in, text)
	require.NoError(t, err)
	for len(temporaries(t, dir)) == 0 {
		time.Sleep(time.Millisecond)
	}
	used := temporaries(t, dir)
	for range 3 {
		_, err := convert.Run(context.Background(), convert.Options{Inputs: []string{write(t, t.TempDir(), "in.csv", text)}, Output: out, Ticker: "ticker", Overwrite: true})
		require.NoError(t, err)
	}
	require.Equal(t, used, temporaries(t, dir))
	require.NoError(t, in.Close())
	require.NoError(t, living.Wait())
	require.Empty(t, temporaries(t, dir))
}
