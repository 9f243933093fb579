package submit_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// The allocations for joining lines grow linearly with the text, not quadratically. The test is not parallel, because
// it counts allocations.
func TestJoiningManyLinesTakesLittle(t *testing.T) {
	const lines = 20_000
	text := strings.Repeat("abcd\\\n", lines) + "e"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	line, err := submit.NewLines(strings.NewReader(text), "x", 1<<20).Next()
	runtime.ReadMemStats(&after)
	if err != nil || line.Text != strings.Repeat("abcd", lines)+"e" || line.At.Line != 1 {
		t.Fatalf("Next = %d bytes of line %d, %v", len(line.Text), line.At.Line, err)
	}
	if took, most := after.TotalAlloc-before.TotalAlloc, uint64(100*len(text)); took > most {
		t.Errorf("joining %d bytes took %d, want at most %d", len(text), took, most)
	}
}
