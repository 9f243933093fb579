package personal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/node/runas"
)

// Whereabouts records the process and the sockets of a running corrald, beside its database. It lets a program find
// corrald even if the program's XDG_RUNTIME_DIR differs from corrald's or is not set, as in cron or with `sudo -u`.
type Whereabouts struct {
	PID    int    `json:"pid"`
	Socket string `json:"socket"`
	Worker string `json:"worker_socket"`
}

// Write writes the file atomically. The caller must hold the database's lock.
func (w Whereabouts) Write(l xdg.Layout) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err // unreachable: all fields can be encoded as JSON
	}
	fresh := l.Whereabouts() + ".new"
	err = errors.Join(os.WriteFile(fresh, append(b, '\n'), 0o600), os.Rename(fresh, l.Whereabouts()))
	return wrap.Errorf(err, "recording where corrald listens")
}

// A stateDir is the state directory of a running corrald, which contains the database's lock and the whereabouts.
type stateDir xdg.Layout

// whereabouts reads the last corrald's whereabouts; ok is false if there are none.
func (s stateDir) whereabouts() (w Whereabouts, ok bool) {
	b, err := readSmall(xdg.Layout(s).Whereabouts())
	if err != nil || json.Unmarshal(b, &w) != nil {
		return w, false
	}
	return w, w.PID > 1 && filepath.IsAbs(w.Socket) && filepath.IsAbs(w.Worker)
}

// readSmall reads a file of the state, which may belong to another user: it does not follow links or wait for
// writers, and limits the size.
func readSmall(name string) ([]byte, error) {
	f, err := openState(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 8<<10))
}

// openState opens a file of the state for reading. It neither follows a link nor blocks on a pipe, because root may
// open the state of another user.
func openState(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// is reports whether exactly the recorded process listens on the recorded socket, as the state's owner. By itself, a
// process id may now belong to any process, and so may a socket.
func (s stateDir) is(w Whereabouts) bool {
	var state unix.Stat_t
	if unix.Stat(s.State, &state) != nil {
		return false
	}
	conn, err := net.Dial("unix", w.Socket)
	if err != nil {
		return false
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer,
			failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return errors.Join(err, failed) == nil && int(peer.Pid) == w.PID && peer.Uid == state.Uid
}

// Located returns c with the sockets of the corrald that holds the state's lock, wherever it listens, or with the
// sockets from the environment if no corrald is running. It returns a Forbidden error if another user could have put
// the sockets there.
func (c Corrald) Located() (Corrald, error) {
	c, bad, err := c.locate()
	if err == nil && bad.found != "" {
		err = corral.Errorf(corral.Forbidden, "%s: %s", bad.found, bad.advice)
	}
	return c, err
}

// locate is like Located, but returns a danger at the sockets instead of turning it into an error.
func (c Corrald) locate() (Corrald, danger, error) {
	if w, ok := stateDir(c.Layout).whereabouts(); ok && w.Socket != c.Layout.Socket && stateDir(c.Layout).is(w) {
		c.Layout.Socket, c.Layout.Worker = w.Socket, w.Worker
	}
	whose := c
	if owner := stateDir(c.Layout).owner(); owner != "" && os.Getuid() == 0 { // even if --run-as names another user
		whose.RunAs = owner
	}
	_, u, err := whose.user()
	if err != nil {
		return c, danger{}, err
	}
	return c, look(c.Layout, u, "name another directory by the XDG variables"), nil
}

// CheckSockets refuses socket directories and sockets that are not exclusively the user's. The error names corrald's
// option. A path that does not exist yet is accepted.
func CheckSockets(l xdg.Layout, u runas.User) error {
	bad := look(l, u, "name another directory (XDG_RUNTIME_DIR, or --socket and --worker-socket)")
	if bad.found == "" {
		return nil
	}
	return corral.ErrorAt(corral.Forbidden, bad.option, "%s: %s", bad.found, bad.advice)
}

// A danger describes the problem with a socket; the zero value means that none was found.
type danger struct {
	option        string // corrald's option that names the socket
	found, advice string
}

// look checks both sockets for dangers; another is the advice for choosing another place.
func look(l xdg.Layout, u runas.User, another string) danger {
	for _, s := range []struct{ option, socket string }{{"--socket", l.Socket}, {"--worker-socket", l.Worker}} {
		dir := filepath.Dir(s.socket)
		if dir == filepath.Clean(l.State) { // a user may keep the state on another disk
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dir = real
			}
		}
		for _, path := range []string{dir, s.socket} {
			if found, advice := unsafe(path, u, another); found != "" {
				return danger{s.option, found, advice}
			}
		}
	}
	return danger{}
}

// unsafe returns the reason why a program that uses a socket, or a directory of sockets, could be connected to another
// user's process, and advice on how to prevent that. It returns empty strings if that is impossible or the path does
// not exist.
//
// Any user who can write to the directory can put a socket there, and the owner of a link decides where it points. So
// the path must not be a link, it must belong to the user or to us, and other users must not be able to write there.
// The sticky bit does not help: in /tmp any user may create the socket first.
func unsafe(path string, u runas.User, another string) (found, advice string) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	owner, open := int(st.Uid), st.Mode&0o022 != 0
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", ""
	case err != nil:
		return fmt.Sprintf("%s cannot be examined (%v)", path, err), another
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return path + " is a symbolic link, which may lead anywhere", "remove it, or " + another
	case owner != os.Geteuid() && !u.Is(owner):
		found = fmt.Sprintf("%s belongs to %s; only corrald's own user may own it", path, runas.Name(owner))
		return found, "remove it, or " + another
	case open && st.Mode&unix.S_ISVTX != 0: // open to everyone, like /tmp
		const before = "%s has mode %04o, so that any user could put a socket there before corrald"
		return fmt.Sprintf(before, path, st.Mode&0o7777), another
	case open:
		const replaced = "%s has mode %04o, so that other users could replace corrald's socket with their own"
		return fmt.Sprintf(replaced, path, st.Mode&0o7777), fmt.Sprintf("chmod 700 %s, or %s", path, another)
	}
	return "", ""
}

