package provision_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/provision"
)

// Maintenance of all nodes of a queue, as the queue shows it now, closes the queue, from the shortest walltime before it
// on; a reservation of some of the nodes does not.
func TestClosedNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	b := corral.Backlog{Queue: "a", At: now, Reserved: true, Nodes: []corral.QueueNode{{Name: "n1", Queues: []string{"a", "b"}},
		{Name: "n2", Queues: []string{"a"}}, {Name: "n3", Queues: []string{"b"}}}}
	b.Reservations = []corral.QueueReservation{
		{Name: "some", From: now, To: now.Add(time.Hour), Nodes: []string{"n1", "n3"}},
		{Name: "all", From: now.Add(30 * time.Minute), To: now.Add(4 * time.Hour), Nodes: []string{"n1", "n2"}, Maintenance: true},
	}
	all, ok := provision.ClosedNow(b, time.Minute)
	if !ok || len(all) != 1 || all[0].From != 18*time.Minute || all[0].To != 4*time.Hour+time.Millisecond {
		t.Errorf("%+v, %t", all, ok)
	}
	if _, ok := provision.ClosedNow(corral.Backlog{Reserved: true}, 0); ok {
		t.Error("a queue without known nodes is open")
	}
	b.Reserved = false
	if _, ok := provision.ClosedNow(b, time.Minute); ok {
		t.Error("a queue without known reservations is open")
	}
}
