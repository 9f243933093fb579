package condorpool

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
)

// slotAttributes are what is asked of each slot.
var slotAttributes = []string{
	"CorralAttempt", "CorralWorker", "CorralHost", "CorralPID", "CorralCpus", "CorralMemoryMiB", "CorralEnd",
	"CorralDraining", "AuthenticatedIdentity", "Cpus", "Memory", "GPUs", "Disk", "PartitionableSlot", "State",
	"Activity", "DaemonStartTime", "LastHeardFrom", "Name", "DynamicSlot", "ChildName",
}

// keepLost is how long a worker stays listed that the collector no longer names, while its attempt lives. A collector
// that was started again knows no worker until it reports.
const keepLost = 2 * time.Minute

// The collector names slots; corrald shows workers. Each slot says in attributes of ours which worker of which attempt
// it belongs to and what that worker has in all, and in HTCondor's own what the slot itself has and does.

// workersOf returns the workers that slots belong to, by id. Slots do not count that name no live attempt, or a worker
// that cannot be the attempt's, or that have shown another attempt's token: in a pool that is shared, attempts of
// other corralds have the same numbers.
func workersOf(slots []classad.Ad, live []attempt) []corral.Worker {
	// A slot counts if it names a live attempt of ours and shows that attempt's token.
	attempts := map[corral.JobID]attempt{}
	for _, a := range live {
		attempts[a.ID] = a
	}
	byID := map[string]corral.Worker{}
	parts := partsOf(slots)
	for _, slot := range slots {
		n, _ := slot.Int("CorralAttempt")
		id, _ := slot.Text("CorralWorker")
		a, ok := attempts[corral.JobID(n)]
		who, _ := slot.Text("AuthenticatedIdentity")
		if !ok || !strings.HasPrefix(id, a.Tag+"/") || a.identity != "" && who != a.identity || parts.lacks(slot) {
			continue
		}
		w, known := byID[id]
		if !known {
			w = workerOf(slot, id, a)
		}
		addSlot(&w, slot)
		byID[id] = w
	}
	return slices.SortedFunc(maps.Values(byID), byName)
}

// byName orders workers as lists show them.
func byName(a, b corral.Worker) int { return strings.Compare(a.ID, b.ID) }

// parts are the names of the parts that slots say they are divided into now, by their worker's id. A pool of ours
// forgets the ad of a part that no longer exists only by its age.
type parts map[string][]any

// partsOf collects the names from the slots that are divided.
func partsOf(slots []classad.Ad) parts {
	p := parts{}
	for _, slot := range slots {
		if names, ok := slot.Lookup("ChildName"); ok {
			id, _ := slot.Text("CorralWorker")
			list, _ := names.([]any)
			p[id] = append(p[id], list...)
		}
	}
	return p
}

// lacks reports whether a slot was a part of another, which no longer has it.
func (p parts) lacks(slot classad.Ad) bool {
	part, _ := slot.Bool("DynamicSlot")
	id, _ := slot.Text("CorralWorker")
	names, told := p[id]
	name, _ := slot.Text("Name")
	return part && told && !slices.Contains(names, any(name))
}

// workerOf reads what all slots of a worker say alike.
func workerOf(slot classad.Ad, id string, a attempt) corral.Worker {
	w := corral.Worker{ID: id, Cluster: a.cluster, Glidein: a.Glidein, Attempt: a.ID, Connected: true}
	w.Host, _ = slot.Text("CorralHost")
	w.Draining, _ = slot.Bool("CorralDraining")
	pid, _ := slot.Int("CorralPID")
	w.PID = int(pid)
	w.EndsAt = seconds(slot, "CorralEnd")
	// The time is the worker's own clock's, which may be wrong: our own clock bounds it.
	w.RegisteredAt = seconds(slot, "DaemonStartTime")
	if w.RegisteredAt.Before(a.CreatedAt) {
		w.RegisteredAt = a.CreatedAt
	}
	if heard := seconds(slot, "LastHeardFrom"); !heard.IsZero() && heard.Before(w.RegisteredAt) {
		w.RegisteredAt = heard
	}
	return w
}

