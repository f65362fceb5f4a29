package convert_test

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wstore/wstore/convert"
	"github.com/wstore/wstore/ingest"
)

// oddValue is one cell, its value as it stands in the file. A constant is rounded once, to the nearest float32.
type oddValue struct {
	ticker, at, column string
	value              float32
}

// Files as people keep them become the right rows, or are refused with what is wrong, where, and what to try.
func TestOddFiles(t *testing.T) {
	nan := float32(math.NaN())
	preset := func(name string) ingest.TextOptions { return ingest.TextOptions{Preset: name} }
	for _, c := range []struct {
		file        string
		o           convert.Options
		tickers     int
		rows        int64
		first, last string // times
		values      []oddValue
		dialect     string
		refused     []string // parts of the error
	}{
		{file: "02_cryptodatadownload_comment_line_ampm.csv", o: convert.Options{Ticker: "symbol"}, tickers: 1, rows: 720,
			first: "2017-11-01T00:00:00Z", last: "2017-11-30T23:00:00Z", dialect: "1 line before the header left out",
			values: []oddValue{{"BTCUSD", "2017-11-12T12:00:00Z", "volume_btc", 998.84}, {"BTCUSD", "2017-11-12T00:00:00Z", "volume", 31764136.43}}},
		{file: "14_alphavantage_adjusted_newest_first.csv", tickers: 1, rows: 100, first: "2019-11-22T00:00:00Z", last: "2020-04-17T00:00:00Z",
			values: []oddValue{{"", "2020-01-02T00:00:00Z", "adjusted close", 134.33}, {"", "2020-01-02T00:00:00Z", "volume", 1166400}}},
		{file: "32_nasdaq_quoted_intraday_row_in_daily_thousands_newest_first.csv", refused: []string{`.csv:2: column "date": "11:34" is a time of day without a date`, "--on-error skip"}},
		{file: "32_nasdaq_quoted_intraday_row_in_daily_thousands_newest_first.csv", o: convert.Options{SkipBad: true}, tickers: 1, rows: 756,
			first: "2015-10-15T00:00:00Z", last: "2018-10-15T00:00:00Z", values: []oddValue{{"", "2017-06-01T00:00:00Z", "volume", 7601764}, {"", "2017-06-01T00:00:00Z", "close", 340.37}}},
		{file: "33_no_date_column.csv", refused: []string{"no column is named like a time or holds times", `"close", "high", "low", "open"`, "name the time column with --time; if there is none, add one"}},
		{file: "34_long_multi_ticker_index_col_newest_first_crlf.csv.gz", refused: []string{".gz:1508: ", "comes twice", `use --ticker "Stock"`}},
		{file: "34_long_multi_ticker_index_col_newest_first_crlf.csv.gz", o: convert.Options{Ticker: "Stock"}, tickers: 5, rows: 3634,
			first: "2015-01-02T00:00:00Z", last: "2017-12-29T00:00:00Z", values: []oddValue{{"TSLA", "2016-06-01T00:00:00Z", "AdjLow", 216.89}, {"TSLA", "2015-01-02T00:00:00Z", "Volume", 4764443}}},
		{file: "35_prefixed_column_names_AAPL.Open.csv", tickers: 1, rows: 506, first: "2015-02-17T00:00:00Z", last: "2017-02-16T00:00:00Z",
			values: []oddValue{{"", "2015-02-19T00:00:00Z", "AAPL.Open", 128.479996}, {"", "2015-02-19T00:00:00Z", "mavg", 119.8891668}}},
		{file: "37_excel_mdy_times_OCHL_order_1min_SP500.csv", refused: []string{`.csv:2: column "Date": "11/5/2019 9:30" leaves open whether day or month comes first`, "--time-format", "%m/%d/%Y"}},
		{file: "37_excel_mdy_times_OCHL_order_1min_SP500.csv", o: convert.Options{TimeFormat: "%m/%d/%Y %H:%M"}, tickers: 1, rows: 1563,
			first: "2019-11-05T09:30:00Z", last: "2019-11-08T15:59:00Z", values: []oddValue{{"", "2019-11-06T12:00:00Z", "Close", 3068.7}, {"", "2019-11-06T12:00:00Z", "High", 3068.83}}},
		{file: "38_barchart_last_change_scientific_newest_first.csv", tickers: 1, rows: 519, first: "2018-03-12T00:00:00Z", last: "2020-03-11T00:00:00Z",
			values: []oddValue{{"", "2020-03-06T00:00:00Z", "Change", 6.80e-05}, {"", "2020-03-06T00:00:00Z", "High", 0.009516999}}},
		{file: "39_yfinance_minus_inf_tz_SSNLF.csv.gz", tickers: 1, rows: 6259, first: "2001-08-06T04:00:00Z", last: "2026-06-26T04:00:00Z",
			values: []oddValue{{"", "2002-10-16T04:00:00Z", "Open", 2.426460027694702}, {"", "2002-10-16T04:00:00Z", "Adj Close", nan}, {"", "2009-10-26T04:00:00Z", "Close", nan}}},
		{file: "40_yfinance_dst_offset_change_1h.csv", tickers: 1, rows: 20, first: "2024-10-21T09:00:00Z", last: "2024-10-30T14:00:00Z",
			values: []oddValue{{"", "2024-10-24T08:00:00Z", "Volume", 4}, {"", "2024-10-30T14:00:00Z", "Open", 74.5}}},
		{file: "41_yfinance_15m_premarket_gaps_tz_EA.csv", tickers: 1, rows: 319, first: "2026-05-26T08:00:00Z", last: "2026-06-03T18:15:00Z",
			values: []oddValue{{"", "2026-05-26T14:45:00Z", "Low", 200.490005493164}}},
		{file: "42_yfinance_100x_newest_first_AET.csv", tickers: 1, rows: 23, first: "2022-05-02T23:00:00Z", last: "2022-06-05T23:00:00Z",
			values: []oddValue{{"", "2022-05-30T23:00:00Z", "Close", 0.14550000429153442}}},
		{file: "43_tradingview_iso8601_offset_1min_NQ.csv.gz", tickers: 1, rows: 3551, first: "2024-12-11T08:48:00Z", last: "2024-12-13T21:59:00Z",
			values: []oddValue{{"", "2024-12-11T08:49:00Z", "Plot", 21443.0821428571}, {"", "2024-12-11T08:49:00Z", "Volume", 0}}},
		{file: "44_ninjabot_no_header_OCLH_order_epoch_s_1h.csv.gz", refused: []string{"has no header: line 1 looks like a row of data", "--names A,B", "--preset", "ninjabot"}},
		{file: "44_ninjabot_no_header_OCLH_order_epoch_s_1h.csv.gz", o: convert.Options{Text: preset("ninjabot")}, refused: []string{".gz:501: ", "comes twice", "--on-duplicate"}},
		{file: "44_ninjabot_no_header_OCLH_order_epoch_s_1h.csv.gz", o: convert.Options{Text: preset("ninjabot"), OnDuplicate: convert.DuplicateFirst}, tickers: 1, rows: 4309,
			first: "2020-11-17T00:00:00Z", last: "2021-05-16T00:00:00Z", dialect: "no header: preset ninjabot",
			values: []oddValue{{"", "2020-11-17T02:00:00Z", "high", 16737.88}, {"", "2020-11-17T02:00:00Z", "close", 16678.02}, {"", "2020-11-17T02:00:00Z", "open", 16690.21}, {"", "2020-11-17T02:00:00Z", "low", 16625.24},
				{"", "2020-11-17T02:00:00Z", "volume", 2217.6}, {"", "2020-11-17T02:00:00Z", "trades", 39663}}},
		{file: "45_gct_no_header_volume_second_column.csv", o: convert.Options{Text: preset("binance")}, refused: []string{".csv:1: has 6 cells, while preset binance has 12"}},
		{file: "45_gct_no_header_volume_second_column.csv", o: convert.Options{Text: ingest.TextOptions{Names: []string{"time", "volume", "open", "high", "low"}}},
			refused: []string{".csv:1: has 6 cells, while the names given are 5"}},
		{file: "45_gct_no_header_volume_second_column.csv", o: convert.Options{Text: preset("gct")}, tickers: 1, rows: 365,
			first: "2019-01-01T00:00:00Z", last: "2019-12-31T00:00:00Z", dialect: "no header: preset gct",
			values: []oddValue{{"", "2019-01-03T00:00:00Z", "volume", 29406.948359}, {"", "2019-01-03T00:00:00Z", "open", 3857.57}, {"", "2019-01-03T00:00:00Z", "high", 3766.78},
				{"", "2019-01-03T00:00:00Z", "low", 3730}, {"", "2019-01-03T00:00:00Z", "close", 3766.78}, {"", "2019-01-02T00:00:00Z", "open", 3796.45}, {"", "2019-01-02T00:00:00Z", "close", 3858.56}}},
		{file: "48_wide_20_tickers_leading_nan.csv.gz", tickers: 1, rows: 1000, first: "1989-12-29T00:00:00Z", last: "1993-12-10T00:00:00Z",
			values: []oddValue{{"", "1993-12-08T00:00:00Z", "GE", 2.220102}, {"", "1993-12-08T00:00:00Z", "GOOG", nan}, {"", "1993-12-08T00:00:00Z", "SBUX", 0.595994}}},
		{file: "49_wide_colon_column_names_leading_empty.csv.gz", tickers: 1, rows: 1865, first: "2014-11-28T00:00:00Z", last: "2020-01-17T00:00:00Z",
			values: []oddValue{{"", "2020-01-17T00:00:00Z", "BTC:volume", 138.49}, {"", "2020-01-17T00:00:00Z", "LTC:close", 57.88}}},
		{file: "53_mt_dot_dates_15min_EURUSD.csv.gz", tickers: 1, rows: 2000, first: "2022-10-10T00:00:00Z", last: "2022-11-07T20:45:00Z",
			values: []oddValue{{"", "2022-10-10T00:30:00Z", "Low", 0.97331}, {"", "2022-11-07T20:45:00Z", "Tickvol", 1000}}},
		{file: "56_leading_row_number_float_volume_SPY.csv.gz", tickers: 1, rows: 5241, first: "1999-11-01T00:00:00Z", last: "2020-08-28T00:00:00Z",
			values: []oddValue{{"", "2020-08-28T00:00:00Z", "volume", 48588940.0}}},
		{file: "58_BRK-A_round_lots.csv", tickers: 1, rows: 127, first: "2014-03-03T00:00:00Z", last: "2014-08-29T00:00:00Z",
			values: []oddValue{{"", "2014-03-04T00:00:00Z", "open", 175651}, {"", "2014-03-04T00:00:00Z", "high", 177989}, {"", "2014-03-04T00:00:00Z", "volume", 700}}},
		{file: "79_lean_minute_zip_ms_since_midnight_price_x10000_no_header.zip", refused: []string{".zip/20140605_aapl_minute_trade.csv: has no header", "--preset", "lean-minute"}},
		{file: "79_lean_minute_zip_ms_since_midnight_price_x10000_no_header.zip", o: convert.Options{Text: preset("lean-minute"), Zone: "America/New_York"}, tickers: 1, rows: 686,
			first: "2014-06-05T08:15:00Z", last: "2014-06-05T23:59:00Z", dialect: "no header: preset lean-minute",
			values: []oddValue{{"aapl", "2014-06-05T09:00:00Z", "open", 645.5}, {"aapl", "2014-06-05T23:59:00Z", "high", 646.99}, {"aapl", "2014-06-05T23:59:00Z", "volume", 370}}},
		{file: "82_cnuge_bad_row_from_other_ticker_YUM.csv", o: convert.Options{Ticker: "Name"}, tickers: 1, rows: 1258, first: "2012-08-10T00:00:00Z", last: "2017-08-10T00:00:00Z",
			values: []oddValue{{"YUM", "2017-07-31T00:00:00Z", "Open", nan}, {"YUM", "2017-07-31T00:00:00Z", "High", 29.23}}},
		{file: "84_parquet_int32_decimal.parquet", refused: []string{"no column is named like a time or holds times", `"value"`, "--time"}},
		{file: "85_parquet_decimal128_decimal256_dictionary_all_types.parquet", refused: []string{"the time may be in any of the columns", `"timestamp_ms_gmt"`, "--time"}},
		{file: "85_parquet_decimal128_decimal256_dictionary_all_types.parquet", o: convert.Options{Time: "date32"}, tickers: 1, rows: 5, first: "1970-01-02T00:00:00Z", last: "1970-01-06T00:00:00Z",
			values: []oddValue{{"", "1970-01-02T00:00:00Z", "decimal128", 1234.567}, {"", "1970-01-03T00:00:00Z", "decimal256", -1234.567}, {"", "1970-01-02T00:00:00Z", "uint64", 1}, {"", "1970-01-03T00:00:00Z", "uint64", 100000000001},
				{"", "1970-01-02T00:00:00Z", "int64", -200000000000}, {"", "1970-01-03T00:00:00Z", "boolean", 0}, {"", "1970-01-02T00:00:00Z", "float32", 1.5}}},
		{file: "86_parquet_zero_rows_zero_groups.parquet", refused: []string{"holds no row; look at what wrote it"}},
		{file: "87_parquet_nan_stats.parquet", refused: []string{"no column is named like a time or holds times", `"value"`, "--time"}},
		{file: "stallion.parquet", refused: []string{"stallion.parquet: row 2: ", "comes twice", `--ticker "agency"`}},
		{file: "stallion.parquet", o: convert.Options{Ticker: "agency"}, refused: []string{"comes twice", `if column "sku" tells them apart, use --ticker "agency,sku"`}},
		{file: "stallion.parquet", o: convert.Options{Ticker: "agency,sku"}, tickers: 350, rows: 21000, first: "2013-01-01T00:00:00Z", last: "2017-12-01T00:00:00Z",
			values: []oddValue{{"Agency_22/SKU_01", "2013-01-01T00:00:00Z", "volume", 52.272}, {"Agency_59/SKU_03", "2013-01-01T00:00:00Z", "price_actual", 1197.18426}}},
	} {
		t.Run(c.file, func(t *testing.T) {
			c.o.Inputs = []string{filepath.Join("..", "testdata", "odd", c.file)}
			if c.refused != nil {
				err := fails(t, "", c.o)
				for _, part := range append(c.refused, c.file) {
					require.ErrorContains(t, err, part)
				}
				return
			}
			r, s := run(t, c.o)
			require.Equal(t, c.tickers, r.Tickers)
			require.Equal(t, c.rows, r.RowsKept)
			require.Equal(t, c.first, r.TimeMin.Format(time.RFC3339))
			require.Equal(t, c.last, r.TimeMax.Format(time.RFC3339))
			if c.dialect == "" {
				require.Empty(t, r.Dialects)
			} else {
				require.Equal(t, []convert.DialectUse{{Dialect: c.dialect, Files: 1}}, r.Dialects)
			}
			all := contents(t, s)
			for _, v := range c.values {
				if v.ticker == "" {
					v.ticker = s.Tickers()[0]
				}
				of, row := all[v.ticker], -1
				for i, at := range of.times {
					if at.Format(time.RFC3339) == v.at {
						row = i
					}
				}
				require.GreaterOrEqual(t, row, 0, v)
				require.Contains(t, of.cells, v.column)
				got := of.cells[v.column][row]
				if v.value != v.value {
					require.Equal(t, uint32(missing), got, v)
				} else {
					require.Equal(t, math.Float32bits(v.value), got, "%v: %v", v, math.Float32frombits(got))
				}
			}
		})
	}
}
