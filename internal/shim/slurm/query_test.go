package slurm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

func noVariables(string) string { return "" }

// Each case is a command line of sacct at 13:00, and the period that it shows.
func TestPeriod(t *testing.T) {
	now := time.Date(2026, 11, 26, 13, 0, 0, 0, time.UTC)
	for line, want := range map[string]string{
		"":                         "2026-11-26T00:00:00 2026-11-26T13:00:00",
		"-S 12:00":                 "2026-11-26T12:00:00 2026-11-26T13:00:00",
		"-E 12:00":                 "2026-11-26T00:00:00 2026-11-26T12:00:00",
		"-S 11/20 -E now-1hour":    "2026-11-20T00:00:00 2026-11-26T12:00:00",
		"-s F":                     "2026-11-26T13:00:00 2026-11-26T13:00:00",
		"-s F -S 12:00":            "2026-11-26T12:00:00 2026-11-26T12:00:00",
		"-s F -S 12:00 -E 12:30":   "2026-11-26T12:00:00 2026-11-26T12:30:00",
		"--state=all -S 12:00":     "2026-11-26T12:00:00 2026-11-26T13:00:00",
		"--starttime=now-2days":    "2026-11-24T13:00:00 2026-11-26T13:00:00",
		"-S nonsense":              "invalid time specification: nonsense",
		"-S 12:00 --endtime=never": "invalid time specification: never",
	} {
		q, err := parseSacct(strings.Fields(line), noVariables)
		if err != nil {
			t.Fatal(err)
		}
		from, to, err := q.period(now)
		got := notation.Moment(from) + " " + notation.Moment(to)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("sacct %s: %s, want %s", line, got, want)
		}
	}
}

// Each case is a job that is eligible from one minute, and has ended at another, and whether it is shown in the period
// from minute 10 to minute 20.
func TestWithin(t *testing.T) {
	at := func(minute int) time.Time {
		if minute < 0 {
			return time.Time{}
		}
		return time.Date(2026, 11, 26, 13, minute, 0, 5e8, time.UTC)
	}
	for _, test := range []struct {
		eligible, ended   int // -1: not yet
		state             state
		shown, shownState bool // without and with -s
	}{
		{5, 15, completed, true, true},
		{15, 25, completed, true, false},
		{5, 25, completed, true, false},
		{5, 8, completed, false, false},
		{5, 10, completed, true, true},
		{25, 30, completed, false, false},
		{15, -1, running, true, true},
		{25, -1, pending, false, false},
		{-1, -1, pending, false, false},
		{-1, 15, cancelled, false, true},
	} {
		j := job{State: test.state, Eligible: at(test.eligible), Ended: at(test.ended)}
		from, to := at(10).Truncate(time.Second), at(20)
		if got := within(&j, from, to, false); got != test.shown {
			t.Errorf("%+v is shown: %v", test, got)
		}
		if got := within(&j, from, to, true); got != test.shownState {
			t.Errorf("%+v is shown with -s: %v", test, got)
		}
	}
}

// Each case is a command line of scancel, and the jobs that it selects by its filters.
func TestScancelFilters(t *testing.T) {
	j := func(id int, name, user, account string, s state) job {
		return job{ID: id, Name: name, State: s, Spec: &spec{User: submitter{Name: user, UID: id}, Account: account, Partition: "mine"}}
	}
	jobs := []job{
		j(1, "a", "ann", "lab", running), j(2, "b", "ann", "", pending), j(3, "a", "bob", "lab", pending), j(4, "a b", "bob", "", completing),
	}
	for line, want := range map[string]string{
		"-n a": "1 3", "--jobname=a --name=b": "1 2 3", "-n a,,b": "1 2 3", "-u ann": "1 2", "-u 3,4": "3 4", "-A lab": "1 3",
		"-t PD": "2 3", "-t R -t pending": "1 2 3", "-t running -u bob": "", "-p mine": "1 2 3 4", "-p other": "", "--me -n b": "2", "2 3": "2 3",
		"2 3 -u bob": "3", "7": "",
	} {
		q, err := parseScancel(strings.Fields(line), "ann")
		if err != nil {
			t.Errorf("scancel %s: %v", line, err)
			continue
		}
		var got []string
		for _, j := range q.choose(jobs) {
			got = append(got, fmt.Sprint(j.ID))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("scancel %s: jobs %v, want %s", line, got, want)
		}
	}
}

