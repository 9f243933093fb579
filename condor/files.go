package condor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// What HTCondor reads is made by us, as its owner's: with its keys and tokens HTCondor refuses files that others may
// read, and where root starts a pool for somebody else, both have to get on with the same folder.

// makeFolder makes a folder that only its owner enters, if it is not there.
func makeFolder(name string) error {
	if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (a Account) makeFolder(name string) error {
	return errors.Join(makeFolder(name), a.give(name))
}

// replace writes a file that only its owner reads, at once: a daemon reads the old text or the new. The
// name under which it is written first begins with a dot, as HTCondor takes all other files of a folder of
// tokens for tokens.
func replace(name, text string) error {
	return replaceFor(name, text, func(string) error { return nil })
}

// replace is replace of a file that is a's.
func (a Account) replace(name, text string) error { return replaceFor(name, text, a.give) }

func replaceFor(name, text string, give func(name string) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when all went well
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close(), give(f.Name())); err != nil {
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
