package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/wstore/wstore"

// goFile is one Go file, whatever its build constraints: the rules hold on every platform.
type goFile struct {
	path    string // from the module's root, with slashes
	test    bool
	imports []string
	ast     *ast.File
	text    []byte
}

// goPackage is the Go files of one directory.
type goPackage struct {
	dir   string // from the module's root; "." for the root itself
	files []goFile
}

// code returns the files that are not tests.
func (p goPackage) code() []goFile {
	var files []goFile
	for _, f := range p.files {
		if !f.test {
			files = append(files, f)
		}
	}
	return files
}

// root returns the module's root directory.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return dir
}

// tree lists the files of the repository, from its root and with slashes:
// those that git tracks or would track, or without git all outside of hidden
// and built directories.
func tree(t *testing.T) []string {
	t.Helper()
	dir := root(t)
	var files []string
	// The walk also tells the test cache which directories the result depends on.
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			base := path.Base(rel)
			if rel == "bin" || rel == "build" || rel == "dist" || base == "__pycache__" || base == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			files = append(files, rel)
		}
		return nil
	})
	require.NoError(t, err)

	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = dir
	out, err := git.Output()
	if err != nil { // no repository here, or one of another user
		return files
	}
	tracked := make(map[string]bool)
	for _, name := range strings.Split(string(out), "\x00") {
		tracked[name] = true
	}
	kept := files[:0]
	for _, f := range files {
		if tracked[f] {
			kept = append(kept, f)
		}
	}
	return kept
}

// packages parses every Go file of the repository.
func packages(t *testing.T) []goPackage {
	t.Helper()
	byDir := make(map[string][]goFile)
	for _, name := range tree(t) {
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		require.NoError(t, err)
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		require.NoError(t, err)
		f := goFile{path: name, test: strings.HasSuffix(name, "_test.go"), ast: parsed, text: text}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			f.imports = append(f.imports, imported)
		}
		byDir[path.Dir(name)] = append(byDir[path.Dir(name)], f)
	}
	var all []goPackage
	for dir, files := range byDir {
		all = append(all, goPackage{dir: dir, files: files})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].dir < all[j].dir })
	return all
}

// within reports whether an import path or directory is prefix itself or lies below it.
func within(name, prefix string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+"/")
}

// withinAny is within for several prefixes.
func withinAny(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if within(name, p) {
			return true
		}
	}
	return false
}

// isText reports whether the bytes are text, as git decides it: no NUL near the start.
func isText(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0
}
