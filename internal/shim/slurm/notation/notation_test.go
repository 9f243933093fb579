package notation_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// testdata contains the answers of Slurm 22.05's own sbatch to each text: a text, a tab, and the value that squeue then
// showed, or "!" and sbatch's error. otherwise contains the texts that the shim treats differently, and the reasons.
var otherwise = map[string]string{
	"999999999": "years that overflow in Slurm", "99999999": "likewise", "12345678901": "likewise",
	"99999999999": "more than there is", "0-3%2": "",
	"65": "no signal", "-1": "no signal, nor a size",
	"afterok:999999999999": "overflows in Slurm", "afterok:4294967294": "likewise",
	"after:BASE+5": "unsupported", "after:BASE+5:SECOND+1": "unsupported", "aftercorr:ARR": "unsupported",
	"aftercorr:99999": "unsupported", "afterburstbuffer:BASE": "unsupported", "expand:BASE": "unsupported",
	"x%3": "a pattern without an end", "%5%": "likewise",
}

// oracle calls check with each text of a testdata file and Slurm's answer to it.
func oracle(t *testing.T, file string, check func(text string) (string, error)) {
	t.Helper()
	content, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		text, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		got, err := check(text)
		if otherwise[text] != "" {
			continue
		}
		switch {
		case strings.HasPrefix(want, "!"):
			if err == nil {
				t.Errorf("%s: %q = %q; Slurm says %s", file, text, got, want)
			}
		case err != nil || got != want:
			t.Errorf("%s: %q = %q, %v; Slurm has %q", file, text, got, err, want)
		}
	}
}

func TestParseLimit(t *testing.T) {
	oracle(t, "times.txt", func(text string) (string, error) {
		d, err := notation.ParseLimit(text)
		if d == 0 && err == nil {
			return "UNLIMITED", nil
		}
		return notation.Clock(d), err
	})
}

func TestParseMemory(t *testing.T) {
	oracle(t, "memory.txt", func(text string) (string, error) {
		n, err := notation.ParseMemory(text)
		if n == 0 && err == nil {
			return "0", nil
		}
		return notation.Memory(n), err
	})
}

func TestParseArray(t *testing.T) {
	oracle(t, "arrays.txt", func(text string) (string, error) {
		a, err := notation.ParseArray(text, 1000)
		if a == nil {
			return "N/A", err
		}
		if a.AtOnce > 0 {
			return fmt.Sprintf("%s%%%d", notation.Numbers(a.Tasks), a.AtOnce), nil
		}
		return notation.Numbers(a.Tasks), nil
	})
	if _, err := notation.ParseArray("0-9999999", 100_000); !errors.Is(err, notation.ErrArray) {
		t.Errorf("an array of 10⁷: %v", err)
	}
}

func TestParseDependencies(t *testing.T) {
	ids := strings.NewReplacer("BASE", "3", "SECOND", "9", "ARR", "4")
	// squeue shows that a condition is not met, and which jobs are arrays.
	unmet := strings.NewReplacer(",", "(unfulfilled),", "?", "(unfulfilled)?")
	names := strings.NewReplacer(":3(", ":BASE(", ":9(", ":SECOND(", ":4_", ":ARR_", ":4(", ":ARR_*(")
	oracle(t, "dependencies.txt", func(text string) (string, error) {
		d, err := notation.ParseDependencies(ids.Replace(text))
		shown := names.Replace(unmet.Replace(d.String() + "(unfulfilled)"))
		if d.List == nil {
			shown = "(null)"
		}
		return shown + " JobHeldUser", err
	})
	var unsupported *notation.Unsupported
	for _, text := range []string{"aftercorr:3", "after:3+5", "afterburstbuffer:3"} {
		if _, err := notation.ParseDependencies(text); !errors.As(err, &unsupported) {
			t.Errorf("%s: %v, want it refused by name", text, err)
		}
	}
}

func TestParseWarning(t *testing.T) {
	oracle(t, "signals.txt", func(text string) (string, error) {
		_, err := notation.ParseWarning(strings.TrimSuffix(text, "@")) // Slurm accepts an empty time
		return "ok", err
	})
	got, err := notation.ParseWarning("B:USR2@30")
	want := &notation.Warning{Signal: 12, Before: 30 * time.Second, Batch: true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("B:USR2@30: %v\n%s", err, diff)
	}
}

