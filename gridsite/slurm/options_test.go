package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// The arguments of sbatch for a pilot are its shape and the site's options, unchanged.
func TestOptionsOfSbatch(t *testing.T) {
	t.Parallel()
	spec := gridsite.JobSpec{
		Tag: "g1", Argv: []string{"/bin/true"}, Hosts: 2, CPUs: 4, MemoryMiB: 100, Walltime: 26*time.Hour + time.Second,
		Exclude: []string{"n1", "n2"}, BatchOptions: corral.BatchOptions{
			Queue: "debug", Account: "chem", QOS: "low", Constraint: "ib&ssd", SiteOptions: []string{"--mail-type=END"}},
	}
	got, err := optionsOf(New(nil, "/home/a%b"), spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--nodes=2", "--cpus-per-task=4", "--mem=100M", "--time=1-02:00:01", "--exclude=n1,n2", "--partition=debug",
		"--account=chem", "--qos=low", "--constraint=ib&ssd", "--output=/home/a%%b/jobs/g1/.corral/log", "--no-kill",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("options %q lack %s", got, want)
		}
	}
	batch := string(New(nil, "/home/a").batchScript(spec))
	if strings.Contains(strings.Join(got, " "), "mail") || !strings.Contains(batch, "\n#SBATCH --mail-type=END\n") {
		t.Errorf("a site option belongs into the batch script: %q, %s", got, batch)
	}
	if path := outputPath(`/home/a\b`); path != "/dev/null" {
		t.Errorf("output of a path with a backslash is %s", path)
	}
	if limit := timeLimit(0); limit != "" {
		t.Errorf("without a walltime the limit is %q", limit)
	}
}
