package main

// Conditions that would prevent corrald from starting are detected before anything is changed. Each start begins with
// these checks, and --check-config only runs them: so both refuse the same settings, with the same message and the same
// exit code. Separate checks would sooner or later differ.
//
// Changes between check and start, and damage to the database, are detected only by the start itself. Hence the start
// still handles each of these errors, for example if another program has taken a port in the meantime.
//
// Kinds of errors: Invalid can be fixed by another value of the setting. Conflict and Failed are states of the machine,
// after which the same settings may work: a port in use, a full disk. Forbidden would be unsafe.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/node/runas"
	"github.com/corral-pilot/corral/internal/service/central"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
)

// foresee checks all external conditions for a start, as the user that corrald will run as, and changes nothing. It
// reads the pilot binary, which may be readable only for root. Notes inform users about conditions that do not prevent
// a start.
//
// The checks are in the order of the start, so that the first error is the one that a start would report. Sockets and
// ports are checked last: a corrald that is already running with the same state uses them, which does not make the
// settings wrong. If a start finds such a corrald, opening the database fails, with an error that names the process.
func foresee(ctx context.Context, s *settings) (notes []string, err error) {
	if s.runAs.User, err = findUser(*s); err != nil {
		return nil, err
	}
	if err := personal.CheckSockets(s.layout, s.runAs.User); err != nil {
		return nil, err
	}
	if s.binary, err = readPilot(s.pilot); err != nil {
		return nil, err
	}
	for _, check := range []func(settings) error{checkDirs, checkKeys, checkCertificate, checkAudit} {
		if err := check(*s); err != nil {
			return nil, err
		}
	}
	holder, err := store.Holder(s.layout.Database())
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "--state", "%w", err)
	}
	if holder != 0 {
		const note = "corrald runs already with this state (process %d), so sockets and ports were not tried"
		return []string{fmt.Sprintf(note, holder)}, nil
	}
	if err := checkSockets(s.layout.Socket, s.layout.Worker); err != nil {
		return nil, err
	}
	if notes, err = checkPorts(ctx, *s); err == nil && ofService(filepath.Dir(s.layout.Socket)) {
		const note = "%s does not exist: systemd creates it when it starts the service"
		notes = append(notes, fmt.Sprintf(note, filepath.Dir(s.layout.Socket)))
	}
	return notes, err
}

// findUser finds the user that corrald should run as. Root must not serve a state that belongs to another user.
func findUser(s settings) (runas.User, error) {
	u, err := runas.Find(s.runAs.name)
	if err != nil {
		return u, corral.ErrorAt(corral.KindOf(err), "--run-as", "%w", err)
	}
	if u.Other() || os.Getuid() != 0 {
		return u, nil
	}
	owner, err := runas.Owner(s.layout.State)
	if errors.Is(err, syscall.ENOTDIR) { // checkDirs reports the error
		return u, nil
	}
	if err != nil {
		return u, corral.ErrorAt(corral.KindOr(err, corral.Invalid), "--state", "%w", err)
	}
	if owner != "" {
		return u, corral.Errorf(corral.Conflict, "%s belongs to %s: start corrald with --run-as %[2]s",
			s.layout.State, owner)
	}
	return u, nil
}

// leastRoom is the minimum free space, in bytes, on a file system to which corrald writes: a start alone uses a large
// part of it.
const leastRoom = 1 << 20

// checkDirs checks that each directory can be created and written to, and has space.
func checkDirs(s settings) error {
	for _, d := range []struct{ flag, path string }{
		{"--state", s.layout.State}, {"--cache", s.layout.Cache}, {"--data", s.layout.Data},
		{"--socket", filepath.Dir(s.layout.Socket)}, {"--worker-socket", filepath.Dir(s.layout.Worker)},
	} {
		if ofService(d.path) {
			continue
		}
		if err := s.runAs.MayMake(d.path); err != nil {
			return corral.ErrorAt(corral.KindOr(err, corral.Invalid), d.flag, "%w", err)
		}
		if !hasRoom(d.path) {
			const full = "the disk of %s is full: make room, then start corrald again"
			return corral.ErrorAt(corral.Failed, d.flag, full, d.path)
		}
	}
	return nil
}

// ofService reports whether dir is a missing folder below /run: systemd creates such a folder when it starts the
// service, and a manual start reports why it cannot create one.
func ofService(dir string) bool {
	_, err := os.Stat(dir)
	return filepath.Dir(dir) == "/run" && errors.Is(err, fs.ErrNotExist)
}

