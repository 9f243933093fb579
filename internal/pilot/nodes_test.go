package pilot_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/pool"
)

// sshd is a real server that stands for the other nodes of a job, which the tests share; see needSSHD. The folder has a
// program ssh, which is the real one with a configuration of ours.
var sshd struct {
	once sync.Once
	dir  string
	cmd  *exec.Cmd
	err  error
}

func needSSHD(t *testing.T) (path string) {
	t.Helper()
	sshd.once.Do(func() { sshd.err = startSSHD() })
	if sshd.err != nil {
		t.Fatal(sshd.err)
	}
	return filepath.Join(sshd.dir, "bin")
}

func startSSHD() error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	fetched, err := exec.Command("../../scripts/sshd", "--fetch").Output()
	if err != nil {
		return err
	}
	tools := string(bytes.TrimSpace(fetched))
	if sshd.dir, err = os.MkdirTemp("", "pilot-sshd-"); err != nil {
		return err
	}
	key, bin := filepath.Join(sshd.dir, "key"), filepath.Join(sshd.dir, "bin")
	config := fmt.Sprintf("Host *\nHostName 127.0.0.1\nPort %s\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\nHostKeyAlias node\n",
		port, key, sshd.dir)
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %s/ssh -F %s/config \"$@\"\n", tools, sshd.dir)
	err = errors.Join(os.Mkdir(bin, 0o755),
		exec.Command(filepath.Join(tools, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key).Run(),
		os.WriteFile(filepath.Join(sshd.dir, "config"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(bin, "ssh"), []byte(wrapper), 0o755),
		os.Rename(key+".pub", filepath.Join(sshd.dir, "authorized_keys")))
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(sshd.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	sshd.cmd = exec.Command("../../scripts/sshd", sshd.dir, port)
	sshd.cmd.Stdout, sshd.cmd.Stderr = log, log
	if err := sshd.cmd.Start(); err != nil {
		return err
	}
	return awaitSSHD(port)
}

// awaitSSHD waits until the server listens, and has the client know its key.
func awaitSSHD(port string) error {
	for by := time.Now().Add(time.Minute); ; {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(by) {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
	b, err := os.ReadFile(filepath.Join(sshd.dir, "hostkey.pub"))
	return errors.Join(err, os.WriteFile(filepath.Join(sshd.dir, "known"), append([]byte("node "), b...), 0o600))
}

func stopSSHD() {
	if sshd.cmd != nil && sshd.cmd.Process != nil {
		_ = sshd.cmd.Process.Kill()
		_ = sshd.cmd.Wait()
		os.RemoveAll(sshd.dir)
	}
}

// startNodes starts a pilot of several nodes, each of them this machine, of which all but the first are reached by ssh.
func (s site) startNodes(nodes ...string) *run {
	s.t.Helper()
	bin := needSSHD(s.t)
	own := filepath.Join(s.root, "pilot") // by which its processes are known
	if err := os.Link(program, own); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		for _, pid := range processesOf(s.root) {
			s.t.Errorf("process %d was left: %s", pid, commandLine(pid))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return s.startUnder("env", "PATH="+bin+":"+os.Getenv("PATH"), "CORRAL_JOB_TAG="+s.root,
		"CORRAL_NODES="+strings.Join(nodes, " "), "CORRAL_FANOUT=ssh", own, "run", "--dir", s.dir)
}

// processesOf returns the processes of a site's own pilot, on whatever node, and what descends from them.
func processesOf(root string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !alive(pid) {
			continue
		}
		exe, _ := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if strings.HasPrefix(exe, root+"/") || bytes.Contains(env, []byte("CORRAL_JOB_TAG="+root+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestWorkersServeOnEveryNode(t *testing.T) {
	t.Parallel()
	s := newService(t)
	place := newSite(t, s, func(p *order.Pilot) { p.Hosts = 3 })
	r := place.startNodes("n1", "n2", "n3")
	hosts := map[string]bool{}
	for _, w := range s.workers(3) {
		hosts[w.Host] = true
	}
	if len(hosts) != 3 || !hosts["n1"] || !hosts["n2"] || !hosts["n3"] {
		t.Errorf("workers of %v, want of n1, n2 and n3", hosts)
	}
	for range 6 {
		s.submit("sleep .2; echo $CORRAL_JOB_TAG", time.Second)
	}
	seen := map[string]bool{}
	for range 6 {
		got := within(t, "a result", s.results)
		if got.Status != pool.Done {
			t.Errorf("result = %+v, want done", got)
		}
		seen[got.Worker] = true
	}
	if len(seen) != 3 {
		t.Errorf("tasks ran on %v, want three workers", seen)
	}
	s.dispatcher.Drain(7)
	if rep := r.report(0, corral.OutcomeDrained, false); rep.Node != "" {
		t.Errorf("report %+v names a node", rep)
	}
}
