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
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/node/runas"
)

// Whereabouts are what a running corrald leaves beside its database: which process it is, and where it listens. A
// program with another XDG_RUNTIME_DIR than corrald was started with, or with none, as in cron or `sudo -u`, finds
// corrald by them.
type Whereabouts struct {
	PID    int    `json:"pid"`
	Socket string `json:"socket"`
	Worker string `json:"worker_socket"`
}

// Write leaves them, whole at any time. Only who has the database's lock may.
func (w Whereabouts) Write(l xdg.Layout) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err // unreachable: all of it can be JSON
	}
	fresh := l.Whereabouts() + ".new"
	if err := errors.Join(os.WriteFile(fresh, append(b, '\n'), 0o600), os.Rename(fresh, l.Whereabouts())); err != nil {
		return fmt.Errorf("noting where corrald listens: %w", err)
	}
	return nil
}

// A stateDir is what corrald leaves in its state directory while it runs: a lock on the database, and where it listens.
type stateDir xdg.Layout

// whereabouts reads what the last corrald left; ok is false if it left nothing, or ended.
func (s stateDir) whereabouts() (w Whereabouts, ok bool) {
	b, err := readSmall(xdg.Layout(s).Whereabouts())
	if err != nil || json.Unmarshal(b, &w) != nil {
		return w, false
	}
	return w, w.PID > 1 && filepath.IsAbs(w.Socket) && filepath.IsAbs(w.Worker)
}

// readSmall reads a file of the state, which may be another user's: it follows no link, waits for no writer, and
// reads no more than such a file can have.
func readSmall(name string) ([]byte, error) {
	f, err := openState(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 8<<10))
}

// openState opens a file of the state for reading. It neither follows a link nor waits for what may be a pipe: the
// state may be another user's, and root looks at it.
func openState(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// is reports whether the very process listens there, as the user whose state it is. A process id alone may be
// anybody's by now, and so may a socket.
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

// Located returns c with the sockets of the corrald that has its state, wherever that one listens; with those that the
// environment says if none runs. It is an error, Forbidden, if somebody else could have put them there.
func (c Corrald) Located() (Corrald, error) {
	c, bad, err := c.locate()
	if err == nil && bad.found != "" {
		err = corral.Errorf(corral.Forbidden, "%s: %s", bad.found, bad.advice)
	}
	return c, err
}

// locate is Located, and leaves it to its caller to say what is bad about the sockets.
func (c Corrald) locate() (Corrald, danger, error) {
	if w, ok := stateDir(c.Layout).whereabouts(); ok && w.Socket != c.Layout.Socket && stateDir(c.Layout).is(w) {
		c.Layout.Socket, c.Layout.Worker = w.Socket, w.Worker
	}
	whose := c
	if owner := stateDir(c.Layout).owner(); owner != "" && os.Getuid() == 0 { // whoever else --run-as names
		whose.RunAs = owner
	}
	_, u, err := whose.user()
	if err != nil {
		return c, danger{}, err
	}
	return c, look(c.Layout, u, "name another directory by the XDG variables"), nil
}

// CheckSockets refuses directories of sockets, and sockets, that are not the user's alone, at corrald's option for
// them. What is not there yet is.
func CheckSockets(l xdg.Layout, u runas.User) error {
	bad := look(l, u, "name another directory (XDG_RUNTIME_DIR, or --socket and --worker-socket)")
	if bad.found == "" {
		return nil
	}
	return corral.ErrorAt(corral.Forbidden, bad.option, "%s: %s", bad.found, bad.advice)
}

// A danger is what is bad about a socket, none if nothing was found.
type danger struct {
	option        string // of corrald, which names the socket
	found, advice string
}

// look looks for a danger at both sockets; another says how to have them elsewhere.
func look(l xdg.Layout, u runas.User, another string) danger {
	for _, s := range []struct{ option, socket string }{{"--socket", l.Socket}, {"--worker-socket", l.Worker}} {
		dir := filepath.Dir(s.socket)
		if dir == filepath.Clean(l.State) { // a user may keep all of it on another disk
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

// unsafe says why a program that uses a directory of sockets, or a socket, may come to speak with somebody else than
// the user's corrald, and what to do about it; nothing if that cannot be, or if the path is not there.
//
// Whoever may write into the directory may put a socket of theirs there, and whoever owns a link decides where it
// leads. So the path must be no link, it must belong to the user or to us, and nobody else may write there. The sticky
// bit does not help: in /tmp anybody may be the first to make the socket.
func unsafe(path string, u runas.User, another string) (found, advice string) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	owner, open := int(st.Uid), st.Mode&0o022 != 0
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", ""
	case err != nil:
		return fmt.Sprintf("%s cannot be looked at (%v)", path, err), another
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return path + " is a symbolic link, which may lead anywhere", "remove it, or " + another
	case owner != os.Geteuid() && !u.Is(owner):
		found = fmt.Sprintf("%s belongs to %s; only corrald's own user may own it", path, runas.Name(owner))
		return found, "remove it, or " + another
	case open && st.Mode&unix.S_ISVTX != 0: // everybody's, as /tmp is
		const before = "%s has mode %04o, so that anybody could put a socket there before corrald"
		return fmt.Sprintf(before, path, st.Mode&0o7777), another
	case open:
		const replaced = "%s has mode %04o, so that others could put a socket of theirs in the place of corrald's"
		return fmt.Sprintf(replaced, path, st.Mode&0o7777), fmt.Sprintf("chmod 700 %s, or %s", path, another)
	}
	return "", ""
}

// Elsewhere says why it listens elsewhere than another layout has it, "" if it does not. Both are of one state. The
// reason is nearly always that XDG_RUNTIME_DIR is not what it was when corrald was started.
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

// runtimeVariable is where sockets are, unless options say otherwise. It is the one variable of those that say where
// things are which is often missing: cron, su and sudo do not set it.
const runtimeVariable = "XDG_RUNTIME_DIR"

// Lost is an error, Unavailable, if it runs and cannot be reached.
func (c Corrald) Lost() error {
	if w, lost := stateDir(c.Layout).lost(); lost {
		return corral.Errorf(corral.Unavailable, "corrald (process %d) runs, but %s: %s", w.PID, w.gone(), w.begin())
	}
	return nil
}

// lost reports whether it runs, but its socket is gone, and where that was.
func (s stateDir) lost() (w Whereabouts, lost bool) {
	w, ok := s.whereabouts()
	if !ok || s.holder() != w.PID {
		return w, false
	}
	_, err := os.Lstat(w.Socket)
	return w, err != nil
}

// gone says what happened to the socket of one that is lost.
func (w Whereabouts) gone() string { return "its socket " + w.Socket + " is gone, as after a logout" }

// begin is what to do about one that is lost.
func (w Whereabouts) begin() string {
	return fmt.Sprintf("`kill %d`, then `corral up`, which takes up what it left", w.PID)
}

// holder returns which process has the database: the lock on it goes with its process, and the file says which that is.
// It is 0 if none has. To ask means to try for the lock, so it is asked for, shared and without waiting, only while the
// process that the file names is there: a corrald that is just starting must not find the lock taken by a question.
func (s stateDir) holder() int {
	f, err := openState(xdg.Layout(s).Lock())
	if err != nil {
		return 0
	}
	defer f.Close() // with a lock that was got after all
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b))) // 0 if it was not written yet
	if pid <= 1 || !running(pid) {                       // then the lock is left to one that may be about to take it
		return 0
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return 0
	}
	return pid
}
