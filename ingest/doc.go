// Package ingest turns CSV files into batches of typed rows: float32 cells,
// times in nanoseconds, and strings by code. It uses all cores, keeps a few
// chunks of the input in memory whatever the input's size, and delivers the
// same rows in the same order, and the same first error, whatever the number
// of cores.
//
// Three steps lead from names to rows:
//
//	Sources    names on a command line    -> files in canonical order
//	NewSurvey  header and first rows      -> columns and their kinds
//	Read       a Plan                     -> batches of rows
//
// # Files
//
// A file is text in UTF-8 (a byte order mark is skipped), with one header row.
// Cells are separated by commas; where the header has no comma, by tabs, or
// else semicolons. Cells may be quoted as in RFC 4180, with line breaks inside.
// Lines end in LF or CRLF; blank lines are skipped. A row is at most 1 MiB.
// A file that begins with the gzip magic is decompressed as a stream, whatever
// its name.
//
// Blanks around a column's name are not part of it. A column without a name,
// such as the index that pandas writes, is called "column N", N being its
// position from 1. Files may have their columns in any order, but all must have
// the same columns.
//
// # Numbers
//
// A number is an optional sign, decimal digits with at most one point, and an
// optional exponent. It is rounded once, to the nearest float32, ties to even.
// One that is too large for a float32 is an error. Blanks around it are ignored.
//
// A cell is missing when it is empty or, in any case, one of
//
//	nan  -nan  na  n/a  #n/a  <na>  nat  null  none  -  .
//
// or an infinity (inf, infinity, signed or not). Tickers and text are never
// interpreted: NA, NaN, TRUE, 000001 and trailing blanks stay as they are.
//
// # Times
//
// Each time column has one format, found from its first cells or given by
// Options.TimeFormat. These are recognised:
//
//	2013-02-08   2013/02/08   2013.02.08   20130208
//	13/2/2013    2/13/2013    (also with - or . and with two-digit day and month)
//	8 Feb 2013   Feb 8 2013   Feb 8, 2013  08-Feb-2013  (also whole month names)
//	1360281600   epoch s, ms, µs or ns, told apart by magnitude
//
// The numeric dates may be followed, after a T or blanks, by 9:30, 09:30,
// 09:30:00 or 09:30:00.123456789, then AM or PM, then Z, UTC or an offset such
// as -05:00; the eight-digit date also by 0930 or 093000. Whether day or month
// comes first is decided by the whole column, never guessed.
package ingest
