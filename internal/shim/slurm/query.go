package slurm

// A query is the common part of the commands that list, show or cancel jobs. They fetch as few jobs as possible:
// clients ask about a few of ten thousand jobs, and ask about all of them every few seconds.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A query is the parsed command line of squeue, sacct, sinfo, sacctmgr, scontrol or scancel. Each of these commands has
// options for some of the fields. An empty list or text selects everything.
type query struct {
	me   string   // the calling user, for --me
	rest []string // words that are not options

	jobs       []notation.JobID
	states     []state  // any of them
	allStates  bool     // "all" was given
	users      []string // names or numbers
	names      []string // of jobs
	partitions []string
	accounts   []string
	qos        []string
	nodes      []string // names
	clusters   string   // a list

	since, until string // the period of sacct
	other        string // "version", "help", "usage" or "helpformat": only this is requested
	quiet        bool   // no errors about jobs that do not exist

	columns    string         // for sinfo and sacctmgr, unparsed
	lines      format[*row]   // for squeue and sacct
	nodeLines  format[*group] // for sinfo
	noHeader   bool
	long       bool     // print the time at the top
	each       bool     // each task of an array on its own line
	sort       []string // letters of columns, with a minus for descending order
	starts     bool     // expected starts
	jobsOnly   bool     // without steps
	eachNode   bool
	summary    bool
	details    bool
	oneLine    bool
	perAccount bool   // a line for each account of a user
	parsable   bool   // for programs
	trailing   bool   // a delimiter after the last field, too
	delimiter  string // between fields
}

// An option is an option of these commands.
type option = notation.Option[query]

// The effects of options that several commands have.
var (
	noHeader   = notation.On(func(q *query) *bool { return &q.noHeader })
	long       = notation.On(func(q *query) *bool { return &q.long })
	each       = notation.On(func(q *query) *bool { return &q.each })
	users      = notation.List(func(q *query) *[]string { return &q.users })
	names      = notation.List(func(q *query) *[]string { return &q.names })
	partitions = notation.List(func(q *query) *[]string { return &q.partitions })
	accounts   = notation.List(func(q *query) *[]string { return &q.accounts })
	qualities  = notation.List(func(q *query) *[]string { return &q.qos })
	clusters   = notation.Text(func(q *query) *string { return &q.clusters })
	columns    = notation.Text(func(q *query) *string { return &q.columns })
)

// other requests a text about the command instead of its work.
func other(q *query, g notation.Given) error {
	q.other = cmp.Or(q.other, g.Name)
	return nil
}

// myself selects the calling user's jobs.
func myself(q *query, _ notation.Given) error {
	q.users = []string{q.me}
	return nil
}

// jobIDs parses a list of jobs.
func jobIDs(q *query, g notation.Given) (err error) {
	q.jobs, err = notation.ParseJobIDs(strings.TrimPrefix(g.Value, "="))
	return err
}

// inStates parses a list of states, in any case and with Slurm's abbreviations. An unknown state is refused with a list
// of the known states.
func inStates(q *query, g notation.Given) error {
	for text := range strings.SplitSeq(g.Value, ",") {
		if strings.EqualFold(text, "all") {
			q.allStates, q.states = true, nil // also discards states given before
			return nil
		}
		s, ok := parseState(text)
		if !ok {
			var known []string
			for _, c := range states {
				known = append(known, string(c.state))
			}
			// Slurm's wording
			return fmt.Errorf("Invalid job state specified: %s\nValid job states include: %s",
				text, strings.Join(known, ","))
		}
		q.states = append(q.states, s)
	}
	return nil
}

// parse parses a command line. stray is the error for a word that is not an option.
func (q *query) parse(c notation.Command[query], words []string, stray string) error {
	rest, err := c.Read(q, words)
	if q.rest = rest; err == nil && stray != "" && len(rest) > 0 {
		return fmt.Errorf("%s %s", stray, rest[0])
	}
	return err
}

// is reports whether id names the job.
func (j *job) is(id notation.JobID) bool {
	if id.Tasks != nil {
		_, ok := slices.BinarySearch(id.Tasks, j.ArrayTask)
		return ok && j.ArrayID == id.Job
	}
	return j.ID == id.Job || j.ArrayID == id.Job
}

// tasks reports whether tasks of arrays were selected by number: in that case each task has its own line.
func (q *query) tasks() bool {
	return slices.ContainsFunc(q.jobs, func(id notation.JobID) bool { return id.Tasks != nil })
}

