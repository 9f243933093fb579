// Package central serves requests from users other than corrald's own, over a network.
//
// A Door is placed in front of the server on the TLS listener. For each request it identifies the caller, checks with
// package access whether the request is allowed, enforces the owner's limits, and passes the request on with its caller
// in the context, where the store and the handlers find it. These checks precede the search for the route. A Door makes
// no decisions itself and keeps only each owner's use of the limits (owners.go).
//
//	TLS ─► Door: whose token? allowed? within limits? ─► rest.Router ─► View or Write for that caller
//
// The listener's certificates follow their files (certificate.go).
package central

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/store"
)

// A Door is the http.Handler of the TLS listener.
type Door struct {
	next   http.Handler
	db     *store.DB
	audit  *slog.Logger // a line for each change refused here; the router logs all others
	owners *owners
}

// NewDoor returns a Door in front of next, for the tokens of db.
func NewDoor(next http.Handler, db *store.DB, audit *slog.Logger, limits access.Limits) *Door {
	return &Door{next: next, db: db, audit: audit, owners: newOwners(limits)}
}

// ServeHTTP refuses a request or passes it on.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, err := d.caller(r)
	what := access.OperationOf(r.Method, r.URL.Path)
	switch access.Allows(caller, what, access.Object{}) {
	case access.Allowed:
		err = nil
	case access.Unauthenticated: // err contains the reason
	default:
		err = corral.Errorf(corral.Forbidden, "%s may not do this (%s, by a token of role %s)", caller.Name,
			r.Method+" "+r.URL.Path, scoped(*caller))
	}
	if err != nil {
		d.refuse(w, r, caller, what, api.ProblemOf(err))
		return
	}
	who := access.Caller{} // an unknown caller, who sees nothing
	if caller != nil {
		who = *caller
		visit, err := d.owners.enter(who.Name, r, time.Now())
		if err != nil {
			d.slowDown(w, r, caller, what, err)
			return
		}
		defer visit.leave()
	}
	if most := d.owners.limits.MaxBody; most > 0 {
		r.Body = http.MaxBytesReader(w, r.Body, most)
	}
	d.next.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
}

// scoped returns a caller's role with its scopes.
func scoped(c access.Caller) string {
	if len(c.Scopes) == 0 {
		return string(c.Role)
	}
	return string(c.Role) + " with the scopes " + strings.Join(c.Scopes, ", ")
}

// caller identifies the sender of a request, or returns nil and the reason for refusing it. The token is checked
// before its owner's account, so that a revoked token reveals nothing about the account.
func (d *Door) caller(r *http.Request) (*access.Caller, error) {
	given := r.Header.Values("Authorization")
	if len(given) == 0 {
		return nil, corral.ErrorAt(corral.Unauthenticated, "Authorization", "say who asks: Bearer TOKEN")
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || !api.IsToken(text) {
		return nil, corral.ErrorAt(corral.Unauthenticated, "Authorization", "that is not Bearer and a token")
	}
	t, refusal, err := d.db.TokenOf(r.Context(), api.TokenDigest(text))
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

// slowDown answers a request that came too early with status 429 and the time to wait. Nothing was done.
func (d *Door) slowDown(w http.ResponseWriter, r *http.Request, c *access.Caller, what access.Operation, err error) {
	p := api.ProblemOf(err)
	if early, ok := errors.AsType[*access.TooMany](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(early.Seconds()))
		p.Status = http.StatusTooManyRequests
	}
	d.refuse(w, r, c, what, p)
}

// refuse answers with a problem. It does not read a body but ends the connection with the answer, because a client
// without a valid token could send one forever.
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
	_ = json.NewEncoder(w).Encode(p) // a disconnected peer needs no answer
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
