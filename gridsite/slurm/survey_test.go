package slurm

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// A transcript answers a survey with the output of a real site, with MARK in place of the mark.
type transcript struct {
	gridsite.Conn
	out string
}

func (c transcript) Run(_ context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	return gridsite.Result{Stdout: []byte(strings.ReplaceAll(c.out, "MARK", cmd.Argv[4]))}, nil
}

func recorded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "survey", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The transcripts in testdata/survey are of real tools; review every change of their interpretation.
func TestSurveyOfSlurm(t *testing.T) {
	t.Parallel()
	const accounts = "slurm-22.05-accounts.txt"
	tests := []struct {
		name, transcript string
		options          corral.BatchOptions
		change           func(string) string
		want             string
	}{
		{name: "default account", transcript: accounts, want: `"batch":"slurm 22.05.8","max_jobs":2,"max_submit":8,"free_mib":72819,"queues":[
			{"name":"normal","default":true,"max_walltime_s":86400,"nodes":2,"cpus":4,"memory_mib":3000,"gpus":2,"cpu_memory_mib":500,"node_types":[
				{"count":1,"cpus":4,"memory_mib":3000,"gpus":2},{"count":1,"cpus":2,"memory_mib":1000}]},
			{"name":"short","max_walltime_s":600,"max_nodes":1,"nodes":1,"cpus":2,"memory_mib":1000,"cpu_memory_mib":400},
			{"name":"gpu","max_walltime_s":7200,"nodes":1,"cpus":3,"memory_mib":2500,"gpus":2,"cpu_memory_mib":750},
			{"name":"empty","max_walltime_s":1800,"node_types":null}]`},
		{name: "whole nodes", transcript: accounts, change: strings.NewReplacer("OverSubscribe=NO", "OverSubscribe=EXCLUSIVE", "|0\n", "|20000\n").Replace,
			want: `"queues":[{"node_types":[{"count":1,"disk_mib":20000,"whole":true}]}]`},
		{name: "queue with an association of its own", transcript: accounts, options: corral.BatchOptions{Queue: "short"}, want: `"max_jobs":1`},
		{name: "queue with a QOS", transcript: accounts, options: corral.BatchOptions{Queue: "gpu"}, want: `"max_jobs":1,"max_submit":3`},
		{name: "a QOS that lifts the partition's walltime", transcript: accounts, options: corral.BatchOptions{Account: "chem"},
			want: `"max_jobs":4,"queues":[{"name":"normal","max_walltime_s":259200,"max_nodes":2},{"name":"short","max_nodes":1}]`},
		{name: "the account's walltime", transcript: accounts, options: corral.BatchOptions{Account: "chem", QOS: "normal"},
			want: `"max_jobs":0,"queues":[{"name":"normal","max_walltime_s":300}]`},
		{name: "an account that the user has not", transcript: accounts, options: corral.BatchOptions{Account: "bio"},
			want: `"max_jobs":0,"queues":[{"name":"normal","closed":"the user has no account \"bio\" for this queue"}]`},
		{name: "an account in capitals", transcript: accounts, options: corral.BatchOptions{Account: "CHEM", QOS: "Normal"},
			want: `"notes":null,"queues":[{"name":"normal","max_walltime_s":300}]`},
		{name: "a QOS that there is not", transcript: accounts, options: corral.BatchOptions{QOS: "lnog"}, change: strings.NewReplacer("associations,limits,qos", "none").Replace,
			want: `"notes":null,"queues":[{"name":"normal","closed":"there is no QOS \"lnog\""}]`},
		{name: "an account that may run no jobs", transcript: accounts, change: strings.NewReplacer("phys||2|8|", "phys||0|-1|").Replace,
			want: `"max_jobs":0,"max_submit":0,"queues":[{"name":"normal","closed":"MaxJobs of account phys is 0"},{"name":"short"}]`},
		{name: "a QOS that may submit no jobs", transcript: accounts, change: strings.NewReplacer("gpuq||1|3|", "gpuq|||0|").Replace,
			want: `"queues":[{"name":"normal"},{"name":"short"},{"name":"gpu","closed":"MaxSubmitJobsPerUser of QOS gpuq is 0"}]`},
		{name: "no walltime", transcript: accounts, options: corral.BatchOptions{Account: "chem", QOS: "normal"}, change: strings.NewReplacer("|00:05:00|", "|00:00:00|").Replace,
			want: `"queues":[{"name":"normal","closed":"MaxWall of account chem is 0"}]`},
		{name: "limits that are not enforced", transcript: accounts, change: strings.NewReplacer("associations,limits,qos", "none").Replace,
			want: `"max_jobs":0,"max_submit":0,"notes":null,"queues":[{"name":"normal","max_nodes":0}]`},
		{name: "no accounting", transcript: "slurm-22.05.txt", want: `"max_jobs":0,"notes":null,"queues":[{"name":"normal","max_walltime_s":86400,"cpus":2}]`},
		{name: "accounting that does not answer", transcript: accounts,
			change: strings.NewReplacer("MARK end associations 0 ", "MARK end associations 1 sacctmgr: error: Connection refused").Replace,
			want:   `"max_jobs":0,"notes":["the policy for the user is not known: sacctmgr: sacctmgr: error: Connection refused"],"queues":[{"name":"normal","max_walltime_s":86400}]`},
		{name: "an allowance above the account", transcript: accounts,
			want: `"notes":null,"allowance":{"account":"science","cpu_minutes":90000,"used_cpu_minutes":0}`},
		{name: "the user's own allowance", transcript: accounts, change: strings.NewReplacer("cpu=100000(0)", "cpu=100000(99000)", "cpu=90000(0)", "cpu=90000(1000)").Replace,
			want: `"allowance":{"account":"phys","cpu_minutes":100000,"used_cpu_minutes":99000}`},
		{name: "no allowance", transcript: accounts, options: corral.BatchOptions{Account: "chem"}, want: `"notes":null,"allowance":null`},
		{name: "an allowance that is not enforced", transcript: accounts, change: strings.NewReplacer("associations,limits,qos", "none").Replace,
			want: `"notes":null,"allowance":null`},
		{name: "accounts that are hidden", transcript: accounts,
			change: strings.NewReplacer("\nMARK end config", "PrivateData             = accounts,reservations\n\nMARK end config", "|phys|", "|geo|", "Flags=MAINT", "Flags=FLEX").Replace,
			want:   `"notes":["the account's remaining allowance is not known: PrivateData hides accounts"],"allowance":null`},
		{name: "reservations that are hidden", transcript: "slurm-22.05.txt",
			change: strings.NewReplacer("\nMARK end config", "PrivateData             = accounts,reservations\n\nMARK end config").Replace,
			want:   `"notes":["the maintenance schedule is not known: PrivateData hides reservations"],"maintenance":null`},
		{name: "no answer about the account", transcript: accounts, change: strings.NewReplacer("MARK end used 0 ", "MARK end used 1 access denied").Replace,
			want: `"notes":["the account's remaining allowance is not known: scontrol: access denied"]`},
		{name: "maintenance", transcript: accounts,
			want: `"maintenance":[{"name":"maint","queue":"normal","nodes":2,"from":"2026-11-23T05:46:07Z","to":"2026-11-23T06:46:07Z"},{"name":"maint","queue":"short","nodes":1},
			{"name":"part","queue":"normal","nodes":1},{"name":"part","queue":"short","nodes":1},{"name":"wholepart"}]`},
		{name: "no billing weights", transcript: accounts, want: `"notes":null,"price":null`},
		{name: "billing by the sum of the weights", transcript: accounts, change: weighted("CPU=1.0,Mem=0.25G,GRES/gpu=2.0", ""),
			want: `"notes":null,"price":"1ch/sum(cpu=1,mem=0.25,gpu=2)-hour"`},
		{name: "billing by the greatest weight", transcript: accounts, options: corral.BatchOptions{Queue: "normal,gpu"},
			change: weighted("CPU=0.5,Mem=0.0009765625,GRES/gpu:a100=3,GRES/gpu:t4=1", "PriorityFlags           = ACCRUE_ALWAYS,MAX_TRES\n"),
			want:   `"notes":null,"price":"1ch/max(cpu=0.5,mem=1,gpu=3)-hour"`},
		{name: "billing by gpus beside the greatest weight", transcript: accounts, change: weighted("CPU=1.0", "PriorityFlags           = MAX_TRES_GRES\n"),
			want: `"notes":["the price is not known: billing by PriorityFlags=MAX_TRES_GRES cannot be used"],"price":null`},
		{name: "weights without the flags", transcript: "slurm-22.05.txt", change: func(out string) string {
			return strings.NewReplacer("MARK end config 0 ", "MARK end config 1 access denied").Replace(weighted("CPU=1.0", "")(out))
		}, want: `"notes":["the policy for the user is not known: scontrol: access denied","the price is not known: scontrol show config: access denied"],"price":null`},
		{name: "weights of one of two partitions", transcript: accounts, options: corral.BatchOptions{Queue: "normal,gpu"},
			change: strings.NewReplacer("PartitionName=gpu ", "PartitionName=gpu TRESBillingWeights=CPU=2 ").Replace,
			want:   `"notes":["the price is not known: the partitions that the site uses have different billing weights"],"price":null`},
		{name: "weights of other resources", transcript: accounts, change: weighted("CPU=1,license/matlab=5", ""),
			want: `"notes":["the price is not known: TRESBillingWeights of partition normal: \"license/matlab=5\" cannot be used"],"price":null`},
		{name: "a quota", transcript: accounts,
			change: strings.NewReplacer("MARK end quota 1", "/dev/vda 3076 0 20480 0 2 0 0 0\nMARK end quota 0").Replace,
			want:   `"free_mib":16,"quota_mib":16,"notes":null`},
		{name: "a quota that is used up", transcript: accounts,
			change: strings.NewReplacer("MARK end quota 1", "/dev/vda 20480* 0 20480 0 2 0 0 0\nMARK end quota 1").Replace,
			want:   `"free_mib":0,"quota_mib":0,"notes":["the quota on /dev/vda is used up"]`},
		{name: "no df", transcript: accounts, change: strings.NewReplacer("MARK end space 0 ", "MARK end space 127 sh: df: not found").Replace,
			want: `"free_mib":-1,"notes":["the free space is not known: sh: df: not found"]`},
		{name: "a greeting between the lines", transcript: accounts, change: strings.NewReplacer("MARK begin", "Welcome!\nMARK begin").Replace,
			want: `"max_jobs":2,"notes":null,"free_mib":72819`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := recorded(t, tt.transcript)
			if tt.change != nil {
				out = tt.change(out)
			}
			facts, err := New(transcript{out: out}, "/srv/site").Survey(t.Context(), tt.options)
			if err != nil {
				t.Fatal(err)
			}
			holds(t, facts, "{"+tt.want+"}")
		})
	}
}

