package lambda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A step is a task before its place in the graph is known: its parents are the steps that write what
// it reads.
type step struct {
	id       string // what it does and, if several do, which one: "count.03"
	argv     []string
	stdin    string // one of reads
	stdout   string // written besides writes
	reads    []string
	writes   []string
	estimate float64 // seconds on a slow processor of 2026
}

// steps returns the workflow's tasks, each after those that it depends on.
func steps() []step {
	all := []step{
		{id: "unpack", argv: []string{"gzip", "-dc", GenomeFile}, reads: []string{GenomeFile}, stdout: "lambda.fa", estimate: 0.01},
		{id: "split", argv: awk("split.awk", "lambda.fa", "n", chunks, "k", longest), reads: []string{"split.awk", "lambda.fa"}, writes: names("chunk", ".fa", chunks), estimate: 0.01},
	}
	for i := range chunks {
		all = append(all, chunkSteps(fmt.Sprintf(".%02d", i))...)
	}
	all = append(all, mergeSteps()...)
	all = append(all, controlSteps()...)
	return append(all, reportSteps()...)
}

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

// names returns stem.00suffix, stem.01suffix, … to n names.
func names(stem, suffix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s.%02d%s", stem, i, suffix)
	}
	return all
}

// chunkSteps clean, count and sort chunk nn.
func chunkSteps(nn string) []step {
	chunk, clean, count := "chunk"+nn+".fa", "clean"+nn+".txt", "count"+nn+".txt"
	sorted := "table.0" + nn + ".txt"
	return []step{
		{id: "clean" + nn, argv: awk("clean.awk", "", "k", longest), stdin: chunk, stdout: clean, reads: []string{"clean.awk", chunk}, estimate: 0.01},
		{id: "count" + nn, argv: awk("count.awk", clean, "k", longest), stdout: count, reads: []string{"canonical.awk", "count.awk", clean}, estimate: 0.04},
		{id: "sort" + nn, argv: []string{"sort", "-k1,1", "-o", sorted, count}, reads: []string{count}, writes: []string{sorted}, estimate: 0.02},
	}
}

// mergeSteps add tables up, two at a time; the last one writes words.txt.
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
				estimate: 0.01 * float64(int(1)<<level),
			})
		}
	}
	return all
}

// controlSteps put the genome together again and compare it with shuffled ones.
func controlSteps() []step {
	clean, chance := names("clean", ".txt", chunks), names("chance", ".txt", controls)
	all := []step{{id: "genome", argv: append([]string{"awk", "FNR == 1"}, clean...), stdout: "genome.txt", reads: clean, estimate: 0.01}}
	for i, table := range chance {
		all = append(all, step{
			id:       fmt.Sprintf("control.%02d", i),
			argv:     awk("control.awk", "genome.txt", "k", longest, "m", shuffles, "seed", i+1),
			stdout:   table,
			reads:    []string{"canonical.awk", "control.awk", "genome.txt"},
			estimate: 1,
		})
	}
	return append(all, step{
		id:       "mean",
		argv:     append([]string{"awk", "-f", "mean.awk"}, chance...),
		stdout:   "chance.txt",
		reads:    append([]string{"mean.awk"}, chance...),
		estimate: 0.01,
	})
}

// reportSteps make the tables of the report from words.txt, and the report.
func reportSteps() []step {
	tables := []string{"bases.txt", "chance.txt", "spectrum.txt", "top.txt", "histogram.txt", "sites.txt"}
	length := func(k int) string { return fmt.Sprintf("length($1) == %d", k) }
	return []step{
		{id: "bases", argv: []string{"awk", length(1), "words.txt"}, stdout: "bases.txt", reads: []string{"words.txt"}, estimate: 0.1},
		{id: "spectrum", argv: awk("spectrum.awk", "words.txt"), stdout: "spectrum.txt", reads: []string{"spectrum.awk", "words.txt"}, estimate: 0.15},
		{id: "select", argv: []string{"awk", length(shown), "words.txt"}, stdout: "selected.txt", reads: []string{"words.txt"}, estimate: 0.1},
		{id: "rank", argv: []string{"sort", "-k2,2nr", "-k1,1", "selected.txt"}, stdout: "ranked.txt", reads: []string{"selected.txt"}, estimate: 0.04},
		{id: "top", argv: []string{"head", "-n", strconv.Itoa(listed), "ranked.txt"}, stdout: "top.txt", reads: []string{"ranked.txt"}, estimate: 0.01},
		{id: "cut", argv: []string{"cut", "-d", " ", "-f", "2", "ranked.txt"}, stdout: "times.txt", reads: []string{"ranked.txt"}, estimate: 0.01},
		{id: "order", argv: []string{"sort", "-n", "times.txt"}, stdout: "ordered.txt", reads: []string{"times.txt"}, estimate: 0.02},
		{id: "histogram", argv: awk("runs.awk", "ordered.txt"), stdout: "histogram.txt", reads: []string{"runs.awk", "ordered.txt"}, estimate: 0.02},
		{id: "sites", argv: []string{"awk", "-f", "sites.awk", "enzymes.txt", "words.txt"}, stdout: "sites.txt", reads: []string{"sites.awk", "enzymes.txt", "words.txt"}, estimate: 0.1},
		{id: "report", argv: append(awk("report.awk", ""), tables...), stdout: ReportFile, reads: append([]string{"report.awk"}, tables...), estimate: 0.01},
	}
}

