package index_test

import (
	"fmt"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/index"
)

// The panel that the package comment draws: 16 rows, column 0 missing at row 6, a break before row 11.
func Example() {
	panel := index.Panel{
		Rows: []int64{16},
		Index: &format.Index{
			BreakLists:   [][]int64{{11}},
			MissingLists: [][]format.Run{{{From: 6, To: 7}}},
			Breaks:       [][]format.Use{{{Ticker: 0, List: 0}}},
			Missing:      []format.ColumnUses{{Column: 0, Uses: []format.Use{{Ticker: 0, List: 0}}}},
		},
	}
	w, err := index.New(panel, index.Query{
		Inputs: []int{0}, Targets: []int{0}, Breaks: []int{0},
		Lookback: 3, Horizons: []int64{1}, TargetLength: 1, Stride: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for run := range w.Runs() {
		fmt.Printf("%+v\n", run)
	}
	for i := range w.Len() {
		ticker, anchor := w.Locate(i)
		fmt.Println("window", i, "of ticker", ticker, "ends with row", anchor)
	}
	fmt.Println(w.Number(0, 9))
	fmt.Println(w.Number(0, 10))

	// Output:
	// {Ticker:0 First:2 Count:2 Step:2}
	// {Ticker:0 First:9 Count:2 Step:4}
	// window 0 of ticker 0 ends with row 2
	// window 1 of ticker 0 ends with row 4
	// window 2 of ticker 0 ends with row 9
	// window 3 of ticker 0 ends with row 13
	// 2 true
	// 0 false
}
