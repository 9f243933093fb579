package condor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// An Account is a user of this machine as whom programs run.
type Account struct {
	Name     string
	Home     string
	UID, GID uint32
}

// ErrRoot means that HTCondor was to run as root. HTCondor refuses root's jobs, so the setting run_as must name another
// user.
var ErrRoot = errors.New("HTCondor refuses root's jobs: name an unprivileged user (run_as)")

// AccountFor returns the user that HTCondor runs as: runAs if this process is root's, otherwise the user of this
// process, whom runAs may also name. Root without runAs, or with runAs root, gets [ErrRoot].
func AccountFor(runAs string) (Account, error) {
	me := os.Getuid()
	if runAs == "" {
		if me == 0 {
			return Account{}, ErrRoot
		}
		u, err := user.LookupId(strconv.Itoa(me)) // user.Current returns the user at the program's start
		if err != nil {
			return Account{}, fmt.Errorf("HTCondor needs the name of user %d: %w", me, err)
		}
		return account(u)
	}
	u, err := user.Lookup(runAs)
	if err != nil {
		return Account{}, fmt.Errorf("looking up run_as: %w", err)
	}
	a, err := account(u)
	switch {
	case err != nil:
		return Account{}, err
	case a.UID == 0:
		return Account{}, ErrRoot
	case me != 0 && int(a.UID) != me:
		return Account{}, fmt.Errorf("run_as %s: only root can run HTCondor as another user", runAs)
	}
	return a, nil
}

// account converts a user.
func account(u *user.User) (Account, error) {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return Account{}, fmt.Errorf("reading user %s: %w", u.Username, err)
	}
	return Account{Name: u.Username, Home: u.HomeDir, UID: uint32(uid), GID: uint32(gid)}, nil
}

// foreign reports whether a is a user other than that of this process.
func (a Account) foreign() bool { return int(a.UID) != os.Getuid() }

// attributes makes a command run as a, in a session of its own, so that signals to our terminal do not reach it.
func (a Account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.foreign() {
		attr.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID}
	}
	return attr
}

// give changes the owner of name to a.
func (a Account) give(name string) error {
	if !a.foreign() {
		return nil
	}
	return os.Lchown(name, int(a.UID), int(a.GID))
}
