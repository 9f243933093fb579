package gridsite

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSlurmSight(t *testing.T) {
	t.Parallel()
	const out = `queue
squeue: a remark of the site's
12 RUNNING started
11 PENDING started
21 PENDING waits
22 PENDING waits
30 COMPLETING ended
40 CANCELLED lost
51 PENDING stranger
52 RUNNING stranger2
60 PENDING again
jobs
started 12 1700000000.5 -
waits 21 - -
ended 30 1700000000 1700000000.000000000 1700000009.000000000 3 -
lost 40 - -
unsent - - -
again 60 1700000000 -
end
`
	sight, err := parseSlurm([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	tags := []string{"started", "waits", "ended", "lost", "unsent", "stranger", "stranger2", "again", "never"}
	if diff := cmp.Diff([]string{"lost 40", "again 60"}, sight.gone(tags)); diff != "" {
		t.Error(diff)
	}
	three, at := 3, time.Unix(1700000000, 0).UTC()
	want := map[string]JobStatus{
		"started":  {Tag: "started", ID: "12", Phase: Running, StartedAt: at, Extra: []string{"11"}},
		"waits":    {Tag: "waits", ID: "21", Phase: Queued, Extra: []string{"22"}},
		"ended":    {Tag: "ended", ID: "30", Phase: Ended, Exit: &three, StartedAt: at, EndedAt: at.Add(9 * time.Second)},
		"stranger": {Tag: "stranger", ID: "51", Phase: Queued}, // a submission that came in after all
	}
	for _, tag := range tags {
		got, known := sight.status(tag)
		if w, ok := want[tag]; ok != known && tag != "lost" && tag != "again" || ok && cmp.Diff(w, got) != "" {
			t.Errorf("%s: %+v, %v; want %+v", tag, got, known, w)
		}
	}
}

// An answer that was cut short must not look like jobs that the site does not know.
func TestSlurmSightIsWhole(t *testing.T) {
	t.Parallel()
	const out = "queue\n1 RUNNING a\njobs\na 1 1700000000 -\nend\n"
	if _, err := parseSlurm([]byte(out)); err != nil {
		t.Fatal(err)
	}
	for n := range len(out) {
		if _, err := parseSlurm([]byte(out)[:n]); err == nil {
			t.Errorf("%q is taken for whole", out[:n])
		}
	}
}

func TestSlurmRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		said string
		want Refused
	}{
		{"sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
			Refused{Text: "invalid partition specified: nope; Invalid partition name specified"}},
		{"sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
			Refused{Text: "Invalid account or account/partition combination specified"}},
		{"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
			Refused{Text: "QOSMaxSubmitJobPerUserLimit; Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", Transient: true}},
		{"sbatch: error: Batch job submission failed: Requested partition configuration not available now\n",
			Refused{Text: "Requested partition configuration not available now"}},
		{"allocation failure: Required partition not available (inactive or drain)\n",
			Refused{Text: "Required partition not available (inactive or drain)", Transient: true}},
		{"there is no sbatch here\n", Refused{Text: "there is no sbatch here"}},
	} {
		if diff := cmp.Diff(c.want, *slurmRefusal([]byte(c.said))); diff != "" {
			t.Errorf("%q: %s", c.said, diff)
		}
	}
}
