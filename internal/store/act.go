package store

import (
	"github.com/corral-pilot/corral"
)

// An Act is an action that corrald took by itself: what it requested, for which owner, and why.
type Act struct {
	Owner string // the owner on whose behalf corrald acted
	corral.Entry
}

// OnAct sets fn to be called for each act of corrald, after the commit that recorded it in a history. It must be
// called before the first Write. The goroutine that called Write also calls fn, which must not use the database.
func (d *DB) OnAct(fn func(Act)) { d.onAct = fn }

// acts lists the events that request something: the creation of an object, an earlier or later start or end of pilots,
// a plan's provisioning, release, reservation or revision, a site's removal, a token's revocation, and a scale's start
// or end. All other events record results that batch systems and pilots report; they are numerous and appear only in
// the histories.
var acts = map[string]bool{
	"create": true, string(corral.AskDrain): true, string(corral.AskCancel): true, "retime": true,
	string(corral.PlanProvision): true, string(corral.PlanRelease): true, "reserve": true, "revise": true,
	string(corral.SiteRemove): true, "revoke": true, "scale": true, "scale off": true,
}

// acted collects an entry if it records an act of corrald.
func (t *Tx) acted(e corral.Entry) {
	if t.actor == Actor && (acts[e.Event] || e.Object == corral.ObjectEnsemble) {
		t.acts = append(t.acts, Act{t.asker, e})
	}
}

// tell calls OnAct's function for the acts of a committed transaction.
func (d *DB) tell(w *work) {
	if d.onAct == nil {
		return
	}
	for _, a := range w.acts {
		d.onAct(a)
	}
}

// Because sets the reason that is recorded in the histories of objects that the transaction creates from now on.
// Background work calls it before it creates a glidein, an attempt or a run, so that the owner can see which scale,
// plan, revision or ensemble requested the object.
func (t *Tx) Because(why string) { t.why = why }

// created returns the first entry of an object's history.
func (t *Tx) created(object string, id int64, state string) corral.Entry {
	e := corral.Created(object, id, state)
	e.Reason = t.why
	return e
}

// For returns the owner for whom the transaction works, who will own the objects that it creates. It returns "" for a
// transaction without an owner.
func (t *Tx) For() string { return t.asker }
