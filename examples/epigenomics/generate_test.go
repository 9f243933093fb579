// Package epigenomics is an example workflow. The package contains only the test that writes the workflow.
package epigenomics

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

var update = flag.Bool("update", false, "write workflow.json anew")

const (
	reads  = 10_000 // in reads_1.fq.gz
	bases  = 36     // used of each
	chunks = 16
	merges = 4 // of the first level
)

// A step is a task; its parents are the steps that write the files it reads.
type step struct {
	id, kind string
	argv     []string
	reads    []string
	writes   []string
	stdout   string // written in addition to writes
}

// maq returns a step that runs maq, which is a file of the workflow.
func maq(id, kind string, args, from, to []string) step {
	return step{id: id, kind: kind, argv: append([]string{"./maq"}, args...), reads: append([]string{"maq"}, from...),
		writes: to}
}

// numbered returns format with each number below n.
func numbered(format string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

func steps() []step {
	all := []step{
		{id: "genome", kind: "unpack", argv: []string{"gzip", "-dc", "lambda_virus.fa.gz"},
			reads: []string{"lambda_virus.fa.gz"}, stdout: "lambda.fa"},
		{id: "reads", kind: "unpack", argv: []string{"gzip", "-dc", "reads_1.fq.gz"}, reads: []string{"reads_1.fq.gz"},
			stdout: "reads.fq"},
		maq("reference", "fasta2bfa", []string{"fasta2bfa", "lambda.fa", "lambda.bfa"}, []string{"lambda.fa"},
			[]string{"lambda.bfa"}),
		{id: "fastqSplit", kind: "fastqSplit", argv: []string{"awk", "-v", fmt.Sprint("n=", chunks), "-v",
			fmt.Sprint("bases=", bases), "-v", fmt.Sprint("reads=", reads), "-f", "split.awk", "reads.fq"},
			reads: []string{"split.awk", "reads.fq"}, writes: numbered("reads.%02d.fq", chunks)},
	}
	for i := range chunks {
		n := fmt.Sprintf(".%02d", i)
		raw, clean, binary, placed := "reads"+n+".fq", "clean"+n+".fq", "reads"+n+".bfq", "reads"+n+".map"
		all = append(all,
			step{id: "filterContams" + n, kind: "filterContams", argv: []string{"awk", "-f", "filter.awk", raw},
				reads: []string{"filter.awk", raw}, stdout: clean},
			maq("fast2bfq"+n, "fast2bfq", []string{"fastq2bfq", clean, binary}, []string{clean}, []string{binary}),
			maq("map"+n, "map", []string{"match", placed, "lambda.bfa", binary}, []string{"lambda.bfa", binary},
				[]string{placed}))
	}
	of, parts := numbered("reads.%02d.map", chunks), numbered("part.%d.map", merges)
	for i, part := range parts {
		from := of[i*chunks/merges : (i+1)*chunks/merges]
		all = append(all, maq(fmt.Sprintf("mapMerge.1.%d", i), "mapMerge", append([]string{"mapmerge", part}, from...),
			from, []string{part}))
	}
	pileup := maq("pileup", "pileup", []string{"pileup", "lambda.bfa", "all.map"}, []string{"lambda.bfa", "all.map"}, nil)
	pileup.stdout = "pileup.txt"
	view := maq("mapview", "mapview", []string{"mapview", "all.map"}, []string{"all.map"}, nil)
	view.stdout = "mapview.txt"
	return append(all,
		maq("mapMerge.2", "mapMerge", append([]string{"mapmerge", "all.map"}, parts...), parts, []string{"all.map"}),
		pileup, view,
		step{id: "report", kind: "report", argv: []string{"awk", "-f", "report.awk", "reads.fq", "mapview.txt", "pileup.txt"},
			reads: []string{"report.awk", "reads.fq", "mapview.txt", "pileup.txt"}, stdout: "report.txt"})
}

// document writes the workflow.
func document(t *testing.T) []byte {
	t.Helper()
	flow := &workflow.Workflow{Name: "epigenomics"}
	b := workflow.NewBuilder(flow, workflow.Options{})
	writer := map[string]string{} // :: file → the step that writes it
	for _, s := range steps() {
		outputs := s.writes
		if s.stdout != "" {
			outputs = append(outputs, s.stdout)
		}
		err := b.Add(workflow.Task{ID: s.id, Name: s.kind, Argv: s.argv, Inputs: s.reads, Outputs: outputs,
			Streams: workflow.Streams{Stdout: s.stdout}, Resources: corral.Resources{CPUs: 1}, Estimate: estimates[s.kind],
		}, workflow.Place{})
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range s.reads {
			if parent := writer[file]; parent != "" {
				b.Edge(parent, s.id, workflow.Place{})
			}
		}
		for _, file := range outputs {
			writer[file] = s.id
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := wfformat.Write(&text, flow); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// estimates are approximate runtimes by kind of task; the runtimes of other kinds are negligible.
var estimates = map[string]time.Duration{"map": 100 * time.Millisecond, "pileup": 200 * time.Millisecond}

func TestGenerated(t *testing.T) {
	t.Parallel()
	want := document(t)
	if *update {
		if err := os.WriteFile("workflow.json", want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("workflow.json")
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("workflow.json is not what the generator writes (%v): go test ./examples/epigenomics -update", err)
	}
}
