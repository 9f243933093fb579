package central

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/corral-pilot/corral/internal/decide/access"
)

// owners tracks each owner's use of the limits. One owner's use never counts for another.
type owners struct {
	limits access.Limits

	mu   sync.Mutex // guards the fields below
	used map[string]access.Use
}

func newOwners(limits access.Limits) *owners {
	return &owners{limits: limits, used: map[string]access.Use{}}
}

// manyUsed is the number of owners that are kept before idle ones are dropped.
const manyUsed = 1 << 10

type visit struct {
	owners *owners
	owner  string
	held   int64 // bytes of the request's body that count for the owner
}

// enter admits an owner's request or returns the error with which it is refused. A body of known length counts at once,
// up to the maximum body size; any other body counts as it arrives.
func (o *owners) enter(owner string, r *http.Request, now time.Time) (*visit, error) {
	v := &visit{owners: o, owner: owner, held: max(0, r.ContentLength)}
	if o.limits.MaxBody > 0 {
		v.held = min(v.held, o.limits.MaxBody)
	}
	err := o.change(owner, func(u access.Use) (access.Use, error) { return u.Enter(now, owner, v.held, o.limits) })
	if err != nil {
		return nil, err
	}
	if r.ContentLength < 0 {
		r.Body = &counted{r.Body, v}
	}
	o.forget(now)
	return v, nil
}

func (v *visit) leave() {
	_ = v.owners.change(v.owner, func(u access.Use) (access.Use, error) { return u.Leave(v.held), nil })
}

func (o *owners) change(owner string, by func(access.Use) (access.Use, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	after, err := by(o.used[owner])
	if err == nil {
		o.used[owner] = after
	}
	return err
}

// forget drops idle owners once there are many, so that memory is bounded by the number of active ones.
func (o *owners) forget(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.used) <= manyUsed {
		return
	}
	for owner, u := range o.used {
		if u.Idle(now, o.limits) {
			delete(o.used, owner)
		}
	}
}

// counted is a body of unknown length: the bytes that arrive count for its owner, and if they exceed the limit, Read
// returns an access.TooMany error.
type counted struct {
	io.ReadCloser
	visit *visit
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	v := c.visit
	refused := v.owners.change(v.owner, func(u access.Use) (access.Use, error) {
		after, err := u.Hold(v.owner, v.held, int64(n), v.owners.limits)
		if err == nil {
			v.held += int64(n)
		}
		return after, err
	})
	if refused != nil {
		return 0, refused
	}
	return n, err
}
