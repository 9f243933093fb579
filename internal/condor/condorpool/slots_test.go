package condorpool

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at returns the given number of seconds after noon, as in ads.
func at(seconds int64) int64 { return noon.Unix() + seconds }

func someAttempt(id corral.JobID, tag string, hosts int) attempt {
	return attempt{corral.Job{ID: id, Tag: tag, Glidein: 70 + corral.GlideinID(id), CreatedAt: noon, UpdatedAt: noon}, 1, hosts, "me"}
}

// slot returns the ad of a worker's slot, with changes.
func slot(worker string, changes classad.Ad) classad.Ad {
	ad := classad.Ad{"CorralAttempt": int64(7), "CorralWorker": worker, "CorralHost": "n1", "CorralPID": int64(42), "CorralEnd": at(3600),
		"CorralDraining": false, "State": "Unclaimed", "Activity": "Idle", "Cpus": int64(1), "Memory": int64(100), "Disk": int64(3 << 10),
		"AuthenticatedIdentity": "me", "DaemonStartTime": at(10), "LastHeardFrom": at(20)}
	for name, value := range changes {
		ad[name] = value
	}
	return ad
}

func TestWorkersOfSlots(t *testing.T) {
	live := []attempt{someAttempt(7, "tag", 2)}
	base := corral.Worker{ID: "tag/0", Cluster: 1, Glidein: 77, Attempt: 7, Host: "n1", PID: 42, CPUs: 1, CPUsFree: 1, MemoryMiB: 100,
		MemoryFree: 100, DiskMiB: 3, DiskFree: 3, Connected: true, RegisteredAt: noon.Add(10 * time.Second), EndsAt: noon.Add(time.Hour)}
	worker := func(change func(w *corral.Worker)) corral.Worker {
		w := base
		change(&w)
		return w
	}
	busy := classad.Ad{"State": "Claimed", "Activity": "Busy"}
	tests := map[string]struct {
		slots []classad.Ad
		want  []corral.Worker
	}{
		"nothing": {nil, nil},
		"one slot": {
			[]classad.Ad{slot("tag/0", nil)},
			[]corral.Worker{base},
		},
		"on slow hosts": {
			[]classad.Ad{slot("tag/0", classad.Ad{"CorralSiteSpeed": 0.5})},
			[]corral.Worker{worker(func(w *corral.Worker) { w.Speed = 0.5 })},
		},
		"on hosts of speed 1": {
			[]classad.Ad{slot("tag/0", classad.Ad{"CorralSiteSpeed": 1.0})},
			[]corral.Worker{base},
		},
		"two static slots, one busy": {
			[]classad.Ad{slot("tag/0", nil), slot("tag/0", busy)},
			[]corral.Worker{worker(func(w *corral.Worker) { w.CPUs, w.MemoryMiB, w.DiskMiB, w.RunningTasks = 2, 200, 6, 1 })},
		},
		"divided, two parts, one of them claimed and idle": {
			[]classad.Ad{
				slot("tag/0", classad.Ad{"PartitionableSlot": true, "Cpus": int64(1), "Memory": int64(700)}),
				slot("tag/0", classad.Ad{"State": "Claimed", "Activity": "Busy", "Cpus": int64(2), "Memory": int64(200)}),
				slot("tag/0", classad.Ad{"State": "Claimed"}),
			},
			[]corral.Worker{worker(func(w *corral.Worker) {
				w.CPUs, w.MemoryMiB, w.CPUsFree, w.MemoryFree, w.DiskMiB, w.RunningTasks = 4, 1000, 1, 700, 9, 1
			})},
		},
		"divided, with a GPU that is left, and a disk of which nothing is said": {
			[]classad.Ad{
				slot("tag/0", classad.Ad{"PartitionableSlot": true, "GPUs": int64(1), "Disk": classad.Expr("undefined")}),
				slot("tag/0", classad.Ad{"State": "Claimed", "Activity": "Busy", "GPUs": int64(2)}),
			},
			[]corral.Worker{worker(func(w *corral.Worker) {
				w.CPUs, w.MemoryMiB, w.GPUs, w.GPUsFree, w.DiskFree, w.RunningTasks = 2, 200, 3, 1, corral.Unlimited, 1
			})},
		},
		"a part that is no more": {
			[]classad.Ad{
				slot("tag/0", classad.Ad{"PartitionableSlot": true, "Cpus": int64(1), "ChildName": []any{"slot1_2@x"}}),
				slot("tag/0", classad.Ad{"Name": "slot1_1@x", "DynamicSlot": true, "State": "Claimed", "Activity": "Busy"}),
				slot("tag/0", classad.Ad{"Name": "slot1_2@x", "DynamicSlot": true, "State": "Claimed", "Activity": "Busy"}),
			},
			[]corral.Worker{worker(func(w *corral.Worker) { w.CPUs, w.MemoryMiB, w.DiskMiB, w.RunningTasks = 2, 200, 6, 1 })},
		},
		"all in use": {
			[]classad.Ad{slot("tag/0", classad.Ad{"PartitionableSlot": true, "Cpus": int64(0), "Memory": int64(0)}), slot("tag/0", busy)},
			[]corral.Worker{worker(func(w *corral.Worker) { w.CPUsFree, w.MemoryFree, w.DiskMiB, w.RunningTasks = 0, 0, 6, 1 })},
		},
		"what is left was updated later than what was taken": {
			[]classad.Ad{slot("tag/0", classad.Ad{"PartitionableSlot": true, "Cpus": int64(2), "CorralCpus": int64(2)}),
				slot("tag/0", classad.Ad{"State": "Claimed", "Activity": "Busy", "CorralCpus": int64(2), "CorralMemoryMiB": int64(150)})},
			[]corral.Worker{worker(func(w *corral.Worker) {
				w.CPUs, w.CPUsFree, w.MemoryMiB, w.DiskMiB, w.RunningTasks = 2, 2, 150, 6, 1
			})},
		},
		"two hosts, of which one drains": {
			[]classad.Ad{slot("tag/1", classad.Ad{"CorralDraining": true, "CorralHost": "n2"}), slot("tag/0", nil)},
			[]corral.Worker{base, worker(func(w *corral.Worker) { w.ID, w.Host, w.Draining = "tag/1", "n2", true })},
		},
		"a clock that is behind, and one that is ahead": {
			[]classad.Ad{slot("tag/0", classad.Ad{"DaemonStartTime": at(-500)}), slot("tag/1", classad.Ad{"DaemonStartTime": at(500)})},
			[]corral.Worker{worker(func(w *corral.Worker) { w.RegisteredAt = noon }),
				worker(func(w *corral.Worker) { w.ID, w.RegisteredAt = "tag/1", noon.Add(20*time.Second) })},
		},
		"of an attempt that is over, of another corrald's, or with another token": {
			[]classad.Ad{slot("tag/0", classad.Ad{"CorralAttempt": int64(6)}), slot("other/0", nil), slot("tag", nil), {},
				slot("tag/0", classad.Ad{"AuthenticatedIdentity": "you"})},
			nil,
		},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, workersOf(test.slots, live)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMerge(t *testing.T) {
	old := corral.Worker{ID: "a", Connected: true, RegisteredAt: noon, SeenAt: noon}
	fresh := corral.Worker{ID: "a", Connected: true, RegisteredAt: noon.Add(-time.Minute)}
	now := noon.Add(2 * time.Second)
	since := func(w corral.Worker, at time.Time) corral.Worker { w.RegisteredAt, w.SeenAt = at, now; return w }
	away := func(w corral.Worker) corral.Worker { w.Connected = false; return w }
	for name, test := range map[string]struct {
		before, named []corral.Worker
		now           time.Time
		watched       bool
		want          []corral.Worker
	}{
		"seen again":                  {[]corral.Worker{old}, []corral.Worker{fresh}, now, true, []corral.Worker{since(fresh, noon)}},
		"just registered":             {nil, []corral.Worker{fresh}, now, true, []corral.Worker{since(fresh, now)}},
		"there before corrald was":    {nil, []corral.Worker{fresh}, now, false, []corral.Worker{since(fresh, fresh.RegisteredAt)}},
		"not named any longer":        {[]corral.Worker{old}, nil, now, true, []corral.Worker{away(old)}},
		"not named for long":          {[]corral.Worker{old}, nil, noon.Add(keepLost), true, nil},
		"back after it was not named": {[]corral.Worker{away(old)}, []corral.Worker{fresh}, now, true, []corral.Worker{since(fresh, noon)}},
	} {
		if diff := cmp.Diff(test.want, merge(test.before, test.named, test.now, test.watched)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
