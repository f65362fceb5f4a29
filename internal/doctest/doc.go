// Package doctest runs the examples in README.md and docs/, so that what the
// documentation shows is what the tool does.
//
// A fenced block that is marked console holds commands, each after "$ ", and
// below each the output that it must give:
//
//	```console
//	$ wstore convert testdata/article-100x470 -o demo.wst --ticker Name
//	...
//	$ wstore inspect demo.wst | grep tickers
//	tickers  100
//	```
//
// The commands of one document run in order, by sh, in one empty directory that
// has a copy of testdata, with the tool built from this checkout first on the
// PATH. Standard output and error are compared together. A line "..." stands
// for any lines, and "..." inside a line for any text: use it for whatever
// depends on time or machine. A command must succeed; one that shows an error
// ends in "; echo $?". A command that ends in a backslash goes on in the next line.
//
// Blocks marked otherwise (sh, python, …) are not run.
//
//	go test ./internal/doctest -update
//
// writes the output of each command that differs into the document.
package doctest
