//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package fsys

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// In a child process the tests' binary makes a temporary file beside the path that this variable holds, and waits.
const childPath = "WSTORE_TEST_TEMP"

func TestMain(m *testing.M) {
	path := os.Getenv(childPath)
	if path == "" {
		os.Exit(m.Run())
	}
	f, err := OS{}.CreateTemp(path)
	if err != nil {
		panic(err)
	}
	if err := f.Close(); err != nil { // it stays in use
		panic(err)
	}
	fmt.Println(f.Name())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := (OS{}).Publish(f.Name(), path, true); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// child starts a process that holds a temporary file beside path. Closing in makes it publish the file and end.
func child(t *testing.T, path string) (cmd *exec.Cmd, in io.Closer, name string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), childPath+"="+path)
	in, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, in, line[:len(line)-1]
}

func TestAbandonedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wst")
	killed, _, left := child(t, path)
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())
	require.FileExists(t, left)
	living, in, used := child(t, path)
	require.NoFileExists(t, left, "the next process removes what was left behind")
	require.FileExists(t, used)

	// What only looks like one stays, and what another output left behind.
	var others []string
	for _, name := range []string{".a.wst.1-0123456789.tmp", ".a.wst.tmp", ".a.wst.x-01234567.tmp", "a.wst.1-01234567.tmp", ".b.wst.1-01234567.tmp", ".a.wst.1-01234567.tmp.old"} {
		others = append(others, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(others[len(others)-1], nil, 0o666))
	}
	own := temp(t, path, "mine")
	another := temp(t, path, "mine too")
	for _, name := range append(others, used, own, another) {
		require.FileExists(t, name)
	}
	require.NoError(t, OS{}.Remove(own))
	require.NoError(t, OS{}.Publish(another, path, true))

	require.NoError(t, in.Close())
	require.NoError(t, living.Wait())
	require.NoFileExists(t, used)
	count := 0
	inUse.Range(func(any, any) bool { count++; return true })
	require.Zero(t, count, "no mark is left")
}

// Many at the same time: nobody loses a file that it uses.
func TestTemporaryFilesOfManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wst")
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for range 50 {
				f, err := OS{}.CreateTemp(path)
				if !ok(t, err) {
					return
				}
				_, err = f.WriteAt([]byte{byte(k)}, 0)
				ok(t, err)
				ok(t, f.Close())
				b, err := os.ReadFile(f.Name())
				if ok(t, err) && (len(b) != 1 || b[0] != byte(k)) {
					t.Errorf("it holds %v", b)
				}
				ok(t, OS{}.Remove(f.Name()))
			}
		})
	}
	wg.Wait()
}

func ok(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}
