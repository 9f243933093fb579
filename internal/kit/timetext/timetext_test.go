package timetext_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run

	"github.com/corral-pilot/corral/internal/kit/timetext"
)

const hour, minute, second = time.Hour, time.Minute, time.Second

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * second, "2h30m": 2*hour + 30*minute, "1.5h": 90 * minute, "250ms": 250 * time.Millisecond, "0": 0,
		"0s": 0, "-5s": -5 * second,
		"01:30:00": 90 * minute, "00:00:09": 9 * second, "1:02:03": hour + 2*minute + 3*second, "100:00:00": 100 * hour,
		"2-12": 60 * hour, "1-06:30": 30*hour + 30*minute, "1-00:00:30": 24*hour + 30*second, "0-1": hour,
	} {
		for name, parse := range map[string]func(string) (time.Duration, error){
			"Duration": timetext.Duration, "Seconds": timetext.Seconds,
		} {
			if got, err := parse(text); got != want || err != nil {
				t.Errorf("%s(%q) = %s, %v, want %s", name, text, got, err, want)
			}
		}
	}
}

func TestANumberWithoutAUnitCountsSecondsOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90": 90 * second, "20751.1": 20751*second + 100*time.Millisecond, ".5": second / 2,
	} {
		if got, err := timetext.Seconds(text); got != want || err != nil {
			t.Errorf("Seconds(%q) = %s, %v, want %s", text, got, err, want)
		}
		refused(t, text, fmt.Sprintf("%q has no unit: write %ss or %sm", text, text, text))
	}
}

func TestADurationThatIsNotOneIsRefusedWithItsReadings(t *testing.T) {
	t.Parallel()
	generic := func(text string) string {
		return fmt.Sprintf("%q is not a duration such as 90s, 2h30m, 02:30:00 or 1-12:00 (days-hours)", text)
	}
	for text, want := range map[string]string{
		"1:30":     `"1:30" has two meanings: write 1h30m or 1m30s`,
		"90:00":    `"90:00" has two meanings: write 90h or 90m`,
		"00:30":    `"00:30" has two meanings: write 30m or 30s`,
		"0:00":     `"0:00" has two meanings: write 0h or 0m`,
		"1:60:00":  `"1:60:00" is not a duration: its minutes must be less than 60`,
		"1:00:60":  `"1:00:60" is not a duration: its seconds must be less than 60`,
		"1-24":     `"1-24" is not a duration: its hours must be less than 24`,
		"1-02:99":  `"1-02:99" is not a duration: its minutes must be less than 60`,
		"999999-0": `"999999-0" is not a duration: it is longer than 292 years`,
		"":         generic(""), "2d": generic("2d"), "much": generic("much"), "1h 30m": generic("1h 30m"),
		"-1:00:00": generic("-1:00:00"), "1:2:3": generic("1:2:3"), "1e9": generic("1e9"), "NaN": generic("NaN"),
	} {
		refused(t, text, want)
	}
	long := strings.Repeat("9", 400)
	for _, text := range []string{long + "-00", long + ":00:00", long + ":00", long + "s", long} {
		if _, err := timetext.Seconds(text); err == nil || len(err.Error()) > 250 {
			t.Errorf("Seconds of %d characters: %v, want a short error", len(text), err)
		}
	}
}

// refused checks that Duration refuses a text with a message.
func refused(t *testing.T, text, want string) {
	t.Helper()
	if d, err := timetext.Duration(text); err == nil || err.Error() != want {
		t.Errorf("Duration(%q) = %s, %v, want %s", text, d, err, want)
	}
}

func FuzzDuration(f *testing.F) {
	for _, text := range []string{"90", "2h30m", "01:30:00", "1-12:30:59", "1:30", "9999999999-23", "0-0", "::", "-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		exact, err := timetext.Duration(text)
		lenient, also := timetext.Seconds(text)
		if err == nil && (also != nil || exact != lenient) {
			t.Errorf("%q is %s, but as seconds %s, %v", text, exact, lenient, also)
		}
		for _, err := range []error{err, also} {
			if err != nil && (len(err.Error()) > 400 || strings.Contains(err.Error(), "time:")) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if again, err := timetext.Duration(exact.String()); err != nil || again != exact {
			t.Errorf("%q is %s, which is %s, %v", text, exact, again, err)
		}
	})
}

