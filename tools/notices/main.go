// Command notices writes THIRD_PARTY_NOTICES: the licences of every module that
// is linked into the wstore tool, on any platform that it is built for.
//
// Run it as `make notices`. Without -w it prints the text. The same modules
// give the same bytes on every machine.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are those whose builds may link different modules.
var platforms = []string{"linux/amd64", "linux/arm64", "linux/386", "darwin/arm64", "windows/amd64"}

const (
	command = "./cmd/wstore"
	output  = "THIRD_PARTY_NOTICES"
)

const preamble = `Third-party notices
===================

The wstore tool contains the software below, each under the licence that
follows its name. It also contains the Go standard library and runtime, under
the licence given for golang.org/x/sys.

This file is generated: run "make notices" after any change of dependencies.
`

func main() {
	write := flag.Bool("w", false, "write "+output+" in the current directory instead of printing it")
	flag.Parse()
	text, err := notices(".")
	if err == nil {
		if *write {
			err = os.WriteFile(output, text, 0o644)
		} else {
			_, err = os.Stdout.Write(text)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// module is what a linked module brings: its name, and its licence files by path within it.
type module struct {
	name     string // path and version
	dir      string
	licences map[string][]byte
}

// notices returns the text for the module whose root is given.
func notices(root string) ([]byte, error) {
	modules, err := linked(root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(preamble)
	for _, m := range modules {
		if len(m.licences) == 0 {
			return nil, fmt.Errorf("%s has no licence file: it can't be shipped; use another module, or ask its authors", m.name)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("-", 80), m.name)
		files := make([]string, 0, len(m.licences))
		for f := range m.licences {
			files = append(files, f)
		}
		slices.Sort(files)
		for _, f := range files {
			fmt.Fprintf(&b, "%s\n\n%s\n", f, bytes.TrimSpace(bytes.ReplaceAll(m.licences[f], []byte("\r\n"), []byte("\n"))))
		}
	}
	return b.Bytes(), nil
}

// linked returns the modules that the command links on any platform, by name, the main module excepted.
func linked(root string) ([]module, error) {
	found := make(map[string]module)
	for _, p := range platforms {
		goos, goarch, _ := strings.Cut(p, "/")
		list := exec.Command("go", "list", "-deps", "-json=Dir,Module", command)
		list.Dir = root
		list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		var stderr bytes.Buffer
		list.Stderr = &stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list -deps %s for %s: %w\n%s", command, p, err, stderr.Bytes())
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var pkg struct {
				Dir    string
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			err := d.Decode(&pkg)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("output of go list for %s: %w", p, err)
			}
			if pkg.Module == nil || pkg.Module.Main {
				continue
			}
			name := pkg.Module.Path + " " + pkg.Module.Version
			m, ok := found[name]
			if !ok {
				m = module{name: name, dir: pkg.Module.Dir, licences: make(map[string][]byte)}
				found[name] = m
			}
			if err := m.collect(pkg.Dir); err != nil {
				return nil, err
			}
		}
	}
	modules := make([]module, 0, len(found))
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return strings.Compare(a.name, b.name) })
	return modules, nil
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// collect adds the licence files that cover a package of the module: those of
// its directory and of each one above, up to the module's root.
func (m module) collect(pkgDir string) error {
	for dir := pkgDir; ; dir = filepath.Dir(dir) {
		rel, err := filepath.Rel(m.dir, dir)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return nil // above the module's root
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			m.licences[filepath.ToSlash(filepath.Join(rel, e.Name()))] = text
		}
	}
}
