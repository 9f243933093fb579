package rest

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/request"
)

// A Resource implements the operations common to all kinds of objects under /v1. The handlers of a kind embed its
// Resource and add the operations specific to the kind.
type Resource[T any] struct {
	*Adapter
	Object string // the store's name of the kind
	ID     func(T) int64

	// Find finds the object that a request's path names.
	Find func(*Call, *store.Tx) (T, error)

	// Progress parses a wait condition; nil: the kind has no states that change by themselves, and none of its routes
	// has the parameter wait.
	Progress func(list string) (func(T) api.Progress, error)
}

// Load returns the present state of the object that the path names.
func (r Resource[T]) Load(ctx context.Context, c *Call) (T, error) {
	return View(ctx, r.DB, func(tx *store.Tx) (T, error) { return r.Find(c, tx) })
}

// About answers with the result of ask about the object that the path names.
func (r Resource[T]) About(c *Call, ask func(context.Context, T) (any, error)) error {
	v, err := r.Load(c.Context(), c)
	if err != nil {
		return err
	}
	answer, err := ask(c.Context(), v)
	if err != nil {
		return err
	}
	return c.JSON(answer)
}

// Alter changes the object that the path names. The change consists only of its transaction, and its request has no
// body.
func (r Resource[T]) Alter(c *Call, write func(*store.Tx, T) (T, error)) error {
	return Change(r.Adapter, c, func(context.Context, None) (Step[T], error) {
		return Only(func(tx *store.Tx) (T, error) {
			v, err := r.Find(c, tx)
			if err != nil {
				return v, err
			}
			return write(tx, v)
		})
	})
}

// Page answers with a page of find's results. It requests one object more than the page holds, which shows whether
// there is a next page.
func (r Resource[T]) Page(c *Call, find func(*store.Tx, store.Filter) ([]T, error)) error {
	all, owner := c.Query.Flag("all"), c.Query.Text("owner")
	return Part(r.Adapter, c, func(tx *store.Tx, page store.Page) ([]T, error) {
		return find(tx, store.Filter{All: all, Owner: owner, Page: page})
	}, r.ID)
}

// Pages returns a handler that answers with a page of find's results.
func (r Resource[T]) Pages(find func(*store.Tx, store.Filter) ([]T, error)) func(*Call) error {
	return func(c *Call) error { return r.Page(c, find) }
}

// Part answers with a page of find's results, ordered by a number that increases from item to item.
func Part[T any](a *Adapter, c *Call, find func(*store.Tx, store.Page) ([]T, error), number func(T) int64) error {
	page := pageOf(c.Query)
	if err := c.Query.Err(); err != nil {
		return err
	}
	return Read(a, c, func(tx *store.Tx) (api.List[T], error) {
		items, err := find(tx, oneMore(page))
		return listOf(items, page.Limit, number), err
	})
}

func pageOf(q *request.Query) store.Page {
	after, limit := q.Page(api.MaxPage)
	return store.Page{After: after, Limit: limit}
}

func oneMore(p store.Page) store.Page {
	p.Limit++
	return p
}

// listOf returns a page of items that were requested with oneMore.
func listOf[T any](items []T, limit int, id func(T) int64) api.List[T] {
	if len(items) <= limit {
		return Whole(items, "")
	}
	return Whole(items[:limit], strconv.FormatInt(id(items[limit-1]), 10))
}

// Whole returns a list of items; an empty list is [] in JSON, not null.
func Whole[T any](items []T, next string) api.List[T] {
	if items == nil {
		items = []T{}
	}
	return api.List[T]{Items: items, Next: next}
}

// Get answers with the object that the path names: at once or, with ?wait=, once the object meets the condition, can
// no longer meet it by itself, or the time is over.
func (r Resource[T]) Get(c *Call) error {
	timeout := c.Query.Timeout()
	if err := c.Query.Err(); err != nil {
		return err
	}
	if !c.Query.Has("wait") {
		return Read(r.Adapter, c, func(tx *store.Tx) (T, error) { return r.Find(c, tx) })
	}
	progress, err := r.Progress(c.Query.Text("wait"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	v, err := r.watch(ctx, c, func(v T) bool { return progress(v).Done() })
	if err != nil {
		return err
	}
	return c.JSON(v)
}

// While calls do, which may wait for a change of the object in the path for the time given by ?timeout_s=; without that
// parameter, do gets a ctx that has already ended. While returns the object as it was before.
func (r Resource[T]) While(
	c *Call, do func(ctx context.Context, load func(context.Context) (T, error)) error,
) (T, error) {
	timeout := c.Query.Timeout()
	if err := c.Query.Err(); err != nil {
		var none T
		return none, err
	}
	if !c.Query.Has("timeout_s") {
		timeout = 0
	}
	v, err := r.Load(c.Context(), c)
	if err != nil {
		return v, err
	}
	return v, r.UntilStop(c.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return do(ctx, func(ctx context.Context) (T, error) { return r.Load(ctx, c) })
	})
}

// watch loads the object again after each of its changes until it is done or ctx's deadline has passed. The first
// load only identifies the object: to miss no change, a load must follow the creation of the channels that signal the
// next one.
func (r Resource[T]) watch(ctx context.Context, c *Call, done func(T) bool) (T, error) {
	unending := context.WithoutCancel(ctx) // a wait whose time is over still gets an answer
	v, err := r.Load(unending, c)
	for err == nil {
		recorded, registered := r.DB.Changed(r.Subject(v)), r.Registered()
		if v, err = r.Load(unending, c); err != nil || done(v) {
			break
		}
		select {
		case <-recorded:
		case <-registered:
		case <-r.Life.Done():
			return v, ErrStopping
		case <-ctx.Done():
			if ctx.Err() == context.DeadlineExceeded {
				return v, nil
			}
			return v, ctx.Err()
		}
	}
	return v, err
}

// Subject returns the object's subject in the store.
func (r Resource[T]) Subject(v T) store.Subject { return store.Subject{Object: r.Object, ID: r.ID(v)} }

// History answers with a page of the object's history.
func (r Resource[T]) History(c *Call) error {
	return r.Histories(c, func(tx *store.Tx) ([]store.Subject, error) {
		v, err := r.Find(c, tx)
		return []store.Subject{r.Subject(v)}, err
	})
}

// Histories answers with a page of the histories of find's results, ordered by time.
func (a *Adapter) Histories(c *Call, find func(*store.Tx) ([]store.Subject, error)) error {
	return Part(a, c, func(tx *store.Tx, page store.Page) (entries []corral.Entry, err error) {
		subjects, err := find(tx)
		for _, s := range subjects {
			var some []corral.Entry
			if err == nil {
				some, err = tx.History(s.Object, s.ID, page)
			}
			entries = append(entries, some...)
		}
		slices.SortFunc(entries, func(a, b corral.Entry) int { return cmp.Compare(a.ID, b.ID) })
		return entries, err
	}, func(e corral.Entry) int64 { return e.ID })
}
