package cli

// A site is created from flags or from a file, with the same fields. corrald checks the values; this file makes the
// checks that are possible only on the command line: that all required values are present, and that a YAML file means
// what its author wrote. If YAML would convert an account 0123 to the number 83, the file is refused instead.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
)

func (v siteVerbs) createCommand() *cli.Command {
	return &cli.Command{
		Name: "create",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "f", Usage: "read the site from `FILE`, - for stdin"},
			&cli.StringFlag{Name: "contact", Usage: "how to reach it, as `URL`: local: or ssh://[user@]host[:port]"},
			&cli.StringFlag{Name: "batch", Usage: "the batch `SYSTEM` for pilots: " + batchHelp()},
			&cli.StringFlag{Name: "head-batch", Usage: "the batch `SYSTEM` for setup and cleanup (default: " +
				corral.ForkBatch + ", on the head node)"},
			&cli.StringFlag{Name: "root", Usage: "`DIR` there, which only Corral uses " +
				"(default: one that corrald chooses, through ssh $HOME/.corral-NAME)"},
			acceptHostKeyFlag(),
			waitFlag("it is READY"), timeoutFlag(), keyFlag(),
		}, siteFlags()...),
		Action: v.create,
	}
}

// siteFlags returns the flags for properties of a site that can be changed later.
func siteFlags() []cli.Flag {
	return append(batchFlags(),
		&cli.IntFlag{Name: "max-queued",
			Usage: "let at most `N` attempts wait in its batch system at once (default: 0, no limit)"},
		&cli.IntFlag{Name: "max-running", Usage: "let at most `N` attempts wait or run (default: 0, no limit)"},
		&cli.StringFlag{Name: "price",
			Usage: "the price of held processors, `AMOUNT/PER`, such as 0.04USD/cpu-hour, 0.68USD/host-hour, " +
				"1SU/max(cpu=1,mem=0.25,gpu=8)-hour or 1SU/sum(cpu=1,mem=0.25,gpu=8)-hour " +
				"(default: by Slurm's billing weights, or 1ch/cpu-hour)"},
		&cli.StringFlag{Name: "billing",
			Usage: "bill each started `PERIOD`, 1h, 1m or 1s, or 10m-minimum (default: the exact time)"},
		&cli.StringFlag{Name: "allocation",
			Usage: "maximum `AMOUNT` for all pilots there, such as 5000ch (default: unlimited)"})
}

// batchFlags returns the flags for options of a batch system, which sites and glideins share.
func batchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "queue", Usage: "`QUEUE` of the batch system" + nativeNames("queue")},
		&cli.StringFlag{Name: "account", Usage: "`ACCOUNT` to charge" + nativeNames("account")},
		&cli.StringFlag{Name: "qos", Usage: "quality of service `QOS` of the batch system" + nativeNames("qos")},
		&cli.StringFlag{Name: "constraint",
			Usage: "only nodes with these `FEATURES`, as the batch system writes them" + nativeNames("constraint")},
		&cli.StringSliceFlag{Name: "site-opt",
			Usage: "literal `LINE` for the batch system; may be repeated" + nativeNames("site_options")},
	}
}

// batchHelp describes each batch system.
func batchHelp() string {
	var words []string
	for _, b := range corral.BatchSystems {
		words = append(words, b.Name+", which "+b.Help)
	}
	return strings.Join(words, "; or ")
}

// nativeNames lists the names of an option in the batch systems that support it.
func nativeNames(option string) string {
	var words []string
	for _, b := range corral.BatchSystems {
		if word := b.Options[option]; word != "" {
			words = append(words, b.Name+": "+word)
		}
	}
	return " (" + strings.Join(words, "; ") + ")"
}

// batchOptions reads the values of batchFlags.
func batchOptions(c *cli.Context) corral.BatchOptions {
	return corral.BatchOptions{
		Queue: c.String("queue"), Account: c.String("account"), QOS: c.String("qos"),
		Constraint:  c.String("constraint"),
		SiteOptions: c.StringSlice("site-opt"),
	}
}

