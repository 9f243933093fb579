package cli

// The verbs for sites and the listings of corrald's data about a site. Larger verbs have files of their own:
// site_create.go creates and changes sites, site_probe.go examines them, site_login.go logs in.

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/credential"
)

var sites = noun[string]{name: "site", key: nameKey}

// siteVerbs are the verbs for sites.
type siteVerbs struct{ *printer }

func (v siteVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "site", Category: resources,
		Subcommands: []*cli.Command{
			v.createCommand(),
			v.setCommand(),
			v.loginCommand(),
			v.keyCommand(),
			siteTable.listVerb(v.printer, (*api.Client).Sites),
			sites.verb("show", printing((*api.Client).Site, v.show)),
			sites.verb("history", printing((*api.Client).SiteHistory, entryTable.many(v.printer))),
			v.ledgerCommand(),
			sites.verb("waits", func(c *cli.Context, cl *api.Client, ref string) error {
				if c.Bool("each") {
					return printing((*api.Client).SiteEachWait, waitTable.many(v.printer))(c, cl, ref)
				}
				return printing((*api.Client).SiteWaits, waitsTable.many(v.printer))(c, cl, ref)
			}, &cli.BoolFlag{Name: "each", Usage: "list the attempts instead of statistics"}),
			v.waitCommand(),
			v.slotsCommand(),
			v.priceCommand(),
			v.rankCommand(),
			v.probeCommand(),
			sites.verb("forgive", func(c *cli.Context, cl *api.Client, ref string) error {
				s, err := cl.ForgiveNodes(c.Context, ref, c.Args().Tail()...)
				if err != nil {
					return err
				}
				return v.show(s)
			}),
			v.orphansCommand(),
			sites.verb("remove",
				v.remove,
				&cli.BoolFlag{Name: "force", Usage: "forget it at once, whatever remains there"},
				waitFlag("it is DELETED"), timeoutFlag()),
		},
	}
}

// awaitSite waits for a state of the site. It uses the id because another site may be given the name in the meantime.
func awaitSite(c *cli.Context, cl *api.Client, s corral.Site, until corral.SiteState) (corral.Site, error) {
	id := fmt.Sprint(s.ID)
	s, err := cl.WaitSite(c.Context, id, string(until), c.Duration("timeout"))
	if err != nil {
		return s, objectError{"/v1/sites/" + id, err}
	}
	return s, nil
}

// show prints a site and, in a table below, the nodes that the next attempts avoid.
func (v siteVerbs) show(s corral.Site) error {
	if err := siteTable.show(v.printer, s); err != nil || !v.forPeople() || len(s.Avoided) == 0 {
		return err
	}
	fmt.Fprintln(v.out)
	return avoidedTable.list(v.printer, s.Avoided)
}

var avoidedTable = listing[corral.BadNode]{
	id: func(b corral.BadNode) string { return b.Node },
	columns: []column[corral.BadNode]{
		{"avoided node", func(b corral.BadNode) any { return b.Node }},
		{"attempts", func(b corral.BadNode) any { return b.Attempts }},
		{"since", func(b corral.BadNode) any { return when(b.Since) }},
		{"until", func(b corral.BadNode) any { return when(b.Until) }},
		{"reason", func(b corral.BadNode) any { return b.Why }},
	},
}

// remove makes corrald clean up and remove the site. The removal continues even if the wait for it ends early.
func (v siteVerbs) remove(c *cli.Context, cl *api.Client, ref string) error {
	s, err := cl.RemoveSite(c.Context, ref, c.Bool("force"))
	if err != nil {
		return err
	}
	if c.Bool("force") {
		v.say("site %s is forgotten; its files below %s stay", s.Name, s.Root)
	}
	if c.Bool("wait") && s.State != corral.SiteDeleted {
		name := s.Name
		if s, err = awaitSite(c, cl, s, corral.SiteDeleted); err != nil {
			if corral.KindOf(err) != corral.Failed {
				v.say("the removal of site %s continues: see `corral site show %s`", name, name)
			}
			return err
		}
	}
	return siteTable.show(v.printer, s)
}

