package transfer

import (
	"archive/tar"
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

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A Direct is a parcel without a folder of its own: its files are sent from their original places.
type Direct struct {
	file, folder string   // names of the description and of the folder for files
	text         []byte   // the description
	files        []string // :: number in the folder → the file
	bytes        int64
}

// DirectOf returns the parcel of a job whose inputs are all files, or nil if an input is a folder, which must be
// archived first. It omits the same files as Pack. An error names the first file that cannot be read: it must be found
// now, because a refusal is not possible once sending has begun.
func DirectOf(job execution.Job) (*Direct, error) {
	var described sentInputs
	d := &Direct{file: JobFile, folder: InDir}
	taken := map[string]bool{}
	for i := range job.Tasks {
		for _, name := range job.Tasks[i].Inputs {
			if taken[name] || !filepath.IsLocal(name) { // the task will report that, too
				continue
			}
			taken[name] = true
			from := executor.Source(job.Dir, &job.Tasks[i], name)
			info, err := os.Stat(from)
			switch {
			case err != nil: // the task gives a better error for it
				continue
			case info.IsDir():
				return nil, nil
			case !info.Mode().IsRegular(): // reading from a named pipe may block indefinitely
				return nil, fmt.Errorf("packing input %q: %s is neither a file nor a directory", name, from)
			}
			f, err := os.Open(from)
			if err != nil {
				return nil, fmt.Errorf("reading input %s: %w", from, errors.Unwrap(err))
			}
			f.Close()
			described.Inputs = append(described.Inputs, item{Name: name, At: d.add(from, info)})
		}
	}
	var err error
	d.text, err = json.Marshal(described)
	return d, err
}

// add adds a file and returns its number.
func (d *Direct) add(from string, info fs.FileInfo) string {
	d.files, d.bytes = append(d.files, from), d.bytes+info.Size()
	return strconv.Itoa(len(d.files) - 1)
}

// leavings lists the files of a task that are sent back: its outputs, if it succeeded or if a POST script judges it;
// its printed output; its record, and its trace if one exists.
func leavings(t *execution.Task, r *execution.Result) []item {
	var items []item
	done := r.Status == execution.Done // false: the outputs are still where the task created them
	if done || t.Judged && r.Status == execution.Failed && r.Exit > 0 {
		for _, name := range t.Outputs {
			items = append(items, item{Name: name, Data: done})
		}
	}
	stdout, stderr := t.Streams()
	for _, name := range []string{stdout, stderr, executor.RecordFile, executor.TraceFile} {
		if !slices.ContainsFunc(items, func(i item) bool { return i.Name == name }) {
			items = append(items, item{Name: name})
		}
	}
	return items
}

// lies returns the path at which the task left the file, in the run's directory below a parcel's folder.
func (i *item) lies(dir string, t *execution.Task) string {
	run := filepath.Join(dir, "run")
	if i.Data {
		return filepath.Join(run, executor.DataDir, i.Name)
	}
	return filepath.Join(run, executor.TasksDir, t.ID+"."+strconv.Itoa(t.Attempt), i.Name)
}

// Leavings returns the parcel with the files that task t left; t belongs to a job that travelled to dir. Folders are
// archived in dir.
func Leavings(ctx context.Context, dir, worker string, t *execution.Task, r execution.Result) (*Direct, error) {
	d := &Direct{file: ResultFile, folder: OutDir}
	done := sentTask{Result: r}
	for _, i := range leavings(t, &r) {
		from := i.lies(dir, t)
		info, err := os.Lstat(from)
		switch {
		case !filepath.IsLocal(i.Name), err != nil: // the task was refused because of the name, or has printed nothing
			continue
		case info.IsDir():
			archive := filepath.Join(dir, "archive"+strconv.Itoa(len(d.files)))
			if err := tarFolder(ctx, from, archive); err != nil {
				return nil, fmt.Errorf("collecting %q of task %s: %w", i.Name, t.ID, err)
			}
			if info, err = os.Lstat(archive); err != nil {
				return nil, err
			}
			i.Tar, from = true, archive
		case !info.Mode().IsRegular():
			continue
		}
		i.At = d.add(from, info)
		done.Files = append(done.Files, i)
	}
	var err error
	d.text, err = json.Marshal(sentResult{Worker: worker, Tasks: []sentTask{done}})
	return d, err
}

// Bytes returns how many bytes are sent, not counting the headers of the archive.
func (d *Direct) Bytes() int64 { return int64(len(d.text)) + d.bytes }

// Send sends the parcel in the same format as the function Send.
func (d *Direct) Send(c *wire.Conn) error {
	return sendArchive(c, func(archive *tar.Writer) error {
		h := &tar.Header{Name: d.file, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(d.text))}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(d.text); err != nil {
			return err
		}
		for i, from := range d.files {
			if err := tarFile(archive, from, d.folder+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Fetched receives the parcel of a job and puts its inputs below dir, which must not contain any of them. It returns
// the number of bytes received.
func Fetched(c *wire.Conn, dir string) (bytes int64, err error) {
	u := unloading{conn: c, file: JobFile, folder: InDir, most: -1}
	trouble, err := u.take(func(text []byte) (string, []item, error) {
		var p sentInputs
		err := json.Unmarshal(text, &p)
		return dir, p.Inputs, wrap.Errorf(err, "reading the parcel's description")
	})
	if err == nil && trouble != nil {
		err = corral.Errorf(corral.Failed, "receiving inputs: %w", trouble)
	}
	return u.bytes, err
}

// Delivered receives the files that one task of a job left, puts them where a local worker would have put them, and
// publishes the task's outputs while fresh returns true. The files are written directly into the attempt's directory,
// which no other worker uses; a repeated delivery starts with a fresh one. trouble is an error on this side, as in
// UnpackWhile.
func Delivered(c *wire.Conn, job execution.Job, fresh func() bool) (results []execution.Result, trouble, err error) {
	var done sentTask
	var t *execution.Task
	var dir executor.TaskDir
	u := unloading{conn: c, file: ResultFile, folder: OutDir, most: FilesOf(job)}
	trouble, err = u.take(func(text []byte) (_ string, files []item, err error) {
		var back sentResult
		if err := json.Unmarshal(text, &back); err != nil || len(back.Tasks) != 1 {
			return "", nil, fmt.Errorf("%w: invalid description of a parcel (%v)", wire.ErrProtocol, err)
		}
		done = back.Tasks[0]
		for i := range job.Tasks {
			if job.Tasks[i].Index == done.Result.Index && job.Tasks[i].Attempt == done.Result.Attempt {
				t = &job.Tasks[i]
			}
		}
		if t == nil {
			return "", nil, fmt.Errorf("%w: the result of a task that the job does not have", wire.ErrProtocol)
		}
		dir, err = executor.BareTaskDir(job.Dir, t)
		return dir.Path, done.asked(t), err
	})
	if err != nil || errors.Is(trouble, wire.ErrProtocol) {
		return nil, nil, errors.Join(err, trouble)
	}
	r := done.Result
	r.Key = job.Key()
	if trouble == nil && fresh() {
		trouble = done.settle(&job, t, dir, fresh)
	} else if trouble == nil {
		trouble = executor.ErrStale
	}
	if trouble != nil && r.Status == execution.Done {
		r.Status, r.Reason = execution.Failed, wire.Clip(trouble.Error())
	}
	return []execution.Result{r}, trouble, nil
}

// An unloading is a parcel that is being received and placed as its description specifies.
type unloading struct {
	conn         *wire.Conn
	file, folder string
	most         int // number of files, including the description; -1: no limit
	bytes        int64
}

// take receives the parcel. begin is called with the description, and returns the directory for the files and a list of
// the files, which are created under their names. trouble is an error on this side; the parcel is still read to its end
// to find the start of the next message. An error means that the connection can no longer be used.
func (u *unloading) take(begin func(text []byte) (dir string, files []item, err error)) (trouble, err error) {
	from := &wire.BulkReader{Conn: u.conn}
	archive := tar.NewReader(from)
	var root *os.Root
	files := map[string]item{}
	for first := true; ; first = false {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			if root != nil {
				trouble = errors.Join(trouble, root.Close())
			}
			return trouble, from.Finish()
		}
		if err == nil {
			err = u.check(h, first)
		}
		if err != nil {
			return trouble, err
		}
		u.bytes += h.Size
		switch i, asked := files[filepath.Base(h.Name)]; {
		case first:
			text, err := io.ReadAll(archive)
			if err != nil {
				return nil, err
			}
			if root, trouble = u.open(text, files, begin); trouble != nil {
				clear(files)
			}
		case asked && trouble == nil:
			trouble = i.land(archive, h, root)
		}
	}
}

// check refuses an entry that does not belong in a parcel, or that was not requested.
func (u *unloading) check(h *tar.Header, first bool) error {
	u.most--
	switch {
	case h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%w: %q in a parcel is not a regular file", wire.ErrProtocol, h.Name)
	case u.most == -1 || first && (h.Name != u.file || h.Size > wire.MaxDescription) ||
		!first && h.Name != u.folder+"/"+filepath.Base(h.Name):
		return fmt.Errorf("%w: a parcel contains more than was requested", wire.ErrProtocol)
	}
	return nil
}

// open handles the description: it records the files by their numbers, and opens the directory for the files.
func (u *unloading) open(
	text []byte, files map[string]item, begin func([]byte) (string, []item, error),
) (*os.Root, error) {
	dir, items, err := begin(text)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		if filepath.IsLocal(i.Name) {
			files[i.At] = i
		}
	}
	return os.OpenRoot(dir)
}

// land writes a file that is being received to its place below root.
func (i *item) land(r io.Reader, h *tar.Header, root *os.Root) error {
	if at := filepath.Dir(i.Name); at != "." {
		if err := root.MkdirAll(at, 0o777); err != nil {
			return fmt.Errorf("receiving %q: %w", i.Name, err)
		}
	}
	var err error
	if i.Tar {
		err = untar(r, root, i.Name)
	} else {
		err = write(root, i.Name, os.O_EXCL, h.FileInfo(), r)
	}
	return wrap.Errorf(err, "receiving %q", i.Name)
}
