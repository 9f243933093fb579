package siteaccess

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/sites/admission"
)

// CheckSite returns an error if a site cannot be used: it is unreachable, its root is not writable or contains other
// files, or its batch system accepts no job with its options. It leaves nothing at the site; an accepted host key is
// written to the user's known_hosts. The errors name the request field to change: contact, root, batch or an option. If
// the site did not answer, the error is Unavailable.
func (r *Reach) CheckSite(ctx context.Context, site corral.Site, acceptHostKey bool) error {
	if !path.IsAbs(site.Root) || strings.ContainsFunc(site.Root, unicode.IsControl) {
		return corral.ErrorAt(corral.Invalid, "root",
			"%.80q must be an absolute path without control characters", site.Root)
	}
	access, err := r.enter(ctx, site, acceptHostKey)
	if err != nil {
		return err
	}
	defer access.Head.Close()
	why, err := r.CheckRoot(ctx, access.Head, site)
	if err != nil {
		return corral.ErrorAt(corral.Unavailable, "contact", "reaching %s: %w", site.Contact, err)
	}
	if why != "" {
		return corral.ErrorAt(corral.Invalid, "root", "%s at %s cannot be the root of a site: %s",
			site.Root, site.Contact, why)
	}
	return checkOptions(ctx, site, access.Pilots)
}

// Claim returns this corrald's claim to the root of a site.
func (r *Reach) Claim(site corral.Site) gridsite.Claim {
	return gridsite.Claim{Owner: r.owner, Before: site.PackageDigest != ""}
}

// CheckRoot returns the reason why a site cannot use its root, or "" if it can. It is called twice, when the site is
// created and before the first file is written there, because others may have put files there in between, and a cleanup
// job removes everything below a root.
func (r *Reach) CheckRoot(ctx context.Context, head gridsite.Head, site corral.Site) (string, error) {
	err := head.Check(ctx, r.Claim(site))
	if no, ok := errors.AsType[*gridsite.Refused](err); ok {
		return no.Text, nil
	}
	return "", err
}

// ExpandRoot returns a site's root after a login shell there has expanded the variable that it begins with, as in
// $SCRATCH/corral. If the variable is unset or not an absolute path, the error is Invalid.
func (r *Reach) ExpandRoot(ctx context.Context, site corral.Site, acceptHostKey bool) (string, error) {
	access, err := r.enter(ctx, site, acceptHostKey)
	if err != nil {
		return "", err
	}
	defer access.Head.Close()
	variable, below, _ := strings.Cut(strings.TrimPrefix(site.Root, "$"), "/")
	var value string
	if login, ok := access.Head.(gridsite.Expander); ok {
		if value, err = login.Expand(ctx, variable); err != nil {
			return "", corral.ErrorAt(corral.Unavailable, "contact", "asking %s for $%s: %w",
				site.Contact, variable, err)
		}
	}
	root := path.Join(value, below)
	if !path.IsAbs(value) || root == "/" || strings.ContainsFunc(value, unicode.IsControl) {
		return "", corral.ErrorAt(corral.Invalid, "root",
			"$%s is %.80q at %s, not an absolute path: name the directory itself", variable, value, site.Contact)
	}
	return root, nil
}

// Facts returns the properties of a site's batch system; the site need not be recorded yet. If the batch system
// cannot be queried, a note in the facts states this.
func (r *Reach) Facts(ctx context.Context, site corral.Site) (corral.SiteFacts, error) {
	access, err := r.Open(ctx, site)
	if err != nil {
		return corral.SiteFacts{}, err
	}
	defer access.Head.Close()
	s, ok := access.Pilots.(gridsite.Surveyor)
	if !ok {
		return corral.SiteFacts{At: time.Now().UTC(), Batch: site.Batch,
			Notes: []string{"the queues are unknown: corrald cannot query " + site.Batch + " for them"}}, nil
	}
	facts, err := s.Survey(ctx, site.BatchOptions)
	return facts, wrap.Errorf(err, "site %s", site.Name)
}

// Options returns the options for a site's batch system for a job with its own options: options that the job does not
// set come from the site. The job's own lines follow the site's and may override them.
func Options(site corral.Site, own corral.BatchOptions) corral.BatchOptions {
	return corral.BatchOptions{
		Queue: cmp.Or(own.Queue, site.Queue), Account: cmp.Or(own.Account, site.Account),
		QOS: cmp.Or(own.QOS, site.QOS), Constraint: cmp.Or(own.Constraint, site.Constraint),
		SiteOptions: slices.Concat(site.SiteOptions, own.SiteOptions),
	}
}

// checkOptions returns an error if a site's batch system would refuse all jobs with the site's options. It returns nil
// if the batch system does not support such a check.
func checkOptions(ctx context.Context, site corral.Site, pilots gridsite.Batch) error {
	c, ok := pilots.(gridsite.Checker)
	if !ok {
		return nil
	}
	spec := gridsite.JobSpec{
		Tag: admission.NewTag(probe), Argv: []string{"/bin/true"}, Hosts: 1, CPUs: 1, Walltime: probeWalltime,
	}
	spec.BatchOptions = Options(site, corral.BatchOptions{})
	err := c.Check(ctx, spec)
	var refused *gridsite.Refused
	var option *corral.Error
	switch {
	case errors.As(err, &refused):
		return corral.ErrorAt(corral.Unsatisfiable, "batch", "%s at %s accepts no job with these options: %s; "+
			"change --queue, --account, --qos, --constraint or --site-opt", site.Batch, site.Contact, refused.Text)
	case errors.As(err, &option) && option.Kind == corral.Invalid: // the error names the option
		return option
	case err != nil:
		return corral.ErrorAt(corral.KindOf(err), "batch", "asking %s at %s: %w", site.Batch, site.Contact, err)
	}
	return nil
}
