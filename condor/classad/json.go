package classad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// ParseAds reads what condor_q, condor_status and condor_history print with -json: an array of ads, or
// nothing at all where nothing was found.
func ParseAds(out []byte) ([]Ad, error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	var raw []map[string]any
	if err := d.Decode(&raw); err != nil {
		return nil, fmt.Errorf("reading ClassAds in JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("reading ClassAds in JSON: something follows the array at byte %d", d.InputOffset())
	}
	ads := make([]Ad, len(raw))
	for i, r := range raw {
		ads[i] = adFromJSON(r)
	}
	return ads, nil
}

// adFromJSON turns a JSON object into an ad.
func adFromJSON(raw map[string]any) Ad {
	ad := make(Ad, len(raw))
	for name, v := range raw {
		ad[name] = valueFromJSON(v)
	}
	return ad
}

// valueFromJSON turns a value of JSON into one of an ad. Numbers stay integers if they are written as such: a job's
// id that became a float could lose its last digits.
func valueFromJSON(v any) any {
	switch v := v.(type) {
	case string:
		return exprOrText(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return Expr(v)
	case bool:
		return v
	case []any:
		for i := range v {
			v[i] = valueFromJSON(v[i])
		}
		return v
	case map[string]any:
		return adFromJSON(v)
	}
	return Undefined // null
}

// exprOrText tells a string from an expression, which has no place in JSON and comes as "/Expr(TEXT)/". A
// string that looks the same cannot be told from it; HTCondor's own readers cannot either.
func exprOrText(s string) any {
	if inner, ok := strings.CutPrefix(s, "/Expr("); ok {
		if text, ok := strings.CutSuffix(inner, ")/"); ok {
			return parse(text, func(string) (string, bool) { return "", false })
		}
	}
	return s
}
