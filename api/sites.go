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

// CreateSite creates a site. Staging continues after the answer; WaitSite waits for it. An empty key is replaced by a
// random one.
func (c *Client) CreateSite(ctx context.Context, s NewSite, key string) (corral.Site, error) {
	return create[corral.Site](ctx, c, "/v1/sites", key, s)
}

// Sites lists sites, oldest first.
func (c *Client) Sites(ctx context.Context, f Filter) ([]corral.Site, error) {
	return list[corral.Site](ctx, c, "/v1/sites", f.query())
}

// Site returns the site with the name or id ref. If no existing site has this name, it returns the last DELETED site
// that had it.
func (c *Client) Site(ctx context.Context, ref string) (corral.Site, error) {
	return get[corral.Site](ctx, c, sitePath(ref), nil)
}

// WaitSite returns the site once it is in one of the states of until, a comma-separated list. If the site fails
// instead, the error has kind Failed; after timeout (0: none), kind Timeout.
func (c *Client) WaitSite(ctx context.Context, ref, until string, timeout time.Duration) (corral.Site, error) {
	u, err := ParseUntil(until, corral.SiteStates)
	if err != nil {
		return corral.Site{}, err
	}
	return wait(ctx, c, sitePath(ref), waiting[corral.Site]{u, timeout, u.Site})
}

// SetSite changes limits and options of a site for future attempts.
func (c *Client) SetSite(ctx context.Context, ref string, s SetSite) (corral.Site, error) {
	return send[corral.Site](ctx, c, call{method: http.MethodPatch, path: sitePath(ref)}, s)
}

// RemoveSite requests the removal of the site's glideins, then of everything that Corral installed there, then of the
// record. With force it removes the record at once and leaves the rest. Repeating the request is harmless.
func (c *Client) RemoveSite(ctx context.Context, ref string, force bool) (corral.Site, error) {
	return remove[corral.Site](ctx, c, sitePath(ref), flag("force", force))
}

// ProbeSite examines the site. The result is stored with the site and used to check later requests. At a READY site a
// small job examines a worker node; if Network is set, another job measures how the HTCondor pool of a cluster would
// reach workers there. Each job takes several seconds or, in the site's queue, up to a minute.
func (c *Client) ProbeSite(ctx context.Context, ref string, n NewProbe) (Probe, error) {
	return create[Probe](ctx, c, sitePath(ref)+"/probe", "", n)
}

// ForgiveNodes allows attempts to use these nodes of the site again, or all of its nodes if none is named: past
// failures on these nodes no longer count. Repeating the request is harmless.
func (c *Client) ForgiveNodes(ctx context.Context, ref string, nodes ...string) (corral.Site, error) {
	return create[corral.Site](ctx, c, sitePath(ref)+"/forgive", "", NewForgiveness{Nodes: nodes})
}

// SiteHistory returns the events of the site and of its setup and cleanup jobs, oldest first.
func (c *Client) SiteHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, sitePath(ref)+"/history", nil)
}

// SiteTimeline returns the timeline's events of all jobs at the site.
func (c *Client) SiteTimeline(ctx context.Context, ref string) ([]corral.TimelineEvent, error) {
	return list[corral.TimelineEvent](ctx, c, sitePath(ref)+"/timeline", nil)
}

// SiteWaits returns statistics of the times for which attempts waited in the site's queues, by queue and shape. They
// include attempts at earlier sites with the same name.
func (c *Client) SiteWaits(ctx context.Context, ref string) ([]corral.WaitStats, error) {
	return list[corral.WaitStats](ctx, c, sitePath(ref)+"/waits", nil)
}

// SiteBacklog asks a site's batch system which jobs hold the processors of a queue and which jobs wait for processors.
// An empty name refers to the site's own queue.
func (c *Client) SiteBacklog(ctx context.Context, ref, queue string) (corral.Backlog, error) {
	return get[corral.Backlog](ctx, c, sitePath(ref)+"/backlog", url.Values{"queue": {queue}})
}

// A Ledger states the amounts that may be spent at a site, are reserved for plans, and were spent.
type Ledger struct {
	Site    string `json:"site"`
	Price   string `json:"price"`             // rate of all charges
	Billing string `json:"billing,omitempty"` // empty: the actual time
	cost.Statement
}

// SiteLedger returns the ledger of a site.
func (c *Client) SiteLedger(ctx context.Context, ref string) (Ledger, error) {
	return get[Ledger](ctx, c, sitePath(ref)+"/ledger", nil)
}

// SiteEachWait returns the wait of each attempt at the site: at most the latest 10,000, in the order of submission.
func (c *Client) SiteEachWait(ctx context.Context, ref string) ([]corral.Wait, error) {
	return list[corral.Wait](ctx, c, sitePath(ref)+"/waits/each", nil)
}

// flag returns a query with the parameter name, if set.
func flag(name string, set bool) url.Values {
	if !set {
		return nil
	}
	return url.Values{name: {"true"}}
}

// Words returns the probe's lines for histories: a line about the batch system, and a line about the network if it was
// measured.
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
