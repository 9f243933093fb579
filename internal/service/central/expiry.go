package central

import (
	"context"
	"time"

	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// lookEvery is how often Watch looks: what it warns of is days or hours away.
const lookEvery = time.Minute

// Until is when the certificate that is shown now ends.
func (c *Certificates) Until() time.Time { return c.Leaf().NotAfter }

// Watch looks at the files from time to time, also while nobody connects, and warns in the log before the certificate
// ends: of each level once. It returns when ctx ends.
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
