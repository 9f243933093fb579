package condorpool

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// slotAttributes lists the attributes that are requested for each slot.
var slotAttributes = []string{
	"CorralAttempt", "CorralWorker", "CorralHost", "CorralPID", "CorralCpus", "CorralMemoryMiB", "CorralEnd",
	"CorralDraining", "AuthenticatedIdentity", "Cpus", "Memory", "GPUs", "Disk", "PartitionableSlot", "State",
	"Activity", "DaemonStartTime", "LastHeardFrom", "Name", "DynamicSlot", "ChildName",
}

// keepLost is how long corrald continues to list a worker that the collector no longer lists while the worker's attempt
// is live. A restarted collector lists a worker only after the worker has reported again.
const keepLost = 2 * time.Minute

// The collector lists slots, whereas corrald shows workers. A slot's Corral attributes specify its worker, its attempt
// and the worker's total resources; HTCondor's own attributes describe the slot itself and its activity.

// workersOf returns the workers to which slots belong, by id. It ignores slots that name no live attempt, that name a
// worker which cannot belong to the attempt, or that authenticated with another attempt's token: in a shared pool,
// attempts of other corralds have the same numbers.
func workersOf(slots []classad.Ad, live []attempt) []corral.Worker {
	// A slot counts if it names a live attempt of ours and authenticated with that attempt's token.
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

// byName compares workers by their ids, as in lists.
func byName(a, b corral.Worker) int { return strings.Compare(a.ID, b.ID) }

// parts holds the names of the parts into which slots are now divided, keyed by the id of the worker. The ad of a part
// that no longer exists remains in a pool of ours until it expires.
type parts map[string][]any

// partsOf collects the names of the parts of divided slots.
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

// lacks reports whether a slot was part of another slot that no longer includes it.
func (p parts) lacks(slot classad.Ad) bool {
	part, _ := slot.Bool("DynamicSlot")
	id, _ := slot.Text("CorralWorker")
	names, told := p[id]
	name, _ := slot.Text("Name")
	return part && told && !slices.Contains(names, any(name))
}

// workerOf reads the attributes that all slots of a worker share.
func workerOf(slot classad.Ad, id string, a attempt) corral.Worker {
	w := corral.Worker{ID: id, Cluster: a.cluster, Glidein: a.Glidein, Attempt: a.ID, Connected: true}
	w.Host, _ = slot.Text("CorralHost")
	w.Draining, _ = slot.Bool("CorralDraining")
	pid, _ := slot.Int("CorralPID")
	w.PID = int(pid)
	w.EndsAt, w.Speed = seconds(slot, "CorralEnd"), speedOf(slot)
	// The time is from the worker's clock, which may be wrong, so it is bounded by our own clock.
	w.RegisteredAt = seconds(slot, "DaemonStartTime")
	if w.RegisteredAt.Before(a.CreatedAt) {
		w.RegisteredAt = a.CreatedAt
	}
	if heard := seconds(slot, "LastHeardFrom"); !heard.IsZero() && heard.Before(w.RegisteredAt) {
		w.RegisteredAt = heard
	}
	return w
}

// speedOf returns the speed of a worker's host, according to its plan. Workers of older pilots do not name it.
func speedOf(slot classad.Ad) corral.Speed {
	value, _ := slot.Lookup(jobfiles.SpeedAttribute)
	n, _ := value.(float64)
	if speed := corral.Speed(n); speed.Valid() && speed != 1 {
		return speed
	}
	return 0
}

// addSlot adds the resources of one slot. A divided slot reports its remaining resources, and its parts report their
// shares. A part that is claimed and idle waits for the next job of its schedd, so it is neither free nor busy.
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
	// Slots are updated one after another, so their sum may mix values from different times. Each slot also reports the
	// worker's total.
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

// resourcesOf returns the resources that a slot reports.
func resourcesOf(slot classad.Ad) corral.Resources {
	return corral.Resources{
		CPUs: number(slot, "Cpus"), MemoryMiB: number(slot, "Memory"), GPUs: number(slot, "GPUs"),
		DiskMiB: number(slot, "Disk") >> 10, // KiB
	}
}

// unsaid returns a slot's free resources; memory and disk are Unlimited if the slot does not report them. A slot
// without GPUs does not mention them.
func unsaid(slot classad.Ad, has corral.Resources) corral.Resources {
	if _, said := slot.Int("Memory"); !said {
		has.MemoryMiB = corral.Unlimited
	}
	if _, said := slot.Int("Disk"); !said {
		has.DiskMiB = corral.Unlimited
	}
	return has
}

// seconds reads a Unix time, or returns the zero time if the ad does not contain it.
func seconds(ad classad.Ad, name string) time.Time {
	n, ok := ad.Int(name)
	if !ok || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// merge returns the known workers after the collector listed the named workers at now, or listed none because it did
// not answer. If a worker appears while the collector is being watched, it has just registered; the time of its
// appearance is more accurate than the time in its ad, which is in whole seconds of another machine's clock.
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
	// The remaining workers are no longer listed. A restarted collector lists no workers for a while.
	for _, w := range known {
		w.Connected = false
		if now.Sub(w.SeenAt) < keepLost {
			after = append(after, w)
		}
	}
	slices.SortFunc(after, byName)
	return after
}

// ofAttempts returns the workers of live attempts.
func ofAttempts(workers []corral.Worker, live []attempt) []corral.Worker {
	return slices.DeleteFunc(workers, func(w corral.Worker) bool {
		return !slices.ContainsFunc(live, func(a attempt) bool { return a.ID == w.Attempt })
	})
}
