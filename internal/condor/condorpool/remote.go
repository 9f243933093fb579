package condorpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
)

// A remote is a pool that another party runs; corrald uses it with the identity of the token in the cluster's folder.
// The pool's state can be queried, but we can neither start the pool nor make it revoke a token or refuse a slot.
type remote struct {
	c     corral.Cluster
	tools condor.Tools
	dir   folder
}

// workerRights lists the rights that a token must include so that workers can join the pool with it.
var workerRights = []string{"READ", "ADVERTISE_STARTD", "ADVERTISE_MASTER"}

// poolVersion matches the collector's version in the output of condor_ping.
var poolVersion = regexp.MustCompile(`(?m)^Remote Version:.*\$CondorVersion: (\d+\.\d+\.\d+)`)

// meet returns the version of the pool's collector. The error explains why the pool is unusable: it does not answer or
// does not accept the token. The version is read from the connection, because the collector's ad appears only some time
// after its start.
func (r remote) meet(ctx context.Context) (version string, err error) {
	out, err := r.tools.Run(ctx, nil, "condor_ping", "-verbose", "-type", "collector", workerRights[0])
	if err != nil {
		return "", r.unmet(err)
	}
	m := poolVersion.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("the collector %s does not report its version", r.c.Collector)
	}
	// Each right is tested, because a missing right would otherwise be noticed only when the first worker tries to
	// join.
	for _, right := range workerRights[1:] {
		if _, err := r.tools.Run(ctx, nil, "condor_ping", "-type", "collector", right); err != nil {
			return "", fmt.Errorf("the pool's token does not let workers join, which need %s: %w",
				strings.Join(workerRights, ", "), err)
		}
	}
	return string(m[1]), nil
}

// unmet returns the error for a collector that did not answer a query.
func (r remote) unmet(err error) error {
	if _, ok := errors.AsType[*condor.Refused](err); ok {
		return fmt.Errorf("the collector %s refuses the token: %w", r.c.Collector, err)
	}
	return fmt.Errorf("the collector %s does not answer: %w", r.c.Collector, err)
}

// findSchedd returns the name and address of the schedd that accepts the cluster's jobs: the schedd that the cluster
// names, or the only schedd of the pool. The address is empty if it is the collector's port; workers behind a broker
// connect to this address for each job. If there is no such schedd, the error lists the existing schedds.
func (r remote) findSchedd(ctx context.Context) (name, at string, err error) {
	ads, err := r.schedds(ctx, r.c.Schedd)
	if err == nil && len(ads) == 1 {
		return cmp.Or(r.c.Schedd, namesOf(ads)[0]), scheddAt(r.c, ads[0]), nil
	}
	if err == nil && r.c.Schedd != "" {
		ads, err = r.schedds(ctx, "")
	}
	if err == nil {
		err = noSchedd(r.c, namesOf(ads))
	}
	return "", "", err
}

// schedds returns the ads of the pool's schedds, or only of the schedd with the given name.
func (r remote) schedds(ctx context.Context, name string) ([]classad.Ad, error) {
	args := []string{"-schedd"}
	if name != "" {
		args = append(args, name)
	}
	ads, err := r.tools.Query(ctx, "condor_status", args, []string{"Name", "MyAddress"})
	if err != nil {
		return nil, r.unmet(err)
	}
	return ads, nil
}

// namesOf returns the names of daemons in the order of their ads.
func namesOf(ads []classad.Ad) []string {
	names := make([]string, len(ads))
	for i, ad := range ads {
		names[i], _ = ad.Text("Name")
	}
	return names
}

// noSchedd explains why none of a pool's schedds accepts a cluster's jobs.
func noSchedd(c corral.Cluster, there []string) error {
	const most = 10 // maximum number of names in the message
	names := slices.Sorted(slices.Values(there))
	if len(names) > most {
		names = append(names[:most], "…")
	}
	list, start := strings.Join(names, ", "), "`corral cluster start "+c.Name+"`"
	switch {
	case c.Schedd != "" && len(there) > 0:
		return fmt.Errorf("the collector %s does not list the schedd %s, but %s: when it appears, %s; "+
			"to use another, remove the cluster and create it again", c.Collector, c.Schedd, list, start)
	case c.Schedd != "":
		return fmt.Errorf("the collector %s lists neither the schedd %s nor any other: when it appears, %s",
			c.Collector, c.Schedd, start)
	case len(there) == 0:
		return fmt.Errorf("the collector %s does not list any schedd, so jobs cannot be submitted: "+
			"when there is one, %s", c.Collector, start)
	}
	return fmt.Errorf("the collector %s lists %d schedds, %s: remove the cluster, and create it with --schedd NAME, "+
		"one of them", c.Collector, len(there), list)
}

