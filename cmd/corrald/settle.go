package main

// Root's corrald gives up root before it opens anything of its own. What needs root comes first: foresee has read the
// pilot binary, which may be where only root can read, and the directories of its user are made. After that there is no
// way back: no file is opened and no job is started as root.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// settle makes corrald's directories, and then becomes the user that was asked for, for good: foresee has found it. It
// returns the name of the user whose process this is now. The sockets' directories are checked again, in case another
// user made them in the meantime.
func settle(s settings) (name string, err error) {
	u := s.runAs.User
	for _, dir := range s.layout.Dirs() {
		if err := u.Make(dir); err != nil {
			return "", err
		}
	}
	if err := personal.CheckSockets(s.layout, u); err != nil {
		return "", err
	}
	if err := u.Become(); err != nil {
		return "", err
	}
	if u.Other() { // root's ssh agent is not the user's
		if err := os.Unsetenv("SSH_AUTH_SOCK"); err != nil {
			return "", fmt.Errorf("leaving root's ssh agent: %w", err)
		}
	}
	me := strconv.Itoa(os.Getuid())
	if found, err := user.LookupId(me); err == nil { // user.Current remembers who we were
		return found.Username, nil
	}
	return me, nil // a user need not have a name
}

// maxPilot is how long a pilot binary may be: several times what it has.
const maxPilot = 64 << 20

// readPilot reads the binary that is handed to sites; without one, no site can be set up.
func readPilot(file string) ([]byte, error) {
	binary, err := input.ReadFile(file, maxPilot)
	if errors.Is(err, fs.ErrNotExist) {
		const how = "there is no pilot binary at %s: build it with `make build`, or name it with --pilot"
		return nil, corral.Errorf(corral.Invalid, how, file)
	}
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "--pilot", "%w", err)
	}
	return binary, nil
}
