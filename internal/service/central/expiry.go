package central

import (
	"context"
	"time"

	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// lookEvery is the interval of Watch's checks, which warn of events that are days or hours away.
const lookEvery = time.Minute

// Until returns the time at which the present certificate expires.
func (c *Certificates) Until() time.Time { return c.Leaf().NotAfter }

// Watch checks the files periodically, even while no client connects, and logs each warning level once before the
// certificate expires. It returns when ctx ends.
func (c *Certificates) Watch(ctx context.Context) {
	var watch credential.Watch
	for {
		leaf, now := c.current().Leaf, time.Now()
		own := []credential.Credential{{Kind: credential.X509Certificate, Where: c.cert,
			Subject: leaf.Subject.CommonName, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}}
		for _, what := range watch.News(now, own) {
			c.lg.Warn("corrald's own certificate", "what", what)
		}
		watch.Tell(now, own)
		if !retry.For(ctx, lookEvery) {
			return
		}
	}
}
