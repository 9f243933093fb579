package slurm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// Each case is a command line of srun, and the command that srun runs or its error.
func TestParseRun(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"hostname":                          "hostname",
		"-n1 --cpu-bind=q hostname -f":      "hostname -f",
		"--ntasks=1 -N 1 -c 4 -u -- -odd x": "-odd x",
		"-D /tmp --export=ALL --mpi=none a": "a in /tmp",
		"--exclusive --mem 4G a":            "a",
		"-n 2 a":                            "--ntasks=2 is not supported on a Corral cluster",
		"-n2 a":                             "--ntasks=2 is not supported on a Corral cluster",
		"--ntasks=4 a":                      "--ntasks=4 is not supported on a Corral cluster",
		"--multi-prog a":                    "srun: unrecognized option",
		"--export=A a":                      "--export=A is not supported on a Corral cluster",
		"-c":                                "srun: option requires an argument",
		"-n1":                               "fatal: No command given to execute.",
		"":                                  "fatal: No command given to execute.",
	} {
		l, err := parseRun(strings.Fields(line))
		got := strings.Join(l.command, " ")
		if l.directory != "" {
			got += " in " + l.directory
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("srun %s: %q, want %q", line, got, want)
		}
	}
}

// Each case is a list of words, and the jobs that they select: job 5 is a single job, and job 10 is an array of three.
func TestMembers(t *testing.T) {
	t.Parallel()
	firsts := []job{
		{ID: 5, Spec: &spec{}}, {ID: 10, ArrayID: 10, Spec: &spec{Array: "3-9:3"}},
		{ID: 11, ArrayID: 10, Spec: &spec{Array: "3-9:3"}},
	}
	for line, want := range map[string]string{
		"5": "[[5]]", "10": "[[10 11 12]]", "11": "[[11]]", "10_6,5,10_[1-9]": "[[11] [5] [10 11 12]]", "7,10_9": "[[] [12]]",
		"5_1": "[[]]", "10_4": "[[]]", "10_*": "[[10 11 12]]", "11_3": "[[]]",
	} {
		list, err := notation.ParseJobIDs(line)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := members(firsts, list)
		if fmt.Sprint(got) != want {
			t.Errorf("%s means %v, want %s", line, got, want)
		}
	}
}

// Each case is a command line of scancel, and the jobs that it selects, or the reason why it selects none.
func TestParseScancel(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"12": "", "12 13_4 14_[1-3]": "", "-n a,b": "", "--name=a": "", "-uann -t PD": "", "--me": "", "-Q 12": "",
		"--signal=KILL 12": "", "-b 12": "", "-s 15 12": "",
		"-s USR1 12": "--signal=USR1 is not supported", "": "No job identification provided", "-Q": "No job identification provided",
		"x": "Invalid job id x", "-t DONE": "Invalid job state DONE", "-n": "option requires an argument",
		"--interactive 12": "unrecognized option", "--user= 12": "--user has no value", "--account=": "--account has no value",
		"--name=,": "--name has no value", "--state=": "--state has no value", "--partition=": "--partition has no value",
		"--user=,ann": "",
	} {
		_, err := parseScancel(strings.Fields(line), "ann")
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("scancel %s: %v, want %q", line, err, says)
		}
	}
}
