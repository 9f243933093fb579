package admit

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/work/request"
)

// ReadSite returns the site that a caller requests. here is the folder with the roots of sites on this machine.
// ReadSite does not check whether corrald may connect to the contact, because logins need the same check.
func ReadSite(who access.Caller, in api.NewSite, here string) (corral.Site, error) {
	s, err := request.Site(in, here)
	s.Owner = who.Name
	return s, err
}

// ReadCluster returns the cluster that a caller requests.
func ReadCluster(who access.Caller, in api.NewCluster) (corral.Cluster, error) {
	k, err := request.Cluster(in)
	k.Owner = who.Name
	return k, cmp.Or(err, access.CheckRelease(who, "htcondor", in.HTCondor),
		access.CheckPool(who, in.Address, in.Collector))
}

// CheckGlidein checks a caller's request for a glidein. Glidein repeats the check with the site and the cluster.
func CheckGlidein(in api.NewGlidein, now time.Time) error {
	_, err := request.Glidein(in, now)
	return cmp.Or(err, request.CheckLabels(in.Labels))
}

// ReadScale returns the scale that a caller requests, with the names of its sites.
func ReadScale(who access.Caller, in api.NewScale) (corral.Scale, error) {
	s, err := request.Scale(in)
	s.Owner = who.Name
	return s, err
}

// CheckRun checks a caller's request for a run.
func CheckRun(who access.Caller, in api.NewRun) error {
	return cmp.Or(request.CheckRun(in), hostPaths(who, in))
}

// hostPaths refuses folders on corrald's host that the caller may not name. A workflow without source_dir cannot have
// its own inputs or scripts; scripts would run as corrald's user.
func hostPaths(who access.Caller, in api.NewRun) error {
	return access.CheckPaths(who, access.Place{Field: "source_dir", Path: in.SourceDir},
		access.Place{Field: "dir", Path: in.Dir}, access.Place{Field: "done_dir", Path: in.DoneDir},
		access.Place{Field: "rescue", Path: in.Rescue})
}

// CheckPlan checks a caller's request for a plan, and fills in what request.CheckPlan does.
func CheckPlan(who access.Caller, in *api.NewPlan, now time.Time) error {
	err := request.CheckPlan(in, now)
	if err == nil && in.NextRun != nil {
		err = hostPaths(who, in.NextRun.Request(*in))
	}
	return err
}

// CheckEnsemble checks a caller's request for an ensemble, without reading its workflows, and fills in its deadline.
func CheckEnsemble(who access.Caller, in *api.NewEnsemble, now time.Time) error {
	err := request.CheckEnsemble(in, now)
	for _, m := range in.Workflows {
		if err == nil {
			err = access.CheckPaths(who, access.Place{Field: "source_dir", Path: m.SourceDir})
		}
	}
	return err
}

// CheckProfile checks a request to store a profile.
func CheckProfile(in api.NewProfile) error { return request.CheckProfile(in) }

// CheckPackage checks a caller's request to import a package.
func CheckPackage(who access.Caller, in api.NewPackage) error {
	return cmp.Or(request.CheckPackage(in), access.CheckSource(who, "source", in.Source))
}

// ReadMirror returns the mirror that a caller requests.
func ReadMirror(who access.Caller, in api.NewMirror) (corral.Mirror, error) {
	return corral.Mirror{Name: in.Name, URL: in.URL, Owner: who.Name},
		cmp.Or(request.CheckMirror(in), access.CheckSource(who, "url", in.URL))
}

// ReadToken returns the token that a caller requests at now, without an id.
func ReadToken(who access.Caller, in api.NewToken, now time.Time) (corral.Token, error) {
	t, err := request.Token(in, who, now)
	return t, cmp.Or(err, access.CheckMint(who, t))
}
