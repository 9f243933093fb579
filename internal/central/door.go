// Package central lets others than corrald's own user ask it, over a network.
//
// A Door stands in front of the server on the TLS listener. For each request it finds out who asks, asks package access
// whether they may, keeps them to their rate, and passes the request on with its caller in the context, where the store
// and the handlers find it. It asks before it knows whether there is such a route: what somebody adds behind it is
// guarded, too. A Door decides nothing by itself and keeps nothing but how much of its rate each token has used.
//
//	TLS ─► Door: whose token? may they? too fast? ─► rest.Router ─► View or Write for that caller
//
// Certificates are the listener's; they follow their files (certificate.go).
package central

import (
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/account"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/access"
	"github.com/corral-pilot/corral/internal/store"
)

// Limits are what one token may ask of corrald.
type Limits struct {
	Rate    access.Rate
	MaxBody int64 // bytes of a request, if its route takes so many; 0: as many as the route takes
}

// A Door is the http.Handler of the TLS listener.
type Door struct {
	next   http.Handler
	db     *store.DB
	audit  *slog.Logger // a line for each change that is refused here; of others the router writes one
	limits Limits

	mu   sync.Mutex // guards following
	used map[account.TokenID]access.Bucket
}

// NewDoor returns a Door in front of next, for the tokens of db.
func NewDoor(next http.Handler, db *store.DB, audit *slog.Logger, limits Limits) *Door {
	return &Door{next: next, db: db, audit: audit, limits: limits, used: map[account.TokenID]access.Bucket{}}
}

// ServeHTTP answers one request, or has it answered.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, err := d.caller(r)
	what := access.OperationOf(r.Method, r.URL.Path)
	switch access.Allows(caller, what, access.Object{}) {
	case access.Allowed:
		err = nil
	case access.Unauthenticated: // err says why
	default:
		err = corral.Errorf(corral.Forbidden, "%s may not do this (%s, by a token of role %s)", caller.Name,
			r.Method+" "+r.URL.Path, scoped(*caller))
	}
	if err != nil {
		d.refuse(w, r, caller, what, api.ProblemOf(err))
		return
	}
	who := access.Caller{} // nobody, who sees nothing
	if caller != nil {
		who = *caller
		if wait := d.take(who.Token, time.Now()); wait > 0 {
			d.slowDown(w, r, caller, what, wait)
			return
		}
	}
	if d.limits.MaxBody > 0 {
		r.Body = http.MaxBytesReader(w, r.Body, d.limits.MaxBody)
	}
	d.next.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
}

// scoped is a caller's role with its scopes.
func scoped(c access.Caller) string {
	if len(c.Scopes) == 0 {
		return string(c.Role)
	}
	return string(c.Role) + " with the scopes " + strings.Join(c.Scopes, ", ")
}

// caller finds out who sends a request; nil, with the reason: nobody who is let in. Whether a token is good comes
// before whether its owner's account is served, so that a token that was revoked learns nothing about the account.
func (d *Door) caller(r *http.Request) (*access.Caller, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return nil, corral.ErrorAt(corral.Unauthenticated, "Authorization", "say who asks: Bearer TOKEN")
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || !account.IsToken(text) {
		return nil, corral.ErrorAt(corral.Unauthenticated, "Authorization", "that is not Bearer and a token")
	}
	var refusal string // of its owner's account
	t, err := store.Read(r.Context(), d.db, func(tx *store.Tx) (account.Token, error) {
		t, err := tx.TokenOf(account.TokenDigest(text))
		if err == nil {
			refusal, err = tx.Refusal(t.Owner)
		}
		return t, err
	})
	if corral.KindOf(err) == corral.NotFound {
		return nil, corral.ErrorAt(corral.Unauthenticated, "Authorization", "corrald does not know that token")
	}
	if err != nil {
		return nil, err
	}
	caller, err := access.Of(t, time.Now())
	if err != nil {
		return nil, corral.ErrorAt(corral.Unauthenticated, "Authorization", "%w", err)
	}
	if refusal != "" {
		return nil, corral.ErrorAt(corral.Forbidden, "Authorization", "%s", refusal)
	}
	return &caller, nil
}

// manyUsed is how many buckets are kept before those that are full again are forgotten.
const manyUsed = 1 << 10

// take lets a request of a token in, or says how long it has to wait.
func (d *Door) take(token account.TokenID, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	after, wait := d.used[token].Take(now, d.limits.Rate)
	d.used[token] = after
	if len(d.used) > manyUsed {
		for id, b := range d.used {
			if b.Full(now, d.limits.Rate) {
				delete(d.used, id)
			}
		}
	}
	return wait
}

// slowDown answers a request that came too early with 429, and with when to come again. Nothing was done.
func (d *Door) slowDown(w http.ResponseWriter, r *http.Request, c *access.Caller, what access.Operation,
	wait time.Duration) {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	p := api.ProblemOf(corral.Errorf(corral.Unavailable,
		"this token asks more often than %g times a second: nothing was "+
			"done; ask again in %d s", d.limits.Rate.PerSecond, seconds))
	p.Status = http.StatusTooManyRequests
	d.refuse(w, r, c, what, p)
}

// refuse answers with a problem. A body is not read: the connection ends with the answer instead, since whoever has not
// shown a token could send one for ever.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, c *access.Caller, what access.Operation, p *api.Problem) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // it fails only in tests without a connection
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="corral"`)
	}
	w.Header().Set("Content-Type", api.ProblemMediaType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a peer that has gone wants no answer
	if what.Reads {
		return
	}
	attrs := []any{"method", r.Method, "path", r.URL.Path, "status", p.Status, "actor", "", "from", r.RemoteAddr,
		"error", p.Detail}
	if c != nil {
		attrs[7] = c.Name
		attrs = append(attrs, "token", c.Token)
	}
	d.audit.Info("request", attrs...)
}
