package personal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// What the packages of HTCondor are called in the catalog: of workers, and of pools.
const (
	workerPackage = "htcondor"
	poolPackage   = "htcondor-pool"
)

// buildPackages is what to do where packages are missing.
const buildPackages = "`corral package build --from-debian trixie` makes the packages"

// examineHTCondor checks what clusters of kind condor need. Without one, nothing of it has to be there.
func examineHTCondor(ctx context.Context, c Corrald) Finding {
	f := Finding{Check: "HTCondor", OK: true}
	if !c.Answers(ctx) {
		if os.Getuid() == 0 && c.RunAs == "" && stateDir(c.Layout).owner() == "" {
			f.Found, f.Advice = "not for root", "for condor clusters: `corral up --run-as USER`"
			return f
		}
		f.Found = "the catalog is corrald's; " + installed()
		return f
	}
	cl, err := c.Client()
	if err != nil {
		f.OK, f.Found = false, err.Error()
		return f
	}
	defer cl.Close()
	if user, err := c.User(ctx); err == nil && user == "root" {
		f.Found = "corrald runs as root, whose jobs HTCondor refuses"
		f.Advice = "for condor clusters: `corral down`, then `corral up --run-as USER`"
		return f
	}
	if err := condorFindings(ctx, cl, &f); err != nil {
		f.OK, f.Found = false, err.Error()
	}
	return f
}

// condorFindings looks at the packages and the clusters that corrald has. Without packages a condor cluster cannot be
// used; that matters only where there is one.
func condorFindings(ctx context.Context, cl *api.Client, f *Finding) error {
	all, err := cl.Packages(ctx, api.Filter{})
	if err != nil {
		return err
	}
	clusters, err := cl.Clusters(ctx, api.Filter{})
	if err != nil {
		return err
	}
	workers, pools := versions(all, workerPackage), versions(all, poolPackage)
	found := []string{"packages for workers: " + orNone(workers), "for pools: " + orNone(pools), installed()}
	var failed []string
	used := false
	for _, k := range clusters {
		used = used || k.Kind == corral.Condor
		if k.State == corral.ClusterFailed {
			failed = append(failed, fmt.Sprintf("cluster %s is FAILED: %s", k.Name, k.Reason))
		}
	}
	f.Found = strings.Join(append(found, failed...), "; ")
	switch {
	case len(failed) > 0:
		f.OK, f.Advice = false, "mend it and `corral cluster start` it, or remove it"
	case len(workers) == 0 && used:
		f.OK, f.Advice = false, "no site can join a condor cluster: "+buildPackages
	case len(workers) == 0 || len(pools) == 0:
		f.Advice = "for condor clusters: " + buildPackages
	}
	return nil
}

// versions lists the versions of the packages of what, oldest first as the catalog has them.
func versions(all []corral.Package, what string) (of []string) {
	for _, p := range all {
		if p.What == what {
			of = append(of, p.Version+" ("+p.Platform.Arch+")")
		}
	}
	return of
}

// orNone joins the words of a list for people.
func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// installed says whether this machine has an HTCondor of its own, which serves a pool without a package.
func installed() string {
	master, err := exec.LookPath("condor_master")
	if err != nil {
		return "none is installed"
	}
	return master + " is installed"
}
