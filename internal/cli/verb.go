package cli

// Most verbs follow one of four patterns. A list requests from corrald the objects that pass the filter of its flags. A
// verb on one object identifies the object by its argument, a name or an id. Both print the answer with the listing of
// its type. A verb on several objects accepts their ids, or labels. A verb that creates an object reads the request
// from its flags. The remaining verbs, which change an object or wait for it, are in the file of their noun.
//
// Every command line is checked before corrald is contacted, so that an invalid line produces the same answer whether
// or not corrald is running: checkLine checks the number of arguments, flags check their values, and the verb checks
// the rest before it connects.

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

// A noun is a kind of object on the command line: its name, and key, which reads an argument that identifies an object.
// If objects of this kind have labels, find returns the keys of the objects that pass a filter.
type noun[K any] struct {
	name string
	key  func(noun, argument string) (K, error)
	find func(context.Context, *api.Client, api.Filter) ([]K, error)
}

// idsOfAll returns a noun's find, based on the client's method that lists the objects.
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

// nameKey is the key of nouns with names. It also accepts ids, because corrald accepts both.
func nameKey(_, argument string) (string, error) { return argument, nil }

// idKey is the key of nouns that have only ids.
func idKey[T ~int64](noun, argument string) (T, error) {
	n, err := strconv.ParseInt(argument, 10, 64)
	if err != nil || n < 1 {
		return 0, corral.ErrorAt(corral.Invalid, noun, "%q is not an id: want a number such as 7", argument)
	}
	return T(n), nil
}

// verb returns a command on the single object that its argument names.
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

// printing returns the action of a verb that sends one request to corrald and prints the answer.
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

// creating returns the action of a verb that creates an object: read creates the request from the command line before
// the command connects; create sends the request under the key of --key; then continues with the new object.
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

// creationGrace is how long, after an interrupt, the creation of an object may take that continues without the command.
const creationGrace = 10 * time.Second

// outlasting returns a context that ends creationGrace after its parent. If the context ended at once, an interrupted
// command could neither report the new object nor cancel it.
func outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(creationGrace, cancel) })
	return lasting, func() { stop(); cancel() }
}

// createRun creates a run, even if the command is interrupted in the meantime.
func createRun(cl *api.Client, ctx context.Context, in api.NewRun, key string) (corral.Run, error) {
	ctx, cancel := outlasting(ctx)
	defer cancel()
	return cl.CreateRun(ctx, in, key)
}

// one returns a function that prints one object, and many a function that prints a list; they are the last step of most
// verbs.
func (l listing[T]) one(p *printer) func(T) error {
	return func(v T) error { return l.show(p, v) }
}

func (l listing[T]) many(p *printer) func([]T) error {
	return func(v []T) error { return l.list(p, v) }
}

// listVerb returns the command that lists the objects of corrald, restricted by flags.
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

// filterOf returns the filter that the flags of a command describe.
func filterOf(c *cli.Context) api.Filter {
	f := api.Filter{All: c.Bool("all"), Labels: labelsOf(c, "l")}
	for _, flag := range c.Command.Flags { // only its own: its noun may have other flags with the same names
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

// narrowed returns a listing whose text for an empty list names the filter, because other objects may exist.
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

// A choice is the set of objects that a command line names, by ids or by labels.
type choice[K any] struct {
	noun   string
	ids    []K               // including those found by labels
	labels map[string]string // empty: the objects were named by ids
}

// alone reports whether a single object was named by its id. Such an object is shown by itself, not as a list.
func (w choice[K]) alone() bool { return len(w.labels) == 0 && len(w.ids) == 1 }

// none returns the error for a wait for labels that no object has.
func (w choice[K]) none() error {
	return corral.Errorf(corral.NotFound, "no %s has the label %s", w.noun, labels(w.labels))
}

// several returns a command on the objects that its arguments name or, without arguments, on the objects with the
// labels of -l, which may select no object.
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

// countDown returns a function that returns the remaining part of d, which is at least a millisecond; if d is 0 (no
// limit), it always returns 0. The time starts with the first call of the returned function. A wait for several objects
// calls the function before each of them, so that one --timeout covers all.
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
