package main

// Most verbs have one of three shapes. A list asks corrald for the objects that pass the filter of its flags; a verb on
// one object asks with the name or the id that is its argument; both print the answer by the table of its type. A verb
// on several objects takes their ids, or labels. What is left, and changes something or waits for it, is in the file of
// its noun.
//
// All words are checked before corrald is asked, so that a wrong line gets the same answer whether one runs or not:
// their number by checkLine, values by their flags, and what remains by the verb before it connects.

import (
	"context"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// A noun is what a kind of object is called on the command line, and how an argument names one: key reads that.
type noun[K any] struct {
	name string
	key  func(noun, argument string) (K, error)
}

// named and numbered are the keys of nouns with names, which may be ids too, and of those with ids only.
func named(_, argument string) (string, error) { return argument, nil }

func numbered[T ~int64](noun, argument string) (T, error) {
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

// one and many print by a table.
func one[T any](p *printer, l listing[T]) func(T) error {
	return func(v T) error { return show(p, v, l) }
}
func many[T any](p *printer, l listing[T]) func([]T) error {
	return func(v []T) error { return list(p, v, l) }
}

// listVerb lists the objects that corrald has; flags narrow them.
func listVerb[T any](
	p *printer, ask func(*api.Client, context.Context, api.Filter) ([]T, error), l listing[T], flags ...cli.Flag,
) *cli.Command {
	return &cli.Command{Name: "list", Flags: append([]cli.Flag{allFlag()}, flags...),
		Action: func(c *cli.Context) error {
			cl, err := connect(c)
			if err != nil {
				return err
			}
			f := api.Filter{All: c.Bool("all"), Site: c.String("site"), Cluster: c.String("cluster"),
				Labels: labelsOf(c, "l")}
			return printing(ask, many(p, l))(c, cl, f)
		}}
}

// A choice is which objects a command line names: by id, or by labels.
type choice[T ~int64] struct {
	ids    []T
	labels map[string]string
}

// chosen reads the choice: either arguments or -l.
func chosen[T ~int64](c *cli.Context, noun string) (which choice[T], err error) {
	which.labels = labelsOf(c, "l")
	if (c.NArg() > 0) == (len(which.labels) > 0) {
		return which, corral.Errorf(corral.Invalid, "want either %s ids or -l k=v; see `%s --help`", noun,
			c.Command.HelpName)
	}
	for _, arg := range c.Args().Slice() {
		id, err := numbered[T](noun, arg)
		if err != nil {
			return which, err
		}
		which.ids = append(which.ids, id)
	}
	return which, nil
}

// none is the error of a wait for objects by labels that no object has.
func (w choice[T]) none(noun string) error {
	return corral.Errorf(corral.NotFound, "no %s has the label %s", noun, labels(w.labels))
}

// countDown returns a function that says how much of d is left, never 0; it is 0 (no limit) always if d is. The time
// begins with the first call.
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
