package reader_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/order"
	"github.com/wstore/wstore/reader"
)

// A run that is stopped anywhere goes on from its state, kept as JSON, with the rest of the same epoch; any other state
// is refused.
func TestResumeFromState(t *testing.T) {
	s, err := reader.Open(save(t, t.TempDir(), steps(300, 200).Build()), nil)
	require.NoError(t, err)
	defer s.Close()
	w := windows(t, s, reader.Query{Lookback: 5})
	o := orderOf(t, w, order.KindExact, 7, 3)
	n := int64(w.Len())
	var all []int
	for b, err := range w.Batches(context.Background(), o, share(t, n, 0, n, 0, 1, order.Keep)) {
		require.NoError(t, err)
		all = append(all, b.IDs...)
	}
	for stop := range 4 {
		var got []int
		var kept []byte
		steps := 0
		for b, err := range w.Batches(context.Background(), o, share(t, n, 0, 40, 0, 1, order.Keep)) {
			require.NoError(t, err)
			got = append(got, b.IDs...)
			state, err := w.State(o, b.Next)
			require.NoError(t, err)
			kept, err = json.Marshal(state)
			require.NoError(t, err)
			if steps++; steps > stop {
				break
			}
		}
		var state reader.State
		require.NoError(t, json.Unmarshal(kept, &state))
		start, err := w.Resume(o, state)
		require.NoError(t, err)
		for b, err := range w.Batches(context.Background(), o, share(t, n, start, 33, 0, 1, order.Keep)) {
			require.NoError(t, err)
			got = append(got, b.IDs...)
		}
		require.Equal(t, all, got)

		for what, other := range map[string]func() error{
			"seed":  func() error { return second(w.Resume(orderOf(t, w, order.KindExact, 8, 3), state)) },
			"epoch": func() error { return second(w.Resume(orderOf(t, w, order.KindExact, 7, 4), state)) },
			"order": func() error { return second(w.Resume(orderOf(t, w, order.KindBlocked, 7, 3), state)) },
			"query": func() error {
				v := windows(t, s, reader.Query{Lookback: 6})
				return second(v.Resume(orderOf(t, v, order.KindExact, 7, 3), state))
			},
			"position": func() error { bad := state; bad.Position = n + 1; return second(w.Resume(o, bad)) },
		} {
			require.ErrorIs(t, other(), reader.ErrQuery, what)
		}
	}
}
