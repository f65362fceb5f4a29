// Package lint holds the rules of this repository's source text, as tests:
// which package may import which, where unsafe and the mapping live, that
// packages are documented and have examples, and that the text stands alone.
//
// Every failure says what to do. A rule that is wrong is changed here, in the
// same commit as the code that needs it.
package lint
