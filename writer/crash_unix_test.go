//go:build unix

package writer_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/wstore/wstore/writer"
)

// In a child process the tests' binary writes the big panel to the path that this variable holds.
const (
	childPath  = "WSTORE_TEST_WRITE"
	childLimit = "WSTORE_TEST_LIMIT" // no file may become larger than 64 KiB
)

func TestMain(m *testing.M) {
	path := os.Getenv(childPath)
	if path == "" {
		os.Exit(m.Run())
	}
	if os.Getenv(childLimit) != "" {
		limit := unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			panic(err)
		}
	}
	_, _ = io.WriteString(os.Stdout, "begin\n")
	if err := write(path, bigPanel(), &writer.Options{Overwrite: true}); err != nil {
		_, _ = io.WriteString(os.Stdout, err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

// child returns a command that writes the big panel.
func child(t *testing.T, path string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self)
	c.Env = append(os.Environ(), append(env, childPath+"="+path)...)
	return c
}

// TestKilled kills a writer after longer and longer times, until one was done before. There is the whole old file or
// the whole new one.
func TestKilled(t *testing.T) {
	want := bigPanel().Build()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wst")
	killed := 0
	for wait := time.Duration(0); ; wait = wait*5/4 + time.Millisecond {
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
		c := child(t, path)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		time.Sleep(wait)
		_ = c.Process.Kill() // it may be done
		done := c.Wait() == nil
		got := read(t, path)
		if string(got) != "old" {
			require.True(t, slices.Equal(want, got))
		} else {
			require.False(t, done)
			killed++
		}
		for _, f := range files(t, dir) {
			require.True(t, f == "a.wst" || strings.HasPrefix(f, ".a.wst.") && strings.HasSuffix(f, ".tmp"), f)
		}
		if done {
			require.Equal(t, []string{"a.wst"}, files(t, dir), "it removed what those that were killed left behind")
			break
		}
	}
	require.Positive(t, killed)
}

// TestNoSpace writes where files may not become large enough, which fails like a full disk.
func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wst")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	out, err := child(t, path, childLimit+"=1").Output()
	require.Error(t, err)
	require.Contains(t, string(out), syscall.EFBIG.Error())
	require.Contains(t, string(out), path)
	require.Equal(t, []string{"a.wst"}, files(t, dir))
	require.Equal(t, "old", string(read(t, path)))
}

func TestPermissionsFollowUmask(t *testing.T) {
	for _, mask := range []int{0o022, 0o077} {
		old := syscall.Umask(mask)
		path := filepath.Join(t.TempDir(), "a.wst")
		err := write(path, bigPanel(), nil)
		syscall.Umask(old)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o666&^mask), info.Mode().Perm())
	}
}
