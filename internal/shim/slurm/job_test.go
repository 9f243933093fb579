package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// The values that squeue and sacct show for a task, by its state and cause.
func TestJobOfTask(t *testing.T) {
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	none := func(string) string { return "" }
	seven := 7
	dependent := spec{Dependency: "afterok:1"}
	orphan := spec{Dependency: "afterok:1", KillOrphan: true}
	for _, test := range []struct {
		task  api.TaskStatus
		spec  spec
		queue string // state, reason and dependency
		acct  string // state and exit code
	}{
		{api.TaskStatus{State: "ready"}, spec{}, "PD Resources (null)", "PENDING|0:0"},
		{api.TaskStatus{State: "waiting"}, spec{}, "PD JobArrayTaskLimit (null)", "PENDING|0:0"},
		{api.TaskStatus{State: "waiting"}, dependent, "PD Dependency afterok:1(unfulfilled)", "PENDING|0:0"},
		{api.TaskStatus{State: "running", Attempts: 1}, spec{}, "R None (null)", "RUNNING|0:0"},
		{api.TaskStatus{State: "done", Attempts: 1}, dependent, "CD None (null)", "COMPLETED|0:0"},
		{api.TaskStatus{State: "failed", Attempts: 1, ExitStatus: &seven}, spec{}, "F NonZeroExitCode (null)", "FAILED|7:0"},
		{api.TaskStatus{State: "failed", Attempts: 1, Reason: "killed by SIGKILL"}, spec{}, "F JobLaunchFailure (null)", "FAILED|0:9"},
		{api.TaskStatus{State: "failed", Attempts: 1, Reason: "killed by SIGSEGV"}, spec{}, "F JobLaunchFailure (null)", "FAILED|0:11"},
		{api.TaskStatus{State: "failed", Attempts: 1, Reason: "killed by signal 34"}, spec{}, "F JobLaunchFailure (null)", "FAILED|0:34"},
		{api.TaskStatus{State: "failed", Attempts: 1, Reason: "killed by nobody"}, spec{}, "F JobLaunchFailure (null)", "FAILED|1:0"},
		{api.TaskStatus{State: "failed", Attempts: 1}, spec{}, "F JobLaunchFailure (null)", "FAILED|1:0"},
		{api.TaskStatus{State: "failed", Attempts: 1, Cause: "memory"}, spec{}, "OOM OutOfMemory (null)", "OUT_OF_MEMORY|0:125"},
		{api.TaskStatus{State: "failed", Attempts: 1, Cause: "time"}, spec{}, "TO TimeLimit (null)", "TIMEOUT|0:0"},
		{api.TaskStatus{State: "failed", Attempts: 1, Cause: "withdrawn"}, spec{}, "CA None (null)", "CANCELLED by 1000|0:0"},
		{api.TaskStatus{State: "failed", Cause: "withdrawn"}, dependent, "CA None (null)", "CANCELLED by 1000|0:0"},
		{api.TaskStatus{State: "failed", Attempts: 1, Cause: "lost-worker"}, spec{}, "NF NodeDown (null)", "NODE_FAIL|0:0"},
		{api.TaskStatus{State: "skipped", Cause: "never"}, dependent, "PD DependencyNeverSatisfied afterok:1(failed)", "PENDING|0:0"},
		{api.TaskStatus{State: "skipped"}, dependent, "PD DependencyNeverSatisfied afterok:1(failed)", "PENDING|0:0"},
		{api.TaskStatus{State: "skipped", Cause: "withdrawn"}, dependent, "CA None (null)", "CANCELLED by 1000|0:0"},
		{api.TaskStatus{State: "skipped", Cause: "never"}, orphan, "CA None (null)", "CANCELLED by 1000|0:0"},
	} {
		test.spec.User.UID = 1000
		test.task.Grown = &api.Grown{Number: 3, Attributes: attributesOf(t, test.spec), AddedAt: at}
		test.task.StartedAt, test.task.EndedAt = at, at
		jobs := []job{newReader(Folder{}).job(test.task)}
		q, err := parseSqueue([]string{"-h", "-t", "all", "-o", "%t %r %E"}, none, "me")
		if err != nil {
			t.Fatal(err)
		}
		a, err := parseSacct([]string{"-X", "-n", "-P", "-j", "3", "-o", "state,exitcode"}, none)
		if err != nil {
			t.Fatal(err)
		}
		var queue, acct strings.Builder
		if q.writeQueue(&queue, "", jobs, at) != nil || a.writeAcct(&acct, jobs, at) != nil {
			t.Fatal("cannot write to memory")
		}
		if got := queue.String(); got != test.queue+"\n" {
			t.Errorf("%+v: squeue has %q, want %q", test.task, got, test.queue)
		}
		if got := acct.String(); got != test.acct+"\n" {
			t.Errorf("%+v: sacct has %q, want %q", test.task, got, test.acct)
		}
	}
}

// The first of several jobs that could start waits for resources, and the others wait for the first.
func TestPriority(t *testing.T) {
	r := newReader(Folder{})
	attributes := attributesOf(t, spec{Array: "5-9:2"})
	var got []string
	for i := range 3 {
		j := r.job(api.TaskStatus{State: "ready", Grown: &api.Grown{Number: 7 + i, Element: i, Attributes: attributes}})
		got = append(got, string(j.Reason), notation.JobID{Job: j.ArrayID, Tasks: []int{j.ArrayTask}}.String())
	}
	if diff := cmp.Diff([]string{"Resources", "7_5", "Priority", "7_7", "Priority", "7_9"}, got); diff != "" {
		t.Error(diff)
	}
}

