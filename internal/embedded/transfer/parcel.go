// Package transfer carries the files of a job to a machine that does not see its run's directory, and back.
//
// A parcel is a folder. [Pack] fills it on the sender's side with the job's description, and in/ with its inputs. On
// the other machine, in a folder with the same contents, [Execute] runs the tasks as a worker does, and adds a
// description of their results, and out/ with their files. Once that description and out/ are back in the first folder,
// [Unpack] puts the files where a local worker would have put them.
//
//	job.json     the job, and which file of in/ is which input
//	in/          0, 1, 2 …: files unchanged, folders as tar archives
//	result.json  the results of the tasks that were started, and which file of out/ is which
//	out/         0, 1, 2 …: the printed output of the tasks, their records, their outputs
//	run/         on the other machine only: the run's directory of a single job
//
// Files travel under numbers because their names are arbitrary, and HTCondor transfers a flat list of files. The
// sender's side has only the run's directory, so the folder is created below it ([Spool]), where a link to an input
// costs nothing and a returned file can be renamed to its place.
//
// HTCondor transfers the folders of its jobs itself; couriers of embedded workers use [Send] and [Receive], and return
// the files of one task at a time ([Wrap]).
//
// Returned files come from a machine that may be hostile: their names are checked against those that the job requested,
// and no file is written through a link that leads out of the run's directory.
package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// Names in the folder of a parcel.
const (
	JobFile    = "job.json"
	InDir      = "in"
	ResultFile = "result.json"
	OutDir     = "out"
)

// A sentJob is the description of a job whose files travel: the job as a worker receives it, and the locations of its
// inputs in the folder.
type sentJob struct {
	Job execution.Job `json:"job"`
	sentInputs
}

// sentInputs is the description of a parcel for a worker that already has the job.
type sentInputs struct {
	Inputs []item `json:"inputs,omitempty"`
}

// A sentResult is the description of the results of a job's tasks, as far as they were started.
type sentResult struct {
	Worker string     `json:"worker"`
	Tasks  []sentTask `json:"tasks"`
}

// A sentTask is the outcome of one task: its result, and the locations of its files in the folder.
type sentTask struct {
	Result execution.Result `json:"result"`
	Files  []item           `json:"files,omitempty"`
}

// An item is a file of a task and its location in a parcel.
type item struct {
	Name string `json:"name"`           // the name that the task uses
	At   string `json:"at"`             // name in in/ or out/
	Tar  bool   `json:"tar,omitempty"`  // it is a directory
	Data bool   `json:"data,omitempty"` // it is an output that was published
}

// Pack creates dir, replacing any existing one, and fills it for a job: with links to the files that the job needs from
// its run's directory, so that nothing is copied before it is sent, and with archives of folders. An input shared by
// several tasks of the job travels once. A missing input is omitted; its task will report it. Pack stops when ctx ends.
func Pack(ctx context.Context, dir string, job execution.Job) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, InDir), 0o700); err != nil {
		return err
	}
	p := sentJob{Job: job}
	packed := map[string]bool{} // packed, or created by a task of the job before it is read
	for i := range job.Tasks {
		for _, name := range job.Tasks[i].Inputs {
			if packed[name] || !filepath.IsLocal(name) { // the task will report that, too
				continue
			}
			packed[name] = true
			item := item{Name: name, At: strconv.Itoa(len(p.Inputs))}
			from := executor.Source(job.Dir, &job.Tasks[i], name)
			if ok, err := item.pack(ctx, from, filepath.Join(dir, InDir)); err != nil {
				return fmt.Errorf("packing input %q: %w", name, err)
			} else if ok {
				p.Inputs = append(p.Inputs, item)
			}
		}
		for _, name := range job.Tasks[i].Outputs {
			packed[name] = true
		}
	}
	return writeJSON(filepath.Join(dir, JobFile), p)
}

// pack adds the file at from to dir; it returns false if the file does not exist.
func (i *item) pack(ctx context.Context, from, dir string) (bool, error) {
	info, err := os.Stat(from)
	if err != nil {
		return false, nil // the task gives a better error for it
	}
	to := filepath.Join(dir, i.At)
	switch i.Tar = info.IsDir(); {
	case i.Tar:
		return true, tarFolder(ctx, from, to)
	case !info.Mode().IsRegular(): // reading from a named pipe may block indefinitely
		return false, fmt.Errorf("%s is neither a file nor a directory", from)
	}
	return true, os.Symlink(from, to)
}

