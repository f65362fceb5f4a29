package fsys

import (
	"os"

	"github.com/wstore/wstore/internal/mmapfile"
)

// osFile is a file of the operating system.
type osFile struct{ *os.File }

// Map maps the file's first size bytes, which must be all of it.
func (f osFile) Map(size int64) (*mmapfile.Map, error) { return mmapfile.Open(f.File, size) }
