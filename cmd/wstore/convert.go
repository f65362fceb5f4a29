package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
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
	"github.com/wstore/wstore/ingest"
)

func newConvert(a *app) *cobra.Command {
	var o convert.Options
	var columns, targets, masks, categories, names list
	var groups, breaks, fills []string
	var fromName, asJSON bool
	var maxGap, memory, onDuplicate, onError, reserve string
	cmd := &cobra.Command{
		Use:   "convert INPUT... -o OUT",
		Short: "Make a store of CSV, Parquet or Arrow files",
		Long: `Convert reads tables (CSV, also .gz, .zst and .zip; Parquet; Arrow; files, folders, globs, or - for
standard input), one for each ticker, with a ticker column, or wide, in any order of rows, and
writes a store. Nothing is dropped or changed without a word: what can't be stored as it is stops
the conversion with file and line, unless a flag chooses; the report tells the rest. The output
appears complete or not at all. docs/convert.md is a guide.

Without --columns all numeric columns become the group features. Values are stored as
float32, rounded once from the text. Missing cells are empty ones, infinite ones, and, in
upper or lower case: nan -nan na n/a #n/a <na> nat null none \N - .
The reach of a target says how far ahead its value was computed: rows, a duration, or a
column of the times at which its labels end.

Files that don't say what they hold are of a preset, or their columns are given by --names:
` + presets(),
		Example: `  wstore convert prices/ -o prices.wst
  wstore convert long.csv.gz -o prices.wst --ticker Name --lookback 60
  wstore convert bars/*.csv -o bars.wst --tz America/New_York --max-gap 3d --break session=Session
  wstore convert long.csv -o f.wst --ticker sym --target ret_20:20 --group alpha=a1,a2 --mask tradable
  wstore convert closes.csv -o closes.wst --wide close
  wstore convert ohlc.parquet -o ohlc.wst --wide '{ticker}:{column}' --fill volume=0
  wstore convert long.csv -o f.wst --ticker sym --category sector --static tickers.csv --if-changed`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no INPUT given")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.Inputs, o.Columns, o.Targets, o.Masks, o.Categories = args, columns, targets, masks, categories
			o.Text.Names = names
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
			for _, text := range fills {
				f, err := convert.ParseFill(text)
				if err != nil {
					return usagef("--fill %s", err)
				}
				o.Fills = append(o.Fills, f)
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
			if slices.Contains(args, "-") {
				if term.IsTerminal(int(os.Stdin.Fd())) {
					return usagef("standard input is a terminal; pipe data into it, or name a file")
				}
				o.Stdin = os.Stdin
			}
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
	f.StringVar(&o.Ticker, "ticker", "", "take tickers from column `COL`, or with COL,COL from several, as in BTC/USDT/kraken (default: from the files' names)")
	f.BoolVar(&fromName, "ticker-from-name", false, "take tickers from the files' names, as without --ticker")
	f.StringVar(&o.Time, "time", "", "take times from column `COL` (default: found by name or content)")
	f.StringVar(&o.TimeOfDay, "time-of-day", "", "take the time of day from column `COL`, and from --time only the date (default: found by its name and cells, unless --time is given)")
	f.StringVar(&o.TimeFormat, "time-format", "", "`FORMAT` of times: %d/%m/%Y and the like, a Go layout, epoch-s, epoch-ms, epoch-us, epoch-ns, or excel; with --time-of-day that of both, with a blank between, or of the time of day; of a time of day alone, such as %H:%M, s-of-day or ms-of-day, where the files' names give the date (default: found out)")
	f.BoolVar(&o.DateFromName, "date-from-name", false, "each file holds one day, which its name gives, such as 2024-01-02.csv; --ticker or --wide says whose its rows are")
	f.StringVar(&o.Zone, "tz", "", "`ZONE` of times without an offset, such as America/New_York (default: none, kept as they are)")
	f.StringVar(&o.OnAmbiguousTime, "on-ambiguous-time", "error", "times without an offset that happened twice in --tz, as the clocks went back: `error|first|last`")
	f.StringVar(&o.Decimal, "decimal", "", "numbers have a decimal `point|comma` (default: found out for each column)")
	f.StringVar(&o.Thousands, "thousands", "", "between thousands stands `none|comma|point|space|apostrophe` (default: found out for each column)")
	f.Var(&columns, "columns", "columns `A,B` of the group features (default: all numeric ones with a name)")
	f.Var(&targets, "target", "columns `A,B` of the group targets, each with its reach if it has one: ret_20:20, ret:5d, ret:end_time")
	f.StringArrayVar(&groups, "group", nil, "store columns together in a group of their own, `NAME=A,B`; repeatable")
	f.Var(&masks, "mask", "columns `A,B` in which 0, false and empty mean missing, for --where; in the group masks")
	f.Var(&categories, "category", "columns `A,B` of texts, stored as the place in the sorted list of the column's texts; in the group categories unless --columns or another names them")
	f.StringArrayVar(&fills, "fill", nil, "give missing cells a value: `COL=ffill[:MAX]|COL=VALUE` the last one of the ticker, never from before a break and for MAX rows at most, or a value; repeatable")
	f.StringVar(&o.Wide, "wide", "", "each row has the cells of many tickers: each numeric column is a ticker, its cells are column `NAME|PATTERN`; or a pattern of the columns' names, such as {ticker}:{column}")
	f.StringVar(&o.Static, "static", "", "attributes of tickers, which don't change: a `FILE` of one row for each ticker")
	f.StringVar(&o.StaticTicker, "static-ticker", "", "column `COL` of the tickers in the file of --static (default: named like that of --ticker, or as is usual)")
	f.StringVar(&maxGap, "max-gap", "", "no window crosses a gap longer than `DURATION`, such as 3d or 90m: the break set gap")
	f.StringArrayVar(&breaks, "break", nil, "no window crosses a change in a column: the break set `NAME=COL`; repeatable")
	f.StringVar(&o.Text.Preset, "preset", "", "a kind of file that doesn't say what it holds, `NAME`: "+strings.Join(ingest.PresetNames(), ", "))
	f.Var(&names, "names", "the files have no header: their columns are `A,B`")
	f.IntVar(&o.Text.SkipLines, "skip-lines", 0, "leave out `N` lines before the header, or before the rows if there are --names (default: found out)")
	f.StringVar(&o.Text.Delimiter, "delimiter", "", "cells are separated by `CHAR`, tab, or space for runs of blanks (default: found out among , ; | and tab)")
	f.StringVar(&o.Text.Quote, "quote", "", "cells are quoted with `CHAR`, or none (default: \"double quotes\")")
	f.StringVar(&o.Text.Escape, "escape", "", "`CHAR`, such as \\, takes the meaning from the next character (default: none)")
	f.StringVar(&o.Text.Comment, "comment", "", "leave out lines that begin with `CHAR` (default: only # before the header)")
	f.StringVar(&o.Text.Encoding, "encoding", "", "`NAME` of the text's encoding, such as windows-1252 or gbk (default: UTF-8, or UTF-16 where it shows)")
	f.StringVar(&onDuplicate, "on-duplicate", "error", "rows of one ticker and time: `error|first|last`")
	f.StringVar(&onError, "on-error", "fail", "rows that can't be read: `fail|skip`")
	f.IntVar(&o.Lookback, "lookback", 0, "report the tickers that are too short for windows of `ROWS`")
	f.StringVar(&reserve, "reserve", "", "spare room for appending, `10%|252`; not supported yet")
	f.IntVar(&o.Align, "align", 4096, "align blocks to `BYTES`, a power of two from 64 to 65536")
	f.StringVar(&memory, "memory", "256MiB", "use about this much memory at most, `SIZE`")
	f.IntVar(&o.Jobs, "jobs", 0, "parse on `N` cores (default: all)")
	f.BoolVarP(&o.Overwrite, "force", "f", false, "replace an existing output")
	f.BoolVar(&o.IfChanged, "if-changed", false, "leave an existing output as it is if it was made of the same inputs in the same way, and replace it otherwise")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// presets lists what --preset can be.
func presets() string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range ingest.Presets {
		fmt.Fprintf(t, "  %s\t%s\n", p.Name, p.About)
	}
	_ = t.Flush() // a builder takes everything
	return strings.TrimRight(b.String(), "\n")
}

// convert runs the conversion, with a progress bar where someone can see it.
func (a *app) convert(ctx context.Context, o convert.Options) (*convert.Report, error) {
	bar := a.progress("converting")
	if bar != nil {
		var read, waiting atomic.Int64
		o.Progress = func(n, total int64) {
			if total == 0 { // of standard input, nobody knows how much there is
				bar.ChangeMax64(waiting.Add(n) + 1)
				_ = bar.Add64(n) // it only fails if its output does
				return
			}
			if waiting.Swap(0) > 0 {
				bar.Reset()
			}
			bar.ChangeMax64(total)
			_ = bar.Add64(n)
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
	if r.Unchanged {
		line("unchanged", "%s was made of the same inputs in the same way", r.Output)
	}
	line("output", "%s, %s", r.Output, size(r.Bytes))
	line("tickers", "%s from %s", count(r.Tickers), plural(r.Files, "file"))
	line("rows", "%s", count(r.RowsKept))
	if r.TimeMin != nil {
		line("times", "%s to %s", moment(*r.TimeMin), moment(*r.TimeMax))
	}
	if r.TimeFormat != "" && !strings.HasPrefix(r.TimeFormat, "%Y-%m-%d") {
		line("times read as", "%s", r.TimeFormat)
	}
	if r.AmbiguousTimes > 0 {
		line("times that happened twice", "%s, decided by --on-ambiguous-time", count(r.AmbiguousTimes))
	}
	for _, c := range r.Columns {
		if c.Style != "" {
			line("numbers read as", "%s: column %s", c.Style, c.Name)
		}
	}
	if r.RowsKept != r.RowsRead {
		line("rows read", "%s", count(r.RowsRead))
	}
	if r.AsExported {
		line("schema", "as wstore export says in the metadata of the inputs")
	}
	if w := r.Wide; w != nil {
		line("wide table", "%s; %s of tickers that have no value there left out", plural(w.Rows, "row"), plural(w.Absent, "row"))
	}
	for _, c := range r.Columns {
		if c.Categories != nil {
			line("categories", "%s in column %s", count(*c.Categories), c.Name)
		}
		if c.Filled > 0 {
			line("filled", "%s of column %s", plural(c.Filled, "cell"), c.Name)
		}
	}
	if st := r.Static; st != nil {
		for _, at := range st.Attributes {
			line("attribute", "%s, a %s, of %s", at.Name, at.Kind, plural(at.Tickers, "ticker"))
		}
		if st.Unknown > 0 {
			line("attributes of others", "%s, not in the inputs: %s", plural(st.Unknown, "ticker"), firstOf(st.UnknownTickers, st.Unknown))
		}
		if st.Without > 0 {
			line("without attributes", "%s: %s", plural(st.Without, "ticker"), firstOf(st.WithoutTickers, st.Without))
		}
		for _, c := range st.SkippedColumns {
			line("no attribute", "column %s: %s", c.Name, c.Why)
		}
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
	for _, d := range r.Dialects {
		line("laid out", "%s: %s", plural(d.Files, "file"), d.Dialect)
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

// firstOf lists the first of n names.
func firstOf(names []string, n int) string {
	if n > len(names) {
		return fmt.Sprintf("%s and %s more", strings.Join(names, ", "), count(n-len(names)))
	}
	return some(names)
}

// moment writes a time, or only its date if it is midnight.
func moment(t time.Time) string {
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339Nano)
}
