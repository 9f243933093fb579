package process

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/attempt"
)

// A host ends after its last word, even if no reader receives it, and even if an interrupted check sends further words.
func TestLastWordOfAHost(t *testing.T) {
	t.Parallel()
	last := Word{Left: attempt.LeftUnable, Error: "no route"}
	in, open := io.Pipe()
	defer open.Close()
	nobody, out := io.Pipe()
	defer nobody.Close()
	p := NewPipe(in, out)
	for range 2 * pipeWords { // until the pipe has no room
		p.Say(Word{Note: "first"})
	}
	ended := make(chan struct{})
	go func() {
		p.Conclude(last)
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end while its words are not taken")
	}

	var heard strings.Builder
	p = NewPipe(in, &heard)
	p.Say(Word{Note: "first"})
	p.Conclude(last)
	p.Say(Word{Note: "late"})
	<-p.written
	dec := json.NewDecoder(strings.NewReader(heard.String()[len(mark)+1:]))
	var said []Word
	for dec.More() {
		var w Word
		if err := dec.Decode(&w); err != nil {
			t.Fatal(err)
		}
		said = append(said, w)
	}
	if len(said) != 2 || said[0].Note != "first" || said[1] != last {
		t.Errorf("it said %+v, want its first and its last word", said)
	}
}
