package slurm

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A recorded is a command with the output that the Slurm 22.05 of scripts/slurm printed for it at one moment.
type recorded struct {
	words  []string
	output string
	at     time.Time
}

// A scene contains the output of many Slurm commands about some twenty jobs at one time. The first two commands print
// all data about the jobs.
type scene struct {
	commands []recorded
	jobs     []job
	cluster  string
	workers  []corral.Worker
}

// readScene reads testdata/NAME.txt: "@ TIME", "$ COMMAND", and its output, repeatedly.
func readScene(t *testing.T, name string) scene {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	var s scene
	for _, part := range regexp.MustCompile(`(?m)^@ `).Split(string(content), -1)[1:] {
		at, rest, _ := strings.Cut(part, "\n$ ")
		command, output, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s.commands = append(s.commands, recorded{split(command), output, time.Unix(n, 0).UTC()})
	}
	s.jobs = readJobs(t, s.commands[0].output, s.commands[1].output)
	node := corral.Worker{ID: s.jobs[0].Node, CPUs: 2, CPUsFree: 2, MemoryMiB: 4000, GPUs: 2}
	for _, j := range s.jobs {
		if j.State == running {
			node.CPUsFree -= j.Spec.Size.CPUs
		}
	}
	s.commands, s.cluster, s.workers = s.commands[2:], "normal", []corral.Worker{node}
	return s
}

// split splits a command line at blanks outside single quotes.
func split(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// readJobs makes jobs from the output of squeue and sacct, whose fields are separated by |.
func readJobs(t *testing.T, squeue, sacct string) []job {
	t.Helper()
	accounts := map[string][]string{}
	for line := range strings.Lines(sacct) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		accounts[f[1]] = f // 33_2, or 33_[0-3,7]
	}
	var jobs []job
	for line := range strings.Lines(squeue) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		id := f[0]
		if f[2] != "N/A" {
			id = f[1] + "_" + f[2]
		}
		account := accounts[id]
		for key, a := range accounts { // pending tasks of an array share one line
			if strings.HasPrefix(key, f[1]+"_[") && account == nil {
				account = a
			}
		}
		if account == nil {
			t.Fatalf("sacct says nothing of %s", id)
		}
		jobs = append(jobs, readJob(t, f, account))
	}
	return jobs
}

func readJob(t *testing.T, f, account []string) job {
	t.Helper()
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	when := func(s string) time.Time { v, _ := time.Parse("2006-01-02T15:04:05", s); return v }
	none := func(s string) string { return strings.ReplaceAll(s, "(null)", "") }
	j := job{
		ID: number(f[0]), Name: f[3], State: state(f[13]), Reason: reason(f[14]), Node: f[15],
		Submitted: when(f[10]), Eligible: when(account[3]), Started: when(f[11]), Ended: when(f[12]),
		Spec: &spec{
			User: submitter{Name: f[4], UID: number(f[5]), Group: f[6], GID: number(account[9])}, Account: f[7], Partition: f[8],
			Comment: none(f[9]), Command: none(f[19]), Submit: account[8], Host: "localhost",
			Dependency: regexp.MustCompile(`\([a-z]+\)`).ReplaceAllString(f[21], ""), Nice: number(f[22]), Requeue: true,
			Size: notation.Size{CPUs: number(f[18]), Tasks: 1},
		},
	}
	limit, _ := notation.ParseLimit(f[16])
	j.Spec.TimeLimit = corral.Seconds(limit)
	j.Spec.Size.MemoryMiB, _ = notation.ParseMemory(f[17])
	j.Spec.Size.MemoryEach = f[17] == "100M" || f[17] == "200M" // the default, and a requested size
	j.Spec.Size.CPUsPerTask = j.Spec.Size.CPUs
	_, _ = fmt.Sscanf(account[7], "%d:%d", &j.Exit.Status, &j.Exit.Signal)
	j.Priority, _ = strconv.ParseInt(f[24], 10, 64)
	if f[2] != "N/A" {
		j.ArrayID, j.ArrayTask = number(f[1]), number(f[2])
	}
	if j.State == running {
		j.Ended = time.Time{}
	}
	if j.Node == "" { // it never started, although squeue shows when it was cancelled
		j.Started = time.Time{}
	}
	if j.Node != "" && (j.State == cancelled || j.State == timeout) {
		j.Exit.Signal = 15
	}
	files(j.Spec, j.Name, f[20], account[8])
	if j.Name == "nodefail" || strings.HasPrefix(j.Name, "a-very") {
		j.Spec.Requeue = false
	}
	return j
}

// files sets the files to which scene.sh makes jobs write, which squeue does not show.
func files(s *spec, name, directory, submit string) {
	s.Directory, s.Output = directory, directory+"/slurm-%j.out"
	switch name {
	case "two words":
		s.Output, s.Error = directory+"/%x-%j.log", directory+"/err.%j"
	case "array":
		s.Output = directory + "/slurm-%A_%a.out"
	case "waiting":
		s.Output = directory + "/slurm-%A_%a.out"
		if strings.Contains(submit, " -o ") {
			s.Output = directory + "/out/%A_%a"
		}
	}
}

