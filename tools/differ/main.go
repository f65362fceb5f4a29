// Command differ is one half of the comparison of the Go reader with the Python reader; the other half is
// python/tests/test_differential.py.
//
//	differ corpus DIR    write files to compare: those of the fuzzers, damaged ones, and random panels with queries
//	differ answer        read questions from standard input, JSON values, and write an answer to each
//
// A question names a file and asks for windows, splits, folds, batches and statistics; or it describes orders. The answer
// says how the file opens, and digests of what there is. The corpus is the same on every machine.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	root := flag.String("root", ".", "the `directory` of the repository")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: differ [-root DIR] corpus DIR | differ answer <questions >answers")
		flag.PrintDefaults()
	}
	flag.Parse()
	var err error
	switch {
	case flag.NArg() == 2 && flag.Arg(0) == "corpus":
		err = writeCorpus(*root, flag.Arg(1))
	case flag.NArg() == 1 && flag.Arg(0) == "answer":
		err = answer(os.Stdin, os.Stdout)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "differ:", err)
		os.Exit(1)
	}
}

// answer answers every question before it reads the next.
func answer(in io.Reader, out io.Writer) error {
	questions := json.NewDecoder(bufio.NewReader(in))
	questions.DisallowUnknownFields()
	answers := json.NewEncoder(out)
	for {
		var q question
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("a question: %w", err)
		}
		a, err := q.answer()
		if err != nil {
			return fmt.Errorf("%s: %w", q.File, err)
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}