// scheddAt returns the address of an ad's schedd, or "" if it is the collector's port.
func scheddAt(c corral.Cluster, ad classad.Ad) string {
	text, _ := ad.Text("MyAddress")
	at, err := condor.ParseAddress(text)
	if err != nil || at.String() == c.Collector {
		return ""
	}
	return at.String()
}

// diagnose describes the pool's problem, or returns "" if there is no problem. It checks only what corrald needs: the
// collector, and the schedd that accepts the cluster's jobs.
func (r remote) diagnose(ctx context.Context) string {
	ads, err := r.schedds(ctx, r.c.Schedd)
	switch {
	case err != nil:
		return "the pool's collector does not answer: " + sentence(err)
	case len(ads) == 0 && r.c.Schedd != "":
		return fmt.Sprintf("the pool's collector does not list the schedd %s: jobs are neither accepted nor shown "+
			"until it does", r.c.Schedd)
	}
	return ""
}

// History entries about the tokens of a remote pool.
const (
	tokensFetched = "each attempt's workers get a token that the pool's collector creates for them " +
		"(condor_token_fetch); corrald cannot revoke it"
	tokensGiven = "the pool creates no token for corrald, so all workers get the one provided; corrald cannot revoke it"
	tokensNone  = "no glidein can join"
)

// howTokens determines by a test how workers will obtain their tokens.
func (r remote) howTokens(ctx context.Context) string {
	_, why := r.fetch(ctx, time.Minute)
	if why == nil {
		return tokensFetched
	}
	if _, err := r.given(); err != nil {
		return tokensNone + ": " + sentence(err)
	}
	return tokensGiven + ": " + sentence(why)
}

// mint returns a token for an attempt's workers: a token created by the collector or, failing that, the token provided
// for the pool.
func (r remote) mint(ctx context.Context, attempt corral.JobID, lifetime time.Duration) (condor.Token, error) {
	token, err := r.fetch(ctx, lifetime)
	var refused *condor.Refused
	if !errors.As(err, &refused) {
		return token, err
	}
	if token, err = r.given(); err != nil {
		return condor.Token{}, err
	}
	if token.Expires.IsZero() {
		token.Expires = time.Now().Add(lifetime) // long enough for this attempt
	}
	token.ID = fmt.Sprintf("%s/%d", token.ID, attempt) // many attempts share one token, and each attempt is recorded
	return token, nil
}

// fetch requests a token from the collector.
func (r remote) fetch(ctx context.Context, lifetime time.Duration) (condor.Token, error) {
	seconds := fmt.Sprint(int64((lifetime + time.Second - 1) / time.Second))
	args := []string{"-type", "COLLECTOR", "-lifetime", seconds}
	for _, right := range workerRights {
		args = append(args, "-authz", right)
	}
	out, err := r.tools.Run(ctx, nil, "condor_token_fetch", args...)
	if err != nil {
		return condor.Token{}, fmt.Errorf("fetching a token for workers: %w", err)
	}
	return condor.ParseToken(strings.TrimSpace(string(out)))
}

// given returns the token provided for the pool, if workers may receive it. A pool of another owner may be configured
// so that its collector creates no tokens for us; in that case no other token is available.
func (r remote) given() (condor.Token, error) {
	text, err := r.dir.token()
	if err != nil {
		return condor.Token{}, err
	}
	token, err := condor.ParseToken(text)
	if err == nil {
		err = mayTravel(token)
	}
	if err != nil {
		return condor.Token{}, err
	}
	return token, nil
}

// mayTravel returns a Forbidden error for a token with more rights than workers need: anyone who steals it from a
// site could submit jobs in its owner's name.
func mayTravel(token condor.Token) error {
	needed := func(right string) bool { return slices.Contains(workerRights, right) }
	more := slices.DeleteFunc(slices.Clone(token.Rights), needed)
	what := "also allows " + strings.Join(more, ", ")
	switch {
	case len(token.Rights) == 0:
		what = "has all rights of its owner"
	case len(more) == 0:
		return nil
	}
	return corral.Errorf(corral.Forbidden, "the pool's collector creates no tokens for workers, and the one "+
		"provided %s, so it must not be sent to a site: attach with a token that allows only %s, or ask the pool's "+
		"owner to allow condor_token_fetch", what, strings.Join(workerRights, ", "))
}
