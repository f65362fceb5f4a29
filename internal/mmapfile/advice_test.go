package mmapfile

import (
	"math"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPages(t *testing.T) {
	for _, c := range [][4]int64{
		{0, 0, 0, 0}, {1, 1, 0, pageSize}, {pageSize, pageSize + 1, pageSize, 2 * pageSize}, {pageSize - 1, pageSize, 0, pageSize},
	} {
		from, to := Pages(c[0], c[1])
		require.Equal(t, [2]int64{c[2], c[3]}, [2]int64{from, to})
	}
}

// Advice changes nothing that is read, and no range of bytes does harm.
func TestAdvice(t *testing.T) {
	content := make([]byte, 10*pageSize+77)
	for i := range content {
		content[i] = byte(i * 7)
	}
	m, f := mapped(t, content)
	for _, a := range []Advice{Random, Sequential, Normal} {
		m.Advise(a)
	}
	size := int64(len(content))
	for _, r := range [][2]int64{{0, size}, {5, 6}, {size - 1, size + 100}, {-9, 3}, {size, size + 1}, {7, 3}, {1 << 40, 1 << 41}, {size + 5*pageSize, size}, {0, math.MaxInt64 - pageSize}} {
		m.WillNeed(r[0], r[1])
		m.Populate(r[0], r[1])
	}
	require.Equal(t, content, m.Bytes())
	require.False(t, Resident(f, size+5), "there is no byte")
	if runtime.GOOS != "windows" {
		require.NoError(t, f.Truncate(pageSize))
		m.WillNeed(0, size)
		m.Populate(0, size)
	}
	gone, err := os.Open(f.Name())
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	require.False(t, Resident(gone, 0), "the file is closed")
}
