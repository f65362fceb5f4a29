package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	_ "time/tzdata" // --tz works on machines without a zone database

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/format"
)

func newConvert(a *app) *cobra.Command {
	var o convert.Options
	var columns, targets, masks list
	var groups, breaks []string
	var fromName, asJSON bool
	var maxGap, memory, onDuplicate, onError, reserve string
	cmd := &cobra.Command{
		Use:   "convert INPUT... -o OUT",
		Short: "Make a store of CSV files",
		Long: `Convert reads CSV files (.csv, .csv.gz; files, folders or globs), one for each ticker or with a
ticker column, in any order of rows, and writes a store. Nothing is dropped or changed without
a word: what can't be stored as it is stops the conversion with file and line, unless a flag
chooses; the report tells the rest. The output appears complete or not at all.

Without --columns all numeric columns become the group features. Values are stored as
float32, rounded once from the text. Missing cells are empty ones, infinite ones, and, in
upper or lower case: nan -nan na n/a #n/a <na> nat null none - .
The reach of a target says how far ahead its value was computed: rows, a duration, or a
column of the times at which its labels end.`,
		Example: `  wstore convert prices/ -o prices.wst
  wstore convert long.csv.gz -o prices.wst --ticker Name --lookback 60
  wstore convert bars/*.csv -o bars.wst --tz America/New_York --max-gap 3d --break session=Session
  wstore convert long.csv -o f.wst --ticker sym --target ret_20:20 --group alpha=a1,a2 --mask tradable`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no INPUT given")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.Inputs, o.Columns, o.Targets, o.Masks = args, columns, targets, masks
			if reserve != "" {
				return tell(format.ErrUnsupported, "--reserve asks for a file that can be appended to, which this version does not write; leave it out")
			}
			if fromName && o.Ticker != "" {
				return usagef("--ticker and --ticker-from-name exclude each other")
			}
			if o.Output == "" {
				return usagef("no output; name it with -o OUT")
			}
			if o.Output == "-" {
				return usagef("a store can't be written to standard output; name a file with -o OUT")
			}
			// In Options 0 stands for the default, and it is not what somebody who writes 0 means.
			for name, v := range map[string]int{"lookback": o.Lookback, "align": o.Align, "jobs": o.Jobs} {
				if cmd.Flags().Changed(name) && v == 0 {
					return usagef("--%s 0; leave it out for the default", name)
				}
			}
			if o.Groups, err = parseGroups(groups); err != nil {
				return err
			}
			if o.Breaks, err = parseBreaks(breaks); err != nil {
				return err
			}
			if maxGap != "" {
				if o.MaxGap, err = convert.ParseDuration(maxGap); err != nil {
					return usagef("--max-gap %s", err)
				}
			}
			bytes, err := humanize.ParseBytes(memory)
			if err != nil || bytes == 0 || bytes > 1<<50 {
				return usagef("--memory %q is not a size such as 512MiB or 2GiB", memory)
			}
			o.Memory = int64(bytes)
			o.OnDuplicate = convert.OnDuplicate(onDuplicate)
			if onError != "fail" && onError != "skip" {
				return usagef("--on-error %q; must be fail or skip", onError)
			}
			o.SkipBad = onError == "skip"
			o.Version = readVersion().Version
			// The collector keeps to the limit too; without one it would let the heap double.
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(o.Memory))
			report, err := a.convert(cmd.Context(), o)
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(a.out, report)
			}
			return writeReport(a.out, report)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "the store to write, `OUT`")
	f.StringVar(&o.Ticker, "ticker", "", "take tickers from column `COL` (default: from the files' names)")
	f.BoolVar(&fromName, "ticker-from-name", false, "take tickers from the files' names, as without --ticker")
	f.StringVar(&o.Time, "time", "", "take times from column `COL` (default: found by name or content)")
	f.StringVar(&o.TimeFormat, "time-format", "", "`FORMAT` of times: %d/%m/%Y and the like, a Go layout, epoch-s, epoch-ms, epoch-us or epoch-ns (default: found out)")
	f.StringVar(&o.Zone, "tz", "", "`ZONE` of times without an offset, such as America/New_York (default: none, kept as they are)")
	f.Var(&columns, "columns", "columns `A,B` of the group features (default: all numeric ones with a name)")
	f.Var(&targets, "target", "columns `A,B` of the group targets, each with its reach if it has one: ret_20:20, ret:5d, ret:end_time")
	f.StringArrayVar(&groups, "group", nil, "store columns together in a group of their own, `NAME=A,B`; repeatable")
	f.Var(&masks, "mask", "columns `A,B` in which 0, false and empty mean missing, for --where; in the group masks")
	f.StringVar(&maxGap, "max-gap", "", "no window crosses a gap longer than `DURATION`, such as 3d or 90m: the break set gap")
	f.StringArrayVar(&breaks, "break", nil, "no window crosses a change in a column: the break set `NAME=COL`; repeatable")
	f.StringVar(&onDuplicate, "on-duplicate", "error", "rows of one ticker and time: `error|first|last`")
	f.StringVar(&onError, "on-error", "fail", "rows that can't be read: `fail|skip`")
	f.IntVar(&o.Lookback, "lookback", 0, "report the tickers that are too short for windows of `ROWS`")
	f.StringVar(&reserve, "reserve", "", "spare room for appending, `10%|252`; not supported yet")
	f.IntVar(&o.Align, "align", 4096, "align blocks to `BYTES`, a power of two from 64 to 65536")
	f.StringVar(&memory, "memory", "1GiB", "use about this much memory at most, `SIZE`")
	f.IntVar(&o.Jobs, "jobs", 0, "parse on `N` cores (default: all)")
	f.BoolVarP(&o.Overwrite, "force", "f", false, "replace an existing output")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// convert runs the conversion, with a progress bar where someone can see it.
