package format_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/writer"
)

// Decode reads what a file says of itself, and none of its data.
func ExampleDecode() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "prices.wst")
	schema := &format.Schema{
		Unit:   format.Second,
		Groups: []format.Group{{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "open"}, {Name: "close"}}}},
	}
	w, err := writer.Create(path, schema, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Begin("AAPL"); err != nil {
		log.Fatal(err)
	}
	cells := writer.Cells{F32: []float32{10, 11, 11, format.Missing(), 12, 14}}
	if err := w.Append([]int64{0, 86400, 172800}, []writer.Cells{cells}); err != nil {
		log.Fatal(err)
	}
	if err := w.Finish(context.Background(), nil); err != nil {
		log.Fatal(err)
	}

	f, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		log.Fatal(err)
	}
	meta, err := format.Decode(info.Size(), func(off, n int64) ([]byte, error) {
		b := make([]byte, n)
		_, err := f.ReadAt(b, off)
		return b, err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("tickers:", meta.Tickers.Names, meta.Tickers.Rows)
	fmt.Println("first block at", meta.Blocks.Offset[0])
	for _, c := range meta.Index.Missing {
		fmt.Println("column", c.Column, "is missing in rows", meta.Index.MissingLists[c.Uses[0].List])
	}
	// Output:
	// tickers: [AAPL] [3]
	// first block at 12288
	// column 1 is missing in rows [{1 2}]
}
