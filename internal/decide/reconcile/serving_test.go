package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// serves returns a setup or cleanup job that its site has accepted.
func serves(kind corral.JobKind, s corral.JobState) corral.Job {
	return corral.Job{ID: 5, Kind: kind, Number: 1, State: s, CreatedAt: t0, SubmittedAt: t0, UpdatedAt: t0}
}

// The rules for attempts also apply to setup and cleanup jobs: a job is abandoned if it waits for too long, or if the
// site reports for a while that it will never start the job.
func TestServingJobsAreGivenUp(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	asked := serves(corral.SetupJob, corral.JobQueued)
	asked.Asked = corral.AskCancel
	ofPackage := serves(corral.SetupJob, corral.JobQueued)
	ofPackage.Package = digest
	for _, tt := range []struct {
		name  string
		state corral.SiteState
		job   corral.Job
		never time.Duration // since when the site has reported that it never starts the job; 0: it has not
		after time.Duration
		want  []string
		next  time.Duration // when an action is due; 0: none is
	}{
		{"it waits", corral.SiteStaging, serves(corral.SetupJob, corral.JobQueued), 0, time.Hour, nil, week},
		{"it has waited for a week", corral.SiteStaging, serves(corral.SetupJob, corral.JobQueued), 0, week, []string{"cancel"}, 0},
		{"it runs for long", corral.SiteStaging, serves(corral.SetupJob, corral.JobRunning), 0, week, nil, 0},
		{"it never starts, as has just been said", corral.SiteStaging, serves(corral.SetupJob, corral.JobQueued), time.Hour, time.Hour, nil, time.Hour + hopeGrace},
		{"it never starts", corral.SiteStaging, serves(corral.SetupJob, corral.JobQueued), time.Hour, time.Hour + hopeGrace, []string{"cancel"}, week},
		{"it is asked to go once more", corral.SiteStaging, asked, 0, time.Hour, []string{"cancel"}, week},
		{"a cleanup job never starts", corral.SiteRemoving, serves(corral.CleanupJob, corral.JobQueued), time.Hour, time.Hour + hopeGrace, []string{"cancel"}, week},
		{"one for a package never starts", corral.SiteReady, ofPackage, time.Hour, time.Hour + hopeGrace, []string{"cancel"}, week},
	} {
		w := World{Site: corral.Site{State: tt.state, PackageDigest: "sha256:1"}, Jobs: []corral.Job{tt.job}, Hopeless: map[corral.JobID]time.Time{}}
		if tt.never > 0 {
			w.Hopeless[tt.job.ID] = t0.Add(tt.never)
		}
		now := t0.Add(tt.after)
		if got := kinds(Decide(now, w)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: Decide = %q, want %q", tt.name, got, tt.want)
		}
		want := time.Time{}
		if tt.next > 0 {
			want = t0.Add(tt.next)
		}
		if got := Due(now, w); !got.Equal(want) {
			t.Errorf("%s: due at %s, want %s", tt.name, got, want)
		}
	}
}

// Whether a setup or cleanup job counts as failed, and whether another is tried, depends on who requested the job's
// end.
func TestServingJobsThatWereGivenUp(t *testing.T) {
	t.Parallel()
	hopeless, late := serves(corral.SetupJob, corral.JobQueued), serves(corral.SetupJob, corral.JobQueued)
	hopeless.Asked, hopeless.Reason, hopeless.UpdatedAt = corral.AskCancel, "PartitionTimeLimit", t0.Add(time.Minute)
	late.Asked, late.UpdatedAt = corral.AskCancel, t0.Add(8*24*time.Hour)
	cleanup := hopeless
	cleanup.Kind = corral.CleanupJob
	for _, tt := range []struct {
		name  string
		state corral.SiteState
		job   corral.Job
		want  string // state of the site, once the job has ended
	}{
		{"it never starts", corral.SiteStaging, hopeless, "fail: setup job 1 failed: the site accepted it but never starts it: PartitionTimeLimit"},
		{"it waited for too long", corral.SiteStaging, late, "again: setup job 1 failed: waited longer than 168h0m0s in the queue"},
		{"the cleanup job never starts", corral.SiteRemoving, cleanup, "fail: cleanup job 1 failed: the site accepted it but never starts it: PartitionTimeLimit"},
		{"the site is being removed", corral.SiteExiting, hopeless, ""},
	} {
		w := World{Site: corral.Site{State: tt.state, PackageDigest: "sha256:1"}, Jobs: []corral.Job{tt.job}}
		s := Sighting{Known: true, Phase: Ended, Killed: ByCancel, EndedAt: t0.Add(9 * 24 * time.Hour)}
		s.Overdue, s.Hopeless = w.Overdue(tt.job)
		now := s.EndedAt.Add(time.Minute)
		for _, e := range Events(tt.job, s, now) {
			var err error
			if w.Jobs[0], _, err = w.Jobs[0].Apply(e, now); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		for _, a := range Decide(now, w) {
			switch a := a.(type) {
			case MoveSite:
				got = string(a.Move) + ": " + a.Reason
			case Submit:
				if tt.state != corral.SiteExiting {
					got = "again: " + a.Reason
				}
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q; the job ended as %s: %s", tt.name, got, tt.want, w.Jobs[0].Outcome, w.Jobs[0].Reason)
		}
	}
}

// A glidein whose package is being staged shows the reason for the delay.
func TestWhyAPackageIsNotStagedYet(t *testing.T) {
	t.Parallel()
	j := stagingNow(digest, corral.JobQueued)
	j.Reason = "Resources"
	w := World{Site: corral.Site{State: corral.SiteReady}, Jobs: []corral.Job{j}, Needs: map[corral.ClusterID]Need{3: ready()}}
	if why := w.lack(new(condorGlidein(resubmit.Policy{}))).Why; !strings.HasSuffix(why, " is being staged; its setup job waits: Resources") {
		t.Errorf("it says %q", why)
	}
}
