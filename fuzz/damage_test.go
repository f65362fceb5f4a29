package fuzz

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/reader"
)

// TestDamage flips every bit of a small file, cuts it at every byte and extends it: no damage passes unnoticed, and
// nothing that can be read of a damaged file makes the reader panic.
func TestDamage(t *testing.T) {
	file := vectors(t, "section-19.wst")["section-19.wst"]
	_, err := reader.OpenBytes(file, &reader.Options{Verify: true})
	require.NoError(t, err)

	b := bytes.Clone(file)
	for at := range b {
		for bit := range 8 {
			if testing.Short() && at > 512 && at < 8192 && bit != at%8 {
				continue
			}
			b[at] ^= 1 << bit
			requireDamaged(t, b, "bit %d of byte %d is flipped", bit, at)
			b[at] ^= 1 << bit
		}
	}
	require.True(t, bytes.Equal(file, b))
	for n := range file {
		requireDamaged(t, file[:n:n], "it is cut to %d bytes", n)
	}
	for _, more := range [][]byte{{0}, {0xff}, {'\n'}, make([]byte, 7), make([]byte, 8), make([]byte, 40), make([]byte, 4096), file[:512], file[len(file)-40:], file} {
		longer := append(bytes.Clone(file), more...)
		requireDamaged(t, longer, "%d bytes follow", len(more))
	}
}

func requireDamaged(t *testing.T, b []byte, what string, args ...any) {
	s, err := reader.OpenBytes(b, nil)
	if err == nil {
		for _, q := range queries(s) {
			useWindows(t, s, q)
		}
		err = s.Verify(context.Background())
	}
	if err == nil {
		require.Fail(t, "the damage passed unnoticed", append([]any{what}, args...)...)
	}
	requireKnown(t, err)
}
