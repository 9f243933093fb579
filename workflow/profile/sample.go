package profile

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/workflow"
)

// A Subject identifies a task that was measured, or one whose runtime is to be estimated.
type Subject struct {
	Transformation string `json:"transformation"`
	Level          int    `json:"level"`          // level in its workflow, from 0; AllLevels: not known
	Host           string `json:"host,omitempty"` // the type of host, see HostType; empty: not known
}

// A Sample holds the measurements of one successful execution of a task.
type Sample struct {
	Subject
	Run    string `json:"run"` // the run to which the task belongs; estimates are tested by run
	ID     string `json:"id"`  // id of the task, unique in its run
	Values Values `json:"values"`
}

// AllLevels is the level of a transformation that is not divided by levels.
const AllLevels = -1

func (s *Sample) validate() error {
	if err := checkName(s.Transformation); err != nil {
		return fmt.Errorf("transformation: %w", err)
	}
	if s.Level < AllLevels {
		return fmt.Errorf("level %d is negative", s.Level)
	}
	if s.Values.set == 0 {
		return fmt.Errorf("task %.100q of run %.100q: nothing was measured", s.ID, s.Run)
	}
	return wrap.Errorf(s.Values.validate(), "task %.100q of run %.100q", s.ID, s.Run)
}

// maxName is the maximum length of the name of a transformation in bytes.
const maxName = 1000

// checkName returns an error for a name that cannot be shown in a line of text.
func checkName(name string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("%.100q must be a name of 1 to %d printable bytes", name, maxName)
	}
	return nil
}

// key returns a number that determines which samples are kept: it is as good as random, but always the same for a given
// sample. It is an FNV-1a hash, with its bits mixed by the last step of splitmix64, because FNV-1a is not uniform for
// short texts.
func (s *Sample) key() uint64 {
	h := fnv.New64a()
	for _, part := range []string{s.Run, "\x00", s.ID} {
		_, _ = h.Write([]byte(part))
	}
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Samples returns a sample of each task of w that was measured; run is the name of the execution.
//
// In a Workflow, a runtime of 0 means that the runtime is not known, unless the task was too fast for the clock. Such a
// task is recognised by other known facts about its execution, such as its machine, and the runtime in its sample is 0.
// Other metrics that are 0 are not set.
func Samples(w *workflow.Workflow, run string) []Sample {
	var all []Sample
	for i, task := range Tasks(w) {
		t := &w.Tasks[i]
		if !t.Measured() {
			continue
		}
		s := Sample{Subject: task, Run: run, ID: t.ID}
		s.Values.Set(Runtime, t.Runtime.Seconds())
		for _, x := range []struct {
			m     Metric
			value float64
		}{
			{CPU, t.CPUTime.Seconds()}, {Memory, float64(t.MemoryBytes)},
			{Read, float64(t.ReadBytes)}, {Written, float64(t.WrittenBytes)},
		} {
			if x.value > 0 {
				s.Values.Set(x.m, x.value)
			}
		}
		if size, ok := InputBytes(w, i); ok {
			s.Values.Set(Input, float64(size))
		}
		all = append(all, s)
	}
	return all
}

// Execution returns a name for the execution that w describes. The name consists of the workflow's name and the instant
// at which the execution began, so that its samples are recognised from whichever source they are read. If the instant
// is not known, Execution returns otherwise.
func Execution(w *workflow.Workflow, otherwise string) string {
	if w.ExecutedAt.IsZero() {
		return otherwise
	}
	return w.Name + " " + w.ExecutedAt.UTC().Format(time.RFC3339Nano)
}

// Tasks returns the Subject by which a Profile identifies each task of w. Its host is the type of the host on which the
// task was measured, if it was measured.
func Tasks(w *workflow.Workflow) []Subject {
	hosts := make(map[string]string, len(w.Machines))
	for _, m := range w.Machines {
		hosts[m.Name] = HostType(m)
	}
	levels := w.Graph.Levels()
	all := make([]Subject, len(w.Tasks))
	for i := range w.Tasks {
		all[i] = Subject{transformation(&w.Tasks[i]), levels[i], hosts[w.Tasks[i].Worker]}
	}
	return all
}

// InputBytes returns the total size of the input files of task i; ok is false if the size of one of these files is not
// known.
func InputBytes(w *workflow.Workflow, i int) (bytes int64, ok bool) {
	for _, f := range w.Tasks[i].Inputs {
		size, known := w.FileSizes[f]
		if !known {
			return 0, false
		}
		bytes += size
	}
	return bytes, true
}

// HostType returns a name that is the same for similar machines: it consists of architecture, vendor and number of
// cores. The name does not include the clock rate, because traces contain only the rate at one moment. It is empty if
// the number of cores is not known.
func HostType(m workflow.Machine) string {
	if m.CPU.Cores == 0 {
		return ""
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %d cores", m.Arch, m.CPU.Vendor, m.CPU.Cores)), " ")
}

// SiteHosts returns one name for all hosts of a site, which are treated as one type, because a run records only the
// site at which a task ran.
func SiteHosts(site string) string { return "site " + site }

// transformation returns the name of the task. In some traces the name is the id, which ends with a number that
// distinguishes the tasks of a transformation. In that case, transformation returns the name of the program or, if the
// program is not known, the id without that number.
func transformation(t *workflow.Task) string {
	if t.Name != t.ID {
		return t.Name
	}
	if len(t.Argv) > 0 && t.Argv[0] != "" && !strings.ContainsFunc(t.Argv[0], unicode.IsSpace) {
		return path.Base(t.Argv[0])
	}
	if name, number, ok := cutLast(t.Name, "_ID"); ok && name != "" && strings.Trim(number, "0123456789") == "" {
		return name
	}
	return t.Name
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
