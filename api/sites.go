package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

func sitePath(ref string) string { return "/v1/sites/" + url.PathEscape(ref) }

// CreateSite creates a site. Staging goes on after the answer; WaitSite waits for it. An empty key is
// replaced by a random one.
func (c *Client) CreateSite(ctx context.Context, s NewSite, key string) (corral.Site, error) {
	return create[corral.Site](ctx, c, "/v1/sites", key, s)
}

// Sites lists sites, oldest first.
func (c *Client) Sites(ctx context.Context, f Filter) ([]corral.Site, error) {
	return list[corral.Site](ctx, c, "/v1/sites", f.query())
}

// Site returns the site with the name or id ref: where no site has the name any more, the DELETED one that had it last.
func (c *Client) Site(ctx context.Context, ref string) (corral.Site, error) {
	return get[corral.Site](ctx, c, sitePath(ref), nil)
}

// WaitSite returns the site once it is in one of the states of until, a comma-separated list. A site
// that fails instead is an error of kind Failed; timeout (0: none) one of kind Timeout.
func (c *Client) WaitSite(ctx context.Context, ref, until string, timeout time.Duration) (corral.Site, error) {
	u, err := ParseUntil(until, corral.SiteStates)
	if err != nil {
		return corral.Site{}, err
	}
	return wait(ctx, c, sitePath(ref), waiting[corral.Site]{u, timeout, u.Site})
}

// SetSite changes limits and options of a site, for the attempts that follow.
func (c *Client) SetSite(ctx context.Context, ref string, s SetSite) (corral.Site, error) {
	return send[corral.Site](ctx, c, call{method: http.MethodPatch, path: sitePath(ref)}, s)
}

// RemoveSite asks that the site's glideins go, then everything that Corral put there, then the record.
// With force the record goes at once, and what the site keeps stays there. Repeating it is harmless.
func (c *Client) RemoveSite(ctx context.Context, ref string, force bool) (corral.Site, error) {
	return remove[corral.Site](ctx, c, sitePath(ref), flag("force", force))
}

// ProbeSite finds out what the site is like, which is stored with it and checks what is asked of it from then on. At a
// READY one a small job looks at a worker node; with Network another measures how the HTCondor pool of a cluster would
// reach workers there. Each takes some seconds, or as long as the site's queue, up to a minute.
func (c *Client) ProbeSite(ctx context.Context, ref string, n NewProbe) (Probe, error) {
	return create[Probe](ctx, c, sitePath(ref)+"/probe", "", n)
}

// ForgiveNodes lets attempts use these nodes of the site again, or all of its nodes if none is named: what has failed
// on them so far no longer counts. Repeating it is harmless.
func (c *Client) ForgiveNodes(ctx context.Context, ref string, nodes ...string) (corral.Site, error) {
	return create[corral.Site](ctx, c, sitePath(ref)+"/forgive", "", NewForgiveness{Nodes: nodes})
}

// SiteHistory returns what happened to the site and to its setup and cleanup jobs, oldest first.
func (c *Client) SiteHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, sitePath(ref)+"/history", nil)
}

// SiteTimeline returns the timeline's events of all jobs at the site.
func (c *Client) SiteTimeline(ctx context.Context, ref string) ([]corral.TimelineEvent, error) {
	return list[corral.TimelineEvent](ctx, c, sitePath(ref)+"/timeline", nil)
}

// SiteWaits returns how long attempts waited in the site's queues, by queue and shape: also those of sites that had its
// name before.
func (c *Client) SiteWaits(ctx context.Context, ref string) ([]corral.WaitStats, error) {
	return list[corral.WaitStats](ctx, c, sitePath(ref)+"/waits", nil)
}

// SiteBacklog asks a site's batch system who holds the processors of a queue, and who waits for them; an empty name is
// the site's own queue.
func (c *Client) SiteBacklog(ctx context.Context, ref, queue string) (corral.Backlog, error) {
	return get[corral.Backlog](ctx, c, sitePath(ref)+"/backlog", url.Values{"queue": {queue}})
}

// A Ledger is what may be spent at a site, what is promised to plans, and what was spent.
type Ledger struct {
	Site    string `json:"site"`
	Price   string `json:"price"`             // that everything is charged at
	Billing string `json:"billing,omitempty"` // empty: the time that is held
	cost.Statement
}

// SiteLedger returns the ledger of a site.
func (c *Client) SiteLedger(ctx context.Context, ref string) (Ledger, error) {
	return get[Ledger](ctx, c, sitePath(ref)+"/ledger", nil)
}

// SiteEachWait returns how long each attempt waited there, the latest 10,000 in the order of their submission.
func (c *Client) SiteEachWait(ctx context.Context, ref string) ([]corral.Wait, error) {
	return list[corral.Wait](ctx, c, sitePath(ref)+"/waits/each", nil)
}

// flag is a query that has name if set.
func flag(name string, set bool) url.Values {
	if !set {
		return nil
	}
	return url.Values{name: {"true"}}
}

// Words is a probe as histories have it: a line for what the batch system says of itself, and one for the network if
// that was measured.
func (p Probe) Words() []string {
	said := p.Facts.Batch
	var queues []string
	for _, q := range p.Facts.Queues {
		queues = append(queues, q.Name)
	}
	if len(queues) > 0 {
		said += ", queues: " + strings.Join(queues, ", ")
	}
	if p.Network == nil {
		return []string{said}
	}
	return []string{said, p.Network.String()}
}
