package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/ingest"
	"github.com/wstore/wstore/reader"
)

// The exit codes.
const (
	exitFailure     = 1 // I/O, the output exists, anything else
	exitUsage       = 2
	exitUnusable    = 3 // the file is corrupt, or the input is of no use
	exitNotFound    = 4 // path, ticker, column
	exitUnsupported = 5
	exitInterrupted = 130
)

var (
	errUsage    = errors.New("usage")
	errUnusable = errors.New("unusable")
)

// told is an error in words that say more than the cause's own.
type told struct {
	text  string
	cause error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.cause }

// tell puts an error into words; it goes on matching its cause.
func tell(cause error, format string, args ...any) error {
	return &told{fmt.Sprintf(format, args...), cause}
}

// usagef is the error of a command line that can't be.
func usagef(format string, args ...any) error { return tell(errUsage, format, args...) }

// exitCode is the only place that turns errors into exit codes.
func exitCode(err error) int {
	var row *ingest.RowError
	var input *ingest.UnusableError
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errUsage), errors.Is(err, reader.ErrQuery):
		return exitUsage
	case errors.Is(err, format.ErrUnsupported):
		return exitUnsupported
	case errors.Is(err, format.ErrCorrupt), errors.Is(err, errUnusable), errors.As(err, &row), errors.As(err, &input):
		return exitUnusable
	case errors.Is(err, reader.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	}
	return exitFailure
}

// isClosedPipe reports whether standard output was closed by its reader, which had enough.
func isClosedPipe(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // what Windows calls it
	return errors.Is(err, syscall.EPIPE) ||
		runtime.GOOS == "windows" && (errors.Is(err, brokenPipe) || errors.Is(err, noData))
}

// isFull reports whether there was no room to write.
func isFull(err error) bool {
	const handleDiskFull, diskFull = syscall.Errno(39), syscall.Errno(112) // what Windows calls it
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		runtime.GOOS == "windows" && (errors.Is(err, handleDiskFull) || errors.Is(err, diskFull))
}

// message puts an error into one line.
func message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	var parts []string
	for _, line := range strings.Split(err.Error(), "\n") {
		parts = append(parts, clean(strings.TrimPrefix(line, "wstore: ")))
	}
	text := strings.Join(parts, "; ")
	switch {
	case errors.Is(err, format.NotWstore):
		text += "; data such as CSV become a store with `wstore convert`"
	case errors.Is(err, format.ErrCorrupt) && !strings.Contains(text, " again"): // else it advises itself
		text += "; copy the file again from where it came, or convert the data again"
	case isFull(err):
		text += "; free some space, or write to another disk"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		text += "; change the permissions, or name an output in a folder that you may write to"
	}
	return text
}

// usageOf explains why cobra refused a command line.
func usageOf(cmd *cobra.Command, args []string, err error) error {
	if !cmd.HasParent() && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return unknownVerb(cmd, args[0])
	}
	if errors.Is(err, errUsage) {
		return err
	}
	return usagef("%s", err)
}

func unknownVerb(root *cobra.Command, name string) error {
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return usagef("no verb %q (did you mean %s?)", name, strings.Join(near, ", "))
	}
	return usagef("no verb %q", name)
}

// flagError says what is wrong with a flag's value in the user's words.
func flagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return usagef("%s", err)
	}
	cause := errors.Unwrap(err)
	var number *strconv.NumError
	switch {
	case !errors.As(err, &number):
		return usagef("--%s %q: %s", bad.GetFlag().Name, bad.GetValue(), cause)
	case number.Func == "ParseBool":
		return usagef("--%s %q: must be true or false", bad.GetFlag().Name, bad.GetValue())
	case errors.Is(err, strconv.ErrRange):
		return usagef("--%s %s is too large", bad.GetFlag().Name, bad.GetValue())
	}
	return usagef("--%s %q: must be a whole number", bad.GetFlag().Name, bad.GetValue())
}

// oneFile checks that a verb got exactly one file.
func oneFile(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("no FILE given")
	case len(args) > 1:
		return usagef("one FILE at a time; %q is one too many", args[1])
	}
	return nil
}
