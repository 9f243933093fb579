package lambda

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// chunks is the number of pieces of the genome: a power of two, so that the merge tree is binary.
const chunks = 16

// A step is a task before its place in the graph is known; its parents are the steps that write the files it reads.
type step struct {
	id       string // its action and, if several share it, a number: "count.03"
	argv     []string
	stdin    string // one of reads
	stdout   string // written in addition to writes
	reads    []string
	writes   []string
	estimate time.Duration
}

// steps returns the workflow's tasks, each after its dependencies.
func steps() []step {
	all := []step{
		{id: "unpack", argv: []string{"gzip", "-dc", GenomeFile}, reads: []string{GenomeFile}, stdout: "lambda.fa", estimate: ms(10)},
		{id: "split", argv: awk("split.awk", "lambda.fa", "n", chunks, "k", longest), reads: []string{"split.awk", "lambda.fa"}, writes: names("chunk", ".fa", chunks), estimate: ms(10)},
	}
	for i := range chunks {
		all = append(all, chunkSteps(fmt.Sprintf(".%02d", i))...)
	}
	all = append(all, mergeSteps()...)
	all = append(all, controlSteps()...)
	return append(all, reportSteps()...)
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// awk returns the argument vector that runs script on file with variables, given as name, value, ….
func awk(script, file string, variables ...any) []string {
	argv := []string{"awk"}
	for i := 0; i < len(variables); i += 2 {
		argv = append(argv, "-v", fmt.Sprintf("%s=%d", variables[i], variables[i+1]))
	}
	if script == "count.awk" || script == "control.awk" {
		argv = append(argv, "-f", "canonical.awk")
	}
	argv = append(argv, "-f", script)
	if file != "" {
		argv = append(argv, file)
	}
	return argv
}

// names returns n names: stem.00suffix, stem.01suffix, ….
func names(stem, suffix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s.%02d%s", stem, i, suffix)
	}
	return all
}

// chunkSteps cleans, counts and sorts chunk nn.
func chunkSteps(nn string) []step {
	chunk, clean, count := "chunk"+nn+".fa", "clean"+nn+".txt", "count"+nn+".txt"
	sorted := "table.0" + nn + ".txt"
	return []step{
		{id: "clean" + nn, argv: awk("clean.awk", "", "k", longest), stdin: chunk, stdout: clean, reads: []string{"clean.awk", chunk}, estimate: ms(10)},
		{id: "count" + nn, argv: awk("count.awk", clean, "k", longest), stdout: count, reads: []string{"canonical.awk", "count.awk", clean}, estimate: ms(40)},
		{id: "sort" + nn, argv: []string{"sort", "-k1,1", "-o", sorted, count}, reads: []string{count}, writes: []string{sorted}, estimate: ms(20)},
	}
}

// mergeSteps adds tables, two at a time; the last step writes words.txt.
func mergeSteps() []step {
	var all []step
	for level, n := 1, chunks/2; n > 0; level, n = level+1, n/2 {
		from, to := names("table."+strconv.Itoa(level-1), ".txt", 2*n), names("table."+strconv.Itoa(level), ".txt", n)
		if n == 1 {
			to[0] = "words.txt"
		}
		for i := range n {
			a, b := from[2*i], from[2*i+1]
			all = append(all, step{
				id:       fmt.Sprintf("merge.%d.%02d", level, i),
				argv:     []string{"awk", "-f", "merge.awk", a, b},
				stdout:   to[i],
				reads:    []string{"merge.awk", a, b},
				estimate: ms(10 << level),
			})
		}
	}
	return all
}

// controlSteps reassembles the genome and compares it with shuffled ones.
func controlSteps() []step {
	clean, chance := names("clean", ".txt", chunks), names("chance", ".txt", controls)
	all := []step{{id: "genome", argv: append([]string{"awk", "FNR == 1"}, clean...), stdout: "genome.txt", reads: clean, estimate: ms(10)}}
	for i, table := range chance {
		all = append(all, step{
			id:       fmt.Sprintf("control.%02d", i),
			argv:     awk("control.awk", "genome.txt", "k", longest, "m", shuffles, "seed", i+1),
			stdout:   table,
			reads:    []string{"canonical.awk", "control.awk", "genome.txt"},
			estimate: ms(1000),
		})
	}
	return append(all, step{
		id:       "mean",
		argv:     append([]string{"awk", "-f", "mean.awk"}, chance...),
		stdout:   "chance.txt",
		reads:    append([]string{"mean.awk"}, chance...),
		estimate: ms(10),
	})
}

