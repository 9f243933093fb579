package api

import (
	"context"
	"net/url"

	"github.com/corral-pilot/corral"
)

func packagePath(ref string) string { return "/v1/packages/" + url.PathEscape(ref) }

// ImportPackage copies an archive into corrald's mirror and adds its package to the catalog. If no key that corrald
// trusts signed the package, the error has kind Forbidden and names the package. An empty key is replaced by a random
// one.
func (c *Client) ImportPackage(ctx context.Context, n NewPackage, key string) (corral.Package, error) {
	return create[corral.Package](ctx, c, "/v1/packages", key, n)
}

// Packages lists worker packages, oldest first.
func (c *Client) Packages(ctx context.Context, f Filter) ([]corral.Package, error) {
	return list[corral.Package](ctx, c, "/v1/packages", f.query())
}

// Package returns the package with the name, digest or id ref; if several have the name, the newest. A DELETED package
// is found only by its id.
func (c *Client) Package(ctx context.Context, ref string) (corral.Package, error) {
	return get[corral.Package](ctx, c, packagePath(ref), nil)
}

// VerifyPackage makes corrald check a package's signature and archive. If the check fails, the error has kind Failed or
// Forbidden and names the package.
func (c *Client) VerifyPackage(ctx context.Context, ref string) (corral.Package, error) {
	return act[corral.Package](ctx, c, packagePath(ref)+"/verify")
}

// RemovePackage removes a package from the catalog and from corrald's mirror. While sites use the package, removal is a
// Conflict error.
func (c *Client) RemovePackage(ctx context.Context, ref string) (corral.Package, error) {
	return remove[corral.Package](ctx, c, packagePath(ref), nil)
}

// PackageHistory returns what happened to the package, oldest first.
func (c *Client) PackageHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, packagePath(ref)+"/history", nil)
}

func mirrorPath(ref string) string { return "/v1/mirrors/" + url.PathEscape(ref) }

// AddMirror adds a mirror and reads its index, which adds the packages signed by a trusted key to the catalog. An
// unreadable index becomes the mirror's reason and is not an error. An empty key is replaced by a random one.
func (c *Client) AddMirror(ctx context.Context, n NewMirror, key string) (corral.Mirror, error) {
	return create[corral.Mirror](ctx, c, "/v1/mirrors", key, n)
}

// Mirrors lists mirrors, oldest first.
func (c *Client) Mirrors(ctx context.Context, f Filter) ([]corral.Mirror, error) {
	return list[corral.Mirror](ctx, c, "/v1/mirrors", f.query())
}

// Mirror returns the mirror with the name or id ref. A DELETED mirror is found only by its id.
func (c *Client) Mirror(ctx context.Context, ref string) (corral.Mirror, error) {
	return get[corral.Mirror](ctx, c, mirrorPath(ref), nil)
}

// CheckMirror reads the mirror's index again. A problem with it becomes the mirror's reason.
func (c *Client) CheckMirror(ctx context.Context, ref string) (corral.Mirror, error) {
	return act[corral.Mirror](ctx, c, mirrorPath(ref)+"/check")
}

// RemoveMirror removes a mirror. Its packages stay in the catalog.
func (c *Client) RemoveMirror(ctx context.Context, ref string) (corral.Mirror, error) {
	return remove[corral.Mirror](ctx, c, mirrorPath(ref), nil)
}

// MirrorHistory returns what happened to the mirror, oldest first.
func (c *Client) MirrorHistory(ctx context.Context, ref string) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, mirrorPath(ref)+"/history", nil)
}
