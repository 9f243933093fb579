package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// An Adapter turns a route's action into a transaction and the result into an answer. All routes share one Adapter.
type Adapter struct {
	Log  *slog.Logger
	DB   *store.DB
	Life context.Context // ends when corrald stops, with the cause ErrStopping

	// Registered returns a channel that is closed when a worker next registers or leaves.
	Registered func() <-chan struct{}
}

// ErrStopping is the error of requests that are abandoned because corrald is stopping.
var ErrStopping = corral.Errorf(corral.Unavailable, "corrald is stopping")

// A Step is a change in two parts. Operations that take a long time, or that can fail for reasons outside the store,
// are done before the Step exists.
type Step[Out any] struct {
	Write func(tx *store.Tx) (Out, error) // the change itself; its result is the answer
	Done  func(Out)                       // called after the commit; nil: nothing
	Undo  func()                          // called instead of Done if there is no commit; nil: nothing

	Status int // status of the answer; 0: the default for its kind
}

// Only returns a Step that consists only of its transaction.
func Only[Out any](write func(*store.Tx) (Out, error)) (Step[Out], error) {
	return Step[Out]{Write: write}, nil
}

// View returns the result of look in one consistent view of the store.
func View[Out any](ctx context.Context, db *store.DB, look func(*store.Tx) (Out, error)) (Out, error) {
	return store.Read(ctx, db.Request(ctx), look)
}

// Read answers with the result of look in one consistent view of the store.
func Read[Out any](a *Adapter, c *Call, look func(*store.Tx) (Out, error)) error {
	out, err := View(c.Context(), a.DB, look)
	if err != nil {
		return err
	}
	return c.JSON(out)
}

// Create is Change for a request that creates an object.
func Create[In, Out any](a *Adapter, c *Call, prepare func(context.Context, In) (Step[Out], error)) error {
	return perform(a, c, http.StatusCreated, prepare)
}

// Change decodes a request, calls prepare on it, performs the step, and answers with the step's result. If an answer
// is already stored under the request's key, the request gets that answer and nothing is done.
//
// prepare may query a site or read an archive, so it runs outside the transaction, which must be short because there
// is only one writer. The data that prepare has read may have changed meanwhile, so the step checks again the
// conditions that must still hold.
func Change[In, Out any](a *Adapter, c *Call, prepare func(context.Context, In) (Step[Out], error)) error {
	return perform(a, c, http.StatusOK, prepare)
}

// perform executes a change once for each key. If an answer is stored under the key, it is returned before anything
// is prepared; otherwise the step is prepared outside a transaction and written together with its answer. status is the
// HTTP status of a successful answer unless the step sets its own.
func perform[In, Out any](a *Adapter, c *Call, status int,
	prepare func(context.Context, In) (Step[Out], error)) error {
	var in In
	body, err := Decode(c, &in)
	if err != nil {
		return err
	}
	key, err := onceKey(c, body)
	if err != nil {
		return err
	}
	answer, kept, err := kept(c.Context(), a.DB, key)
	if err == nil && !kept {
		var st Step[Out]
		if st, err = prepare(c.Context(), in); err == nil {
			answer, err = commit(c.Context(), a, cmp.Or(st.Status, status), key, st)
		}
	}
	if err != nil {
		return err
	}
	return c.echo.JSONBlob(answer.Status, answer.Body)
}

var errNotKept = errors.New("no answer is kept under this key")

// kept returns the answer stored under the key. It is called before anything is prepared, so that a repetition costs
// nothing and is not refused because of later changes.
func kept(ctx context.Context, db *store.DB, key store.OnceKey) (answer store.Answer, kept bool, err error) {
	if key.Key == "" {
		return answer, false, nil
	}
	err = db.Request(ctx).Write(ctx, key.Actor, func(tx *store.Tx) (err error) {
		answer, kept, err = tx.Once(key, func() (store.Answer, error) { return store.Answer{}, errNotKept })
		return err
	})
	if errors.Is(err, errNotKept) {
		err = nil
	}
	return answer, kept, err
}

// commit runs a step and stores its answer in one transaction. Two requests with the same key may both have reached
// this point; the transaction executes the first one and gives the second its answer.
func commit[Out any](ctx context.Context, a *Adapter, status int, key store.OnceKey,
	st Step[Out]) (store.Answer, error) {
	var out Out
	var answer store.Answer
	var kept bool
	err := a.DB.Request(ctx).Write(ctx, key.Actor, func(tx *store.Tx) (err error) {
		answer, kept, err = tx.Once(key, func() (store.Answer, error) {
			if out, err = st.Write(tx); err != nil {
				return store.Answer{}, err
			}
			body, err := json.Marshal(out)
			return store.Answer{Status: status, Body: append(body, '\n')}, err
		})
		return err
	})
	switch {
	case err == nil && !kept && st.Done != nil:
		st.Done(out)
	case (err != nil || kept) && st.Undo != nil:
		st.Undo()
	}
	return answer, err
}

// UntilStop does work that may take longer than corrald's shutdown: when corrald stops, work's context ends, and the
// error is ErrStopping.
func (a *Adapter) UntilStop(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.Life, func() { cancel(ErrStopping) })()
	err := work(ctx)
	if err != nil && errors.Is(context.Cause(ctx), ErrStopping) {
		return ErrStopping
	}
	return err
}

// Until is UntilStop for work with a result.
func Until[T any](ctx context.Context, a *Adapter, work func(context.Context) (T, error)) (v T, err error) {
	err = a.UntilStop(ctx, func(ctx context.Context) (err error) {
		v, err = work(ctx)
		return err
	})
	return v, err
}

// Ask answers a query that is too long for a path. It changes nothing, so it needs no key.
func Ask[In, Out any](a *Adapter, c *Call, answer func(context.Context, In) (Out, error)) error {
	var in In
	if _, err := Decode(c, &in); err != nil {
		return err
	}
	out, err := Until(c.Context(), a, func(ctx context.Context) (Out, error) { return answer(ctx, in) })
	if err != nil {
		return err
	}
	return c.JSON(out)
}

// onceKey returns the request's idempotency key and the data it covers: method, target and body.
func onceKey(c *Call, body []byte) (store.OnceKey, error) {
	r := c.echo.Request()
	keys := r.Header.Values(api.KeyHeader)
	if len(keys) == 0 {
		return store.OnceKey{Actor: c.Actor()}, nil
	}
	if len(keys) > 1 {
		return store.OnceKey{}, corral.ErrorAt(corral.Invalid, api.KeyHeader,
			"is given %d times; give it once", len(keys))
	}
	if err := api.CheckKey(api.KeyHeader, keys[0]); err != nil {
		return store.OnceKey{}, err
	}
	// The digest distinguishes a repetition from another request with the same key, without storing bodies, which may
	// be secret.
	h := sha256.New()
	fmt.Fprintf(h, "%s %s\n", r.Method, r.URL.RequestURI())
	h.Write(body)
	return store.OnceKey{Actor: c.Actor(), Key: keys[0], Request: hex.EncodeToString(h.Sum(nil))}, nil
}
