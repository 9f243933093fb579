package condorpool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
)

// tokenFile holds the token that was given for a pool that somebody else runs.
func (p *Pools) tokenFile(id corral.ClusterID) string { return filepath.Join(p.dir(id), "token") }

// PutToken keeps the text of a token for a cluster that is attached to a pool. It is given before the cluster
// becomes READY, in the transaction that makes it STARTING for example; a token that is there already is replaced.
func (p *Pools) PutToken(id corral.ClusterID, secret string) error {
	secret = strings.TrimSpace(secret)
	if _, err := condor.ParseToken(secret); err != nil {
		return corral.ErrorAt(corral.Invalid, "token", "is no token of HTCondor: %w", err)
	}
	if err := p.putToken(id, secret); err != nil {
		return corral.Errorf(corral.Failed, "keeping the token of a pool: %w", err)
	}
	return nil
}

func (p *Pools) putToken(id corral.ClusterID, secret string) error {
	if err := os.MkdirAll(p.cfg.Dir, 0o755); err != nil {
		return err
	}
	if err := p.makeFolder(p.dir(id)); err != nil {
		return err
	}
	aside := p.tokenFile(id) + ".new"
	if err := os.WriteFile(aside, []byte(secret+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(aside, p.tokenFile(id))
}

func (k *keeper) token() (string, error) {
	text, err := os.ReadFile(k.p.tokenFile(k.id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("no token for the pool was given: `corral cluster create … --token FILE`")
	}
	return strings.TrimSpace(string(text)), err
}

// attach checks that the pool answers and takes the token, and makes the cluster READY or FAILED.
func (k *keeper) attach(ctx context.Context, c corral.Cluster) (time.Duration, error) {
	ref, _, err := k.linkRelease(ctx, c)
	if err == nil {
		err = k.use(c)
	}
	if err != nil {
		return 0, k.fail(ctx, c, err)
	}
	tools, _ := k.commands()
	asking, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	version, err := k.meet(asking, c, tools)
	if err != nil {
		return 0, k.fail(ctx, c, err)
	}
	name, at, err := findSchedd(asking, c, tools)
	if err == nil {
		c.Schedd = name
		err = k.use(c) // which tells its commands
	}
	if err != nil {
		return 0, k.fail(ctx, c, err)
	}
	c, err = k.set(ctx, func(c *corral.Cluster) {
		c.Version, c.HTCondor, c.Schedd, c.ScheddAt = version, ref, name, at
	})
	if err != nil {
		return 0, err
	}
	return 0, k.started(ctx, fmt.Sprintf("HTCondor %s at %s, of somebody else; %s", version, c.Collector, k.howTokens(asking, tools)))
}

// use makes the commands on a pool that somebody else runs.
func (k *keeper) use(c corral.Cluster) error {
	secret, err := k.token()
	if err != nil {
		return err
	}
	tools, err := condor.Attach(condor.RemoteConfig{
		Dir:       filepath.Join(k.dir, "pool"),
		Release:   k.release(),
		Collector: c.Collector,
		Schedd:    c.Schedd,
		RunAs:     k.p.cfg.RunAs,
	}, secret)
	if err != nil {
		return err
	}
	k.found(nil, tools)
	return nil
}

// workerRights are what a token needs so that workers can join with it.
var workerRights = []string{"READ", "ADVERTISE_STARTD", "ADVERTISE_MASTER"}

// poolVersion finds the version in an ad's CondorVersion.
var poolVersion = regexp.MustCompile(`\$CondorVersion: (\d+\.\d+\.\d+)`)

// meet returns the version of the pool's collector, and why the pool is of no use if it is not.
func (k *keeper) meet(ctx context.Context, c corral.Cluster, tools condor.Tools) (version string, err error) {
	ads, err := tools.Query(ctx, "condor_status", []string{"-collector"}, []string{"CondorVersion", "MyAddress"})
	if err != nil {
		return "", unmet(c, err)
	}
	for _, ad := range ads {
		text, _ := ad.Text("CondorVersion")
		if m := poolVersion.FindStringSubmatch(text); m != nil {
			version = m[1]
		}
	}
	if version == "" {
		return "", fmt.Errorf("the collector %s names no version of itself", c.Collector)
	}
	for _, right := range workerRights {
		if _, err := tools.Run(ctx, nil, "condor_ping", "-type", "collector", right); err != nil {
			return "", fmt.Errorf("the pool's token does not let workers join, which need %s: %w", strings.Join(workerRights, ", "), err)
		}
	}
	return version, nil
}

// findSchedd returns the name of the schedd that takes the jobs of a cluster in a pool that somebody else runs, and where it
// listens, which is empty if that is the collector's port: workers behind a broker connect with it for each job. It is the one
// that was named, or the only one there is. The error says what there is if it is neither.
func findSchedd(ctx context.Context, c corral.Cluster, tools condor.Tools) (name, at string, err error) {
	ads, err := schedds(ctx, c, tools, c.Schedd)
	switch {
	case err != nil:
		return "", "", err
	case len(ads) == 1 && c.Schedd == "":
		name, _ = ads[0].Text("Name")
		return name, scheddAt(c, ads[0]), nil
	case len(ads) == 1:
		return c.Schedd, scheddAt(c, ads[0]), nil
	case c.Schedd != "":
		if ads, err = schedds(ctx, c, tools, ""); err != nil {
			return "", "", err
		}
	}
	return "", "", noSchedd(c, ads)
}

// schedds returns the ads of a pool's schedds, or of those with a name.
func schedds(ctx context.Context, c corral.Cluster, tools condor.Tools, name string) ([]condor.Ad, error) {
	args := []string{"-schedd"}
	if name != "" {
		args = append(args, name)
	}
	ads, err := tools.Query(ctx, "condor_status", args, []string{"Name", "MyAddress"})
	if err != nil {
		return nil, unmet(c, err)
	}
	return ads, nil
}

// noSchedd says why none of these schedds takes the jobs of a cluster.
func noSchedd(c corral.Cluster, ads []condor.Ad) error {
	const most = 10 // that a sentence names
	var names []string
	for _, ad := range ads {
		name, _ := ad.Text("Name")
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > most {
		names = append(names[:most], "…")
	}
	there := strings.Join(names, ", ")
	switch {
	case c.Schedd != "" && len(ads) > 0:
		return fmt.Errorf("the collector %s names no schedd %s, but %s: when it is there, `corral cluster start %s`; to use another, remove the cluster and create it again",
			c.Collector, c.Schedd, there, c.Name)
	case c.Schedd != "":
		return fmt.Errorf("the collector %s names no schedd %s, nor any other: when it is there, `corral cluster start %s`", c.Collector, c.Schedd, c.Name)
	case len(ads) == 0:
		return fmt.Errorf("the collector %s names no schedd, so nobody takes jobs: when there is one, `corral cluster start %s`", c.Collector, c.Name)
	}
	return fmt.Errorf("the collector %s names %d schedds, %s: remove the cluster, and create it with --schedd NAME, one of them",
		c.Collector, len(ads), there)
}

// scheddAt returns where the schedd of an ad listens, empty if that is the collector's port.
func scheddAt(c corral.Cluster, ad condor.Ad) string {
	text, _ := ad.Text("MyAddress")
	at, err := condor.ParseAddress(text)
	if err != nil || at.String() == c.Collector {
		return ""
	}
	return at.String()
}

// unmet says why a collector did not answer a question.
func unmet(c corral.Cluster, err error) error {
	var refused *condor.Refused
	if errors.As(err, &refused) {
		return fmt.Errorf("the collector %s refuses the token: %w", c.Collector, err)
	}
	return fmt.Errorf("the collector %s does not answer: %w", c.Collector, err)
}

// wrongElsewhere returns what is wrong with a pool that somebody else runs.
func (k *keeper) wrongElsewhere(ctx context.Context, c corral.Cluster) string {
	tools, _ := k.commands()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	ads, err := schedds(ctx, c, tools, c.Schedd)
	switch {
	case err != nil:
		return "the pool's collector does not answer: " + sentence(err)
	case len(ads) == 0 && c.Schedd != "":
		return fmt.Sprintf("the pool's collector does not name the schedd %s: jobs are neither taken nor shown until it does", c.Schedd)
	}
	return ""
}

// What the history says of the tokens of a pool that somebody else runs.
const (
	tokensFetched = "each attempt's workers get a token that the pool's collector makes for them (condor_token_fetch); corrald cannot revoke it"
	tokensGiven   = "the pool makes no token for us, so all workers get the one that was given; corrald cannot revoke it"
	tokensNone    = "no glidein can join"
)

// howTokens tries how workers will get their tokens.
func (k *keeper) howTokens(ctx context.Context, tools condor.Tools) string {
	_, why := fetchToken(ctx, tools, time.Minute)
	if why == nil {
		return tokensFetched
	}
	if _, err := k.given(); err != nil {
		return tokensNone + ": " + sentence(err)
	}
	return tokensGiven + ": " + sentence(why)
}

// fetch returns a token for an attempt's workers in a pool that somebody else runs.
func (k *keeper) fetch(ctx context.Context, tools condor.Tools, attempt corral.JobID, lifetime time.Duration) (condor.Token, error) {
	token, err := fetchToken(ctx, tools, lifetime)
	var refused *condor.Refused
	if !errors.As(err, &refused) {
		return token, err
	}
	if token, err = k.given(); err != nil {
		return condor.Token{}, err
	}
	if token.Expires.IsZero() {
		token.Expires = time.Now().Add(lifetime) // for all that this attempt needs
	}
	token.ID = fmt.Sprintf("%s/%d", token.ID, attempt) // one token for many attempts, each of which is noted
	return token, nil
}

// given returns the token that was given for the pool, if workers may have it. The error is Forbidden if it can do more
// than they need: who steals it from a site could submit jobs in its owner's name.
func (k *keeper) given() (condor.Token, error) {
	text, err := k.token()
	if err != nil {
		return condor.Token{}, err
	}
	token, err := condor.ParseToken(text)
	if err != nil {
		return condor.Token{}, err
	}
	more := slices.DeleteFunc(slices.Clone(token.Rights), func(r string) bool { return slices.Contains(workerRights, r) })
	what := "is for " + strings.Join(more, ", ") + ", too"
	switch {
	case len(token.Rights) == 0:
		what = "has all rights of its owner"
	case len(more) == 0:
		return token, nil
	}
	return condor.Token{}, corral.Errorf(corral.Forbidden, "the pool's collector makes no tokens for workers, and the one that was given %s, so it must not go to a site: "+
		"attach with a token that is for no more than %s, or have the pool's owner allow condor_token_fetch", what, strings.Join(workerRights, ", "))
}

func fetchToken(ctx context.Context, tools condor.Tools, lifetime time.Duration) (condor.Token, error) {
	args := []string{"-type", "COLLECTOR", "-lifetime", fmt.Sprint(int64((lifetime + time.Second - 1) / time.Second))}
	for _, right := range workerRights {
		args = append(args, "-authz", right)
	}
	out, err := tools.Run(ctx, nil, "condor_token_fetch", args...)
	if err != nil {
		return condor.Token{}, fmt.Errorf("fetching a token for workers: %w", err)
	}
	return condor.ParseToken(strings.TrimSpace(string(out)))
}
