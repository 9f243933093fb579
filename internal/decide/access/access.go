// Package access decides who may do what. It is pure: it does not access requests or the database, and the time is an
// argument.
//
// A Caller performs an Operation on an Object; Allows turns the three into a Verdict. A Caller is derived from a token
// (Of), or is Local: the user who runs corrald, the only one who may open its socket. The rules, in the order in which
// they are applied:
//
//  1. health checks and the API description are open to everyone; everything else requires a caller;
//  2. a token with scopes allows nothing outside them, even an administrator's token;
//  3. an administrator may do everything else;
//  4. users may do everything with their own objects, and do not see others, which appear not to exist;
//  5. packages and mirrors are shared: users may read them, and may change them only with a grant;
//  6. anything not in a table here is reserved for administrators: a new route is closed until it has an entry.
//
// Other packages apply the decisions: internal/service/central identifies the caller, internal/store limits a
// transaction to the objects that its caller sees, and internal/service/rest answers. host.go limits the paths and
// addresses of corrald's own host that a request may name.
package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// A Caller is the user who makes a request. The zero value has no rights.
type Caller struct {
	Name   string // owner of the objects it creates, and actor of the changes it makes
	Role   corral.Role
	Scopes []string // empty: everything that the role may do
	Grants []corral.Grant
	Token  corral.TokenID // 0: the request came through corrald's own socket
	Until  time.Time      // when its token expires; zero: never
}

// LocalName is the name in histories of the user who runs corrald.
const LocalName = "local"

// Local is the caller who may open corrald's own socket.
var Local = Caller{Name: LocalName, Role: corral.RoleAdministrator}

// reserved lists names that the owner of a token must not have: those of corrald's own user and of corrald itself.
var reserved = []string{LocalName, "corrald"}

// For returns the caller for work that corrald does on behalf of an owner, with that owner's rights. Background work
// puts it into the context of calls that it shares with requests, such as the methods of run.Manager, which look up a
// run for the caller of their context.
func For(owner string) Caller { return Caller{Name: owner, Role: corral.RoleUser} }

// Of returns the caller with a token, or an Unauthenticated error if the token has been revoked or has expired.
func Of(t corral.Token, now time.Time) (Caller, error) {
	switch {
	case t.State != corral.TokenValid:
		return Caller{}, corral.Errorf(corral.Unauthenticated, "the token %q was revoked: ask for another", t.Name)
	case t.Expired(now):
		return Caller{}, corral.Errorf(corral.Unauthenticated,
			"the token %q expired at %s: ask for another", t.Name,
			t.ExpiresAt.Format(time.RFC3339))
	}
	return Caller{t.Owner, t.Role, t.Scopes, t.Grants, t.ID, t.ExpiresAt}, nil
}

// IsAdministrator reports whether the caller sees the objects of all owners.
func (c Caller) IsAdministrator() bool { return c.Role == corral.RoleAdministrator }

// Has reports whether the caller has a grant; administrators have all grants.
func (c Caller) Has(g corral.Grant) bool { return c.IsAdministrator() || slices.Contains(c.Grants, g) }

// Sees reports whether the caller sees the objects of an owner.
func (c Caller) Sees(owner string) bool { return c.IsAdministrator() || c.Name == owner }

// MayUse returns an error if an owner may not use an object in a request. Only this function decides it: owners may use
// only their own objects. place is the field of the request that names the object, name is the object's name, and of is
// its owner. The error is Forbidden; callers who cannot see the object get a NotFound error before this check.
func MayUse(owner, place, name, of string) error {
	if owner == of {
		return nil
	}
	return corral.ErrorAt(corral.Forbidden, place, "%s belongs to %s: only its owner may request new objects there",
		name, of)
}

// An Operation is the action that a request asks for.
type Operation struct {
	Resource string // the noun: sites, glideins, …, or the only word of a path such as /metrics
	Reads    bool   // it does not change anything
}

// questions lists paths of POST requests that change nothing: they use POST because the request is too long for a
// query. A star stands for one element of a path.
var questions = []string{"/v1/runs/dry-run", "/v1/runs/*/output"}

// OperationOf returns the operation of a request, given its method and path. Every request has one, even if its path
// does not match a route.
func OperationOf(method, path string) Operation {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 1 && parts[0] == "v1" {
		parts = parts[1:]
	}
	return Operation{Resource: parts[0], Reads: method == "GET" || method == "HEAD" || asks(method, path)}
}

// asks reports whether a request is one of the questions.
func asks(method, path string) bool {
	return method == "POST" && slices.ContainsFunc(questions, func(pattern string) bool {
		want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
		return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || w == "*" })
	})
}

// A kind of resource defines who may access its objects.
type kind int

const (
	administered kind = iota // only administrators; also the kind of resources not listed
	open                     // everyone, without a token
	owned                    // the owner of each object
	shared                   // everyone may read
)

// kinds lists every resource that users may request.
var kinds = map[string]kind{
	"healthz": open, "readyz": open, "openapi.yaml": open,
	"sites": owned, "glideins": owned, "clusters": owned, "runs": owned, "plans": owned, "profiles": owned,
	"ensembles": owned,
	"logins":    owned, "tokens": owned, "ssh-key": owned, "events": owned, "usage": owned,
	"packages": shared, "mirrors": shared,
}

// An Object is the target of an operation. The zero value is for operations without one: to list objects, or to create
// one.
type Object struct{ Owner string }

// A Verdict is the decision on a request.
type Verdict string

const (
	Allowed         Verdict = "allowed"
	Unauthenticated Verdict = "unauthenticated" // HTTP 401
	Forbidden       Verdict = "forbidden"       // HTTP 403
	Hidden          Verdict = "hidden"          // HTTP 404: not even the existence of the object is disclosed
)

// Allows decides whether a caller may perform an operation; who is nil for a request without a valid token.
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

// callerKey is the key of the caller in a context.
type callerKey struct{}

// With returns a context with the caller on whose behalf operations with that context are performed.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From returns the caller of ctx. If ok is false, ctx has no caller, and no operation is allowed.
func From(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
