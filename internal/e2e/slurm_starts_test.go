//go:build sites

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// TestPredictedStarts asks a real Slurm, among other people's jobs, for pilots, each when the one before waits there, and
// compares when they start with what `corral site price` said of it, in a table: two pilots, and with LONG=1 twenty. Where
// everybody asks for what he takes half of the twenty start within a minute of that, and none later than it; where others ask for ten times as
// much, four fifths start by then. Of two it is only asked that none is later by as much as only a busy machine makes
// them, nor was said to start later than all that is asked for takes.
func TestPredictedStarts(t *testing.T) {
	t.Parallel()
	c, much := crowd{pilots: 2, jobs: 2, cpus: 1, minutes: 1, machine: []string{"NODES=1"}}, 5*time.Minute
	if os.Getenv("LONG") != "" {
		c, much = crowd{pilots: 20, jobs: 20, cpus: 4, minutes: 3}, time.Minute
	}
	for name, times := range map[string]int{"exact": 1, "tenfold": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starts := c.starts(t, times)
			late, off := 0, []time.Duration{}
			t.Logf("%s: predicted and actual start of %d pilots, after the first request:", name, len(starts))
			for _, s := range starts {
				t.Logf("| %d | %s | %s | %s |", s.cpus, s.predicted.Sub(starts[0].asked).Round(time.Second),
					s.actual.Sub(starts[0].asked).Round(time.Second), s.actual.Sub(s.predicted).Round(time.Second))
				if s.actual.After(s.predicted.Add(much)) {
					late++
				}
				if most := time.Duration(c.jobs*c.minutes*times+c.pilots) * time.Minute; s.predicted.After(s.asked.Add(most)) {
					t.Errorf("a start in %s was said, where all takes %s", s.predicted.Sub(s.asked), most)
				}
				off = append(off, s.actual.Sub(s.predicted).Abs())
			}
			slices.Sort(off)
			if median := off[len(off)/2]; times == 1 && (median > much || late > 0) {
				t.Errorf("the median start is off by %s, and %d are later by %s than was said", median, late, much)
			}
			t.Logf("median %s, %d of %d later by %s than was said", off[len(off)/2], late, len(starts), much)
			if times > 1 && 5*late > len(starts) {
				t.Errorf("%d of %d start later than was said", late, len(starts))
			}
		})
	}
}

// A start is that of a pilot.
type start struct {
	cpus                     int
	asked, predicted, actual time.Time
}

// A crowd is other people's jobs and our pilots. The jobs are of some cpus and minutes at most, and fill the machine.
type crowd struct {
	pilots, jobs  int
	cpus, minutes int
	machine       []string // what it is like, for scripts/slurm
}

// starts asks for pilots of a minute behind the jobs, which ask for a number of times of what they take.
func (c crowd) starts(t *testing.T, times int) (all []start) {
	u := newUser(t)
	slurm := startSlurm(t, c.machine...)
	sshd, root := u.behindSSH(slurm), u.dir+"/far"
	u.must("up")
	u.must("site", "create", "hpc", "--contact", sshd.Contact(), "--batch", "slurm", "--root", root, "--wait",
		"--timeout", "5m")
	u.until("an empty queue", time.Minute, func() bool { return queue(t, slurm) == "" })
	jobs := c.submit(t, slurm, times)
	for i := range c.pilots {
		s := start{cpus: 1 + i%2, asked: time.Now()}
		for _, q := range read[[]struct {
			At   time.Time `json:"starts_at"`
			Wait float64   `json:"wait_cpu_hours"`
		}](u, "site", "price", "hpc", "--cpus", strconv.Itoa(s.cpus), "--walltime", "1m") {
			if s.predicted = q.At; q.Wait == 0 {
				break
			}
		}
		u.must("glidein", "create", "--site", "hpc", "--cpus", strconv.Itoa(s.cpus), "--walltime", "1m")
		all = append(all, s)
		u.until("the pilot in the queue", time.Minute, func() bool {
			w := read[[]corral.Wait](u, "site", "waits", "hpc", "--each")
			return len(w) > i
		})
	}
	u.until("all to have started", time.Duration(c.jobs+c.pilots)*3*time.Minute, func() bool {
		waits := read[[]corral.Wait](u, "site", "waits", "hpc", "--each")
		slices.SortStableFunc(waits, func(a, b corral.Wait) int { return cmp.Compare(a.SubmittedAt.UnixNano(), b.SubmittedAt.UnixNano()) })
		for i := range all {
			all[i].actual = waits[i].StartedAt
		}
		return !slices.ContainsFunc(all, func(s start) bool { return s.actual.IsZero() })
	})
	for _, job := range jobs {
		if out, err := slurm.Command("scancel", job).CombinedOutput(); err != nil {
			t.Errorf("scancel: %v: %s", err, out)
		}
	}
	u.must("site", "remove", "hpc", "--wait")
	u.must("down")
	return all
}

// submit submits other people's jobs.
func (c crowd) submit(t *testing.T, slurm *gridsitetest.Slurm, times int) (jobs []string) {
	t.Helper()
	for i := range c.jobs {
		minutes := 1 + i*7%c.minutes
		cmd := slurm.Command("sbatch", "--parsable", fmt.Sprintf("--ntasks=%d", 1+i*5%c.cpus),
			fmt.Sprintf("--time=%d", minutes*times), "--output=/dev/null", fmt.Sprintf("--wrap=sleep %d", 60*minutes-5))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("sbatch: %v: %s", err, out)
		}
		jobs = append(jobs, strings.TrimSpace(string(out)))
	}
	return jobs
}
