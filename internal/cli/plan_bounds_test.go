package cli

import (
	"testing"
	"time"
)

func TestTimeUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text string
		want time.Duration
		err  string
	}{
		{"+2h", 2 * time.Hour, ""},
		{"90s", 90 * time.Second, ""},
		{"2026-12-01T10:30:00+01:00", 90 * time.Minute, ""},
		{"2026-12-01T07:59:59Z", 0, "2026-12-01T07:59:59Z is in the past"},
		{"-1h", 0, "-1h is in the past"},
		{"soon", 0, `"soon" is not a time: want one such as +2h, from now, or 2026-12-01T08:00:00Z`},
	} {
		got, err := timeUntil(c.text, now)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != c.want || said != c.err {
			t.Errorf("%s: %s, %q; want %s, %q", c.text, got, said, c.want, c.err)
		}
	}
}
