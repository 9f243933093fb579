package personal

import (
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
)

// Without a condor cluster HTCondor is not needed; with one, the findings list what is missing.
func TestCondorFindings(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // none is installed
	of := func(what string) corral.Package {
		return corral.Package{What: what, Version: "23.9.6", Platform: corral.Platform{Arch: "x86_64"}}
	}
	mine := corral.Cluster{Name: "mine", Kind: corral.Condor, State: corral.ClusterReady}
	failed := mine
	failed.State, failed.Reason = corral.ClusterFailed, "the port is taken"
	both := []corral.Package{of("corral-pilot"), of(workerPackage), of(poolPackage)}
	const build = "`corral package build --from-debian trixie`"
	for _, tt := range []struct {
		name     string
		packages []corral.Package
		clusters []corral.Cluster
		ok       bool
		found    string
		advice   string
	}{
		{"nothing", nil, nil, true, "packages for workers: none; for pools: none; none is installed", build},
		{"packages", both, []corral.Cluster{mine}, true, "packages for workers: 23.9.6 (x86_64); for pools: 23.9.6 (x86_64)", ""},
		{"a cluster without packages", nil, []corral.Cluster{mine}, false, "packages for workers: none", build},
		{"a cluster that failed", both, []corral.Cluster{failed}, false, "cluster mine is FAILED: the port is taken", "corral cluster start"},
	} {
		s := &service{packages: tt.packages, clusters: tt.clusters}
		f := Finding{OK: true}
		if err := condorFindings(t.Context(), s.client(t), &f); err != nil {
			t.Fatal(err)
		}
		if f.OK != tt.ok || !strings.Contains(f.Found, tt.found) || !strings.Contains(f.Advice, tt.advice) || tt.advice == "" && f.Advice != "" {
			t.Errorf("%s: %+v, want OK %v, found %q, advice %q", tt.name, f, tt.ok, tt.found, tt.advice)
		}
	}
}
