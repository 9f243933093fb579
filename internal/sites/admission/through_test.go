package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/internal/store"
)

// Through a relay an attempt of its site can reach corrald and its own pool; no other client can reach anything.
func TestAdmitThroughARelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site, other := w.site("hpc"), w.site("other")
	mine := w.pool(corral.Cluster{Name: "mine", Collector: "127.0.0.1:20001"})
	theirs := w.pool(corral.Cluster{Name: "theirs", Collector: "192.0.2.1:9618", Attached: true})
	for tag, cluster := range map[string]corral.ClusterID{"embedded": 1, "mine": mine.ID, "theirs": theirs.ID, "over": mine.ID, "late": mine.ID, "begun": mine.ID} {
		ends := time.Now().Add(time.Hour)
		if tag == "late" {
			ends = time.Now().Add(-time.Hour)
		}
		job := w.attempt(site.ID, cluster, tag, ends)
		if tag == "begun" {
			w.write(func(tx *store.Tx) error {
				_, err := tx.LeaseJob(job.ID, "pilot", Token("the pilot's secret").Digest())
				return err
			})
		}
		if tag == "over" {
			w.write(func(tx *store.Tx) error {
				_, err := tx.MoveJob(job.ID, corral.JobEvent{Move: corral.JobEnd, At: tx.Now(), Outcome: corral.OutcomeRemoved})
				return err
			})
		}
	}
	own := func(tag string) string { return string(w.key.Token(tag)) }
	for _, tt := range []struct {
		name   string
		site   corral.SiteID
		target relay.Target
		tag    string
		token  string
		kind   corral.Kind // empty: admitted
	}{
		{"a worker of corrald", site.ID, relay.Workers, "embedded", own("embedded"), ""},
		{"a pilot of a pool, to corrald", site.ID, relay.Workers, "mine", own("mine"), ""},
		{"a worker of a pool", site.ID, relay.Pool, "mine", own("mine"), ""},
		{"by the secret of its pilot", site.ID, relay.Workers, "begun", "the pilot's secret", ""},
		{"by the token of its order, after that", site.ID, relay.Workers, "begun", own("begun"), corral.Unauthenticated},
		{"a daemon of its pool", site.ID, relay.Pool, "begun", own("begun"), ""},
		{"another token", site.ID, relay.Workers, "mine", "guessed", corral.Unauthenticated},
		{"no such attempt", site.ID, relay.Workers, "none", own("none"), corral.Unauthenticated},
		{"another site's attempt", other.ID, relay.Workers, "mine", own("mine"), corral.Unauthenticated},
		{"an attempt that is over", site.ID, relay.Workers, "over", own("over"), corral.Forbidden},
		{"a token that is over", site.ID, relay.Workers, "late", own("late"), corral.Forbidden},
		{"a pool for corrald's worker", site.ID, relay.Pool, "embedded", own("embedded"), corral.Forbidden},
		{"somebody else's pool", site.ID, relay.Pool, "theirs", own("theirs"), corral.Forbidden},
	} {
		collector, err := w.clusters.AdmitThrough(t.Context(), tt.site, relay.NewRequest(tt.target, tt.tag, tt.token))
		if corral.KindOf(err) != tt.kind || tt.kind != "" && strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.kind)
		}
		if tt.target == relay.Pool && err == nil && collector != "127.0.0.1:20001" {
			t.Errorf("%s: gets to %s", tt.name, collector)
		}
	}
}
