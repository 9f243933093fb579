// Package runas lets a service that root started continue permanently as an unprivileged user.
//
// While it is still root, the service performs the actions that require root: it gives directories to the user and
// reads files that the user may not read. After that all files and processes of the service belong to the user, so root
// must not trust any file to which the user can write.
//
// The order of calls is Find, Make for each directory, Own for files that are already open, then Become. Run is used
// for a program that root starts for the user without waiting for its end, as `corral up` starts corrald.
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
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A User is the user that a service runs as. The zero User is the user that started it.
type User struct {
	Name     string
	home     string
	uid, gid int
	groups   []int
}

// Find returns the user that a service must run as if it requests name. The result is the zero User if name is empty or
// is the user of this process. Only root can request to run as another user; otherwise the error is Forbidden, or
// Invalid for an unknown user or root itself.
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
	// Only root can become another user, and a service that would continue as root has requested the wrong name.
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

// ids returns a user's numeric ids.
func ids(u *user.User) (uid, gid int, err error) {
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, wrap.Errorf(errors.Join(err1, err2), "reading user %s", u.Username)
}

// Owner returns the name of the file's owner, or "" if the owner is the user of this process or the file does not
// exist. It does not follow links: the owner of the link itself counts.
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
		return "", corral.Errorf(corral.Failed, "%s belongs to user %d, who has no name: %w", file, uid, err)
	}
	return owner.Username, nil
}

// Name returns a user's name, or the number if there is no name.
func Name(uid int) string {
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return found.Username
	}
	return "user " + strconv.Itoa(uid)
}

// Is reports whether u is not the user of this process, and has this id.
func (u User) Is(uid int) bool { return u.Other() && u.uid == uid }

// Other reports whether u is not the user of this process.
func (u User) Other() bool { return u.uid != 0 }

// Make creates the directory for u alone, and its missing ancestors, which every user may enter. An existing directory
// must belong to u or be empty; an empty directory is given to u. An error explains why u has no access, and how to fix
// this.
func (u User) Make(dir string) error {
	if !u.Other() {
		return wrap.Errorf(os.MkdirAll(dir, 0o700), "creating directories")
	}
	if err := u.mayEnter(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("creating directories: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating directories: %w", err)
	}
	return u.take(dir)
}

// take gives an empty directory to u. It works on the open directory, and does not follow links: between two uses of
// the name, the user could replace the directory with a link to a directory of root's.
func (u User) take(dir string) error {
	fd, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return corral.Errorf(corral.Invalid, "%s is not a directory, or is a link to one: name a directory", dir)
	}
	defer fd.Close()
	already, err := u.owns(fd)
	if err != nil {
		return err
	}
	if already {
		return fd.Chmod(0o700)
	}
	return wrap.Errorf(errors.Join(fd.Chown(u.uid, u.gid), fd.Chmod(0o700)), "giving a directory to %s", u.Name)
}

// mayEnter returns an error if u may not enter a directory or its nearest existing ancestor. A shell that runs as u
// tries all directories from the top, because modes alone are not conclusive with access lists or network file systems.
func (u User) mayEnter(dir string) error {
	_, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) {
		dir = filepath.Dir(dir)
		_, err = os.Stat(dir)
	}
	if err != nil {
		return fmt.Errorf("creating directories: %w", err)
	}
	above := []string{dir}
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		above = append([]string{dir}, above...)
	}
	// The script prints the first directory that the user may not enter, or nothing.
	const firstClosed = `for dir; do test -x "$dir" || { printf %s "$dir"; exit; }; done`
	test := exec.Command("/bin/sh", append([]string{"-c", firstClosed, "sh"}, above...)...)
	test.Dir = "/"
	u.Run(test)
	closed, err := test.Output()
	switch {
	case err != nil:
		return fmt.Errorf("checking directories as %s: %w", u.Name, err)
	case len(closed) > 0:
		return corral.Errorf(corral.Invalid, "%s may not enter %s: open it (chmod a+x %s), "+
			"or name other directories with the XDG variables", u.Name, closed, closed)
	}
	return nil
}

// Run makes a command that has not been started run as u: root must not run a program that u can write to.
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

// Own gives an open file to u. It refuses a file that u may have substituted: a hard link to another file, which u
// would then also own.
func (u User) Own(file *os.File) error {
	if !u.Other() {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		return corral.Errorf(corral.Conflict, "%s is not a regular file, or has another name: remove it", file.Name())
	}
	return file.Chown(u.uid, u.gid)
}

// Become makes u the user of this process and of everything that it starts. This cannot be reverted.
func (u User) Become() error {
	if !u.Other() {
		return nil
	}
	// The order matters: the groups and the group id can be changed only while the process is still root's.
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"setgroups", func() error { return syscall.Setgroups(u.groups) }},
		{"setgid", func() error { return syscall.Setgid(u.gid) }},
		{"setuid", func() error { return syscall.Setuid(u.uid) }},
		{"going back", stays},
		// Without this, the files of this process in /proc remain root's, and other programs cannot see its user.
		{"prctl", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }},
		{"chdir", func() error { return os.Chdir("/") }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("becoming %s: %s: %w", u.Name, step.name, err)
		}
	}
	// Files that the service writes are for its user alone, regardless of root's umask.
	syscall.Umask(0o077)
	return u.setEnvironment()
}

// stays checks that this process no longer has root's rights, by trying to regain them: a saved user id would permit
// this.
func stays() error {
	if syscall.Setuid(0) == nil || syscall.Setgid(0) == nil {
		return errors.New("root's rights can be regained")
	}
	return nil
}

// setEnvironment sets u as the user, and unsets a TMPDIR that u cannot write to.
func (u User) setEnvironment() error {
	temporary := os.Getenv("TMPDIR")
	// By now the kernel checks the access of the new user.
	if temporary != "" && unix.Access(temporary, unix.W_OK|unix.X_OK) != nil {
		_ = os.Unsetenv("TMPDIR")
	}
	return errors.Join(os.Setenv("HOME", u.home), os.Setenv("USER", u.Name), os.Setenv("LOGNAME", u.Name))
}