func TestExpand(t *testing.T) {
	oracle(t, "patterns.txt", func(text string) (string, error) {
		values := map[byte]string{
			'A': "205", 'a': "7", 'x': "na me", 'u': "root", 'N': "HOST", 'n': "0", 't': "0", 's': "batch",
		}
		// Each pattern was tried with a separate job.
		values['j'] = map[string]string{"x%j": "203", "x%4j": "204", "x%12j": "223", "x%0j": "224", "x%%%j": "227"}[text]
		values['J'] = "217"
		return notation.Expand(text, values), nil
	})
}

func TestExport(t *testing.T) {
	caller := []string{"FOO=1", "BAR=2", "EMPTY=", "SLURM_X=9"}
	for text, want := range map[string]string{
		"ALL": "FOO=1 BAR=2 EMPTY= SLURM_X=9", "all": "FOO=1 BAR=2 EMPTY= SLURM_X=9", "NONE": "SLURM_X=9",
		"NIL": "SLURM_X=9", "FOO": "FOO=1 SLURM_X=9", "A=1,B=2": "SLURM_X=9 A=1 B=2", "FOO,ALL": "FOO=1 BAR=2 EMPTY= SLURM_X=9",
		`A="1,2",B=3`: `SLURM_X=9 A="1,2" B=3`, "ALL,FOO=5": "BAR=2 EMPTY= SLURM_X=9 FOO=5", "NOSUCH": "SLURM_X=9",
		"A=x=y": "SLURM_X=9 A=x=y", `A=\,B=2`: `SLURM_X=9 A=\ B=2`, "NONE,A=1": "SLURM_X=9 A=1", ",A=1": "SLURM_X=9 A=1",
	} {
		e := notation.ParseExport(text)
		if got := strings.Join(e.Environment(caller), " "); got != want {
			t.Errorf("--export=%s: %q, want %q", text, got, want)
		}
	}
}

