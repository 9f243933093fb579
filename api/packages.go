package api

import (
	"context"
	"net/url"

	"github.com/corral-pilot/corral"
)

func packagePath(ref string) string { return "/v1/packages/" + url.PathEscape(ref) }

// ImportPackage brings an archive into corrald's mirror and its package into the catalog. A package without the
// signature of a key that corrald trusts is an error of kind Forbidden which names it. An empty key is replaced by a
// random one.
func (c *Client) ImportPackage(ctx context.Context, n NewPackage, key string) (corral.Package, error) {
	return create[corral.Package](ctx, c, "/v1/packages", key, n)
}

// Packages lists worker packages, oldest first.
func (c *Client) Packages(ctx context.Context, f Filter) ([]corral.Package, error) {
	return list[corral.Package](ctx, c, "/v1/packages", f.query())
}

// Package returns the package with the name, digest or id ref; of several with one name the newest. A
// DELETED package is found by its id only.
func (c *Client) Package(ctx context.Context, ref string) (corral.Package, error) {
	return get[corral.Package](ctx, c, packagePath(ref), nil)
}

// VerifyPackage has corrald check a package's signature and archive. A package that is not what it
// should be is an error of kind Failed or Forbidden which names it.
func (c *Client) VerifyPackage(ctx context.Context, ref string) (corral.Package, error) {
	return act[corral.Package](ctx, c, packagePath(ref)+"/verify")
}

// RemovePackage removes a package from the catalog and from corrald's mirror. While sites use it that
// is a Conflict.
func (c *Client) RemovePackage(ctx context.Context, ref string) (corral.Package, error) {
	return remove[corral.Package](ctx, c, packagePath(ref), nil)
}

// PackageHistory returns what happened to the package, oldest first.
func (c *Client) PackageHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, packagePath(ref)+"/history", nil)
}

func mirrorPath(ref string) string { return "/v1/mirrors/" + url.PathEscape(ref) }

// AddMirror adds a mirror and reads its index; packages in it that a trusted key signed are in the
// catalog from then on. An index that cannot be read is the mirror's reason, not an error. An empty
// key is replaced by a random one.
func (c *Client) AddMirror(ctx context.Context, n NewMirror, key string) (corral.Mirror, error) {
	return create[corral.Mirror](ctx, c, "/v1/mirrors", key, n)
}

// Mirrors lists mirrors, oldest first.
func (c *Client) Mirrors(ctx context.Context, f Filter) ([]corral.Mirror, error) {
	return list[corral.Mirror](ctx, c, "/v1/mirrors", f.query())
}

// Mirror returns the mirror with the name or id ref. A DELETED mirror is found by its id only.
func (c *Client) Mirror(ctx context.Context, ref string) (corral.Mirror, error) {
	return get[corral.Mirror](ctx, c, mirrorPath(ref), nil)
}

// CheckMirror reads the mirror's index again. What is wrong with it is the mirror's reason.
func (c *Client) CheckMirror(ctx context.Context, ref string) (corral.Mirror, error) {
	return act[corral.Mirror](ctx, c, mirrorPath(ref)+"/check")
}

// RemoveMirror forgets a mirror. The packages it had stay in the catalog.
func (c *Client) RemoveMirror(ctx context.Context, ref string) (corral.Mirror, error) {
	return remove[corral.Mirror](ctx, c, mirrorPath(ref), nil)
}

// MirrorHistory returns what happened to the mirror, oldest first.
func (c *Client) MirrorHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, mirrorPath(ref)+"/history", nil)
}
