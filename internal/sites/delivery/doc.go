// Package delivery keeps worker packages and brings them to sites.
//
// A Depot is the stock on corrald's own disk: a mirror with the archives, and the bare pilot binaries. A Catalog
// lists all packages and their locations, in that mirror or in others, and accepts only packages signed by a trusted
// key. It provides the package for a site's pilots, the package that HTCondor's workers need for a pool, and the
// releases that corrald's own pools run from (release.go).
//
// A Delivery brings files to one site (delivery.go). The first is a bare pilot binary, which must be there before any
// job can run: it is the program of the setup job, which installs packages. A package takes the first available way:
// the site sees the archive on corrald's disk, or fetches it from a mirror, or corrald pushes it. Each try and its
// result are recorded in the site's history and in the health of the mirrors.
//
// Everywhere, a package is identified by the digest of its archive: names are for people and may be reused for other
// content.
package delivery
