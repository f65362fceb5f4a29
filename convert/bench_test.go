package convert_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
)

// BenchmarkRun converts tables of 61 columns. Read is what reading and parsing alone take.
func BenchmarkRun(b *testing.B) {
	const size, tickers, columns = 128 << 20, 200, 61
	for _, c := range []struct {
		name   string
		byDate bool
		memory int64
	}{{"by date", true, 0}, {"newest first", false, 0}, {"by date, on disk", true, 32 << 20}} {
		in := big(b, tickers, columns, size, c.byDate)
		info, err := os.Stat(in)
		require.NoError(b, err)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(info.Size())
			b.ReportAllocs()
			o := convert.Options{Inputs: []string{in}, Output: filepath.Join(b.TempDir(), "out.wst"), Ticker: "ticker", Memory: c.memory, Overwrite: true}
			for b.Loop() {
				_, err := convert.Run(b.Context(), o)
				require.NoError(b, err)
			}
		})
		if c.memory != 0 || !c.byDate {
			continue
		}
		b.Run("read", func(b *testing.B) {
			b.SetBytes(info.Size())
			for b.Loop() {
				s, err := ingest.NewSurvey(b.Context(), []ingest.Source{{Path: in, Size: info.Size()}}, ingest.Options{})
				require.NoError(b, err)
				p := ingest.Plan{Ticker: 1, Time: 0}
				for i := range columns {
					p.Floats = append(p.Floats, i+2)
				}
				_, err = s.Read(b.Context(), p, func(*ingest.Batch) error { return nil })
				require.NoError(b, err)
			}
		})
	}
}