// wants reports whether the query selects a job.
func (q *query) wants(j *job) bool {
	among := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return (len(q.jobs) == 0 || slices.ContainsFunc(q.jobs, j.is)) &&
		(len(q.states) == 0 || slices.Contains(q.states, j.State)) &&
		(among(q.users, j.Spec.User.Name) || among(q.users, strconv.Itoa(j.Spec.User.UID))) &&
		among(q.names, j.Name) && among(q.partitions, j.Spec.Partition) && among(q.accounts, j.Spec.Account) &&
		among(q.qos, cmp.Or(j.Spec.QOS, "normal"))
}

// choose returns the jobs that the query selects.
func (q *query) choose(jobs []job) (list []job) {
	for i := range jobs {
		if q.wants(&jobs[i]) {
			list = append(list, jobs[i])
		}
	}
	return list
}

// minJobAge is the time for which squeue and scontrol continue to list a job that has ended, unless it is named:
// Slurm's default.
const minJobAge = 300 * time.Second

// chosen requests only the jobs that a query can select, in the order of their numbers. If the query names no jobs,
// jobs that ended before since are omitted.
func (c *call) chosen(q *query, since time.Time) ([]job, error) {
	if len(q.jobs) == 0 {
		jobs, err := c.jobs(api.TaskQuery{States: tasksIn(q.states), Since: since})
		return slices.DeleteFunc(jobs, func(j job) bool {
			return j.State.over() && !j.Ended.IsZero() && j.Ended.Before(since)
		}), err
	}
	found, err := c.expand(q.jobs)
	if err != nil {
		return nil, err
	}
	list := slices.Concat(found...)
	slices.SortFunc(list, func(a, b job) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(list, func(a, b job) bool { return a.ID == b.ID }), nil
}

// jobs requests tasks of the folder's run, and converts them to jobs.
func (c *call) jobs(q api.TaskQuery) ([]job, error) {
	tasks, err := untilAnswered(c, func() ([]api.TaskStatus, error) {
		return c.client.QueryTasks(c.ctx, c.folder.Run, q)
	})
	if err != nil {
		return nil, err
	}
	r, list := newReader(c.folder), make([]job, 0, len(tasks))
	for _, t := range tasks {
		if c.over && !t.State.Over() { // the run was cancelled
			t.State, t.Cause = corral.TaskFailed, corral.CauseWithdrawn
		}
		if t.Grown != nil && len(t.Attributes) > 0 { // others are probes
			list = append(list, r.job(t))
		}
	}
	return list, nil
}

// expand returns the jobs for each entry of a list: an empty list if the entry matches no job.
func (c *call) expand(list []notation.JobID) ([][]job, error) {
	found, base := make([][]job, len(list)), int(c.folder.Base())
	var numbers []int // of tasks
	for _, id := range list {
		if n := id.Job - base; n > 0 && n < numbersPerRun { // otherwise it cannot belong to this folder
			numbers = append(numbers, n)
		}
	}
	// The first request returns single jobs, and the first task of each array, which names the array's other tasks. A
	// second request fetches all tasks of these arrays.
	var jobs []job
	var err error
	request := func(numbers []int) {
		if len(numbers) > 0 && err == nil {
			jobs, err = c.jobs(api.TaskQuery{Numbers: numbers})
		}
	}
	request(numbers)
	meant, arrays := members(jobs, list)
	if arrays {
		numbers = nil
		for _, id := range slices.Concat(meant...) {
			numbers = append(numbers, id-base)
		}
		request(numbers)
	}
	for i, ids := range meant {
		for _, id := range ids {
			if at, ok := slices.BinarySearchFunc(jobs, id, byID); ok {
				found[i] = append(found[i], jobs[at])
			}
		}
	}
	return found, err
}

// byID compares a job with an id, for searching jobs that are sorted by id, as tasks are.
func byID(j job, id int) int { return cmp.Compare(j.ID, id) }

// members returns the ids of the jobs for each entry of a list. firsts contains the existing jobs with the numbers in
// the list: an entry refers to that job alone, or to tasks of its array. arrays reports whether the list refers to any
// arrays.
func members(firsts []job, list []notation.JobID) (meant [][]int, arrays bool) {
	// Each task names all tasks of its array: no further request is needed.
	known := newReader(Folder{})
	meant = make([][]int, len(list))
	for i, id := range list {
		at, ok := slices.BinarySearchFunc(firsts, id.Job, byID)
		if !ok {
			continue
		}
		first := &firsts[at]
		if first.ArrayID == 0 || first.ArrayID != first.ID {
			if id.Tasks == nil {
				meant[i] = []int{first.ID}
			}
			continue
		}
		arrays = true
		tasks := known.array(first.Spec.Array).Tasks
		wanted := id.Tasks
		if wanted == nil {
			wanted = tasks
		}
		for _, n := range wanted {
			if element, ok := slices.BinarySearch(tasks, n); ok {
				meant[i] = append(meant[i], first.ID+element)
			}
		}
	}
	return meant, arrays
}
