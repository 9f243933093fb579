package transfer

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

// FilesOf returns the maximum number of files that are sent back for one task of a job.
func FilesOf(job execution.Job) int {
	const described, printed, recorded = 1, 2, 2
	most := 0
	for i := range job.Tasks {
		most = max(most, len(job.Tasks[i].Outputs))
	}
	return described + printed + recorded + most
}

// SpoolDir is the folder for parcels in transit; it exists only while there are such parcels. It is in the run's
// directory because hard links to the run's files require the same file system.
const SpoolDir = ".parcels"

// Spool creates a folder for a parcel inside another folder. The outer folder remains when Pack recreates the inner
// one; Unspool removes both.
func Spool(job execution.Job) (dir string, err error) {
	in := filepath.Join(job.Dir, SpoolDir)
	for range 10 { // the end of another parcel may remove in
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

// Unspool removes a folder that Spool created.
func Unspool(dir string) {
	place := filepath.Dir(dir)
	_ = os.RemoveAll(place)            // Sweep removes what remains
	_ = os.Remove(filepath.Dir(place)) // unless it contains others
}

// Sweep removes parcels that a killed dispatcher has left in a run's directory. The run must not have a dispatcher.
func Sweep(run string) error { return os.RemoveAll(filepath.Join(run, SpoolDir)) }

// Readable returns an error that names the first file of a folder that cannot be read. It is called before a parcel is
// announced, because a refusal is not possible once sending has begun.
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

// Passing reports whether the error is caused by a temporary shortage on this machine. In this case the files remain
// where they are.
func Passing(err error) bool {
	short := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM}
	return slices.ContainsFunc(short, func(e error) bool { return errors.Is(err, e) })
}
