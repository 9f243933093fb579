// Package step runs one batch job of the Slurm shim on its worker: the script that was given to sbatch.
//
// The worker starts it as the program of a task (pilot step). It finds its Order in a file, which sbatch has written
// and corrald has kept: the script and all that Slurm would make of its options. It enters the directory, opens the
// files of the job's streams, runs the script with its own environment and limits, and ends as the script ends. The
// task's time limit, its memory and its cancellation are the worker's matter; a step only sends the warning that its
// user wants before the time is up.
//
// Its invariant: a job ends when its script ends. What descends from the script is killed then, also what has left the
// script's process group, and nothing waits for it.
package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// MaxOrder bounds an order: what corrald keeps for a task.
const MaxOrder = 1 << 20

// An Order is a job as sbatch hands it to its worker.
type Order struct {
	Script      Script   `json:"script"`
	Environment []string `json:"environment"` // KEY=VALUE, without what the step adds
	Place       Place    `json:"place"`
	Streams     Streams  `json:"streams"`
	Limits      Limits   `json:"limits"`
	Facts       Facts    `json:"facts"`
	Array       string   `json:"array,omitempty"` // as --array has it; empty: one job
	Folder      string   `json:"folder"`          // of the shim: where sbatch and its like are
	Base        int64    `json:"base"`            // a task's number and this are its job's
	Probe       bool     `json:"probe,omitempty"` // only look whether the job could begin here
	Wide        bool     `json:"wide,omitempty"`  // written only: each text has a character for each of its bytes
}

// A Script is a program with an interpreter line.
type Script struct {
	Text string   `json:"text"`
	Name string   `json:"name,omitempty"` // the file that it was; empty: none
	Args []string `json:"args,omitempty"`
}

// A Place is where a job runs.
type Place struct {
	Directory string `json:"directory"` // absolute
	Mark      uint64 `json:"mark"`      // MarkOf the directory where sbatch ran; 0: any will do
	Submitted string `json:"submitted"` // the directory in which sbatch was called
	Host      string `json:"host"`      // where sbatch ran
}

// Streams are the files of a job's standard streams: patterns, relative to its directory.
type Streams struct {
	Input  string `json:"input,omitempty"` // empty: /dev/null
	Output string `json:"output"`
	Error  string `json:"error,omitempty"` // empty: where Output is
	Append bool   `json:"append,omitempty"`
}

// Limits are what a job's processes are bound to.
type Limits struct {
	Umask   int               `json:"umask"`
	Soft    map[string]uint64 `json:"soft,omitempty"`    // :: name as in SoftLimits → soft limit
	Time    time.Duration     `json:"time,omitempty"`    // 0: none; the worker keeps it
	Warning *notation.Warning `json:"warning,omitempty"` // a signal before the time is up
}

// Facts are what a job is told about itself.
type Facts struct {
	Name      string `json:"name"`
	User      string `json:"user"`
	UID       int    `json:"uid"`
	Account   string `json:"account,omitempty"`
	Cluster   string `json:"cluster"`
	Partition string `json:"partition"`
	notation.Size
	Export string `json:"export,omitempty"` // what followed --export, unless that was ALL
}

// texts returns the order with all that its user may have written in any bytes changed.
func (o Order) texts(change func(string) string) Order {
	all := func(list []string) []string {
		changed := make([]string, len(list))
		for i, text := range list {
			changed[i] = change(text)
		}
		return changed
	}
	for _, text := range []*string{
		&o.Script.Text, &o.Script.Name, &o.Place.Directory, &o.Place.Submitted, &o.Streams.Input, &o.Streams.Output,
		&o.Streams.Error, &o.Facts.Name, &o.Facts.Account, &o.Facts.Export, &o.Folder,
	} {
		*text = change(*text)
	}
	o.Script.Args, o.Environment = all(o.Script.Args), all(o.Environment)
	return o
}

// wide has a character for each byte of a text, and narrow takes that back. A character that no byte became is left
// out.
func wide(text string) string {
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}

func narrow(text string) string {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		if r <= 0xff {
			b = append(b, byte(r))
		}
	}
	return string(b)
}

// Encode writes an order. JSON has no bytes that are not UTF-8, as scripts, variables and names of files may have, so
// an order with such bytes is written wide. One that is longer than corrald keeps is an error.
func (o Order) Encode() ([]byte, error) {
	o.texts(func(text string) string {
		o.Wide = o.Wide || !utf8.ValidString(text)
		return text
	})
	if o.Wide {
		o = o.texts(wide)
	}
	b, err := json.Marshal(o)
	if err == nil && len(b) > MaxOrder {
		err = fmt.Errorf("the script and the environment of the job have %d bytes together, at most %s may be",
			len(b), input.Size(MaxOrder))
	}
	return b, err
}

// Read reads an order from its file.
func Read(name string) (Order, error) {
	b, err := input.ReadFile(name, MaxOrder)
	if err != nil {
		return Order{}, fmt.Errorf("reading the job's order: %w", err)
	}
	return decode(b)
}

func decode(b []byte) (o Order, err error) {
	if err = json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("reading the job's order: %w", err)
	}
	if o.Wide {
		o, o.Wide = o.texts(narrow), false
	}
	return o, o.check()
}

// check refuses what no sbatch writes, so that what follows need not think of it.
func (o Order) check() error {
	for what, text := range map[string]string{
		"directory": o.Place.Directory, "output": o.Streams.Output, "error": o.Streams.Error, "input": o.Streams.Input,
	} {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("the job's %s has a NUL in it", what)
		}
	}
	switch {
	case !strings.HasPrefix(o.Script.Text, "#!"):
		return errors.New("the job's script does not begin with #!")
	case !filepath.IsAbs(o.Place.Directory):
		return fmt.Errorf("the job's directory %q is not absolute", o.Place.Directory)
	case o.Streams.Output == "":
		return errors.New("the job has no file for its output")
	case o.Facts.CPUs < 1 || o.Facts.Tasks < 1:
		return fmt.Errorf("the job has %d tasks on %d cpus", o.Facts.Tasks, o.Facts.CPUs)
	}
	return nil
}
