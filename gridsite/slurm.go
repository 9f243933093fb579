package gridsite

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// slurmGrace is how long what a job leaves running, or a job whose walltime is over, has between SIGTERM and SIGKILL.
const slurmGrace = 5 * time.Second

// Exit statuses of scripts that did nothing.
const (
	exitAway = 5 // Slurm was not reached
	exitNone = 6 // there is no Slurm
)

//go:embed slurm/*.sh
var slurmText embed.FS

// slurmPart is a file of the slurm dialect.
func slurmPart(name string) string {
	text, err := slurmText.ReadFile("slurm/" + name + ".sh")
	if err != nil {
		panic(err) // unreachable: the names are constants of this file
	}
	return string(text)
}

// slurmScript is a script for the head node, with the libraries that it needs before it.
func slurmScript(name string) string {
	return script() + slurmPart("path") + slurmPart("lib") + slurmPart("head") + slurmPart(name)
}

var slurmScripts = struct{ submit, run, poll, lost, cancel, forget, try, end string }{
	submit: script("build") + slurmPart("path") + slurmPart("lib") + slurmPart("head") + slurmPart("offers") + slurmPart("submit"),
	run:    script() + slurmPart("path") + slurmPart("lib") + slurmPart("run"),
	poll:   slurmScript("poll"),
	lost:   slurmScript("lost"),
	cancel: slurmScript("cancel"),
	forget: slurmScript("forget"),
	try:    slurmScript("offers") + slurmPart("try"),
	end:    slurmScript("end"),
}

// Slurm is the batch system of that name, asked with its own commands on a head node: sbatch, squeue, scancel, and
// sacct where it answers. The jobs' directories are below root, on a file system that head and nodes share. There our
// batch script leaves how a job ended, so that nobody needs to remember it.
//
// Of several jobs under a tag one at most ever starts its command. Slurm ends what a job leaves running after a
// SIGKILL of our batch script; it can do that only with cgroups.
type Slurm struct {
	conn  Conn
	root  string
	grace time.Duration
}

// NewSlurm follows the jobs below root, an absolute path at the site that is ours alone and that its nodes share; it
// need not exist. The caller closes conn, after the last use of the Slurm.
func NewSlurm(conn Conn, root string) *Slurm {
	return &Slurm{conn: conn, root: path.Clean(root), grace: slurmGrace}
}

// Submit queues the job, unless one was queued under the tag before: two at once may queue two, of which one runs.
func (s *Slurm) Submit(ctx context.Context, spec JobSpec) (string, error) {
	options, err := s.options(spec)
	if err != nil {
		return "", err
	}
	dir := ".new," + spec.Tag + "," + rand.Text()
	files, err := jobArchive(s.files(spec), dir)
	if err != nil {
		return "", err
	}
	args := append([]string{spec.Tag, dir, strconv.Itoa(spec.GPUs)}, options...)
	out, err := s.run(ctx, slurmScripts.submit, files, args...)
	if err != nil {
		return "", fmt.Errorf("submitting %s: %w", spec.Tag, err)
	}
	id := strings.TrimSuffix(string(out), "\n")
	if !slurmID.MatchString(id) {
		return "", corral.Errorf(corral.Unknown, "submitting %s: the site answered %q", spec.Tag, out)
	}
	return id, nil
}

// slurmID is the number that Slurm gave to the job; "unstarted" for one that was cancelled before it had one.
var slurmID = regexp.MustCompile(`^([0-9]+|unstarted)$`)

// Poll asks squeue once for all jobs. Only for jobs that are gone without having left their status Slurm is asked
// again, for its own last word, and that is kept.
func (s *Slurm) Poll(ctx context.Context, tags []string) (map[string]JobStatus, error) {
	if err := s.checkTags(tags...); err != nil {
		return nil, err
	}
	out, err := s.run(ctx, slurmScripts.poll, lines(tags))
	if err != nil {
		return nil, fmt.Errorf("polling: %w", err)
	}
	sight, err := parseSlurm(out)
	if err != nil {
		return nil, corral.Errorf(corral.Unknown, "polling: %w", err)
	}
	if gone := sight.gone(tags); len(gone) > 0 {
		out, err := s.run(ctx, slurmScripts.lost, lines(gone))
		if err != nil {
			return nil, fmt.Errorf("asking what became of %d jobs: %w", len(gone), err)
		}
		late, err := parseSlurm(out)
		if err != nil {
			return nil, corral.Errorf(corral.Unknown, "asking what became of %d jobs: %w", len(gone), err)
		}
		maps.Copy(sight.jobs, late.jobs)
	}
	jobs := map[string]JobStatus{}
	for _, tag := range tags {
		if job, ok := sight.status(tag); ok {
			jobs[tag] = job
		}
	}
	return jobs, nil
}

