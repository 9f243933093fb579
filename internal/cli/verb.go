package cli

// Most verbs have one of four shapes. A list asks corrald for the objects that pass the filter of its flags; a verb on
// one object asks with the name or the id that is its argument; both print the answer by the table of its type. A verb
// on several objects takes their ids, or labels. A verb that makes an object reads the request from its flags. What is
// left, and changes something or waits for it, is in the file of its noun.
//
// All words are checked before corrald is asked, so that a wrong line gets the same answer whether one runs or not:
// their number by checkLine, values by their flags, and what remains by the verb before it connects.

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// A noun is what a kind of object is called on the command line, and how an argument names one: key reads that. Of a
// kind that has labels, find returns the keys of the objects that pass a filter.
type noun[K any] struct {
	name string
	key  func(noun, argument string) (K, error)
	find func(context.Context, *api.Client, api.Filter) ([]K, error)
}

// idsOfAll makes a noun's find of the client's method that lists the objects.
func idsOfAll[K, T any](
	ask func(*api.Client, context.Context, api.Filter) ([]T, error), id func(T) K,
) func(context.Context, *api.Client, api.Filter) ([]K, error) {
	return func(ctx context.Context, cl *api.Client, f api.Filter) (ids []K, err error) {
		all, err := ask(cl, ctx, f)
		for _, v := range all {
			ids = append(ids, id(v))
		}
		return ids, err
	}
}

// nameKey is the key of nouns with names. An id is one too: corrald takes either.
func nameKey(_, argument string) (string, error) { return argument, nil }

// idKey is the key of nouns that have ids only.
func idKey[T ~int64](noun, argument string) (T, error) {
	n, err := strconv.ParseInt(argument, 10, 64)
	if err != nil || n < 1 {
		return 0, corral.ErrorAt(corral.Invalid, noun, "%q is not an id: want a number such as 7", argument)
	}
	return T(n), nil
}

// verb is a command on the one object that its argument names.
func (n noun[K]) verb(name string, do func(*cli.Context, *api.Client, K) error, flags ...cli.Flag) *cli.Command {
	return &cli.Command{Name: name, Flags: flags, Action: func(c *cli.Context) error {
		key, err := n.key(n.name, c.Args().First())
		if err != nil {
			return err
		}
		cl, err := connect(c)
		if err != nil {
			return err
		}
		return do(c, cl, key)
	}}
}

// printing is what a verb does that asks corrald one thing and prints the answer.
func printing[K, T any](
	ask func(*api.Client, context.Context, K) (T, error), print func(T) error,
) func(*cli.Context, *api.Client, K) error {
	return func(c *cli.Context, cl *api.Client, key K) error {
		answer, err := ask(cl, c.Context, key)
		if err != nil {
			return err
		}
		return print(answer)
	}
}

// creating is what a verb does that makes an object: read makes the request of the command line, before corrald is
// looked for; create sends it, under the key of --key; then goes on with the new object.
func creating[In, Out any](
	read func(*cli.Context) (In, error), create func(*api.Client, context.Context, In, string) (Out, error),
	then func(*cli.Context, *api.Client, Out) error,
) cli.ActionFunc {
	return func(c *cli.Context) error {
		in, err := read(c)
		if err != nil {
			return err
		}
		cl, err := connect(c)
		if err != nil {
			return err
		}
		out, err := create(cl, c.Context, in, c.String("key"))
		if err != nil {
			return err
		}
		return then(c, cl, out)
	}
}

// creationGrace is how long the creation of something that goes on by itself outlasts an interrupt.
const creationGrace = 10 * time.Second

// outlasting returns a context that ends a while after its parent. Who was interrupted before the answer came would
// know of nothing to tell of, or to cancel.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(creationGrace, cancel) })
	return lasting, func() { stop(); cancel() }
}

// createRun creates a run, also when it is interrupted meanwhile.
func createRun(cl *api.Client, ctx context.Context, in api.NewRun, key string) (corral.Run, error) {
	ctx, cancel := outlasting(ctx)
	defer cancel()
	return cl.CreateRun(ctx, in, key)
}

// one returns what prints one object, many what prints a list: the last step of most verbs.
func (l listing[T]) one(p *printer) func(T) error {
	return func(v T) error { return l.show(p, v) }
}

