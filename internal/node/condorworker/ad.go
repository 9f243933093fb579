package condorworker

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/transfer"
	"github.com/corral-pilot/corral/internal/kit/proc"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
	"github.com/corral-pilot/corral/internal/node/process"
)

// workerAttribute names the attribute of a worker's ad that contains its id. Task reads it inside a job.
const workerAttribute = "CorralWorker"

const (
	// updateMost limits the interval between two updates that a worker sends to the collector, which is otherwise a
	// twentieth of the worker's time. For this long, a restarted pool does not know about the worker.
	updateMost = 10 * time.Second
	updateMin  = 2 * time.Second
	retireMost = 30 * time.Second // final period without new jobs; at most a tenth of the worker's time
	// measureShare is the time between two scans of all processes by HTCondor, divided by the number of processes on
	// the machine. A scan takes about 25 µs for each process; on a machine full of workers, the daemons would otherwise
	// do nothing but scan.
	measureShare = 40 * time.Millisecond
)

// offer returns the configuration that the worker offers to the pool. In addition to HTCondor's own attributes, its ad
// identifies the worker's cluster, site, glidein and attempt in corrald's records, so that corrald can count workers by
// querying the pool. It also contains properties by which a workflow may select workers: the C library, the speed of a
// core, the remaining time. CorralDraining is true once drain has been called.
func offer(o process.Order, now time.Time) condor.GlideinConfig {
	c, j, end := o.Condor, o.Join, now.Add(o.EndsIn)
	self, _ := os.Executable() // optional: without it, jobs lack only the path to this program
	self = strings.TrimSuffix(self, " (deleted)")
	return condor.GlideinConfig{
		Dir: filepath.Join(o.Scratch, "condor"), Release: j.Release,
		Name: machineName(o.ID), Identity: identity(j.Secret),
		Network: condor.GlideinNetwork{
			Collector: j.Way.Collector, Address: j.Way.Address, Ports: j.Ports, CCB: j.Way.Brokers,
		},
		Cpus: o.CPUs, MemoryMiB: int64(o.MemoryMiB), GPUs: gpus(o), Static: c.Static,
		Times: condor.GlideinTimes{
			Retire: end.Add(-min(retireMost, o.EndsIn/10)), End: end,
			Update:  max(updateMin, min(updateMost, o.EndsIn/20)),
			Measure: time.Duration(len(proc.IDs())) * measureShare,
		},
		Fetch:            fetch(self, c.Attached),
		RuntimeAttribute: "CorralRuntime", Speed: o.Speed.Factor(), PIDAttribute: "CorralPID",
		Attributes: classad.Ad{
			"CorralCluster": c.Cluster, "CorralSite": c.Site,
			"CorralGlidein": int64(c.Glidein), "CorralAttempt": int64(c.Attempt),
			workerAttribute: o.ID, "CorralHost": o.Host, "CorralPilot": self,
			"CorralLibc": nodecheck.Libc(), "CorralSpeed": nodecheck.Speed(),
			"CorralCpus": int64(o.CPUs), "CorralMemoryMiB": int64(o.MemoryMiB),
			// The remaining time is computed by each reader of the ad.
			"CorralEnd": end.Unix(), "CorralTimeLeft": classad.Expr("CorralEnd - time()"), "CorralDraining": false,
			jobfiles.HomeAttribute: strings.Join(o.Addresses, " "), jobfiles.HomeDigestAttribute: o.CertDigest,
			jobfiles.SpeedAttribute: o.Speed.Factor(),
		},
	}
}

// FetchCommand is the argument with which HTCondor starts this program to fetch job inputs that are URLs.
const FetchCommand = "fetch"

// fetch returns the command that fetches URLs. In a pool that corrald runs, where no worker has other plugins, it also
// accepts jobs whose URLs it must refuse: a held job shows the reason, while an idle job does not.
func fetch(self string, attached bool) []string {
	switch {
	case self == "":
		return nil
	case attached:
		return []string{self, FetchCommand}
	}
	return []string{self, FetchCommand, transfer.ClaimOthers}
}

// gpus returns the worker's share of its node's GPUs, if any were requested. Otherwise HTCondor detects them.
func gpus(o process.Order) []string {
	if o.GPUs == 0 {
		return nil
	}
	beside := max(1, o.Beside)
	return nodecheck.Share(nodecheck.GPUs(os.Getenv, o.GPUs*beside), o.Place, beside)
}

// identity returns the user that a token authenticates, which the pool requires at the end of a slot's name; "" if the
// token is not in a known format.
func identity(secret string) string {
	token, err := condor.ParseToken(secret)
	if err != nil {
		return ""
	}
	user, domain, _ := strings.Cut(token.Identity, "@")
	return machineName(user) + "@" + domain
}

// machineName converts a worker's id to a name that HTCondor accepts.
func machineName(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, id)
}
