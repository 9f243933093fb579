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

// Note is the file of a folder that says whose jobs its commands are about.
const Note = ".corral-shim.json"

// numbersPerRun is how many numbers of jobs each run has for itself, so that no two jobs of a corrald share a number:
// programs name files by it.
const numbersPerRun = api.MaxOpenTasks + 1

// A Folder is a folder of links by Slurm's names, and the open run of the jobs that are submitted by them.
type Folder struct {
	Path    string       `json:"-"`
	Server  string       `json:"server"`  // URL of corrald
	Cluster string       `json:"cluster"` // its name, which is that of the one partition
	Key     string       `json:"key"`     // under which the run is asked for: asked again, it is the same run
	Run     corral.RunID `json:"run"`     // 0: not known yet
	Dir     string       `json:"dir"`     // of the run, on corrald's host; unlike the number it never comes again
}

// Base and a task's number make the number of its job.
func (f Folder) Base() int64 { return int64(f.Run) * numbersPerRun }

// Open reads a folder's note.
func Open(path string) (Folder, error) {
	// Where it is it says itself: folders are moved, and file systems mounted elsewhere.
	f := Folder{Path: path}
	b, err := input.ReadFile(filepath.Join(path, Note), 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		const none = "there is no shim here: make one with `corral shim slurm %s`"
		return f, corral.ErrorAt(corral.NotFound, path, none, path)
	} else if err != nil {
		return f, corral.ErrorAt(corral.Invalid, path, "%w", err)
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, corral.ErrorAt(corral.Invalid, filepath.Join(path, Note), "%w", err)
	}
	return f, nil
}

// Has reports whether a run is the folder's. A corrald that knows nothing of earlier runs gives their numbers again.
func (f Folder) Has(r corral.Run) bool { return f.Dir == "" || f.Dir == r.Dir }

// Gone is the error about a folder whose run corrald does not know any longer.
func (f Folder) Gone() error {
	return corral.ErrorAt(corral.Conflict, f.Path, "corrald does not know run %d of this shim: end it with "+
		"`corral shim close %s`, and make it again", f.Run, f.Path)
}

// Found returns the folder of which a command is that was called by a name, as argv[0] has it; getenv finds variables.
// A name without a slash was found on PATH. In a job CORRAL_SHIM names the folder, however its script was called.
func Found(name string, getenv func(string) string) (Folder, error) {
	// Not os.Executable: that is where the links lead to.
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
		"this command is in no folder of `corral shim slurm`: put such a folder first on PATH")
}

// Claim notes that a folder is to be one of a server and a cluster, unless it is one already, which is returned as it
// stands. The note is there, with the key of the run, before the run is asked for.
func Claim(path, server, cluster string) (f Folder, made bool, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return f, false, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return f, false, corral.ErrorAt(corral.Invalid, path, "making the folder: %w", err)
	}
	if f, err = Open(path); corral.KindOf(err) != corral.NotFound {
		return f, false, err
	}
	// Without a note, a file of such a name belongs to somebody else.
	for _, name := range Names() {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			const has = "it already has a file %s: give the shim a folder of its own"
			return f, false, corral.ErrorAt(corral.Invalid, path, has, name)
		}
	}
	f = Folder{Path: path, Server: server, Cluster: cluster, Key: "shim-" + rand.Text()}
	// Two commands at the same time may get here. One of the links is the first; the other command takes over what the
	// first has noted, and asks for the same run.
	fresh, err := os.CreateTemp(path, Note+".*")
	if err != nil {
		return f, false, corral.ErrorAt(corral.Invalid, path, "%w", err)
	}
	defer os.Remove(fresh.Name())
	defer fresh.Close()
	if err := json.NewEncoder(fresh).Encode(f); err != nil {
		return f, false, err
	}
	err = os.Link(fresh.Name(), filepath.Join(path, Note)) // unlike a rename it replaces nothing
	if errors.Is(err, fs.ErrExist) {
		f, err = Open(path)
		return f, false, err
	}
	return f, true, err
}

// Link notes the run and makes the links to a program, as many as are missing.
func (f Folder) Link(program string) error {
	// Written only when it changes: repeating the command does not touch what commands are just reading.
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	note := filepath.Join(f.Path, Note)
	if was, err := os.ReadFile(note); err != nil || !bytes.Equal(bytes.TrimSpace(was), b) {
		if err := atomicfile.Replace(note, append(b, '\n'), 0o600); err != nil {
			return fmt.Errorf("noting the run of the folder: %w", err)
		}
	}
	for _, name := range Names() {
		link := filepath.Join(f.Path, name)
		if to, err := os.Readlink(link); err == nil && to == program {
			continue
		}
		_ = os.Remove(link) // one that leads to a program that was installed elsewhere before
		if err := os.Symlink(program, link); err != nil {
			return corral.ErrorAt(corral.Invalid, f.Path, "linking %s: %w", name, err)
		}
	}
	return nil
}

// Remove removes what Claim and Link made, and the folder if nothing else is in it.
func (f Folder) Remove() error {
	for _, name := range append(Names(), seenNote, Note) { // the note last: until then Remove can be repeated
		err := os.Remove(filepath.Join(f.Path, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return corral.ErrorAt(corral.Invalid, f.Path, "%w", err)
		}
	}
	// A PATH that begins with the folder leads to the system's own commands again, if there are any.
	_ = os.Remove(f.Path) // which fails if it holds something else
	return nil
}