// siteTable shows, as part of the state, whether the site can be reached; the details describe the site's set-up.
var siteTable = listing[corral.Site]{
	owner: func(s corral.Site) string { return s.Owner },
	id:    func(s corral.Site) string { return s.Name },
	none:  "no sites; add one with `corral site create NAME --contact local: --batch fork`",
	columns: []column[corral.Site]{
		{"id", func(s corral.Site) any { return s.ID }},
		{"name", func(s corral.Site) any { return s.Name }},
		{"contact", func(s corral.Site) any { return s.Contact }},
		{"batch", func(s corral.Site) any { return s.Batch }},
		{"platform", func(s corral.Site) any { return platform(s.Platform) }},
		{"state", siteState},
		{"changed", func(s corral.Site) any { return when(s.UpdatedAt) }},
		{"reason", siteReason},
	},
	details: []column[corral.Site]{
		{"setup by", func(s corral.Site) any { return s.HeadBatch }},
		{"root", func(s corral.Site) any { return s.Root }},
		{"package", func(s corral.Site) any { return s.Package }},
		{"queue", func(s corral.Site) any { return s.Queue }},
		{"account", func(s corral.Site) any { return s.Account }},
		{"qos", func(s corral.Site) any { return s.QOS }},
		{"constraint", func(s corral.Site) any { return s.Constraint }},
		{"site options", func(s corral.Site) any { return strings.Join(s.SiteOptions, "; ") }},
		{"max queued", func(s corral.Site) any { return unless(s.Limits.MaxQueued) }},
		{"max running", func(s corral.Site) any { return unless(s.Limits.MaxRunning) }},
		{"price", sitePrice},
		{"billing", func(s corral.Site) any { return s.Billing }},
		{"allocation", func(s corral.Site) any { return s.Allocation }},
		{"relay", func(s corral.Site) any { return s.RelayTrouble }},
		{"credentials", func(s corral.Site) any { return credentials(s, time.Now()) }},
		{"probed", func(s corral.Site) any {
			if s.Facts == nil {
				return ""
			}
			return when(s.Facts.At)
		}},
	},
}

// sitePrice returns the price with which a site charges, and its source if it was not given.
func sitePrice(s corral.Site) any {
	price := s.Terms().Price
	if s.Price == "" && price != "" {
		price += " (by Slurm's billing weights)"
	}
	return price
}

// siteState returns the site's state, with the reason why corrald cannot use it.
func siteState(s corral.Site) any {
	if trouble := s.Trouble.InShort(); trouble != "" && !s.State.Terminal() { // corrald does not contact a DELETED site
		return string(s.State) + " (" + trouble + ")"
	}
	if credential.Refuses(time.Now(), s.Credentials, 0) != "" {
		return string(s.State) + " (credential expired)"
	}
	return s.State
}

// siteReason returns the reason for the state that siteState returns.
func siteReason(s corral.Site) any {
	if s.Trouble.Why != "" && !s.State.Terminal() {
		return fmt.Sprintf("since %s: %s", when(s.Trouble.Since), s.Trouble.Why)
	}
	if why := credential.Refuses(time.Now(), s.Credentials, 0); why != "" {
		return why + ". Nothing is submitted until then; what runs there goes on"
	}
	return s.Reason
}

// credentials returns the credentials with which corrald is logged in at a site, with their remaining validity.
func credentials(s corral.Site, now time.Time) string {
	var all []string
	for _, k := range s.Credentials {
		said := k.String()
		switch {
		case k.Expired(now):
			said += ", expired"
		case !k.NotAfter.IsZero():
			left := short(k.NotAfter.Sub(now).Truncate(time.Minute).String())
			said += fmt.Sprintf(", expires %s (in %s)", when(k.NotAfter), left)
		}
		all = append(all, said)
	}
	return strings.Join(all, "; ")
}

