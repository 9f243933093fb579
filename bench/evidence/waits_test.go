package main

import (
	"testing"
)

// A prediction knows only what had happened when the job was submitted: other waits are censored.
func TestNothingIsKnownEarly(t *testing.T) {
	all, err := readTrace("testdata/kth-sp2.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	for i := 5000; i < len(all); i += 2111 {
		now := epoch.Add(all[i].submitted)
		for _, w := range all.waits(i) {
			if w.SubmittedAt.After(now) || w.StartedAt.After(now) {
				t.Fatalf("job %d, at %s: %+v", i, now, w)
			}
		}
	}
}