// Cancel ends all jobs under the tag. Those that wait leave the queue at once.
func (s *Slurm) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	return s.CancelMany(ctx, []string{tag}, grace)
}

// CancelMany ends jobs with one command at the site, and asks squeue for all of them together.
func (s *Slurm) CancelMany(ctx context.Context, tags []string, grace time.Duration) error {
	return s.each(ctx, "cancelling", slurmScripts.cancel, tags, seconds(grace))
}

// CancelJobs asks Slurm to end jobs, and does not wait until they have ended.
func (s *Slurm) CancelJobs(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if !slurmID.MatchString(id) {
			return corral.ErrorAt(corral.Invalid, "id", "%q is no id of a job", id)
		}
	}
	if _, err := s.run(ctx, slurmScripts.end, nil, ids...); err != nil {
		return fmt.Errorf("cancelling jobs: %w", err)
	}
	return nil
}

// Read is as for Fork.
func (s *Slurm) Read(ctx context.Context, tag, name string) ([]byte, error) {
	return s.dirs().Read(ctx, tag, name)
}

// ReadMany asks for all files with one command.
func (s *Slurm) ReadMany(ctx context.Context, tags, names []string) (map[string]map[string][]byte, error) {
	return s.dirs().ReadMany(ctx, tags, names)
}

// dirs are the jobs' directories, which are those of the fork dialect.
func (s *Slurm) dirs() *Fork { return NewFork(s.conn, s.root) }

// Forget refuses a job that has not ended. With the last job it removes root, if nothing else is in it.
func (s *Slurm) Forget(ctx context.Context, tag string) error {
	return s.ForgetMany(ctx, []string{tag})
}

// ForgetMany forgets jobs with one command at the site.
func (s *Slurm) ForgetMany(ctx context.Context, tags []string) error {
	return s.each(ctx, "forgetting", slurmScripts.forget, tags, forgetScript, rand.Text())
}

// Check asks Slurm whether it would take the job.
func (s *Slurm) Check(ctx context.Context, spec JobSpec) error {
	_, err := s.Estimate(ctx, spec)
	return err
}

// Estimate asks Slurm when it would start the job if it were submitted now. Zero: it does not say.
func (s *Slurm) Estimate(ctx context.Context, spec JobSpec) (time.Time, error) {
	options, err := s.options(spec)
	if err != nil {
		return time.Time{}, err
	}
	args := append([]string{spec.Tag, strconv.Itoa(spec.GPUs)}, options...)
	out, err := s.run(ctx, slurmScripts.try, bytes.NewReader(s.files(spec)[controlDir+"/batch"]), args...)
	if err != nil {
		return time.Time{}, fmt.Errorf("trying a job like %s: %w", spec.Tag, err)
	}
	return parseEstimate(out)
}

// each runs a script on all tags that says of which it did not do what it does, and why.
func (s *Slurm) each(ctx context.Context, what, script string, tags []string, args ...string) error {
	if err := s.checkTags(tags...); err != nil {
		return err
	}
	out, err := s.run(ctx, script, lines(tags), args...)
	return failures(what, tags, out, err)
}

func (s *Slurm) checkTags(tags ...string) error {
	return s.dirs().checkAll(append(slices.Clone(tags), "a")) // root is looked at also when there are no tags
}

// run runs a script at the site, with root as its first argument, and returns what it printed.
func (s *Slurm) run(ctx context.Context, script string, stdin io.Reader, args ...string) ([]byte, error) {
	res, err := s.conn.Run(ctx, Command{Argv: append([]string{"sh", "-c", script, "corral", s.root}, args...), Stdin: stdin})
	switch {
	case err != nil:
		return nil, err
	case res.Exit == exitRefused:
		return nil, slurmRefusal(res.Stderr)
	case res.Exit == exitAway:
		return nil, corral.Errorf(corral.Unavailable, "Slurm is not reached from the head node: %s", lastLine(res.Stderr))
	case res.Exit == exitNone:
		return nil, corral.Errorf(corral.Unsatisfiable, "there is no sbatch on the head node, not even for a login shell, whose PATH is %s: is it the right host?", lastLine(res.Stderr))
	case res.Exit == exitNoFile:
		return nil, fs.ErrNotExist
	case res.Exit != 0:
		return nil, corral.Errorf(corral.Unknown, "exit status %d: %s", res.Exit, lastLine(res.Stderr))
	}
	return res.Stdout, nil
}