// hasRoom reports whether the file system of dir, or of its nearest existing ancestor, has free space. If the free
// space cannot be determined, the result is true.
func hasRoom(dir string) bool {
	var fsys unix.Statfs_t
	for {
		err := unix.Statfs(dir, &fsys)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
	return roomIn(fsys)
}

// roomIn is the decision of hasRoom. A file system that reports 0 blocks, or 0 inodes, does not count them.
func roomIn(fsys unix.Statfs_t) bool {
	bytes := int64(fsys.Bavail) * fsys.Bsize
	return (fsys.Blocks == 0 || bytes >= leastRoom) && (fsys.Files == 0 || fsys.Ffree > 0)
}

// checkKeys reads the existing keys with the functions that a start uses, and checks that the database is writable.
// Missing keys are created by the start. The functions that read keys would also create them, so they are not called
// for missing keys.
func checkKeys(s settings) error {
	for _, f := range []struct {
		path string
		read func(string) error
	}{
		{s.layout.Key(), func(path string) error { _, err := admission.LoadKey(path); return err }},
		{s.layout.PackageKey(), func(path string) error { _, err := packages.LoadSigner(path); return err }},
		{s.layout.Database(), func(string) error { return nil }},
	} {
		if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if !s.runAs.May(runas.Read|runas.Write, f.path) {
			return corral.ErrorAt(corral.Invalid, "--state", "%s is not readable and writable for corrald's user",
				f.path)
		}
		if err := f.read(f.path); err != nil {
			return corral.ErrorAt(corral.KindOr(err, corral.Invalid), "--state", "%w", err)
		}
	}
	return nil
}

// checkCertificate reads the certificate and key of --tls-listen, and refuses a certificate that clients would refuse.
// Root can read any key, so the access of corrald's user is checked first.
func checkCertificate(s settings) error {
	if s.central.listen == "" {
		return nil
	}
	for _, f := range []struct{ flag, path string }{{"--tls-cert", s.central.cert}, {"--tls-key", s.central.key}} {
		if _, err := os.Stat(f.path); err == nil && !s.runAs.May(runas.Read, f.path) {
			return corral.ErrorAt(corral.Invalid, f.flag, "%s is not readable for corrald's user", f.path)
		}
	}
	certificates, err := central.LoadCertificates(slog.New(slog.DiscardHandler), s.central.cert, s.central.key)
	if err != nil {
		return err
	}
	leaf := certificates.Leaf()
	if now := time.Now(); now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		return corral.ErrorAt(corral.Invalid, "--tls-cert", "%s is valid only from %s to %s", s.central.cert,
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkAudit checks that lines can be appended to the audit log.
func checkAudit(s settings) error {
	file := s.central.audit
	if file == "" {
		return nil
	}
	invalid := func(format string, args ...any) error {
		return corral.ErrorAt(corral.Invalid, "--audit-log", format, args...)
	}
	info, err := os.Stat(file)
	dir := filepath.Dir(file)
	switch folder, missing := os.Stat(dir); {
	case missing != nil || !folder.IsDir():
		return invalid("there is no folder %s: create it, and let corrald's user write to it", dir)
	case err == nil && info.IsDir():
		return invalid("%s is a folder: name a file", file)
	case err == nil && !s.runAs.May(runas.Write, file):
		return invalid("%s is not writable for corrald's user", file)
	case err != nil && !s.runAs.May(runas.Write|runas.Enter, dir):
		return invalid("corrald's user may not create files in %s", dir)
	}
	return nil
}

// checkSockets refuses paths of sockets that are in use.
func checkSockets(api, worker string) error {
	for _, socket := range []struct{ flag, path string }{{"--socket", api}, {"--worker-socket", worker}} {
		if err := port.CheckUnix(socket.path); err != nil {
			return corral.ErrorAt(corral.KindOf(err), socket.flag, "%w", err)
		}
	}
	return nil
}

// checkPorts opens all ports together, and then closes them, so that two settings with the same port are detected in
// the same way as a port that another program uses. The worker port may be in use: corrald retries to open it until it
// is free, because queued pilots have no other address.
func checkPorts(ctx context.Context, s settings) (notes []string, err error) {
	var opened []io.Closer
	defer func() {
		for _, l := range opened {
			_ = l.Close() // no connection was accepted
		}
	}()
	for _, p := range []struct{ flag, address string }{
		{"--tls-listen", s.central.listen}, {"--metrics-listen", s.metricsListen},
		{"--mirror-listen", s.mirror.listen}, {workerListen, s.worker.listen},
	} {
		if p.address == "" {
			continue
		}
		l, err := tryPort(ctx, s.runAs.User, p.flag, p.address)
		if err == nil {
			opened = append(opened, l)
			continue
		}
		if p.flag != workerListen {
			return nil, err
		}
		notes = append(notes, err.Error()+"; corrald starts, and retries until it can listen there")
	}
	return notes, nil
}

const workerListen = "--worker-listen"

// tryPort opens a port, with the rights of corrald's user.
func tryPort(ctx context.Context, u runas.User, flag, address string) (net.Listener, error) {
	host, number, _ := net.SplitHostPort(address)
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err == nil && u.Other() && reserved(l.Addr()) {
		err = errors.Join(syscall.EACCES, l.Close())
	}
	switch _, noHost := errors.AsType[*net.DNSError](err); {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, corral.ErrorAt(corral.Conflict, flag, "%s is taken by another program, or by another of corrald's "+
			"settings: end that program, or name another port", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, corral.ErrorAt(corral.Invalid, flag, "%s is not an address of this machine", host)
	case errors.Is(err, syscall.EACCES):
		return nil, corral.ErrorAt(corral.Invalid, flag, "port %s is reserved for root and programs with "+
			"CAP_NET_BIND_SERVICE: name a port from 1024 on", number)
	case noHost:
		return nil, corral.ErrorAt(corral.Invalid, flag, "there is no host %q", host)
	}
	return nil, corral.ErrorAt(corral.Failed, flag, "corrald cannot listen on %s: %w", address, err)
}

// reserved reports whether only root may listen on the port of an address.
func reserved(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	first := 1024
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			first = n
		}
	}
	return ok && tcp.Port < first
}
