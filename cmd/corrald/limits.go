package main

// What the users of a central corrald may ask of it. Limits count by owner, whatever tokens an owner has; corrald's own
// user, who asks at its socket, has none but the least speed of a body.

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/service/server"
)

type limits struct {
	requests access.Limits
	objects  access.Most
	bounds   server.Bounds
}

func limitFlags() []cli.Flag {
	number := func(name string, value int, usage string) cli.Flag {
		return &cli.IntFlag{Name: name, Value: value, EnvVars: variables(name), Usage: usage}
	}
	all := []cli.Flag{
		&cli.Float64Flag{Name: "rate", Value: 100, EnvVars: variables("rate"),
			Usage: "requests a second of all tokens of an owner together, sustained; 0: any number"},
		number("burst", 1000, "requests of an owner at once, beyond the rate"),
		number("max-requests", 2000, "requests of an owner under way at a time, waits among them; 0: any number"),
		number("max-body", 64, "MiB of a request of a token, such as a workflow; 0: what the operation takes"),
		number("max-bodies", 128, "MiB of requests of an owner that are read and held at a time; 0: any number"),
		number("least-speed", int(rest.DefaultPace.Floor>>10),
			"KiB a second at which a request's body has to arrive on average, after its first ten seconds"),
		&cli.StringSliceFlag{Name: "allow-contacts", Value: cli.NewStringSlice("*"),
			EnvVars: variables("allow-contacts"),
			Usage: "`HOST[:PORT]` of users' sites: a name, *.DOMAIN, *, an address or ADDRESS/BITS, at port 22 " +
				"unless it says another, or * for any; names never mean this machine; may be repeated"},
		&cli.Float64Flag{Name: "visits", Value: 10, EnvVars: variables("visits"),
			Usage: "a minute, of corrald to sites for requests of an owner; 0: any number"},
		number("visits-burst", 20, "such visits at once, beyond that"),
	}
	for _, q := range access.Quotas {
		all = append(all, number("max-"+q.Name, q.Default, "the most "+q.What+" that an owner may have; 0: any number"))
	}
	return all
}

func newLimits(c *cli.Context) (l limits, err error) {
	invalid := func(flag, format string, args ...any) (limits, error) {
		return l, corral.ErrorAt(corral.Invalid, flag, format, args...)
	}
	for _, name := range []string{"rate", "visits"} {
		if n := c.Float64(name); !(n >= 0 && n <= 1e6) {
			return invalid("--"+name, "%g is not a number from 0 to 1000000", n)
		}
	}
	for _, name := range []string{"burst", "visits-burst", "least-speed"} {
		if c.Int(name) < 1 {
			return invalid("--"+name, "%d is less than 1", c.Int(name))
		}
	}
	l.objects = access.Most{}
	most := []string{"max-requests", "max-body", "max-bodies"}
	for _, q := range access.Quotas {
		most = append(most, "max-"+q.Name)
		l.objects[q.Name] = c.Int("max-" + q.Name)
	}
	for _, name := range most {
		if c.Int(name) < 0 {
			return invalid("--"+name, "%d is negative", c.Int(name))
		}
	}
	body, bodies := int64(c.Int("max-body"))<<20, int64(c.Int("max-bodies"))<<20
	if bodies > 0 && bodies < body {
		return invalid("--max-bodies", "%d MiB are less than the %d of one request (--max-body)", bodies>>20, body>>20)
	}
	l.requests = access.Limits{Rate: access.Rate{PerSecond: c.Float64("rate"), Burst: c.Int("burst")},
		Requests: c.Int("max-requests"), MaxBody: body, Bodies: bodies}
	l.bounds.Pace.Floor = int64(c.Int("least-speed")) << 10
	l.bounds.Visits.Rate = access.Rate{
		PerSecond: c.Float64("visits") / time.Minute.Seconds(), Burst: c.Int("visits-burst"),
	}
	if l.bounds.Visits.Allowed, err = access.ParseContacts(c.StringSlice("allow-contacts")); err != nil {
		return invalid("--allow-contacts", "%w", err)
	}
	return l, nil
}
