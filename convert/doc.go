// Package convert makes a store of files of prices: it reads them with ingest, sorts, finds duplicates and gaps, writes
// with writer, and reports everything that it left out or changed.
//
//	inputs ─ ingest: batches of typed rows ─ series: rows by ticker, sorted; to disk when memory is short
//	                                                 │ merged, duplicates resolved
//	                     report ◄─ reader ◄─ file ◄─ writer
//
// Memory is bounded by [Options.Memory], whatever the size and order of the input. Disk space beside the output is needed
// twice for the rows, and while the inputs are read once for those that don't fit in memory. The output is the same, byte
// for byte, whatever the number of cores and the order in which the inputs are named, and appears complete or not at all.
package convert
