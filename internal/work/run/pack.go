package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// A packed is the last attempt at a task that is done, in a run that packs such attempts: if the task left no files in
// its directory, the worker has removed the directory (executor, pack.go). Its streams were empty, and its record can
// be restored from the journal.
type packed struct {
	room
	logged
}

// gone reports whether the directory of the attempt is missing while the run's other directories are not.
func (p *packed) gone() bool {
	_, run := os.Lstat(p.layout.path(executor.TasksDir))
	_, dir := os.Lstat(p.layout.attempt(p.id, p.last))
	return run == nil && errors.Is(dir, fs.ErrNotExist)
}

// open returns the file that the attempt would have left under one of the names that Log accepts.
func (p *packed) open(which string) (io.ReadCloser, error) {
	switch which {
	case LogTrace:
		return nil, corral.ErrorAt(corral.NotFound, "file", "task %s was not traced", p.id)
	case LogRecord:
	default:
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	o, err := p.outcome()
	if err != nil {
		return nil, corral.ErrorAt(corral.Failed, "dir", "reading the record of task %s: %w", p.id, err)
	}
	r := o.Result(p.run)
	text, err := json.Marshal(executor.Record{Task: p.id, Argv: p.argv, Result: &r})
	return io.NopCloser(bytes.NewReader(append(text, '\n'))), err
}

// outcome finds the record of the attempt's end in the journal. A journal may have hundreds of thousands of lines, so
// lines that cannot belong to this task are not decoded.
func (p *packed) outcome() (*execution.Outcome, error) {
	f, err := input.Open(p.layout.path(journalFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	named := []byte(`"i":` + strconv.Itoa(p.index) + `,`)
	for lines := bufio.NewReaderSize(f, 64<<10); ; {
		line, err := readLine(lines)
		if err != nil {
			return nil, fmt.Errorf("finding its end in the journal: %w", err)
		}
		if !bytes.Contains(line, named) {
			continue
		}
		rec, err := decode(line)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBad, err)
		}
		if o := rec.Finished; o != nil && int(o.Task) == p.index && int(o.Attempt) == p.last {
			return o, nil
		}
	}
}
