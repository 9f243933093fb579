package corral_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

func TestSecondsJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0"},
		{90 * time.Second, "90"},
		{1500 * time.Millisecond, "1.5"},
		{-time.Minute, "-60"},
		{1234567 * time.Nanosecond, "0.001"},
	} {
		b, err := json.Marshal(corral.Seconds(c.d))
		if err != nil || string(b) != c.want {
			t.Errorf("Marshal(%s) = %s, %v; want %s", c.d, b, err, c.want)
		}
	}
}

func TestSecondsRoundTrip(t *testing.T) {
	t.Parallel()
	const century = 100 * 365 * 24 * time.Hour
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(-int64(century/time.Millisecond), int64(century/time.Millisecond)).Draw(t, "ms")
		d := corral.Seconds(time.Duration(ms) * time.Millisecond)
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var got corral.Seconds
		if err := json.Unmarshal(b, &got); err != nil || got != d {
			t.Fatalf("%s through %s came back as %s, %v", d, b, got, err)
		}
	})
}

func FuzzSecondsUnmarshal(f *testing.F) {
	for _, s := range []string{"0", "1.5", "-3", "1e9", "1e99", "\"90s\"", "null", "[]", "9223372036.854775807"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d corral.Seconds
		if json.Unmarshal(b, &d) != nil {
			return
		}
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again corral.Seconds
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s was read as %s, written as %s and then refused: %v", b, d, out, err)
		}
	})
}

func TestSecondsRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`"90"`, `"2h"`, `1e20`, `-1e20`, `{}`, `true`} {
		var d corral.Seconds
		if err := json.Unmarshal([]byte(s), &d); err == nil {
			t.Errorf("Unmarshal(%s) = %s, want an error", s, d)
		}
	}
}
