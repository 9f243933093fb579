package slurm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

func jobSpec(name, script string) gridsite.JobSpec {
	tag := strings.NewReplacer("/", ".", "_", "-", "#", ".", ",", "").Replace(name)
	return gridsite.JobSpec{Tag: tag, Argv: []string{"/bin/sh", "-c", script}, Hosts: 1, CPUs: 1, Walltime: time.Hour}
}

func TestSlurmInvalid(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*gridsite.JobSpec){
		func(s *gridsite.JobSpec) { s.Queue = "a\nb" },
		func(s *gridsite.JobSpec) { s.Account = "a\x00" },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"--nice=1\ntouch /tmp/x"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"#SBATCH -a 1-9"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"--array=1-9"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"--nice=1 --array 1-9"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"#SBATCH --wait"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"-W"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"--test-only"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"--mem=1G -Mother"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"--clusters=all"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"#SBATCH hetjob"} },
		func(s *gridsite.JobSpec) { s.SiteOptions = []string{"#SBATCH packjob"} },
		func(s *gridsite.JobSpec) { s.Exclude = []string{"--wrap=x"} },
		func(s *gridsite.JobSpec) { s.GPUs = -1 },
		func(s *gridsite.JobSpec) { s.Tag = "a b" },
	} {
		spec := jobSpec("tag", "true")
		change(&spec)
		if _, err := slurm.New(nil, "/srv").Submit(t.Context(), spec); corral.KindOf(err) != corral.Invalid {
			t.Errorf("Submit(%+v) = %v, want invalid", spec, err)
		}
	}
}
