package api

import (
	"errors"
	"net/http"

	"github.com/corral-pilot/corral"
)

// ProblemMediaType is the content type of every error.
const ProblemMediaType = "application/problem+json"

// typeBase is followed by the kind: each has a section of that name in docs/api.md.
const typeBase = "https://github.com/corral-pilot/corral/blob/main/docs/api.md#"

// A row says how one kind of error looks from outside.
type row struct {
	kind   corral.Kind
	status int
	exit   int
	title  string
}

// table has one row for each kind.
var table = []row{
	{corral.Invalid, http.StatusBadRequest, 2, "The request is not valid"},
	{corral.KeyReused, http.StatusUnprocessableEntity, 2, "The idempotency key belongs to another request"},
	{corral.Unsatisfiable, http.StatusUnprocessableEntity, 3, "It cannot be had as asked"},
	{corral.NotFound, http.StatusNotFound, 4, "There is no such thing"},
	{corral.Conflict, http.StatusConflict, 1, "The present state does not allow it"},
	{corral.Unauthenticated, http.StatusUnauthorized, 5, "Who is asking?"},
	{corral.Forbidden, http.StatusForbidden, 5, "The asker is not allowed to do this"},
	{corral.Unavailable, http.StatusServiceUnavailable, 6, "Nothing was done; the same request may be repeated"},
	{corral.Unknown, http.StatusGatewayTimeout, 6, "It may or may not have been done"},
	{corral.Timeout, http.StatusRequestTimeout, 124, "The wait timed out"},
	{corral.Failed, http.StatusInternalServerError, 1, "It was tried and failed"},
	{corral.Internal, http.StatusInternalServerError, 1, "A defect of corrald"},
}

// rowOf returns the row of kind, that of Internal for a kind without one.
func rowOf(kind corral.Kind) row {
	for _, r := range table {
		if r.kind == kind {
			return r
		}
	}
	return rowOf(corral.Internal)
}

func (r row) typeURI() string { return typeBase + string(r.kind) }

// A Problem is an error as RFC 9457 writes it. It is also the error that the Client returns, so that
// `-o json` can print what corrald said unchanged; errors.As finds a *corral.Error with the same kind
// and place in it.
type Problem struct {
	Type     string      `json:"type"` // the stable name of the kind
	Title    string      `json:"title"`
	Status   int         `json:"status"` // HTTP status
	Detail   string      `json:"detail"` // one sentence for people; names the place
	Instance string      `json:"instance,omitempty"`
	Kind     corral.Kind `json:"kind"`
	Place    string      `json:"place,omitempty"` // the field, parameter, or file and line
}

// ProblemOf describes err. What an internal error says is for corrald's log only, so that its detail
// is replaced. An err that is or wraps a *Problem gives that.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	r := rowOf(corral.KindOf(err))
	p = &Problem{Type: r.typeURI(), Title: r.title, Status: r.status, Detail: err.Error(), Kind: r.kind}
	if r.kind == corral.Internal {
		p.Detail = "an internal error; the log of corrald has it"
	}
	var e *corral.Error
	if errors.As(err, &e) {
		p.Place = e.Place
	}
	return p
}

func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the *corral.Error that p stands for. Its kind goes by the type URI, which is what
// RFC 9457 makes the stable part.
func (p *Problem) Unwrap() error {
	kind := corral.Internal
	for _, r := range table {
		if r.typeURI() == p.Type {
			kind = r.kind
		}
	}
	return &corral.Error{Kind: kind, Place: p.Place, Err: errors.New(p.Detail)}
}

// ExitCode returns the exit code that tells a script the kind of err, 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return rowOf(corral.KindOf(err)).exit
}
