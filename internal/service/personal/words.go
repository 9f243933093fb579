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

// A corrald that `corral up` starts writes to its log, which cannot be written if the disk is full. So it is also given
// a pipe, and writes there why it ends. The pipe's reader is gone once corrald answers, which does no harm: a write to
// a descriptor other than stdout and stderr gives an error then, and no signal.

// wordsVariable names the descriptor of that pipe. It is not one of corrald's settings.
const wordsVariable = "CORRAL_LAST_WORDS_FD"

// maxWords bounds what is read of last words, in bytes.
const maxWords = 64 << 10

// givePipe gives a command that is not started yet a pipe for its last words. After the start, written must be closed.
func givePipe(cmd *exec.Cmd) (words, written *os.File, err error) {
	if words, written, err = os.Pipe(); err != nil {
		return nil, nil, fmt.Errorf("starting corrald: %w", err)
	}
	const first = 3 // after stdin, stdout and stderr
	cmd.Env = append(os.Environ(), wordsVariable+"="+strconv.Itoa(first+len(cmd.ExtraFiles)))
	cmd.ExtraFiles = append(cmd.ExtraFiles, written)
	return words, written, nil
}

// Words passes on what a program writes to its standard error, and remembers the last line of it.
type Words struct {
	to   io.Writer
	pipe *os.File // nil: this process was given none

	mu   sync.Mutex // guards following
	last []byte
}

// NewWords returns the Words of this process, whose standard error is to. The pipe is not for those that it starts.
func NewWords(to io.Writer) *Words {
	w := &Words{to: to}
	fd, err := strconv.Atoi(os.Getenv(wordsVariable))
	_ = os.Unsetenv(wordsVariable) // fails for a name that none could have
	if err == nil && fd > 2 {
		syscall.CloseOnExec(fd)
		w.pipe = os.NewFile(uintptr(fd), "last words")
	}
	return w
}

// Write implements io.Writer. What cannot be written is remembered all the same.
func (w *Words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if line := strings.TrimSpace(string(p)); line != "" {
		w.last = []byte(line[strings.LastIndexByte(line, '\n')+1:])
	}
	return w.to.Write(p)
}

// Say writes the last line into the pipe, if there is one. It is for the end of a program that fails.
func (w *Words) Say() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		_, _ = w.pipe.Write(w.last[:min(len(w.last), maxWords)]) // its reader may be gone: corrald had started
	}
}

// lastOf returns the last words of a corrald that has ended: those in the pipe, else the last line of the log after
// offset, else how it ended.
func lastOf(pipe io.Reader, log string, offset int64, ended *os.ProcessState) string {
	b, err := io.ReadAll(io.LimitReader(pipe, maxWords))
	if words := strings.TrimSpace(string(b)); err == nil && words != "" {
		return words
	}
	if words := lastWords(log, offset); words != "" {
		return words
	}
	return fmt.Sprintf("%s, and nothing is in its log, %s: run corrald itself to see what it says", ended, log)
}

// maxLastWords is how much of the log is looked at.
const maxLastWords = 1 << 20

// lastWords returns the last line of the log, if one was written after offset.
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
