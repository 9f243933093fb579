package metrics

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// A scraped holds the metrics of a store with one site, and their log.
type scraped struct {
	*testing.T
	*Metrics
	log bytes.Buffer
}

// newScraped adds these parts to the usual ones.
func newScraped(t *testing.T, db *store.DB, more ...part) *scraped {
	err := storetest.All(db).Write(t.Context(), "ann", func(tx *store.Tx) error {
		_, err := tx.CreateSite(corral.Site{Name: "hpc", Owner: "ann", Contact: "local:", Batch: "fork", Root: "/r"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &scraped{T: t}
	s.Metrics = New(slog.New(slog.NewTextHandler(&s.log, nil)), db, "1", Sources{
		Workers:     func(corral.ClusterID) []corral.Worker { return nil },
		Credentials: func(corral.Site) []credential.Credential { return nil },
	})
	// After the sites, to show that the following parts are served.
	s.stored.parts = append(append([]part{parts[0]}, more...), parts[1:]...)
	return s
}

// get scrapes twice, because failures may be counted after the number is read, and expects series to exist.
func (s *scraped) get(series ...string) {
	s.Helper()
	var text string
	for range 2 {
		rec := httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(s.Context(), http.MethodGet, "/metrics", nil))
		if rec.Code != http.StatusOK {
			s.Fatalf("%d: %s", rec.Code, rec.Body)
		}
		text = rec.Body.String()
	}
	for _, want := range series {
		if n := strings.Count(text, "\n"+want); n != 1 {
			s.Errorf("%s is there %d times", want, n)
		}
	}
}

// Unreadable parts and duplicate series are logged once, counted at each scrape, and do not affect the rest.
func TestFaultsAreNotInTheWay(t *testing.T) {
	t.Parallel()
	fails := true
	s := newScraped(t, storetest.OpenTest(t),
		part{"broken", func(*store.WholeTx, *scrape) error {
			if fails {
				return errors.New("no such page")
			}
			return nil
		}},
		part{"twice", func(_ *store.WholeTx, s *scrape) error {
			s.gauge(workersDesc, 1, "ann", "default")
			s.gauge(workersDesc, 2, "ann", "default")
			return nil
		}},
		part{"unprintable", func(_ *store.WholeTx, s *scrape) error {
			s.gauge(workersDesc, 1, "ann", "\xff")
			return nil
		}})
	s.get(`corral_workers{cluster="default",owner="ann"} 1`, `corral_site_held{owner="ann",site="hpc"} 0`,
		`corral_reconcile_failures_total{owner="ann",site="hpc"} 0`, `corral_metrics_errors_total{part="sites"} 0`)
	s.get(`corral_metrics_errors_total{part="broken"}`, `corral_metrics_errors_total{part="twice"}`,
		`corral_metrics_errors_total{part="unprintable"}`)
	for _, of := range []string{"no such page", "a series twice", "label value"} {
		if n := strings.Count(s.log.String(), of); n != 1 {
			t.Errorf("%q is logged %d times in %s", of, n, &s.log)
		}
	}
	fails = false
	s.get()
	fails = true
	s.get()
	if n := strings.Count(s.log.String(), "no such page"); n != 2 {
		t.Errorf("what failed again is logged %d times", n)
	}
}

// If the store does not answer, metrics from other sources are still served.
func TestStoreIsGone(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "corral.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := newScraped(t, db)
	s.get(`corral_site_held{owner="ann",site="hpc"} 0`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s.get(`corral_build_info{version="1"} 1`, `corral_reconcile_failures_total{owner="ann",site="hpc"} 0`)
	s.get(`corral_metrics_errors_total{part="runs"}`, `corral_metrics_errors_total{part="sites"}`)
	if n := strings.Count(s.log.String(), "part=runs"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, &s.log)
	}
}
