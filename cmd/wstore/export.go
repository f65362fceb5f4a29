package main

import (
	"errors"
	"slices"

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
		Short: "Write the rows as CSV or as NumPy arrays",
		Long: `export writes rows in the order of the file: by ticker, then by time. An output appears
complete or not at all, and an existing one is kept unless --force is given. Before anything
is written every byte of FILE is checked, as by ` + "`wstore verify`" + `, unless --no-verify is given.

csv: ticker, time, then the columns in their order, to standard output or to -o FILE (which
is compressed if it ends in .gz). Numbers are the shortest that give the same float32 again,
missing cells are empty. Times are dates if the file has no others, else RFC 3339 in UTC.
Converted with --ticker ticker --time time, the options for columns, groups, targets, masks,
gaps and zone that made the file, and no --time-format, the CSV of all rows gives the same
content digest. Breaks other than gaps, and tickers without rows, can't be said in it.

npy: a folder -o DIR of arrays for np.load(…, mmap_mode="r"):
  NAME.npy          for each group: rows × columns, float32 (missing: NaN) or int64
  time.npy          int64, one for each row, in the file's unit
  ticker_start.npy  int64, tickers + 1: ticker i has the rows from start[i] to start[i+1]
  meta.json         names of tickers, groups, files and columns; unit of the times`,
		Example: `  wstore export prices.wst > prices.csv
  wstore export prices.wst --tickers AAPL,MSFT --from 2016-01-01 -o two.csv.gz
  wstore export prices.wst --format npy -o arrays`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if kind != "csv" && kind != "npy" {
				return usagef("--format %q; must be csv or npy", kind)
			}
			if out == "-" {
				out = ""
			}
			if kind == "npy" && out == "" {
				return usagef("--format npy writes a folder; name it with -o")
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
				err = p.csv(cmd.Context(), a, out, force)
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
	f.StringVar(&kind, "format", "csv", "csv or npy")
	f.StringVarP(&out, "output", "o", "", "write to `OUT` in place of standard output")
	f.BoolVarP(&force, "force", "f", false, "replace an existing output")
	f.BoolVar(&noVerify, "no-verify", false, "don't check FILE first: damaged data may be written")
	completeNames(cmd, "tickers", tickerNames)
	if err := cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"csv", "npy"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
	return cmd
}

// panel is the rows that are exported.
type panel struct {
	s      *reader.Store
	v      *reader.View
	series []series
	rows   int64
}

// series is the rows [from, to) of a ticker.
type series struct{ ticker, from, to int }

// selectRows finds the rows of the chosen tickers, all if nil, in the order of the file.
func selectRows(s *reader.Store, v *reader.View, names list, from, to string) (*panel, error) {
	p := &panel{s: s, v: v}
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
