package cli

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

var sizes = []struct {
	text string
	want int // -1: not a size
}{
	{"", 0}, {"1MiB", 1}, {"512MiB", 512}, {"4GiB", 4096}, {"1.5GiB", 1536}, {"2TiB", 2 << 20}, {"1GB", 954}, {"1MB", 1},
	{"1KiB", 1}, {"1025KiB", 2}, {"1kB", 1}, {"1TB", 953675}, {"2047TiB", 2047 << 20},
	{"4", -1}, {"GiB", -1}, {"4gib", -1}, {"4 GiB", -1}, {"-4GiB", -1}, {"+4GiB", -1}, {"0GiB", -1}, {"1e3MiB", -1}, {"0x4GiB", -1},
	{"InfGiB", -1}, {"NaNMiB", -1}, {"1_0MiB", -1}, {"..GiB", -1}, {"4GiBMiB", -1}, {"9999999TiB", -1}, {"4G", -1},
}

func TestParseMiB(t *testing.T) {
	t.Parallel()
	for _, tt := range sizes {
		got, err := parseMiB("--memory", tt.text)
		if tt.want < 0 {
			if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "--memory: ") {
				t.Errorf("parseMiB(%q) = %d, %v, want an Invalid error at --memory", tt.text, got, err)
			}
		} else if err != nil || got != tt.want {
			t.Errorf("parseMiB(%q) = %d, %v, want %d", tt.text, got, err, tt.want)
		}
	}
}

func FuzzParseMiB(f *testing.F) {
	for _, s := range sizes {
		f.Add(s.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseMiB("size", s)
		switch {
		case err == nil && (n < 0 || n > math.MaxInt32 || n == 0 && s != ""):
			t.Errorf("parseMiB(%q) = %d", s, n)
		case err != nil && (n != 0 || corral.KindOf(err) != corral.Invalid):
			t.Errorf("parseMiB(%q) = %d, %v", s, n, err)
		}
	})
}

// parseMiB can read the whole units that size prints.
func TestSizeIsReadAsPrinted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1023).Draw(t, "MiB")
		if rapid.Bool().Draw(t, "GiB") {
			n *= 1024
		}
		got, err := parseMiB("size", strings.ReplaceAll(size(n), " ", ""))
		if err != nil || got != n {
			t.Fatalf("%d is printed %q and read as %d, %v", n, size(n), got, err)
		}
	})
}

func TestParseLabels(t *testing.T) {
	t.Parallel()
	got, err := parseLabels("--label", []string{"a=b", "c=d=e", "f=", "a=last", "g=h,i"})
	want := map[string]string{"a": "last", "c": "d=e", "f": "", "g": "h,i"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("parseLabels: %v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"", "a", "=b"} {
		if _, err := parseLabels("-l", []string{"a=b", bad}); err == nil || !strings.HasPrefix(err.Error(), "-l: ") {
			t.Errorf("parseLabels(%q): %v, want an error at -l", bad, err)
		}
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 30, 0, 0, 0, 0, time.UTC)
	got, err := parseTime("--not-before", "2026-01-31T09:00:00+01:00", now)
	if want := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC); err != nil || !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("parseTime = %v, %v, want %v", got, err, want)
	}
	if got, err := parseTime("", "", now); err != nil || !got.IsZero() {
		t.Errorf("parseTime of nothing = %v, %v", got, err)
	}
	if _, err := parseTime("--not-before", "2026-01-31", now); corral.KindOf(err) != corral.Invalid {
		t.Errorf("parseTime of a date: %v, want an Invalid error", err)
	}
}

func TestNumbered(t *testing.T) {
	t.Parallel()
	if got, err := idKey[corral.RunID]("run", "12"); err != nil || got != 12 {
		t.Errorf("numbered = %v, %v, want 12", got, err)
	}
	for _, bad := range []string{"", "0", "-1", "x", "1.5", "99999999999999999999"} {
		if got, err := idKey[corral.RunID]("run", bad); corral.KindOf(err) != corral.Invalid {
			t.Errorf("numbered(%q) = %v, %v, want an Invalid error", bad, got, err)
		}
	}
}

func TestCountDown(t *testing.T) {
	t.Parallel()
	if left := countDown(0)(); left != 0 {
		t.Errorf("without a limit %s are left, want 0", left)
	}
	hour := countDown(time.Hour)
	if left := hour(); left != time.Hour { // users then read "not workers, after 1h0m0s"
		t.Errorf("of an hour %s are left at once", left)
	}
	if left := hour(); left <= 50*time.Minute || left >= time.Hour {
		t.Errorf("of an hour %s are left after that", left)
	}
	over := countDown(time.Nanosecond)
	over()
	if left := over(); left <= 0 || left > time.Millisecond {
		t.Errorf("when the time is over %s are left, want a little: 0 means no limit", left)
	}
}

// TestBadKeyIsRefusedFirst: an invalid --key is refused before anything is sent, whatever else is wrong with the
// command line.
func TestBadKeyIsRefusedFirst(t *testing.T) {
	t.Parallel()
	verbs := 0
	everyCommand(func(_ *cli.App, path []*cli.Command) {
		if len(path) == 0 || lookup(path[len(path)-1].Flags, "key") == nil {
			return
		}
		verbs++
		args := []string{"corral", "--server", "unix:/nowhere"}
		for _, c := range path {
			args = append(args, c.Name)
		}
		for _, key := range []string{"", "a\nb", " k", "clé", strings.Repeat("k", api.MaxKey+1)} {
			var stderr strings.Builder
			code := run(t.Context(), append(args[:len(args):len(args)], "--key", key), stdio{err: &stderr, out: io.Discard})
			said := stderr.String()
			if code != 2 || !strings.HasPrefix(said, "corral: --key: ") || strings.Count(said, "\n") != 1 {
				t.Errorf("%q --key %.20q: exit code %d: %s", args, key, code, said)
			}
		}
	})
	if verbs < 5 {
		t.Errorf("%d verbs have --key", verbs)
	}
}
