package convert

import "github.com/wstore/wstore/internal/fsys"

// Inject sets what only tests choose: the file system, and the bytes of rows that are kept in memory.
func (o *Options) Inject(fs fsys.FS, budget int64) { o.fs, o.budget = fs, budget }
