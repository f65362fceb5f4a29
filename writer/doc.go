// Package writer writes sealed wstore files. It takes the rows of one ticker after another, in any order of tickers and
// in any number of pieces, and holds none of them in memory: they go to temporary files beside the output, from which
// [Writer.Finish] lays the file out, checks it with a reader and gives it its name.
//
//	Create ─ (Begin ─ (Break | Append)*)* ─ Finish
//	                                      └ Abort
//
// The same rows give the same bytes, in whatever order the tickers came. The file appears complete or not at all: until
// Finish has succeeded there is only a temporary file, which Finish removes if it fails, and Abort always.
//
// Disk space for the rows is needed twice. Memory is some 64 KiB a group, 512 KiB that a goroutine is writing, a copy of
// the rows of one Append, and per ticker some hundred bytes, its breaks, its runs of missing cells and 8 bytes for each
// 64 KiB of its rows; and what is needed for the categories and attributes of the options.
package writer
