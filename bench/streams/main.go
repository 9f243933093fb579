// Command streams measures the benefit of streaming: tasks per second in an HTCondor pool, with worker jobs (corral run
// --stream) and with a job for each task, alternately on the same slots. It also measures the time from one task's end
// to the start of the task that depends on it.
//
// It uses a private corrald below a temporary directory, through the users' programs, and leaves nothing behind. Tasks
// run /bin/true, so that only the overhead is measured.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/bench/rig"
)

// unprivileged is the user that root measures as: HTCondor refuses root's jobs.
const unprivileged = "nobody"

// A plan holds the options of a run.
type plan struct {
	jobs, tasks, hops int // tasks run job by job, streamed, and in the chain
	rounds, cpus      int
	dir, bin, from    string
}

func main() { rig.Main(execute) }

// execute reads the flags, measures and prints the table. It returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var p plan
	f := flag.NewFlagSet("streams", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&p.jobs, "jobs", 60, "tasks that become a job each, in each round")
	f.IntVar(&p.tasks, "tasks", 5000, "tasks that are streamed, in each round")
	f.IntVar(&p.hops, "hops", 500, "tasks in a chain")
	f.IntVar(&p.rounds, "rounds", 3, "number of times each measurement is taken")
	f.IntVar(&p.cpus, "cpus", 2, "CPUs of the glidein")
	f.StringVar(&p.dir, "dir", os.TempDir(), "parent `directory` of the working directory")
	f.StringVar(&p.bin, "bin", "bin", "`directory` with corral, corrald and pilot")
	f.StringVar(&p.from, "from", "", "HTCondor's `directory`; empty: the one that `corral package build` finds")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has printed the reason
	}
	if f.NArg() > 0 || min(p.jobs, p.tasks, p.rounds, p.cpus) < 1 || p.hops < 2 {
		fmt.Fprintln(stderr, "usage: streams [flags]; numbers are at least 1, and -hops is at least 2")
		return rig.Misuse
	}
	return rig.Code(stderr, "streams", p.run(ctx, stdout, stderr))
}

// run starts a private corrald and measures.
func (p plan) run(ctx context.Context, stdout, stderr io.Writer) error {
	return rig.Alone(p.bin, p.dir, "s", func(u *rig.User) error {
		s := &stand{u}
		if err := s.start(ctx, p); err != nil {
			return err
		}
		m, err := p.measure(ctx, s, stderr)
		if err == nil {
			_, err = io.WriteString(stdout, m.markdown(p))
		}
		return err
	})
}

// A stand is a user with a private corrald, a pool and one glidein.
type stand struct{ *rig.User }