func (l listing[T]) many(p *printer) func([]T) error {
	return func(v []T) error { return l.list(p, v) }
}

// listVerb lists the objects that corrald has; flags narrow them.
func (l listing[T]) listVerb(
	p *printer, ask func(*api.Client, context.Context, api.Filter) ([]T, error), flags ...cli.Flag,
) *cli.Command {
	return &cli.Command{Name: "list", Flags: append([]cli.Flag{allFlag(), ownerFlag()}, flags...),
		Action: func(c *cli.Context) error {
			cl, err := connect(c)
			if err != nil {
				return err
			}
			f := filterOf(c)
			return printing(ask, l.narrowed(f).many(p))(c, cl, f)
		}}
}

// filterOf is what the flags of a command narrow a list to.
func filterOf(c *cli.Context) api.Filter {
	f := api.Filter{All: c.Bool("all"), Labels: labelsOf(c, "l")}
	for _, flag := range c.Command.Flags { // its own: its noun may have others of these names
		switch flag.Names()[0] {
		case "owner":
			f.Owner = c.String("owner")
		case "site":
			f.Site = c.String("site")
		case "cluster":
			f.Cluster = c.String("cluster")
		case "state":
			for _, s := range c.StringSlice("state") {
				f.States = append(f.States, strings.ToUpper(s))
			}
		}
	}
	return f
}

// narrowed is a listing of what a filter lets through. That it lets nothing through does not say that there is nothing.
func (l listing[T]) narrowed(f api.Filter) listing[T] {
	var by []string
	if f.Owner != "" {
		by = append(by, "--owner "+f.Owner)
	}
	if f.Site != "" {
		by = append(by, "--site "+f.Site)
	}
	if f.Cluster != "" {
		by = append(by, "--cluster "+f.Cluster)
	}
	for _, s := range f.States {
		by = append(by, "--state "+s)
	}
	for _, k := range slices.Sorted(maps.Keys(f.Labels)) {
		by = append(by, "-l "+k+"="+f.Labels[k])
	}
	if len(by) > 0 {
		what, _, _ := strings.Cut(l.none, ";")
		l.none = what + " match " + strings.Join(by, " ")
	}
	return l
}

// A choice is the objects that a command line names: by ids, or by labels.
type choice[K any] struct {
	noun   string
	ids    []K               // also of the objects that labels name
	labels map[string]string // empty: they were named by ids
}

// alone reports whether one object was named by its id. It is shown as itself, not as a list.
func (w choice[K]) alone() bool { return len(w.labels) == 0 && len(w.ids) == 1 }

// none is the error of a wait for objects by labels that no object has.
func (w choice[K]) none() error {
	return corral.Errorf(corral.NotFound, "no %s has the label %s", w.noun, labels(w.labels))
}

// several is a command on the objects that its arguments name, or else -l. Those with a label may be none.
func (n noun[K]) several(
	name string, do func(*cli.Context, *api.Client, choice[K]) error, flags ...cli.Flag,
) *cli.Command {
	return &cli.Command{Name: name, Flags: flags, Action: func(c *cli.Context) error {
		which := choice[K]{noun: n.name, labels: labelsOf(c, "l")}
		if (c.NArg() > 0) == (len(which.labels) > 0) {
			return corral.Errorf(corral.Invalid, "want either %s ids or -l k=v; see `%s --help`", n.name,
				c.Command.HelpName)
		}
		for _, arg := range c.Args().Slice() {
			id, err := n.key(n.name, arg)
			if err != nil {
				return err
			}
			which.ids = append(which.ids, id)
		}
		cl, err := connect(c)
		if err != nil {
			return err
		}
		if len(which.labels) > 0 {
			if which.ids, err = n.find(c.Context, cl, api.Filter{Labels: which.labels}); err != nil {
				return err
			}
		}
		return do(c, cl, which)
	}}
}

// countDown returns a function that says how much of d is left, never 0; it is 0 (no limit) always if d is. The time
// begins with the first call. A wait for several objects asks it before each of them, so that one --timeout is for all.
func countDown(d time.Duration) func() time.Duration {
	var end time.Time
	return func() time.Duration {
		if d == 0 || end.IsZero() {
			end = time.Now().Add(d)
			return d
		}
		return max(time.Millisecond, time.Until(end))
	}
}
