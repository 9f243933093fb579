package metrics

import (
	"context"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// stored reads the store at each scrape, in one view. It reads the existing sites, so it also determines the sites for
// which the other collectors have series.
type stored struct {
	db     *store.DB
	from   Sources
	parts  []part
	sites  []perSite
	faults *faults

	mu   sync.Mutex                    // guards told
	told map[corral.SiteID]corral.Site // sites whose series were created
}

// Describe implements prometheus.Collector.
func (s *stored) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{sitesDesc, glideinsDesc, attemptsDesc, runsDesc, tasksDesc, endedDesc,
		oldestDesc, troubleDesc, loginDesc, heldDesc, expiryDesc, workersDesc, cpusDesc} {
		to <- d
	}
	for _, of := range s.sites {
		of.Describe(to)
	}
}

// Collect implements prometheus.Collector. A part that cannot be read is left out and counted.
func (s *stored) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	found := scrape{sender: &sender{to: to, sent: map[string]bool{}}, from: s.from, owners: map[string]bool{}}
	read := 0
	err := s.db.Whole().View(ctx, func(tx *store.WholeTx) error {
		found.now = tx.Now()
		for ; read < len(s.parts); read++ {
			part := s.parts[read]
			found.err = nil
			err := part.send(tx, &found)
			if err == nil {
				err = found.err
			}
			s.faults.ended(part.name, err)
			if read == 0 && err == nil {
				s.tell(found.sites)
			}
		}
		return nil
	})
	for ; err != nil && read < len(s.parts); read++ {
		s.faults.ended(s.parts[read].name, err)
	}
	for _, of := range s.sites {
		of.Collect(to)
	}
}

// tell creates the series of new sites and removes those of deleted ones. It removes old ones first, because a new
// site may have the name of a deleted one.
func (s *stored) tell(sites []corral.Site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[corral.SiteID]corral.Site{}
	for _, site := range sites {
		now[site.ID] = site
	}
	for id, site := range s.told {
		if _, still := now[id]; !still {
			for _, of := range s.sites {
				of.end(site)
			}
		}
	}
	for id, site := range now {
		if _, known := s.told[id]; !known {
			for _, of := range s.sites {
				of.begin(site)
			}
		}
	}
	s.told = maps.Clone(now)
}
