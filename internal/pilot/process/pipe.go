package process

import (
	"bufio"
	"encoding/json"
	"io"
	"time"
)

// hostMark is the line after which a host's words begin: login shells and prologues print what they like before it.
const hostMark = "corral pilot host"

const (
	pipeWords  = 64                     // that wait for the supervisor to take them
	reportTime = 500 * time.Millisecond // for the last one to be taken
)

// A Pipe is a host's side of the conversation with its supervisor, over the stdin and stdout that srun or ssh carry.
// Whatever becomes of the supervisor, no method of a Pipe waits long for it.
type Pipe struct {
	Asks chan Ask // closed when the supervisor is gone

	words   chan Word
	written chan struct{} // closed when the last word has been written
	done    chan struct{} // closed when nothing receives from Asks any longer
}

// NewPipe begins to listen at in and to write to out. The caller ends it with Conclude.
func NewPipe(in io.Reader, out io.Writer) *Pipe {
	p := &Pipe{
		Asks: make(chan Ask), words: make(chan Word, pipeWords),
		written: make(chan struct{}), done: make(chan struct{}),
	}
	go p.hear(in)
	go p.write(out)
	return p
}

// Say has a word written. It is dropped if there is no room: the supervisor has not taken any for long.
func (p *Pipe) Say(w Word) {
	select {
	case p.words <- w:
	default:
	}
}

// Conclude has the last word written, unless the supervisor takes nothing any more. Words that are said later, by a
// check that was cut short, are lost.
func (p *Pipe) Conclude(last Word) {
	close(p.done)
	patience := time.NewTimer(reportTime)
	defer patience.Stop()
	select {
	case p.words <- last:
	case <-patience.C:
		return
	}
	select {
	case <-p.written:
	case <-patience.C:
	}
}

// write writes words up to the last one.
func (p *Pipe) write(out io.Writer) {
	defer close(p.written)
	_, err := io.WriteString(out, "\n"+hostMark+"\n")
	enc := json.NewEncoder(out)
	for w := range p.words {
		if err == nil {
			err = enc.Encode(w)
		}
		if w.Last() {
			return
		}
	}
}

// hear receives what the supervisor asks until it is gone.
func (p *Pipe) hear(in io.Reader) {
	defer close(p.Asks)
	dec := json.NewDecoder(bufio.NewReader(in))
	for {
		var a Ask
		if dec.Decode(&a) != nil {
			return
		}
		select {
		case p.Asks <- a:
		case <-p.done:
			return
		}
	}
}
