package schedd

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/pool"
)

const submitSize = 1000 // jobs in one condor_submit, at most

// noRoom is how a schedd says that it has too many jobs now.
var noRoom = regexp.MustCompile(`exceed MAX_JOBS_\w+|MAX_JOBS_\w+ exceeded`)

// requirements are those of every job: a worker of ours, and that HTCondor has not started it before.
const requirements = `TARGET.CorralAttempt =!= undefined && TARGET.CorralPilot =!= undefined && (NumJobStarts ?: 0) == 0`

// submit gives the schedd what it does not have.
func (f *feed) submit() {
	for len(f.unsent) > 0 && !f.unsure && f.serving.Err() == nil && !time.Now().Before(f.retryAt) {
		n := min(len(f.unsent), f.size)
		batch := f.unsent[:n:n]
		f.unsent = f.unsent[n:]
		if jobs := f.pack(batch); len(jobs) > 0 && !f.send(jobs) {
			return
		}
	}
}

// pack makes the parcels of those of batch that are still to be submitted.
func (f *feed) pack(batch []*job) []*job {
	var jobs []*job
	now := time.Now()
	for k, j := range batch {
		if f.jobs[j.key] != j || j.id != none || j.end != nil {
			continue
		}
		switch err := pool.Pack(j.dir(), j.Job); {
		case err == nil:
			jobs = append(jobs, j)
		case pool.Passing(err):
			f.unsent = append(batch[k+1:len(batch):len(batch)], f.unsent...)
			f.postpone(j, now, err)
			f.wait("jobs cannot be submitted now", err)
			return jobs
		default:
			f.unprepared(j, now, err)
		}
	}
	return jobs
}

// postpone has a job submitted later that cannot be now, if that is not so for long.
func (f *feed) postpone(j *job, now time.Time, why error) {
	if j.refused.IsZero() {
		j.refused = now
	}
	if now.Sub(j.refused) >= f.q.cfg.Patience {
		f.unprepared(j, now, why)
		return
	}
	f.unsent = append(f.unsent, j)
}

func (f *feed) unprepared(j *job, now time.Time, why error) {
	j.over(failed, now, "its job could not be prepared: "+why.Error())
	f.touched[j] = true
}

// send submits jobs; false if nothing more is to be submitted now.
func (f *feed) send(jobs []*job) bool {
	ctx, cancel := bounded(f.serving)
	defer cancel()
	cluster, err := f.q.cfg.Tools.Submit(ctx, f.description(jobs))
	var no *condor.Refused
	switch {
	case err == nil:
		for k, j := range jobs {
			j.refused = time.Time{}
			f.submitted(j.key, condor.JobID{Cluster: cluster, Proc: k})
		}
		f.size = min(2*f.size, submitSize)
		f.answered(nil)
		f.said = ""
		return true
	case errors.As(err, &no) || errors.Is(err, condor.ErrUnquotable):
		return f.refused(jobs, err)
	}
	f.unsure = true // it may have been done all the same
	f.unsent = append(jobs, f.unsent...)
	f.answered(err)
	return false
}

// refused has jobs submitted again that HTCondor did not want: at once in halves, since one of them may spoil it for
// the others; one alone after the others, and later. What it does not want for long has failed, unless it has no
// room, which comes of other jobs. false if nothing more is to be submitted now.
func (f *feed) refused(jobs []*job, err error) bool {
	now := time.Now()
	for _, j := range jobs {
		switch {
		case noRoom.MatchString(err.Error()):
			j.refused = time.Time{}
		case j.refused.IsZero():
			j.refused = now
		}
	}
	f.size = max(1, len(jobs)/2)
	if len(jobs) > 1 {
		f.unsent = append(jobs, f.unsent...)
		return true
	}
	j := jobs[0]
	if errors.Is(err, condor.ErrUnquotable) || !j.refused.IsZero() && now.Sub(j.refused) >= f.q.cfg.Patience {
		j.over(failed, now, "its job could not be submitted: "+err.Error())
		f.touched[j] = true
		return true
	}
	f.unsent = append(f.unsent, j)
	f.wait("HTCondor takes no job now", err)
	return false
}

// description is what condor_submit gets. All jobs differ as little as they can, so that one may follow another
// in a claim.
func (f *feed) description(jobs []*job) condor.Submit {
	s := condor.Submit{
		ExecutableOf: "CorralPilot", Log: f.log.Path, BatchName: fmt.Sprintf("corral run %d", f.id),
		Requirements: requirements, Cpus: 1, MemoryMiB: 1, DiskMiB: 1,
		TransferFiles: "YES", InputFiles: []string{pool.ParcelJob, pool.ParcelIn}, OutputFiles: []string{pool.ParcelResult, pool.ParcelOut},
		Attributes: condor.Ad{
			runAttribute: f.note.ID, "CorralRun": int64(f.id),
			"JobLeaseDuration": int64(f.q.cfg.Lease.Seconds()),
			"JobMachineAttrs":  "CorralWorker", "JobAdInformationAttrs": keyAttribute + " " + workerAttribute,
		},
	}
	for _, j := range jobs {
		s.Procs = append(s.Procs, condor.Proc{
			Arguments: []string{"task"}, Dir: j.dir(), Stderr: stderrFile,
			Attributes: condor.Ad{
				keyAttribute: j.key, "CorralSeq": j.Seq, "CorralTask": j.Tasks[0].ID,
				"CorralRuntime": j.Estimate().Seconds(), "JobPrio": priority(j.Priority),
				"RequestCpus": int64(max(1, j.CPUs)), "RequestMemory": memory(j.MemoryMiB),
			},
		})
	}
	return s
}

// executorMiB is what the executor needs itself.
const executorMiB = 24

// memory is what a job asks for: what its tasks need and its executor, if the worker has that much, for it is held
// when it takes more than it has asked for; and for tasks that do not say, the share of the job's cpus.
func memory(need int) condor.Expr {
	if need == 0 {
		return `ifThenElse(TARGET.SlotType =?= "Static", TARGET.Memory, TARGET.CorralMemoryMiB * RequestCpus / TARGET.CorralCpus)`
	}
	return condor.Expr(fmt.Sprintf(`max({%d, min({%d, ifThenElse(TARGET.SlotType =?= "Static", TARGET.Memory, TARGET.CorralMemoryMiB)})})`, need, need+executorMiB))
}

// stderrFile is where the executor complains.
const stderrFile = "executor.err"

// priority is an upward rank in whole seconds, which is enough of an order.
func priority(rank float64) int64 {
	return int64(math.Round(max(-math.MaxInt32, min(rank, math.MaxInt32))))
}

// complaint is the end of what the executor had to complain about.
func (j *job) complaint() string {
	text, err := os.ReadFile(j.dir() + "/" + stderrFile)
	if err != nil {
		return ""
	}
	const most = 500
	return string(text[max(0, len(text)-most):])
}
