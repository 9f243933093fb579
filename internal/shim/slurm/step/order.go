// Package step runs one batch job of the Slurm shim on its worker: the script passed to sbatch.
//
// The worker starts a step as the program of a task (pilot step). The step reads its Order from a file, which sbatch
// has written and corrald has stored: the script and the meaning of its options. It enters the job's directory, opens
// the files of the job's streams, runs the script with the job's environment and limits, and ends with the script's
// status. The worker handles the task's time limit, memory and cancellation; a step only sends the warning signal that
// its user requested before the time limit.
//
// The invariant: a job ends when its script ends. At that time all descendants of the script are killed, including
// those that have left the script's process group, and nothing waits for them.
package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// MaxOrder limits the size of an order, which corrald stores for a task.
const MaxOrder = 1 << 20

// An Order is the description of a job that sbatch passes to the worker.
type Order struct {
	Script      Script   `json:"script"`
	Environment []string `json:"environment"` // KEY=VALUE, without the variables that the step adds
	Place       Place    `json:"place"`
	Streams     Streams  `json:"streams"`
	Limits      Limits   `json:"limits"`
	Facts       Facts    `json:"facts"`
	Array       string   `json:"array,omitempty"` // as in --array; empty: a single job
	Folder      string   `json:"folder"`          // the shim's folder, with sbatch and the other commands
	Base        int64    `json:"base"`            // to be added to a task's number to obtain the job's number
	Probe       bool     `json:"probe,omitempty"` // only check whether the job could start here
	Wide        bool     `json:"wide,omitempty"`  // set only in files: texts are encoded with one character per byte
}

// A Script is a program with an interpreter line.
type Script struct {
	Text string   `json:"text"`
	Name string   `json:"name,omitempty"` // the name of its file; empty: none
	Args []string `json:"args,omitempty"`
}

// A Place is the directory in which a job runs.
type Place struct {
	Directory string `json:"directory"` // absolute
	Mark      uint64 `json:"mark"`      // MarkOf the directory where sbatch ran; 0: not checked
	Submitted string `json:"submitted"` // the directory in which sbatch was called
	Host      string `json:"host"`      // the host where sbatch ran
}

// Streams are the files of a job's standard streams: patterns, relative to its directory.
type Streams struct {
	Input  string `json:"input,omitempty"` // empty: /dev/null
	Output string `json:"output"`
	Error  string `json:"error,omitempty"` // empty: the same as Output
	Append bool   `json:"append,omitempty"`
}

// Limits are the limits of a job's processes.
type Limits struct {
	Umask   int               `json:"umask"`
	Soft    map[string]uint64 `json:"soft,omitempty"`    // :: name as in Rlimits → soft limit
	Time    corral.Seconds    `json:"time_s,omitempty"`  // 0: none; enforced by the worker
	Warning *notation.Warning `json:"warning,omitempty"` // a signal before the time limit
}

// Facts are the properties of a job that the job can read from its environment.
type Facts struct {
	Name      string `json:"name"`
	User      string `json:"user"`
	UID       int    `json:"uid"`
	Account   string `json:"account,omitempty"`
	Cluster   string `json:"cluster"`
	Partition string `json:"partition"`
	notation.Size
	Export string `json:"export,omitempty"` // argument of --export, unless that was ALL
}

// texts returns the order with change applied to all texts that may contain arbitrary bytes from its user.
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

// wide converts each byte of a text to a character, and narrow reverses this. narrow omits characters that do not
// represent a byte.
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

// Encode encodes an order. Scripts, variables and file names may contain bytes that are not valid UTF-8, which JSON
// cannot represent, so an order with such bytes is written wide. An order that is too large for corrald is an error.
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
		err = fmt.Errorf("the script and the environment of the job have %d bytes together, but at most %s are allowed",
			len(b), input.Size(MaxOrder))
	}
	return b, err
}

// Read reads an order from a file.
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

// check refuses orders that sbatch does not write, so that the code below need not handle them.
func (o Order) check() error {
	for what, text := range map[string]string{
		"directory": o.Place.Directory, "output": o.Streams.Output, "error": o.Streams.Error, "input": o.Streams.Input,
	} {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("the job's %s contains a NUL", what)
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