func TestParseJobIDs(t *testing.T) {
	ids, err := notation.ParseJobIDs("12,13_4,14_[1-4,7],15_*,16.batch,,17_2.0")
	var got []string
	for _, id := range ids {
		got = append(got, id.String())
	}
	if want := "12 13_4 14_[1-4,7] 15 16 17_2"; strings.Join(got, " ") != want || err != nil {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	for _, bad := range []string{"x", "0", "1_", "1_x", "-1", "1234567890123", "1_[1-99999999]"} {
		if ids, err := notation.ParseJobIDs(bad); !errors.Is(err, notation.ErrJobID) {
			t.Errorf("%q = %v, %v", bad, ids, err)
		}
	}
}

func TestDirectives(t *testing.T) {
	script := "#!/bin/sh\n\n  # a comment\n#SBATCH -J \"a b\" -o x\\ y # no\n#SBATCH\t--mem=5 'it''s'\n#SBATCHX --no\n" +
		"##SBATCH --no\n #SBATCH --no\nset -e\n#SBATCH --late\n"
	got, err := notation.Directives(script)
	want := [][]string{{"-J", "a b", "-o", "x y"}, {"--mem=5", "its"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	_, err = notation.Directives("#!/bin/sh\n#SBATCH -J \"a b\ntrue\n")
	if want := "line 2: Unmatched `\"` in [ \"a b]"; err == nil || err.Error() != want {
		t.Errorf("an open quote: %v, want %s", err, want)
	}
	for _, bad := range []string{"", " \n", "no script\n", "#!/bin/sh\na\x00b", "#!/bin/sh\r\n"} {
		if notation.CheckScript(bad) == nil {
			t.Errorf("%q is not a script", bad)
		}
	}
}

func TestHosts(t *testing.T) {
	got, err := notation.Hosts("n[1-3,05-07],x,a[9-10]b")
	if want := "n1 n2 n3 n05 n06 n07 x a9b a10b"; strings.Join(got, " ") != want || err != nil {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
	for _, bad := range []string{"n[1-", "n[1-99999999]", "n[x]", "n[3-1]", "n[1][2]"} {
		if _, err := notation.Hosts(bad); err == nil {
			t.Errorf("%q is a list of hosts", bad)
		}
	}
}

func TestJoinHosts(t *testing.T) {
	for names, want := range map[string]string{
		"":                          "",
		"n7":                        "n7",
		"login":                     "login",
		"n1 n2 n3 n5 x n6":          "n[1-3,5],x,n6",
		"n08 n09 n10 n9 n10":        "n[08-10,9-10]",
		"n9 n010":                   "n[9,010]",
		"n99 n100 n101":             "n[99-101]",
		"n2 n1 n1":                  "n[2,1,1]",
		"a1b2 a1b3 a1c1":            "a1b[2-3],a1c1",
		"n123456789012345 n1 n2 m3": "n123456789012345,n[1-2],m3",
		"1 2":                       "[1-2]",
		"a9b a10b":                  "a9b,a10b",
	} {
		got := notation.JoinHosts(strings.Fields(names))
		if back, err := notation.Hosts(got); got != want || err != nil || strings.Join(back, " ") != names {
			t.Errorf("%s: got %s, want %s, which is read as %v, %v", names, got, want, back, err)
		}
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 11, 26, 10, 30, 15, 0, time.UTC)
	for text, want := range map[string]string{
		"now": "2026-11-26T10:30:15", "now-2days": "2026-11-24T10:30:15", "now+1hour": "2026-11-26T11:30:15",
		"now-90": "2026-11-26T10:28:45", "today": "2026-11-26T00:00:00", "midnight": "2026-11-26T00:00:00",
		"noon": "2026-11-26T12:00:00", "tomorrow": "2026-11-27T00:00:00", "2026-11-20": "2026-11-20T00:00:00",
		"2026-11-20T08:15": "2026-11-20T08:15:00", "2026-11-20t08:15:09": "2026-11-20T08:15:09",
		"11/20": "2026-11-20T00:00:00", "1120": "2026-11-20T00:00:00", "11/20/25": "2025-11-20T00:00:00",
		"08:15": "2026-11-26T08:15:00", "3:04pm": "2026-11-26T15:04:00", "11/20-08:15": "2026-11-20T08:15:00",
	} {
		got, err := notation.ParseMoment(text, now)
		if notation.Moment(got) != want || err != nil {
			t.Errorf("%s is %s, %v; want %s", text, notation.Moment(got), err, want)
		}
	}
	for _, bad := range []string{"", "yesterdayish", "now-", "now-2fortnights", "now*3", "2026-13-01", "now+99999999weeks"} {
		if got, err := notation.ParseMoment(bad, now); err == nil {
			t.Errorf("%q is %s", bad, got)
		}
	}
}

// No input crashes a parser or makes it produce a text that it cannot parse.
func FuzzNotation(f *testing.F) {
	for _, file := range []string{"times", "memory", "arrays", "dependencies", "signals", "patterns"} {
		content, err := os.ReadFile("testdata/" + file + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(content) {
			text, _, _ := bytes.Cut(line, []byte("\t"))
			f.Add(string(text))
		}
	}
	for _, text := range []string{"1_[1-4],2", "now-2days", "n[1-3]", "#!/bin/sh\n#SBATCH -J 'a b'\n", "ALL,A=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := notation.ParseArray(text, 1000); err == nil && a != nil {
			b, err := notation.ParseArray(notation.Numbers(a.Tasks), 1000)
			if err != nil || !slices.Equal(a.Tasks, b.Tasks) || !slices.IsSorted(a.Tasks) {
				t.Errorf("array %q: %v, then %v, %v", text, a, b, err)
			}
		}
		if ids, err := notation.ParseJobIDs(text); err == nil {
			for _, id := range ids {
				if again, err := notation.ParseJobID(id.String()); err != nil || again.String() != id.String() {
					t.Errorf("job %s is read as %s, %v", id, again, err)
				}
			}
		}
		if d, err := notation.ParseDependencies(text); err == nil {
			plain := d.String()
			if again, err := notation.ParseDependencies(plain); err != nil || again.String() != plain {
				t.Errorf("dependencies %s are read as %v, %v", plain, again, err)
			}
		}
		if d, err := notation.ParseLimit(text); err == nil && (d < 0 || d%time.Minute != 0) {
			t.Errorf("limit %q is %v", text, d)
		}
		if n, err := notation.ParseMemory(text); err == nil && n < 0 {
			t.Errorf("memory %q is %d", text, n)
		}
		if hosts, err := notation.Hosts(text); err == nil && len(hosts) > notation.MaxHosts {
			t.Errorf("%d hosts", len(hosts))
		} else if list := notation.JoinHosts(hosts); err == nil && !strings.Contains(strings.Join(hosts, ""), "]") {
			if again, err := notation.Hosts(list); err != nil || !slices.Equal(again, hosts) {
				t.Errorf("%q is %q, written as %q, which is read as %q, %v", text, hosts, list, again, err)
			}
		}
		_, _ = notation.ParseMoment(text, time.Unix(1_800_000_000, 0))
		_, _ = notation.ParseWarning(text)
		_, _ = notation.Directives(text)
		_ = notation.CheckScript(text)
		_ = notation.ParseExport(text).Environment([]string{text, "A=1"})
		_ = notation.Expand(text, map[byte]string{'j': "12", 'x': text})
	})
}
