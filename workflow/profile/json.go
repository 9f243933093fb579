package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// document is the JSON form of a whole profile. Level -1 means AllLevels.
type document struct {
	Version int             `json:"version"`
	Runs    []string        `json:"runs"`
	Classes []classDocument `json:"classes"`
}

type classDocument struct {
	Transformation string          `json:"transformation"`
	Level          int             `json:"level"`
	Stats          map[string]Stat `json:"stats"`
	Samples        []Sample        `json:"samples"`
}

// version is the version of the JSON form.
const version = 1

// WriteJSON writes the whole profile. From the output ReadJSON creates an identical profile, which can be merged with
// the same results.
func (p *Profile) WriteJSON(w io.Writer) error {
	d := document{Version: version, Runs: p.Runs(), Classes: []classDocument{}}
	for _, name := range slices.Sorted(maps.Keys(p.kinds)) {
		levels := p.kinds[name]
		for _, level := range slices.Sorted(maps.Keys(levels)) {
			c := levels[level]
			stats := make(map[string]Stat)
			for m := range metrics {
				if c.stats[m].Count > 0 {
					stats[m.String()] = c.stats[m]
				}
			}
			d.Classes = append(d.Classes, classDocument{name, level, stats, c.Samples()})
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

// ReadJSON reads the output of WriteJSON, up to 256 MiB. name is the name of the input in errors. Errors are of kind
// Invalid; they are returned for unknown fields, for values that no measurement can produce, for duplicate classes, and
// for samples that belong to another class.
func ReadJSON(r io.Reader, name string) (*Profile, error) {
	text, err := input.ReadAll(r, maxJSONBytes)
	var d document
	if err == nil {
		err = strictly(text, &d)
	}
	var p *Profile
	if err == nil {
		p, err = d.profile()
	}
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, name, "%w", err)
	}
	return p, nil
}

// beginning matches the beginning of WriteJSON's output, however it is indented.
var beginning = regexp.MustCompile(`^\s*\{\s*"version"\s*:`)

// Sniff reports whether a text that begins with begin may be a profile written by WriteJSON.
func Sniff(begin []byte) bool { return beginning.Match(begin) }

func (d *document) profile() (*Profile, error) {
	if d.Version != version {
		return nil, fmt.Errorf("the version of the profile must be %d, not %d", version, d.Version)
	}
	p := New()
	for _, run := range d.Runs {
		p.runs[run] = true
	}
	for i := range d.Classes {
		if err := p.addClass(&d.Classes[i]); err != nil {
			return nil, fmt.Errorf("class %.100q, level %d: %w", d.Classes[i].Transformation, d.Classes[i].Level, err)
		}
	}
	return p, nil
}

func (p *Profile) addClass(d *classDocument) error {
	if err := checkName(d.Transformation); err != nil {
		return err
	}
	levels := p.kinds[d.Transformation]
	_, undivided := levels[AllLevels]
	switch {
	case d.Level < AllLevels:
		return errors.New("the level is negative")
	case levels[d.Level] != nil || undivided || d.Level == AllLevels && len(levels) > 0:
		return errors.New("another class of this profile has the same tasks")
	case len(levels) == maxLevels:
		return fmt.Errorf("the transformation has more than %d levels", maxLevels)
	case len(d.Stats) == 0:
		return errors.New("it has no statistics")
	case len(d.Samples) > MaxSamples:
		return fmt.Errorf("there are more than %d samples", MaxSamples)
	}
	c := &Class{Transformation: d.Transformation, Level: d.Level}
	for name, s := range d.Stats {
		m, err := parseMetric(name)
		if err == nil {
			err = s.validate()
		}
		if err != nil {
			return fmt.Errorf("%.40s: %w", name, err)
		}
		c.stats[m] = s
	}
	for _, s := range d.Samples {
		if s.Transformation != d.Transformation || d.Level != AllLevels && s.Level != d.Level || !p.runs[s.Run] {
			return fmt.Errorf("the sample of task %.100q of run %.100q belongs to another class", s.ID, s.Run)
		}
		if err := s.validate(); err != nil {
			return err
		}
		c.kept = append(c.kept, keptSample{s.key(), s})
	}
	c.trim()
	if levels == nil {
		levels = make(map[int]*Class)
		p.kinds[d.Transformation] = levels
	}
	levels[d.Level] = c
	return nil
}

// strictly decodes one JSON value. Unknown fields, and any text after the value, are errors.
func strictly(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("there is text after the end of the profile")
	}
	return nil
}