// Elsewhere returns the reason why corrald does not listen where a layout of the same state specifies, or "" if it
// does. The reason is nearly always that XDG_RUNTIME_DIR has changed since corrald was started.
func (c Corrald) Elsewhere(than xdg.Layout) string {
	there, known := startedWith(c.PID(), runtimeVariable)
	here := os.Getenv(runtimeVariable)
	switch {
	case c.Layout.Socket == than.Socket:
		return ""
	case !known || there == here:
		return "the environment says " + than.Socket
	case there == "":
		return fmt.Sprintf("%s was not set when it was started, and is %s here", runtimeVariable, here)
	case here == "":
		return fmt.Sprintf("%s was %s when it was started, and is not set here", runtimeVariable, there)
	}
	return fmt.Sprintf("%s was %s when it was started, and is %s here", runtimeVariable, there, here)
}

// runtimeVariable names the variable that determines where sockets are unless options override it. Of the variables
// that determine paths, only this one is often missing: cron, su and sudo do not set it.
const runtimeVariable = "XDG_RUNTIME_DIR"

// Lost returns an Unavailable error if corrald is running but cannot be reached.
func (c Corrald) Lost() error {
	if w, lost := stateDir(c.Layout).lost(); lost {
		return corral.Errorf(corral.Unavailable, "corrald (process %d) is running, but %s: %s", w.PID, w.gone(),
			w.begin())
	}
	return nil
}

// lost reports whether corrald is running but its socket is gone, and where the socket was.
func (s stateDir) lost() (w Whereabouts, lost bool) {
	w, ok := s.whereabouts()
	if !ok || s.holder() != w.PID {
		return w, false
	}
	_, err := os.Lstat(w.Socket)
	return w, err != nil
}

// gone describes what happened to a lost corrald's socket.
func (w Whereabouts) gone() string { return "its socket " + w.Socket + " is gone, as after a logout" }

// begin returns the advice for a lost corrald.
func (w Whereabouts) begin() string {
	return fmt.Sprintf("`kill %d`, then `corral up`, which continues its work", w.PID)
}

// holder returns the id of the process that holds the database's lock, or 0 if there is none: the kernel releases the
// lock with its process, and the file contains the id. Checking means trying to take the lock, so this is done only
// while the process named in the file exists, in shared mode and without waiting: a starting corrald must not find
// the lock taken by a check.
func (s stateDir) holder() int {
	f, err := openState(xdg.Layout(s).Lock())
	if err != nil {
		return 0
	}
	defer f.Close() // also releases the lock if it was taken after all
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b))) // 0 if it was not written yet
	if pid <= 1 || !running(pid) {                       // the lock is left to a process that may be about to take it
		return 0
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return 0
	}
	return pid
}
