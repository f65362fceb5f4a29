package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoticesAreUpToDate(t *testing.T) {
	root := filepath.Join("..", "..")
	// Reading the directories tells the test cache what the result depends on: any import may change it.
	require.NoError(t, filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "bin") {
			return fs.SkipDir
		}
		return err
	}))
	want, err := notices(root)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(root, output))
	require.NoError(t, err, "run: make notices")
	if string(got) != string(want) {
		t.Fatal(output + " does not name exactly the modules that the tool links, with their licences; run: make notices")
	}
}
