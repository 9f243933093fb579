// Package delivery keeps worker packages, and brings them to sites.
//
// A Depot is the stock on corrald's own disk: a mirror with the archives, and the bare pilot binaries. A Catalog knows
// all packages and where they are, in that mirror or in others; nothing gets into it that no trusted key signed. It has
// the package of a site's pilots, the package that HTCondor's workers need for a pool, and the releases that corrald's
// own pools run from (release.go).
//
// A Delivery brings things to one site (delivery.go). The first is a bare pilot binary, which must be there before any
// job can be: it is the program of the setup job, and that installs packages. A package takes the first way that is
// open: the site sees the archive on corrald's disk, or fetches it from a mirror, or corrald pushes it. Each attempt
// and its result are recorded in the site's history and in the health of the mirrors.
//
// A package is known by the digest of its archive everywhere: names are for people, and may come back with another
// content.
package delivery
