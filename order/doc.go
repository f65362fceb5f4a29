// Package order says in which order windows come: keyed permutations that are computed, not stored. It is pure and
// knows no store: an order is a function (n, seed, epoch, position) → number, specified byte for byte in spec/ORDERS.md,
// so that every language trains on the same sequence. Each number of [0, n) comes exactly once an epoch.
//
//	positions  0 1 2 3 4 5 6 7 8 9 …        sequential: as they are
//	                                         exact: permuted over all n
//	chunks     │ 7 │ 2 │ 9 │ 0 │ 4 │ …       blocked: chunks permuted,
//	groups     └───────────┴─────────        and numbers permuted within each group of chunks
//
// Nothing here allocates after an order is made, and no order takes memory that depends on n.
package order
