package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/survey"
	"github.com/corral-pilot/corral/internal/kit/shell"
)

// Backlog implements gridsite.Observer with squeue and sinfo. Processors of jobs that Slurm does not show, because of
// PrivateData or because they run in another partition on the same nodes, are reported as hidden.
func (b *Batch) Backlog(ctx context.Context, queue string) (corral.Backlog, error) {
	said, facts, err := survey.Ask(ctx, b.conn, b.Root(), pathScript, "partition="+shell.Quote(queue)+"\n"+queueScript)
	if err != nil {
		return corral.Backlog{}, err
	}
	q := corral.Backlog{At: facts.At, Running: []corral.QueuedJob{}, Waiting: []corral.QueuedJob{}}
	away := func(tool string, err error) error {
		return corral.Errorf(corral.Unavailable, "Slurm does not answer: %s: %w", tool, err)
	}
	out, err := said.Of("name")
	if err != nil {
		return q, away("sinfo", err)
	}
	if err := nameQueue(&q, out, queue); err != nil {
		return q, err
	}
	if out, err = said.Of("processors"); err != nil {
		return q, away("sinfo", err)
	}
	var held int
	if held, q.Processors, err = parseProcessors(out); err != nil {
		return q, err
	}
	if out, err = said.Of("jobs"); err != nil {
		return q, away("squeue", err)
	}
	if err := addJobs(&q, out); err != nil {
		return q, err
	}
	q.Hidden = max(0, held-withinNodes(q.Running, held))
	addNodesAndReservations(said, &q)
	if hides(said, "jobs") != "" {
		q.Notes = append(q.Notes, "Slurm hides the jobs of other users (PrivateData): "+
			"the jobs ahead of ours are not known")
	}
	return q, nil
}

// nameQueue parses sinfo's NAME|STATE, and rejects a partition that does not exist or starts no jobs.
func nameQueue(q *corral.Backlog, out, asked string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	name, state, _ := strings.Cut(first, "|")
	switch {
	case name == "" && asked == "":
		return corral.ErrorAt(corral.Invalid, "queue", "Slurm has no default partition: name a queue")
	case name == "" || asked != "" && name != asked:
		return corral.ErrorAt(corral.NotFound, "queue", "Slurm has no queue %.80q", asked)
	case state != "up":
		return corral.ErrorAt(corral.Unsatisfiable, "queue", "queue %s is %s: nothing starts there", name, state)
	}
	q.Queue = name
	return nil
}

// withinNodes returns the number of processors held by running jobs. A job may also hold processors outside the queue's
// nodes; if the sum exceeds held, the excess is subtracted from the largest jobs.
func withinNodes(running []corral.QueuedJob, held int) (sum int) {
	for _, j := range running {
		sum += j.Processors
	}
	for sum > held && len(running) > 0 {
		i := 0
		for k, j := range running {
			if j.Processors > running[i].Processors {
				i = k
			}
		}
		if running[i].Processors <= 1 {
			break
		}
		running[i].Processors--
		sum--
	}
	return sum
}

// parseProcessors parses sinfo's ALLOCATED/IDLE/OTHER/TOTAL of a partition. OTHER processors are down or drained.
func parseProcessors(out string) (held, usable int, err error) {
	var n [4]int
	f := strings.Split(strings.TrimSpace(out), "/")
	if len(f) != len(n) {
		return 0, 0, corral.ErrorAt(corral.NotFound, "queue", "Slurm has no processors in it: sinfo printed %q",
			gridsite.OneLine(out))
	}
	for i, s := range f {
		v, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return 0, 0, fmt.Errorf("sinfo printed %q", gridsite.OneLine(out))
		}
		n[i] = int(v)
	}
	return n[0], n[0] + n[1], nil
}

// spanOf parses a time of Slurm's tools, [DAYS-][[HOURS:]MINUTES:]SECONDS; squeue prints times of one minute or more at
// least as MINUTES:SECONDS. 0 means no limit.
func spanOf(s string) (corral.Seconds, error) {
	if slices.Contains(noLimit, s) || s == "NOT_SET" || s == "Partition_Limit" || s == "INVALID" {
		return 0, nil
	}
	rest := s
	var days uint64
	if d, r, ok := strings.Cut(s, "-"); ok {
		var err error
		if days, err = strconv.ParseUint(d, 10, 16); err != nil {
			return 0, fmt.Errorf("%q is not a time", gridsite.OneLine(s))
		}
		rest = r
	}
	var sum time.Duration
	f := strings.Split(rest, ":")
	if len(f) > 3 {
		return 0, fmt.Errorf("%q is not a time", gridsite.OneLine(s))
	}
	for _, part := range f {
		n, err := strconv.ParseUint(part, 10, 20)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time", gridsite.OneLine(s))
		}
		sum = sum*60 + time.Duration(n)*time.Second
	}
	return corral.Seconds(time.Duration(days)*24*time.Hour + sum), nil
}
