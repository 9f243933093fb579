// Package slurm implements the dialect of the batch system Slurm, which is used through its own commands on a head
// node: sbatch, squeue, scancel, and sacct if it is available. The jobs' directories are below root, on a file system
// shared by the head and the nodes.
//
// New returns the Batch of a site, which is a gridsite.Batch. The package never changes Slurm's configuration, and
// needs neither its REST service nor more rights than those of an ordinary user.
//
// Slurm forgets a job several minutes after its end, and many sites keep no accounting. Therefore our batch script
// (run.sh) records the job's start and end in the job's directory. The scripts use these commands:
//
//	submit.sh  sbatch, with the tag as the job's name; if the answer is lost, the job is found by the tag
//	poll.sh    squeue for jobs that wait or run, and the directories of jobs that have begun or ended
//	lost.sh    sacct or scontrol, only for jobs that vanished without leaving their status
//	cancel.sh  scancel; it waits until no job under the tag is left in the queue
//	try.sh     sbatch --test-only, before a site is used with new options
//
// If a tag has several jobs, at most one ever starts its command (lib.sh): the batch scripts decide by creating a link.
// After a SIGKILL of our batch script, Slurm ends the remaining processes of the job, but only if it uses cgroups.
//
// The survey (survey.go, user.go) collects partitions, nodes, and the limits of the user's accounts and QOS; queue.go
// collects the jobs that hold the processors of a partition, or wait for them.
package slurm

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/internal/kit/fault"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// usualGrace is the time between SIGTERM and SIGKILL for a job whose walltime has ended, and for processes that it
// leaves behind.
const usualGrace = 5 * time.Second

// Exit statuses of scripts that changed nothing.
const (
	exitAway = 5 // Slurm could not be reached
	exitNone = 6 // there is no Slurm
)

//go:embed *.sh
var scripts embed.FS

//go:embed path.sh
var pathScript string

//go:embed survey.sh
var surveyScript string

//go:embed queue.sh
var queueScript string

// onHead returns a script for the head node, preceded by its libraries: the path of Slurm's commands (path.sh), the
// content of a job's directory (lib.sh), and the calls of Slurm (head.sh).
func onHead(names ...string) string {
	return jobdir.Script(nil, scripts, append([]string{"path", "lib", "head"}, names...)...)
}

var (
	submitScript = jobdir.Script([]string{"build"}, scripts, "path", "lib", "head", "offers", "submit")
	runScript    = jobdir.Script(nil, scripts, "path", "lib", "run")
	pollScript   = onHead("poll")
	lostScript   = onHead("lost")
	cancelScript = onHead("cancel")
	forgetScript = onHead("forget")
	tryScript    = onHead("offers", "try")
	endScript    = onHead("end")
)

// Batch submits and follows the jobs of one site.
type Batch struct {
	jobdir.Dirs
	conn  gridsite.Conn
	grace time.Duration
}

// New returns a Batch for the jobs below root, an absolute path at the site for Corral alone, which is shared with the
// nodes and need not exist. The caller closes conn after the last use of the Batch.
func New(conn gridsite.Conn, root string) *Batch {
	return &Batch{Dirs: jobdir.At(conn, root, answer), conn: conn, grace: usualGrace}
}

// Submit queues the job, unless a job was already queued under the tag. Two concurrent submissions may queue two jobs,
// of which only one starts its command: the batch scripts use the job's directory to decide which one.
func (b *Batch) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	options, err := optionsOf(b, spec)
	if err != nil {
		return "", err
	}
	files, dir, err := jobdir.Archive(spec.Tag, filesOf(b, spec))
	if err != nil {
		return "", err
	}
	args := append([]string{spec.Tag, dir, strconv.Itoa(spec.GPUs)}, options...)
	out, err := b.Run(ctx, fault.SiteSubmit, submitScript, files, args...)
	if err != nil {
		return "", fmt.Errorf("submitting %s: %w", spec.Tag, err)
	}
	id := strings.TrimSuffix(string(out), "\n")
	if !idPattern.MatchString(id) {
		return "", corral.Errorf(corral.Unknown, "submitting %s: the site answered %q", spec.Tag, out)
	}
	return id, nil
}

// idPattern matches Slurm's number of the job, or "unstarted" for a job that was cancelled before it had a number.
var idPattern = regexp.MustCompile(`^([0-9]+|unstarted)$`)

