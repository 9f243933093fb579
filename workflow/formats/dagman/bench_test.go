package dagman_test

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkRead reads a DAG of n nodes with one submit description and macros of their own.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var dag strings.Builder
			for i := range n {
				fmt.Fprintf(&dag, "JOB N%d x\nVARS N%[1]d i=\"%[1]d\"\n", i)
				if i >= 100 {
					fmt.Fprintf(&dag, "PARENT N%d CHILD N%d\n", i-100, i)
				}
			}
			files := folder{"x": "executable = /bin/sleep\narguments = \"$(i) a\"\noutput = o.$(i)\nrequest_memory = 100\nqueue\n"}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := read(dag.String(), files); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}
