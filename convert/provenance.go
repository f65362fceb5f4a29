package convert

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/wstore/wstore/ingest"
)

const program = "wstore convert"

// usedOptions are those that decide what the file holds, as the provenance has them.
type usedOptions struct {
	Ticker      string      `json:"ticker,omitempty"`
	Time        string      `json:"time,omitempty"`
	NameDate    bool        `json:"date_from_name,omitempty"`
	TimeFormat  string      `json:"time_format,omitempty"`
	TimeOfDay   string      `json:"time_of_day,omitempty"`
	Zone        string      `json:"zone,omitempty"`
	Ambiguous   string      `json:"on_ambiguous_time,omitempty"`
	Decimal     string      `json:"decimal,omitempty"`
	Thousands   string      `json:"thousands,omitempty"`
	AsExported  bool        `json:"as_exported,omitempty"`
	Wide        string      `json:"wide,omitempty"`
	Columns     []string    `json:"columns,omitempty"`
	Targets     []string    `json:"targets,omitempty"`
	Groups      []Group     `json:"groups,omitempty"`
	Masks       []string    `json:"masks,omitempty"`
	Categories  []string    `json:"categories,omitempty"`
	Fills       []string    `json:"fill,omitempty"`
	MaxGap      string      `json:"max_gap,omitempty"`
	Breaks      []Break     `json:"breaks,omitempty"`
	StaticBy    string      `json:"static_ticker,omitempty"`
	OnDuplicate OnDuplicate `json:"on_duplicate"`
	SkipBad     bool        `json:"skip_bad"`

	*ingest.TextOptions
}

func (c *conversion) options() *usedOptions {
	o := c.o
	u := &usedOptions{
		o.Ticker, c.plan.time, o.DateFromName, o.TimeFormat, c.plan.timeOfDay, o.Zone, o.OnAmbiguousTime, o.Decimal, o.Thousands, c.exported != nil, o.Wide, o.Columns,
		o.Targets, o.Groups, o.Masks, o.Categories, nil, "", o.Breaks, o.StaticTicker, o.OnDuplicate, o.SkipBad, &o.Text,
	}
	for _, f := range o.Fills {
		u.Fills = append(u.Fills, f.String())
	}
	if o.MaxGap > 0 {
		u.MaxGap = o.MaxGap.String()
	}
	return u
}

// provenance is the JSON text kept in the file. It holds nothing that differs from run to run, or with how the same files
// are named.
func (c *conversion) provenance() ([]byte, error) {
	type report struct {
		Report
		SkippedFiles *struct{} `json:"skipped_files,omitempty"` // hides those of a folder: a pattern may not meet them
	}
	p := struct {
		Schema  int          `json:"schema"`
		Program string       `json:"program"`
		Version string       `json:"version,omitempty"`
		Options *usedOptions `json:"options"`
		Inputs  []input      `json:"inputs"`
		Static  []input      `json:"static,omitempty"`
		Report  report       `json:"report"`
	}{1, program, c.o.Version, c.options(), c.hash.inputs, c.staticInputs, report{Report: c.report}}
	for _, s := range c.survey.Sources {
		if rest, ok := strings.CutPrefix(c.report.FirstSkipped, s.Path+":"); ok {
			p.Report.FirstSkipped = filepath.Base(s.Path) + ":" + rest
		}
	}
	return json.Marshal(p)
}
