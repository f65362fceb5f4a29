package ingest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/wstore/wstore/ingest"
)

// Files of one ticker each, named after it.
func Example() {
	dir, err := os.MkdirTemp("", "ingest")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	write("AAPL.csv", "date,close,volume\n2013-02-08,67.8542,158168416\n2013-02-11,68.5614,129029425\n")
	write("BRK.B.csv", "date,close,volume\n2013-02-08,,3\n")

	ctx := context.Background()
	srcs, _, err := ingest.Sources([]string{dir})
	if err != nil {
		log.Fatal(err)
	}
	s, err := ingest.NewSurvey(ctx, srcs, ingest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	t, err := s.TimeColumn()
	if err != nil {
		log.Fatal(err)
	}
	p := ingest.Plan{Ticker: -1, Time: t, Floats: []int{s.Index("close"), s.Index("volume")}}
	stats, err := s.Read(ctx, p, func(b *ingest.Batch) error {
		for i := range b.Rows {
			day := time.Unix(0, b.Times[i]).UTC().Format(time.DateOnly)
			fmt.Println(b.Dict[b.Tickers[i]], day, b.Cells[2*i:2*i+2])
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Rows, "rows,", stats.Columns[0].Missing, "missing,", stats.Columns[1].Inexact, "inexact volume")
	// Output:
	// AAPL 2013-02-08 [67.8542 1.5816842e+08]
	// AAPL 2013-02-11 [68.5614 1.2902942e+08]
	// BRK.B 2013-02-08 [NaN 3]
	// 3 rows, 1 missing, 1 inexact volume
}
