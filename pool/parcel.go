package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/input"
)

// A parcel is how a job travels to a machine that does not see the run's directory, and what comes back.
// Whoever sends it has [Pack] fill a folder: the job's description, and in/ with its inputs. On the other
// machine, in a folder with the same two, [ExecuteParcel] runs the tasks as a worker does, and leaves the
// description of what became of them, and out/ with their files. When these two are back in the first folder,
// [Unpack] puts them where a worker would have.
//
// Regular files travel as they are, under a number for a name; directories as tar archives.

// Names in the folder of a parcel.
const (
	ParcelJob    = "job.json"
	ParcelIn     = "in"
	ParcelResult = "result.json"
	ParcelOut    = "out"
)

// A parcelJob is the description of a job that travels.
type parcelJob struct {
	Job    execution.Job `json:"job"`
	Inputs []parcelItem  `json:"inputs,omitempty"`
}

// A parcelResult is the description of what became of its tasks, as far as they were begun.
type parcelResult struct {
	Worker string       `json:"worker"`
	Tasks  []parcelTask `json:"tasks"`
}

type parcelTask struct {
	Result execution.Result `json:"result"`
	Files  []parcelItem     `json:"files,omitempty"`
}

// A parcelItem is a file of a task and where it travels.
type parcelItem struct {
	Name string `json:"name"`           // for the task
	At   string `json:"at"`             // in in/ or out/
	Tar  bool   `json:"tar,omitempty"`  // it is a directory
	Data bool   `json:"data,omitempty"` // it is an output that was published
}

// Pack fills dir, made anew, for a job: what it needs of its run's directory, by links. An input that is missing
// is left out; the task will say so.
func Pack(dir string, job execution.Job) error { return pack(context.Background(), dir, job) }

// pack is Pack that stops when ctx ends.
func pack(ctx context.Context, dir string, job execution.Job) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, ParcelIn), 0o700); err != nil {
		return err
	}
	p := parcelJob{Job: job}
	packed := map[string]bool{}
	for i := range job.Tasks {
		for _, name := range job.Tasks[i].Inputs {
			if packed[name] || !filepath.IsLocal(name) { // the task will say that too
				continue
			}
			packed[name] = true
			item := parcelItem{Name: name, At: strconv.Itoa(len(p.Inputs))}
			if ok, err := item.pack(ctx, filepath.Join(job.Dir, dataDir, name), filepath.Join(dir, ParcelIn)); err != nil {
				return fmt.Errorf("packing input %q: %w", name, err)
			} else if ok {
				p.Inputs = append(p.Inputs, item)
			}
		}
	}
	return writeJSON(filepath.Join(dir, ParcelJob), p)
}

// pack makes file from travel in dir; false if there is none.
func (i *parcelItem) pack(ctx context.Context, from, dir string) (bool, error) {
	info, err := os.Stat(from)
	if err != nil {
		return false, nil // whatever it is, its task says it better
	}
	to := filepath.Join(dir, i.At)
	switch i.Tar = info.IsDir(); {
	case i.Tar:
		return true, tarFolder(ctx, from, to)
	case !info.Mode().IsRegular(): // who reads a named pipe waits for ever
		return false, fmt.Errorf("%s is neither a file nor a directory", from)
	}
	return true, os.Symlink(from, to)
}

// ExecuteParcel runs the tasks of the job in dir one after the other, as a worker of that name would. When ctx
// ends, the task that runs is cut off, and the others are not begun.
func ExecuteParcel(ctx context.Context, dir, worker string) error {
	job, err := unwrap(dir)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // for people
	x, err := newExecutor(WorkerConfig{ID: worker, Scratch: filepath.Join(dir, "tmp")}, host)
	if err != nil {
		return err
	}
	defer x.close()
	if err := errors.Join(os.MkdirAll(x.scratch.base, 0o700), os.MkdirAll(filepath.Join(dir, ParcelOut), 0o700)); err != nil {
		return err
	}
	back := parcelResult{Worker: worker}
	collected := 0
	for i := range job.Tasks {
		if ctx.Err() != nil {
			break
		}
		done := parcelTask{Result: x.runUntil(ctx, &job, &job.Tasks[i])}
		if done.Files, err = collect(context.WithoutCancel(ctx), dir, &job.Tasks[i], &done.Result, &collected); err != nil {
			return err
		}
		back.Tasks = append(back.Tasks, done)
	}
	return writeJSON(filepath.Join(dir, ParcelResult), back)
}

// unwrap makes a run's directory in dir for the job that travelled there, with its inputs.
func unwrap(dir string) (execution.Job, error) {
	var p parcelJob
	if err := readJSON(filepath.Join(dir, ParcelJob), &p); err != nil {
		return execution.Job{}, fmt.Errorf("reading the job: %w", err)
	}
	p.Job.Dir = filepath.Join(dir, "run")
	if err := os.MkdirAll(filepath.Join(p.Job.Dir, dataDir), 0o700); err != nil {
		return execution.Job{}, err
	}
	for _, i := range p.Inputs {
		if err := i.put(filepath.Join(dir, ParcelIn), p.Job.Dir, filepath.Join(dataDir, i.Name)); err != nil {
			return execution.Job{}, fmt.Errorf("taking input %q: %w", i.Name, err)
		}
	}
	return p.Job, nil
}

