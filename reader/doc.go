// Package reader opens wstore files and reads windows of them without copying.
//
// A [Store] is an open file: one mapping of all of it, its structure checked when it was opened. A query of [Store.Windows]
// gives [Windows], which is arithmetic only: it knows how many windows there are and where each one stands. A [View]
// gives their memory:
//
//	file     ┌ block of AAPL ───────────────────┬ block of MSFT ──────┐
//	rows     │ 0 1 2 3 4 5 6 7 8 9              │ 0 1 2 3 4 5 6       │
//	window i │     └───────┘ At(i): 4 rows × all columns, a slice of the mapping
//
// Training copies once, into a batch: [Windows.Gather] does that for many windows on all cores.
//
// # Lifetimes
//
// Slices that a View returns are valid until its Release, and must not be written to: the memory is read-only. Close
// does not wait: the mapping goes when the last View is released. Windows hold nothing and need no closing; their
// methods fail once the store is closed.
//
// # Faults
//
// A mapped file that someone truncates, or a disk that fails, makes the machine fault when the memory is read. Inside
// this package that becomes an error, with the path and the byte. Code that reads a View's slices runs in
// [View.Guard] to get the same. Up to the end of its last page a truncated file reads as zeros without a fault, so the
// file's size is looked at too, after each batch. Truncating a file and extending it again shows nowhere but in
// [Store.Stale] and [Store.Verify].
package reader
