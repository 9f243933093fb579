package pilot

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A host ends with its last word, though nobody takes it, and though a check that was cut short has more to say.
func TestHostsLastWord(t *testing.T) {
	t.Parallel()
	h, last := &host{out: make(chan word, 1)}, word{Left: leftUnable, Error: "no route"}
	h.say(word{Note: "first"})
	ended := make(chan struct{})
	go func() {
		h.conclude(last, nil) // there is no room for it
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end while nobody takes its words")
	}

	var out strings.Builder
	written := make(chan struct{})
	go h.write(&out, written)
	h.conclude(last, written)
	h.say(word{Note: "late"})
	<-written
	dec := json.NewDecoder(strings.NewReader(out.String()[len(hostMark)+1:]))
	var said []word
	for dec.More() {
		var w word
		if err := dec.Decode(&w); err != nil {
			t.Fatal(err)
		}
		said = append(said, w)
	}
	if len(said) != 2 || said[0].Note != "first" || said[1] != last {
		t.Errorf("it said %+v, want its first and its last word", said)
	}
}
