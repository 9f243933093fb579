package dispatch

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
)

// Retire has a worker that is connected drain: it finishes what it runs, and leaves.
func Retire(d *Dispatcher, worker string) {
	d.mu.Lock()
	if m := d.members.get(worker); m != nil && m.conn != nil {
		m.drain(&d.matcher)
		m.send(wire.AskMessage(corral.AskDrain))
	}
	d.mu.Unlock()
	d.cfg.OnChange()
}
