package ingest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Preset is a known kind of file that does not say itself what it holds.
type Preset struct {
	Name       string
	About      string   // what writes such files, in a line
	Names      []string // of the columns; there is no header
	TimeFormat string   // of the times; "" finds it out
	Scale      int      // prices are stored times 10 to this power

	optional int // columns at the end that a file may lack

	unused []string       // columns without values to learn from
	prices []string       // columns that are scaled
	file   *regexp.Regexp // names of files; its group is the ticker
}

var ohlc = []string{"open", "high", "low", "close"}

// Presets are all there are, sorted by name.
var Presets = []Preset{
	{Name: "binance", About: "klines of data.binance.vision", Names: strings.Split("open_time open high low close volume close_time quote_volume trades taker_buy_volume taker_buy_quote_volume ignore", " "),
		unused: []string{"close_time", "ignore"}},
	{Name: "firstrate", About: "bars of FirstRate Data", Names: strings.Split("time open high low close volume", " "), optional: 1},
	{Name: "gct", About: "candles of GoCryptoTrader", Names: strings.Split("time volume open high low close", " ")},
	{Name: "histdata", About: "minute bars of HistData.com, ASCII; --tz Etc/GMT+5", Names: strings.Split("time open high low close volume", " ")},
	{Name: "kraken", About: "OHLCVT of Kraken", Names: strings.Split("time open high low close volume trades", " "), optional: 1},
	{Name: "lean-daily", About: "daily and hourly bars of QuantConnect LEAN, prices times 10,000", Names: strings.Split("time open high low close volume", " "), Scale: 4, prices: ohlc},
	{Name: "lean-minute", About: "minute and second bars of QuantConnect LEAN: ms of the day that the file's name gives, prices times 10,000",
		Names: strings.Split("time open high low close volume", " "), TimeFormat: "ms-of-day", Scale: 4, prices: ohlc, file: regexp.MustCompile(`^\d{8}_(.+)_(?:minute|second)_trade$`)},
	{Name: "mt4", About: "history of MetaTrader 4: date and time of day in two columns", Names: strings.Split("date time open high low close volume", " ")},
	{Name: "ninjabot", About: "candles of NinjaBot", Names: strings.Split("time open close low high volume trades", " "), optional: 1},
}

// PresetNames lists the names of all presets.
func PresetNames() []string {
	names := make([]string, len(Presets))
	for i, p := range Presets {
		names[i] = p.Name
	}
	return names
}

func findPreset(name string) (*Preset, error) {
	for i := range Presets {
		if Presets[i].Name == name {
			return &Presets[i], nil
		}
	}
	return nil, fmt.Errorf("preset %q is unknown; there are %s", name, strings.Join(PresetNames(), ", "))
}

// ticker is that which a file's name gives, or "".
func (p *Preset) ticker(name string) string {
	if p == nil || p.file == nil {
		return ""
	}
	if m := p.file.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// scales returns the power of ten that each column is stored times, nil if none is.
func (p *Preset) scales(names []string) []int {
	if p == nil || p.Scale == 0 {
		return nil
	}
	scale := make([]int, len(names))
	for i, n := range names {
		if slices.Contains(p.prices, n) {
			scale[i] = p.Scale
		}
	}
	return scale
}
