package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

func newExport(a *app) *cobra.Command {
	var (
		tickers  list
		from, to string
		kind     string
		out      string
		force    bool
		noVerify bool
	)
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the rows as CSV, Parquet, Arrow or NumPy arrays",
		Long: `export writes rows in the order of the file: by ticker, then by time. An output appears
complete or not at all, and an existing one is kept unless --force is given. Before anything
is written every byte of FILE is checked, as by ` + "`wstore verify`" + `, unless --no-verify is given.

csv, parquet and arrow are one long table: ticker, time, the columns in their order, and for
each break set but those of --max-gap a column that counts its breaks. It has the name of
the column that made them if that is not stored itself, else the set's name. The table goes
to standard output or to -o FILE, whose ending chooses the format if --format is not given:
.parquet, .arrow, .feather, and csv otherwise. Memory is bounded, whatever the file's size.

csv: numbers are the shortest that give the same float32 again, missing cells are empty.
Times are dates if the file has no others, else RFC 3339 in UTC. FILE is compressed if its
name ends in .gz.

parquet, arrow: ticker is a dictionary of strings, times are timestamps in the file's unit
(in Parquet seconds are milliseconds) and zone, without a zone if the file has none; numbers
are float32, missing ones null. Parquet is compressed with zstd. Arrow is not compressed: a
file (Feather version 2) that others can map, or a stream on standard output and in a FILE
ending in .arrows. The key wstore of the metadata holds JSON that tells groups, roles,
reaches, break rules and tickers without rows; see docs/export.md.

Converted with --ticker ticker --time time, the options for columns, groups, targets, masks,
gaps, breaks and zone that made the file, and no --time-format, a table of all rows gives the
same content digest. Tickers without rows have no place in it.

npy: a folder -o DIR of arrays for np.load(…, mmap_mode="r"):
  NAME.npy          for each group: rows × columns, float32 (missing: NaN) or int64
  time.npy          int64, one for each row, in the file's unit
  ticker_start.npy  int64, tickers + 1: ticker i has the rows from start[i] to start[i+1]
  meta.json         names of tickers, groups, files and columns; unit of the times`,
		Example: `  wstore export prices.wst > prices.csv
  wstore export prices.wst -o prices.parquet
  wstore export prices.wst --format arrow | python train.py
  wstore export prices.wst --tickers AAPL,MSFT --from 2016-01-01 -o two.csv.gz
  wstore export prices.wst --format npy -o arrays`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "-" {
				out = ""
			}
			if kind == "" {
				kind = formatOf(out)
			}
			switch {
			case !slices.Contains(exportFormats, kind):
				return usagef("--format %q; must be csv, parquet, arrow or npy", kind)
			case kind == "npy" && out == "":
				return usagef("--format npy writes a folder; name it with -o")
			case kind != "csv" && out == "" && a.tty:
				return usagef("--format %s is not for a terminal; name a file with -o, or use a pipe", kind)
			}
			s, err := a.open(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			v, err := s.View()
			if err != nil {
				return err
			}
			defer v.Release()
			p, err := selectRows(s, v, tickers, from, to)
			if err != nil {
				return err
			}
			// Looked at early, so that no work is lost; what takes the name meanwhile is noticed when the output gets it.
			if kind == "npy" {
				err = checkFolder(out, force)
			} else if out != "" {
				err = checkFile(out, force, args[0])
			}
			if err != nil {
				return err
			}
			if !noVerify {
				if err := s.Verify(cmd.Context()); errors.Is(err, format.ErrCorrupt) {
					return tell(err, "%s; --no-verify exports it nevertheless", err)
				} else if err != nil {
					return err
				}
			}
			if kind == "npy" {
				err = p.npy(cmd.Context(), out, force)
			} else {
				err = p.table(cmd.Context(), a, kind, out, force)
			}
			if err == nil && out != "" {
				a.note("wrote %s of %s to %s", plural(p.rows, "row"), plural(len(p.series), "ticker"), out)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.Var(&tickers, "tickers", "only tickers `A,B`")
	f.StringVar(&from, "from", "", "only rows at or after `TIME`")
	f.StringVar(&to, "to", "", "only rows before `TIME`")
	f.StringVar(&kind, "format", "", "csv, parquet, arrow or npy (default: by the ending of OUT, else csv)")
	f.StringVarP(&out, "output", "o", "", "write to `OUT` in place of standard output")
	f.BoolVarP(&force, "force", "f", false, "replace an existing output")
	f.BoolVar(&noVerify, "no-verify", false, "don't check FILE first: damaged data may be written")
	completeNames(cmd, "tickers", tickerNames)
	if err := cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
	return cmd
}

var exportFormats = []string{"csv", "parquet", "arrow", "npy"}

// formatOf returns the format that an output's name asks for.
func formatOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".parquet", ".pq":
		return "parquet"
	case ".arrow", ".arrows", ".feather", ".ipc":
		return "arrow"
	}
	return "csv"
}