// Execute runs the tasks of the job in dir one after another, as the named worker with the resources of slot would do.
// When ctx ends, the running task is stopped, and the others are not started. If tasks depend on each other, a task
// that fails also prevents the later ones from starting.
func Execute(ctx context.Context, dir, worker string, slot corral.Resources) error {
	job, err := Unwrap(dir)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // for information only
	tmp := filepath.Join(dir, "tmp")
	x, err := executor.New(worker, host, tmp)
	if err != nil {
		return err
	}
	defer x.Close()
	if err := errors.Join(os.MkdirAll(tmp, 0o700), os.MkdirAll(filepath.Join(dir, OutDir), 0o700)); err != nil {
		return err
	}
	back := sentResult{Worker: worker}
	collected := 0
	for i := range job.Tasks {
		if ctx.Err() != nil || i > 0 && job.Ordered && back.Tasks[i-1].Result.Status != execution.Done {
			break
		}
		done := sentTask{Result: x.RunUntil(ctx, slot, &job, &job.Tasks[i])}
		done.Files, err = collect(context.WithoutCancel(ctx), dir, left{&job, &job.Tasks[i], &done.Result}, &collected)
		if err != nil {
			return err
		}
		back.Tasks = append(back.Tasks, done)
	}
	return writeJSON(filepath.Join(dir, ResultFile), back)
}

// Unwrap creates a run's directory in dir for the job that travelled there, with its inputs. The executor then works as
// it does for a local job.
func Unwrap(dir string) (execution.Job, error) {
	var p sentJob
	if err := readJSON(filepath.Join(dir, JobFile), &p); err != nil {
		return execution.Job{}, fmt.Errorf("reading the job: %w", err)
	}
	job, err := Away(dir, p.Job)
	if err != nil {
		return job, err
	}
	for _, i := range p.Inputs {
		if err := i.put(filepath.Join(dir, InDir), job.Dir, filepath.Join(executor.DataDir, i.Name)); err != nil {
			return execution.Job{}, fmt.Errorf("receiving input %q: %w", i.Name, err)
		}
	}
	return job, nil
}

// Away creates a run's directory without files in dir, and returns the job with its path changed to that directory.
func Away(dir string, job execution.Job) (execution.Job, error) {
	job.Dir = filepath.Join(dir, "run")
	return job, os.MkdirAll(filepath.Join(job.Dir, executor.DataDir), 0o700)
}

// Nothing reports whether no files need to be sent back for a task of a job that travelled: the task succeeded, it has
// no outputs, and its directory was removed by packing.
func Nothing(job *execution.Job, t *execution.Task, r execution.Result) bool {
	if !job.Pack || r.Status != execution.Done || len(t.Outputs) > 0 {
		return false
	}
	_, err := os.Lstat(filepath.Join(job.Dir, executor.TasksDir, t.ID+"."+strconv.Itoa(t.Attempt)))
	return errors.Is(err, fs.ErrNotExist)
}

// left identifies the files that one task of a job left.
type left struct {
	job    *execution.Job
	task   *execution.Task
	result *execution.Result
}

// collect adds a task's files to the files that are sent back. n numbers them across the tasks of a job. Files that
// other tasks of the job may read are also kept in place.
func collect(ctx context.Context, dir string, l left, n *int) ([]item, error) {
	items := leavings(l.task, l.result)
	kept := items[:0]
	for _, i := range items {
		i.At = strconv.Itoa(*n)
		move := os.Rename
		if i.Data && l.job.Ordered {
			move = os.Link
		}
		ok, err := i.collect(ctx, i.lies(dir, l.task), filepath.Join(dir, OutDir), move)
		if err != nil {
			return nil, fmt.Errorf("collecting %q of task %s: %w", i.Name, l.task.ID, err)
		}
		if ok {
			*n++
			kept = append(kept, i)
		}
	}
	return kept, nil
}

// collect moves one file by calling move. It ignores a missing file, and anything that is neither a file nor a
// directory.
func (i *item) collect(ctx context.Context, from, dir string, move func(from, to string) error) (bool, error) {
	if !filepath.IsLocal(i.Name) {
		return false, nil // the task was refused because of the name
	}
	info, err := os.Lstat(from)
	to := filepath.Join(dir, i.At)
	switch {
	case err != nil:
		return false, nil // a task that did not start has printed nothing
	case info.IsDir():
		i.Tar = true
		return true, tarFolder(ctx, from, to)
	case !info.Mode().IsRegular():
		return false, nil
	}
	return true, move(from, to)
}

// ErrNoResult reports that a returned parcel contains no description of the results of its tasks.
var ErrNoResult = errors.New("its executor left no result")