// create creates the site. If the site requires a person to log in, create passes on the questions and then tries
// again; a creation that corrald refused has left nothing behind.
func (v siteVerbs) create(c *cli.Context) error {
	n, err := newSite(c, v.in)
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	s, err := cl.CreateSite(c.Context, n, c.String("key"))
	if asksAPerson(err) {
		var who person
		defer who.close()
		if who.open() != nil { // otherwise the site would count the unanswered question as a failed login
			v.say("run this command on a terminal to answer the site's questions")
		} else if err = cl.Login(c.Context, api.NewLogin{Contact: n.Contact}, who.ask); err == nil {
			s, err = cl.CreateSite(c.Context, n, c.String("key"))
		}
	}
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		name := s.Name
		if s, err = awaitSite(c, cl, s, corral.SiteReady); err != nil {
			v.say("site %s stays: see `corral site history %s`, or `corral site remove %s`", name, name, name)
			return err
		}
	}
	return siteTable.show(v.printer, s)
}

// asksAPerson reports whether the error means that the site requires a person to log in.
func asksAPerson(err error) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Kind == corral.Forbidden && p.Place == "login"
}

// newSite reads the request from flags or from a file. The only flag allowed beside a file is --accept-host-key, which
// is not a property of the site.
func newSite(c *cli.Context, stdin io.Reader) (api.NewSite, error) {
	n := api.NewSite{
		Contact: c.String("contact"), Batch: c.String("batch"), HeadBatch: c.String("head-batch"),
		Root:      c.String("root"),
		MaxQueued: c.Int("max-queued"), MaxRunning: c.Int("max-running"), BatchOptions: batchOptions(c),
		SiteTerms: corral.SiteTerms{Price: c.String("price"), Billing: c.String("billing"),
			Allocation: c.String("allocation")},
	}
	file, accept := c.String("f"), c.Bool("accept-host-key")
	if file == "" {
		n.Name, n.AcceptHostKey = c.Args().First(), accept
		for _, given := range []struct{ what, value string }{{"NAME", n.Name}, {"--contact", n.Contact},
			{"--batch", n.Batch}} {
			if given.value == "" {
				return n, corral.ErrorAt(corral.Invalid, given.what, "is missing: see `corral site create --help`")
			}
		}
		return n, nil
	}
	if !reflect.DeepEqual(n, api.NewSite{}) || c.NArg() > 0 {
		return n, corral.ErrorAt(corral.Invalid, "-f", "cannot be used with NAME or flags for contents of the file")
	}
	b, err := readAll(c.Context, file, stdin, maxSiteFile)
	if err != nil {
		return n, corral.ErrorAt(corral.Invalid, "-f", "%w", err)
	}
	n, err = input.Await(c.Context, func() (api.NewSite, error) { return parseSite(file, b) })
	n.AcceptHostKey = n.AcceptHostKey || accept && err == nil
	return n, err
}

// maxSiteFile is the maximum length of a site file in bytes; it is limited because the time for reading deeply nested
// YAML grows with the square of the length.
const maxSiteFile = 64 << 10

// readAll reads a file of at most limit bytes, or stdin if the name is - and stdin is not nil. The file may be a pipe,
// such as the shell's <(COMMAND), so the end of ctx ends the wait for its input.
func readAll(ctx context.Context, file string, stdin io.Reader, limit int64) ([]byte, error) {
	return input.Await(ctx, func() ([]byte, error) {
		r := stdin
		if file != "-" || stdin == nil {
			f, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			r = f
		}
		b, err := input.ReadAll(r, limit)
		if _, ok := errors.AsType[*input.TooLongError](err); ok {
			err = fmt.Errorf("%s is %w", file, err)
		}
		return b, err
	})
}

// parseSite reads a site file, called name in messages, and refuses unknown fields. The file may also be JSON, which is
// valid YAML. The decoder silently converts 2.5 to 2 and the account 0123 to 83, so each field is checked again.
func parseSite(name string, b []byte) (n api.NewSite, err error) {
	if b, err = parseYAML(name, b, &n, "site"); err != nil {
		return api.NewSite{}, err
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[api.NewSite]()) {
		if at := mistyped(b, field); at != nil {
			return api.NewSite{}, corral.ErrorAt(corral.Invalid, name, "%s", wantedType(at, field.Type.Kind()))
		}
	}
	return n, nil
}