func TestInstants(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	now := time.Date(2026, 12, 2, 16, 30, 0, 0, berlin)     // a Wednesday
	for _, c := range []struct{ text, ahead, back string }{ // empty: refused
		{"17:00", "2026-12-02T17:00:00+01:00", "2026-12-02T17:00:00+01:00"},
		{"today 17:00:30", "2026-12-02T17:00:30+01:00", "2026-12-02T17:00:30+01:00"},
		{"16:30", "2026-12-02T16:30:00+01:00", "2026-12-02T16:30:00+01:00"},
		{"16:29", "", "2026-12-02T16:29:00+01:00"},
		{"yesterday 09:00", "", "2026-12-01T09:00:00+01:00"},
		{"tomorrow 09:00", "2026-12-03T09:00:00+01:00", "2026-12-03T09:00:00+01:00"},
		{"Friday 17:00", "2026-12-04T17:00:00+01:00", "2026-11-27T17:00:00+01:00"},
		{"fri 9:00", "2026-12-04T09:00:00+01:00", "2026-11-27T09:00:00+01:00"},
		{"Wednesday 17:00", "2026-12-02T17:00:00+01:00", "2026-11-25T17:00:00+01:00"},
		{"wed 16:00", "2026-12-09T16:00:00+01:00", "2026-12-02T16:00:00+01:00"},
		{"Tuesday 00:00", "2026-12-08T00:00:00+01:00", "2026-12-01T00:00:00+01:00"},
		{"2026-12-04T17:00", "2026-12-04T17:00:00+01:00", "2026-12-04T17:00:00+01:00"},
		{"2026-12-04 17:00:01", "2026-12-04T17:00:01+01:00", "2026-12-04T17:00:01+01:00"},
		{"2026-07-01T17:00", "", "2026-07-01T17:00:00+02:00"},
		{"2026-12-04T17:00Z", "2026-12-04T17:00:00Z", "2026-12-04T17:00:00Z"},
		{"2026-12-04T17:00:00.5-05:00", "2026-12-04T17:00:00-05:00", "2026-12-04T17:00:00-05:00"},
		{"2026-02-30T17:00", "", ""},
		{"2026-12-04", "", ""},
		{"24:00", "", ""},
		{"Friday", "", ""},
		{"Friday 17", "", ""},
		{"someday 17:00", "", ""},
		{"", "", ""},
		{"Friday 17:00 CET", "", ""},
	} {
		ahead, err := timetext.Ahead(c.text, now)
		check(t, "Ahead", c.text, ahead, err, c.ahead)
		back, err := timetext.Back(c.text, now)
		check(t, "Back", c.text, back, err, c.back)
	}
}

func check(t *testing.T, function, text string, at time.Time, err error, want string) {
	t.Helper()
	if err == nil && at.Format(time.RFC3339) != want || err != nil && want != "" {
		t.Errorf("%s(%q) = %s, %v, want %q", function, text, at.Format(time.RFC3339), err, want)
	}
}

func TestWrongInstantsAreRefusedInASentence(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 2, 16, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"09:00":                `"09:00" has passed: write tomorrow 09:00`,
		"2026-12-02T16:29:59Z": `"2026-12-02T16:29:59Z" has passed`,
		"today 12:00":          `"today 12:00" has passed`,
		"noon": `"noon" is not a time such as 17:00, tomorrow 09:00, Friday 17:00, 2026-12-04T17:00 or ` +
			`2026-12-04T17:00:00Z`,
	} {
		if at, err := timetext.Ahead(text, now); err == nil || err.Error() != want {
			t.Errorf("Ahead(%q) = %s, %v, want %s", text, at, err, want)
		}
	}
}

// On 29 March 2026 the clocks of Berlin skip the hour from 02:00, and on 25 October they show it twice. Those of Lord
// Howe Island change by half an hour, and Apia skipped the whole 30 December 2011.
func TestInstantsWhenTheClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, now, text, want string }{
		{"Europe/Berlin", "2026-03-28T12:00:00Z", "tomorrow 01:59", "2026-03-29T01:59:00+01:00"},
		{"Europe/Berlin", "2026-03-28T12:00:00Z", "tomorrow 02:30", `"tomorrow 02:30" is skipped when the clocks change on 2026-03-29`},
		{"Europe/Berlin", "2026-03-28T12:00:00Z", "Sunday 03:00", "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "2026-03-29T00:30:00Z", "today 23:00", "2026-03-29T23:00:00+02:00"},
		{"Europe/Berlin", "2026-10-24T12:00:00Z", "Sunday 02:30", "2026-10-25T02:30:00+02:00"},
		{"Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T03:00", "2026-10-25T03:00:00+01:00"},
		{"Europe/Berlin", "2026-10-24T22:30:00Z", "tomorrow 00:00", "2026-10-26T00:00:00+01:00"},
		{"Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-04T02:15", `"2026-10-04T02:15" is skipped when the clocks change on 2026-10-04`},
		{"Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-04T02:30", "2026-10-04T02:30:00+11:00"},
		{"Pacific/Apia", "2011-12-29T12:00:00Z", "tomorrow 12:00", `"tomorrow 12:00" is skipped when the clocks change on 2011-12-30`},
		{"America/New_York", "2026-11-01T04:00:00Z", "01:30", "2026-11-01T01:30:00-04:00"},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		at, err := timetext.Ahead(c.text, now.In(zone(t, c.zone)))
		got := at.Format(time.RFC3339)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s at %s: %q = %s, want %s", c.zone, c.now, c.text, got, c.want)
		}
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// Where a duration is accepted, too, a text of three fields is one, and a time of day has two digits for the hour.
func TestInstantsAreToldFromDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"17:00": true, "Friday 17:00": true, "tomorrow 09:00": true, "2026-12-04T17:00": true, "noon": true,
		"2026-12-04": true, "17:00:00": false, "9:00": false, "90:00": false, "2-12": false, "90": false, "1h": false,
		"": false, "-1h": false,
	} {
		if got := timetext.Instant(text); got != want {
			t.Errorf("Instant(%q) = %t", text, got)
		}
	}
}

func FuzzInstant(f *testing.F) {
	for _, text := range []string{"17:00", "Fri 9:00", "2026-12-04T17:00", "2026-12-04T17:00:00+01:00", "yesterday 00:00"} {
		f.Add(text, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		now := time.Unix(unix%(1<<34), 0).UTC()
		if at, err := timetext.Ahead(text, now); err == nil && at.Before(now) {
			t.Errorf("%q at %s is %s", text, now, at)
		}
		if at, err := timetext.Back(text, now); err == nil {
			if again, err := timetext.Back(at.Format(time.RFC3339Nano), now); err != nil || !again.Equal(at) {
				t.Errorf("%q at %s is %s, which is %s, %v", text, now, at, again, err)
			}
		}
	})
}
