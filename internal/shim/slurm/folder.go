package slurm

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// Note is the file in a folder that identifies the run of the folder's commands.
const Note = ".corral-shim.json"

// numbersPerRun is the number of job numbers that each run reserves, so that no two jobs of a corrald share a number:
// programs use job numbers in the names of files.
const numbersPerRun = api.MaxOpenTasks + 1

// A Folder is a folder of links with the names of Slurm's commands, and the open run of the jobs submitted with them.
type Folder struct {
	Path    string       `json:"-"`
	Server  string       `json:"server"`  // URL of corrald
	Cluster string       `json:"cluster"` // its name, which is also the name of the only partition
	Key     string       `json:"key"`     // idempotency key of the run: a repeated request returns the same run
	Run     corral.RunID `json:"run"`     // 0: not yet known
	Dir     string       `json:"dir"`     // of the run, on corrald's host; never reused, unlike the run's number
}

// Base returns the number that must be added to a task's number to obtain the number of its job.
func (f Folder) Base() int64 { return int64(f.Run) * numbersPerRun }

// Open reads a folder's note.
func Open(path string) (Folder, error) {
	// The path is not read from the note: a folder may be moved, or its file system mounted elsewhere.
	f := Folder{Path: path}
	b, err := input.ReadFile(filepath.Join(path, Note), 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		const none = "there is no shim here: create one with `corral shim slurm %s`"
		return f, corral.ErrorAt(corral.NotFound, path, none, path)
	} else if err != nil {
		return f, corral.ErrorAt(corral.Invalid, path, "%w", err)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, corral.ErrorAt(corral.Invalid, filepath.Join(path, Note), "%w", err)
	}
	return f, nil
}

// Has reports whether a run belongs to the folder. A corrald that has lost its database reuses the numbers of runs.
func (f Folder) Has(r corral.Run) bool { return f.Dir == "" || f.Dir == r.Dir }

// Gone returns the error for a folder whose run is no longer known to corrald.
func (f Folder) Gone() error {
	return corral.ErrorAt(corral.Conflict, f.Path, "corrald does not know run %d of this shim: end it with "+
		"`corral shim close %s`, and create it again", f.Run, f.Path)
}

// Found returns the folder of a command, given the name in argv[0] by which it was called; getenv returns environment
// variables. A name without a slash was found on PATH. In a job, CORRAL_SHIM names the folder, regardless of how the
// script was called.
func Found(name string, getenv func(string) string) (Folder, error) {
	// os.Executable would return the target of the links.
	var dirs []string
	if filepath.Base(name) != name {
		dirs = append(dirs, filepath.Dir(name))
	} else if at, err := exec.LookPath(name); err == nil {
		dirs = append(dirs, filepath.Dir(at))
	}
	if dir := getenv(step.FolderVariable); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(dir, Note)); err == nil {
			if dir, err = filepath.Abs(dir); err != nil {
				return Folder{}, err
			}
			return Open(dir)
		}
	}
	return Folder{}, corral.Errorf(corral.NotFound,
		"this command is not in a folder of `corral shim slurm`: put such a folder first on PATH")
}

// Claim reserves a folder for a server and a cluster; a folder that is already reserved is returned unchanged. The
// note, which contains the key of the run, is written before the run is requested.
func Claim(path, server, cluster string) (f Folder, made bool, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return f, false, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return f, false, corral.ErrorAt(corral.Invalid, path, "creating the folder: %w", err)
	}
	if f, err = Open(path); corral.KindOf(err) != corral.NotFound {
		return f, false, err
	}
	// Without a note, a file with such a name belongs to another program.
	for _, name := range Names() {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			const has = "it already has a file %s: use a separate folder for the shim"
			return f, false, corral.ErrorAt(corral.Invalid, path, has, name)
		}
	}
	f = Folder{Path: path, Server: server, Cluster: cluster, Key: "shim-" + rand.Text()}
	// Two commands may reach this point at the same time. Only one of the links succeeds; the other command uses the
	// note of the first, and requests the same run.
	fresh, err := os.CreateTemp(path, Note+".*")
	if err != nil {
		return f, false, corral.ErrorAt(corral.Invalid, path, "%w", err)
	}
	defer os.Remove(fresh.Name())
	defer fresh.Close()
	if err := json.NewEncoder(fresh).Encode(f); err != nil {
		return f, false, err
	}
	err = os.Link(fresh.Name(), filepath.Join(path, Note)) // unlike a rename, it does not replace a file
	if errors.Is(err, fs.ErrExist) {
		f, err = Open(path)
		return f, false, err
	}
	return f, true, err
}

// Link records the run and creates missing links to a program.
func (f Folder) Link(program string) error {
	// The note is written only when it changes: repeating the command does not disturb commands that are reading it.
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	note := filepath.Join(f.Path, Note)
	if was, err := os.ReadFile(note); err != nil || !bytes.Equal(bytes.TrimSpace(was), b) {
		if err := atomicfile.Replace(note, append(b, '\n'), 0o600); err != nil {
			return fmt.Errorf("recording the run of the folder: %w", err)
		}
	}
	for _, name := range Names() {
		link := filepath.Join(f.Path, name)
		if to, err := os.Readlink(link); err == nil && to == program {
			continue
		}
		_ = os.Remove(link) // it may lead to the place where the program was installed before
		if err := os.Symlink(program, link); err != nil {
			return corral.ErrorAt(corral.Invalid, f.Path, "linking %s: %w", name, err)
		}
	}
	return nil
}

// Remove removes the files that Claim and Link created, and the folder if it is then empty.
func (f Folder) Remove() error {
	for _, name := range append(Names(), seenNote, Note) { // the note last: until then Remove can be repeated
		err := os.Remove(filepath.Join(f.Path, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return corral.ErrorAt(corral.Invalid, f.Path, "%w", err)
		}
	}
	// With a PATH that begins with the folder, the system's own commands are then found again, if they exist.
	_ = os.Remove(f.Path) // fails if the folder contains other files
	return nil
}
