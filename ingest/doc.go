// Package ingest turns CSV, Parquet and Arrow files into batches of typed rows:
// float32 cells, times in nanoseconds, and strings by code. It uses all cores,
// keeps a few pieces of the input in memory whatever the input's size, and
// delivers the same rows in the same order, and the same first error, whatever
// the number of cores.
//
// Three steps lead from names to rows:
//
//	Sources    names on a command line    -> files in canonical order
//	NewSurvey  header and first rows      -> columns and their kinds
//	Read       a Plan                     -> batches of rows
//
// # Files
//
// What a file is, its first bytes say, never its name. The sources of one survey
// may be of several kinds, if their columns are named alike.
//
// A text is UTF-8, or UTF-16 where a byte order mark or the bytes show it, or
// has the encoding that TextOptions name. It has one header row, above which lines
// of another width and lines that begin with # are left out. The delimiter is that
// of , tab ; and | by which most cells of the first lines become numbers and
// dates, or that of a first line sep=; for Excel. Cells may be quoted as in RFC
// 4180, with line breaks inside, of which CR LF becomes LF. Lines end in LF or CRLF, or in CR if there is no
// LF at all; blank lines are skipped. A row is at most 1 MiB.
//
// Rows may end with a delimiter that the header lacks, or the header with one that
// they lack. If rows have one cell more than the header, the first is a name of
// the row, as R writes it. The header of pandas for one ticker may have two levels
// (Price, Ticker). Names in <angle brackets> lose them. Survey.Dialect tells what
// was found; TextOptions say what cannot be found out, such as the names of
// columns where there is no header.
//
// A text of another dialect (other quotes, an escape character, comments, CR, runs
// of blanks) is rewritten line for line as it is read, so that one parser, and the
// numbers of lines in errors, serve all.
//
// Files that begin as gzip or zstd streams do are decompressed as they are read,
// whatever their names: all members and frames, with their checksums. The files of
// a zip archive are sources of their own, archive.zip/AAPL.csv, and nothing is
// unpacked to the disk. Whatever a stream claims, it takes its decoder's window,
// of at most 128 MiB, and some buffers; a bomb costs time, not memory.
//
// Blanks around a column's name are not part of it. A column without a name,
// such as the index that pandas writes, is called "column N", N being its
// position from 1. Files may have their columns in any order, but all must have
// the same columns.
//
// # Parquet and Arrow
//
// Arrow is a file or a stream of Arrow IPC, or Feather of version 2, with buffers
// plain or compressed by lz4 or zstd. A stream must have its end mark: without it,
// nothing tells a stream that is whole from one whose writer died. Parquet may have
// any of its encodings, and any compression but LZO.
//
//	bool, integers, floats, decimals   numbers, rounded once to float32
//	dates, timestamps                  times; with a zone they are instants, else clock times as in a text
//	strings, binary, times of day      text, read as the cells of a CSV file are
//	dictionaries                       what their values are
//	null                               missing cells
//	all else                           Kind Other: such a column can only be left out
//
// Columns may differ in type from source to source. A column that pandas has made
// of an index without a name is called "index". Errors name rows, from 1. An
// infinite or NaN cell is missing; one that is too large for a float32 is an error.
//
//	source    group (row group, record batch)    group ...
//	             column  slice slice slice ...
//	             column  slice slice slice ...
//
// A group is cut into slices of rows. Only the columns of the plan are read, each
// by one goroutine at a time, slice by slice; a slice whose columns are all there
// becomes a batch. So what is held is a few slices, and of each column of a group
// one page and a dictionary, whose sizes are checked against the bytes there are:
// at most 256 MiB a page, 256 MiB the dictionaries of an Arrow file, 64 MiB the texts
// of a slice. Several groups are read at once while all of them hold less than 2 GiB;
// one that needs more is refused.
// The packages that decode run in these goroutines only; what panics in them is an
// *UnusableError.
//
// # Numbers
//
// A plain number is an optional sign, decimal digits with at most one point, and
// an optional exponent. It is rounded once, to the nearest float32, ties to even.
// One that is too large for a float32 is an error. Blanks around it are ignored.
//
// Each column of a text is written in one style, found from its first cells or
// given by Options.Decimal and Options.Thousands:
//
//	1,234.5   1.234,5   1 234,5   1'234.5   12,34,567.8
//	$5   5 €   EUR 5    one currency in a column
//	3.3%                divided by 100: 0.033; all numbers of the column but 0
//
// In any style a number may have its sign behind it, or be in parentheses, which
// is negative, have the minus sign U+2212, and end in K or k, M, B or T for 10^3,
// 10^6, 10^9 or 10^12. These are exact: 12.5K is 12500. A column of nothing but
// whole numbers with such letters (5M) is text, unless it is asked for.
//
// Where the cells leave open whether a comma is a decimal comma or stands between
// thousands, the columns that don't decide, if they agree. If they don't, a point
// is a decimal point, and commas are an error.
//
// A cell is missing when it is empty or, in any case, one of
//
//	nan  -nan  na  n/a  #n/a  <na>  nat  null  none  \N  -  .
//
// or an infinity (inf, infinity, signed or not). Tickers and text are never
// interpreted: NA, NaN, TRUE, 000001 and trailing blanks stay as they are.
//
// # Times
//
// Each time column has one format, found from its first cells or given by
// Options.TimeFormat. These are recognised:
//
//	2013-02-08   2013/02/08   2013.02.08   20130208    2013-02 (the first of the month)
//	13/2/2013    2/13/2013    (also with - or . and with one-digit day and month)
//	8 Feb 2013   Feb 8, 2013  8-Feb-13     08FEB2013   2013-Feb-08 (also whole names)
//	Fri, 8 Feb 2013           (the name must be right)
//	20130208093000            (also without seconds, with their fraction)
//	1360281600   epoch s, ms, µs or ns, told apart by the largest number; perhaps with a fraction
//
// Dates may be followed, after a T or blanks, by 9:30, 09:30, 09:30:00 or
// 09:30:00.123456789, then AM or PM, then Z, UTC or an offset such as -05:00,
// -0500 or -05; by 9 AM or 09-AM; the eight-digit date also by 0930 or 093000.
// Offsets may change within a column. Of two digits of a year 69 is 1969 and 68 is
// 2068. Whether day or month comes first is decided by the whole column, never
// guessed.
//
// Not guessed either, but read if a format says so, are years alone (%Y), numeric
// dates with years of two digits (%d/%m/%y), days of spreadsheets (excel), and
// counts since midnight (s-of-day, ms-of-day, us-of-day, ns-of-day).
//
// Date and time of day may stand in two columns (Plan.Time, Plan.Clock), and are
// read as if joined by a blank; the time of day may then also be 930 or 93000. If
// the format is that of a time of day and there is no Plan.Clock, the date is the
// one in each file's name, as 20130208 or 2013-02-08.
//
// Times without an offset are those that clocks show in Options.Location. What
// clocks never showed there is an error, and so is what they showed twice, unless
// Options.AmbiguousTime chooses.
package ingest
