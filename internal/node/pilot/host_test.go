package pilot

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/node/process"
)

// Checking a node takes up to a minute. In the meantime its host sends the supervisor signs of life: otherwise the host
// would be given up before it can report the node's problem.
//
// It does not run in parallel with other tests: a host reaps every child of its process, and in this process they
// include the pilots for which other tests wait.
func TestHostSendsSignsOfLifeDuringChecks(t *testing.T) {
	in, asks := io.Pipe()
	words, out := io.Pipe()
	defer asks.Close()
	h := &host{pipe: process.NewPipe(in, out), group: process.NewGroup()}
	checked, ended := make(chan error), make(chan process.Word, 1)
	go func() { ended <- h.watch(t.Context(), checked, nil) }()
	said := bufio.NewReader(words)
	for range 2 { // an empty line and the mark
		if _, err := said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	dec := json.NewDecoder(said)
	for range 2 {
		var w process.Word
		if err := dec.Decode(&w); err != nil || w != (process.Word{}) {
			t.Errorf("it says %+v, %v, want an empty word", w, err)
		}
	}
	checked <- errors.New("no route")
	if last := <-ended; last.Left != attempt.LeftUnable || last.Error != "no route" {
		t.Errorf("its last word is %+v", last)
	}
	words.Close()
	h.pipe.Conclude(process.Word{Left: attempt.LeftUnable})
}