func (a *app) convert(ctx context.Context, o convert.Options) (*convert.Report, error) {
	bar := a.progress("converting")
	if bar != nil {
		var read atomic.Int64
		o.Progress = func(n, total int64) {
			bar.ChangeMax64(total)
			_ = bar.Add64(n) // it only fails if its output does
			if read.Add(n) == total {
				bar.Describe("writing")
			}
		}
	}
	report, err := convert.Run(ctx, o)
	if bar != nil {
		_ = bar.Clear()
	}
	var usage *convert.UsageError
	if errors.As(err, &usage) {
		return nil, tell(errUsage, "%s", err)
	}
	return report, err
}

// progress returns a bar of bytes if standard error is a terminal, else nil.
func (a *app) progress(what string) *progressbar.ProgressBar {
	f, ok := a.err.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return progressbar.NewOptions64(1, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionThrottle(100*time.Millisecond))
}

// nameAnd splits NAME=REST.
func nameAnd(flag, text string) (name, rest string, err error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok || name == "" || rest == "" {
		return "", "", usagef("--%s %q; must be NAME=COLUMN", flag, text)
	}
	return name, rest, nil
}

func parseGroups(texts []string) ([]convert.Group, error) {
	var out []convert.Group
	for _, t := range texts {
		name, rest, err := nameAnd("group", t)
		if err != nil {
			return nil, err
		}
		var columns list
		if err := columns.Set(rest); err != nil {
			return nil, usagef("--group %q: %s", t, err)
		}
		out = append(out, convert.Group{Name: name, Columns: columns})
	}
	return out, nil
}

func parseBreaks(texts []string) ([]convert.Break, error) {
	var out []convert.Break
	for _, t := range texts {
		name, column, err := nameAnd("break", t)
		if err != nil {
			return nil, err
		}
		out = append(out, convert.Break{Name: name, Column: column})
	}
	return out, nil
}

// writeReport tells a person what a conversion did.
func writeReport(w io.Writer, r *convert.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, clean(fmt.Sprintf(format, args...)))
	}
	line("output", "%s, %s", r.Output, size(r.Bytes))
	line("tickers", "%s from %s", count(r.Tickers), plural(r.Files, "file"))
	line("rows", "%s", count(r.RowsKept))
	if r.TimeMin != nil {
		line("times", "%s to %s", moment(*r.TimeMin), moment(*r.TimeMax))
	}
	if r.RowsKept != r.RowsRead {
		line("rows read", "%s", count(r.RowsRead))
	}
	if r.Duplicates > 0 {
		line("duplicates left out", "%s, %s of them with other values", count(r.Duplicates), count(r.Contradictory))
	}
	if r.RowsSkipped > 0 {
		line("unreadable rows skipped", "%s; the first: %s", count(r.RowsSkipped), r.FirstSkipped)
	}
	if r.UnsortedTickers > 0 {
		line("sorted", "%s came in another order", plural(r.UnsortedTickers, "ticker"))
	}
	if len(r.EmptyFiles) > 0 {
		line("files without rows", "%s", some(r.EmptyFiles))
	}
	if len(r.SkippedFiles) > 0 {
		line("files of other kinds", "%s", some(r.SkippedFiles))
	}
	for _, c := range r.SkippedColumns {
		line("not stored", "column %s: %s", c.Name, c.Why)
	}
	for _, g := range r.Gaps {
		line("large gap", "%s to %s in %s", moment(g.From), moment(g.To), plural(g.Tickers, "ticker"))
	}
	if l := r.Lookback; l != nil {
		line("windows", "%s of %s", count(l.Windows), plural(l.Lookback, "row"))
		if len(l.TooShort) > 0 {
			line("tickers without a window", "%s: %s", count(len(l.TooShort)), some(l.TooShort))
		}
	}
	line("window index", "%s", size(r.Index))
	line("digest", "%s", r.Digest)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "column\tgroup\tmissing\tnot finite\tnot exact in float32\tlargest relative error\t")
	for _, c := range r.Columns {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.1e\t\n", clean(c.Name), clean(c.Group), count(c.Missing), count(c.NonFinite), count(c.Inexact), c.MaxRelError)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, h := range r.Hints {
		fmt.Fprintf(w, "\n%s\n", clean(h))
	}
	return nil
}

// moment writes a time, or only its date if it is midnight.
func moment(t time.Time) string {
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339Nano)
}
