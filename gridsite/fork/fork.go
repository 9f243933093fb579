// Package fork implements the batch system of a machine without a real batch system: each job starts at once, as a
// session of processes. All state is in the jobs' directories, maintained by POSIX shell scripts at the site (see
// jobdir/lib.sh), so that any client over any transport can follow a job that another client submitted.
//
// New returns the Batch of a site, which is a gridsite.Batch. Jobs never wait: each may use the whole machine,
// whatever its JobSpec requests, and its walltime is the only limit.
//
// A process escapes Cancel only if it leaves the job's session and also removes CORRAL_JOB_DIR from its environment. If
// several machines share the home directory, a job can be cancelled only through the machine on which it runs; on the
// other machines Poll reports it as running until its walltime ends.
package fork

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/survey"
	"github.com/corral-pilot/corral/internal/kit/fault"
)

// usualGrace is the time between SIGTERM and SIGKILL for a job whose walltime has ended, and for processes that it
// leaves behind.
const usualGrace = 5 * time.Second

// atOnce is the maximum number of jobs that are ended concurrently on one machine. It is limited because ending a job
// requires a scan of all processes.
const atOnce = "8"

//go:embed *.sh
var scripts embed.FS

//go:embed survey.sh
var surveyScript string

var (
	submitScript = jobdir.Script([]string{"build"}, scripts, "submit")
	runScript    = jobdir.Script(nil, scripts, "run")
	pollScript   = jobdir.Script(nil, scripts, "poll")
	cancelScript = jobdir.Script(nil, scripts, "cancel")
	eachScript   = jobdir.Script([]string{"each"}, scripts)
)

// Batch runs the jobs of one site. It does not enforce Hosts, CPUs and MemoryMiB of a JobSpec; the job's process runs
// once.
type Batch struct {
	jobdir.Dirs
	conn  gridsite.Conn
	grace time.Duration
}

// New returns a Batch for the jobs below root, an absolute path at the site for Corral alone, which need not exist. The
// caller closes conn after the last use of the Batch.
func New(conn gridsite.Conn, root string) *Batch {
	return &Batch{Dirs: jobdir.At(conn, root, nil), conn: conn, grace: usualGrace}
}

// Submit starts the job, unless a job was already started under the tag, so that at most one job ever starts. A
// submission that was interrupted before the start is completed with its own script and files.
func (b *Batch) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	if err := b.CheckSpec(spec); err != nil {
		return "", err
	}
	files, dir, err := jobdir.Archive(spec.Tag, b.Files(spec, runScript))
	if err != nil {
		return "", err
	}
	out, err := b.Run(ctx, fault.SiteSubmit, submitScript, files, spec.Tag, dir, jobdir.Seconds(spec.Walltime),
		jobdir.Seconds(b.grace))
	if err != nil {
		return "", fmt.Errorf("submitting %s: %w", spec.Tag, err)
	}
	id := strings.TrimSuffix(string(out), "\n")
	if !idPattern.MatchString(id) {
		return "", corral.Errorf(corral.Unknown, "submitting %s: the site answered %q", spec.Tag, out)
	}
	return id, nil
}

// idPattern matches the leader's pid and its start time in ticks since boot, which detects a reused pid. "unstarted.0"
// is the id of a job that was cancelled before it had a leader.
var idPattern = regexp.MustCompile(`^([0-9]+\.[0-9]+|unstarted\.0)$`)

// Poll queries all tags with one command. If a job's leader vanished without leaving a status, Poll ends the whole job
// and reports it as ByDisappeared with an unknown exit status.
func (b *Batch) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	if err := b.Admits(tags...); err != nil {
		return nil, err
	}
	out, err := b.Run(ctx, fault.SitePoll, pollScript, jobdir.Lines(tags))
	if err != nil {
		return nil, fmt.Errorf("polling: %w", err)
	}
	jobs, err := parsePoll(out)
	if err != nil {
		return nil, corral.Errorf(corral.Unknown, "polling: %w", err)
	}
	return jobs, nil
}

// Cancel fails if a process of the job survives SIGKILL for 10 s.
func (b *Batch) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	return b.CancelMany(ctx, []string{tag}, grace)
}

// CancelMany cancels a limited number of jobs at a time.
func (b *Batch) CancelMany(ctx context.Context, tags []string, grace time.Duration) error {
	return b.Each(ctx, fault.SiteCancel, eachScript, tags, atOnce, cancelScript, jobdir.Seconds(grace))
}

// Forget refuses to forget a job that has not ended. Together with the last job it removes root, if root contains
// nothing else.
func (b *Batch) Forget(ctx context.Context, tag string) error {
	return b.ForgetMany(ctx, []string{tag})
}

// ForgetMany forgets a limited number of jobs at a time.
func (b *Batch) ForgetMany(ctx context.Context, tags []string) error {
	return b.Each(ctx, fault.SiteForget, eachScript, tags, atOnce, jobdir.Forget, rand.Text())
}

// parsePoll parses the output of poll.sh. It rejects incomplete output, because jobs missing from it would seem unknown
// to the site.
func parsePoll(out []byte) (map[string]gridsite.JobStatus, error) {
	body, ok := strings.CutSuffix(string(out), "end\n")
	if !ok || len(body) > 0 && body[len(body)-1] != '\n' {
		return nil, fmt.Errorf("the answer was cut short")
	}
	jobs := map[string]gridsite.JobStatus{}
	for line := range strings.Lines(body) {
		job, err := parseStatus(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		jobs[job.Tag] = job
	}
	return jobs, nil
}

// parseStatus parses TAG ID running STARTED, or TAG ID ended STARTED ENDED EXIT KILLED.
func parseStatus(fields []string) (job gridsite.JobStatus, err error) {
	phases := map[int]gridsite.Phase{4: gridsite.Running, 7: gridsite.Ended}
	phase, ok := phases[len(fields)]
	if !ok || fields[2] != string(phase) || !jobdir.IsTag(fields[0]) || !idPattern.MatchString(fields[1]) {
		return job, fmt.Errorf("not a job's status")
	}
	job = gridsite.JobStatus{Tag: fields[0], ID: fields[1], Phase: phase}
	if job.StartedAt, err = jobdir.ParseTime(fields[3]); err != nil || phase == gridsite.Running {
		return job, err
	}
	return job, jobdir.ParseEnd(&job, fields[4:])
}

// Survey reports the facts about the machine that a batch system would report about its queue.
func (b *Batch) Survey(ctx context.Context, _ corral.BatchOptions) (corral.SiteFacts, error) {
	said, facts, err := survey.Ask(ctx, b.conn, b.Root(), "", surveyScript)
	if err != nil {
		return facts, err
	}
	facts.Batch = "fork"
	q := corral.SiteQueue{Name: "fork", Default: true, Nodes: 1}
	for _, m := range []struct {
		section, what string
		to            *int
	}{{"cpus", "the number of cpus", &q.CPUs}, {"memory", "the memory", &q.MemoryMiB}} {
		out, err := said.Of(m.section)
		if err == nil {
			if *m.to, err = strconv.Atoi(out); err != nil || *m.to < 0 {
				*m.to, err = 0, fmt.Errorf("the machine printed %q", gridsite.OneLine(out))
			}
		}
		if err != nil {
			survey.Note(&facts, m.what, err)
		}
	}
	if q.CPUs > 0 {
		q.CPUMemoryMiB = q.MemoryMiB / q.CPUs
	}
	facts.Queues = []corral.SiteQueue{q}
	return facts, nil
}