// The parts of a WfFormat 1.5 file that the example uses.
type (
	wfFile struct {
		Name          string `json:"name"`
		Description   string `json:"description"`
		CreatedAt     string `json:"createdAt"`
		SchemaVersion string `json:"schemaVersion"`
		Workflow      struct {
			Specification struct {
				Tasks []wfTask `json:"tasks"`
				Files []wfData `json:"files"`
			} `json:"specification"`
			Execution struct {
				Makespan   float64  `json:"makespanInSeconds"`
				ExecutedAt string   `json:"executedAt"`
				Tasks      []wfExec `json:"tasks"`
			} `json:"execution"`
		} `json:"workflow"`
	}
	wfTask struct {
		Name     string   `json:"name"`
		ID       string   `json:"id"`
		Parents  []string `json:"parents"`
		Children []string `json:"children"`
		Inputs   []string `json:"inputFiles"`
		Outputs  []string `json:"outputFiles"`
		Corral   wfCorral `json:"x-corral"`
	}
	wfCorral struct {
		MemoryMiB int               `json:"memory_mib"`
		Estimate  float64           `json:"estimate_s"`
		Env       map[string]string `json:"env"`
		Stdin     string            `json:"stdin,omitempty"`
		Stdout    string            `json:"stdout,omitempty"`
	}
	wfData struct {
		ID   string `json:"id"`
		Size int    `json:"sizeInBytes"`
	}
	wfExec struct {
		ID      string    `json:"id"`
		Runtime float64   `json:"runtimeInSeconds"`
		Command wfCommand `json:"command"`
		Cores   int       `json:"coreCount"`
	}
	wfCommand struct {
		Program   string   `json:"program"`
		Arguments []string `json:"arguments"`
	}
)

// Generate returns the workflow file. It is deterministic; sizes of files and runtimes that only a run
// could tell are 0.
func Generate() ([]byte, error) {
	var f wfFile
	f.Name = "lambda-spectrum"
	f.Description = "k-mer spectrum of the complete genome of Enterobacteria phage lambda (NC_001416), against shuffled genomes"
	f.CreatedAt = "2026-11-21T00:00:00Z"
	f.SchemaVersion = "1.5"
	f.Workflow.Execution.ExecutedAt = f.CreatedAt
	producer, number, listed := map[string]string{}, map[string]int{}, map[string]bool{}
	spec := &f.Workflow.Specification
	for i, s := range steps() {
		t := s.task()
		number[t.ID] = i
		for _, name := range append(t.Inputs, t.Outputs...) {
			if !listed[name] {
				listed[name] = true
				spec.Files = append(spec.Files, wfData{ID: name, Size: inputSize(name)})
			}
		}
		for _, name := range t.Outputs {
			producer[name] = t.ID
		}
		for _, name := range t.Inputs {
			if p, ok := producer[name]; ok {
				t.Parents = append(t.Parents, p)
				parent := &spec.Tasks[number[p]]
				parent.Children = append(parent.Children, t.ID)
			}
		}
		spec.Tasks = append(spec.Tasks, t)
		f.Workflow.Execution.Tasks = append(f.Workflow.Execution.Tasks, s.execution())
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(f)
	return b.Bytes(), err
}

func (s step) task() wfTask {
	name, _, _ := strings.Cut(s.id, ".")
	outputs := s.writes
	if s.stdout != "" {
		outputs = append(outputs, s.stdout)
	}
	return wfTask{
		Name: name, ID: s.id,
		Parents: []string{}, Children: []string{},
		Inputs: s.reads, Outputs: outputs,
		Corral: wfCorral{
			MemoryMiB: 64,
			Estimate:  s.estimate,
			Env:       map[string]string{"LC_ALL": "C"}, // sort and awk compare bytes
			Stdin:     s.stdin,
			Stdout:    s.stdout,
		},
	}
}

func (s step) execution() wfExec {
	return wfExec{ID: s.id, Cores: 1, Command: wfCommand{Program: s.argv[0], Arguments: s.argv[1:]}}
}

// inputSize returns the size of a workflow input, 0 for what a task writes.
func inputSize(name string) int {
	b, err := FS.ReadFile(name)
	if err != nil {
		return 0
	}
	return len(b)
}
