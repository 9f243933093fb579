package profile

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/corral-pilot/corral/workflow"
)

// A Task says which task is meant: one that was measured, or one whose runtime is to be estimated.
type Task struct {
	Transformation string `json:"transformation"`
	Level          int    `json:"level"`          // in its workflow, from 0; AllLevels: not known
	Host           string `json:"host,omitempty"` // the type of host, see HostType; empty: not known
}

// A Sample is what one successful execution of a task was measured to take.
type Sample struct {
	Task
	Run    string `json:"run"` // which run it belongs to: runs are what estimates are tested on
	ID     string `json:"id"`  // of the task, unique in its run
	Values Values `json:"values"`
}

// AllLevels stands for the level where a transformation is not divided by levels.
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
	if err := s.Values.validate(); err != nil {
		return fmt.Errorf("task %.100q of run %.100q: %w", s.ID, s.Run, err)
	}
	return nil
}

// maxName is how many bytes the name of a transformation may have.
const maxName = 1000

// checkName refuses names that a line of text cannot show.
func checkName(name string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("%.100q is not a name of 1 to %d printable bytes", name, maxName)
	}
	return nil
}

// key is where the sample stands in the order by which samples are kept: as good as random, but always the same. The
// hash is FNV-1a; its bits are mixed by the last step of splitmix64, because those of short texts are not uniform.
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

// Samples returns a sample of each task of w that was measured; run names the execution.
//
// In a Workflow the runtime 0 says that it is not known, and yet there are tasks that were too fast for the clock.
// Such a one is told by what else is known of its execution, its machine say, and its runtime is then 0. The other
// metrics are not set where they are 0.
func Samples(w *workflow.Workflow, run string) []Sample {
	var all []Sample
	for i, task := range Tasks(w) {
		t := &w.Tasks[i]
		if !t.Measured() {
			continue
		}
		s := Sample{Task: task, Run: run, ID: t.ID}
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

// Execution names the execution that w tells of, so that samples of it are known again wherever they are read: by the
// workflow's name and the instant at which it began. otherwise stands for one whose instant is not known.
func Execution(w *workflow.Workflow, otherwise string) string {
	if w.ExecutedAt.IsZero() {
		return otherwise
	}
	return w.Name + " " + w.ExecutedAt.UTC().Format(time.RFC3339Nano)
}

// Tasks says of each task of w what a Profile calls it. The host is that on which it was measured, if it was.
func Tasks(w *workflow.Workflow) []Task {
	hosts := make(map[string]string, len(w.Machines))
	for _, m := range w.Machines {
		hosts[m.Name] = HostType(m)
	}
	levels := w.Graph.Levels()
	all := make([]Task, len(w.Tasks))
	for i := range w.Tasks {
		all[i] = Task{transformation(&w.Tasks[i]), levels[i], hosts[w.Tasks[i].Worker]}
	}
	return all
}

// InputBytes returns the size of the input files of task i; ok is false if the size of one of them is not known.
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

// HostType names machines that are alike: architecture, vendor and number of cores. The clock rate is not part of it:
// traces give that of one moment. It is empty if the number of cores is not known.
func HostType(m workflow.Machine) string {
	if m.CPU.Cores == 0 {
		return ""
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %d cores", m.Arch, m.CPU.Vendor, m.CPU.Cores)), " ")
}

// SiteHosts names the hosts of a site as one type: what a run tells of its tasks is at which site they ran.
func SiteHosts(site string) string { return "site " + site }

// transformation returns the task's name. Some traces have none: there the name is the id, in which a number tells the
// tasks of a transformation apart. The program's name stands for it then, or else the id without that number.
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
