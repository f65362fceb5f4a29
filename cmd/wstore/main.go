// Command wstore converts panels of time series to stores of training windows, and inspects, verifies and exports
// them. Run it without arguments for its verbs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is what the verbs share.
type app struct {
	out *bufio.Writer // standard output: data only; flushed at the end
	err io.Writer     // standard error: messages
	tty bool          // standard output is a terminal
	ran bool          // a verb began: errors before that are of usage
}

func main() {
	signal.Ignore(syscall.SIGPIPE) // so that a closed pipe is an error of writing
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout *os.File, stderr io.Writer) int {
	a := &app{out: bufio.NewWriterSize(stdout, 64<<10), err: stderr, tty: term.IsTerminal(int(stdout.Fd()))}
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.ran {
		err = usageOf(cmd, args, err)
	}
	if e := a.out.Flush(); err == nil {
		err = e
	}
	if err == nil || isClosedPipe(err) {
		return 0
	}
	code, text := exitCode(err), message(err)
	if code == exitUsage {
		if cmd.Name() == "help" {
			cmd = root
		}
		text += "; see " + cmd.CommandPath() + " --help"
	}
	fmt.Fprintln(stderr, "wstore: "+text)
	return code
}

// note tells the user something that is neither data nor an error.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.err, "wstore: "+clean(fmt.Sprintf(format, args...)))
}

const usageTemplate = `{{if .HasExample}}Examples:
{{.Example}}

{{end}}Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} VERB [flags]

Verbs:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

` + "`{{.CommandPath}} VERB --help`" + ` tells more of a verb.{{end}}
`

func newRoot(a *app) *cobra.Command {
	cobra.EnableCommandSorting = false // the order below is that of use
	root := &cobra.Command{
		Use:   "wstore",
		Short: "Training windows of time-series panels",
		Long: `wstore keeps a panel of time series in one file and gives every training window of it
as a slice of that file: no copies of windows, no index entry per window. Lookback,
horizon, stride and columns are chosen when reading.

Data go to standard output, messages to standard error. Exit codes: 0 done, 1 I/O error
or the output exists, 2 usage, 3 corrupt file or unusable input, 4 unknown path, ticker
or column, 5 unsupported feature, 130 interrupted.`,
		Example: `  wstore convert prices/*.csv -o prices.wst --ticker Name
  wstore inspect prices.wst --lookback 60 --targets close
  wstore windows prices.wst --lookback 60 --targets close --limit 5
  wstore verify prices.wst`,
		SilenceErrors:              true,
		SilenceUsage:               true,
		DisableSuggestions:         true, // usageOf suggests, in one line
		SuggestionsMinimumDistance: 2,
		PersistentPreRun:           func(*cobra.Command, []string) { a.ran = true },
		Version:                    readVersion().String(),
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.SetHelpCommand(newHelp())
	root.AddCommand(newConvert(a), newInspect(a), newWindows(a), newVerify(a), newExport(a), newBench(a), newCompletion(a), newVersion(a))
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:               "help [VERB]",
		Short:             "Tell more of a verb",
		ValidArgsFunction: completeVerbs,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(cmd.Root(), strings.Join(args, " "))
			}
			return verb.Help()
		},
	}
}
