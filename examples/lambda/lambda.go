// Package lambda is the example workflow that corral demo runs: the k-mer spectrum of the complete
// genome of Enterobacteria phage lambda (NC_001416), as a graph of ordinary POSIX tools.
//
// A k-mer is a word of k letters of the genome; its spectrum says how many different words there are
// and how often they occur. The workflow cuts the genome into chunks, counts the words of 1 to 12
// letters of each, adds the tables up in a tree, and compares the result with shuffled genomes, where
// chance alone made the words. A word that crosses the border of two chunks is counted once, in the
// chunk where it starts: chunks overlap by 11 letters.
//
// FS holds the workflow file and, beside it, its inputs; generate_test.go is where the workflow file comes from.
// Expected computes the same report in a single pass, without the workflow and without its tools, so that a run can be
// checked: the two are equal, byte by byte.
//
// The two ways share nothing but the numbers below and the table of enzymes. The workflow sorts the words of each chunk
// and merges sorted tables, as its tools do best; the single pass (singlepass.go) has an array with an entry for each
// possible word, of which there are 4¹² at most. Chance is the same in both, because both shuffle with the same
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

// Numbers of the workflow, which the two ways of computing it share.
const (
	longest  = 12 // letters of the longest words
	shown    = 8  // letters of the words that the report lists
	listed   = 10 // most frequent words in the report
	controls = 16 // tasks of the control experiment
	shuffles = 3  // genomes that each of them shuffles
)

// Genome returns the genome as FASTA text. The caller closes it.
func Genome() (io.ReadCloser, error) {
	f, err := FS.Open(GenomeFile)
	if err != nil {
		return nil, fmt.Errorf("open the genome: %w", err)
	}
	return gzip.NewReader(f)
}

// Expected returns the report that the workflow has to arrive at.
func Expected() (string, error) {
	g, err := Genome()
	if err != nil {
		return "", err
	}
	defer g.Close()
	return SinglePass(g)
}
