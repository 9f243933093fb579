package stream

import (
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/condor/schedd"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// Names of attributes in the ads of worker jobs.
const (
	numberAttribute     = "CorralStreamNumber"
	glideinAttribute    = "CorralStreamGlidein"
	cpusAttribute       = "CorralStreamCpus"
	needMemoryAttribute = "CorralStreamNeedMemory"
	needGPUsAttribute   = "CorralStreamNeedGPUs"
)

// jobAttributes lists the attributes that are requested for each job in the queue.
var jobAttributes = []string{
	"ClusterId", "ProcId", "JobStatus", "HoldReasonCode", "HoldReason", "EnteredCurrentStatus", "JobPrio",
	"CpusProvisioned", "MemoryProvisioned", "GPUsProvisioned",
	numberAttribute, glideinAttribute, cpusAttribute, needMemoryAttribute, needGPUsAttribute,
}

// heldByUser is HTCondor's code for a hold by condor_hold.
const heldByUser = 1

// jobOf returns the worker job that an ad describes.
func jobOf(ad classad.Ad) WorkerJob {
	j := WorkerJob{ID: schedd.IDOf(ad)}
	j.Number, _ = ad.Int(numberAttribute)
	j.Glidein, _ = ad.Text(glideinAttribute)
	j.Priority, _ = ad.Int("JobPrio")
	since, _ := ad.Int("EnteredCurrentStatus")
	cpus, _ := ad.Int(cpusAttribute)
	status, _ := ad.Int("JobStatus")
	code, _ := ad.Int("HoldReasonCode")
	memory, _ := ad.Int(needMemoryAttribute)
	gpus, _ := ad.Int(needGPUsAttribute)
	j.Since = time.Unix(since, 0)
	switch status {
	case schedd.Idle:
		j.State = Idle
	case schedd.Removed:
		j.State = Leaving
	case schedd.Held:
		if j.State = Held; code == heldByUser {
			j.State = Parked
		}
		j.Hold, _ = ad.Text("HoldReason")
	default: // running, or its files are being transferred
		j.State = Running
		for name, has := range map[string]*int64{
			"CpusProvisioned": &cpus, "MemoryProvisioned": &memory, "GPUsProvisioned": &gpus,
		} {
			if n, ok := ad.Int(name); ok {
				*has = n
			}
		}
	}
	j.CPUs, j.MemoryMiB, j.GPUs = int(cpus), int(memory), int(gpus)
	return j
}

// requirements are the requirements of a worker job: the glidein for which the job was submitted, with room for a
// waiting task.
const requirements = `TARGET.CorralWorker =?= MY.CorralStreamGlidein && TARGET.CorralPilot =!= undefined` +
	` && TARGET.CorralHome =!= undefined` +
	` && TARGET.Cpus >= MY.CorralStreamNeedCpus && TARGET.Memory >= MY.CorralStreamNeedMemory`

// In a divided slot a worker job requests its number of CPUs or all remaining ones, and memory in proportion; the same
// applies to GPUs if a task needs any. A static slot leaves no choice.
const (
	requestCPUs   = "min({CorralStreamCpus, TARGET.Cpus})"
	requestMemory = "max({CorralStreamNeedMemory, TARGET.Memory * RequestCpus / TARGET.Cpus})"
	requestGPUs   = "max({CorralStreamNeedGPUs, TARGET.GPUs * RequestCpus / TARGET.Cpus})"
)

// runnerMiB is the memory in MiB that the worker itself uses in addition to its tasks, which may use all memory of the
// slot.
const runnerMiB = 24

// describe returns the input for condor_submit for worker jobs, whose numbers begin with first. dir contains the
// sandbox file.
func describe(name, dir string, first int64, starts []Order) condor.Submit {
	s := condor.Submit{
		ExecutableOf: "CorralPilot", Dir: dir, BatchName: "corral workers",
		Requirements: requirements, Request: condor.Request{Cpus: 1, MemoryMiB: 1, DiskMiB: 1},
		Transfer: condor.Transfer{When: "YES", Input: []string{jobfiles.StreamFile}, Output: []string{}},
		Attributes: classad.Ad{
			jobfiles.StreamAttribute: name,
			"RequestCpus":            classad.Expr(requestCPUs), "RequestMemory": classad.Expr(requestMemory),
			"RequestDisk": int64(1) << 10, condor.RunnerAttribute: int64(runnerMiB),
		},
	}
	for i, o := range starts {
		number := first + int64(i)
		ad := classad.Ad{
			numberAttribute: number, glideinAttribute: o.Job.Glidein, cpusAttribute: int64(o.Job.CPUs),
			"CorralStreamNeedCpus": int64(max(1, o.Need.CPUs)), needMemoryAttribute: memory(o.Need),
			"JobPrio": o.Job.Priority,
		}
		if o.Need.GPUs > 0 { // if absent, HTCondor's matching ignores GPUs
			ad["RequestGPUs"], ad[needGPUsAttribute] = classad.Expr(requestGPUs), int64(o.Need.GPUs)
		}
		if o.Need.DiskMiB > 0 {
			ad["RequestDisk"] = int64(o.Need.DiskMiB) << 10 // KiB
		}
		s.Procs = append(s.Procs, condor.Proc{
			Arguments: []string{jobfiles.StreamCommand, strconv.FormatInt(number, 10)},
			Stderr:    complaintFile(number), Attributes: ad,
		})
	}
	return s
}

// memory returns the slot's minimum memory for the waiting tasks.
func memory(need corral.Resources) int64 { return int64(max(1, need.MemoryMiB)) }

// complaintFile returns the file in the stream's folder for the error output of a worker job's program.
func complaintFile(number int64) string { return strconv.FormatInt(number, 10) + complaintEnd }

const complaintEnd = ".err"
