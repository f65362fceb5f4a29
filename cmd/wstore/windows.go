package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/reader"
)

// screenful is how many windows a terminal gets unless --limit says otherwise.
const screenful = 20

func newWindows(a *app) *cobra.Command {
	var q queryFlags
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "windows FILE --lookback ROWS",
		Short: "List the windows of a query",
		Long: `windows lists the windows of a query: number, ticker, time of the anchor (the last row of
the lookback), first row and anchor row. They are numbered from 0 in ticker order, then by
time. With targets, rows that the targets need must exist too.

Times without an offset are UTC, as all times printed are; a whole number is one of the
file's unit.`,
		Example: `  wstore windows prices.wst --lookback 60 --limit 5
  wstore windows prices.wst --lookback 60 --horizon 1 --targets close --tickers AAPL,BRK.B
  wstore windows prices.wst --lookback 60 --from 2016-01-01 --to 2017-01-01 --json
  wstore windows prices.wst --lookback 60 --limit -3        # the last three`,
		Args:              oneFile,
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("lookback") {
				return usagef("no --lookback given: how many rows has a window?")
			}
			w, query, err := a.windows(cmd, args[0], &q)
			if err != nil {
				return err
			}
			defer w.Store().Close()
			n := limit
			if !cmd.Flags().Changed("limit") && a.tty && !asJSON {
				n = screenful
			}
			from, to := limited(w.Len(), n)
			if err := a.listWindows(cmd.Context(), w, from, to, asJSON); err != nil {
				return err
			}
			if err := a.out.Flush(); err != nil {
				return err
			}
			switch {
			case w.Len() == 0:
				why, err := whyNone(w.Store(), query)
				if err != nil {
					return err
				}
				a.note("no windows: %s", why)
			case to-from < w.Len() && !cmd.Flags().Changed("limit"):
				a.note("%s of %s; --limit 0 shows all", count(to-from), plural(w.Len(), "window"))
			}
			return nil
		},
	}
	q.add(cmd, 0, "`ROWS` of a window")
	cmd.Flags().IntVar(&limit, "limit", 0, fmt.Sprintf("only the first `N` windows, -N: the last N, 0: all (default %d on a terminal, else 0)", screenful))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// limited returns the numbers [from, to) of the first limit of n windows, or of the last if it is negative.
func limited(n, limit int) (from, to int) {
	switch {
	case limit > 0:
		return 0, min(n, limit)
	case limit < 0:
		return max(0, n+limit), n
	}
	return 0, n
}

// listWindows writes the windows [from, to), whatever their number, in constant memory.
func (a *app) listWindows(ctx context.Context, w *reader.Windows, from, to int, asJSON bool) error {
	s := w.Store()
	v, err := s.View()
	if err != nil {
		return err
	}
	defer v.Release()
	unit := s.Meta().Schema.Unit
	dates := false
	if !asJSON {
		if dates, err = onlyDates(s, v); err != nil {
			return err
		}
	}
	c := newClock(unit, dates)
	layout := jsonWindow
	if !asJSON {
		layout = a.tableOfWindows(w, from, to, &c)
	}
	return v.Guard(func() error {
		var times []int64
		var name string
		var line []byte
		ticker := -1
		for i := from; i < to; i++ {
			if i%4096 == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			p := w.Locate(i)
			if p.Ticker != ticker {
				ticker, name = p.Ticker, clean(s.Tickers()[p.Ticker])
				if asJSON {
					name = quoteJSON(s.Tickers()[ticker])
				}
				if times, err = v.Times(ticker); err != nil {
					return err
				}
			}
			line = layout(line[:0], i, name, &c, times[p.Anchor], p)
			if _, err := a.out.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// quoteJSON returns a name, which is valid UTF-8, as a JSON string.
func quoteJSON(name string) string {
	b, _ := json.Marshal(name) // a string can't fail
	return string(b)
}

type windowLine func(dst []byte, number int, name string, c *clock, anchor int64, p reader.Pos) []byte

func jsonWindow(dst []byte, number int, name string, c *clock, anchor int64, p reader.Pos) []byte {
	dst = append(dst, `{"schema":`...)
	dst = strconv.AppendInt(dst, jsonSchema, 10)
	dst = append(dst, `,"number":`...)
	dst = strconv.AppendInt(dst, int64(number), 10)
	dst = append(dst, `,"ticker":`...)
	dst = append(dst, name...)
	dst = append(dst, `,"anchor_time":"`...)
	dst = c.append(dst, anchor)
	dst = append(dst, `","first_row":`...)
	dst = strconv.AppendInt(dst, p.First, 10)
	dst = append(dst, `,"anchor_row":`...)
	dst = strconv.AppendInt(dst, p.Anchor, 10)
	return append(dst, "}\n"...)
}

// tableOfWindows writes the head of a table and returns what writes its lines. Widths are known beforehand, so that lines
// need not wait for each other.
func (a *app) tableOfWindows(w *reader.Windows, from, to int, c *clock) windowLine {
	s := w.Store()
	head := []string{"number", "ticker", "anchor_time", "first_row", "anchor_row"}
	wide := make([]int, len(head))
	for i, h := range head {
		wide[i] = len(h)
	}
	if from < to {
		wide[0] = max(wide[0], len(strconv.Itoa(to-1)))
		for t := w.Locate(from).Ticker; t <= w.Locate(to-1).Ticker; t++ {
			wide[1] = max(wide[1], utf8.RuneCountInString(clean(s.Tickers()[t])))
			digits := len(strconv.FormatInt(s.Rows(t), 10))
			wide[3], wide[4] = max(wide[3], digits), max(wide[4], digits)
		}
		wide[2] = max(wide[2], len(c.text(0)))
	}
	line := fmt.Sprintf("%*s  %-*s  %-*s  %*s  %*s", wide[0], head[0], wide[1], head[1], wide[2], head[2], wide[3], head[3], wide[4], head[4])
	fmt.Fprintln(a.out, strings.TrimRight(line, " "))
	return func(dst []byte, number int, name string, c *clock, anchor int64, p reader.Pos) []byte {
		dst = appendRight(dst, int64(number), wide[0])
		dst = append(dst, "  "...)
		dst = append(dst, name...)
		dst = appendBlanks(dst, wide[1]-utf8.RuneCountInString(name)+2)
		at := len(dst)
		dst = c.append(dst, anchor)
		dst = appendBlanks(dst, wide[2]-(len(dst)-at)+2)
		dst = appendRight(dst, p.First, wide[3])
		dst = append(dst, "  "...)
		dst = appendRight(dst, p.Anchor, wide[4])
		return append(dst, '\n')
	}
}

func appendRight(dst []byte, n int64, width int) []byte {
	var digits [20]byte
	b := strconv.AppendInt(digits[:0], n, 10)
	return append(appendBlanks(dst, width-len(b)), b...)
}

func appendBlanks(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, ' ')
	}
	return dst
}
