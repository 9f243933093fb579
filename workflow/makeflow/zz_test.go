package makeflow_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

func TestZZ(t *testing.T) {
	for _, n := range []int{16000, 8000} {
		var b strings.Builder
		b.WriteString("A0=" + strings.Repeat("x ", n) + "\n")
		for i := 1; i <= 5; i++ {
			fmt.Fprintf(&b, "A%d=$(A%d)$(A%d)\n", i, i-1, i-1)
		}
		for i := range 5000 {
			fmt.Fprintf(&b, "o%d: $(A5)\n\ttrue\n", i)
		}
		start := time.Now()
		_, _, err := readString(b.String(), workflow.Options{})
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Log(err, time.Since(start), m.Sys>>20)
	}
}
