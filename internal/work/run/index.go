package run

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// An index contains, in columns by task, the data about a finished run's tasks that users request: how each ended, and
// the parts of the workflow that its log needs. It is written when the run ends, because reading a workflow of 100,000
// tasks and replaying its journal takes seconds. It can be rebuilt from these two, which are read for a run without an
// index.
type index struct {
	IDs      []string
	Argv     [][]string
	States   []uint8 // in corral.TaskStates
	Attempts []int32
	Workers  []int32 // in Names
	Exits    []int32
	Started  []execution.Msec
	Ended    []execution.Msec
	Names    []string               // of workers
	Reasons  map[int32]string       // of the tasks that have one
	Causes   map[int32]string       // likewise
	Changed  map[int32][]string     // inputs, of the tasks that have changed some
	Streams  map[int32]indexStreams // of tasks whose streams have names in the workflow or are outputs

	listed func() []api.TaskStatus // its listing, made once because it is requested page by page
}

// indexStreams holds the names of a task's output streams, and whether they are outputs.
type indexStreams struct {
	Stdout, Stderr             string
	StdoutOutput, StderrOutput bool
}

// maxIndexBytes exceeds the size of the index of a workflow of two million tasks.
const maxIndexBytes = 2 << 30

// indexOf returns the index of a state.
func indexOf(s *state) *index {
	n := len(s.plan.flow.Tasks)
	x := &index{
		IDs: make([]string, n), Argv: make([][]string, n), States: make([]uint8, n), Attempts: make([]int32, n),
		Workers: make([]int32, n), Exits: make([]int32, n), Started: make([]execution.Msec, n),
		Ended: make([]execution.Msec, n), Reasons: map[int32]string{}, Causes: map[int32]string{},
		Changed: map[int32][]string{}, Streams: map[int32]indexStreams{},
	}
	number := map[string]int32{}
	for i := range n {
		t, info := &s.plan.flow.Tasks[i], s.x.Task(i)
		x.IDs[i], x.Argv[i] = t.ID, t.Argv
		x.States[i], x.Attempts[i] = uint8(slices.Index(corral.TaskStates, info.State)), int32(info.Begun)
		w, known := number[info.Worker]
		if !known {
			w = int32(len(x.Names))
			number[info.Worker], x.Names = w, append(x.Names, info.Worker)
		}
		x.Workers[i], x.Exits[i] = w, int32(info.Exit)
		x.Started[i], x.Ended[i] = execution.ToMsec(info.StartedAt), execution.ToMsec(info.EndedAt)
		if info.Reason != "" {
			x.Reasons[int32(i)] = info.Reason
		}
		if info.Cause != "" {
			x.Causes[int32(i)] = string(info.Cause)
		}
		if len(info.Changed) > 0 {
			x.Changed[int32(i)] = info.Changed
		}
		out, err := streamsOf(t)
		if own := (indexStreams{out.name, err.name, out.output, err.output}); own != (indexStreams{}) {
			x.Streams[int32(i)] = own
		}
	}
	return x
}

// write writes the index, replacing the previous one.
func (x *index) write(l layout) error {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(x); err != nil {
		return err // unreachable: an index is numbers and texts
	}
	return atomicfile.Replace(l.path(indexFile), text.Bytes(), 0o600)
}

// forgetIndex removes the index of a run that continues.
func forgetIndex(l layout) error {
	if err := os.Remove(l.path(indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return corral.ErrorAt(corral.Failed, "dir", "removing the index of the run's tasks: %w", err)
	}
	return nil
}

// readIndex reads the index of a run. It returns nil if the index is missing, damaged, or for a different number of
// tasks.
func readIndex(row corral.Run) *index {
	text, err := input.ReadFile(layout{row.Dir}.path(indexFile), maxIndexBytes)
	if err != nil {
		return nil
	}
	x := &index{}
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(x); err != nil || !x.whole(row.Tasks.Total) {
		return nil
	}
	x.listed = sync.OnceValue(x.listing)
	return x
}

// whole reports whether the index has n tasks and is consistent.
func (x *index) whole(n int) bool {
	for _, size := range []int{len(x.IDs), len(x.Argv), len(x.States), len(x.Attempts), len(x.Workers), len(x.Exits),
		len(x.Started), len(x.Ended)} {
		if size != n {
			return false
		}
	}
	return !slices.ContainsFunc(x.Workers, func(w int32) bool { return w < 0 || int(w) >= len(x.Names) }) &&
		!slices.ContainsFunc(x.States, func(s uint8) bool { return int(s) >= len(corral.TaskStates) })
}

// listing returns the listing of all tasks, in the order of the workflow.
func (x *index) listing() []api.TaskStatus {
	all := make([]api.TaskStatus, len(x.IDs))
	for i := range all {
		all[i] = api.TaskStatus{
			ID: x.IDs[i], State: corral.TaskStates[x.States[i]], Attempts: int(x.Attempts[i]),
			Worker: x.Names[x.Workers[i]], Reason: x.Reasons[int32(i)],
			StartedAt: x.Started[i].Time(), EndedAt: x.Ended[i].Time(),
			Cause: x.Causes[int32(i)], ChangedInputs: x.Changed[int32(i)],
		}
		if x.Ended[i] != 0 {
			all[i].ExitStatus = new(int(x.Exits[i]))
		}
	}
	return all
}

// task returns the data that the log of a task needs.
func (x *index) task(run corral.RunID, id string) (logged, error) {
	i := slices.Index(x.IDs, id)
	if i < 0 {
		return logged{}, noTask("task", run, id, slices.Values(x.IDs))
	}
	s := x.Streams[int32(i)]
	return logged{
		index: i, id: id, argv: x.Argv[i], last: int(x.Attempts[i]),
		done:   corral.TaskStates[x.States[i]] == corral.TaskDone,
		stdout: stream{s.Stdout, s.StdoutOutput}, stderr: stream{s.Stderr, s.StderrOutput},
	}, nil
}

// indexKept is the time for which an index stays in memory: a list of many tasks is requested page by page.
const indexKept = 10 * time.Second

// indexes caches the index that was read last. Its methods may be called from any goroutine.
type indexes struct {
	mu    sync.Mutex // guards the fields below
	of    corral.RunID
	ended time.Time
	index *index
}

// get returns the index of a run that is over, or nil if it has none.
func (m *indexes) get(row corral.Run) *index {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.index != nil && m.of == row.ID && m.ended.Equal(row.EndedAt) {
		return m.index
	}
	x := readIndex(row)
	if x == nil {
		return nil
	}
	m.of, m.ended, m.index = row.ID, row.EndedAt, x
	time.AfterFunc(indexKept, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.index == x {
			m.index = nil
		}
	})
	return x
}
