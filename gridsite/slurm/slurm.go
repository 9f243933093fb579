// Package slurm is the batch system of that name, asked with its own commands on a head node: sbatch, squeue, scancel,
// and sacct where it answers. The jobs' directories are below root, on a file system that head and nodes share.
//
// Slurm forgets a job some minutes after its end, and many sites keep no accounts. So our batch script (run.sh) leaves
// in the job's directory when the job began and how it ended, and nobody else needs to remember it. What is asked when:
//
//	submit.sh  sbatch, with the tag as the job's name; the answer may be lost, and the tag finds the job
//	poll.sh    squeue for what waits and runs, and the directories for what has begun or ended
//	lost.sh    sacct or scontrol, only for jobs that are gone without having left their status
//	cancel.sh  scancel; it waits until nothing of the job is left in the queue
//	try.sh     sbatch --test-only, before a site is used with new options
//
// Of several jobs under a tag one at most ever starts its command (lib.sh): the batch scripts agree on that by making a
// link. Slurm ends what a job leaves running after a SIGKILL of our batch script; it can do that only with
// cgroups.
//
// The survey (survey.go, user.go) asks what there is: partitions, nodes, and what the user's accounts and QOS allow;
// queue.go asks who holds the processors of a partition, and who waits for them.
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
)

// usualGrace is how long what a job leaves running, or a job whose walltime is over, has between SIGTERM and SIGKILL.
const usualGrace = 5 * time.Second

// Exit statuses of scripts that did nothing.
const (
	exitAway = 5 // Slurm was not reached
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

// onHead is a script for the head node, with the libraries that it needs before it: where Slurm's commands are
// (path.sh), what a job's directory has (lib.sh), and how Slurm is asked (head.sh).
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

// New follows the jobs below root, an absolute path at the site that is ours alone and that its nodes share; it need
// not exist. The caller closes conn after the last use of the Batch.
func New(conn gridsite.Conn, root string) *Batch {
	return &Batch{Dirs: jobdir.At(conn, root, answer), conn: conn, grace: usualGrace}
}

// Submit queues the job, unless one was queued under the tag before. Two submissions at once may queue two jobs, of
// which one starts its command: the batch scripts agree on that through the job's directory.
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

// idPattern is the number that Slurm gave to the job; "unstarted" for one that was cancelled before it had one.
var idPattern = regexp.MustCompile(`^([0-9]+|unstarted)$`)

// Poll asks squeue once for all jobs, and reads what the jobs themselves have left in their directories. Only for jobs
// that are in neither, because they were killed together with their script, Slurm is asked again, for its own last
// word; that is kept in the directory, since Slurm forgets it soon.
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
			return nil, fmt.Errorf("asking what became of %d jobs: %w", len(gone), err)
		}
		late, err := parseSight(out)
		if err != nil {
			return nil, corral.Errorf(corral.Unknown, "asking what became of %d jobs: %w", len(gone), err)
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

// Cancel ends all jobs under the tag. Those that wait leave the queue at once.
func (b *Batch) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	return b.CancelMany(ctx, []string{tag}, grace)
}

// CancelMany ends jobs with one command at the site, and asks squeue for all of them together.
func (b *Batch) CancelMany(ctx context.Context, tags []string, grace time.Duration) error {
	return b.Each(ctx, fault.SiteCancel, cancelScript, tags, jobdir.Seconds(grace))
}

// CancelJobs asks Slurm to end jobs, and does not wait until they have ended.
func (b *Batch) CancelJobs(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if !idPattern.MatchString(id) {
			return corral.ErrorAt(corral.Invalid, "id", "%q is not the id of a job", id)
		}
	}
	if _, err := b.Run(ctx, fault.SiteEnd, endScript, nil, ids...); err != nil {
		return fmt.Errorf("cancelling jobs: %w", err)
	}
	return nil
}

// Forget refuses a job that has not ended. With the last job it removes root, if nothing else is in it.
func (b *Batch) Forget(ctx context.Context, tag string) error {
	return b.ForgetMany(ctx, []string{tag})
}

// ForgetMany forgets jobs with one command at the site.
func (b *Batch) ForgetMany(ctx context.Context, tags []string) error {
	return b.Each(ctx, fault.SiteForget, forgetScript, tags, jobdir.Forget, rand.Text())
}

// Check asks Slurm whether it would take the job, with sbatch --test-only, and leaves nothing behind.
func (b *Batch) Check(ctx context.Context, spec gridsite.JobSpec) error {
	options, err := optionsOf(b, spec)
	if err != nil {
		return err
	}
	args := append([]string{spec.Tag, strconv.Itoa(spec.GPUs)}, options...)
	batch := filesOf(b, spec)[jobdir.Control+"/batch"]
	if _, err := b.Run(ctx, fault.SiteTry, tryScript, bytes.NewReader(batch), args...); err != nil {
		return fmt.Errorf("trying a job like %s: %w", spec.Tag, err)
	}
	return nil
}

// answer says what the exit statuses of our scripts mean. Without Slurm on the head node nothing helps but another
// contact; a controller that does not answer may be back soon.
func answer(status int, stderr []byte) error {
	switch status {
	case jobdir.ExitRefused:
		return refusal(stderr)
	case exitAway:
		return corral.Errorf(corral.Unavailable, "Slurm is not reached from the head node: %s",
			gridsite.LastLine(stderr))
	case exitNone:
		return corral.Errorf(corral.Unsatisfiable,
			"there is no sbatch on the head node, not even for a login shell, whose PATH is %s:"+
				" is it the right host?", gridsite.LastLine(stderr))
	}
	return nil
}
