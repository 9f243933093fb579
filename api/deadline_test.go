package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/api"
)

// TestDeadlinesAsPeopleWriteThem: a deadline is a duration, for which seconds need no unit, or an instant.
func TestDeadlinesAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"6h": "6h0m0s", "02:30:00": "2h30m0s", "1-12": "36h0m0s", "90": "1m30s",
		"Friday 17:00": "2026-12-04T17:00:00Z", "2026-12-04T17:00:00+01:00": "2026-12-04T16:00:00Z",
		"1:30": "has two meanings", "0s": "is not a positive duration", "-1h": "is not a positive duration",
		"1us": "is shorter than a millisecond", "2020-01-01T00:00:00Z": "has passed", "soon": "is neither a duration such as 6h nor",
	} {
		within, at, err := api.ReadDeadline(text, now)
		got := within.String()
		switch {
		case err != nil:
			got = err.Error()
		case !at.IsZero():
			got = at.Format(time.RFC3339)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