// A spec is restored unchanged from a task's attributes.
func TestAttributesProperty(t *testing.T) {
	text := rapid.StringMatching(`[a-zn ,=%/\\\n]{0,8}`)
	number := rapid.IntRange(-1, 1<<20)
	rapid.Check(t, func(t *rapid.T) {
		s := spec{
			User:      submitter{Name: text.Draw(t, "user"), Group: text.Draw(t, "group"), UID: number.Draw(t, "uid"), GID: number.Draw(t, "gid")},
			Partition: text.Draw(t, "partition"), Account: text.Draw(t, "account"), Comment: text.Draw(t, "comment"),
			QOS:     text.Draw(t, "qos"),
			Command: text.Draw(t, "line"), Submit: text.Draw(t, "submit"), Host: text.Draw(t, "host"),
			Directory: text.Draw(t, "directory"), Input: text.Draw(t, "in"), Output: text.Draw(t, "out"), Error: text.Draw(t, "err"),
			Size: notation.Size{
				CPUs: number.Draw(t, "cpus"), Tasks: number.Draw(t, "tasks"), CPUsPerTask: number.Draw(t, "each"),
				MemoryMiB: int64(number.Draw(t, "mib")), MemoryEach: rapid.Bool().Draw(t, "per cpu"), GPUs: number.Draw(t, "gpus"),
			},
			TimeLimit: corral.Seconds(number.Draw(t, "limit")) * corral.Seconds(time.Minute), Array: text.Draw(t, "array"),
			Dependency: text.Draw(t, "dependency"), KillOrphan: rapid.Bool().Draw(t, "kill"), Requeue: rapid.Bool().Draw(t, "requeue"),
			Nice: number.Draw(t, "nice"),
		}
		attributes, err := s.attributes()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&s, newReader(Folder{}).spec(attributes[specAttribute])); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Ten thousand pending jobs are listed in linear time, with one line for an array.
func TestMany(t *testing.T) {
	r := newReader(Folder{})
	array, single := attributesOf(t, spec{Array: "0-9999"}), attributesOf(t, spec{})
	var jobs []job
	for i := range 10_000 {
		jobs = append(jobs, r.job(api.TaskStatus{State: "ready", Grown: &api.Grown{Number: i + 1, Element: i, Attributes: array}}))
	}
	for i := range 10_000 {
		jobs = append(jobs, r.job(api.TaskStatus{State: "ready", Grown: &api.Grown{Number: 10_001 + i, Attributes: single}}))
	}
	q, err := parseSqueue([]string{"-h", "-o", "%i %t"}, func(string) string { return "" }, "me")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := q.writeQueue(&b, "", jobs, time.Now()); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(b.String(), "\n"); lines != 10_001 || !strings.HasPrefix(b.String(), "1_[0-9999] PD\n10001 PD\n") {
		t.Errorf("%d lines, which begin with %.30q", lines, b.String())
	}
}

// For any words of a command and any attributes of a task, the output consists of whole lines.
func FuzzCommands(f *testing.F) {
	f.Add("-t\nall", "user=me\ncpus=x", "9-1")
	for _, words := range []string{
		"-o\n%i %.9t%%%", "-O\njobid:8,name:.30", "-j\n1_[1-4],2\n-t\nPD,R", "-S\n-i,P\n-l", "-o\njobid%20,state,x%-3\n-P", "-X\n-S\nnow-1day",
		"-N\n-l", "-o\n%#N %20E", "list\nuser\nformat=account%20", "-n\n-s\nlist\nuser",
		"-o\nshow\njob=2\njobid\n1", "-d\nshow\njob", "show\nhostlist\na1,a2", "-n\na,b\n-t\nPD\n12", "-n1\na",
	} {
		f.Add(words, "afterok:1,after:2", "1-3")
	}
	f.Fuzz(func(t *testing.T, line, dependency, array string) {
		r := newReader(Folder{})
		attributes := attributesOf(t, spec{Dependency: dependency, Array: array, Output: line})
		jobs := []job{
			r.job(api.TaskStatus{State: "waiting", Grown: &api.Grown{Number: 1, Name: line, Attributes: attributes}}),
			r.job(api.TaskStatus{State: "failed", Cause: dependency, Grown: &api.Grown{Number: 2, Element: 1, Attributes: attributes}}),
			r.job(api.TaskStatus{State: "done", Grown: &api.Grown{Number: 3, Attributes: map[string]string{specAttribute: line}}}),
		}
		none := func(string) string { return "" }
		words, now := strings.Split(line, "\n"), time.Unix(1_800_000_000, 0).UTC()
		var b strings.Builder
		if q, err := parseSqueue(words, none, "me"); err == nil {
			_ = q.writeQueue(&b, dependency, jobs, now)
		}
		if q, err := parseSacct(words, none); err == nil {
			_ = q.writeAcct(&b, jobs, now)
		}
		if q, err := parseSinfo(words, none); err == nil {
			_ = q.writeInfo(&b, dependency, array, []corral.Worker{{ID: line, CPUs: 2, CPUsFree: 1}, {CPUsFree: -1}}, now)
		}
		if q, err := parseSacctmgr(words); err == nil {
			if text, err := q.listUsers([]association{{user: line}}); err == nil {
				b.WriteString(text)
			}
		}
		if q, verb, err := parseScontrol(words); err == nil && verb == "show" {
			if text, err := q.show(jobs, now); err == nil {
				b.WriteString(text)
			}
		}
		_, _ = parseScancel(words, "me")
		_, _ = parseRun(words)
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			t.Errorf("no whole lines: %q", s)
		}
	})
}

// attributesOf encodes a spec.
func attributesOf(t *testing.T, s spec) map[string]string {
	t.Helper()
	attributes, err := s.attributes()
	if err != nil {
		t.Fatal(err)
	}
	return attributes
}
