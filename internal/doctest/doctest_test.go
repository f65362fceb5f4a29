package doctest

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the output that the commands give into the documents")

// step is one command of a document, or text between commands.
type step struct {
	text    string // lines copied as they are: prose, a fence, or the command's own lines
	command string // what sh runs; empty for prose
	output  string // what the document says it prints
}

// parse splits a document into steps; the text and outputs of all, joined, are the document.
func parse(doc string) []step {
	var steps []step
	lines := strings.SplitAfter(doc, "\n")
	console := false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence:
			console = !console && strings.TrimSpace(line) == "```console"
			steps = append(steps, step{text: line})
		case console && strings.HasPrefix(line, "$ "):
			s := step{text: line, command: strings.TrimPrefix(line, "$ ")}
			for strings.HasSuffix(strings.TrimRight(s.command, "\n"), "\\") && i+1 < len(lines) {
				i++
				s.text += lines[i]
				s.command += strings.TrimPrefix(lines[i], "> ")
			}
			steps = append(steps, s)
		case console && len(steps) > 0 && steps[len(steps)-1].command != "":
			steps[len(steps)-1].output += line
		default:
			steps = append(steps, step{text: line})
		}
	}
	return steps
}

// matches reports whether the output is what the document says.
func matches(said, output string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range strings.SplitAfter(said, "\n") {
		if line == "...\n" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`))
	}
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()).MatchString(output)
}

// trim drops blanks at line ends, which editors remove from documents, and ends the text with one newline.
func trim(output string) string {
	if strings.TrimSpace(output) == "" {
		return ""
	}
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\r")
	}
	return strings.Join(lines, "\n") + "\n"
}

// run executes the steps of one document in dir, and returns the document with
// the output of every command that differs in its place.
func run(t *testing.T, doc, dir string, env []string) string {
	t.Helper()
	var fresh strings.Builder
	for _, s := range parse(doc) {
		fresh.WriteString(s.text)
		if s.command == "" {
			continue
		}
		sh := exec.Command("sh", "-c", s.command)
		sh.Dir = dir
		sh.Env = env
		out, err := sh.CombinedOutput()
		require.NoError(t, err, "$ %s%s(a command that is meant to fail ends in: ; echo $?)", s.command, out)
		if output := trim(string(out)); matches(s.output, output) {
			fresh.WriteString(s.output)
		} else {
			fresh.WriteString(output)
		}
	}
	return fresh.String()
}

func TestDocumentedExamplesRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are written for sh")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	docs = append([]string{filepath.Join(root, "README.md")}, docs...)

	// Reading the directories tells the test cache that the result depends on every source file.
	require.NoError(t, filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "bin") {
			return fs.SkipDir
		}
		return err
	}))
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/wstore")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "go build ./cmd/wstore: %s", out)
	env := append(os.Environ(),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"LC_ALL=C", "TZ=UTC", "TERM=dumb", "NO_COLOR=1", "COLUMNS=80")

	for _, path := range docs {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			said := string(text)
			if !strings.Contains(said, "```console\n") {
				return
			}
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS(filepath.Join(root, "testdata"))))
			fresh := run(t, said, dir, env)
			if fresh == said {
				return
			}
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(fresh), 0o644))
				return
			}
			require.Fail(t, "the document shows what the tool no longer prints: fix the tool, or run make docs", "%s:%s", path, difference(said, fresh))
		})
	}
}

// difference shows where two texts first differ.
func difference(said, fresh string) string {
	a, b := strings.Split(said, "\n"), strings.Split(fresh, "\n")
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	part := func(lines []string) string {
		return strings.Join(lines[min(at, len(lines)):min(at+5, len(lines))], "\n")
	}
	return fmt.Sprintf("%d\nsays\n%s\n\nbut the tool prints\n%s", at+1, part(a), part(b))
}

func TestParseLosesNothing(t *testing.T) {
	doc := "# Title\n\n```console\n$ echo a \\\n>   b\na b\n$ true\n```\n\n```sh\n$ not run\n```\nend"
	steps := parse(doc)
	var joined strings.Builder
	var commands []string
	for _, s := range steps {
		joined.WriteString(s.text + s.output)
		if s.command != "" {
			commands = append(commands, s.command)
		}
	}
	require.Equal(t, doc, joined.String())
	require.Equal(t, []string{"echo a \\\n  b\n", "true\n"}, commands)
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		said, output string
		want         bool
	}{
		{"", "", true},
		{"a\n", "a\n", true},
		{"a\n", "a\nb\n", false},
		{"a.c\n", "abc\n", false},
		{"...\n", "", true},
		{"...\n", "a\nb\n", true},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true},
		{"a\n...\nd\n", "a\nb\nc\n", false},
		{"took ... s\n", "took 0.3 s\n", true},
		{"took ... s\n", "took 0.3 s\nmore\n", false},
	} {
		require.Equal(t, c.want, matches(c.said, c.output), "%q against %q", c.said, c.output)
	}
}

func TestRunReplacesOnlyWhatDiffers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are written for sh")
	}
	doc := "```console\n$ echo one; echo two\n...\ntwo\n$ echo new\nold\n$ false; echo $?\n1\n```\n"
	want := "```console\n$ echo one; echo two\n...\ntwo\n$ echo new\nnew\n$ false; echo $?\n1\n```\n"
	require.Equal(t, want, run(t, doc, t.TempDir(), os.Environ()))
}
