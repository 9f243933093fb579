// Package events notifies clients of changes to sites, glideins and runs, as server-sent events.
//
// A client is sent objects, not steps: an event contains the object's present state, and after many changes in a row
// the client may get only the last one. So little is stored for each client, and a client that missed an event is up to
// date again with the object's next event.
//
// How it works. A Hub is one goroutine that runs while there are clients. The store wakes it (store.Watch). It
// determines which objects changed, from the history after its last entry and from the watch, which also reports
// changes without history entries, such as a run's task counts; it encodes each object once and passes the batch to
// every client. A client has room for a few batches. A client without room is dropped instead of delaying the others:
// its connection ends, and it reconnects with the id of its last event.
//
// An event's id is the id of a history entry in the database, so a client can reconnect after corrald was killed. The
// events that it missed are read from the history; if there are too many of them, or if they were deleted, the client
// gets a reset instead and reads the lists.
package events
