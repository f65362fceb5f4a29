package order_test

import (
	"fmt"

	"github.com/wstore/wstore/order"
)

func Example() {
	o, err := order.Exact(10, 42, 0)
	if err != nil {
		panic(err)
	}
	for rank := range int64(2) {
		s, err := order.NewShare(o.Len(), 0, 2, rank, 2, order.Drop)
		if err != nil {
			panic(err)
		}
		for step := range s.Steps() {
			from, n, _ := s.Step(step)
			ids := make([]int, n)
			o.Fill(ids, from)
			fmt.Println("rank", rank, "step", step, "numbers", ids, "next", s.Next(step))
		}
	}
	// Output:
	// rank 0 step 0 numbers [2 8] next 4
	// rank 0 step 1 numbers [5 6] next 8
	// rank 1 step 0 numbers [1 7] next 4
	// rank 1 step 1 numbers [4 9] next 8
}
