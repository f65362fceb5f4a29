package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/wstore/wstore/format"
	"github.com/wstore/wstore/reader"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands in a shell",
		Long: `completion prints a script for a shell that completes verbs, flags, files and, of the file
on the command line, tickers and columns.`,
		Example: `  wstore completion bash > ~/.local/share/bash-completion/completions/wstore
  wstore completion zsh > "${fpath[1]}/_wstore"
  wstore completion fish > ~/.config/fish/completions/wstore.fish
  wstore completion powershell >> $PROFILE`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usagef("no completion for %q; name one of %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// noArgs checks that a verb got no arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%q is one too many: the verb takes no arguments", args[0])
	}
	return nil
}

func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"wst"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeVerbs(cmd *cobra.Command, args []string, _ string) (verbs []string, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		for _, c := range cmd.Root().Commands() {
			if c.IsAvailableCommand() {
				verbs = append(verbs, c.Name())
			}
		}
	}
	return verbs, cobra.ShellCompDirectiveNoFileComp
}

// completeNames completes the last name of a list from those that the file on the command line has.
func completeNames(cmd *cobra.Command, flag string, names func(*reader.Store) []string) {
	complete := func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, err := openStore(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.Close()
		before, last := "", typed
		if i := strings.LastIndexByte(typed, ','); i >= 0 {
			before, last = typed[:i+1], typed[i+1:]
		}
		var found []string
		for _, n := range names(s) {
			// Names that a list must quote, or that a shell's protocol can't carry, are left to the user.
			if strings.HasPrefix(n, last) && !strings.ContainsAny(n, ",\"\t\r\n") {
				found = append(found, before+n)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist, or was registered before
	}
}

func tickerNames(s *reader.Store) []string { return s.Tickers() }

func columnNames(s *reader.Store) (names []string) {
	for _, g := range s.Meta().Schema.Groups {
		if g.DType != format.Float32 {
			continue
		}
		names = append(names, g.Name)
		for _, c := range g.Columns {
			names = append(names, c.Name)
		}
	}
	return names
}

func breakNames(s *reader.Store) (names []string) {
	for _, b := range s.Meta().Schema.Breaks {
		names = append(names, b.Name)
	}
	return names
}
