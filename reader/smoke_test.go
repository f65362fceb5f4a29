package reader_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

func TestSmoke(t *testing.T) {
	p := filepath.Join(t.TempDir(), "a.wst")
	schema := &format.Schema{Groups: []format.Group{{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "x"}, {Name: "y"}}}}, Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 5}}}
	w, err := writer.Create(p, schema, nil)
	require.NoError(t, err)
	for _, n := range []string{"B", "A", "C"} {
		require.NoError(t, w.Begin(n))
		if n == "C" {
			continue
		}
		var times []int64
		var cells []float32
		for i := range 20000 {
			tm := int64(i)
			if i > 100 {
				tm += 100
			}
			times = append(times, tm)
			cells = append(cells, float32(i), float32(-i))
		}
		cells[2*7] = format.Missing()
		require.NoError(t, w.Append(times, []writer.Cells{{F32: cells}}))
	}
	require.NoError(t, w.Finish(context.Background(), []byte(`{}`)))
	for _, a := range []reader.Access{reader.Map, reader.Load, reader.Read} {
		s, err := reader.Open(p, &reader.Options{Access: a, Verify: true})
		require.NoError(t, err)
		ws, err := s.Windows(reader.Query{Lookback: 60, Targets: []string{"y"}})
		require.NoError(t, err)
		require.Equal(t, 2*(20000-8-60*2+1-1), ws.Len()+2*(93-60+1)*0)
		v, err := ws.View()
		require.NoError(t, err)
		x, y := v.At(0)
		t.Log(ws, len(x), x[0], y, ws.Locate(0))
		v.Release()
		require.NoError(t, s.Close())
	}
}
