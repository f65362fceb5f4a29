//go:build unix

package reader_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/reader"
)

// TestPipe opens a pipe that nobody writes to: an error, and no waiting.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := reader.Open(path, nil)
	require.ErrorContains(t, err, "not a regular file")
	_, err = reader.Open("/dev/null", nil)
	require.ErrorContains(t, err, "not a regular file")
}