// Poll queries squeue once for all jobs, and reads the status that the jobs wrote to their directories. It asks Slurm
// again only about jobs that are found in neither place, because they were killed together with their scripts. Slurm's
// answer is stored in the job's directory, because Slurm soon forgets the job.
func (b *Batch) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	if err := b.Admits(tags...); err != nil {
		return nil, err
	}
	out, err := b.Run(ctx, fault.SitePoll, pollScript, jobdir.Lines(tags))
	if err != nil {
		return nil, fmt.Errorf("polling: %w", err)
	}
	seen, err := parseSight(out)
	if err != nil {
		return nil, corral.Errorf(corral.Unknown, "polling: %w", err)
	}
	if gone := seen.gone(tags); len(gone) > 0 {
		out, err := b.Run(ctx, fault.SiteLost, lostScript, jobdir.Lines(gone))
		if err != nil {
			return nil, fmt.Errorf("asking how %d jobs ended: %w", len(gone), err)
		}
		late, err := parseSight(out)
		if err != nil {
			return nil, corral.Errorf(corral.Unknown, "asking how %d jobs ended: %w", len(gone), err)
		}
		maps.Copy(seen.jobs, late.jobs)
	}
	jobs := map[string]gridsite.JobStatus{}
	for _, tag := range tags {
		if job, ok := seen.status(tag); ok {
			jobs[tag] = job
		}
	}
	return jobs, nil
}

// Cancel ends all jobs under the tag. Waiting jobs leave the queue at once.
func (b *Batch) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	return b.CancelMany(ctx, []string{tag}, grace)
}

// CancelMany ends jobs with one command at the site, and queries squeue for all of them together.
func (b *Batch) CancelMany(ctx context.Context, tags []string, grace time.Duration) error {
	return b.Each(ctx, fault.SiteCancel, cancelScript, tags, jobdir.Seconds(grace))
}

// CancelJobs asks Slurm to end jobs, without waiting for their end.
func (b *Batch) CancelJobs(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if !idPattern.MatchString(id) {
			return corral.ErrorAt(corral.Invalid, "id", "%q is not the id of a job", id)
		}
	}
	_, err := b.Run(ctx, fault.SiteEnd, endScript, nil, ids...)
	return wrap.Errorf(err, "cancelling jobs")
}

// Forget refuses to forget a job that has not ended. Together with the last job it removes root, if root contains
// nothing else.
func (b *Batch) Forget(ctx context.Context, tag string) error {
	return b.ForgetMany(ctx, []string{tag})
}

// ForgetMany forgets jobs with one command at the site.
func (b *Batch) ForgetMany(ctx context.Context, tags []string) error {
	return b.Each(ctx, fault.SiteForget, forgetScript, tags, jobdir.Forget, rand.Text())
}

// Check asks Slurm whether it would accept the job, with sbatch --test-only. Nothing remains at the site.
func (b *Batch) Check(ctx context.Context, spec gridsite.JobSpec) error {
	_, err := b.try(ctx, spec)
	return err
}

// Forecast returns how long sbatch --test-only predicts that the job would wait. Slurm plans all jobs of higher
// priority with the time that they requested.
func (b *Batch) Forecast(ctx context.Context, spec gridsite.JobSpec) (time.Duration, error) {
	out, err := b.try(ctx, spec)
	if err != nil {
		return 0, err
	}
	var now, start int64
	if _, err := fmt.Sscanf(string(out), "%d %d\n", &now, &start); err != nil {
		return 0, corral.Errorf(corral.Unsatisfiable, "sbatch --test-only does not say when a job would start")
	}
	return time.Duration(max(0, start-now)) * time.Second, nil
}

// ForecastBy implements gridsite.Forecaster.
func (b *Batch) ForecastBy() string { return "sbatch --test-only" }

// try runs sbatch --test-only.
func (b *Batch) try(ctx context.Context, spec gridsite.JobSpec) ([]byte, error) {
	options, err := optionsOf(b, spec)
	if err != nil {
		return nil, err
	}
	args := append([]string{spec.Tag, strconv.Itoa(spec.GPUs)}, options...)
	batch := filesOf(b, spec)[jobdir.Control+"/batch"]
	out, err := b.Run(ctx, fault.SiteTry, tryScript, bytes.NewReader(batch), args...)
	return out, wrap.Errorf(err, "trying a job like %s", spec.Tag)
}

// answer maps the exit statuses of our scripts to errors. If Slurm is not installed on the head node, only another
// contact can help; if the controller does not answer, it may soon answer again.
func answer(status int, stderr []byte) error {
	switch status {
	case jobdir.ExitRefused:
		return refusal(stderr)
	case exitAway:
		return corral.Errorf(corral.Unavailable, "Slurm cannot be reached from the head node: %s",
			gridsite.LastLine(stderr))
	case exitNone:
		return corral.Errorf(corral.Unsatisfiable,
			"there is no sbatch on the head node, not even for a login shell, whose PATH is %s:"+
				" is it the right host?", gridsite.LastLine(stderr))
	}
	return nil
}
