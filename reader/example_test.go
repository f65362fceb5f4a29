package reader_test

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

// prices writes a small panel: 10 days of two tickers, close is 100, 101, … of AAPL and 200, 201, … of MSFT.
func prices() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	path = filepath.Join(dir, "prices.wst")
	schema := &format.Schema{Groups: []format.Group{
		{Name: "features", DType: format.Float32, Columns: []format.Column{{Name: "close"}, {Name: "volume"}}},
		{Name: "targets", DType: format.Float32, Columns: []format.Column{{Name: "return"}}},
	}}
	w, err := writer.Create(path, schema, nil)
	if err != nil {
		log.Fatal(err)
	}
	for i, ticker := range []string{"AAPL", "MSFT"} {
		var times []int64
		var features, targets writer.Cells
		for d := range 10 {
			times = append(times, time.Date(2024, 1, 1+d, 0, 0, 0, 0, time.UTC).Unix())
			features.F32 = append(features.F32, float32(100*(i+1)+d), 5000)
			targets.F32 = append(targets.F32, float32(d)/100)
		}
		if err := w.Begin(ticker); err != nil {
			log.Fatal(err)
		}
		if err := w.Append(times, []writer.Cells{features, targets}); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Finish(context.Background(), nil); err != nil {
		log.Fatal(err)
	}
	return path, func() { _ = os.RemoveAll(dir) }
}

// Windows of four rows, and the return of the day after as the target.
func Example() {
	path, remove := prices()
	defer remove()

	s, err := reader.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	w, err := s.Windows(reader.Query{Lookback: 4})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Len(), "windows")

	v, err := w.View() // its slices are valid until Release
	if err != nil {
		log.Fatal(err)
	}
	defer v.Release()
	x, y := v.At(7)
	pos := w.Locate(7)
	at, err := s.Time(pos.Ticker, pos.Anchor)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Tickers()[pos.Ticker], at.Format(time.DateOnly))
	fmt.Println("inputs", x)
	fmt.Println("targets", y)
	// Output:
	// 12 windows
	// MSFT 2024-01-05
	// inputs [201 5000 202 5000 203 5000 204 5000]
	// targets [0.05]
}

// A batch: some columns of any windows, packed, in the order of the numbers.
func ExampleWindows_Gather() {
	path, remove := prices()
	defer remove()

	s, err := reader.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	w, err := s.Windows(reader.Query{
		Inputs: []string{"close"}, Targets: []string{"close"}, Lookback: 3, Horizons: []int{1, 5},
	})
	if err != nil {
		log.Fatal(err)
	}
	ids := []int{3, 0}
	x := make([]float32, len(ids)*3) // 3 rows × 1 input
	y := make([]float32, len(ids)*2) // 2 horizons × 1 target
	if err := w.Gather(ids, x, y); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x)
	fmt.Println(y)
	// Output:
	// [200 201 202 100 101 102]
	// [203 207 103 107]
}

// A window belongs to a range of time by its anchor.
func ExampleStore_Windows() {
	path, remove := prices()
	defer remove()

	s, err := reader.Open(path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	split := time.Date(2024, 1, 7, 0, 0, 0, 0, time.UTC)
	for _, q := range []reader.Query{{To: split}, {From: split}, {From: split, Tickers: []string{"MSFT"}}} {
		q.Lookback = 2
		w, err := s.Windows(q)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(w.Len())
	}
	_, err = s.Windows(reader.Query{Lookback: 2, Tickers: []string{"msft"}})
	fmt.Println(err.Error()[:len(`no ticker "msft"`)])
	// Output:
	// 10
	// 6
	// 3
	// no ticker "msft"
}
