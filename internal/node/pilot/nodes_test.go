//go:build sites

package pilot_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

func init() { atEnd = append(atEnd, stopSSHD, stopSlurm) }

// sshd is a real server, shared by the tests, that represents the other nodes of a job; see needSSHD. The folder
// contains a program ssh, which runs the real ssh with our own configuration.
var sshd struct {
	once sync.Once
	dir  string
	cmd  *exec.Cmd
	err  error
}

func stopSSHD() error {
	if sshd.cmd != nil && sshd.cmd.Process != nil {
		_ = sshd.cmd.Process.Kill()
		_ = sshd.cmd.Wait()
		return os.RemoveAll(sshd.dir)
	}
	return nil
}

// slurm is a real Slurm that the tests share; see needSlurm.
var slurm struct {
	once    sync.Once
	cluster *gridsitetest.Slurm
	err     error
}

func stopSlurm() error {
	if slurm.cluster == nil {
		return nil
	}
	return slurm.cluster.Stop()
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
	address, err := condor.FreeAddress(netip.MustParseAddr("127.0.0.1")) // an address that no outgoing connection gets meanwhile
	if err != nil {
		return err
	}
	port := strconv.Itoa(int(address.Port()))
	fetched, err := exec.Command("../../../scripts/sshd", "--fetch").Output()
	if err != nil {
		return err
	}
	tools := string(bytes.TrimSpace(fetched))
	if sshd.dir, err = os.MkdirTemp("", "pilot-sshd-"); err != nil {
		return err
	}
	key, bin := filepath.Join(sshd.dir, "key"), filepath.Join(sshd.dir, "bin")
	config := fmt.Sprintf("Host gone\nPort 1\nHost *\nHostName 127.0.0.1\nPort %s\nIdentityFile %s\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\nHostKeyAlias node\n",
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
	sshd.cmd = exec.Command("../../../scripts/sshd", sshd.dir, port)
	sshd.cmd.Stdout, sshd.cmd.Stderr = log, log
	if err := sshd.cmd.Start(); err != nil {
		return err
	}
	return awaitSSHD(port)
}

// awaitSSHD waits until the server listens, and makes the client know its key.
func awaitSSHD(port string) error {
	for by := time.Now().Add(patience); ; {
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

func needSlurm(t *testing.T) *gridsitetest.Slurm {
	t.Helper()
	slurm.once.Do(func() { slurm.cluster, slurm.err = gridsitetest.StartSlurm([]string{"CPUS=16"}) })
	if slurm.err != nil {
		t.Fatal(slurm.err)
	}
	return slurm.cluster
}
