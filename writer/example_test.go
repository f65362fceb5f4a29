package writer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
	"github.com/wstore/wstore/writer"
)

// A panel of two tickers, with a break wherever more than three days lie between two rows.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "prices.wst")

	schema := &format.Schema{
		Unit: format.Second,
		Groups: []format.Group{
			{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "close"}, {Name: "volume"}}},
		},
		Breaks: []format.BreakSet{{Name: "gap", Kind: format.BreakGap, MaxGap: 3 * 86400}},
	}
	w, err := writer.Create(path, schema, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort() // does nothing once Finish was called
	day := func(d int) int64 { return time.Date(2024, 1, d, 0, 0, 0, 0, time.UTC).Unix() }
	for _, ticker := range []string{"MSFT", "AAPL"} { // in any order
		if err := w.Begin(ticker); err != nil {
			log.Fatal(err)
		}
		rows := writer.Cells{F32: []float32{ // close and volume, row by row
			370.6, 100,
			367.7, 200,
			format.Missing(), 150,
		}}
		if err := w.Append([]int64{day(2), day(3), day(9)}, []writer.Cells{rows}); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Finish(context.Background(), []byte(`{"source": "example"}`)); err != nil {
		log.Fatal(err)
	}

	s, err := reader.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(s.Tickers(), s.Rows(0), "rows each")
	fmt.Println("breaks before rows", s.Meta().Index.BreakLists[0])
	// Output:
	// [AAPL MSFT] 3 rows each
	// breaks before rows [2]
}