// start starts corrald, the pool and the glidein.
func (s *stand) start(ctx context.Context, p plan) error {
	up := []string{"up"}
	if os.Getuid() == 0 {
		up = append(up, "--run-as", unprivileged)
	}
	build := []string{"package", "build"}
	if p.from != "" {
		build = append(build, "--from", p.from)
	}
	for _, args := range [][]string{up, build, {"cluster", "create", "mine", "--kind", "condor"},
		{"glidein", "create", "--site", "local", "--cluster", "mine", "--cpus", strconv.Itoa(p.cpus), "--wait"}} {
		if _, err := s.Corral(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// asks runs the client and decodes the JSON that it prints.
func asks[T any](ctx context.Context, s *stand, args ...string) (answer T, err error) {
	out, err := s.Corral(ctx, append(args, "-o", "json")...)
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	return answer, err
}

// rate runs that many tasks and returns the tasks per second, from the first task's start to the last one's end.
func (s *stand) rate(ctx context.Context, tasks int, flags ...string) (float64, error) {
	args := slices.Concat([]string{"submit", "--cluster", "mine", "--wait", "--own-dir",
		"--array", "1-" + strconv.Itoa(tasks)}, flags)
	out, err := s.Corral(ctx, append(args, "-q", "--", "/bin/true")...)
	if err != nil {
		return 0, err
	}
	r, err := asks[corral.Run](ctx, s, "runs", "show", strings.TrimSpace(string(out)))
	if err != nil {
		return 0, err
	}
	if r.Report == nil || r.Tasks.Done != tasks {
		return 0, fmt.Errorf("run %d did %d of %d tasks", r.ID, r.Tasks.Done, tasks)
	}
	return float64(tasks) / time.Duration(r.Report.Makespan-r.Report.WaitForWorkers).Seconds(), nil
}

// chain streams tasks that depend on each other, and returns the milliseconds from each task's end to the next one's
// start.
func (s *stand) chain(ctx context.Context, hops int) (gaps []float64, err error) {
	var dag strings.Builder
	for i := range hops {
		fmt.Fprintf(&dag, "JOB t%d true.sub\n", i)
		if i > 0 {
			fmt.Fprintf(&dag, "PARENT t%d CHILD t%d\n", i-1, i)
		}
	}
	const job = "executable = /bin/true\ntransfer_executable = false\nqueue\n"
	err = errors.Join(os.WriteFile(filepath.Join(s.Dir, "chain.dag"), []byte(dag.String()), 0o644),
		os.WriteFile(filepath.Join(s.Dir, "true.sub"), []byte(job), 0o644))
	if err != nil {
		return nil, err
	}
	out, err := s.Corral(ctx, "run", "chain.dag", "--cluster", "mine", "--stream", "-q")
	if err != nil {
		return nil, err
	}
	tasks, err := asks[[]api.TaskStatus](ctx, s, "runs", "tasks", strings.TrimSpace(string(out)))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(tasks, func(a, b api.TaskStatus) int { return a.StartedAt.Compare(b.StartedAt) })
	for i := range tasks[1:] {
		gap := tasks[i+1].StartedAt.Sub(tasks[i].EndedAt)
		gaps = append(gaps, float64(gap)/float64(time.Millisecond))
	}
	return gaps, nil
}

// figures holds the results: rates and the mean of a chain's gaps for each round, and the gaps of all chains. Task
// times are whole milliseconds, so a single gap is imprecise, and the mean is more precise.
type figures struct{ jobByJob, streamed, hops, gaps []float64 }

// measure measures all rounds. The two sides alternate, because the machine's own speed varies.
func (p plan) measure(ctx context.Context, s *stand, stderr io.Writer) (m figures, err error) {
	for range p.rounds {
		slow, err := s.rate(ctx, p.jobs)
		if err != nil {
			return m, err
		}
		fast, err := s.rate(ctx, p.tasks, "--stream")
		if err != nil {
			return m, err
		}
		gaps, err := s.chain(ctx, p.hops)
		if err != nil {
			return m, err
		}
		m.jobByJob, m.streamed, m.gaps = append(m.jobByJob, slow), append(m.streamed, fast), append(m.gaps, gaps...)
		m.hops = append(m.hops, mean(gaps))
		fmt.Fprintf(stderr, "streams: %.1f and %.0f tasks/s, a hop of %.1f ms\n", slow, fast, mean(gaps))
	}
	return m, nil
}

// mean returns the mean of at least one value.
func mean(all []float64) (sum float64) {
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

// quantile returns one of the values: the least for 0, the greatest for 1.
func quantile(all []float64, q float64) float64 {
	return slices.Sorted(slices.Values(all))[int(q*float64(len(all)-1))]
}

// markdown returns the report: medians, with ranges.
func (m figures) markdown(p plan) string {
	var ratios []float64
	for i := range m.streamed {
		ratios = append(ratios, m.streamed[i]/m.jobByJob[i])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "No-op tasks on a glidein of %d cpus in an HTCondor pool, %d rounds:\n\n", p.cpus, p.rounds)
	fmt.Fprint(&b, "| what | median | range |\n| --- | --- | --- |\n")
	row := func(what, format string, all []float64) {
		fmt.Fprintf(&b, "| %s | "+format+" | "+format+"–"+format+" |\n", what, quantile(all, 0.5), quantile(all, 0),
			quantile(all, 1))
	}
	row(fmt.Sprintf("%d tasks, a job each, tasks/s", p.jobs), "%.1f", m.jobByJob)
	row(fmt.Sprintf("%d tasks, streamed, tasks/s", p.tasks), "%.0f", m.streamed)
	row("**streamed ÷ job by job**", "%.0f", ratios)
	row(fmt.Sprintf("a hop in a chain of %d, ms, mean of a round", p.hops), "%.1f", m.hops)
	fmt.Fprintf(&b, "| of all hops, 99 %% are below, ms | %.1f | |\n", quantile(m.gaps, 0.99))
	return b.String()
}
