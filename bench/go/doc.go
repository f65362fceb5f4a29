// Package bench measures the Go reader against what the machine can do: slicing a slice that is known, and copying
// memory. Each comparison runs both sides in turn, on different places of one file, and reports the ratio.
//
//	go test -run='^$' -bench=. -count=5 ./bench/go
package bench
