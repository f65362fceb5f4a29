// Package spec holds the specification of the wstore file format and the files to test readers with. Its tests keep the
// text, the files and the code in step.
package spec

import _ "embed"

// Text is the specification, SPEC.md.
//
//go:embed SPEC.md
var Text string
