package slurm

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

func TestSlurmSight(t *testing.T) {
	t.Parallel()
	const out = `queue
squeue: a remark of the site's
12 RUNNING started|None
13 COMPLETED started|None
11 PENDING started|Priority
21 PENDING waits|Resources
22 PENDING waits|Priority
30 COMPLETING ended|None
32 COMPLETED ended|None
40 CANCELLED lost|None
51 PENDING stranger|None
52 RUNNING stranger2|None
60 PENDING again|BeginTime
70 PENDING banned|Job's account not permitted to use this partition (closed allows others not mine)
71 PENDING banned of another|Priority
80 RUNNING starting|None
81 PENDING starting|Priority
90 RUNNING both|None
91 RUNNING both|None
jobs
started 12 1700000000.5 -
waits 21 - -
ended 30 1700000000 1700000000.000000000 1700000009.000000000 3 -
late 31 1700000000 1700000000 1700000009 - walltime:TIMEOUT
lost 40 - -
unsent - - -
again 60 1700000000 -
banned 70 - -
starting 81 - -
both 91 - -
end
`
	sight, err := parseSight([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	tags := []string{"started", "waits", "ended", "late", "lost", "unsent", "stranger", "stranger2", "again", "banned", "starting", "both", "never"}
	if diff := cmp.Diff([]string{"lost 40", "again 60"}, sight.gone(tags)); diff != "" {
		t.Error(diff)
	}
	three, at := 3, time.Unix(1700000000, 0).UTC()
	want := map[string]gridsite.JobStatus{
		"started":  {Tag: "started", ID: "12", Phase: gridsite.Running, StartedAt: at, Extra: []string{"11"}, Past: []string{"13"}},
		"waits":    {Tag: "waits", ID: "21", Phase: gridsite.Queued, Waits: "Resources", Extra: []string{"22"}},
		"ended":    {Tag: "ended", ID: "30", Phase: gridsite.Ended, Exit: &three, StartedAt: at, EndedAt: at.Add(9 * time.Second), Past: []string{"32"}},
		"late":     {Tag: "late", ID: "31", Phase: gridsite.Ended, Killed: gridsite.ByWalltime, Says: "TIMEOUT", StartedAt: at, EndedAt: at.Add(9 * time.Second)},
		"stranger": {Tag: "stranger", ID: "51", Phase: gridsite.Queued}, // a submission that arrived after all
		"starting": {Tag: "starting", ID: "80", Phase: gridsite.Running, Extra: []string{"81"}},
		"both":     {Tag: "both", ID: "91", Phase: gridsite.Running}, // one of them will start first; the other ends by itself
		"banned":   {Tag: "banned", ID: "70", Phase: gridsite.Queued, Waits: "Job's account not permitted to use this partition (closed allows others not mine)", Never: true},
	}
	for _, tag := range tags {
		got, known := sight.status(tag)
		if w, ok := want[tag]; ok != known && tag != "lost" && tag != "again" || ok && cmp.Diff(w, got) != "" {
			t.Errorf("%s: %+v, %v; want %+v", tag, got, known, w)
		}
	}
}

// A truncated answer must not look like jobs that the site does not know.
func TestSlurmSightIsWhole(t *testing.T) {
	t.Parallel()
	const out = "queue\n1 RUNNING a\njobs\na 1 1700000000 -\nend\n"
	if _, err := parseSight([]byte(out)); err != nil {
		t.Fatal(err)
	}
	for n := range len(out) {
		if _, err := parseSight([]byte(out)[:n]); err == nil {
			t.Errorf("%q is taken for whole", out[:n])
		}
	}
}

// Reasons for which a job never starts are distinguished from temporary ones.
func TestSlurmNever(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]bool{
		"PartitionTimeLimit": true, "QOSMaxWallDurationPerJobLimit": true, "AssocMaxWallDurationPerJobLimit": true,
		"QOSMaxCpuPerJobLimit": true, "AssocMaxNodePerJobLimit": true, "AssocMaxCpuMinutesPerJobLimit": true,
		"QOSMaxGRESPerNode": true, "QOSMinCpuNotSatisfied": true, "InvalidAccount": true, "InvalidQOS": true, "BadConstraints": true,
		"Job's QOS not permitted to use this partition (fast allows high not normal)": true,
		"Job's account not known, so it can't use this partition (fast allows them)":  true,

		"Priority": false, "Resources": false, "None": false, "": false, "BeginTime": false, "JobHeldUser": false, "ReqNodeNotAvail, UnavailableNodes:n[1-4]": false,
		"QOSMaxJobsPerUserLimit": false, "QOSMaxCpuPerUserLimit": false, "AssocMaxJobsLimit": false, "QOSGrpCpuLimit": false,
		"AssocGrpCPUMinutesLimit": false, "PartitionDown": false, "PartitionNodeLimit": false, "Licenses": false,
		"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": false,
	} {
		why, never := waits(reason)
		if never != want || (why == "") != (reason == "None" || reason == "") {
			t.Errorf("waits(%q) = %q, %v; want never %v", reason, why, never, want)
		}
	}
}

func TestSlurmRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		said string
		want gridsite.Refused
	}{
		{"sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
			gridsite.Refused{Text: "invalid partition specified: nope; Invalid partition name specified"}},
		{"sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
			gridsite.Refused{Text: "Invalid account or account/partition combination specified"}},
		{"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
			gridsite.Refused{Text: "QOSMaxSubmitJobPerUserLimit; Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", Transient: true, Class: corral.FailureQuota}},
		{"sbatch: error: Batch job submission failed: Requested partition configuration not available now\n",
			gridsite.Refused{Text: "Requested partition configuration not available now"}},
		{"allocation failure: Required partition not available (inactive or drain)\n",
			gridsite.Refused{Text: "Required partition not available (inactive or drain)", Transient: true}},
		{"tar: .new,a,X/order.json: Cannot write: Disk quota exceeded\ntar: .new,a,X/.corral/run: Cannot write: Disk quota exceeded\ntar: Exiting with failure status due to previous errors\n",
			gridsite.Refused{Text: "tar: .new,a,X/order.json: Cannot write: Disk quota exceeded", Transient: true, Class: corral.FailureQuota}},
		{"sbatch: error: Batch job submission failed: Access/permission denied\n",
			gridsite.Refused{Text: "Access/permission denied", Transient: true, Class: corral.FailureAuthentication}},
	} {
		if diff := cmp.Diff(c.want, *refusal([]byte(c.said))); diff != "" {
			t.Errorf("%q: %s", c.said, diff)
		}
	}
}
