// Package craft makes sealed files in memory for tests, the bad ones included. [Content.Build] is a second encoder,
// written from the specification for the eye and not for speed: it takes only types from package format, so that bytes
// that agree with a writer's were made twice. [Split], [File.Repair] and [File.Join] take a file apart, and put it together
// again after an edit with all checksums right, so that just one rule is broken.
package craft
