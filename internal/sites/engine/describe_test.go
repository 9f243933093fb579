package engine

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

var update = flag.Bool("update", false, "rewrite testdata/jobs.golden")

// The description of each kind of job, including its files, follows from the records and the provision.
func TestJobsAreDescribed(t *testing.T) {
	t.Parallel()
	const file = "testdata/jobs.golden"
	site := corral.Site{
		ID: 1, Name: "hpc", Root: "/home/ann/.corral-hpc", Package: "corral-pilot-1.0-x86_64-linux-static",
		PackageDigest: "sha256:" + strings.Repeat("a1", 32),
		BatchOptions:  corral.BatchOptions{Queue: "normal", Account: "physics", SiteOptions: []string{"--nice=1"}},
	}
	glidein := corral.Glidein{ID: 7, Site: 1, Cluster: 1,
		Shape: corral.Shape{Hosts: 2, CPUs: 4, GPUs: 1, MemoryMiB: 2048, Walltime: corral.Seconds(time.Hour)},
		Idle:  corral.Seconds(time.Minute), BatchOptions: corral.BatchOptions{Queue: "long", SiteOptions: []string{"--nice=2"}}}
	pooled, attached, relayed := glidein, glidein, glidein
	pooled.ID, pooled.Cluster, pooled.Slots = 8, 2, corral.SlotsStatic
	attached.ID, attached.Cluster, attached.CCB = 9, 3, []string{"broker:9618"}
	relayed.ID, relayed.Broker, relayed.Speed = 10, corral.BrokerRelay, 0.5
	w := reconcile.World{Site: site, Glideins: []corral.Glidein{glidein, pooled, attached, relayed}, Needs: map[corral.ClusterID]reconcile.Need{
		2: {Cluster: corral.Cluster{Name: "mine", Collector: "127.0.0.1:9618"}, Package: "htcondor-25.14.1", Version: "25.14.1", Digest: "sha256:b2"},
		3: {Cluster: corral.Cluster{Name: "theirs", Collector: "cm.example:9618", Attached: true, ScheddAt: "s:9618"}, Package: "htcondor-25.14.1", Version: "25.14.1", Digest: "sha256:b2"},
	}}
	p := provision{token: "token", secret: "secret", addresses: []string{"tls:192.0.2.1:7000"}, certDigest: "sha256:c3", relays: []string{"10.0.0.1:4711"}}
	var got strings.Builder
	for _, tt := range []struct {
		name string
		job  corral.Job
		p    provision
	}{
		{"setup", corral.Job{Kind: corral.SetupJob}, provision{setup: &jobfiles.Setup{Package: "p", Digest: "sha256:d4", Sources: []jobfiles.Source{{URL: "file:///p"}}}}},
		{"cleanup", corral.Job{Kind: corral.CleanupJob}, provision{}},
		{"pilot", corral.Job{ID: 20, Kind: corral.PilotJob, Glidein: 7}, p},
		{"pilot of a pool", corral.Job{ID: 21, Kind: corral.PilotJob, Glidein: 8}, p},
		{"pilot of somebody else's pool", corral.Job{ID: 22, Kind: corral.PilotJob, Glidein: 9}, p},
		{"pilot through the relay alone", corral.Job{ID: 23, Kind: corral.PilotJob, Glidein: 10}, p},
	} {
		tt.job.Tag = "corral-" + string(tt.job.Kind) + "-tag"
		spec, err := describe(w, tt.job, tt.p)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		files := map[string]string{}
		for name, content := range spec.Files {
			files[name] = string(content)
		}
		spec.Files = nil
		text, err := json.MarshalIndent(struct {
			Spec  any
			Files map[string]string
		}{spec, files}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("== " + tt.name + "\n" + strings.ReplaceAll(strings.ReplaceAll(string(text), `\n`, "\n      "), `\"`, `"`) + "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("jobs (-%s +described; -update rewrites it):\n%s", file, diff)
	}
}
