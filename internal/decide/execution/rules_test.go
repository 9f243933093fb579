package execution_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow/dag"
)

// ruled adds a rule of a unit:
//
//	priority=N category=NAME done final pre post pre-skip=EXIT unless=(EXIT, …) abort=(EXIT[, RETURN]) defer=EXIT
//
// A deferred script is run again after a minute.
func (r *transcript) ruled(t *testing.T, rules *execution.Rules, key string, values []string) *execution.Rules {
	if rules == nil {
		rules = &execution.Rules{}
	}
	var numbers []int
	for _, v := range values {
		if n, err := strconv.Atoi(v); err == nil {
			numbers = append(numbers, n)
		}
	}
	switch key {
	case "priority":
		rules.Priority = numbers[0]
	case "category":
		if rules.Category = r.categories[values[0]]; rules.Category == 0 {
			t.Fatalf("category %s has no limit", values[0])
		}
	case "done":
		rules.Done = true
	case "final":
		rules.Final = true
	case "pre":
		rules.Pre = &execution.Script{}
	case "post":
		rules.Post = &execution.Script{}
	case "defer": // after pre and post
		for _, s := range []*execution.Script{rules.Pre, rules.Post} {
			if s != nil {
				*s = execution.Script{DeferStatus: numbers[0], DeferAfter: time.Minute}
			}
		}
	case "pre-skip":
		rules.PreSkip = numbers[0]
	case "unless":
		rules.UnlessExit = numbers
	case "abort":
		rules.Abort = &execution.Abort{Exit: numbers[0]}
		if len(numbers) > 1 {
			rules.Abort.Return = &numbers[1]
		}
	default:
		t.Fatalf("%s is not known", key)
	}
	return rules
}

// addSubs adds the subworkflows NAME:FIRST-LAST[:RULES …], which may also have retries=N and job.
func (r *transcript) addSubs(t *testing.T, d *datadriven.TestData) {
	subs, _ := d.Arg("subs")
	for k, text := range subs.Vals {
		words := strings.Split(text, ":")
		first, last, _ := strings.Cut(words[1], "-")
		s := execution.SubSpec{Name: words[0], First: r.index[first], End: r.index[last] + 1}
		for _, said := range words[2:] {
			switch key, value, _ := strings.Cut(said, "="); key {
			case "retries":
				n, err := strconv.Atoi(value)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				s.Retries = n
			case "job":
				s.Job = true
			default:
				s.Rules = r.ruled(t, s.Rules, key, strings.Split(value, "/"))
			}
		}
		r.index[s.Name] = len(r.spec.Tasks) + k
		r.spec.Subs = append(r.spec.Subs, s)
	}
}

// unit returns the name of a task or subworkflow.
func (r *transcript) unit(number int32) string {
	if n := int(number) - len(r.spec.Tasks); n >= 0 {
		return r.spec.Subs[n].Name
	}
	return r.spec.Tasks[number].ID
}

func (r *transcript) scripts(t *testing.T, d *datadriven.TestData) {
	most := 100
	d.MaybeScanArgs(t, "most", &most)
	for _, c := range execution.Scripts(r.x, r.clock, most) {
		fmt.Fprintf(&r.out, "%s %s: try %d of %d", map[bool]string{false: "PRE", true: "POST"}[c.Post], r.unit(c.Unit),
			c.Try, c.Retries)
		if c.Post {
			fmt.Fprintf(&r.out, ", return %d, PRE returned %d, job %d", c.Return, c.PreReturn, c.Job)
		}
		if c.Status != 0 || c.FailedCount != 0 {
			fmt.Fprintf(&r.out, ", status %d, failed %d", c.Status, c.FailedCount)
		}
		fmt.Fprintln(&r.out)
	}
}

// script records the end of a script: unit=NAME [post] [try=N] [round=N] [exit=N]
func (r *transcript) script(t *testing.T, d *datadriven.TestData) {
	var unit string
	end := execution.ScriptEnd{Post: d.HasArg("post")}
	d.ScanArgs(t, "unit", &unit)
	var try, round int
	d.MaybeScanArgs(t, "try", &try)
	d.MaybeScanArgs(t, "round", &round)
	d.MaybeScanArgs(t, "exit", &end.Exit)
	end.Unit, end.Try, end.Round = int32(r.index[unit]), int32(try), int32(round)
	end.Ended = execution.ToMsec(r.clock)
	if end.Exit != 0 {
		end.Reason = fmt.Sprintf("its script: exit status %d", end.Exit)
	}
	r.apply(execution.Record{Script: &end})
}

