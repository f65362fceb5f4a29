package oracle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Example is a line of the specification's table of examples, section 11.3.
type Example struct {
	Line    string
	Query   Query
	Anchors []int64
}

// ExamplePanel returns the panel of the examples.
func ExamplePanel() *Panel {
	x, y := make([]float32, 10), make([]float32, 10)
	times := make([]int64, 10)
	for r := range times {
		x[r], y[r], times[r] = float32(r), float32(10*r), int64(r)
	}
	x[3] = float32(math.NaN())
	return &Panel{
		Groups:    []Group{{Name: "features", Columns: []Column{{Name: "x"}, {Name: "y"}}}},
		BreakSets: []BreakSet{{Name: "gap"}},
		Tickers: []Ticker{{
			Name: "A", Times: times, Cells: [][]float32{x, y}, Ends: make([][]int64, 2), Breaks: [][]int64{{7}},
		}},
	}
}

// Examples reads the table of examples out of the specification's text.
func Examples(spec string) ([]Example, error) {
	const mark = "<!-- table: examples -->\n"
	_, table, found := strings.Cut(spec, mark)
	lines := strings.Split(table, "\n")
	if !found || len(lines) < 3 || lines[0] != "| inputs | targets | L | H | M | S | breaks | anchors |" {
		return nil, fmt.Errorf("oracle: no table of examples, or not the expected columns")
	}
	var all []Example
	for _, line := range lines[2:] {
		cells := strings.Split(line, "|")
		if len(cells) != 10 {
			break // behind the table
		}
		e := Example{Line: line, Query: Query{Targets: []string{}, Breaks: []string{}}}
		var err error
		numbers := func(i int, separator string) []int64 {
			var list []int64
			for _, f := range strings.Split(strings.TrimSpace(cells[i]), separator) {
				if f == "" {
					continue
				}
				v, bad := strconv.ParseInt(f, 10, 64)
				if bad != nil {
					err = fmt.Errorf("oracle: example %q: %w", line, bad)
				}
				list = append(list, v)
			}
			return list
		}
		number := func(i int) int64 {
			if list := numbers(i, " "); len(list) > 0 {
				return list[0]
			}
			return 0
		}
		e.Query.Inputs = strings.Fields(cells[1])
		e.Query.Targets = append(e.Query.Targets, strings.Fields(cells[2])...)
		e.Query.Lookback = number(3)
		e.Query.Horizons = numbers(4, ",")
		e.Query.TargetLength = number(5)
		e.Query.Stride = number(6)
		e.Query.Breaks = append(e.Query.Breaks, strings.Fields(cells[7])...)
		e.Anchors = numbers(8, " ")
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
