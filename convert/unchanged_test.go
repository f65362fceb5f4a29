package convert_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
)

func TestIfChanged(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir, "in/a.csv", "date,ticker,x,c\n2024-01-02,A,1,u\n2024-01-02,A,1,u\n2024-01-03,A,2,v\n2024-01-04,A,oops,v\n")
	write(t, dir, "in/b.csv", "date,ticker,x,c\n2024-01-02,B,3,u\n")
	write(t, dir, "in/notes.md", "")
	file := write(t, dir, "static.csv", "ticker,beta\nA,1.5\n")
	base := convert.Options{
		Inputs: []string{filepath.Join(dir, "in")}, Output: filepath.Join(dir, "out.wst"), Ticker: "ticker", Columns: []string{"x"},
		Categories: []string{"c"}, Static: file, SkipBad: true, OnDuplicate: convert.DuplicateFirst, Lookback: 2, IfChanged: true, Version: "v1",
	}
	made, _ := run(t, base)
	require.False(t, made.Unchanged, "there was none")
	stat := func() os.FileInfo {
		info, err := os.Stat(base.Output)
		require.NoError(t, err)
		return info
	}
	before := stat()

	same := func(o convert.Options) {
		t.Helper()
		r, err := convert.Run(context.Background(), o)
		require.NoError(t, err)
		require.True(t, r.Unchanged)
		require.True(t, os.SameFile(before, stat()), "it is the same file")
		r.Unchanged, r.FirstSkipped = false, made.FirstSkipped
		want, err := json.Marshal(made)
		require.NoError(t, err)
		got, err := json.Marshal(r)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), "and the same report")
	}
	same(base)
	o := base
	o.Jobs, o.Memory, o.Overwrite = 1, 32<<20, true
	same(o)
	moved := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.Rename(filepath.Join(dir, "in"), moved))
	o.Inputs = []string{moved}
	same(o)
	require.NoError(t, os.Rename(moved, filepath.Join(dir, "in")))

	replaced := func(what string, o convert.Options) {
		t.Helper()
		r, err := convert.Run(context.Background(), o)
		require.NoError(t, err, what)
		require.False(t, r.Unchanged, what)
		require.False(t, os.SameFile(before, stat()), what)
		requireAlone(t, o.Output)
		before = stat()
	}
	for what, change := range map[string]func(o *convert.Options){
		"align":    func(o *convert.Options) { o.Align = 64 },
		"version":  func(o *convert.Options) { o.Version = "v2" },
		"columns":  func(o *convert.Options) { o.Columns = nil },
		"fill":     func(o *convert.Options) { o.Fills = []convert.Fill{{Column: "x", Value: "0"}} },
		"category": func(o *convert.Options) { o.Categories = nil },
		"static":   func(o *convert.Options) { o.Static = "" },
		"gap":      func(o *convert.Options) { o.MaxGap = 1e12 },
	} {
		o := base
		change(&o)
		replaced(what, o)
		replaced("back from "+what, base)
	}
	write(t, dir, "in/b.csv", "date,ticker,x,c\n2024-01-02,B,4,u\n")
	replaced("content of the same length", base)
	write(t, dir, "in/c.csv", "date,ticker,x,c\n")
	replaced("one more input", base)
	write(t, dir, "static.csv", "ticker,beta\nA,2.5\n")
	replaced("attributes", base)
	require.NoError(t, os.Rename(filepath.Join(dir, "in/c.csv"), filepath.Join(dir, "in/d.csv")))
	replaced("a name, of which the ticker may come", base)
	require.NoError(t, os.Truncate(base.Output, 100))
	replaced("damaged", base)

	// What is no store is not replaced, and neither is one if the inputs are bad.
	write(t, dir, "out.wst", "a diary")
	_, err := convert.Run(context.Background(), base)
	require.ErrorContains(t, err, "is not a store")
	require.ErrorContains(t, err, "--force replaces it")
	b, err := os.ReadFile(base.Output)
	require.NoError(t, err)
	require.Equal(t, "a diary", string(b))
	require.NoError(t, os.Remove(base.Output))
	r, err := convert.Run(context.Background(), base)
	require.NoError(t, err)
	require.False(t, r.Unchanged)
	before = stat()
	require.NoError(t, os.WriteFile(in, []byte("date,ticker,x,c\n2024-01-02,A\n"), 0o666))
	base.SkipBad = false
	_, err = convert.Run(context.Background(), base)
	var row *ingest.RowError
	require.ErrorAs(t, err, &row)
	require.True(t, os.SameFile(before, stat()))
	requireAlone(t, base.Output)
}

func TestIfChangedOfStandardInput(t *testing.T) {
	o := convert.Options{Inputs: []string{"-"}, Ticker: "ticker", Output: filepath.Join(t.TempDir(), "out.wst"), IfChanged: true}
	for i, text := range []string{"date,ticker,x\n2024-01-02,A,1\n", "date,ticker,x\n2024-01-02,A,1\n", "date,ticker,x\n2024-01-02,A,2\n"} {
		o.Stdin = strings.NewReader(text)
		r, err := convert.Run(context.Background(), o)
		require.NoError(t, err)
		require.Equal(t, i == 1, r.Unchanged)
		requireAlone(t, o.Output)
	}
}

// The hashes in the provenance are those of the files.
func TestInputHashes(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 5 {
		text := "date,x\n" + strings.Repeat(fmt.Sprintf("2024-01-0%d,1\n", i+1), 1+i*60_000)
		write(t, dir, fmt.Sprintf("%d.csv", i), text)
		want = append(want, fmt.Sprintf(`{"name":"%d.csv","bytes":%d,"xxh64":"%016x"}`, i, len(text), xxhash.Sum64String(text)))
	}
	_, s := run(t, convert.Options{Inputs: []string{dir}, OnDuplicate: convert.DuplicateFirst})
	text, err := s.Provenance()
	require.NoError(t, err)
	require.Contains(t, string(text), `"inputs":[`+strings.Join(want, ",")+"]")
}
