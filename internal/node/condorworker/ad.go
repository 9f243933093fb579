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

// workerAttribute names the attribute of a worker's ad that has its id. Task reads it inside a job.
const workerAttribute = "CorralWorker"

const (
	// updateMost is between two words of a worker to the collector: this, or a twentieth of its time. After a pool has
	// started again it misses the worker for so long.
	updateMost = 10 * time.Second
	updateMin  = 2 * time.Second
	retireMost = 30 * time.Second // before its end a worker takes no more jobs: this, or a tenth of its time
	// measureShare is, for each process of the machine, the time between two looks of HTCondor at all of them. A look
	// takes some 25 µs for each; on a machine that is full of workers they would otherwise do nothing else.
	measureShare = 40 * time.Millisecond
)

// offer is what the worker offers to the pool, and what its ad says besides HTCondor's own attributes: where it belongs
// in corrald's books, so that corrald can count workers by asking the pool; and what a workflow may want to choose by,
// the C library, the speed of a core, the time that is left. CorralDraining is true from drain on.
func offer(o process.Order, now time.Time) condor.GlideinConfig {
	c, j, end := o.Condor, o.Join, now.Add(o.EndsIn)
	self, _ := os.Executable() // without it jobs miss only the path by which they could call this program
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
		RuntimeAttribute: "CorralRuntime", PIDAttribute: "CorralPID",
		Attributes: classad.Ad{
			"CorralCluster": c.Cluster, "CorralSite": c.Site,
			"CorralGlidein": int64(c.Glidein), "CorralAttempt": int64(c.Attempt),
			workerAttribute: o.ID, "CorralHost": o.Host, "CorralPilot": self,
			"CorralLibc": nodecheck.Libc(), "CorralSpeed": nodecheck.Speed(),
			"CorralCpus": int64(o.CPUs), "CorralMemoryMiB": int64(o.MemoryMiB),
			// The time left is computed by whatever asks, when it asks.
			"CorralEnd": end.Unix(), "CorralTimeLeft": classad.Expr("CorralEnd - time()"), "CorralDraining": false,
			jobfiles.HomeAttribute: strings.Join(o.Addresses, " "), jobfiles.HomeDigestAttribute: o.CertDigest,
		},
	}
}

// FetchCommand is the argument with which HTCondor starts this program to fetch the inputs of a job that are URLs.
const FetchCommand = "fetch"

// fetch is the command that does so. In a pool of ours, where no other worker has other plugins, it also takes the jobs
// whose URLs it has to refuse: a job that is held says why, one that stays idle does not.
func fetch(self string, attached bool) []string {
	switch {
	case self == "":
		return nil
	case attached:
		return []string{self, FetchCommand}
	}
	return []string{self, FetchCommand, transfer.ClaimOthers}
}

// gpus are the worker's share of those of its node, if any were asked for. Otherwise HTCondor looks itself.
func gpus(o process.Order) []string {
	if o.GPUs == 0 {
		return nil
	}
	beside := max(1, o.Beside)
	return nodecheck.Share(nodecheck.GPUs(os.Getenv, o.GPUs*beside), o.Place, beside)
}

// identity is the user that a token makes its bearer, which the pool demands as the end of a slot's name; "" if the
// token does not say so in a way that we understand.
func identity(secret string) string {
	token, err := condor.ParseToken(secret)
	if err != nil {
		return ""
	}
	user, domain, _ := strings.Cut(token.Identity, "@")
	return machineName(user) + "@" + domain
}

// machineName makes a worker's id a name that HTCondor takes.
func machineName(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, id)
}
