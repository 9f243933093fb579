package pilot

import (
	"context"
	"errors"
	"log/slog"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// Setup is the setup job: it installs the worker package below the site's root. Each mirror that was
// tried is a line of the report's log.
func Setup(ctx context.Context, lg *slog.Logger, dir string) (order.Report, error) {
	return perform(dir, func(o order.Order) order.Report {
		if o.Setup == nil {
			return wrongOrder(o.Tag, "setup")
		}
		return install(ctx, lg, o)
	})
}

func install(ctx context.Context, lg *slog.Logger, o order.Order) order.Report {
	src := staging.Source{
		Package: packages.Package{Name: o.Setup.Package, Digest: o.Setup.Digest, SizeBytes: o.Setup.SizeBytes},
		URLs:    o.Setup.URLs,
	}
	dir, tries, err := staging.NewFetcher(lg).Install(ctx, o.Root, src)
	r := order.Report{Outcome: corral.OutcomeDone}
	for _, t := range tries {
		r.Log = append(r.Log, t.String())
	}
	switch {
	case err != nil:
		r.Outcome, r.Reason = corral.OutcomeFailed, err.Error()
		r.Transient = corral.KindOf(err) == corral.Unavailable || errors.Is(err, context.Canceled)
	case len(tries) == 0:
		r.Log = append(r.Log, "installed before in "+dir)
	default:
		r.Log = append(r.Log, "installed in "+dir)
	}
	return r
}
