package slurm

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
)

// A queuedJob is a line of squeue: Slurm's number of the job, its state, and the reason why it waits.
type queuedJob struct{ id, state, why string }

// waiting lists squeue's states of a job that does not hold its nodes yet, and ended the states of a job that has
// ended. In every other state, including the states of later versions, a job is running or about to run: a live job
// must never be reported as ended.
var (
	waiting = []string{"PENDING", "CONFIGURING", "EXPEDITING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
		"SPECIAL_EXIT", "RESV_DEL_HOLD"}
	ended = []string{"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
		"PREEMPTED", "REVOKED", "TIMEOUT"}
)

// holds reports whether a job that has not ended holds its nodes.
func (j queuedJob) holds() bool { return !slices.Contains(waiting, j.state) }

// A record is the content of a job's directory.
type record struct {
	id      string    // of the started job, or else of the submitted job; empty: unknown
	started time.Time // time recorded by the batch script
	status  *gridsite.JobStatus
}

// A sight is the result of one poll of a site.
type sight struct {
	queue map[string][]queuedJob // live jobs by name, the oldest first
	past  map[string][]string    // ids of ended jobs, by name
	jobs  map[string]record      // by tag
}

// parseSight parses the output of poll.sh and lost.sh. It rejects incomplete output, because jobs would seem to have
// vanished. Lines of squeue with another form belong to other jobs, such as arrays.
func parseSight(out []byte) (sight, error) {
	seen := sight{queue: map[string][]queuedJob{}, past: map[string][]string{}, jobs: map[string]record{}}
	body, ok := bytes.CutSuffix(out, []byte("end\n"))
	_, dirs, found := strings.Cut("\n"+string(body), "\njobs\n")
	if !ok || !found {
		return seen, fmt.Errorf("the answer was cut short")
	}
	queue, _, _ := strings.Cut(string(body), "\njobs\n")
	for line := range strings.Lines(queue) {
		line, why, _ := strings.Cut(strings.TrimSpace(line), "|")
		f := strings.Fields(line)
		switch {
		case len(f) != 3 || !idPattern.MatchString(f[0]):
		case slices.Contains(ended, f[1]):
			seen.past[f[2]] = append(seen.past[f[2]], f[0])
		default:
			seen.queue[f[2]] = append(seen.queue[f[2]], queuedJob{f[0], f[1], why})
		}
	}
	for _, jobs := range seen.queue {
		slices.SortFunc(jobs, func(a, b queuedJob) int { return number(a.id) - number(b.id) })
	}
	for line := range strings.Lines(dirs) {
		if err := seen.read(strings.Fields(line)); err != nil {
			return seen, fmt.Errorf("line %q: %w", line, err)
		}
	}
	return seen, nil
}

// number returns a job's id as a number, or 0 if the job has no number.
func number(id string) int {
	n, _ := strconv.Atoi(id) // digits, because idPattern matched them
	return n
}

// read parses TAG ID STARTED -, or TAG ID STARTED STARTED ENDED EXIT KILLED.
func (v sight) read(f []string) (err error) {
	if len(f) != 4 && len(f) != 7 || !jobdir.IsTag(f[0]) || f[1] != "-" && !idPattern.MatchString(f[1]) {
		return fmt.Errorf("not the status of a job's directory")
	}
	var dir record
	if f[1] != "-" {
		dir.id = f[1]
	}
	if dir.started, err = orZero(f[2]); err != nil {
		return err
	}
	if len(f) == 7 {
		job := gridsite.JobStatus{Tag: f[0], ID: dir.id, Phase: gridsite.Ended}
		if job.StartedAt, err = orZero(f[3]); err != nil {
			return err
		}
		if err = jobdir.ParseEnd(&job, f[4:]); err != nil {
			return err
		}
		dir.status = &job
	}
	v.jobs[f[0]] = dir
	return nil
}

// orZero parses a time; a dash means none.
func orZero(text string) (time.Time, error) {
	if text == "-" {
		return time.Time{}, nil
	}
	return jobdir.ParseTime(text)
}

// gone lists TAG ID of the site's jobs that are not in the queue and have no status. It includes a job that ran and
// waits again because Slurm requeued it: such a job will not run again, because its batch script detects the first
// start.
func (v sight) gone(tags []string) []string {
	var gone []string
	for _, tag := range tags {
		dir, ok := v.jobs[tag]
		if !ok || dir.id == "" || dir.status != nil {
			continue
		}
		alive := slices.ContainsFunc(v.queue[tag], func(j queuedJob) bool {
			return dir.started.IsZero() || j.id == dir.id && j.holds()
		})
		if !alive {
			gone = append(gone, tag+" "+dir.id)
		}
	}
	return gone
}