// addSlot adds what one slot has. A slot that is divided says what is left of it; its parts say what they took. A part
// that is claimed and idle waits for the next job of its schedd: it is neither free nor busy.
func addSlot(w *corral.Worker, slot classad.Ad) {
	has := resourcesOf(slot)
	w.CPUs += has.CPUs
	w.MemoryMiB += has.MemoryMiB
	w.GPUs += has.GPUs
	w.DiskMiB += has.DiskMiB
	divided, _ := slot.Bool("PartitionableSlot")
	if state, _ := slot.Text("State"); divided || state == "Unclaimed" {
		w.SetFree(w.Free().Plus(unsaid(slot, has)))
	}
	if activity, _ := slot.Text("Activity"); activity == "Busy" && !divided {
		w.RunningTasks++
	}
	// Slots are updated one after another, so their sum may be of different moments. What the worker has in all, each
	// slot says.
	if all, ok := slot.Int("CorralCpus"); ok {
		w.CPUs = int(all)
		w.CPUsFree = min(w.CPUsFree, w.CPUs)
	}
	if all, ok := slot.Int("CorralMemoryMiB"); ok {
		w.MemoryMiB = int(all)
		if w.MemoryFree < corral.Unlimited {
			w.MemoryFree = min(w.MemoryFree, w.MemoryMiB)
		}
	}
}

// resourcesOf is what a slot says that it has.
func resourcesOf(slot classad.Ad) corral.Resources {
	return corral.Resources{
		CPUs: number(slot, "Cpus"), MemoryMiB: number(slot, "Memory"), GPUs: number(slot, "GPUs"),
		DiskMiB: number(slot, "Disk") >> 10, // KiB
	}
}

// unsaid is what a slot has free, of which memory and disk are Unlimited where it does not say them. A slot without
// GPUs says nothing of them.
func unsaid(slot classad.Ad, has corral.Resources) corral.Resources {
	if _, said := slot.Int("Memory"); !said {
		has.MemoryMiB = corral.Unlimited
	}
	if _, said := slot.Int("Disk"); !said {
		has.DiskMiB = corral.Unlimited
	}
	return has
}

// seconds reads a Unix time; the zero time if the ad has none.
func seconds(ad classad.Ad, name string) time.Time {
	n, ok := ad.Int(name)
	if !ok || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// merge returns what is known after the collector named some workers at now, or none because it did not answer. A
// worker that appeared while it was watched has just registered: that is more exact than the time in its ad, which is
// whole seconds of another machine's clock.
func merge(before, named []corral.Worker, now time.Time, watched bool) []corral.Worker {
	now = now.UTC().Truncate(time.Millisecond)
	known := map[string]corral.Worker{}
	for _, w := range before {
		known[w.ID] = w
	}
	var after []corral.Worker
	for _, w := range named {
		old, was := known[w.ID]
		delete(known, w.ID)
		w.SeenAt = now
		if was {
			w.RegisteredAt = old.RegisteredAt
		} else if watched {
			w.RegisteredAt = now
		}
		after = append(after, w)
	}
	// What is left is not named any more. A collector that has just been restarted names nothing for a while.
	for _, w := range known {
		w.Connected = false
		if now.Sub(w.SeenAt) < keepLost {
			after = append(after, w)
		}
	}
	slices.SortFunc(after, byName)
	return after
}

// ofAttempts returns the workers whose attempts are alive.
func ofAttempts(workers []corral.Worker, live []attempt) []corral.Worker {
	return slices.DeleteFunc(workers, func(w corral.Worker) bool {
		return !slices.ContainsFunc(live, func(a attempt) bool { return a.ID == w.Attempt })
	})
}
