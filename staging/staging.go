// Package staging transfers worker packages to sites.
//
// It has two parts. On corrald's side a Mirror stores archives by their digest and serves them; other mirrors are plain
// web servers or directories. At the site a Fetcher downloads one archive from the first mirror that delivers the right
// bytes, and records each Try; Install puts the package into the site's cache, root/packages/HEX, where HEX is the hex
// digest of the archive.
//
// NewFetcher returns a Fetcher, whose method Install does the site's part. Sizes are in bytes. The package does not
// decide which package a site gets (packages.Choose) or whose signature is trusted (packages.Signed.Check).
//
// Invariant: a file with a final name is complete and has the right digest. Mirrors are never trusted, because the
// bytes are always compared; a failure leaves no partial file.
//
// # Where to look
//
// Downloads: fetch.go tries the mirrors in order, and transfer.go transfers one file, resumes an interrupted transfer,
// and gives up a slow one. The URL's scheme determines how it is opened: open.go implements http, https and file, and
// the packages ftp and sftp implement the schemes that only corrald uses. The site's cache: install.go fills it,
// prune.go limits it, and lock.go coordinates jobs on different machines. corrald's own mirror: mirror.go.
package staging

import (
	"fmt"
	"net/url"
	"time"

	"github.com/corral-pilot/corral/packages"
)

// A Source is one package and the mirrors listed for it.
type Source struct {
	Package packages.Package // its Name, Digest and SizeBytes are used
	URLs    []string         // in the order to try
}

// A Try is one attempt to get an archive from one mirror.
type Try struct {
	URL       string        // without password and query
	Bytes     int64         // received
	Took      time.Duration // from the request to its end
	Resumed   int           // how often it was interrupted and resumed
	Reached   bool          // a server answered
	Reason    string        // why it failed; "" if it succeeded
	Transient bool          // the same mirror may succeed later
}

// String returns the line for a log: the URL and the result.
func (t Try) String() string {
	line := t.URL + ": " + t.Reason
	if t.Reason == "" {
		line = fmt.Sprintf("%s: %d bytes in %s", t.URL, t.Bytes, t.Took.Round(time.Millisecond))
	}
	if t.Resumed > 0 {
		line += fmt.Sprintf(" (resumed %d times)", t.Resumed)
	}
	return line
}

// shown returns a URL for logs, without credentials, which may be in its user part or its query.
func shown(u *url.URL) string {
	bare := *u
	bare.RawQuery, bare.Fragment = "", ""
	return bare.Redacted()
}
