package schedd

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/embedded/parcel"
)

// A description holds what all jobs of a run have in common and produces the input of condor_submit. Workers of any
// site may accept a job: its requirements are expressed only by its requests, and its executable is the pilot binary
// on the worker. Everything else is in the job's parcel.
type description struct {
	run   corral.RunID
	name  string        // of the run in the schedd
	log   string        // the event log
	lease time.Duration // see Config.Lease
}

// requirements are common to all jobs: one of our workers, and no earlier start of the job by HTCondor.
const requirements = `TARGET.CorralAttempt =!= undefined && TARGET.CorralPilot =!= undefined` +
	` && (NumJobStarts ?: 0) == 0`

// of returns the input of condor_submit for jobs. Jobs differ as little as possible, so that one can follow another
// in a claim.
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
		if j.GPUs > 0 { // otherwise HTCondor's matching ignores GPUs
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

// executorMiB is the executor's own memory.
const executorMiB = 24

// workerMiB is the memory of the whole worker: that of a static slot, or the value that the worker reports.
const workerMiB = `ifThenElse(TARGET.SlotType =?= "Static", TARGET.Memory, %s)`

// memory returns a job's memory request. HTCondor holds a job that uses more, so the request covers the tasks and the
// executor if the worker has that much; tasks without a requirement get a share in proportion to the job's CPUs.
func memory(need int) classad.Expr {
	if need == 0 {
		return classad.Expr(fmt.Sprintf(workerMiB, "TARGET.CorralMemoryMiB * RequestCpus / TARGET.CorralCpus"))
	}
	most := fmt.Sprintf(workerMiB, "TARGET.CorralMemoryMiB")
	return classad.Expr(fmt.Sprintf("max({%d, min({%d, %s})})", need, need+executorMiB, most))
}
