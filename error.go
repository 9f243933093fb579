package corral

import (
	"errors"
	"fmt"
)

// A Kind classifies an error by the way in which a caller should react. The api package maps each kind to one HTTP
// status and one exit code.
type Kind string

const (
	Invalid         Kind = "invalid"         // the request itself is wrong; nothing was changed
	KeyReused       Kind = "key-reused"      // the idempotency key was already used for another request
	Unsatisfiable   Kind = "unsatisfiable"   // the request cannot be met, now or later
	NotFound        Kind = "not-found"       // no such object
	Conflict        Kind = "conflict"        // the object's state does not allow it
	Unauthenticated Kind = "unauthenticated" // the caller is not known
	Forbidden       Kind = "forbidden"       // the caller is known but lacks the permission
	Unavailable     Kind = "unavailable"     // nothing was done; the same request may be repeated
	Unknown         Kind = "unknown"         // it may or may not have been done; check before repeating
	Timeout         Kind = "timeout"         // the wait ended before its condition was met
	Failed          Kind = "failed"          // it was tried and failed
	Missed          Kind = "missed"          // all was done, but a given goal, such as a deadline, was missed
	Internal        Kind = "internal"        // a defect in Corral
)

// Error is an error with a kind. Place names the location of the error in the user's terms, such as a file and line, a
// field or a flag; it may be empty.
type Error struct {
	Kind  Kind
	Place string
	Err   error
}

// Errorf returns an Error without a place; %w works as in fmt.Errorf.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// ErrorAt returns an Error that names a place.
func ErrorAt(kind Kind, place, format string, args ...any) error {
	return &Error{Kind: kind, Place: place, Err: fmt.Errorf(format, args...)}
}

// NoSuch returns the error for an object that does not exist; called is the name or ID that the caller used for it.
func NoSuch(object string, called any) error {
	return Errorf(NotFound, "no %s %v", object, called)
}

// Error returns the text, preceded by the place if there is one.
func (e *Error) Error() string {
	if e.Place == "" {
		return e.Err.Error()
	}
	return e.Place + ": " + e.Err.Error()
}

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost Error in err's chain, Internal if there is none, and ""
// for a nil err.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// KindOr returns the kind of err, or otherwise if err has no kind or is Internal.
func KindOr(err error, otherwise Kind) Kind {
	if kind := KindOf(err); kind != Internal {
		return kind
	}
	return otherwise
}
