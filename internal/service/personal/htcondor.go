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

// Names of HTCondor's packages in the catalog, for workers and for pools.
const (
	workerPackage = "htcondor"
	poolPackage   = "htcondor-pool"
)

// buildPackages is the advice for missing packages.
const buildPackages = "`corral package build --from-debian trixie` makes the packages"

// examineHTCondor checks the requirements of clusters of kind condor. Without such a cluster, none of them need be
// met.
func examineHTCondor(ctx context.Context, c Corrald) Finding {
	f := Finding{Check: "HTCondor", OK: true}
	if !c.Answers(ctx) {
		if os.Getuid() == 0 && c.RunAs == "" && stateDir(c.Layout).owner() == "" {
			f.Found, f.Advice = "not for root", "for condor clusters: `corral up --run-as USER`"
			return f
		}
		f.Found = "corrald, which has the catalog, is not running; " + installed()
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

// condorFindings checks corrald's packages and clusters. A condor cluster cannot be used without packages, so missing
// packages are a problem only if there is one.
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
		f.OK, f.Advice = false, "fix the problem and run `corral cluster start`, or remove the cluster"
	case len(workers) == 0 && used:
		f.OK, f.Advice = false, "no site can join a condor cluster: "+buildPackages
	case len(workers) == 0 || len(pools) == 0:
		f.Advice = "for condor clusters: " + buildPackages
	}
	return nil
}

// versions lists the versions of the packages whose What is what, oldest first as in the catalog.
func versions(all []corral.Package, what string) (of []string) {
	for _, p := range all {
		if p.What == what {
			of = append(of, p.Version+" ("+p.Platform.Arch+")")
		}
	}
	return of
}

// orNone joins a list's items for people.
func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// installed reports whether HTCondor is installed on this machine; such an installation can serve a pool without a
// package.
func installed() string {
	master, err := exec.LookPath("condor_master")
	if err != nil {
		return "none is installed"
	}
	return master + " is installed"
}
