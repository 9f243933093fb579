// Package staging brings worker packages to where they are needed.
//
// It has two halves. At corrald's side a Mirror keeps archives by their digest and serves them; other
// mirrors are plain web servers or directories. At the site a Fetcher downloads one archive from the
// first mirror that gives the right bytes, and keeps a record of each Try; Install puts the package
// into the site's cache, root/packages/HEX, where HEX is the hex digest of the archive.
//
// Invariant: what stands under a final name is whole and has the right digest. A mirror is never
// trusted, only its bytes are compared; a failure leaves no partial file.
//
// # Where to look
//
// A download: fetch.go goes through the mirrors, and transfer.go brings one file, which it takes up again where it
// broke off, and gives up where it is too slow. How a URL is opened depends on its scheme: open.go has http, https
// and file, and the packages ftp and sftp have the schemes that only corrald speaks. The site's cache: install.go
// fills it, prune.go keeps it small, and lock.go has jobs on different machines agree about it. corrald's own mirror:
// mirror.go.
package staging

import (
	"fmt"
	"net/url"
	"time"

	"github.com/corral-pilot/corral/packages"
)

// A Source is one package and the mirrors that are said to have it.
type Source struct {
	Package packages.Package // its Name, Digest and SizeBytes are used
	URLs    []string         // in the order to try
}

// A Try is one attempt to get an archive from one mirror.
type Try struct {
	URL       string        // without password and query
	Bytes     int64         // that were received
	Took      time.Duration // from the request to its end
	Resumed   int           // how often it broke off and was taken up again
	Reached   bool          // a server answered
	Reason    string        // why it did not work; "" if it did
	Transient bool          // the same mirror may do better later
}

// String is the line of a log: what was tried, and what came of it.
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

// shown is how a URL appears in logs: credentials may be in its user part or its query.
func shown(u *url.URL) string {
	bare := *u
	bare.RawQuery, bare.Fragment = "", ""
	return bare.Redacted()
}
