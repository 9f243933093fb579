// Command player plays a plan of Corral without Corral: it is the independent witness for the claim that plans come
// true.
//
//	corral plan w.json --deadline 2h -o json > plan.json
//	go run ./player plan.json w.json                            # in bench/: with runtimes as estimated
//	go run ./player -sites sites.json -o json plan.json w.json  # with the sites' nodes, which a plan does not contain
//	go run ./player -error 0.2 -draws 1000 -seed 7 plan.json w.json
//
// The program imports nothing of Corral. It reads the plan, the workflow (WfFormat 1.5) and, with -sites, a description
// of the sites, and has its own rules for what then happens:
//
//   - Pilots are submitted at their times. A pilot that replaces another keeps its distance from the start of that one.
//     A later pilot also waits until one of its first tasks, those that the schedule starts on it first, is expected to
//     be ready as soon after its submission as planned; -clock leaves this out. If a run has nothing else to wait for,
//     the next pilot is submitted, which is counted (forced_submissions).
//   - A pilot starts after its wait, if the site's limits allow it and its hosts fit on the nodes beside those that
//     run. Hosts are packed by vector bin packing, first fit decreasing. If that fails, the pilot waits and counts as a
//     violation only if a bound proves that no packing exists; else it starts, and counts as undecided.
//   - Its workers come after the start-up overhead and leave before the end of its walltime, by the site's margin.
//   - Tasks are taken by upward rank. Each gets the free place with the least remaining time in which it fits, with the
//     start margin; among equal ones that with the least resources left over, then the first. It starts after a hop. A
//     task that runs when its worker leaves is lost, and begins again elsewhere.
//   - A pilot without work leaves after -idle, but not before its min_stay_s is over or, if the plan has none for it,
//     before its first tasks have come or cannot come any longer. When the last task has ended, all pilots are
//     released; with -clock they leave after -idle.
//   - A pilot costs from the start of its job to its end, in whole billing periods, rounded to millionths once.
//
// Matching uses estimates, which are those of the workflow divided by the speed of the site; what happens are the
// estimates times a lognormal factor of mean 1, drawn for each task of each draw.
//
// The file of -sites has this form:
//
//	{"sites": [{
//	  "site": "big", "queue": "",
//	  "nodes": [{"count": 64, "cpus": 16, "memory_mib": 65536, "gpus": 0, "whole": false}],
//	  "wait_s": 60, "walltime_s": 86400,
//	  "price": 0.04, "unit": "USD", "per": "cpu-hour", "billed_period_s": 3600
//	}]}
//
// It may have all fields of the plan's assumed.queues; those that are missing keep the plan's values. Times are in
// seconds, memory 0 is not limited, and whole nodes take one host each.
//
// With -rivals the program ignores the plan's pilots and looks for the best list schedules on equal pilots at the sites
// that the plan assumes: those that no other one excels in both makespan and cost.
//
// The exit code is 1 if the play strands a task, misses the deadline, breaks the budget or violates the nodes, else 0;
// the draws do not count. It is 2 for input that cannot be played.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes.
const (
	broken = 1 // the plan does not come true
	misuse = 2
)

// settings is the command line.
type settings struct {
	sites     string        // file; empty: sites are as the plan assumes
	schedule  string        // file; empty: the plan contains its schedule
	output    string        // table or json
	estimates string        // workflow or plan
	margin    time.Duration // negative: each site's own
	rules     rules
	lottery   lottery
	rivals    bool // print list schedules instead
	trace     bool // also print where each task ran
}

// execute runs one command line and returns its exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	var set settings
	files, err := set.parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var rep *report
	if err == nil && set.rivals {
		if err = set.printRivals(files[0], files[1], stdout); err == nil {
			return 0
		}
	}
	if err == nil {
		rep, err = set.judge(files[0], files[1])
	}
	if err == nil {
		err = rep.print(stdout, set.output == "json")
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "player:", err)
		return misuse
	case !rep.Play.good():
		return broken
	}
	return 0
}

