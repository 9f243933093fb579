package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A User calls corral from its own directory, which contains all of the user's folders.
type User struct {
	Dir string
	Env []string // added to this process's environment
	bin string
}

// NewUser creates the folders of a user whose programs are in bin. Other users who run jobs may pass through them.
func NewUser(bin, dir string) (*User, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	u := &User{Dir: dir, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, bin: bin}
	// The names are short, because a socket's path has at most a hundred bytes.
	for _, folder := range [][2]string{
		{"HOME", "h"}, {"XDG_STATE_HOME", "s"}, {"XDG_CACHE_HOME", "c"}, {"XDG_DATA_HOME", "d"},
		{"XDG_CONFIG_HOME", "f"}, {"XDG_RUNTIME_DIR", "r"},
	} {
		path := filepath.Join(dir, folder[1])
		if err := os.Mkdir(path, 0o711); err != nil {
			return nil, fmt.Errorf("creating a user's folders: %w", err)
		}
		u.Env = append(u.Env, folder[0]+"="+path)
	}
	return u, os.Chmod(dir, 0o711)
}

// Alone calls do with a user in a new directory below dir, ends the user's corrald, and leaves nothing behind. The
// directory's name begins with letter: names must be short.
func Alone(bin, dir, letter string, do func(*User) error) (err error) {
	if dir, err = os.MkdirTemp(dir, letter); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	u, err := NewUser(bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.End()) }()
	return do(u)
}

// Corral runs the client, and returns its output. An error includes the client's error output.
func (u *User) Corral(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(u.bin, "corral"), args...)
	cmd.Dir, cmd.Env = u.Dir, append(os.Environ(), u.Env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("corral %s: %w: %.500s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// End ends the user's corrald, and removes everything that it has created, even after an interruption.
func (u *User) End() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	_, err := u.Corral(ctx, "down", "--purge", "--force")
	return err
}
