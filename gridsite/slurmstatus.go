package gridsite

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A slurmJob is a line of squeue.
type slurmJob struct{ id, state, why string }

// waiting and ended are what squeue calls a job that does not hold its nodes yet, and one that is over. In every other
// state, also one that only later versions have, it runs, or almost: of a live job it must never be said that it is over.
var (
	waiting = []string{"PENDING", "CONFIGURING", "EXPEDITING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
	ended   = []string{"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}
)

// holds reports whether a job that has not ended has its nodes.
func (j slurmJob) holds() bool { return !slices.Contains(waiting, j.state) }

// A slurmDir is what the directory of a job says.
type slurmDir struct {
	id      string    // of the job that started; else of the one that was submitted; empty: neither is known
	started time.Time // by the batch script
	status  *JobStatus
}

// A slurmSight is what one look at a site saw.
type slurmSight struct {
	queue map[string][]slurmJob // what has not ended, by name, the oldest first
	past  map[string][]string   // the ids of what has, by name
	jobs  map[string]slurmDir   // by tag
}

// parseSlurm reads what poll.sh and lost.sh print, and takes nothing that is not whole.
func parseSlurm(out []byte) (slurmSight, error) {
	sight := slurmSight{queue: map[string][]slurmJob{}, past: map[string][]string{}, jobs: map[string]slurmDir{}}
	body, ok := bytes.CutSuffix(out, []byte("end\n"))
	_, dirs, found := strings.Cut("\n"+string(body), "\njobs\n")
	if !ok || !found {
		return sight, fmt.Errorf("the answer was cut short")
	}
	queue, _, _ := strings.Cut(string(body), "\njobs\n")
	for line := range strings.Lines(queue) {
		line, why, _ := strings.Cut(strings.TrimSpace(line), "|")
		f := strings.Fields(line)
		switch {
		case len(f) != 3 || !slurmID.MatchString(f[0]):
		case slices.Contains(ended, f[1]):
			sight.past[f[2]] = append(sight.past[f[2]], f[0])
		default:
			sight.queue[f[2]] = append(sight.queue[f[2]], slurmJob{f[0], f[1], why})
		}
	}
	for _, jobs := range sight.queue {
		slices.SortFunc(jobs, func(a, b slurmJob) int { return number(a.id) - number(b.id) })
	}
	for line := range strings.Lines(dirs) {
		if err := sight.read(strings.Fields(line)); err != nil {
			return sight, fmt.Errorf("line %q: %w", line, err)
		}
	}
	return sight, nil
}

func number(id string) int {
	n, _ := strconv.Atoi(id) // slurmID matched it
	return n
}

// read reads TAG ID STARTED -, or TAG ID STARTED STARTED ENDED EXIT KILLED.
func (v slurmSight) read(f []string) (err error) {
	if len(f) != 4 && len(f) != 7 || !tagPattern.MatchString(f[0]) || f[1] != "-" && !slurmID.MatchString(f[1]) {
		return fmt.Errorf("not what a job's directory says")
	}
	var dir slurmDir
	if f[1] != "-" {
		dir.id = f[1]
	}
	if dir.started, err = orZero(f[2]); err != nil {
		return err
	}
	if len(f) == 7 {
		job := JobStatus{Tag: f[0], ID: dir.id, Phase: Ended}
		if job.StartedAt, err = orZero(f[3]); err != nil {
			return err
		}
		if job.EndedAt, err = parseTime(f[4]); err != nil {
			return err
		}
		if job.Exit, err = parseExit(f[5]); err != nil {
			return err
		}
		if job.Killed, err = parseKilled(f[6]); err != nil {
			return err
		}
		dir.status = &job
	}
	v.jobs[f[0]] = dir
	return nil
}

func orZero(text string) (time.Time, error) {
	if text == "-" {
		return time.Time{}, nil
	}
	return parseTime(text)
}

// gone lists TAG ID of the jobs that the site had and that neither the queue has nor a status speaks of. One that ran
// and waits again is among them: it will not run again.
func (v slurmSight) gone(tags []string) []string {
	var gone []string
	for _, tag := range tags {
		dir, ok := v.jobs[tag]
		if !ok || dir.id == "" || dir.status != nil {
			continue
		}
		alive := slices.ContainsFunc(v.queue[tag], func(j slurmJob) bool {
			return dir.started.IsZero() || j.id == dir.id && j.holds()
		})
		if !alive {
			gone = append(gone, tag+" "+dir.id)
		}
	}
	return gone
}

// status says what is known of the jobs under a tag.
func (v slurmSight) status(tag string) (JobStatus, bool) {
	dir := v.jobs[tag]
	job := JobStatus{Tag: tag, ID: dir.id, Phase: Queued}
	live := v.queue[tag]
	switch {
	case dir.status != nil:
		job = *dir.status
	case !dir.started.IsZero():
		job.Phase, job.StartedAt = Running, dir.started
	case len(live) > 0:
		first := dir.foremost(live)
		_, known := v.jobs[tag]
		if first.holds() {
			if !known { // without its directory it ends at once
				return job, false
			}
			job.Phase = Running
		} else {
			job.Waits, job.Never = slurmWaits(first.why)
		}
		job.ID = first.id
	case dir.id == "":
		return job, false
	}
	starting := dir.status == nil && dir.started.IsZero()
	for _, j := range live {
		// Of those that Slurm has started only one begins, and it may be any.
		if j.id != job.ID && j.state != "COMPLETING" && !(starting && j.holds()) {
			job.Extra = append(job.Extra, j.id)
		}
	}
	for _, id := range v.past[tag] {
		if job.ID != "" && id != job.ID {
			job.Past = append(job.Past, id)
		}
	}
	return job, true
}

// foremost is the job that counts while none has begun: one that Slurm has started, then the one that was submitted last
// under the tag, then the oldest.
func (d slurmDir) foremost(live []slurmJob) slurmJob {
	rank := func(j slurmJob) int {
		rank := 0
		if j.holds() && j.state != "COMPLETING" {
			rank += 2
		}
		if j.id == d.id {
			rank++
		}
		return rank
	}
	return slices.MaxFunc(live, func(a, b slurmJob) int { return rank(a) - rank(b) })
}

// slurmNever are reasons for which Slurm keeps a job that it has taken: what was asked for breaks a rule of the partition,
// the association or the QOS, and no end of other jobs changes that. PartitionNodeLimit is not among them: old versions
// say so while nodes are down.
var slurmNever = regexp.MustCompile(`^(PartitionTimeLimit|BadConstraints|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed|` +
	`DependencyNeverSatisfied|DeadLine|MaxMemPerLimit|(Assoc|QOS)Max\w+Per(Job|Node)(Limit)?|QOSMin\w+)$| (not permitted to|can't) use this partition`)

// slurmWaits reads the reason that squeue gives for a job that waits. It is None until Slurm has looked at the job.
func slurmWaits(reason string) (why string, never bool) {
	if reason == "None" {
		return "", false
	}
	return oneLine(reason), slurmNever.MatchString(reason)
}

// slurmPassing are words of refusals that a later submission may not meet.
var slurmPassing = []string{
	"SubmitJob", "temporarily unable", "temporarily unavailable", "not available (inactive or drain)",
	"down, drained or reserved", "removed meanwhile", "try again later",
}

// slurmRefusal is Slurm's no, in its words: "sbatch: error: Batch job submission failed: X", and before that often the
// name of the limit, or a sentence of the site's.
func slurmRefusal(stderr []byte) *Refused {
	for _, full := range []string{"No space left", "quota exceeded"} { // of the job's directory: then tar says a lot
		if line := lineWith(stderr, full); line != "" {
			return &Refused{Text: line, Transient: true}
		}
	}
	var words []string
	for line := range strings.Lines(printable(string(stderr))) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"sbatch: ", "error: ", "Batch job submission failed: ", "allocation failure: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" && !slices.Contains(words, line) {
			words = append(words, line)
		}
	}
	no := &Refused{Text: strings.Join(words, "; ")}
	for _, passing := range slurmPassing {
		no.Transient = no.Transient || strings.Contains(no.Text, passing)
	}
	return no
}

var startAt = regexp.MustCompile(`to start at ([0-9T:-]+)`)

// parseEstimate reads "Job 7 to start at 2026-11-22T02:58:00 using ...", in UTC.
func parseEstimate(out []byte) (time.Time, error) {
	m := startAt.FindSubmatch(out)
	if m == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse("2006-01-02T15:04:05", string(m[1]))
	if err != nil {
		return time.Time{}, corral.Errorf(corral.Unknown, "the start that Slurm estimates: %w", err)
	}
	return at, nil
}
