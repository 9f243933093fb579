package parcel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// FilesOf is how many files one task of a job brings back at most.
func FilesOf(job execution.Job) int {
	const described, printed, recorded = 1, 2, 2
	most := 0
	for i := range job.Tasks {
		most = max(most, len(job.Tasks[i].Outputs))
	}
	return described + printed + recorded + most
}

// SpoolDir is the folder in a run's directory, while there are any, of the parcels on their way. It is there because
// only the same file system lets links to the run's files be made.
const SpoolDir = ".parcels"

// Spool makes a folder for a parcel, in one that keeps its place when Pack makes the folder again; Unspool removes
// both.
func Spool(job execution.Job) (dir string, err error) {
	in := filepath.Join(job.Dir, SpoolDir)
	for range 10 { // another parcel's end may remove in
		if err = os.Mkdir(in, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			dir, err = os.MkdirTemp(in, "")
		}
		switch {
		case err == nil:
			dir = filepath.Join(dir, "parcel")
			return dir, os.Mkdir(dir, 0o700)
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return "", err
}

// Unspool removes a folder that Spool made.
func Unspool(dir string) {
	place := filepath.Dir(dir)
	_ = os.RemoveAll(place)            // what stays goes with Sweep
	_ = os.Remove(filepath.Dir(place)) // unless others are in it
}

// Sweep removes the parcels from a run's directory that a dispatcher which was killed has left there. The run must have
// no dispatcher.
func Sweep(run string) error { return os.RemoveAll(filepath.Join(run, SpoolDir)) }

// Readable returns an error that names the first file of a folder that cannot be read. It is asked before a parcel is
// promised: in the middle of sending it would be too late to refuse.
func Readable(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			if to, e := os.Readlink(filepath.Join(dir, e.Name())); e == nil {
				return fmt.Errorf("reading input %s: %w", to, errors.Unwrap(err))
			}
			return err
		}
		f.Close()
	}
	return nil
}

// Passing reports whether the trouble is this machine's and may be over soon: something has run short. Then the files
// wait where they are.
func Passing(err error) bool {
	short := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
	return slices.ContainsFunc(short, func(e error) bool { return errors.Is(err, e) })
}
