//go:build sites

package condorpool

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/internal/kit/programs"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
)

// daemons returns HTCondor's processes, except zombies, whose CONDOR_CONFIG begins with dir. It excludes commands
// that a keeper runs, which may be checking the pool at the moment.
func daemons(dir string) []int {
	var found []int
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environs {
		environ, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(environ, []byte("CONDOR_CONFIG="+dir)) {
			continue
		}
		exe, err := os.Readlink(filepath.Join(filepath.Dir(name), "exe"))
		if err != nil || !strings.HasPrefix(filepath.Base(exe), "condor_") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if filepath.Base(exe) != "condor_master" && parent(pid) == strconv.Itoa(os.Getpid()) {
			continue
		}
		found = append(found, pid)
	}
	return found
}

// daemon returns the process of a pool's daemon, or 0 if there is none. It excludes a daemon's forked copies, which
// answer queries or are about to become another daemon.
func (w *world) daemon(c corral.Cluster, program string) int {
	for _, pid := range daemons(w.keepers.folder(c.ID).path + "/") {
		if runs(strconv.Itoa(pid)) == program && runs(parent(pid)) != program {
			return pid
		}
	}
	return 0
}

// kill kills daemons of a pool at once. It finds all of them first, because one daemon may end when another has ended.
func (w *world) kill(c corral.Cluster, programs ...string) (pids []int) {
	w.t.Helper()
	for _, program := range programs {
		var pid int
		w.eventually(program, func() bool { pid = w.daemon(c, program); return pid != 0 })
		pids = append(pids, pid)
	}
	for i, pid := range pids {
		if err := kill(pid); err != nil {
			w.t.Fatalf("killing %s: %v", programs[i], err)
		}
	}
	return pids
}

// kill kills a process, and ignores a process that has already ended.
func kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != syscall.ESRCH {
		return err
	}
	return nil
}

// runs returns the program of a process, or "." if it has ended.
func runs(pid string) string {
	exe, _ := os.Readlink("/proc/" + pid + "/exe")
	return filepath.Base(exe)
}

func parent(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
	ppid, _, _ := strings.Cut(rest, "\n")
	return ppid
}

// glidein starts a real glidein for an attempt, like a worker process of a pilot. It ends with the test, or when the
// returned function is called.
func (w *world) glidein(c corral.Cluster, j corral.Job, secret string, change func(*condor.GlideinConfig)) (end func()) {
	w.t.Helper()
	w.tags++
	name := fmt.Sprintf("host-%d", w.tags)
	token, err := condor.ParseToken(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	config := condor.GlideinConfig{
		Dir: filepath.Join(w.dir, name), Release: release, Name: name, Identity: token.Identity,
		Network: condor.GlideinNetwork{
			Collector: netip.MustParseAddrPort(c.Collector), Address: netip.MustParseAddr("127.0.0.1"),
		},
		Cpus: 2, MemoryMiB: 200,
		Times: condor.GlideinTimes{
			Retire: time.Now().Add(time.Hour), End: time.Now().Add(time.Hour), Update: 2 * time.Second,
		},
		Attributes: classad.Ad{
			"CorralCluster": c.Name, "CorralSite": "here", "CorralGlidein": int64(j.Glidein), "CorralAttempt": int64(j.ID),
			"CorralWorker": j.Tag + "/0", "CorralHost": "node1", "CorralPID": 4711, "CorralCpus": 2, "CorralMemoryMiB": 200,
			"CorralEnd": time.Now().Add(time.Hour).Unix(), "CorralDraining": false,
		},
	}
	if change != nil {
		change(&config)
	}
	file, err := config.Prepare(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	owner, err := condor.AccountFor(programs.Unprivileged())
	if err != nil {
		w.t.Fatal(err)
	}
	err = filepath.WalkDir(config.Dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(name, int(owner.UID), int(owner.GID))
	})
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(release, "sbin/condor_master"), "-f")
	cmd.Env = []string{"CONDOR_CONFIG=" + file, "PATH=" + os.Getenv("PATH")}
	cmd.Dir = config.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.UID, Gid: owner.GID}
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	end = func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // the process may have ended
		select {
		case <-done:
		case <-time.After(20 * time.Second): // the process waits for a collector that is gone
		}
		for _, pid := range daemons(config.Dir + "/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-done
	}
	w.t.Cleanup(end)
	return end
}
