package f32

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// patterns are numbers whose bits must survive: NaNs with payloads, negative zero, subnormal ones.
var patterns = []uint32{0, 1 << 31, 1, 0x7fc00000, 0x7f800001, 0xffffffff, 0x3f800000, 0x00400000}

func littleEndian() (b []byte) {
	for _, p := range patterns {
		b = binary.LittleEndian.AppendUint32(b, p)
	}
	return b
}

func bits(s []float32) (b []uint32) {
	for _, v := range s {
		b = append(b, math.Float32bits(v))
	}
	return b
}

func TestViewSharesMemory(t *testing.T) {
	if !Native {
		t.Skip("no views on a big-endian machine")
	}
	b := AlignedBytes(32)
	copy(b, littleEndian())
	v, ok := View(b)
	require.True(t, ok)
	require.Equal(t, patterns, bits(v))
	require.Equal(t, len(v), cap(v))
	b[4] = 7
	require.Equal(t, uint32(1<<31|7), math.Float32bits(v[1]))

	i, ok := ViewInt64(b)
	require.True(t, ok)
	require.Len(t, i, 4)
	require.Equal(t, int64(binary.LittleEndian.Uint64(b)), i[0])
	require.Equal(t, b, Bytes(i))
	require.Equal(t, Address(b), Address(Bytes(i)))
}

func TestViewRefuses(t *testing.T) {
	b := AlignedBytes(32)
	for _, part := range [][]byte{b[:31], b[1:29], b[2:30], b[:30]} {
		_, ok := View(part)
		require.False(t, ok)
		_, ok = ViewInt64(part)
		require.False(t, ok)
	}
	_, ok := ViewInt64(b[4:20])
	require.False(t, ok)
	v, ok := View(nil)
	require.Equal(t, Native, ok)
	require.Empty(t, v)
}

func TestCopiesAgree(t *testing.T) {
	b := littleEndian()
	got := make([]float32, len(patterns))
	Decode(got, b)
	require.Equal(t, patterns, bits(got))
	require.Equal(t, append([]byte{9}, b...), Append([]byte{9}, got))

	times := []int64{0, -1, math.MinInt64, math.MaxInt64, 1 << 40}
	var want []byte
	for _, v := range times {
		want = binary.LittleEndian.AppendUint64(want, uint64(v))
	}
	require.Equal(t, want, AppendInt64(nil, times))
	back := make([]int64, len(times))
	DecodeInt64(back, want)
	require.Equal(t, times, back)
	require.Nil(t, Append(nil, nil))
}

func TestAlignedBytes(t *testing.T) {
	for n := range 20 {
		b := AlignedBytes(n)
		require.Len(t, b, n)
		require.Equal(t, n, cap(b))
		require.Zero(t, Address(b)%8)
		require.False(t, slices.ContainsFunc(b, func(v byte) bool { return v != 0 }))
	}
}
