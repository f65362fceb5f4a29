package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/order"
)

// An order of nothing has one group without positions, and asking for a position is a panic that says so.
func TestEmpty(t *testing.T) {
	o := must(order.Blocked(0, 1, 2, 3, 4))
	require.EqualValues(t, 1, o.Groups())
	from, to := o.Group(0)
	require.Zero(t, from)
	require.Zero(t, to)
	o.Chunks(0, func(from, to int64) bool {
		require.Fail(t, "a chunk of nothing")
		return true
	})
	require.PanicsWithValue(t, "order: position 0 of 0", func() { o.GroupOf(0) })
	require.PanicsWithValue(t, "order: position 0 of 0", func() { o.At(0) })
	w, k := order.ChunkSize(0, 1, 0, 0)
	require.True(t, w > 0 && k > 0)
	require.Equal(t, "Kind(9)", order.Kind(9).String())
	require.Equal(t, "Tail(9)", order.Tail(9).String())
}