// weighted adds billing weights to each partition of a transcript, and lines to Slurm's settings.
func weighted(weights, config string) func(string) string {
	return strings.NewReplacer(" TotalCPUs=", " TRESBillingWeights="+weights+" TotalCPUs=",
		"\nMARK end config", config+"\nMARK end config").Replace
}

// holds checks that facts match all values in want. Lists are compared up to their length in want.
func holds(t *testing.T, facts corral.SiteFacts, want string) {
	t.Helper()
	var w map[string]any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, e := range differences("", got, w) {
		t.Error(e)
	}
}

// differences lists the parts of want that are missing from got. Values that JSON omits count as 0.
func differences(at string, got, want any) []string {
	var all []string
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			all = append(all, differences(at+"."+k, g[k], v)...)
		}
		return all
	case []any:
		g, _ := got.([]any)
		for i, v := range w {
			if i >= len(g) {
				return append(all, at+" is too short")
			}
			all = append(all, differences(at, g[i], v)...)
		}
		return all
	}
	if got == nil && want == 0.0 || reflect.DeepEqual(got, want) {
		return nil
	}
	b, _ := json.Marshal([]any{got, want})
	return []string{at + ": got and want: " + string(b)}
}

func TestSurveyOfSilentSlurm(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"": "the survey of the site failed",
		"MARK begin version\n\nMARK end version 127 sh: 1: sinfo: not found\n": "sinfo: not found",
		"MARK begin version\nslurm 20.02\nMARK end version 0 \nMARK begin partitions\nMARK end partitions 1 slurm_load_partitions: Unable to contact slurm controller (connect failure)\n":                                   "Unable to contact",
		"MARK begin version\nslurm 20.02\nMARK end version 0 \nMARK begin partitions\nPartitionName=a MaxTime=soon\nMARK end partitions 0 \n":                                                                                `MaxTime of partition a: "soon" is not a time`,
		"MARK begin version\nslurm 20.02\nMARK end version 0 \nMARK begin partitions\nPartitionName=a MaxTime=1:00:00 MaxNodes=-1\nMARK end partitions 0 \n":                                                                 "MaxNodes of partition a",
		"MARK begin version\nslurm 20.02\nMARK end version 0 \nMARK begin partitions\nNodeName=a\nMARK end partitions 0 \n":                                                                                                  "no partition in",
		"MARK begin version\nslurm 20.02\nMARK end version 0 \nMARK begin partitions\nPartitionName=a\n(cut off)":                                                                                                            "scontrol: no answer",
		"MARK begin version\nslurm 20.02\nMARK end version 0 \nMARK begin partitions\nMARK end partitions 124 ":                                                                                                              "within 20 s",
		"MARK begin version\nslurm 20.02\nMARK end version 0 \nMARK begin partitions\nPartitionName=a MaxTime=UNLIMITED MaxNodes=99999999999\nMARK end partitions 0 \nMARK begin nodes\na|1|2|(null)|1\nMARK end nodes 0 \n": "is not a number",
	} {
		_, err := New(transcript{out: out}, "/srv/site").Survey(t.Context(), corral.BatchOptions{})
		if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q: %v, want a Failed error with %q", out, err, want)
		}
	}
}

