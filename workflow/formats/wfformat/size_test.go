package wfformat_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// large returns a workflow file of n tasks, each with a command of five arguments, a script as own input, one or two
// files from its parents, and one output.
func large(t testing.TB, n int) []byte {
	t.Helper()
	wf := &workflow.Workflow{Name: "large"}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.FileOrder = true
	for i := range n {
		out := fmt.Sprintf("data/part.%06d.txt", i)
		task := workflow.Task{
			ID:        fmt.Sprintf("transform_ID%06d", i),
			Name:      "transform",
			Argv:      []string{"awk", "-f", "transform.awk", "-v", fmt.Sprintf("n=%d", i), out},
			Inputs:    []string{"transform.awk"},
			Outputs:   []string{out},
			Resources: corral.Resources{MemoryMiB: 64},
		}
		for _, p := range []int{i - 1000, i - 1001} {
			if p >= 0 && i%1000 > 0 {
				task.Inputs = append(task.Inputs, wf.Tasks[p].Outputs[0])
			}
		}
		if err := errors.Join(b.Add(task, workflow.Place{}), b.File(out, int64(i), workflow.Place{})); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := wfformat.Write(&out, wf); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A task needs well below a kilobyte of memory, so that 100,000 need less than 100 MB.
func TestMemoryPerTask(t *testing.T) {
	const n = 10_000
	text := large(t, n)
	before := heap()
	wf, _, err := wfformat.Read(t.Context(), bytes.NewReader(text), "large", workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	perTask := (int64(heap()) - int64(before)) / n
	t.Logf("%d bytes a task in memory, %d in the file", perTask, len(text)/n)
	if perTask > 900 {
		t.Errorf("%d bytes a task, want at most 900", perTask)
	}
	runtime.KeepAlive(wf)
	runtime.KeepAlive(text)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkRead100k(b *testing.B) {
	text := large(b, 100_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := wfformat.Read(b.Context(), bytes.NewReader(text), "large", workflow.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
