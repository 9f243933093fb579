// Package events tells clients what changes: sites, glideins and runs, as server-sent events.
//
// A client hears of objects, not of steps: an event is the object as it is now, and of many changes in a row it may get
// only the last. That makes what is kept for a client small, and a client that missed something right again with the
// next event of that object.
//
// How it works. A Hub is one goroutine that lives while there are clients. The store wakes it (store.Watch); it reads
// which objects changed, from the history after its last entry and from the watch, which also reports changes without
// history, such as the counts of a run; it encodes each object once, and hands the batch to every client. A client has
// room for a few batches. One that has none left is dropped, not waited for: its connection ends, and it comes again
// with the id of its last event.
//
// An event's id is that of an entry of the history, which is in the database: so a client may come back after corrald
// was killed. The events that it missed are read from the history; if they are too many, or were deleted, it gets a
// reset instead, and reads the lists.
package events