// runUntil runs a task, which is cut off when ctx ends.
func (x *executor) runUntil(ctx context.Context, job *execution.Job, task *execution.Task) execution.Result {
	e := x.begin(job, task)
	stop := context.AfterFunc(ctx, func() { e.stop(execution.Cut, "its worker had to leave: it was asked to") })
	defer stop()
	return e.run(func() bool { return true })
}

// collect makes the files of a task travel back: what it printed, its record, and what it published.
func collect(ctx context.Context, dir string, t *execution.Task, r *execution.Result, n *int) ([]parcelItem, error) {
	run := filepath.Join(dir, "run")
	var items []parcelItem
	if r.Status == execution.Done {
		for _, name := range t.Outputs {
			items = append(items, parcelItem{Name: name, Data: true})
		}
	}
	stdout, stderr := t.Streams()
	for _, name := range []string{stdout, stderr, recordFile} {
		if !slices.ContainsFunc(items, func(i parcelItem) bool { return i.Name == name }) {
			items = append(items, parcelItem{Name: name})
		}
	}
	kept := items[:0]
	for _, i := range items {
		from := filepath.Join(run, tasksDir, t.ID+"."+strconv.Itoa(t.Attempt), i.Name)
		if i.Data {
			from = filepath.Join(run, dataDir, i.Name)
		}
		i.At = strconv.Itoa(*n)
		ok, err := i.collect(ctx, from, filepath.Join(dir, ParcelOut))
		if err != nil {
			return nil, fmt.Errorf("collecting %q of task %s: %w", i.Name, t.ID, err)
		}
		if ok {
			*n++
			kept = append(kept, i)
		}
	}
	return kept, nil
}

// collect moves a file; what is neither a file nor a directory stays, as does what is not there.
func (i *parcelItem) collect(ctx context.Context, from, dir string) (bool, error) {
	if !filepath.IsLocal(i.Name) {
		return false, nil // the task was refused for it
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
	return true, os.Rename(from, to)
}

// ErrNoResult says that a parcel came back without a description of what became of its tasks.
var ErrNoResult = errors.New("its executor left no result")

// Unpack puts into the run's directory what came back in dir for a job, and publishes the outputs of tasks that
// are done. It returns the results of the tasks that were begun. It can be repeated.
func Unpack(dir string, job execution.Job) ([]execution.Result, error) {
	results, _, err := unpack(dir, job, func() bool { return true })
	return results, err
}

// unpack is Unpack that publishes for as long as fresh says that it may; trouble is of this side, and has made failures of
// tasks that are done.
func unpack(dir string, job execution.Job, fresh func() bool) (results []execution.Result, trouble, err error) {
	var back parcelResult
	if err := readJSON(filepath.Join(dir, ParcelResult), &back); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoResult, err)
	}
	for i := range job.Tasks {
		t := &job.Tasks[i]
		k := slices.IndexFunc(back.Tasks, func(d parcelTask) bool { return d.Result.Index == t.Index && d.Result.Attempt == t.Attempt })
		if k < 0 {
			continue
		}
		r := back.Tasks[k].Result
		r.Key = job.Key()
		if err := unpackTask(filepath.Join(dir, ParcelOut), job.Dir, t, back.Tasks[k], fresh); err != nil && r.Status == execution.Done {
			r.Status, r.Reason = execution.Failed, clip(err.Error())
			trouble = errors.Join(trouble, err)
		}
		results = append(results, r)
	}
	return results, trouble, nil
}

// unpackTask makes the attempt's directory as a worker would have left it.
func unpackTask(out, run string, t *execution.Task, done parcelTask, fresh func() bool) error {
	if err := checkNames(t); err != nil {
		return err
	}
	d := taskDir{run: run, task: t, path: run + "/" + tasksDir + "/" + t.ID + "." + strconv.Itoa(t.Attempt)}
	if err := d.make(); err != nil {
		return fmt.Errorf("making the task's directory: %w", err)
	}
	for _, name := range t.Inputs {
		_ = d.link(name) // for people; one that is gone since is not missing any more
	}
	var errs []error
	stdout, stderr := t.Streams()
	for _, i := range done.Files {
		if !slices.Contains(t.Outputs, i.Name) && i.Name != stdout && i.Name != stderr && i.Name != recordFile {
			continue // nobody asked for it
		}
		if err := i.put(out, run, filepath.Join(tasksDir, filepath.Base(d.path), i.Name)); err != nil {
			errs = append(errs, fmt.Errorf("taking %q: %w", i.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if done.Result.Status != execution.Done {
		return nil
	}
	return d.publish(fresh)
}

// put puts what travelled in dir to its place, a name below base that no link leads out of. What travelled stays
// where it is.
func (i *parcelItem) put(dir, base, name string) error {
	if i.At != filepath.Base(i.At) || !filepath.IsLocal(i.At) {
		return fmt.Errorf("%q is no name of a file that travels", i.At)
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
		return fmt.Errorf("%q is no regular file", i.At)
	}
	if near, err := filepath.Rel(base, from); err == nil && filepath.IsLocal(near) && root.Link(near, name) == nil {
		return nil
	}
	return copyFile(from, info, root, name)
}

// copyFile is for file systems without hard links, and for a name that is there: what has it goes, as it may be a link.
func copyFile(from string, info fs.FileInfo, root *os.Root, name string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	_ = root.Remove(name) // mostly there is none
	out, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, info.ModTime(), info.ModTime())
}

// maxParcelText is how long either description may be: that of a job of 100,000 tasks stays below it.
const maxParcelText = 256 << 20

func readJSON(name string, v any) error {
	text, err := input.ReadFile(name, maxParcelText)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

func writeJSON(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
