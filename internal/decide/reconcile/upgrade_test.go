package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// newer is the package of an upgraded corrald.
var newer = Package{Name: "corral-pilot-2.0-x86_64-linux-static", Digest: "sha256:2"}

// The package of an upgraded corrald is installed at a READY site, whether or not a pilot is wanted there now, and new
// attempts wait for the package. If it cannot be installed, they use the existing package.
func TestDecideUpgrade(t *testing.T) {
	t.Parallel()
	failed := staged(newer.Digest, corral.OutcomeFailed, true)
	setup := Submit{Kind: corral.SetupJob, Package: newer.Digest}
	for _, tt := range []struct {
		name    string
		state   corral.SiteState
		newer   Package
		jobs    []corral.Job
		now     time.Time
		want    []Action // actions that concern the site
		submits bool     // whether an attempt is submitted
	}{
		{"it has that", corral.SiteReady, Package{}, nil, t0, nil, true},
		{"another build", corral.SiteReady, newer, nil, t0, []Action{setup}, false},
		{"on its way", corral.SiteReady, newer, []corral.Job{stagingNow(newer.Digest, corral.JobRunning)}, t0, nil, false},
		{"installed", corral.SiteReady, newer, []corral.Job{staged(newer.Digest, corral.OutcomeDone, false)}, t0, []Action{UsePackage{newer}}, false},
		{"failed once, just now", corral.SiteReady, newer, []corral.Job{failed}, t0, nil, false},
		{"failed once, a while ago", corral.SiteReady, newer, []corral.Job{failed}, t0.Add(time.Minute), []Action{setup}, false},
		{"failed for good", corral.SiteReady, newer, []corral.Job{failed, failed, failed}, t0.Add(time.Hour), nil, true},
		{"not ready", corral.SiteNew, newer, nil, t0, []Action{Submit{Kind: corral.SetupJob, Move: corral.SiteStage}}, false},
	} {
		w := World{Site: corral.Site{ID: 1, Name: "hpc", State: tt.state, PackageDigest: "sha256:1"}, Installed: Installed{Newer: tt.newer}, Jobs: tt.jobs,
			Glideins: []corral.Glidein{glideinWith(resubmit.Policy{Mode: resubmit.Never})}}
		var about []Action
		submits := false
		for _, a := range Decide(tt.now, w) {
			switch s, ok := a.(Submit); {
			case ok && s.Kind == corral.PilotJob:
				submits = true
			case ok || a == Action(UsePackage{newer}):
				about = append(about, a)
			}
		}
		if diff := cmp.Diff(tt.want, about, cmpopts.IgnoreFields(Submit{}, "Reason")); diff != "" || submits != tt.submits {
			t.Errorf("%s: an attempt is submitted: %t, want %t; about the site (-want +got):\n%s", tt.name, submits, tt.submits, diff)
		}
	}
}

// The upgrade of a site comes to rest, and does not affect the pilot that is working in the meantime.
func TestUpgradeComesToRest(t *testing.T) {
	t.Parallel()
	r := readyRig(t, corral.Site{Package: "corral-pilot-1.0", PackageDigest: "sha256:1"})
	r.Installed.Newer = newer
	site := SetupSite(r.World, newer.Digest)
	if site.Package != newer.Name || SetupSite(r.World, "").Package != "corral-pilot-1.0" {
		t.Errorf("the setup job runs %s", site.Package)
	}
	for range 10 {
		actions := Decide(r.now, r.World)
		if len(actions) == 0 {
			break
		}
		for _, a := range actions {
			r.must(a.(Change))
			if s, ok := a.(Submit); ok {
				r.must(MoveJob{r.lastJob, corral.JobEvent{Move: corral.JobSubmit}})
				r.must(MoveJob{r.lastJob, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeDone}})
				r.now = r.now.Add(time.Second)
				if s.Package != newer.Digest {
					t.Errorf("submitted %+v", s)
				}
			}
		}
	}
	if r.Site.State != corral.SiteReady || r.Site.PackageDigest != newer.Digest || r.Site.Package != newer.Name {
		t.Errorf("the site is %s with %s", r.Site.State, r.Site.Package)
	}
	if left := Decide(r.now, r.World); len(left) > 0 {
		t.Errorf("still to do: %v", left)
	}
}