// parseYAML reads a file, called name in messages, which must contain exactly one document, into a value, and returns
// the file's text without a byte order mark. what names the content in messages.
func parseYAML(name string, b []byte, into any, what string) ([]byte, error) {
	b = trimBOM(b)
	for _, t := range lexer.Tokenize(string(b)) { // a few nested aliases can expand to more than fits in memory
		if t.Type == token.AliasType {
			return nil, corral.ErrorAt(corral.Invalid, name,
				"[%d:%d] aliases are not supported: write out the value", t.Position.Line, t.Position.Column)
		}
	}
	documents := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict(), yaml.UseJSONUnmarshaler())
	if err := documents.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return nil, corral.ErrorAt(corral.Invalid, name, "%s", yamlProblem(err))
	}
	if err := documents.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, corral.ErrorAt(corral.Invalid, name, "contains more than one %s", what)
	}
	return b, nil
}

// yamlProblem describes an error in a file, and its place, without the names of Go types.
func yamlProblem(err error) string {
	var other *yaml.TypeError
	var big *yaml.OverflowError
	var shape *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &other):
		return wantedType(other.Token, other.DstType.Kind())
	case errors.As(err, &big):
		return wantedType(big.Token, big.DstType.Kind())
	case errors.As(err, &shape) && shape.Expected == ast.SequenceType:
		return wantedType(shape.Token, reflect.Slice)
	}
	return yaml.FormatError(err, false, false)
}

// wantedType describes the type that is expected at a token.
func wantedType(at *token.Token, kind reflect.Kind) string {
	what := map[reflect.Kind]string{
		reflect.String: "text: put it in quotes", reflect.Bool: "true or false", reflect.Int: "a whole number",
		reflect.Slice: "a list",
	}[kind]
	return fmt.Sprintf("[%d:%d] want %s", at.Position.Line, at.Position.Column, what)
}

// mistyped returns the token of a field that the decoder has converted to another type: 2.5 to 2, or the account 0123
// to 83. It returns nil if the field is absent or has the correct type.
func mistyped(b []byte, field reflect.StructField) *token.Token {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	path, err := yaml.PathString("$." + name)
	if name == "" || err != nil {
		return nil
	}
	node, err := path.ReadNode(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	var made bool
	switch node.Type() {
	case ast.IntegerType, ast.BoolType:
		made = field.Type.Kind() == reflect.String
	case ast.FloatType:
		made = true
	case ast.StringType:
		made = field.Type.Kind() == reflect.Int
	}
	if !made {
		return nil
	}
	return node.GetToken()
}

func (v siteVerbs) setCommand() *cli.Command {
	return &cli.Command{Name: "set", Flags: siteFlags(), Action: v.set}
}

// set changes the given options and leaves the others unchanged.
func (v siteVerbs) set(c *cli.Context) error {
	in := siteChange(c)
	if in == (api.SetSite{}) {
		return corral.Errorf(corral.Invalid, "nothing to change; see `%s --help`", c.Command.HelpName)
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	s, err := cl.SetSite(c.Context, c.Args().First(), in)
	if err != nil {
		return err
	}
	return v.show(s)
}

// siteChange returns the change described by the flags that were given.
func siteChange(c *cli.Context) (in api.SetSite) {
	for name, to := range map[string]**string{"queue": &in.Queue, "account": &in.Account, "qos": &in.QOS,
		"constraint": &in.Constraint, "price": &in.Price, "billing": &in.Billing, "allocation": &in.Allocation} {
		if c.IsSet(name) {
			value := c.String(name)
			*to = &value
		}
	}
	for name, to := range map[string]**int{"max-queued": &in.MaxQueued, "max-running": &in.MaxRunning} {
		if c.IsSet(name) {
			value := c.Int(name)
			*to = &value
		}
	}
	if c.IsSet("site-opt") {
		lines := slices.DeleteFunc(c.StringSlice("site-opt"), func(line string) bool { return line == "" })
		in.SiteOptions = &lines
	}
	return in
}
