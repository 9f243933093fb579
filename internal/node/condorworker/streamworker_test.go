package condorworker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// slot is the slot of a glidein that ends in an hour, with the files that came with a job.
func slot(t *testing.T, sandbox string, now time.Time) CondorSlot {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, jobfiles.StreamFile), []byte(sandbox), 0o600); err != nil {
		t.Fatal(err)
	}
	return CondorSlot{
		Dir: dir, Worker: "tag/0", Host: "n1", Resources: corral.Resources{CPUs: 2, MemoryMiB: 300},
		Ends: now.Add(time.Hour), Home: []string{"tls:h:1"}, HomeDigest: "sha256:d",
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := slot(t, `{"tag": "T", "token": "secret"}`, now)
	cfg, err := config(s, 7, now)
	if err != nil {
		t.Fatal(err)
	}
	want := corral.Resources{CPUs: 2, MemoryMiB: 300}
	if cfg.ID != "tag/0+7" || cfg.Holder != "tag/0" || cfg.Tag != "T" || cfg.Token != "secret" || cfg.Resources != want ||
		cfg.EndsIn != time.Hour || cfg.Addresses[0] != "tls:h:1" || cfg.CertDigest != "sha256:d" || cfg.Instance == "" {
		t.Errorf("%+v", cfg)
	}
	s.Ends, s.Resources = time.Time{}, corral.Resources{}
	if cfg, err := config(s, 7, now); err != nil || cfg.EndsIn != unbounded || cfg.CPUs != 1 || cfg.MemoryMiB != 1 {
		t.Errorf("a slot that says little: %+v, %v", cfg, err)
	}
	s.Home = nil
	if _, err := config(s, 7, now); err == nil || !strings.Contains(err.Error(), "glidein tag/0 does not name corrald's address") {
		t.Errorf("a glidein without a way home: %v", err)
	}
}

func TestFilesOfAJobAreLimited(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"", "{", `[]`, `{"tag": 1}`, `{"tag": "` + strings.Repeat("t", maxSandbox) + `"}`} {
		if _, err := config(slot(t, sandbox, time.Now()), 1, time.Now()); err == nil {
			t.Errorf("%.20q is taken", sandbox)
		}
	}
}

// Outside an HTCondor job, Run returns an error that names the reason.
func TestOutsideAJob(t *testing.T) {
	t.Setenv("_CONDOR_SCRATCH_DIR", "")
	if err := Run(t.Context(), nil, 1); err == nil || !strings.Contains(err.Error(), "_CONDOR_SCRATCH_DIR is not set") {
		t.Error(err)
	}
}