// waitsTable shows how long attempts waited in the queue, by queue and shape. For attempts that have not started, only
// a lower bound is known.
var waitsTable = listing[corral.WaitStats]{
	id: func(w corral.WaitStats) string {
		return fmt.Sprintf("%s %d×%d %s", w.Queue, w.Hosts, w.CPUs, short(w.Walltime.String()))
	},
	none: "no attempt has waited there yet",
	columns: []column[corral.WaitStats]{
		{"queue", func(w corral.WaitStats) any { return w.Queue }},
		{"hosts×cpus", func(w corral.WaitStats) any { return fmt.Sprintf("%d×%d", w.Hosts, w.CPUs) }},
		{"walltime", func(w corral.WaitStats) any { return short(w.Walltime.String()) }},
		{"attempts", func(w corral.WaitStats) any { return w.Count }},
		{"not started", func(w corral.WaitStats) any { return w.Censored }},
		{"median", func(w corral.WaitStats) any { return quantile(w.Median) }},
		{"90%", func(w corral.WaitStats) any { return quantile(w.P90) }},
		{"longest", func(w corral.WaitStats) any {
			if w.Censored == w.Count {
				return "" // the value is not known yet
			}
			return span(time.Duration(w.Max))
		}},
	},
}

// waitTable shows each wait with the request to the batch system.
var waitTable = listing[corral.Wait]{
	id:   func(w corral.Wait) string { return w.SubmittedAt.Format(time.RFC3339) },
	none: "no attempt has waited there yet",
	columns: []column[corral.Wait]{
		{"submitted", func(w corral.Wait) any { return when(w.SubmittedAt) }},
		{"queue", func(w corral.Wait) any { return cmp.Or(w.Queue, w.Default) }},
		{"hosts×cpus", func(w corral.Wait) any { return fmt.Sprintf("%d×%d", w.Hosts, w.CPUs) }},
		{"memory", func(w corral.Wait) any { return size(w.MemoryMiB) }},
		{"gpus", func(w corral.Wait) any { return unless(w.GPUs) }},
		{"account", func(w corral.Wait) any { return w.Account }},
		{"qos", func(w corral.Wait) any { return w.QOS }},
		{"constraint", func(w corral.Wait) any { return w.Constraint }},
		{"walltime", func(w corral.Wait) any { return short(w.Walltime.String()) }},
		{"waited", func(w corral.Wait) any {
			d, censored := w.Waited(time.Now())
			return quantile(corral.Quantile{Wait: corral.Seconds(d), AtLeast: censored})
		}},
		{"start-up", func(w corral.Wait) any {
			return choose(w.StartedAt.IsZero() || w.WorkersAt.IsZero(), "", span(max(0, w.WorkersAt.Sub(w.StartedAt))))
		}},
		{"outcome", func(w corral.Wait) any { return w.Outcome }},
	},
}

func quantile(q corral.Quantile) string {
	if q.AtLeast {
		return "over " + span(time.Duration(q.Wait))
	}
	return span(time.Duration(q.Wait))
}

func platform(p corral.Platform) string {
	if p == (corral.Platform{}) {
		return ""
	}
	return fmt.Sprintf("%s %s %s", p.OS, p.Arch, p.Libc)
}

// entryTable shows the history of any object.
var entryTable = listing[corral.Entry]{
	id:   func(e corral.Entry) string { return strconv.FormatInt(e.ID, 10) },
	none: "nothing happened yet",
	columns: []column[corral.Entry]{
		{"at", func(e corral.Entry) any { return whenExactly(e.At) }},
		{"object", func(e corral.Entry) any { return fmt.Sprintf("%s %d", e.Object, e.Of) }},
		{"event", func(e corral.Entry) any { return e.Event }},
		{"state", func(e corral.Entry) any { return e.To }},
		{"actor", func(e corral.Entry) any { return e.Actor }},
		{"reason", func(e corral.Entry) any { return e.Reason }},
	},
}