// Each case is a command line of scontrol, and what it means.
func TestParseScontrol(t *testing.T) {
	for line, want := range map[string]string{
		"show job 7":              "show [7]",
		"show job=7":              "show [7]",
		"show jobid 7_1,8":        "show [7_1 8]",
		"show jobs":               "show []",
		"-o show job 7 8":         "show [7 8] one line",
		"-d -o show jobid=7":      "show [7] one line, details",
		"requeue 7 8_[1-2]":       "requeue [7 8_[1-2]]",
		"requeue":                 "requeue []",
		"-M mine requeue 7":       "requeue [7] on mine",
		"show hostnames n[1-2]":   "hostnames [] n[1-2]",
		"show hostnames":          "hostnames []",
		"show hostn=n1":           "hostnames [] n1",
		"show hostl n1":           "hostlist [] n1",
		"show hostlistS n1":       "hostlistsorted [] n1",
		"-V":                      " [] version",
		"--help -V show":          " [] help",
		"-o":                      "!scontrol without a command is not supported",
		"show":                    "!scontrol show is not supported",
		"show host":               "!scontrol show host is not supported",
		"show config":             "!scontrol show config is not supported",
		"show node n1":            "!scontrol show node is not supported",
		"update jobid=7 nice=3":   "!scontrol update jobid=7 is not supported",
		"show job x":              "!Invalid job id specified for job x",
		"requeue 7 x":             "!Invalid job id specified for job x",
		"show hostnames a b":      "!too many arguments for keyword:show",
		"show hostlist=a b":       "!too many arguments for keyword:show",
		"--no-such-option show":   "!scontrol: unrecognized option",
		"show hostlistsortedmore": "!scontrol show hostlistsortedmore is not supported",
	} {
		q, verb, err := parseScontrol(strings.Fields(line))
		got := ""
		if err != nil {
			got = "!" + err.Error()
		} else {
			got = fmt.Sprint(verb, " ", q.jobs)
			if hostVerb(verb) != "" && len(q.rest) > 0 {
				got += " " + strings.Join(q.rest, " ")
			}
			for text, is := range map[string]bool{" on " + q.clusters: q.clusters != "", " " + q.other: q.other != ""} {
				if is {
					got += text
				}
			}
			switch {
			case q.oneLine && q.details:
				got += " one line, details"
			case q.oneLine:
				got += " one line"
			}
		}
		if got != want && (want[0] != '!' || !strings.HasPrefix(got, want)) {
			t.Errorf("scontrol %s: %q, want %q", line, got, want)
		}
	}
}

// Formats in environment variables are defaults, which options override.
func TestFormatVariables(t *testing.T) {
	getenv := func(name string) string {
		return map[string]string{"SQUEUE_FORMAT": "%i", "SACCT_FORMAT": "state", "SINFO_FORMAT": "%P"}[name]
	}
	for line, want := range map[string]string{"": "JOBID\n", "-o %t": "ST\n", "-O name:5": "NAME \n", "-o %t -O name:5": "NAME \n", "-O name -o %t": "ST\n"} {
		q, err := parseSqueue(strings.Fields(line), getenv, "me")
		if err != nil || q.lines.header() != want {
			t.Errorf("squeue %s: %q, %v; want %q", line, q.lines.header(), err, want)
		}
	}
	for line, want := range map[string]string{
		"": "State", "-o jobid": "JobID", "-b": "JobID State ExitCode", "-o ,": "State", "-b -o user": "User",
	} {
		q, err := parseSacct(strings.Fields(line), getenv)
		var names []string
		for _, p := range q.lines.places {
			names = append(names, p.name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("sacct %s: %q, %v; want %q", line, got, err, want)
		}
	}
	for line, want := range map[string]string{
		"": "%P", "-o %a": "%a", "-l": infoLong, "-N": infoNodes, "-Nl": infoNodesLong, "-s": infoSummary, "-sl": infoSummary, "-N -o %a": "%a",
	} {
		q, err := parseSinfo(strings.Fields(line), getenv)
		if err != nil || q.columns != want {
			t.Errorf("sinfo %s: %q, %v; want %q", line, q.columns, err, want)
		}
	}
	if _, err := parseSacct(nil, func(string) string { return "nothing" }); err == nil {
		t.Error("an unknown field in SACCT_FORMAT is accepted")
	}
}

// The tasks of an array that wait share a row, except for those whose dependency can never be met.
func TestRows(t *testing.T) {
	s, started := &spec{}, time.Date(2026, 11, 26, 13, 0, 0, 0, time.UTC)
	jobs := []job{
		{ID: 1, Spec: s, State: pending},
		{ID: 2, ArrayID: 2, ArrayTask: 9, Spec: s, State: pending, Reason: forResources},
		{ID: 3, ArrayID: 2, ArrayTask: 3, Spec: s, State: running, Started: started},
		{ID: 4, ArrayID: 2, ArrayTask: 4, Spec: s, State: pending, Reason: forArray},
		{ID: 5, ArrayID: 2, ArrayTask: 5, Spec: s, State: pending, Reason: neverSatisfied},
		{ID: 6, ArrayID: 2, ArrayTask: 6, Spec: s, State: cancelled},
		{ID: 7, ArrayID: 7, ArrayTask: 1, Spec: s, State: pending},
	}
	ids := func(list []*row) (ids []string) {
		for _, r := range list {
			ids = append(ids, r.id()+" "+r.raw())
		}
		return ids
	}
	together := []string{"1 1", "2_[4,9] 2", "2_3 3", "2_[5] 2", "2_[6] 2", "7_[1] 7"}
	apart := []string{"1 1", "2_9 2", "2_3 3", "2_4 2", "2_5 2", "2_6 2", "7_1 7"}
	if diff := cmp.Diff(together, ids(rows(jobs, false, started))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(apart, ids(rows(jobs, true, started))); diff != "" {
		t.Error(diff)
	}
}