// A spec with contradictory rules is refused with an explanation.
func TestCheck(t *testing.T) {
	t.Parallel()
	net := &execution.Rules{Category: 1}
	for _, c := range []struct {
		name  string
		edges [][2]int
		rules *execution.Rules // of task 1
		subs  []execution.SubSpec
		want  string // "": it is accepted
	}{
		{"subworkflows", [][2]int{{0, 1}, {2, 3}}, net,
			[]execution.SubSpec{{Name: "s", First: 0, End: 3}, {Name: "in", First: 1, End: 2}}, ""},
		{"one with the last task", nil, net, []execution.SubSpec{{Name: "s", First: 2, End: 4, Rules: net}}, ""},
		{"the category of a task of the next one", nil, net, []execution.SubSpec{{Name: "s", First: 0, End: 1, Rules: net}, {Name: "t", First: 1, End: 2}}, ""},
		{"an empty one", nil, nil, []execution.SubSpec{{Name: "s", First: 2, End: 2}}, `subworkflow "s" has tasks 2 to 2 of 4`},
		{"one task too many", nil, nil, []execution.SubSpec{{Name: "s", First: 2, End: 5}}, `subworkflow "s" has tasks 2 to 5 of 4`},
		{"one task before the first", nil, nil, []execution.SubSpec{{Name: "s", First: -1, End: 2}}, `subworkflow "s" has tasks -1 to 2 of 4`},
		{"one that waits for itself", [][2]int{{0, 2}, {2, 1}}, nil, []execution.SubSpec{{Name: "s", First: 0, End: 2}},
			"the order of the subworkflows is a cycle: "},
		{"one half in another", nil, nil, []execution.SubSpec{{Name: "s", First: 0, End: 2}, {Name: "t", First: 1, End: 3}},
			`subworkflow "t" overlaps another one`},
		{"one of tasks that are not there", nil, nil, []execution.SubSpec{{Name: "s", First: 3, End: 9}},
			`subworkflow "s" has tasks 3 to 9 of 4`},
		{"one whose task waits for its end", nil, net, []execution.SubSpec{{Name: "s", End: 2, Rules: net}},
			`task "b" has the same category as its subworkflow "s"`},
		{"a final task that is not last", [][2]int{{1, 2}}, &execution.Rules{Final: true}, nil, `final task "b" has children`},
	} {
		g, err := dag.New(4, c.edges)
		if err != nil {
			t.Fatal(err)
		}
		s := execution.Spec{Graph: g, Limits: []int{1}, Subs: c.subs,
			Tasks: []execution.TaskSpec{{ID: "a"}, {ID: "b", Rules: c.rules}, {ID: "c"}, {ID: "d"}}}
		if err := s.Check(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]int{"": nil, "3": {3}, "1, 64,255": {1, 64, 255}} {
		if got, err := execution.ExitStatuses(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("ExitStatuses(%q) = %v, %v, want %v", list, got, err, want)
		}
	}
	for list, word := range map[string]string{"0": "0", "256": "256", "3,": "", ",": "", "3,x": "x", "-1": "-1"} {
		want := fmt.Sprintf("%q is not an exit status from 1 to 255", word)
		if got, err := execution.ExitStatuses(list); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ExitStatuses(%q) = %v, %v, want %s", list, got, err, want)
		}
	}
}

// The end of a script that belongs to no unit, or to another try, changes nothing.
func TestOddScriptEnds(t *testing.T) {
	t.Parallel()
	spec := flat(t, 1, 1)
	spec.Tasks[0].Rules = &execution.Rules{Pre: &execution.Script{}}
	spec.Subs = []execution.SubSpec{{Name: "s", First: 1, End: 2, Rules: &execution.Rules{Post: &execution.Script{}}}}
	for _, end := range []execution.ScriptEnd{
		{Unit: -1}, {Unit: 3}, {Unit: 4}, {Unit: 1}, {Unit: 2, Post: true}, {Unit: 0, Post: true}, {Unit: 0, Try: 1}, {Unit: 0, Round: 1},
	} {
		x := execution.New(spec)
		before := []any{x.Task(0), x.Task(1), x.Counts()}
		x.Apply(execution.Record{Script: &end})
		if diff := cmp.Diff(before, []any{x.Task(0), x.Task(1), x.Counts()}); diff != "" {
			t.Errorf("%+v (-before +after):\n%s", end, diff)
		}
	}
}

// A task that fails without an exit status, because it was cancelled or its worker was lost, aborts nothing.
func TestAbortNeedsAnExitStatus(t *testing.T) {
	t.Parallel()
	lost := execution.Record{At: after(1), Returned: &execution.Giveback{Seqs: []int64{1}, Started: true}}
	for _, tt := range []struct {
		name string
		once bool
		end  execution.Record
		want corral.TaskState // of a task that does not wait for the first one
	}{
		{"too many workers were lost", false, lost, corral.TaskReady},
		{"it may begin only once", true, lost, corral.TaskReady},
		{"cancelled", false, execution.Record{At: after(1), Cancelled: &execution.Cancellation{Tasks: []int32{0}}}, corral.TaskReady},
		{"exit status 1", false, execution.Record{At: after(1), Finished: &execution.Outcome{Seq: 1, Attempt: 1, Status: execution.Failed,
			Exit: 1, Worker: "w"}}, corral.TaskSkipped},
	} {
		spec := flat(t, 1, 1)
		spec.Losses, spec.Tasks[0].Once, spec.Tasks[0].Retries = 1, tt.once, 0
		spec.Tasks[0].Rules = &execution.Rules{Abort: &execution.Abort{Exit: 1}}
		x := execution.New(spec)
		x.Apply(assigned(0, 1, "w", 0, 1))
		x.Apply(tt.end)
		if first, second := x.Task(0).State, x.Task(1).State; first != corral.TaskFailed || second != tt.want {
			t.Errorf("%s: the task is %s, and another one %s, want %s", tt.name, first, second, tt.want)
		}
	}
}
