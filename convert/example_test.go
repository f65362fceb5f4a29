package convert_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

const example = `date,symbol,close,volume
2024-01-02,AAPL,185.64,82488700
2024-01-03,AAPL,184.25,58414500
2024-01-04,AAPL,181.91,71983600
2024-01-02,BRK.B,361.79,
2024-01-03,BRK.B,361.33,2979500
2024-01-12,BRK.B,364.24,2868500
`

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "prices.csv"), filepath.Join(dir, "prices.wst")
	if err := os.WriteFile(in, []byte(example), 0o666); err != nil {
		panic(err)
	}

	report, err := convert.Run(context.Background(), convert.Options{
		Inputs: []string{in}, Output: out, Ticker: "symbol", MaxGap: 4 * 24 * time.Hour,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Tickers, "tickers,", report.RowsKept, "rows")
	for _, c := range report.Columns {
		fmt.Printf("%s: %d missing, %d not exact in float32\n", c.Name, c.Missing, c.Inexact)
	}
	for _, g := range report.Gaps {
		fmt.Println("gap of", g.To.Sub(g.From), "from", g.From.Format(time.DateOnly))
	}

	s, err := reader.Open(out, nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	w, err := s.Windows(reader.Query{Lookback: 2, Inputs: []string{"close"}})
	if err != nil {
		panic(err)
	}
	for i := range w.Len() {
		p := w.Locate(i)
		fmt.Println(s.Tickers()[p.Ticker], "rows", p.First, "to", p.Anchor)
	}
	// Output:
	// 2 tickers, 6 rows
	// close: 0 missing, 5 not exact in float32
	// volume: 1 missing, 1 not exact in float32
	// gap of 216h0m0s from 2024-01-03
	// AAPL rows 0 to 1
	// AAPL rows 1 to 2
	// BRK.B rows 0 to 1
}

// A target that looks 20 rows ahead says so, that splits can leave out the windows whose labels they would share.
func ExampleOptions_targets() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	text := "date,close,ret_20,ret_week,trade,exit_time\n2024-01-02,185.64,0.02,0.01,-0.01,2024-01-05\n"
	if err := os.WriteFile(filepath.Join(dir, "AAPL.csv"), []byte(text), 0o666); err != nil {
		panic(err)
	}
	out := filepath.Join(dir, "features.wst")
	if _, err := convert.Run(context.Background(), convert.Options{
		Inputs: []string{filepath.Join(dir, "*.csv")}, Output: out,
		Targets: []string{"ret_20:20", "ret_week:7d", "trade:exit_time"},
	}); err != nil {
		panic(err)
	}

	s, err := reader.Open(out, nil)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	schema := s.Meta().Schema
	for _, g := range schema.Groups {
		for _, c := range g.Columns {
			switch c.ReachKind {
			case format.ReachRows:
				fmt.Printf("%s: %s, %d rows ahead\n", g.Name, c.Name, c.Reach)
			case format.ReachDuration:
				fmt.Printf("%s: %s, %s ahead\n", g.Name, c.Name, time.Duration(c.Reach)*schema.Unit.Duration())
			case format.ReachColumn:
				p := schema.Places()[c.Reach]
				fmt.Printf("%s: %s, up to the times in %s\n", g.Name, c.Name, schema.Groups[p.Group].Name)
			default:
				fmt.Printf("%s: %s\n", g.Name, c.Name)
			}
		}
	}
	// Output:
	// features: close
	// targets: ret_20, 20 rows ahead
	// targets: ret_week, 168h0m0s ahead
	// targets: trade, up to the times in label_end.exit_time
	// label_end.exit_time: exit_time
}
