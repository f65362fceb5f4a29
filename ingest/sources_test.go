package ingest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder writes files into a new folder.
func folder(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func bases(srcs []Source) (names []string) {
	for _, s := range srcs {
		names = append(names, filepath.Base(s.Path))
	}
	return names
}

func TestSources(t *testing.T) {
	dir := folder(t, map[string]string{
		"b.csv": "12", "A.CSV": "1", "BRK.B.csv.gz": "", "t.Tsv": "", "README.md": "", "._b.csv": "", "LICENSE": "", "sub/c.csv": "", "x.txt": "", "y.txt": "",
	})
	in := func(name string) string { return filepath.Join(dir, name) }

	srcs, skipped, err := Sources([]string{dir})
	require.NoError(t, err)
	require.Equal(t, []string{"A.CSV", "BRK.B.csv.gz", "b.csv", "t.Tsv"}, bases(srcs))
	require.Equal(t, []string{in("._b.csv"), in("LICENSE"), in("README.md"), in("sub") + "/", in("x.txt"), in("y.txt")}, skipped)
	require.Equal(t, int64(2), srcs[2].Size)

	// Named twice in different ways, in any order; a name overrides the ending.
	again, skipped, err := Sources([]string{in("x.txt"), in("t.Tsv"), filepath.Join(dir, "sub", "..", "b.csv"), dir, dir})
	require.NoError(t, err)
	require.Equal(t, []string{"A.CSV", "BRK.B.csv.gz", "b.csv", "t.Tsv", "x.txt"}, bases(again))
	require.NotContains(t, skipped, in("x.txt"))

	srcs, skipped, err = Sources([]string{in("*")})
	require.NoError(t, err)
	require.Equal(t, []string{"A.CSV", "BRK.B.csv.gz", "b.csv", "t.Tsv"}, bases(srcs))
	require.Len(t, skipped, 6)
	srcs, _, err = Sources([]string{in("*.txt")})
	require.NoError(t, err)
	require.Equal(t, []string{"x.txt", "y.txt"}, bases(srcs))

	// Dot names are taken by a pattern that begins with a dot only.
	srcs, skipped, err = Sources([]string{in("*.csv")})
	require.NoError(t, err)
	require.Equal(t, []string{"b.csv"}, bases(srcs))
	require.Equal(t, []string{in("._b.csv")}, skipped)
	srcs, _, err = Sources([]string{in(".*.csv")})
	require.NoError(t, err)
	require.Equal(t, []string{"._b.csv"}, bases(srcs))

	// A file whose name is also a pattern is that file.
	odd := folder(t, map[string]string{"a[1].csv": ""})
	srcs, _, err = Sources([]string{filepath.Join(odd, "a[1].csv")})
	require.NoError(t, err)
	require.Equal(t, []string{"a[1].csv"}, bases(srcs))
}

// A link to nothing is an error only where it has the name of data, or was named.
func TestSourcesDanglingLinks(t *testing.T) {
	dir := folder(t, map[string]string{"A.csv": ""})
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{".#A.csv", "readme.lnk"} {
		if os.Symlink("/nope/user@host.123", in(name)) != nil {
			t.Skip("no links here")
		}
	}
	for _, path := range []string{dir, in("*")} {
		srcs, skipped, err := Sources([]string{path})
		require.NoError(t, err)
		require.Equal(t, []string{"A.csv"}, bases(srcs))
		require.Equal(t, []string{in(".#A.csv"), in("readme.lnk")}, skipped)
	}
	require.NoError(t, os.Symlink("/nope", in("B.csv")))
	for _, path := range []string{dir, in("*.csv"), in("B.csv")} {
		_, _, err := Sources([]string{path})
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.EqualError(t, err, in("B.csv")+" is a link to a file that does not exist")
	}
}

func TestSourcesErrors(t *testing.T) {
	dir := folder(t, map[string]string{"README.md": "", "empty/x": ""})
	for _, path := range []string{"none.csv", "none-*.csv", "no/such/folder"} {
		_, _, err := Sources([]string{filepath.Join(dir, path)})
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, path)
	}
	for _, path := range []string{"", "*", "empty", "[a"} {
		_, _, err := Sources([]string{filepath.Join(dir, path)})
		var unusable *UnusableError
		require.ErrorAs(t, err, &unusable, path)
	}
	_, _, err := Sources([]string{"nope"})
	require.EqualError(t, err, "nope does not exist")
	_, _, err = Sources([]string{"nope*.csv"})
	require.EqualError(t, err, "no file matches nope*.csv")
	_, _, err = Sources(nil)
	require.Error(t, err)
	_, _, err = Sources([]string{os.DevNull})
	require.ErrorContains(t, err, "not a regular file")
}

func TestSourceName(t *testing.T) {
	for path, want := range map[string]string{
		"a/BRK.B.csv": "BRK.B", "NA.csv": "NA", "000001.CSV.GZ": "000001", "x.tsv": "x", "x.txt.gz": "x", "AAPL": "AAPL", "AAPL.dat": "AAPL.dat",
		".csv": "", "a.csv.csv": "a.csv", "CON.csv": "CON", "AAPL .csv": "AAPL ",
	} {
		require.Equal(t, want, Source{Path: path}.Name(), path)
	}
}
