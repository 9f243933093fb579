// Package runas lets a service that root started go on as an unprivileged user, for good.
//
// What the service needs as root it does before: it gives the user directories and reads what the user
// may not. All that belongs to the service is the user's from then on, so root trusts nothing that the user can write.
//
// The order is Find, Make for each directory, Own for files that are open already, then Become. Run is for a program
// that root starts for the user and does not wait for, as `corral up` starts corrald.
package runas

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
)

// A User is the user as whom a service runs. The zero User is the one who started it.
type User struct {
	Name     string
	home     string
	uid, gid int
	groups   []int
}

// Find returns the user as whom a service has to run that asks for name. It is the zero User if name is empty, or the
// user of this process. To run as another user only root can ask; the error is Forbidden otherwise, and Invalid for
// an unknown user or root itself.
func Find(name string) (User, error) {
	if name == "" {
		return User{}, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		return User{}, corral.Errorf(corral.Invalid, "%w", err)
	}
	u := User{Name: found.Username, home: found.HomeDir}
	if u.uid, u.gid, err = ids(found); err != nil {
		return User{}, err
	}
	me := os.Geteuid()
	// Only root can become another user, and a service that stays root's has asked for the wrong name.
	switch {
	case me != 0 && u.uid != me:
		return User{}, corral.Errorf(corral.Forbidden, "only root can run it as %s", name)
	case me != 0:
		return User{}, nil
	case u.uid == 0:
		return User{}, corral.Errorf(corral.Invalid, "%s is root: name an unprivileged user", name)
	}
	groups, err := found.GroupIds()
	if err != nil {
		return User{}, fmt.Errorf("finding the groups of %s: %w", name, err)
	}
	for _, g := range groups {
		id, err := strconv.Atoi(g)
		if err != nil {
			return User{}, fmt.Errorf("finding the groups of %s: %w", name, err)
		}
		u.groups = append(u.groups, id)
	}
	return u, nil
}

// ids returns a user's numbers.
func ids(u *user.User) (uid, gid int, err error) {
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("reading user %s: %w", u.Username, err)
	}
	return uid, gid, nil
}

// Owner returns the name of the user whose file it is, "" if that is the user of this process or there is
// no such file. It follows no link: what counts is who made the name.
func Owner(file string) (string, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	if uid == os.Geteuid() {
		return "", nil
	}
	owner, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return "", corral.Errorf(corral.Failed, "%s is user %d's, who has no name: %w", file, uid, err)
	}
	return owner.Username, nil
}

// Name returns what a user is called, if only by number.
func Name(uid int) string {
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return found.Username
	}
	return "user " + strconv.Itoa(uid)
}

// Is reports whether u is another user than that of this process, with this number.
func (u User) Is(uid int) bool { return u.Other() && u.uid == uid }

// Other reports whether u is another user than that of this process.
func (u User) Other() bool { return u.uid != 0 }

// Make makes the directory for u alone, with those above it, which everybody may enter. One that is there already is
// u's, or empty: then it becomes u's. An error says in words what keeps u out, and what to do about it.
func (u User) Make(dir string) error {
	if !u.Other() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making directories: %w", err)
		}
		return nil
	}
	if err := u.mayEnter(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("making directories: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making directories: %w", err)
	}
	return u.take(dir)
}

// take makes an empty directory u's. It works on the open directory, and follows no link: between two looks at a
// name, the user could put a link to a directory of root's there.
func (u User) take(dir string) error {
	fd, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return corral.Errorf(corral.Invalid, "%s is no directory, or a link to one: name a directory", dir)
	}
	defer fd.Close()
	already, err := u.owns(fd)
	if err != nil {
		return err
	}
	if already {
		return fd.Chmod(0o700)
	}
	if err := errors.Join(fd.Chown(u.uid, u.gid), fd.Chmod(0o700)); err != nil {
		return fmt.Errorf("giving a directory to %s: %w", u.Name, err)
	}
	return nil
}

// mayEnter says what keeps u out of a directory, or of the nearest above it that exists. A shell that runs as u tries
// all directories from the top: modes alone do not say it where there are access lists or network file systems.
func (u User) mayEnter(dir string) error {
	_, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir)
		_, err = os.Stat(dir)
	}
	if err != nil {
		return fmt.Errorf("making directories: %w", err)
	}
	above := []string{dir}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		above = append([]string{dir}, above...)
	}
	// It prints the first directory that the user may not enter, and nothing if there is none.
	const firstClosed = `for dir; do test -x "$dir" || { printf %s "$dir"; exit; }; done`
	test := exec.Command("/bin/sh", append([]string{"-c", firstClosed, "sh"}, above...)...)
	test.Dir = "/"
	u.Run(test)
	closed, err := test.Output()
	switch {
	case err != nil:
		return fmt.Errorf("looking at directories as %s: %w", u.Name, err)
	case len(closed) > 0:
		return corral.Errorf(corral.Invalid, "%s may not enter %s: open it (chmod a+x %s), "+
			"or name directories elsewhere by the XDG variables", u.Name, closed, closed)
	}
	return nil
}

// Run makes a command that is not started yet run as u: a program that u can write to is not root's to run.
func (u User) Run(cmd *exec.Cmd) {
	if !u.Other() {
		return
	}
	c := &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.gid)}
	for _, g := range u.groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c}
}

// Own makes an open file u's. It refuses one that u may have put in its place: a second name of another file, which
// would become u's along with it.
func (u User) Own(file *os.File) error {
	if !u.Other() {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		return corral.Errorf(corral.Conflict, "%s is no file of its own: remove it", file.Name())
	}
	return file.Chown(u.uid, u.gid)
}

// Become makes this process u's, and everything that it starts. There is no way back.
func (u User) Become() error {
	if !u.Other() {
		return nil
	}
	// The order counts: groups and the group's number can only be changed while the process is still root's.
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"setgroups", func() error { return syscall.Setgroups(u.groups) }},
		{"setgid", func() error { return syscall.Setgid(u.gid) }},
		{"setuid", func() error { return syscall.Setuid(u.uid) }},
		{"going back", stays},
		// Without this the files of this process in /proc stay root's, and other programs cannot see whose it is.
		{"prctl", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }},
		{"chdir", func() error { return os.Chdir("/") }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("becoming %s: %s: %w", u.Name, step.name, err)
		}
	}
	// What the service writes is for its user alone, whatever root's umask was.
	syscall.Umask(0o077)
	return u.setEnvironment()
}

// stays checks that root's rights are gone, by trying to get them back: a saved user id would give them.
func stays() error {
	if syscall.Setuid(0) == nil || syscall.Setgid(0) == nil {
		return errors.New("root's rights can be had again")
	}
	return nil
}

// setEnvironment names u as the user, and forgets a folder for temporary files that u cannot write to.
func (u User) setEnvironment() error {
	temporary := os.Getenv("TMPDIR")
	// The kernel is asked, as the user that the process has become.
	if temporary != "" && unix.Access(temporary, unix.W_OK|unix.X_OK) != nil {
		_ = os.Unsetenv("TMPDIR")
	}
	return errors.Join(os.Setenv("HOME", u.home), os.Setenv("USER", u.Name), os.Setenv("LOGNAME", u.Name))
}
