package server

import (
	"cmp"
	"io"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// A subject is an object whose history is wanted.
type subject struct {
	object string
	id     int64
}

func jobSubjects(jobs []corral.Job) []subject {
	var subjects []subject
	for _, j := range jobs {
		subjects = append(subjects, subject{corral.ObjectJob, int64(j.ID)})
	}
	return subjects
}

// history answers with a page of the histories of what find returns, in the order of time.
func (s *Server) history(c echo.Context, find func(*store.Tx) ([]subject, error)) error {
	q := queryOf(c, "after", "limit")
	page := q.page(api.MaxPage)
	if q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.Entry], error) {
		subjects, err := find(tx)
		if err != nil {
			return api.List[corral.Entry]{}, err
		}
		var entries []corral.Entry
		for _, sub := range subjects {
			some, err := tx.History(sub.object, sub.id, oneMore(page))
			if err != nil {
				return api.List[corral.Entry]{}, err
			}
			entries = append(entries, some...)
		}
		slices.SortFunc(entries, func(a, b corral.Entry) int { return cmp.Compare(a.ID, b.ID) })
		return listOf(entries, page.Limit, func(e corral.Entry) int64 { return e.ID }), nil
	})
}

func (s *Server) siteHistory(c echo.Context) error {
	return s.history(c, func(tx *store.Tx) ([]subject, error) {
		site, err := siteOnRecord(c, tx)
		if err != nil {
			return nil, err
		}
		setup, cleanup, err := siteJobs(tx, site.ID)
		own := subject{corral.ObjectSite, int64(site.ID)}
		return append([]subject{own}, jobSubjects(append(setup, cleanup...))...), err
	})
}

// siteJobs returns the site's setup jobs and cleanup jobs.
func siteJobs(tx *store.Tx, site corral.SiteID) (setup, cleanup []corral.Job, err error) {
	setup, err = tx.Jobs(store.JobFilter{Site: site, Kind: corral.SetupJob})
	if err != nil {
		return nil, nil, err
	}
	cleanup, err = tx.Jobs(store.JobFilter{Site: site, Kind: corral.CleanupJob})
	return setup, cleanup, err
}

func (s *Server) glideinHistory(c echo.Context) error {
	return s.history(c, func(tx *store.Tx) ([]subject, error) {
		g, err := s.theGlidein(c, tx)
		own := subject{corral.ObjectGlidein, int64(g.ID)}
		return append([]subject{own}, jobSubjects(g.Attempts)...), err
	})
}

func (s *Server) clusterHistory(c echo.Context) error {
	return s.history(c, func(tx *store.Tx) ([]subject, error) {
		cluster, err := theCluster(c, tx)
		return []subject{{corral.ObjectCluster, int64(cluster.ID)}}, err
	})
}

// timeline answers with the events that the jobs of find have reached.
func (s *Server) timeline(c echo.Context, find func(*store.Tx) ([]corral.Job, error)) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.TimelineEvent], error) {
		jobs, err := find(tx)
		return whole(corral.Timeline(jobs...), ""), err
	})
}

func (s *Server) siteTimeline(c echo.Context) error {
	return s.timeline(c, func(tx *store.Tx) ([]corral.Job, error) {
		site, err := siteOnRecord(c, tx)
		if err != nil {
			return nil, err
		}
		return tx.Jobs(store.JobFilter{Site: site.ID})
	})
}

func (s *Server) glideinTimeline(c echo.Context) error {
	return s.timeline(c, func(tx *store.Tx) ([]corral.Job, error) {
		g, err := s.theGlidein(c, tx)
		if err != nil {
			return nil, err
		}
		setup, cleanup, err := siteJobs(tx, g.Site)
		return slices.Concat(setup, g.Attempts, cleanup), err
	})
}

// sendFile answers with a file that a process left.
func sendFile(c echo.Context, content io.Reader) error {
	c.Response().Header().Set("X-Content-Type-Options", "nosniff") // it may be anything
	return c.Stream(http.StatusOK, echo.MIMETextPlainCharsetUTF8, content)
}
