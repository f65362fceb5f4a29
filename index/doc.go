// Package index decides which windows of a panel a query has, and numbers them (section 11 of the specification).
//
// It is pure arithmetic on a store's window index, which lists breaks and runs of missing cells: no cell is read and
// nothing is done per window. For each stretch between breaks, the anchors that the lookback and the targets leave
// form one interval, and every run of missing cells removes another, widened by the rows at which a window would
// touch it. Here the lookback is 3, the horizon 1, and x is the only input and target:
//
//	row        0 1 2 3 4 5 6 7 8 9 a b c d e f
//	x          x x x x x x . x x x x|x x x x x     . missing   | break
//	lookback       - - - - - - - - -     - - -     3 rows of one stretch up to the anchor
//	target     - - - - - - - - - -   - - - -       1 row of it behind the anchor
//	missing              x x x x                   row 6 is in the windows of 6, 7, 8 and the target of 5
//	anchors        2 3 4         9       d e
//	stride 2       2   4         9       d         each maximal run of anchors starts afresh
//
// What remains is kept as arithmetic progressions of anchors, the runs; single anchors that follow each other join.
// Prefix sums over their lengths number the windows,
//
//	number       0 1       2 3
//	run          2 + 2k    9 + 4k
//
// and a table that maps equal ranges of numbers (the buckets) to the run of their first number finds the run of a
// window without a search, so long as few runs share a bucket:
//
//	bucket b = i >> shift  →  first run of b  →  (almost always) the run of i  →  anchor = base + i × step
//
// Time and memory to build a numbering grow with tickers, stretches and missing runs, never with rows or windows. A
// run takes 24 bytes and at most 8 for its buckets, whatever number of windows it holds.
package index
