package classad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// ParseAds parses the output of condor_q, condor_status and condor_history with -json: an array of ads, or no output if
// nothing was found.
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

// adFromJSON converts a JSON object to an ad.
func adFromJSON(raw map[string]any) Ad {
	ad := make(Ad, len(raw))
	for name, v := range raw {
		ad[name] = valueFromJSON(v)
	}
	return ad
}

// valueFromJSON converts a JSON value to a value of an ad. Integers stay integers, because a job's id could lose digits
// as a float.
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

// exprOrText distinguishes a string from an expression, which JSON output encodes as "/Expr(TEXT)/". A string of the
// same form cannot be distinguished, not even by HTCondor's own readers.
func exprOrText(s string) any {
	if inner, ok := strings.CutPrefix(s, "/Expr("); ok {
		if text, ok := strings.CutSuffix(inner, ")/"); ok {
			return parse(text, func(string) (string, bool) { return "", false })
		}
	}
	return s
}
