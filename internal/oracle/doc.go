// Package oracle is the reference that tests compare with: it lists the windows of a query row by row and cell by cell,
// as the rules of section 11 of the specification read, with no regard for speed. It shares no code with the packages
// that it judges, and holds a panel as plain slices.
//
// [DrawPanel] and [DrawQuery] draw random panels and valid queries for property tests.
package oracle