// panel is the rows that are exported.
type panel struct {
	s      *reader.Store
	v      *reader.View
	series []series
	rows   int64
	names  tableNames

	categories map[string][]string // by column
}

// series is the rows [from, to) of a ticker.
type series struct{ ticker, from, to int }

// selectRows finds the rows of the chosen tickers, all if nil, in the order of the file.
func selectRows(s *reader.Store, v *reader.View, names list, from, to string) (*panel, error) {
	p := &panel{s: s, v: v, names: namesFor(s.Meta().Schema), categories: map[string][]string{}}
	for _, g := range s.Meta().Schema.Groups {
		for _, c := range g.Columns {
			texts, err := s.Categories(c.Name)
			if err != nil {
				return nil, err
			}
			if texts != nil {
				p.categories[c.Name] = texts
			}
		}
	}
	var chosen []int
	for _, name := range names {
		t, err := s.Ticker(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, t)
	}
	if names == nil {
		for t := range s.Tickers() {
			chosen = append(chosen, t)
		}
	}
	slices.Sort(chosen)
	parser := newTimeParser(s)
	first, behind, err := parser.parseRange(from, to)
	if err != nil {
		return nil, err
	}
	return p, v.Guard(func() error {
		for _, t := range slices.Compact(chosen) {
			times, err := v.Times(t)
			if err != nil {
				return err
			}
			lo, hi := parser.rows(times, first, behind)
			p.series = append(p.series, series{t, lo, hi})
			p.rows += int64(hi - lo)
		}
		return nil
	})
}

// table writes the rows as one long table to a file, or to standard output if path is empty.
func (p *panel) table(ctx context.Context, a *app, kind, path string, force bool) error {
	ending := strings.ToLower(filepath.Ext(path))
	write := func(w io.Writer) error {
		switch {
		case kind == "parquet":
			return p.writeParquet(ctx, w)
		case kind == "arrow":
			return p.writeArrow(ctx, w, path == "" || ending == ".arrows")
		case ending == ".gz":
			return writeGzip(w, func(w io.Writer) error { return p.writeCSV(ctx, w) })
		}
		return p.writeCSV(ctx, w)
	}
	if path == "" {
		p.noteTable(a, kind)
		return write(a.out)
	}
	out, err := createFile(path, force)
	if err != nil {
		return err
	}
	p.noteTable(a, kind)
	return out.finish(write(out))
}

// noteTable tells what a table says otherwise than the file does.
func (p *panel) noteTable(a *app, kind string) {
	if p.names.ticker != "ticker" || p.names.time != "time" {
		a.note("the file has columns of these names, so tickers and times are called %q and %q", p.names.ticker, p.names.time)
	}
	if kind == "csv" { // the others' metadata say it
		l := p.labels()
		if n := len(l.Empty); n > 0 {
			a.note("%s without rows can't be said in CSV", plural(n, "ticker"))
		}
		var names []string
		for _, at := range l.Attributes {
			names = append(names, at.Name)
		}
		if len(names) > 0 {
			a.note("attributes of tickers can't be said in CSV: %s", some(names))
		}
	}
	for i, b := range p.s.Meta().Schema.Breaks {
		if name := p.names.breaks[i]; name != "" {
			a.note("column %q counts the breaks of %s", name, b.Name)
		}
	}
}
