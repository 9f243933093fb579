package api

import (
	"errors"
	"net/http"

	"github.com/corral-pilot/corral"
)

// ProblemMediaType is the content type of every error.
const ProblemMediaType = "application/problem+json"

// typeBase is the beginning of each type URI; the kind follows. docs/api.md has a section for each kind, with the
// kind's name.
const typeBase = "https://github.com/corral-pilot/corral/blob/main/docs/api.md#"

// A row defines the external form of one kind of error.
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
	{corral.Unsatisfiable, http.StatusUnprocessableEntity, 3, "The request cannot be met"},
	{corral.NotFound, http.StatusNotFound, 4, "There is no such object"},
	{corral.Conflict, http.StatusConflict, 1, "The object's state does not allow it"},
	{corral.Unauthenticated, http.StatusUnauthorized, 5, "The request is not authenticated"},
	{corral.Forbidden, http.StatusForbidden, 5, "The caller is not allowed to do this"},
	{corral.Unavailable, http.StatusServiceUnavailable, 6, "Nothing was done; the same request may be repeated"},
	{corral.Unknown, http.StatusGatewayTimeout, 6, "It may or may not have been done"},
	{corral.Timeout, http.StatusRequestTimeout, 124, "The wait timed out"},
	{corral.Failed, http.StatusInternalServerError, 1, "It was tried and failed"},
	{corral.Missed, http.StatusConflict, 7, "All was done, but a given goal was missed"},
	{corral.Internal, http.StatusInternalServerError, 1, "A defect of corrald"},
}

// rowOf returns the row of kind, or the row of Internal if kind has no row.
func rowOf(kind corral.Kind) row {
	for _, r := range table {
		if r.kind == kind {
			return r
		}
	}
	return rowOf(corral.Internal)
}

// typeURI returns the stable name of the kind in RFC 9457.
func (r row) typeURI() string { return typeBase + string(r.kind) }

// A Problem is an error in the format of RFC 9457. The Client also returns it as an error, so that `-o json` can print
// corrald's answer unchanged; errors.As finds a *corral.Error with the same kind and place in it.
type Problem struct {
	Type     string      `json:"type"` // the stable name of the kind
	Title    string      `json:"title"`
	Status   int         `json:"status"` // HTTP status
	Detail   string      `json:"detail"` // one sentence for people, including the place
	Instance string      `json:"instance,omitempty"`
	Kind     corral.Kind `json:"kind"`
	Place    string      `json:"place,omitempty"` // the field, parameter, or file and line
}

// ProblemOf describes err. The text of an internal error is meant only for corrald's log, so the detail is replaced.
// For an err that is or wraps a *Problem, ProblemOf returns that Problem.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	r := rowOf(corral.KindOf(err))
	p = &Problem{Type: r.typeURI(), Title: r.title, Status: r.status, Detail: err.Error(), Kind: r.kind}
	if r.kind == corral.Internal {
		p.Detail = "an internal error; see the log of corrald"
	}
	var e *corral.Error
	if errors.As(err, &e) {
		p.Place = e.Place
	}
	return p
}

// Error returns the detail, which is a sentence for people.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the *corral.Error that p represents. Its kind is derived from the type URI, which RFC 9457 defines as
// the stable part.
func (p *Problem) Unwrap() error {
	kind := corral.Internal
	for _, r := range table {
		if r.typeURI() == p.Type {
			kind = r.kind
		}
	}
	return &corral.Error{Kind: kind, Place: p.Place, Err: errors.New(p.Detail)}
}

// ExitCode returns the exit code for the kind of err, 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return rowOf(corral.KindOf(err)).exit
}
