// Package access decides who may do what. It is pure: it sees no request and no database, and the time is an argument.
//
// A Caller performs an Operation on an Object; Allows turns the three into a Verdict. A Caller comes from a token (Of),
// or is Local: the user as whom corrald runs, who alone may open its socket. The rules, in the order in which they are
// applied:
//
//  1. health and the contract are everybody's; all else wants a caller;
//  2. a token with scopes does nothing outside of them, even an administrator's;
//  3. an administrator may do all the rest;
//  4. a user may do everything with objects of their own, and sees no others: they appear not to exist;
//  5. packages and mirrors are shared: users read them, and change them only if that was granted;
//  6. what is in no table here is the administrators': a route that somebody adds is closed until it has a line.
//
// The effects are elsewhere: internal/service/central finds out who asks, internal/store shows a transaction only what
// its caller sees, internal/service/rest answers. host.go bounds what a request may name on corrald's own host.
package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Caller is who asks. The zero value is nobody.
type Caller struct {
	Name   string // the owner of what it creates, and the actor of what it changes
	Role   corral.Role
	Scopes []string // none: all that the role may
	Grants []corral.Grant
	Token  corral.TokenID // 0: it came through corrald's own socket
	Until  time.Time      // when its token expires; zero: never
}

// LocalName is what histories call the user whose corrald it is.
const LocalName = "local"

// Local is who may open corrald's own socket.
var Local = Caller{Name: LocalName, Role: corral.RoleAdministrator}

// reserved are names that no token may act under: what corrald calls its own user, and itself.
var reserved = []string{LocalName, "corrald"}

// For is an owner for whom corrald itself does something: it sees and may do what that owner may. Background work puts
// it into the context of what it shares with requests, such as the methods of run.Manager, which find a run for the
// caller of their context.
func For(owner string) Caller { return Caller{Name: owner, Role: corral.RoleUser} }

// Of is the caller with a token, or, as an Unauthenticated error, why the token is not good any more.
func Of(t corral.Token, now time.Time) (Caller, error) {
	switch {
	case t.State != corral.TokenValid:
		return Caller{}, corral.Errorf(corral.Unauthenticated, "the token %q was revoked: ask for another", t.Name)
	case t.Expired(now):
		return Caller{}, corral.Errorf(corral.Unauthenticated,
			"the token %q has expired at %s: ask for another", t.Name,
			t.ExpiresAt.Format(time.RFC3339))
	}
	return Caller{t.Owner, t.Role, t.Scopes, t.Grants, t.ID, t.ExpiresAt}, nil
}

// IsAdministrator reports whether the caller sees everybody's objects.
func (c Caller) IsAdministrator() bool { return c.Role == corral.RoleAdministrator }

// Has reports whether something was granted to the caller; administrators have everything.
func (c Caller) Has(g corral.Grant) bool { return c.IsAdministrator() || slices.Contains(c.Grants, g) }

// Sees reports whether objects of an owner are there for the caller.
func (c Caller) Sees(owner string) bool { return c.IsAdministrator() || c.Name == owner }

// MayUse refuses what points at another object that its owner may not use. It is the only judge of that: an owner may
// use what is their own. place is the field of the request that names the object, name is what that is called, and of
// is its owner. The error is Forbidden; who may not even see the object gets a NotFound error before this is asked.
func MayUse(owner, place, name, of string) error {
	if owner == of {
		return nil
	}
	return corral.ErrorAt(corral.Forbidden, place, "%s belongs to %s: only its owner may request new objects there",
		name, of)
}

// An Operation is what is asked for.
type Operation struct {
	Resource string // the noun: sites, glideins, …, or the only word of a path such as /metrics
	Reads    bool   // it changes nothing
}

// questions are paths that are posted to because the question is too long for a query: they change nothing. A star
// stands for one part of a path.
var questions = []string{"/v1/runs/dry-run", "/v1/runs/*/output"}

// OperationOf is the operation of a request, by its method and path. No request has one that this does not name: a path
// that no route has is an operation, too.
func OperationOf(method, path string) Operation {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 1 && parts[0] == "v1" {
		parts = parts[1:]
	}
	return Operation{Resource: parts[0], Reads: method == "GET" || method == "HEAD" || asks(method, path)}
}

// asks reports whether a request is a question.
func asks(method, path string) bool {
	return method == "POST" && slices.ContainsFunc(questions, func(pattern string) bool {
		want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
		return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || w == "*" })
	})
}

// A kind of resource says whose its objects are.
type kind int

const (
	administered kind = iota // the administrators': also what is not listed
	open                     // everybody's, without a token
	owned                    // each object is its owner's
	shared                   // everybody reads
)

// kinds has every resource that users may ask for.
var kinds = map[string]kind{
	"healthz": open, "readyz": open, "openapi.yaml": open,
	"sites": owned, "glideins": owned, "clusters": owned, "runs": owned, "plans": owned, "profiles": owned,
	"ensembles": owned,
	"logins":    owned, "tokens": owned, "ssh-key": owned, "events": owned, "usage": owned,
	"packages": shared, "mirrors": shared,
}

// An Object is what an operation is about. The zero value is none: a list, or something that is to be created.
type Object struct{ Owner string }

// A Verdict is what becomes of a request.
type Verdict string

const (
	Allowed         Verdict = "allowed"
	Unauthenticated Verdict = "unauthenticated" // HTTP 401
	Forbidden       Verdict = "forbidden"       // HTTP 403
	Hidden          Verdict = "hidden"          // HTTP 404: that there is such an object is not said either
)

// Allows decides whether a caller may do something; nil is a request without a token that is good.
func Allows(who *Caller, what Operation, of Object) Verdict {
	kind := kinds[what.Resource]
	switch {
	case kind == open:
		return Allowed
	case who == nil:
		return Unauthenticated
	case !who.inScope(what):
		return Forbidden
	case who.IsAdministrator():
		return Allowed
	case kind == owned && of.Owner != "" && !who.Sees(of.Owner):
		return Hidden
	case kind == owned, kind == shared && (what.Reads || who.Has(corral.GrantPackages)):
		return Allowed
	}
	return Forbidden
}

// callerKey is under which a context has its caller.
type callerKey struct{}

// With is ctx with the caller on whose behalf everything is done that is done with it.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From returns the caller of ctx; ok is false if it has none, and then nothing may be done for anybody.
func From(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