// Unpack puts the files that came back in dir for a job into the run's directory, and publishes the outputs of
// successful tasks. It returns the results of the tasks that were started. It can be repeated.
func Unpack(dir string, job execution.Job) ([]execution.Result, error) {
	results, _, err := UnpackWhile(dir, job, func() bool { return true })
	return results, err
}

// UnpackWhile is like Unpack, but publishes only while fresh returns true. trouble is an error on this side, for
// example a full disk, that made successful tasks fail; the caller may have the worker deliver again.
func UnpackWhile(dir string, job execution.Job, fresh func() bool) (results []execution.Result, trouble, err error) {
	var back sentResult
	if err := readJSON(filepath.Join(dir, ResultFile), &back); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	for i := range job.Tasks {
		t := &job.Tasks[i]
		k := slices.IndexFunc(back.Tasks, func(d sentTask) bool {
			return d.Result.Index == t.Index && d.Result.Attempt == t.Attempt
		})
		if k < 0 {
			continue
		}
		r := back.Tasks[k].Result
		r.Key = job.Key()
		err := unpackTask(filepath.Join(dir, OutDir), &job, t, back.Tasks[k], fresh)
		if err != nil && r.Status == execution.Done {
			r.Status, r.Reason = execution.Failed, wire.Clip(err.Error())
			trouble = errors.Join(trouble, err)
		}
		results = append(results, r)
	}
	return results, trouble, nil
}

// unpackTask creates the attempt's directory as a worker would have left it, including links to inputs, and publishes
// the outputs of a successful task. It accepts only files that the job requested. If nothing but outputs came back for
// a task of a packed job, the directory is removed.
func unpackTask(
	out string, job *execution.Job, t *execution.Task, done sentTask, fresh func() bool,
) error {
	d, err := executor.BareTaskDir(job.Dir, t)
	if err != nil {
		return err
	}
	var errs []error
	for _, i := range done.asked(t) {
		if err := i.put(out, job.Dir, filepath.Join(executor.TasksDir, filepath.Base(d.Path), i.Name)); err != nil {
			errs = append(errs, fmt.Errorf("receiving %q: %w", i.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return done.settle(job, t, d, fresh)
}

// asked returns the files that came back and that the job requested.
func (d *sentTask) asked(t *execution.Task) (asked []item) {
	stdout, stderr := t.Streams()
	wanted := append([]string{stdout, stderr, executor.RecordFile, executor.TraceFile}, t.Outputs...)
	for _, i := range d.Files {
		if slices.Contains(wanted, i.Name) {
			asked = append(asked, i)
		}
	}
	return asked
}

// settle completes a task after its files have been placed in its attempt's directory.
func (d *sentTask) settle(
	job *execution.Job, t *execution.Task, dir executor.TaskDir, fresh func() bool,
) error {
	done := d.Result.Status == execution.Done
	bare := job.Pack && done && !slices.ContainsFunc(d.Files, func(i item) bool { return !i.Data })
	if !bare {
		for _, name := range t.Inputs {
			if !slices.Contains(t.Outputs, name) {
				_ = dir.Link(name) // for users; an input that has since been removed does not matter now
			}
		}
	}
	if !done {
		return nil
	}
	if err := dir.Publish(fresh); err != nil || !bare {
		return err
	}
	dir.Pack()
	return nil
}

// put places the item that travelled in dir at name, below base; no link can lead out of base. The original stays in
// dir, so that the call can be repeated after a crash. On the same file system a hard link costs nothing; otherwise the
// file is copied.
func (i *item) put(dir, base, name string) error {
	if i.At != filepath.Base(i.At) || !filepath.IsLocal(i.At) {
		return fmt.Errorf("%q is not a valid file name in a parcel", i.At)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	from := filepath.Join(dir, i.At)
	if i.Tar {
		return untarFolder(from, root, name)
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file", i.At)
	}
	if near, err := filepath.Rel(base, from); err == nil && filepath.IsLocal(near) && root.Link(near, name) == nil {
		return nil
	}
	return copyFile(from, info, root, name)
}

// copyFile copies a file to name. It is used on file systems without hard links, and if name already exists: the
// existing file is removed, because it may be a link.
func copyFile(from string, info fs.FileInfo, root *os.Root, name string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	_ = root.Remove(name) // usually there is none
	return write(root, name, os.O_EXCL, info, in)
}

// maxParcelText limits the length of each description: a job with 100,000 tasks stays below it.
const maxParcelText = 256 << 20

// readJSON reads one of the two descriptions, with a limited length.
func readJSON(name string, v any) error {
	text, err := input.ReadFile(name, maxParcelText)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// writeJSON writes one of the two descriptions.
func writeJSON(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
