package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/internal/shim/slurm/job"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// The values that squeue and sacct show for a task, by its state and cause.
func TestJobOfTask(t *testing.T) {
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	none := func(string) string { return "" }
	dependent := job.Spec{Dependency: "afterok:1"}
	orphan := job.Spec{Dependency: "afterok:1", KillOrphan: true}
	for _, test := range []struct {
		task  job.Task
		spec  job.Spec
		queue string // state, reason and dependency
		acct  string // state and exit code
	}{
		{job.Task{State: "ready"}, job.Spec{}, "PD Resources (null)", "PENDING|0:0"},
		{job.Task{State: "waiting"}, job.Spec{}, "PD JobArrayTaskLimit (null)", "PENDING|0:0"},
		{job.Task{State: "waiting"}, dependent, "PD Dependency afterok:1(unfulfilled)", "PENDING|0:0"},
		{job.Task{State: "running", Begun: 1}, job.Spec{}, "R None (null)", "RUNNING|0:0"},
		{job.Task{State: "done", Begun: 1}, dependent, "CD None (null)", "COMPLETED|0:0"},
		{job.Task{State: "failed", Begun: 1, Exit: notation.ExitCode{Status: 7}}, job.Spec{}, "F NonZeroExitCode (null)", "FAILED|7:0"},
		{job.Task{State: "failed", Begun: 1, Exit: notation.ExitCode{Signal: 9}}, job.Spec{}, "F JobLaunchFailure (null)", "FAILED|0:9"},
		{job.Task{State: "failed", Begun: 1}, job.Spec{}, "F JobLaunchFailure (null)", "FAILED|1:0"},
		{job.Task{State: "failed", Begun: 1, Cause: "memory"}, job.Spec{}, "OOM OutOfMemory (null)", "OUT_OF_MEMORY|0:125"},
		{job.Task{State: "failed", Begun: 1, Cause: "time"}, job.Spec{}, "TO TimeLimit (null)", "TIMEOUT|0:0"},
		{job.Task{State: "failed", Begun: 1, Cause: "withdrawn"}, job.Spec{}, "CA None (null)", "CANCELLED by 1000|0:0"},
		{job.Task{State: "failed", Cause: "withdrawn"}, dependent, "CA None (null)", "CANCELLED by 1000|0:0"},
		{job.Task{State: "failed", Begun: 1, Cause: "lost-worker"}, job.Spec{}, "NF NodeDown (null)", "NODE_FAIL|0:0"},
		{job.Task{State: "skipped", Cause: "never"}, dependent, "PD DependencyNeverSatisfied afterok:1(failed)", "PENDING|0:0"},
		{job.Task{State: "skipped"}, dependent, "PD DependencyNeverSatisfied afterok:1(failed)", "PENDING|0:0"},
		{job.Task{State: "skipped", Cause: "withdrawn"}, dependent, "CA None (null)", "CANCELLED by 1000|0:0"},
		{job.Task{State: "skipped", Cause: "never"}, orphan, "CA None (null)", "CANCELLED by 1000|0:0"},
	} {
		test.spec.User.UID = 1000
		test.task.ID, test.task.Attributes = 3, test.spec.Attributes()
		test.task.Times = job.Times{Submitted: at, Started: at, Ended: at}
		var r job.Reader
		jobs := []job.Job{r.Job(test.task)}
		q, err := job.ParseQueue([]string{"-h", "-t", "all", "-o", "%t %r %E"}, none, "me")
		if err != nil {
			t.Fatal(err)
		}
		a, err := job.ParseAcct([]string{"-X", "-n", "-P", "-j", "3", "-o", "state,exitcode"}, none, "me")
		if err != nil {
			t.Fatal(err)
		}
		var queue, acct strings.Builder
		if q.Write(&queue, jobs, at) != nil || a.Write(&acct, jobs, at) != nil {
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
	var r job.Reader
	spec := job.Spec{Array: "5-9:2"}
	var got []string
	for i := range 3 {
		j := r.Job(job.Task{ID: 7 + i, Element: i, State: "ready", Attributes: spec.Attributes()})
		got = append(got, string(j.Reason), notation.JobID{Job: j.ArrayID, Tasks: []int{j.ArrayTask}}.String())
	}
	if diff := cmp.Diff([]string{"Resources", "7_5", "Priority", "7_7", "Priority", "7_9"}, got); diff != "" {
		t.Error(diff)
	}
}

// A Spec is restored unchanged from a task's attributes.
func TestAttributesProperty(t *testing.T) {
	text := rapid.StringMatching(`[a-zn ,=%/\\\n]{0,8}`)
	number := rapid.IntRange(-1, 1<<20)
	rapid.Check(t, func(t *rapid.T) {
		s := job.Spec{
			User:      job.User{Name: text.Draw(t, "user"), Group: text.Draw(t, "group"), UID: number.Draw(t, "uid"), GID: number.Draw(t, "gid")},
			Partition: text.Draw(t, "partition"), Account: text.Draw(t, "account"), Comment: text.Draw(t, "comment"),
			QOS:     text.Draw(t, "qos"),
			Command: job.Command{Line: text.Draw(t, "line"), Submit: text.Draw(t, "submit"), Host: text.Draw(t, "host")},
			Files: job.Files{
				Directory: text.Draw(t, "directory"), Input: text.Draw(t, "in"), Output: text.Draw(t, "out"), Error: text.Draw(t, "err"),
			},
			Size: notation.Size{
				CPUs: number.Draw(t, "cpus"), Tasks: number.Draw(t, "tasks"), CPUsPerTask: number.Draw(t, "each"),
				MemoryMiB: int64(number.Draw(t, "mib")), MemoryEach: rapid.Bool().Draw(t, "per cpu"), GPUs: number.Draw(t, "gpus"),
			},
			TimeLimit: time.Duration(number.Draw(t, "limit")) * time.Minute, Array: text.Draw(t, "array"),
			Dependency: text.Draw(t, "dependency"), KillOrphan: rapid.Bool().Draw(t, "kill"), Requeue: rapid.Bool().Draw(t, "requeue"),
			Nice: number.Draw(t, "nice"),
		}
		if diff := cmp.Diff(&s, job.ParseSpec(s.Attributes())); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Ten thousand pending jobs are listed in linear time, with one line for an array.
func TestMany(t *testing.T) {
	var r job.Reader
	spec, single := &job.Spec{Array: "0-9999"}, &job.Spec{}
	var jobs []job.Job
	for i := range 10_000 {
		jobs = append(jobs, r.Job(job.Task{ID: i + 1, Element: i, State: "ready", Attributes: spec.Attributes()}))
	}
	for i := range 10_000 {
		jobs = append(jobs, r.Job(job.Task{ID: 10_001 + i, State: "ready", Attributes: single.Attributes()}))
	}
	q, err := job.ParseQueue([]string{"-h", "-o", "%i %t"}, func(string) string { return "" }, "me")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := q.Write(&b, jobs, time.Now()); err != nil {
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
	} {
		f.Add(words, "afterok:1,after:2", "1-3")
	}
	f.Fuzz(func(t *testing.T, line, dependency, array string) {
		var r job.Reader
		spec := job.Spec{Dependency: dependency, Array: array, Files: job.Files{Output: line}}
		jobs := []job.Job{
			r.Job(job.Task{ID: 1, Name: line, State: "waiting", Attributes: spec.Attributes()}),
			r.Job(job.Task{ID: 2, Element: 1, State: "failed", Cause: dependency, Attributes: spec.Attributes()}),
			r.Job(job.Task{ID: 3, State: "done", Attributes: map[string]string{job.Attribute: line}}),
		}
		none := func(string) string { return "" }
		words, now := strings.Split(line, "\n"), time.Unix(1_800_000_000, 0).UTC()
		var b strings.Builder
		if q, err := job.ParseQueue(words, none, "me"); err == nil {
			_ = q.Write(&b, jobs, now)
		}
		if a, err := job.ParseAcct(words, none, "me"); err == nil {
			_ = a.Write(&b, jobs, now)
		}
		if i, err := job.ParseInfo(words, none); err == nil {
			_ = i.Write(&b, []job.Partition{{Name: array, Nodes: []job.Node{{Name: line, CPUs: 2}, {Busy: 1}}}, {}}, now)
		}
		if text, err := job.Users(words, []job.Association{{User: line}}); err == nil {
			b.WriteString(text)
		}
		if text, err := job.Show(jobs, nil, true, false, now); err == nil {
			b.WriteString(text)
		}
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			t.Errorf("no whole lines: %q", s)
		}
	})
}