// status returns the status of the jobs under a tag. The job's own directory has precedence: first a recorded end, then
// a recorded start. Otherwise the status is derived from the queue. If several jobs are queued under the tag, one of
// them is reported, and the others as Extra, to be cancelled.
func (v sight) status(tag string) (gridsite.JobStatus, bool) {
	dir := v.jobs[tag]
	job := gridsite.JobStatus{Tag: tag, ID: dir.id, Phase: gridsite.Queued}
	live := v.queue[tag]
	switch {
	case dir.status != nil:
		job = *dir.status
	case !dir.started.IsZero():
		job.Phase, job.StartedAt = gridsite.Running, dir.started
	case len(live) > 0:
		first := dir.foremost(live)
		_, known := v.jobs[tag]
		if first.holds() {
			if !known { // without its directory it ends at once
				return job, false
			}
			job.Phase = gridsite.Running
		} else {
			job.Waits, job.Never = waits(first.why)
		}
		job.ID = first.id
	case dir.id == "":
		return job, false
	}
	starting := dir.status == nil && dir.started.IsZero()
	for _, j := range live {
		// Of the jobs that Slurm has started, only one begins; it may be any of them.
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

// foremost returns the job that counts while no job has begun: preferably a job that Slurm has started, then the job
// last submitted under the tag, then the oldest job.
func (r record) foremost(live []queuedJob) queuedJob {
	rank := func(j queuedJob) int {
		rank := 0
		if j.holds() && j.state != "COMPLETING" {
			rank += 2
		}
		if j.id == r.id {
			rank++
		}
		return rank
	}
	return slices.MaxFunc(live, func(a, b queuedJob) int { return rank(a) - rank(b) })
}

// neverStarts matches reasons for which Slurm holds an accepted job: the request violates a rule of the partition, the
// association or the QOS, regardless of other jobs. PartitionNodeLimit is excluded, because old versions report it
// while nodes are down.
var neverStarts = regexp.MustCompile(`^(PartitionTimeLimit|BadConstraints|InvalidAccount|InvalidQOS|` +
	`AccountNotAllowed|QOSNotAllowed|DependencyNeverSatisfied|DeadLine|MaxMemPerLimit|` +
	`(Assoc|QOS)Max\w+Per(Job|Node)(Limit)?|QOSMin\w+)$|` +
	` (not permitted to|can't) use this partition`)

// waits returns squeue's reason why a job waits. It is None until Slurm has considered the job.
func waits(reason string) (why string, never bool) {
	if reason == "None" {
		return "", false
	}
	return gridsite.OneLine(reason), neverStarts.MatchString(reason)
}

// passingWords are words of refusals that may not recur later, each with the class of the event that is required first:
// some of the user's jobs must end before more jobs fit the limit, or a person must renew a credential.
var passingWords = map[string]corral.FailureClass{
	"SubmitJob":                corral.FailureQuota,
	"Access/permission denied": corral.FailureAuthentication,
	"Invalid job credential":   corral.FailureAuthentication,
	"Job credential expired":   corral.FailureAuthentication,

	"temporarily unable": "", "temporarily unavailable": "", "not available (inactive or drain)": "",
	"down, drained or reserved": "", "removed meanwhile": "", "try again later": "",
}

// refusal returns Slurm's refusal in its own words: "sbatch: error: Batch job submission failed: X", often preceded by
// the name of the limit or a message of the site's own. Limits on the number of jobs, and nodes that are down, are
// transient; a wrong account or partition is not.
func refusal(stderr []byte) *gridsite.Refused {
	for _, full := range []string{"No space left", "quota exceeded"} { // tar prints many lines about these
		if line := jobdir.LineWith(stderr, full); line != "" {
			return &gridsite.Refused{Text: line, Transient: true, Class: corral.FailureQuota}
		}
	}
	var words []string
	for line := range strings.Lines(gridsite.Printable(string(stderr))) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"sbatch: ", "error: ", "Batch job submission failed: ",
			"allocation failure: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" && !slices.Contains(words, line) {
			words = append(words, line)
		}
	}
	no := &gridsite.Refused{Text: strings.Join(words, "; ")}
	for passing, class := range passingWords {
		if strings.Contains(no.Text, passing) {
			no.Transient, no.Class = true, max(no.Class, class) // at most one of the words has a class
		}
	}
	return no
}
