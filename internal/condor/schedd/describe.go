package schedd

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

// A description holds the common properties of a run's jobs and produces the input for condor_submit. Workers of any
// site may accept a job: its requirements are expressed only by its requests, and its executable is the pilot binary on
// the worker. All other data is in the job's parcel.
type description struct {
	run   corral.RunID
	name  string        // the name of the run in the schedd
	log   string        // the event log
	lease time.Duration // see Config.Lease
}

// requirements are common to all jobs: the worker must be ours, and HTCondor must not have started the job before.
const requirements = `TARGET.CorralAttempt =!= undefined && TARGET.CorralPilot =!= undefined` +
	` && (NumJobStarts ?: 0) == 0`

// of returns the input for condor_submit for the given jobs. Jobs differ as little as possible, so that one job can
// follow another in the same claim.
func (d description) of(jobs []*job) condor.Submit {
	s := condor.Submit{
		ExecutableOf: "CorralPilot", Log: d.log, BatchName: fmt.Sprintf("corral run %d", d.run),
		Requirements: requirements, Request: condor.Request{Cpus: 1, MemoryMiB: 1, DiskMiB: 1},
		Transfer: condor.Transfer{
			When:   "YES",
			Input:  []string{transfer.JobFile, transfer.InDir},
			Output: []string{transfer.ResultFile, transfer.OutDir},
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
		if j.GPUs > 0 { // if absent, HTCondor's matching ignores GPUs
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

// executorMiB is the memory of the executor itself, in MiB.
const executorMiB = 24

// workerMiB is an expression for the memory of the whole worker: the memory of a static slot, or the value that the
// worker reports.
const workerMiB = `ifThenElse(TARGET.SlotType =?= "Static", TARGET.Memory, %s)`

// memory returns a job's memory request. HTCondor puts a job on hold that uses more memory than requested, so the
// request covers the tasks and the executor if the worker has that much memory; for tasks without a requirement, the
// request is a share in proportion to the job's CPUs.
func memory(need int) classad.Expr {
	if need == 0 {
		return classad.Expr(fmt.Sprintf(workerMiB, "TARGET.CorralMemoryMiB * RequestCpus / TARGET.CorralCpus"))
	}
	most := fmt.Sprintf(workerMiB, "TARGET.CorralMemoryMiB")
	return classad.Expr(fmt.Sprintf("max({%d, min({%d, %s})})", need, need+executorMiB, most))
}
