package owners

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// A Step holds the next actions for an owner whose account is being ended. The fields are in the order of execution.
type Step struct {
	Scales    []corral.ClusterID
	Ensembles []record.ID
	Plans     []corral.PlanID
	Runs      []corral.RunID
	Glideins  []corral.GlideinID
	Sites     []corral.SiteID
	Clusters  []corral.ClusterID
	Done      bool // only the ssh key is left
}

// Next returns the next actions at now for an owner's objects. Requests are not repeated, except for clusters that
// could not be removed: those are tried again after a while.
func Next(now time.Time, b store.Belongings) (s Step) {
	for _, x := range b.Scales {
		s.Scales = append(s.Scales, x.Cluster)
	}
	for _, x := range b.Ensembles {
		if x.State == record.Running {
			s.Ensembles = append(s.Ensembles, x.ID)
		}
	}
	for _, x := range b.Plans {
		s.Plans = append(s.Plans, x.ID)
	}
	for _, x := range b.Runs {
		if x.State == corral.RunRunning {
			s.Runs = append(s.Runs, x.ID)
		}
	}
	sites, clusters := map[corral.SiteID]bool{}, map[corral.ClusterID]bool{} // those that are still needed
	for _, x := range b.Glideins {
		sites[x.Site], clusters[x.Cluster] = true, true
		if x.Asked != corral.AskCancel {
			s.Glideins = append(s.Glideins, x.ID)
		}
	}
	for _, x := range b.Runs {
		clusters[x.Cluster] = true
	}
	for _, x := range b.Scales {
		clusters[x.Cluster] = true
	}
	for _, x := range b.Ensembles {
		clusters[x.Cluster] = true
	}
	for _, x := range b.Sites {
		if !sites[x.ID] && x.State != corral.SiteExiting && x.State != corral.SiteRemoving && !goesByForce(x) {
			s.Sites = append(s.Sites, x.ID)
		}
	}
	for _, x := range b.Clusters {
		failed := x.State == corral.ClusterFailed && now.Sub(x.UpdatedAt) < again
		if !clusters[x.ID] && x.State != corral.ClusterRemoving && !failed {
			s.Clusters = append(s.Clusters, x.ID)
		}
	}
	s.Done = b.Nothing()
	return s
}

// goesByForce reports whether a site has failed with files installed there: its cleanup has failed permanently, so
// another request would fail again, and a person must decide.
func goesByForce(s corral.Site) bool { return s.State == corral.SiteFailed && s.PackageDigest != "" }

// Waits lists the objects whose end the removal of an owner waits for, in one sentence each.
func Waits(b store.Belongings) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, x := range b.Ensembles {
		say("ensemble %d is %s", x.ID, x.State)
	}
	for _, x := range b.Runs {
		say("run %d is %s", x.ID, x.State)
	}
	for _, x := range b.Glideins {
		say("glidein %d is %s%s", x.ID, x.State, behind(x.Reason))
	}
	for _, x := range b.Sites {
		why := x.Reason
		if trouble := x.Lack().Why; trouble != "" {
			why = trouble
		}
		if goesByForce(x) || x.Trouble.Why != "" {
			why += fmt.Sprintf("; if it does not recover, `corral site remove %d --force` forgets it", x.ID)
		}
		say("site %d (%s) is %s%s", x.ID, x.Name, x.State, behind(why))
	}
	for _, x := range b.Clusters {
		say("cluster %d (%s) is %s%s", x.ID, x.Name, x.State, behind(x.Reason))
	}
	return all
}

// behind formats a reason to be appended to a state.
func behind(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
