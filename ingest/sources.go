package ingest

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is one input file.
type Source struct {
	Path string
	Size int64 // bytes on disk
	// Held is the file that holds the source, where Path is only what people call
	// it, such as "standard input".
	Held string

	entry *zipEntry // of an archive; nil: a file of its own
}

// extension is a usual end of the names of files with data.
type extension struct {
	end    string
	text   bool // text, which may be compressed: then .gz or .zst follows
	folder bool // a folder's or pattern's files of this name are taken
}

var extensions = []extension{
	{".csv", true, true}, {".tsv", true, true}, {".txt", true, false},
	{".parquet", false, true}, {".pq", false, true},
	{".arrow", false, true}, {".arrows", false, true}, {".feather", false, true}, {".ipc", false, true},
}

// cutExtension cuts off what a file's name ends in, and says what that was; its
// zero value, if nothing usual.
func cutExtension(name string) (string, extension) {
	plain := name
	for _, end := range []string{".gz", ".zst"} {
		plain = cutSuffixFold(plain, end)
	}
	for _, e := range extensions {
		if cut := cutSuffixFold(plain, e.end); cut != plain && (e.text || plain == name) {
			return cut, e
		}
	}
	return name, extension{}
}

// Name is the file's base name without .csv, .tsv or .txt, with or without .gz or
// .zst, .parquet, .pq, .arrow, .arrows, .feather or .ipc: the ticker, where it
// comes from the file's name. "BRK.B.csv" gives "BRK.B".
func (s Source) Name() string {
	base := filepath.Base(s.Path)
	if name, e := cutExtension(base); e.end != "" {
		return name
	}
	return cutSuffixFold(cutSuffixFold(base, ".gz"), ".zst")
}

// File is the path of the file on disk: that of the archive if the source is in one.
func (s Source) File() string {
	if s.entry != nil {
		return s.entry.archive
	}
	return cmp.Or(s.Held, s.Path)
}

// Sources expands files, folders and glob patterns into input files, sorted by
// the bytes of their paths as they are named, each file once.
//
// A file named itself is taken whatever its name. Of a folder, which is not
// searched deeper, and of a pattern those files are taken that end in .csv or
// .tsv, or these with .gz or .zst, or in .zip, .parquet, .pq, .arrow, .arrows,
// .feather or .ipc, in any case, and don't begin with a dot; the rest is returned in skipped, sorted, folders with a slash at the end. A pattern that
// itself ends in an extension, such as *.txt, takes all files that it matches;
// those that begin with a dot only if it does too.
//
// A path that does not exist is an error matching fs.ErrNotExist; a folder or
// pattern without data is an *UnusableError.
func Sources(paths []string) (srcs []Source, skipped []string, err error) {
	if len(paths) == 0 {
		return nil, nil, &UnusableError{Reason: "no input is named", Hint: "name a file, a folder or a pattern"}
	}
	seen := map[string]bool{}
	// add adds a file, and reports whether it holds data.
	add := func(path string, info fs.FileInfo) (bool, error) {
		if !info.Mode().IsRegular() {
			return false, &UnusableError{Path: path, Reason: "is not a regular file, and input is read more than once",
				Hint: "write it to a file first"}
		}
		key, err := filepath.Abs(path)
		if err != nil || seen[key] {
			return true, err
		}
		files := []Source{{Path: path, Size: info.Size()}}
		if isZip(path) {
			var others []string
			if files, others, err = expandZip(path); err != nil || len(files) == 0 {
				return false, err
			}
			skipped = append(skipped, others...)
		}
		seen[key] = true
		srcs = append(srcs, files...)
		return true, nil
	}
	// take adds those of the paths that a folder or pattern contributes.
	take := func(of string, paths []string, wanted func(path string) bool) error {
		found := false
		for _, path := range paths {
			info, err := os.Stat(path)
			switch {
			case err == nil && info.IsDir():
				skipped = append(skipped, path+"/")
			case !wanted(path), err == nil && !info.Mode().IsRegular(): // what is no data need not be readable
				skipped = append(skipped, path)
			case err != nil:
				return statError(path, err)
			default:
				data, err := add(path, info)
				if err != nil {
					return err
				}
				if found = found || data; !data {
					skipped = append(skipped, path)
				}
			}
		}
		if !found {
			return &UnusableError{Path: of, Reason: "holds no file of data (.csv, .tsv, these with .gz or .zst, .zip, .parquet, .arrow, .feather)",
				Hint: "name the files themselves if they are called otherwise"}
		}
		return nil
	}

	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			entries, err := os.ReadDir(path)
			if err != nil {
				return nil, nil, err
			}
			names := make([]string, len(entries))
			for i, e := range entries {
				names[i] = filepath.Join(path, e.Name())
			}
			if err := take(path, names, isData); err != nil {
				return nil, nil, err
			}
		case err == nil:
			path = filepath.Clean(path)
			data, err := add(path, info)
			if err == nil && !data {
				err = &UnusableError{Path: path, Reason: "is a zip archive without a .csv, .tsv or .txt file",
					Hint: "if it is a workbook, export it as CSV; or unpack it and name its files"}
			}
			if err != nil {
				return nil, nil, err
			}
		case errors.Is(err, fs.ErrNotExist) && hasMeta(path):
			names, err := filepath.Glob(path)
			if err != nil {
				return nil, nil, &UnusableError{Path: path, Reason: "is not a valid pattern", Err: err}
			}
			if len(names) == 0 {
				return nil, nil, missingError("no file matches " + path)
			}
			wanted := isData
			if ext := filepath.Ext(path); len(ext) > 1 && !hasMeta(ext) {
				wanted = func(p string) bool { return !hidden(p) || hidden(path) }
			}
			if err := take(path, names, wanted); err != nil {
				return nil, nil, err
			}
		default:
			return nil, nil, statError(path, err)
		}
	}
	slices.SortFunc(srcs, func(a, b Source) int { return strings.Compare(a.Path, b.Path) })
	skipped = slices.DeleteFunc(skipped, func(p string) bool {
		key, err := filepath.Abs(p)
		return err == nil && seen[key] // named itself elsewhere
	})
	slices.Sort(skipped)
	return srcs, slices.Compact(skipped), nil
}

// statError is the error of a path that os.Stat could not find out about.
func statError(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return missingError(path + " is a link to a file that does not exist")
	}
	return missingError(path + " does not exist")
}

// hidden reports whether a name begins with a dot: those of the system and of
// editors do.
func hidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// isData reports whether a folder's file is taken for data by its name.
func isData(path string) bool {
	_, e := cutExtension(filepath.Base(path))
	return !hidden(path) && (e.folder || cutSuffixFold(path, ".zip") != path)
}

// isText reports whether an archive's file is taken for data by its name.
func isText(path string) bool {
	_, e := cutExtension(filepath.Base(path))
	return !hidden(path) && e.folder && e.text
}

// cutSuffixFold cuts an ASCII suffix off, in any case.
func cutSuffixFold(s, suffix string) string {
	if n := len(s) - len(suffix); n >= 0 && strings.EqualFold(s[n:], suffix) {
		return s[:n]
	}
	return s
}

func hasMeta(pattern string) bool { return strings.ContainsAny(pattern, "*?[") }
