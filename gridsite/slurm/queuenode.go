package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/jobdir"
	"github.com/corral-pilot/corral/gridsite/survey"
)

// addNodesAndReservations adds the nodes and the reservations of a queue. A failure is noted: the queue is
// then known by its numbers of processors alone, or without reservations.
func addNodesAndReservations(said survey.Sections, q *corral.Backlog) {
	out, err := said.Of("nodes")
	if err == nil {
		q.Nodes, err = parseNodes(out)
	}
	if err != nil {
		q.Notes = append(q.Notes, fmt.Sprintf("the nodes are not known: only cpus are counted: %s", err))
		return
	}
	out, err = said.Of("reservations")
	if err == nil {
		err = addReservations(q, out)
	}
	if q.Reserved = err == nil; err != nil {
		q.Notes = append(q.Notes, fmt.Sprintf("reservations and maintenance are not known: %s", err))
	}
}

// parseNodes parses lines of NODE|PARTITION|CPUS|MEMORY|ALLOCATED/IDLE/OTHER/TOTAL|., one per node and partition. Nodes
// without usable processors are down or drained, and left out.
func parseNodes(out string) (all []corral.QueueNode, err error) {
	index := map[string]int{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) == 1 && f[0] == "" {
			continue
		}
		if len(f) != 6 || f[5] != "." {
			return nil, fmt.Errorf("sinfo printed %q", gridsite.OneLine(line))
		}
		held, usable, err := parseProcessors(f[4])
		memory, failed := strconv.ParseUint(strings.TrimSuffix(f[3], "+"), 10, 31)
		if err != nil || failed != nil {
			return nil, fmt.Errorf("sinfo printed %q", gridsite.OneLine(line))
		}
		if usable == 0 {
			continue
		}
		i, ok := index[f[0]]
		if !ok {
			i = len(all)
			index[f[0]] = i
			all = append(all, corral.QueueNode{Name: f[0], CPUs: usable, MemoryMiB: int(memory), Held: held})
		}
		all[i].Queues = append(all[i].Queues, f[1])
	}
	return all, nil
}

// addReservations adds the reservations of scontrol -o show reservation that concern the queue's nodes and are not
// over.
func addReservations(q *corral.Backlog, out string) error {
	known := map[string]bool{}
	for _, n := range q.Nodes {
		known[n.Name] = true
	}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "ReservationName=") {
			continue
		}
		values := map[string]string{}
		for _, word := range strings.Fields(line) {
			k, v, _ := strings.Cut(word, "=")
			values[k] = v
		}
		r := corral.QueueReservation{Name: values["ReservationName"]}
		var err error
		if r.From, err = jobdir.ParseTime(values["StartTime"]); err == nil {
			r.To, err = reservedUntil(values["EndTime"], r.From)
		}
		if err == nil {
			r.Nodes, err = hostsOf(values["Nodes"])
		}
		if err != nil {
			return fmt.Errorf("scontrol printed %q: %w", gridsite.OneLine(line), err)
		}
		flags := strings.Split(values["Flags"], ",")
		r.Maintenance = slices.Contains(flags, "MAINT")
		r.Nodes = slices.DeleteFunc(r.Nodes, func(n string) bool { return !known[n] })
		if len(r.Nodes) > 0 && r.To.After(q.At) {
			q.Reservations = append(q.Reservations, r)
		}
	}
	return nil
}

// reservedUntil parses the end of a reservation; one without an end lasts for a year.
func reservedUntil(s string, from time.Time) (time.Time, error) {
	if slices.Contains(noLimit, s) || s == "Unknown" {
		return from.Add(365 * 24 * time.Hour), nil
	}
	return jobdir.ParseTime(s)
}
