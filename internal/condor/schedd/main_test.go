//go:build sites

package schedd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// Environment variables for the results of TestMain.
const (
	releaseEnv = "SCHEDD_TEST_RELEASE" // a real HTCondor, which scripts/htcondor has set up
	pilotEnv   = "SCHEDD_TEST_PILOT"   // the pilot binary
)

// TestMain builds the pilot and runs the tests as a user that HTCondor accepts: root becomes nobody.
func TestMain(m *testing.M) {
	if os.Getenv(releaseEnv) != "" {
		os.Exit(m.Run())
	}
	status, err := again()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// again runs this test binary once more, with the necessary environment.
func again() (status int, err error) {
	dir, err := os.MkdirTemp("/tmp", "schedd-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	release, err := programs.HTCondor()
	if err != nil {
		return 1, err
	}
	pilot, err := programs.CopyPilot(dir)
	if err != nil {
		return 1, err
	}
	self := filepath.Join(dir, "test")
	if _, err := output("cp", os.Args[0], self); err != nil {
		return 1, err
	}
	cmd := exec.Command(self)
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.testlogfile=") { // its folder may be closed to other users
			cmd.Args = append(cmd.Args, arg)
		}
	}
	cmd.Env = append(os.Environ(), releaseEnv+"="+release, pilotEnv+"="+pilot, "TMPDIR=/tmp")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.SysProcAttr, err = unprivileged(); err != nil {
		return 1, err
	}
	if err := cmd.Run(); err != nil {
		return 1, nil // the test binary has printed the reason
	}
	return 0, nil
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s: %w", name, err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// unprivileged returns the attributes for a process that runs as nobody if this process runs as root.
func unprivileged() (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
