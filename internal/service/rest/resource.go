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

// A Resource is what all kinds of objects under /v1 have in common. The handlers of a kind embed theirs and add what
// only that kind has.
type Resource[T any] struct {
	*Adapter
	Object string // what the store calls the kind
	ID     func(T) int64

	// Find finds the object that a request's path names.
	Find func(*Call, *store.Tx) (T, error)

	// Progress reads what a client waits for; nil: the kind has no states that come by themselves, and no route of it
	// has the parameter wait.
	Progress func(list string) (func(T) api.Progress, error)
}

// Load returns the object that the path names as it is now.
func (r Resource[T]) Load(ctx context.Context, c *Call) (T, error) {
	return View(ctx, r.DB, func(tx *store.Tx) (T, error) { return r.Find(c, tx) })
}

// About answers with what ask finds out about the object that the path names.
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

// Alter changes the object that the path names. The change consists of its transaction, and its request has no body.
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

// Page answers with a page of what find returns. It asks for one object more than the page has, which shows whether
// there is a next page.
func (r Resource[T]) Page(c *Call, find func(*store.Tx, store.Filter) ([]T, error)) error {
	all, owner := c.Query.Flag("all"), c.Query.Text("owner")
	return Part(r.Adapter, c, func(tx *store.Tx, page store.Page) ([]T, error) {
		return find(tx, store.Filter{All: all, Owner: owner, Page: page})
	}, r.ID)
}

// Part answers with a page of what find finds, by a number that grows from item to item.
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

// listOf makes a page of items, which were asked for with oneMore.
func listOf[T any](items []T, limit int, id func(T) int64) api.List[T] {
	if len(items) <= limit {
		return Whole(items, "")
	}
	return Whole(items[:limit], strconv.FormatInt(id(items[limit-1]), 10))
}

// Whole makes a list of items; no items are [] in JSON, not null.
func Whole[T any](items []T, next string) api.List[T] {
	if items == nil {
		items = []T{}
	}
	return api.List[T]{Items: items, Next: next}
}

// Get answers with the object that the path names: at once, or with ?wait= once the object has what is waited for, can
// no longer get it by itself, or the time is over.
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

// While has do wait for something of the object that the path names, for as long as ?timeout_s= says; without it do
// gets a ctx that is over. It returns the object as it was before.
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

// watch loads the object again after each of its changes until it is done or ctx's deadline is over. The first look
// only finds out which object it is: to miss no change, a look must come after the channels that announce the next
// one.
func (r Resource[T]) watch(ctx context.Context, c *Call, done func(T) bool) (T, error) {
	unending := context.WithoutCancel(ctx) // a wait that is over still has an answer
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

// Subject is what the store knows the object as.
func (r Resource[T]) Subject(v T) store.Subject { return store.Subject{Object: r.Object, ID: r.ID(v)} }

// History answers with a page of what happened to the object.
func (r Resource[T]) History(c *Call) error {
	return r.Histories(c, func(tx *store.Tx) ([]store.Subject, error) {
		v, err := r.Find(c, tx)
		return []store.Subject{r.Subject(v)}, err
	})
}

// Histories answers with a page of the histories of what find returns, in the order of time.
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