// unknowable matches parts of Slurm's output that the shim cannot determine, or that exist only in Slurm: the time of
// the last scheduling of a job and its scheduler, the session that submitted the job, its CPUs on a node, and the node
// that may be next.
var unknowable = []struct{ pattern, instead string }{
	{`LastSchedEval=\S+ Scheduler=\S+`, "LastSchedEval= Scheduler="},
	{`AllocNode:Sid=\S+`, "AllocNode:Sid="},
	{`CPU_IDs=\S+`, "CPU_IDs="},
	{`\|corral[0-9]{5}\|`, "|normal|"}, // the cluster, which has the same name as its only partition
	{`(?m)^7\.batch\|.*$`, ""},         // the killed script, which ended a second later than the job
	{` SchedNodeList=\S+`, ""},
	{`(?m)p[0-9]+n1\|\*:\*:\*$`, "(null)|*:*:*"},                   // squeue's %Y
	{`(?m)^(normal\*.*?[ |]) *(1-00:00:00|infinite)`, "${1}LIMIT"}, // a cluster has no time limit
}

func withoutUnknowable(text string) string {
	for _, u := range unknowable {
		text = regexp.MustCompile(u.pattern).ReplaceAllString(text, u.instead)
	}
	return text
}

// run returns the standard output that the shim prints for a command.
func (s scene) run(c recorded) (string, error) {
	var b strings.Builder
	getenv := func(string) string { return "" }
	switch words := c.words[1:]; c.words[0] {
	case "squeue":
		q, err := parseSqueue(words, getenv, "root")
		if err != nil {
			return "", err
		}
		err = q.writeQueue(&b, "", s.jobs, c.at)
		return b.String(), err
	case "sacct":
		q, err := parseSacct(words, getenv)
		if err != nil {
			return "", err
		}
		err = q.writeAcct(&b, s.jobs, c.at)
		return b.String(), err
	case "sinfo":
		q, err := parseSinfo(words, getenv)
		if err != nil {
			return "", err
		}
		err = q.writeInfo(&b, "", s.cluster, s.workers, c.at)
		return b.String(), err
	case "scontrol":
		return s.scontrol(words, c.at)
	case "sacctmgr":
		cluster := "corral" + s.jobs[0].Node[1:6] // both names contain the port
		q, err := parseSacctmgr(words)
		if err != nil {
			return "", err
		}
		return q.listUsers([]association{
			{"root", "corral", cluster, "root", "Administrator"}, {"root", "root", cluster, "root", "Administrator"},
		})
	}
	return "", fmt.Errorf("no command %q", c.words)
}

// scontrol runs the few subcommands of a shim's scontrol.
func (s scene) scontrol(words []string, at time.Time) (string, error) {
	q, verb, err := parseScontrol(slices.Clone(words))
	switch {
	case err != nil:
		return "", err
	case verb == "hostnames":
		hosts, err := notation.Hosts(q.rest[0])
		return strings.Join(hosts, "\n") + "\n", err
	}
	return q.show(s.jobs, at)
}

// The commands are those of clients and some others, on jobs of all kinds, while some wait and run, and after all have
// ended.
func TestAsSlurm(t *testing.T) {
	for _, name := range []string{"live", "end"} {
		s := readScene(t, name)
		for _, c := range s.commands {
			line := strings.Join(c.words, " ")
			got, err := s.run(c)
			if err != nil {
				got += notation.Message(c.words[0], err) + "\n"
			}
			if reason := differs(line); reason != "" {
				continue
			}
			want := c.output
			if c.words[0] == "sacct" { // its database lists jobs in the order of their registration
				want, got = sorted(want), sorted(got)
			}
			if diff := cmp.Diff(withoutUnknowable(want), withoutUnknowable(got)); diff != "" {
				t.Errorf("%s: %s (- Slurm, + we)\n%s", name, line, diff)
			}
		}
	}
}

func sorted(text string) string { return strings.Join(slices.Sorted(strings.Lines(text)), "") }

// differs explains why a command's output differs from Slurm's.
func differs(line string) string {
	for beginning, reason := range map[string]string{
		"squeue -j 17_104,18_[1-2] -r": "Slurm shows 18_0, which was not requested",
		"sacct -j 17_104 -n":           "Slurm shows nothing of a task that waits",
		"sinfo -N -l":                  "the node has a feature",
	} {
		if strings.HasPrefix(line, beginning) {
			return reason
		}
	}
	return ""
}

// The fields of sacct are as wide as Slurm's: testdata/fields.txt contains the table header with all fields.
func TestFields(t *testing.T) {
	content, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, dashes, _ := strings.Cut(string(content), "\n")
	head := string(content)
	for dash := range strings.FieldsSeq(dashes) {
		name := strings.TrimSpace(head[:len(dash)])
		head = head[len(dash)+1:]
		a, err := parseSacct([]string{"-j", "1", "-o", name}, func(string) string { return "" })
		if err != nil || name == "Reservat" { // it refuses unknown fields; the rest of this name is cut off
			continue
		}
		var b strings.Builder
		if err := a.writeAcct(&b, nil, time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(b.String(), "\n"); got != dash+" \n" {
			t.Errorf("%s is %q wide, in Slurm %q", name, got, dash)
		}
	}
}

// A width with a minus aligns the text to the left, both in sacctmgr's and in sacct's tables.
func TestLeftAlignedUsers(t *testing.T) {
	words := []string{"list", "user", "format=user%-6,account%4"}
	q, err := parseSacctmgr(words)
	if err != nil {
		t.Fatal(err)
	}
	got, err := q.listUsers([]association{{user: "ann", account: "physics"}})
	if want := "User   Acc+ \n------ ---- \nann    phy+ \n"; got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
