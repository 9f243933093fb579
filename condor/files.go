package condor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// HTCondor refuses files with keys and tokens that others may read, so all that it reads is made by us, as its owner's:
// where root starts a pool for somebody else, both have to get on with the same folder.

// self is the user of this process, whatever the name.
func self() Account { return Account{UID: uint32(os.Getuid())} }

// MakeFolder makes a folder that only a enters, if it is not there.
func (a Account) MakeFolder(name string) error {
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return a.give(name)
}

// Replace writes a file of a's that only a reads, at once: a daemon reads the old text or the new. The name under which
// it is written first begins with a dot, because HTCondor takes every other file in a folder of tokens for a token.
func (a Account) Replace(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when all went well
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close(), a.give(f.Name())); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// reaches returns an error if a cannot enter path or a folder above it. Only root has to ask: any other user runs
// HTCondor as itself, and finds out at once.
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
