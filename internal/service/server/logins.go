package server

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/login"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

// loginHandlers answer requests of people who log in at a site. This is necessary if keys alone do not admit corrald;
// corrald then holds the connection and uses it until it breaks. There is one route: it starts or continues a login,
// and its answers contain the questions.
type loginHandlers struct {
	*rest.Adapter
	reach    *siteaccess.Reach
	sessions *login.Sessions
	visits   *visitKeeper
}

func newLogins(a *rest.Adapter, cfg Config, sessions *login.Sessions, v *visitKeeper) *loginHandlers {
	return &loginHandlers{a, cfg.Reach, sessions, v}
}

func (h *loginHandlers) routes() []rest.Route {
	return []rest.Route{rest.Post("/v1/logins", h.step)}
}

// step answers with the first question of a login, accepts the answers, and so on until the login is over. It
// bypasses the stored answers of requests, because those are stored with a digest of the body, and a digest of a
// passphrase must not be stored.
func (h *loginHandlers) step(c *rest.Call) error {
	var in api.NewLogin
	if _, err := rest.Decode(c, &in); err != nil {
		return err
	}
	ctx := c.Context()
	s, n, err := h.session(c, in)
	if err != nil {
		return err
	}
	if in.Cancel {
		s.Cancel()
		return c.JSON(api.Login{})
	}
	if n > 0 { // the request continues a login
		if err := s.Answer(n, in.Answers); err != nil {
			return err
		}
	}
	// A login at a site is recorded in the site's history; a login at a contact is not recorded. If the last request is
	// repeated, the additional entry is harmless.
	next, err := s.Next(ctx, n)
	if err == nil && next.Done && s.Site.ID != 0 {
		err = h.DB.Request(ctx).Write(ctx, c.Actor(), func(tx *store.Tx) error {
			return tx.Log(corral.ObjectSite, int64(s.Site.ID), "login", "")
		})
	}
	if err != nil {
		return visitEntry(c.Caller(), err)
	}
	return c.JSON(next)
}

// session starts a login, or finds the login that the request continues and the number of the question it answers. A
// started login outlives the request, but not the server.
func (h *loginHandlers) session(c *rest.Call, in api.NewLogin) (s *login.Session, n int, err error) {
	if in.Session != "" {
		if in.Site != "" || in.Contact != "" || in.AcceptHostKey {
			return nil, 0, corral.ErrorAt(corral.Invalid, "session",
				"cannot be given with site, contact or accept_host_key")
		}
		return h.sessions.Find(c.Actor(), in.Session)
	}
	if in.Cancel || in.Answers != nil {
		return nil, 0, corral.ErrorAt(corral.Invalid, "session", "missing: name the login that the request continues")
	}
	site, err := h.where(c, in)
	if err == nil {
		err = h.visits.May(c.Caller(), time.Now())
	}
	if err != nil {
		return nil, 0, err
	}
	return h.sessions.Begin(h.Life, site, func(ctx context.Context, ask gridsite.Asker) error {
		return h.reach.Login(ctx, site, ask, in.AcceptHostKey)
	}), 0, nil
}

// where finds the site, or constructs one from a contact, because a person may have to log in before a site can be
// created. Only the owner of a site may log in there: otherwise another user's credentials would serve the owner as
// long as the connection lasts.
func (h *loginHandlers) where(c *rest.Call, in api.NewLogin) (site corral.Site, err error) {
	if (in.Site == "") == (in.Contact == "") {
		return site, corral.ErrorAt(corral.Invalid, "site", "want either site or contact")
	}
	site.Contact, site.Owner = in.Contact, c.Actor()
	if in.Site != "" {
		site, err = rest.View(c.Context(), h.DB, func(tx *store.Tx) (corral.Site, error) {
			return siteNamed(tx, in.Site)
		})
		if err == nil {
			err = access.MayUse(c.Actor(), "site", site.Name, site.Owner)
		}
		if err != nil {
			return site, err
		}
	}
	contact, err := gridsite.ParseContact(site.Contact)
	switch {
	case err != nil:
		return site, err
	case contact.Transport != "ssh":
		return site, corral.ErrorAt(corral.Unsatisfiable, "site", "%s needs no login", site.Contact)
	case site.State == corral.SiteDeleted:
		return site, settable(site)
	}
	site.Contact = contact.String()
	return site, h.visits.MayReach(c.Caller(), site.Contact)
}
