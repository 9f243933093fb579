package pilot

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// Setup installs the worker package named in the order below the site's root. The report lists each mirror that was
// tried, with the result, from which corrald determines which mirrors to use. A failure is transient if another attempt
// at the same site may succeed, for example after a network error; a package that is on no mirror will still be missing
// at the next attempt.
func Setup(ctx context.Context, lg *slog.Logger, dir string) (jobfiles.Report, error) {
	return perform(dir, func(o jobfiles.Order) jobfiles.Report {
		if o.Setup == nil {
			return o.Refuse("setup")
		}
		return install(ctx, lg, o)
	})
}

// install carries out a setup order. It tries the mirrors in order, and stops at the first mirror that delivers the
// right bytes. If the package is already installed, it tries no mirror.
func install(ctx context.Context, lg *slog.Logger, o jobfiles.Order) jobfiles.Report {
	p, err := signed(o.Setup)
	if err != nil { // before any mirror is contacted
		return jobfiles.Report{Outcome: corral.OutcomeFailed, Reason: err.Error()}
	}
	src := staging.Source{Package: p}
	for _, s := range o.Setup.Sources {
		src.URLs = append(src.URLs, s.URL)
	}
	dir, tries, err := staging.NewFetcher(lg).Install(ctx, o.Root, src)
	r := jobfiles.Report{Outcome: corral.OutcomeDone, Tries: told(o.Setup.Sources, tries)}
	switch {
	case err != nil:
		r.Outcome, r.Reason = corral.OutcomeFailed, err.Error()
		r.Transient = corral.KindOf(err) == corral.Unavailable || errors.Is(err, context.Canceled)
		return r
	case len(tries) == 0:
		r.Log = append(r.Log, "installed before in "+dir)
	default:
		r.Log = append(r.Log, "installed in "+dir)
	}
	r.Log = append(r.Log, prune(lg, o, dir)...)
	return r
}

// signed returns the package named in the order, if it was signed with a key that the order trusts.
func signed(s *jobfiles.Setup) (packages.Package, error) {
	p := packages.Package{Name: s.Package, What: s.What, Version: s.Version, Platform: s.Platform,
		Digest: s.Digest, SizeBytes: s.SizeBytes}
	var trusted []packages.PublicKey
	for _, k := range s.Trusted {
		trusted = append(trusted, packages.PublicKey(k))
	}
	return p, packages.Signed{Package: p, Key: packages.PublicKey(s.Key), Signature: s.Signature}.Check(trusted)
}

// told converts the fetcher's tries, which are in the order of the sources, for the report.
func told(sources []jobfiles.Source, tries []staging.Try) []jobfiles.Try {
	var told []jobfiles.Try
	for i, t := range tries {
		told = append(told, jobfiles.Try{Mirror: sources[i].Mirror, OK: t.Reason == "", Reached: t.Reached,
			Bytes: t.Bytes, Took: corral.Seconds(t.Took), Line: t.String()})
	}
	return told
}

// prune reduces the site's cache to its limit. It keeps the package that was just installed, and those that other
// pilots need according to the order. A failure is logged and does not make the setup fail: the only effect is that the
// cache is larger than its limit.
func prune(lg *slog.Logger, o jobfiles.Order, keep string) (log []string) {
	if o.Setup.CacheBytes == 0 {
		return nil
	}
	stay := []string{keep}
	for _, digest := range o.Setup.Keep {
		dir, err := staging.Dir(o.Root, packages.Package{Digest: digest})
		if err == nil { // otherwise there is no such directory
			stay = append(stay, dir)
		}
	}
	gone, err := staging.Prune(o.Root, o.Setup.CacheBytes, stay...)
	if err != nil {
		lg.Warn("pruning failed", "error", err)
		log = append(log, err.Error())
	}
	for _, dir := range gone {
		log = append(log, "removed the least recently used package, "+filepath.Base(dir))
	}
	return log
}
