package fsys

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// temp makes a temporary file beside path with the given text.
func temp(t *testing.T, path, text string) string {
	t.Helper()
	f, err := OS{}.CreateTemp(path)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	return f.Name()
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestTemporaryFilesStandBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wst")
	a, b := temp(t, path, "a"), temp(t, path, "b")
	require.NotEqual(t, a, b)
	require.Equal(t, filepath.Dir(path), filepath.Dir(a))
	require.True(t, strings.HasSuffix(a, ".tmp"), a)
	require.True(t, strings.HasPrefix(filepath.Base(a), "."), a)
	_, err := OS{}.CreateTemp(filepath.Join(path, "no", "such"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestPublish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wst")
	require.NoError(t, OS{}.Publish(temp(t, path, "one"), path, false))
	require.Equal(t, "one", text(t, path))

	second := temp(t, path, "two")
	require.ErrorIs(t, OS{}.Publish(second, path, false), fs.ErrExist)
	require.Equal(t, "one", text(t, path))
	require.Equal(t, "two", text(t, second), "the temporary file is the caller's to remove")
	require.NoError(t, OS{}.Publish(second, path, true))
	require.Equal(t, "two", text(t, path))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestMap(t *testing.T) {
	f, err := OS{}.CreateTemp(filepath.Join(t.TempDir(), "a"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("wstore"), 0)
	require.NoError(t, err)
	m, err := f.Map(6)
	require.NoError(t, err)
	require.Equal(t, "wstore", string(m.Bytes()))
	require.NoError(t, m.Close())
}

// TestFaulty checks that exactly the n-th operation fails, and what a full disk leaves.
func TestFaulty(t *testing.T) {
	for n := range int64(6) {
		dir := t.TempDir()
		f := &Faulty{FS: OS{}, N: n, Short: true}
		require.False(t, f.Failed())
		path := filepath.Join(dir, "a")
		file, err := f.CreateTemp(path)
		if n == 0 {
			require.ErrorIs(t, err, ErrInjected)
			require.True(t, f.Failed())
			continue
		}
		require.NoError(t, err)
		name := file.Name()
		written, err := file.WriteAt([]byte("wstore"), 0)
		if n == 1 {
			require.ErrorIs(t, err, ErrInjected)
			require.Equal(t, 3, written)
			require.Equal(t, "wst", text(t, name))
		}
		var got []error
		b := make([]byte, 3)
		_, err = file.ReadAt(b, 0)
		got = append(got, err, file.Sync(), file.Close(), f.Publish(name, path, true))
		for i, err := range got {
			if int64(i) == n-2 {
				require.ErrorIs(t, err, ErrInjected, i)
			} else {
				require.NoError(t, err, i)
			}
		}
		require.True(t, f.Failed())
		if n == 5 {
			require.Equal(t, "wstore", text(t, name))
			require.NoError(t, f.Remove(name))
		} else {
			require.FileExists(t, path)
		}
	}
}
