// Package lambda is the example workflow of corral demo: the k-mer spectrum of the complete genome of Enterobacteria
// phage lambda (NC_001416), as a graph of ordinary POSIX tools.
//
// A k-mer is a word of k letters of the genome; the spectrum lists how many different words there are and how often
// they occur. The workflow cuts the genome into chunks, counts the words of 1 to 12 letters in each, adds the tables in
// a tree, and compares the result with shuffled genomes, whose words arise by chance alone. A word that crosses the
// border of two chunks is counted once, in the chunk where it starts: chunks overlap by 11 letters.
//
// FS holds the workflow file and its inputs; generate_test.go generates the workflow file. Expected computes the same
// report in a single pass, without the workflow and its tools, so that a run can be checked: the two reports are equal,
// byte by byte.
//
// The two computations share only the numbers below and the table of enzymes. The workflow sorts the words of each
// chunk and merges sorted tables, which suits its tools; the single pass (singlepass.go) uses an array with an entry
// per possible word, at most 4¹². Both shuffle with the same random number generator and the same seeds, the numbers of
// the control tasks.
// generator of random numbers from the same seeds, which are the numbers of the control tasks.
package lambda

import (
	"compress/gzip"
	"embed"
	"fmt"
	"io"
)

// FS holds WorkflowFile and the workflow's own inputs.
//
//go:embed workflow.json lambda_virus.fa.gz *.awk enzymes.txt
var FS embed.FS

// Names of files in FS and among the workflow's outputs.
const (
	WorkflowFile = "workflow.json"
	GenomeFile   = "lambda_virus.fa.gz"
	ReportFile   = "report.txt" // the workflow's last output
)

// Parameters of the workflow, shared by the two computations.
const (
	longest  = 12 // letters of the longest words
	shown    = 8  // letters of the words that the report lists
	listed   = 10 // most frequent words in the report
	controls = 16 // tasks of the control experiment
	shuffles = 3  // genomes shuffled by each of them
)

// Genome returns the genome as FASTA text. The caller closes it.
func Genome() (io.ReadCloser, error) {
	f, err := FS.Open(GenomeFile)
	if err != nil {
		return nil, fmt.Errorf("open the genome: %w", err)
	}
	return gzip.NewReader(f)
}

// Expected returns the report that the workflow must produce.
func Expected() (string, error) {
	g, err := Genome()
	if err != nil {
		return "", err
	}
	defer g.Close()
	return SinglePass(g)
}
