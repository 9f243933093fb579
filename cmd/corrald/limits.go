package main

// Limits for the users of a central corrald. They apply to an owner, regardless of the number of tokens; corrald's own
// user, who connects to the socket, is subject only to the minimum transfer speed of a request's body.

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
			Usage: "sustained requests per second of an owner, for all tokens together; 0: any number"},
		number("burst", 1000, "burst of requests of an owner above the rate"),
		number("max-requests", 2000, "concurrent requests of an owner, including waits; 0: any number"),
		number("max-body", 64, "MiB of a request with a token, such as a workflow; 0: the operation's own limit"),
		number("max-bodies", 128, "MiB of an owner's requests that are held in memory at a time; 0: any number"),
		number("least-speed", int(rest.DefaultPace.Floor>>10),
			"minimum average speed of a request's body in KiB per second, after the first ten seconds"),
		&cli.StringSliceFlag{Name: "allow-contacts", Value: cli.NewStringSlice("*"),
			EnvVars: variables("allow-contacts"),
			Usage: "`HOST[:PORT]` of users' sites: a name, *.DOMAIN, *, an address or ADDRESS/BITS; PORT is a " +
				"number, * for any, or 22 by default; names never mean this machine; may be repeated"},
		&cli.Float64Flag{Name: "visits", Value: 10, EnvVars: variables("visits"),
			Usage: "connections per minute that corrald makes to sites for an owner's requests; 0: any number"},
		number("visits-burst", 20, "burst of such connections above that rate"),
	}
	for _, q := range access.Quotas {
		all = append(all, number("max-"+q.Name, q.Default, "maximum number of "+q.What+" of an owner; 0: any number"))
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
		return invalid("--max-bodies", "%d MiB is less than the %d MiB of one request (--max-body)",
			bodies>>20, body>>20)
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