func TestSlurmGPUs(t *testing.T) {
	t.Parallel()
	for gres, want := range map[string]int{
		"(null)": 0, "": 0, "gpu:4": 4, "gpu": 1, "gpu:a100:2": 2, "gpu:a100:2(S:0-1)": 2, "gpu:tesla": 1,
		"gpu:a100:2(S:0-1),gpu:h100:1,nvme:8": 3, "nvme:1,gpu:2(IDX:0,1)": 2, "mygpu:3": 0, "gpu:2g.20gb:4": 4,
	} {
		if got := gpus(gres); got != want {
			t.Errorf("gpus(%q) = %d, want %d", gres, got, want)
		}
	}
}

func FuzzSurveyOfSlurm(f *testing.F) {
	f.Add(recorded(f, "slurm-22.05-accounts.txt"))
	f.Add(recorded(f, "slurm-22.05.txt"))
	f.Fuzz(func(t *testing.T, out string) {
		facts, err := New(transcript{out: out}, "/srv/site").Survey(t.Context(), corral.BatchOptions{})
		if err != nil {
			return
		}
		for _, n := range facts.Notes {
			if len(n) > 303 || strings.Contains(n, "\n") {
				t.Errorf("note %q", n)
			}
		}
		for _, q := range facts.Queues {
			if q.Name == "" || min(q.MaxNodes, q.CPUs, q.MemoryMiB, q.GPUs, q.Nodes, int(q.MaxWalltime), q.CPUMemoryMiB) < 0 {
				t.Errorf("queue %+v", q)
			}
		}
		if facts.FreeMiB < -1 || facts.QuotaMiB < 0 || facts.MaxJobs < 0 || facts.MaxSubmit < 0 {
			t.Errorf("facts %+v", facts)
		}
	})
}