// parse reads the flags and returns the two files.
func (set *settings) parse(args []string, stderr io.Writer) ([]string, error) {
	f := flag.NewFlagSet("player", flag.ContinueOnError)
	f.SetOutput(io.Discard) // execute prints errors, once
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: player [flags] PLAN WORKFLOW")
		f.PrintDefaults()
	}
	var idle, start time.Duration
	f.StringVar(&set.sites, "sites", "", "`file` that describes sites; see the package comment")
	f.StringVar(&set.schedule, "schedule", "", "`file` with the schedule of a plan that does not contain it")
	f.StringVar(&set.output, "o", "table", "`format` of the output: table or json")
	f.StringVar(&set.estimates, "estimates", "workflow", "`source` of estimates: workflow, or plan for its schedule")
	f.Float64Var(&set.rules.factor, "waits", 1, "`factor` for the waits that the plan assumes")
	f.BoolVar(&set.lottery.waits, "draw-waits", false, "draw waits from the plan's quantiles in each draw")
	f.BoolVar(&set.rules.clock, "clock", false, "submit later pilots by the clock")
	f.DurationVar(&idle, "idle", time.Minute, "time after which a pilot without work leaves")
	f.DurationVar(&start, "start-margin", 500*time.Millisecond, "time that a task needs beyond its estimate to start")
	f.DurationVar(&set.margin, "margin", -1, "time before a walltime's end when workers leave; by default the site's")
	f.Float64Var(&set.lottery.error, "error", 0, "standard `deviation` of the logarithm of runtimes in draws")
	f.Uint64Var(&set.lottery.seed, "seed", 1, "`number` that determines the draws")
	f.IntVar(&set.lottery.number, "draws", 0, "`number` of draws; with -error 1000 by default")
	f.BoolVar(&set.rules.reserve, "reserve", false,
		"let workers leave when those of real pilots do, whatever the plan says")
	f.BoolVar(&set.trace, "trace", false, "add the place and the time of each task to the JSON")
	f.BoolVar(&set.rivals, "rivals", false, "print the best list schedules at the plan's sites, as JSON")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(stderr)
			f.Usage()
		}
		return nil, err
	}
	set.rules.idle, set.rules.start = seconds(idle), seconds(start)
	if set.lottery.error > 0 { // an error without draws would have no effect
		set.lottery.number = cmp.Or(set.lottery.number, 1000)
	}
	switch {
	case f.NArg() != 2:
		return nil, errors.New("want two files, PLAN and WORKFLOW, after the flags")
	case !slices.Contains([]string{"table", "json"}, set.output):
		return nil, fmt.Errorf("-o %s: want table or json", set.output)
	case !slices.Contains([]string{"workflow", "plan"}, set.estimates):
		return nil, fmt.Errorf("-estimates %s: want workflow or plan", set.estimates)
	case !(set.rules.factor >= 0 && set.lottery.error >= 0 && set.lottery.error <= 3): // also refuses NaN
		return nil, errors.New("-waits must not be negative, and -error must be 0 to 3")
	case idle < 0, start < 0, set.lottery.number < 0:
		return nil, errors.New("-idle, -start-margin and -draws must not be negative")
	}
	return f.Args(), nil
}

// judge plays the plan once with exact estimates, and then the draws.
func (set *settings) judge(planFile, workflowFile string) (*report, error) {
	g, rep, err := set.game(planFile, workflowFile)
	if err != nil {
		return nil, err
	}
	played := g.play(luck{})
	if rep.Play = played.result(); set.trace {
		rep.Play.Schedule = played.schedule()
	}
	if set.lottery.number > 0 {
		rep.Draws = g.lots(set.lottery)
	}
	return rep, nil
}

// game reads the files. The report has the parts that do not depend on a play.
func (set *settings) game(planFile, workflowFile string) (*game, *report, error) {
	p, err := load(planFile, readPlan)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := load(workflowFile, readWorkflow)
	if err != nil {
		return nil, nil, err
	}
	if set.schedule != "" {
		if _, err := load(set.schedule, func(text []byte) (*plan, error) { return p, p.attach(text) }); err != nil {
			return nil, nil, err
		}
	}
	var described []byte
	if set.sites != "" {
		if described, err = load(set.sites, func(text []byte) ([]byte, error) { return text, nil }); err != nil {
			return nil, nil, err
		}
	}
	sites, err := p.sites(described)
	if err != nil {
		return nil, nil, err
	}
	if set.margin >= 0 { // also of sites that the file describes
		for _, s := range sites {
			s.Margin = seconds(set.margin)
		}
	}
	g, err := newGame(p, tasks, sites, set.rules)
	if err != nil {
		return nil, nil, err
	}
	// Before the play estimates may be replaced by those of the plan, so that both are compared first.
	rep := &report{Tasks: len(tasks), Planned: figures{p.Makespan, p.Cost}, NotJudged: g.notJudged(p)}
	if len(p.Schedule) > 0 {
		rep.Differ, err = compare(g.tasks, p.planned(g.speedOn), set.estimates == "plan")
	} else if set.estimates == "plan" {
		err = errors.New("-estimates plan: the plan has no schedule; see -schedule")
	}
	return g, rep, err
}

// load reads a file, which may be compressed by gzip. Errors name the file.
func load[T any](name string, read func(text []byte) (T, error)) (v T, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return v, err
	}
	if bytes.HasPrefix(text, []byte{0x1f, 0x8b}) { // published workflows are compressed
		in, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return v, fmt.Errorf("%s: %w", name, err)
		}
		if text, err = io.ReadAll(in); err != nil {
			return v, fmt.Errorf("%s: %w", name, err)
		}
	}
	if v, err = read(text); err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}
