package slurm

import (
	"slices"
	"strings"
	"testing"
)

// A pilot must be exactly one job, regardless of the site's option lines and their notation.
func TestLinesThatDoNotMakeOneJob(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"--nice=1":                              "",
		"#SBATCH --nice=1":                      "",
		"--comment='two --array words'":         "",
		"--wait-all-nodes=1":                    "",
		"-H":                                    "",
		"-Jarray":                               "", // a name
		"-kA chem":                              "",
		"-K9":                                   "",
		"# --array=1-3 is a remark":             "",
		"--array=1-3":                           "--array=1-3",
		`"--array=1-3"`:                         "--array=1-3",
		`'--array=1-3'`:                         "--array=1-3",
		`--ar"ray"=1-3`:                         "--array=1-3",
		`\--arr=1-3`:                            "--arr=1-3",
		`"-a" 1-3`:                              "-a",
		"-a1-3":                                 "-a1-3",
		"-Ha1-3":                                "-Ha1-3",
		"-HQa1-3":                               "-HQa1-3",
		`-H"a1-3"`:                              "-Ha1-3",
		"-QW":                                   "-QW",
		"-vMother":                              "-vMother",
		`#SBATCH	"--clusters=all"`:              "--clusters=all",
		`--nice=1 "--wait"`:                     "--wait",
		`--mail-user="a b" "--test-only" other`: "--test-only",
		`"hetjob"`:                              "hetjob",
		`"--array=1-3`:                          "--array=1-3", // the quote is not closed
	} {
		if got := notOneJob(line); got != want {
			t.Errorf("notOneJob(%s) = %q, want %q", line, got, want)
		}
	}
}

// Options are found in quotes as well as without, and every line can be parsed.
func FuzzLines(f *testing.F) {
	for _, line := range []string{"--array=1-3", `"--array=1-3" -J'a b'`, `-H"a1-3`, `\`, "#SBATCH hetjob"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		_ = notOneJob(line)
		for _, word := range words(line) {
			if strings.ContainsAny(word, "\"'\\ \t\n\r") {
				continue // it would need quotes itself
			}
			for _, quoted := range []string{`"` + word + `"`, "'" + word + "'"} {
				if got := words(quoted); !slices.Equal(got, []string{word}) {
					t.Errorf("words(%s) = %q", quoted, got)
				}
			}
		}
	})
}
