package schedd

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/embedded/parcel"
)

// A description says what all jobs of a run have in common, and makes of it what condor_submit reads. Workers of any
// site may take a job: what a job needs is said by its requests alone, and the pilot binary, which is on the worker, is
// its executable. Everything else travels in the job's parcel.
type description struct {
	run   corral.RunID
	name  string        // of the run in the schedd
	log   string        // the event log
	lease time.Duration // see Config.Lease
}

// requirements are those of every job: a worker of ours, and that HTCondor has not started the job before.
const requirements = `TARGET.CorralAttempt =!= undefined && TARGET.CorralPilot =!= undefined` +
	` && (NumJobStarts ?: 0) == 0`

// of returns what condor_submit gets for jobs. All jobs differ as little as they can, so that one may follow another in
// a claim.
func (d description) of(jobs []*job) condor.Submit {
	s := condor.Submit{
		ExecutableOf: "CorralPilot", Log: d.log, BatchName: fmt.Sprintf("corral run %d", d.run),
		Requirements: requirements, Request: condor.Request{Cpus: 1, MemoryMiB: 1, DiskMiB: 1},
		Transfer: condor.Transfer{
			When:   "YES",
			Input:  []string{parcel.JobFile, parcel.InDir},
			Output: []string{parcel.ResultFile, parcel.OutDir},
		},
		Attributes: classad.Ad{
			runAttribute: d.name, "CorralRun": int64(d.run),
			"JobLeaseDuration": int64(d.lease.Seconds()),
			"JobMachineAttrs":  "CorralWorker", "JobAdInformationAttrs": keyAttribute + " " + workerAttribute,
		},
	}
	for _, j := range jobs {
		ad := classad.Ad{
			keyAttribute: j.key, "CorralSeq": j.Seq, "CorralTask": j.Tasks[0].ID,
			"CorralRuntime": j.Estimate().Seconds(), "JobPrio": Priority(j.Class, j.Priority),
			"RequestCpus": int64(max(1, j.CPUs)), "RequestMemory": memory(j.MemoryMiB),
		}
		if j.GPUs > 0 { // else HTCondor's matching looks at none
			ad["RequestGPUs"] = int64(j.GPUs)
		}
		if j.DiskMiB > 0 {
			ad["RequestDisk"] = int64(j.DiskMiB) << 10 // KiB
		}
		s.Procs = append(s.Procs, condor.Proc{
			Arguments: []string{"task"}, Dir: j.dir(), Stderr: stderrFile,
			Attributes: ad,
		})
	}
	return s
}

// executorMiB is what the executor needs itself.
const executorMiB = 24

// workerMiB is the memory of the whole worker: a static slot's own, or what the worker says of itself.
const workerMiB = `ifThenElse(TARGET.SlotType =?= "Static", TARGET.Memory, %s)`

// memory is what a job asks for. HTCondor holds a job that takes more, so it asks for what its tasks need and for the
// executor, if the worker has that much; tasks that do not say get the share of the job's cpus.
func memory(need int) classad.Expr {
	if need == 0 {
		return classad.Expr(fmt.Sprintf(workerMiB, "TARGET.CorralMemoryMiB * RequestCpus / TARGET.CorralCpus"))
	}
	most := fmt.Sprintf(workerMiB, "TARGET.CorralMemoryMiB")
	return classad.Expr(fmt.Sprintf("max({%d, min({%d, %s})})", need, need+executorMiB, most))
}
