package writer_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/internal/fsys"
	"github.com/wstore/wstore/writer"
)

// TestEveryOperationFails makes the n-th operation on files fail, for every n until one run needs no n-th. Each failure
// must come out as an error, with an old file untouched, no new one under the name and nothing else left.
func TestEveryOperationFails(t *testing.T) {
	c := bigPanel()
	want := c.Build()
	for _, short := range []bool{false, true} {
		for _, old := range []string{"", "old"} {
			n := int64(0)
			for ; ; n++ {
				dir := t.TempDir()
				path := filepath.Join(dir, "a.wst")
				var before []string
				if old != "" {
					require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
					before = []string{"a.wst"}
				}
				f := &fsys.Faulty{FS: fsys.OS{}, N: n, Short: short}
				err := write(path, c, &writer.Options{FS: f, Overwrite: old != ""})
				if !f.Failed() {
					require.NoError(t, err)
					require.True(t, slices.Equal(want, read(t, path)))
					require.Equal(t, []string{"a.wst"}, files(t, dir))
					break
				}
				require.ErrorIs(t, err, fsys.ErrInjected, "operation %d", n)
				require.ErrorContains(t, err, path)
				require.Equal(t, before, files(t, dir), "operation %d", n)
				if old != "" {
					require.Equal(t, old, string(read(t, path)))
				}
			}
			require.Greater(t, n, int64(40), "operations")
		}
	}
}
