package store

import (
	"github.com/corral-pilot/corral"
)

// An Act is something that corrald did by itself: what it asked for, for whom, and why.
type Act struct {
	Owner string // for whom
	corral.Entry
}

// OnAct has fn called for each act of corrald, after the commit that has it in a history. It is to be set before the
// first Write; fn is called by the goroutine that wrote, and must not use the database.
func (d *DB) OnAct(fn func(Act)) { d.onAct = fn }

// acts are the events of histories that ask for something: that an object is made, that pilots are to go or to come at
// another time, that a plan changes hands. The other events tell what became of it, as batch systems and pilots report
// it; they are many, and in the histories alone.
var acts = map[string]bool{
	"create": true, string(corral.AskDrain): true, string(corral.AskCancel): true, "retime": true,
	string(corral.PlanProvision): true, string(corral.PlanRelease): true, "reserve": true, "revise": true,
	string(corral.SiteRemove): true, "revoke": true, "scale": true, "scale off": true,
}

// acted notes an entry that is an act of corrald's.
func (t *Tx) acted(e corral.Entry) {
	if t.actor == Actor && (acts[e.Event] || e.Object == corral.ObjectEnsemble) {
		t.acts = append(t.acts, Act{t.asker, e})
	}
}

// tell calls OnAct's function for the acts of a transaction that is committed.
func (d *DB) tell(w *work) {
	if d.onAct == nil {
		return
	}
	for _, a := range w.acts {
		d.onAct(a)
	}
}

// Because has the histories of what the transaction creates from here on say why. Background work calls it before it
// creates a glidein, an attempt or a run, so that its owner can read which scale, plan, revision or ensemble asked.
func (t *Tx) Because(why string) { t.why = why }

// created is the first entry of an object's history.
func (t *Tx) created(object string, id int64, state string) corral.Entry {
	e := corral.Created(object, id, state)
	e.Reason = t.why
	return e
}

// For returns for whom the transaction works: the owner of what it creates. It is "" in one that was opened for none.
func (t *Tx) For() string { return t.asker }
