// Package fuzz holds the fuzz targets of the library and their corpora, and the exhaustive damage test. There is nothing
// to import: `go test ./fuzz` runs all of them on their seeds, `make fuzz` looks for new inputs.
//
//	FuzzOpen       any bytes as a file
//	FuzzFixup      valid files with edits, their checksums made right again
//	FuzzIndex      any bytes as a window index
//	FuzzCSV        any bytes as a CSV file
//	FuzzColumnar   files of Parquet and Arrow with edits
//	FuzzRoundTrip  random panels and queries: writer, reader and oracle agree
//
// A target of files does with one that opens all that a reader can do, so that a panic anywhere is found.
package fuzz
