package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers says which of our packages each package may import, tests excepted.
// Imports point down this table; a package also covers what lies below it.
var layers = []struct {
	dir  string
	may  []string
	pure bool // touches no file, no clock, no memory but its own
}{
	{dir: "cmd", may: []string{"convert", "compact", "writer", "ingest", "reader", "index", "order", "stats", "format", "internal"}},
	{dir: "convert", may: []string{"ingest", "writer", "reader", "format", "internal"}},
	{dir: "compact", may: []string{"writer", "reader", "format", "internal"}},
	{dir: "writer", may: []string{"reader", "index", "format", "internal"}},
	{dir: "ingest", may: []string{"internal"}},
	{dir: "reader", may: []string{"order", "stats", "index", "format", "internal"}},
	{dir: "index", may: []string{"format"}, pure: true},
	{dir: "order", pure: true},
	{dir: "stats", pure: true},
	{dir: "format", pure: true},
	{dir: "internal", may: []string{"format", "internal"}},
}

// edges stand around the library and may use all of it; nothing imports them.
var edges = []string{"bench", "examples", "fuzz", "spec", "tools"}

func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		if withinAny(p.dir, edges) {
			continue
		}
		var may []string
		known := false
		for _, l := range layers {
			if within(p.dir, l.dir) {
				may, known = append([]string{l.dir}, l.may...), true
			}
		}
		if !known {
			t.Errorf("%s: this package stands in no layer: move it, or add a row to the table of layers in internal/lint", p.dir)
			continue
		}
		for _, f := range p.code() {
			for _, imported := range f.imports {
				if !within(imported, module) {
					continue
				}
				to := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
				if !withinAny(to, may) {
					t.Errorf("%s imports %q, which stands above or beside it; it may import %q: "+
						"move the shared part down to a package that both may import", f.path, to, may)
				}
			}
		}
	}
}

// sideEffects are packages by which code leaves its own memory.
var sideEffects = []string{
	"C", "unsafe", "os", "syscall", "net", "plugin", "log", "math/rand", "crypto/rand", "golang.org/x/sys", "github.com/edsrzf/mmap-go",
}

func TestPurePackagesArePure(t *testing.T) {
	for _, p := range packages(t) {
		for _, l := range layers {
			if !l.pure || !within(p.dir, l.dir) {
				continue
			}
			for _, f := range p.code() {
				for _, imported := range f.imports {
					if withinAny(imported, sideEffects) {
						t.Errorf("%s imports %q, but %s is pure, bytes in and values out: "+
							"take bytes or a parameter, and do the rest in reader, writer or internal", f.path, imported, l.dir)
					}
				}
			}
		}
	}
}

// owners are the only directories that may import a package, tests included
// where the rule says so.
var owners = []struct {
	imported string
	dirs     []string
	tests    bool // holds for tests too
	why      string
}{
	{"unsafe", []string{"internal/f32"}, false, "the one place that views bytes as floats; call it instead"},
	{"C", nil, true, "the library and the tool are pure Go, so that they cross-compile"},
	{"github.com/edsrzf/mmap-go", []string{"internal/mmapfile"}, true, "the one place that maps files, so that lifetimes and faults are handled once; call it instead"},
	{"github.com/spf13/cobra", []string{"cmd"}, true, "the command line stays out of the library; take plain parameters"},
	{"github.com/stretchr/testify/assert", nil, true, "a failed assert goes on and hides the cause; use testify/require"},
	{"github.com/stretchr/testify/suite", nil, true, "write plain tests and subtests"},
}

func TestImportsHaveOneOwner(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.files {
			for _, imported := range f.imports {
				for _, o := range owners {
					if within(imported, o.imported) && (o.tests || !f.test) && !withinAny(p.dir, o.dirs) {
						t.Errorf("%s imports %q, which only %q may: %s", f.path, imported, o.dirs, o.why)
					}
				}
			}
		}
	}
}

// heavy are dependencies that a program which only reads or writes stores must not carry.
var heavy = []string{
	"github.com/apache/arrow-go", "github.com/parquet-go", "github.com/spf13", "github.com/schollz",
	"github.com/stretchr", "pgregory.net/rapid", module + "/ingest",
}

func TestReaderAndWriterStayLight(t *testing.T) {
	for _, p := range packages(t) {
		if (!within(p.dir, "reader") && !within(p.dir, "writer")) || len(p.code()) == 0 {
			continue
		}
		list := exec.Command("go", "list", "-deps", "./"+p.dir)
		list.Dir = root(t)
		out, err := list.Output()
		require.NoError(t, err, "go list -deps ./%s: run it by hand for the cause", p.dir)
		for _, dep := range strings.Fields(string(out)) {
			if withinAny(dep, heavy) {
				t.Errorf("%s depends on %s: keep formats and the command line in ingest, convert and cmd "+
					"(go mod why -m says through which import)", p.dir, dep)
			}
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	for _, p := range packages(t) {
		files := p.code()
		if len(files) == 0 {
			files = p.files // a package of tests only
		}
		documented := false
		for _, f := range files {
			documented = documented || f.ast.Doc != nil
		}
		if !documented {
			t.Errorf("%s has no package comment: write %s/doc.go, saying what the package is for", p.dir, p.dir)
		}
	}
}

func TestPublicPackagesHaveExamples(t *testing.T) {
	example := regexp.MustCompile(`(?m)^func Example`)
	output := regexp.MustCompile(`(?m)^\s*// (Output|Unordered output):`)
	notPublic := append([]string{"cmd", "internal"}, edges...)
	for _, p := range packages(t) {
		if withinAny(p.dir, notPublic) || len(p.code()) == 0 {
			continue
		}
		found := false
		for _, f := range p.files {
			found = found || f.test && example.Match(f.text) && output.Match(f.text)
		}
		if !found {
			t.Errorf("%s has no example that runs: add %s/example_test.go with a func Example… that ends in an // Output: comment", p.dir, p.dir)
		}
	}
}

func TestTextStandsAlone(t *testing.T) {
	// Put together here, so that this file keeps the rule as well.
	banned := []string{"/" + "work/", "../" + "shared", "shared" + "/data", "/tmp" + "/notes"}
	for _, name := range tree(t) {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		require.NoError(t, err)
		if !isText(text) {
			continue
		}
		for _, b := range banned {
			if i := bytes.Index(text, []byte(b)); i >= 0 {
				t.Errorf("%s:%d mentions %q, a place on one machine: copy small data to testdata/ with its licence, or say it without the path",
					name, 1+bytes.Count(text[:i], []byte("\n")), b)
			}
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	later := regexp.MustCompile(`(?://|#).*\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	for _, name := range tree(t) {
		if ext := filepath.Ext(name); ext != ".go" && ext != ".py" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		require.NoError(t, err)
		if at := later.FindIndex(text); at != nil {
			t.Errorf("%s:%d leaves work for later: do it, or delete the remark",
				name, 1+bytes.Count(text[:at[0]], []byte("\n")))
		}
	}
}
