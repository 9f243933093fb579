package main

// A corrald that root starts gives up root's rights before it opens any of its own files. The steps that require root
// come first: foresee has read the pilot binary, which may be readable only for root, and the directories for its user
// are created. After that, root's rights cannot be regained: no file is opened and no job is started as root.

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

// settle creates corrald's directories, and then permanently changes to the requested user, whom foresee has found. It
// returns the name of the user that this process now has. The sockets' directories are checked again, in case another
// user has created them in the meantime.
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
	if u.Other() { // the user must not use root's ssh agent
		if err := os.Unsetenv("SSH_AUTH_SOCK"); err != nil {
			return "", fmt.Errorf("unsetting root's ssh agent: %w", err)
		}
	}
	me := strconv.Itoa(os.Getuid())
	if found, err := user.LookupId(me); err == nil { // user.Current caches the previous user
		return found.Username, nil
	}
	return me, nil // a user need not have a name
}

// maxPilot limits the size of a pilot binary, to several times its usual size.
const maxPilot = 64 << 20

// readPilot reads the pilot binary for sites; without this binary, no site can be set up.
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
