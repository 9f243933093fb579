// Command replay runs what published work ran, with its rules, beside ours: ensembles of workflows as in Juve 2012
// (section 6.4), and plans on slots at a simulated site as in Singh 2008. `corral plan` plans for users; this program
// has the switches that only a comparison with the papers needs.
//
//	replay ensemble plan --budget 18 --deadline 6h --algorithm spss --published a.dax b.dax c.dax
//	replay slots list --background lublin:0.7 --cpus 64 --at 100h
//	replay slots plan --background lublin:0.7 --cpus 64 --at 100h --compare w.dax
//
// The output is a table or, with -o json, a document. Flags may stand anywhere on the line. The exit codes are those of
// corral.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

func main() { rig.Main(execute) }

// commands are the commands by name. Each defines its flags, and returns the function that runs it with the remaining
// arguments.
var commands = map[string]func(*flag.FlagSet) func(context.Context, []string, io.Writer) error{
	"ensemble plan": ensemblePlan,
	"slots list":    slotsList,
	"slots plan":    slotsPlan,
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name := strings.Join(args[:min(2, len(args))], " ")
	command, ok := commands[name]
	if !ok {
		fmt.Fprintln(stderr, "replay: want ensemble plan, slots list or slots plan, and their flags")
		return rig.Misuse
	}
	f := flag.NewFlagSet("replay "+name, flag.ContinueOnError)
	f.SetOutput(stderr)
	run := command(f)
	var operands []string
	for rest := args[2:]; ; operands, rest = append(operands, f.Arg(0)), f.Args()[1:] {
		if err := f.Parse(rest); err != nil {
			return rig.Misuse // flag has printed the reason
		}
		if f.NArg() == 0 {
			break
		}
	}
	if err := run(ctx, operands, stdout); err != nil {
		fmt.Fprintf(stderr, "replay: %v\n", err)
		return api.ExitCode(err)
	}
	return 0
}

// A list is the value of a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// A seconds is the value of a flag for a duration; a bare number is seconds.
type seconds corral.Seconds

func (s *seconds) String() string { return time.Duration(*s).String() }

// Set implements flag.Value.
func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 {
		return fmt.Errorf("%.40q is not a duration such as 6h or 21600", text)
	}
	*s = seconds(d.Round(time.Millisecond))
	return nil
}

// read reads a workflow with the estimates in its file; 0 stands for no fallback.
func read(ctx context.Context, file string, fallback time.Duration) (plan.Work, error) {
	flow, _, err := formats.ReadFile(ctx, file, workflow.Options{})
	if err != nil {
		return plan.Work{}, err
	}
	w := plan.Work{Name: flow.Name, Graph: flow.Graph, Tasks: make([]plan.Task, len(flow.Tasks))}
	for i, t := range flow.Tasks {
		runtime, ok := t.Estimated()
		if !ok && fallback <= 0 {
			return plan.Work{}, corral.ErrorAt(corral.Unsatisfiable, file,
				"task %.80s has no estimate: give one, or --default-runtime", t.ID)
		}
		if !ok {
			runtime = fallback
		}
		w.Tasks[i] = plan.Task{ID: t.ID, Kind: t.Name, Needs: t.Resources, Runtime: runtime.Round(time.Millisecond)}
	}
	return w, nil
}