// reportSteps makes the tables of the report from words.txt, and the report.
func reportSteps() []step {
	tables := []string{"bases.txt", "chance.txt", "spectrum.txt", "top.txt", "histogram.txt", "sites.txt"}
	length := func(k int) string { return fmt.Sprintf("length($1) == %d", k) }
	return []step{
		{id: "bases", argv: []string{"awk", length(1), "words.txt"}, stdout: "bases.txt", reads: []string{"words.txt"}, estimate: ms(100)},
		{id: "spectrum", argv: awk("spectrum.awk", "words.txt"), stdout: "spectrum.txt", reads: []string{"spectrum.awk", "words.txt"}, estimate: ms(150)},
		{id: "select", argv: []string{"awk", length(shown), "words.txt"}, stdout: "selected.txt", reads: []string{"words.txt"}, estimate: ms(100)},
		{id: "rank", argv: []string{"sort", "-k2,2nr", "-k1,1", "selected.txt"}, stdout: "ranked.txt", reads: []string{"selected.txt"}, estimate: ms(40)},
		{id: "top", argv: []string{"head", "-n", strconv.Itoa(listed), "ranked.txt"}, stdout: "top.txt", reads: []string{"ranked.txt"}, estimate: ms(10)},
		{id: "cut", argv: []string{"cut", "-d", " ", "-f", "2", "ranked.txt"}, stdout: "times.txt", reads: []string{"ranked.txt"}, estimate: ms(10)},
		{id: "order", argv: []string{"sort", "-n", "times.txt"}, stdout: "ordered.txt", reads: []string{"times.txt"}, estimate: ms(20)},
		{id: "histogram", argv: awk("runs.awk", "ordered.txt"), stdout: "histogram.txt", reads: []string{"runs.awk", "ordered.txt"}, estimate: ms(20)},
		{id: "sites", argv: []string{"awk", "-f", "sites.awk", "enzymes.txt", "words.txt"}, stdout: "sites.txt", reads: []string{"sites.awk", "enzymes.txt", "words.txt"}, estimate: ms(100)},
		{id: "report", argv: append(awk("report.awk", ""), tables...), stdout: ReportFile, reads: append([]string{"report.awk"}, tables...), estimate: ms(10)},
	}
}

// generate returns the workflow file. It is deterministic. Output files have no size, and tasks no runtime, because
// these are known only after a run.
func generate() ([]byte, error) {
	wf := &workflow.Workflow{
		Name:        "lambda-spectrum",
		Description: "k-mer spectrum of the complete genome of Enterobacteria phage lambda (NC_001416), against shuffled genomes",
		CreatedAt:   time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
	}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.FileOrder = true
	for _, s := range steps() {
		if err := b.Add(s.task(), workflow.Place{}); err != nil {
			return nil, err
		}
	}
	for _, file := range wf.OwnInputs() {
		info, err := fs.Stat(FS, file)
		if err != nil {
			return nil, err
		}
		if err := b.File(file, info.Size(), workflow.Place{}); err != nil {
			return nil, err
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		return nil, err
	}
	var document bytes.Buffer
	err := wfformat.Write(&document, wf)
	return document.Bytes(), err
}

func (s step) task() workflow.Task {
	transformation, _, _ := strings.Cut(s.id, ".")
	outputs := s.writes
	if s.stdout != "" {
		outputs = append(outputs, s.stdout)
	}
	return workflow.Task{
		ID: s.id, Name: transformation,
		Argv:      s.argv,
		Env:       map[string]string{"LC_ALL": "C"}, // sort and awk compare bytes
		Inputs:    s.reads,
		Outputs:   outputs,
		Streams:   workflow.Streams{Stdin: s.stdin, Stdout: s.stdout},
		Resources: corral.Resources{MemoryMiB: 64},
		Estimate:  s.estimate,
	}
}
