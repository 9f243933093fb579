//go:build sites

package slurm_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// Slurm is found even if only the profile of a login shell sets its path; if the path is not set at all, the error
// names the places that were searched.
func TestSlurmOfALoginShell(t *testing.T) {
	t.Parallel()
	cluster := startSlurm(t)
	home := t.TempDir()
	d := gridsitetest.StartSSHD(t, "SetEnv PATH=/usr/bin:/bin HOME="+home)
	root := filepath.Join(t.TempDir(), "site")
	spec := gridsite.JobSpec{Tag: "of-a-login-shell", Argv: []string{"/bin/true"}, Hosts: 1, CPUs: 1, Walltime: time.Minute}
	b := slurm.New(dial(t, d), root)
	err := b.Check(t.Context(), spec)
	var refused *gridsite.Refused
	if corral.KindOf(err) != corral.Unsatisfiable || errors.As(err, &refused) || !strings.Contains(err.Error(), "login shell, whose PATH is /") {
		t.Errorf("without Slurm: %v", err)
	}
	var lines strings.Builder
	fmt.Fprintln(&lines, "echo Welcome to the head node")
	for _, kv := range cluster.Environ() {
		fmt.Fprintf(&lines, "export %s\n", strings.Replace(kv, "=", "='", 1)+"'")
	}
	d.Write(t, filepath.Join(home, ".profile"), lines.String())
	if err := b.Check(t.Context(), spec); err != nil {
		t.Errorf("with Slurm in the profile: %v", err)
	}
	facts, err := b.Survey(t.Context(), corral.BatchOptions{})
	if err != nil || len(facts.Queues) == 0 {
		t.Errorf("its survey: %+v, %v", facts, err)
	}
	if jobs, err := b.Poll(t.Context(), []string{spec.Tag}); err != nil || len(jobs) != 0 {
		t.Errorf("its poll: %v, %v", jobs, err)
	}
}
