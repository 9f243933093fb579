package personal

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A corrald that `corral up` starts writes to its log, which fails if the disk is full. So it also gets a pipe, to
// which it writes the reason why it ends. The pipe's reader closes once corrald answers, which is harmless: a later
// write to a descriptor other than stdout and stderr returns an error and raises no signal.

// wordsVariable contains the descriptor of that pipe. It is not one of corrald's settings.
const wordsVariable = "CORRAL_LAST_WORDS_FD"

// maxWords limits the last words that are read, in bytes.
const maxWords = 64 << 10

// givePipe adds a pipe for last words to a command that has not been started yet. After the start, the caller must
// close written.
func givePipe(cmd *exec.Cmd) (words, written *os.File, err error) {
	if words, written, err = os.Pipe(); err != nil {
		return nil, nil, fmt.Errorf("starting corrald: %w", err)
	}
	const first = 3 // after stdin, stdout and stderr
	cmd.Env = append(os.Environ(), wordsVariable+"="+strconv.Itoa(first+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, written)
	return words, written, nil
}

// Words forwards a program's standard error and remembers its last line.
type Words struct {
	to   io.Writer
	pipe *os.File // nil: this process got none

	mu   sync.Mutex // guards the fields below
	last []byte
}

// NewWords returns the Words of this process, whose standard error is to. Child processes do not inherit the pipe.
func NewWords(to io.Writer) *Words {
	w := &Words{to: to}
	fd, err := strconv.Atoi(os.Getenv(wordsVariable))
	_ = os.Unsetenv(wordsVariable) // it fails only for an invalid name
	if err == nil && fd > 2 {
		syscall.CloseOnExec(fd)
		w.pipe = os.NewFile(uintptr(fd), "last words")
	}
	return w
}

// Write implements io.Writer. It remembers the text even if the write fails.
func (w *Words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if line := strings.TrimSpace(string(p)); line != "" {
		w.last = []byte(line[strings.LastIndexByte(line, '\n')+1:])
	}
	return w.to.Write(p)
}

// Say writes the last line into the pipe, if there is one. A failing program calls it before it ends.
func (w *Words) Say() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		_, _ = w.pipe.Write(w.last[:min(len(w.last), maxWords)]) // the reader may be gone, because corrald had started
	}
}

// lastOf returns the last words of a corrald that has ended: those in the pipe, otherwise the last line of the log
// after offset, otherwise a description of how it ended.
func lastOf(pipe io.Reader, log string, offset int64, ended *os.ProcessState) string {
	b, err := io.ReadAll(io.LimitReader(pipe, maxWords))
	if words := strings.TrimSpace(string(b)); err == nil && words != "" {
		return words
	}
	if words := lastWords(log, offset); words != "" {
		return words
	}
	return fmt.Sprintf("%s, and its log, %s, is empty: run corrald directly to see its output", ended, log)
}

// maxLastWords is the size of the part of the log that is searched, in bytes.
const maxLastWords = 1 << 20

// lastWords returns the last line of the log if it was written after offset.
func lastWords(log string, offset int64) string {
	f, err := os.Open(log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, offset, maxLastWords))
	if err != nil {
		return err.Error()
	}
	words := strings.TrimSpace(string(b))
	return words[strings.LastIndexByte(words, '\n')+1:]
}
