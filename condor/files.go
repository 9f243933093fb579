package condor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// HTCondor rejects files with keys and tokens that other users can read. Therefore this package creates all files that
// HTCondor reads, owned by its user: if root starts a pool for another user, both must be able to use the folder.

// self returns the user of this process, without its name.
func self() Account { return Account{UID: uint32(os.Getuid())} }

// MakeFolder creates a folder that only a can enter, if it does not exist.
func (a Account) MakeFolder(name string) error {
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return a.give(name)
}

// Replace atomically writes a file that only a can read: a daemon reads the old text or the new. The temporary name
// begins with a dot, because HTCondor takes every other file in a folder of tokens for a token.
func (a Account) Replace(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after a successful rename
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close(), a.give(f.Name())); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// reaches returns an error if a cannot enter path or a folder above it. Only root needs this check: other users run
// HTCondor as themselves, and get an error at once.
func (a Account) reaches(path string) error {
	if !a.foreign() {
		return nil
	}
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		st, bit := info.Sys().(*syscall.Stat_t), fs.FileMode(0o001)
		switch {
		case st.Uid == a.UID:
			bit = 0o100
		case st.Gid == a.GID:
			bit = 0o010
		}
		if info.Mode()&bit == 0 {
			return fmt.Errorf("%s is closed to %s, which HTCondor runs as (run_as)", path, a.Name)
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}
