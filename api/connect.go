package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

// Options configure a client. The zero value suits the user's own corrald.
type Options struct {
	Token string // text of a token, for a central corrald; empty: none
	CA    []byte // PEM of the trusted certificate authorities; none: the system's
}

// Dial returns a client for server, like New, with options. It does not connect.
func Dial(server string, o Options) (*Client, error) {
	transport := &http.Transport{ResponseHeaderTimeout: answerTimeout, IdleConnTimeout: time.Minute}
	base := strings.TrimRight(server, "/")
	path, unix := strings.CutPrefix(server, "unix:")
	if unix {
		if path == "" {
			return nil, corral.ErrorAt(corral.Invalid, "server", "unix: without a path")
		}
		base = "http://corrald"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, corral.ErrorAt(corral.Invalid, "server",
			"%q must be unix:PATH, http://HOST or https://HOST", server)
	}
	if o.Token != "" && !unix && u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, corral.ErrorAt(corral.Invalid, "server",
			"a token would cross the network in clear text: use https://%s",
			u.Host)
	}
	if len(o.CA) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, corral.ErrorAt(corral.Invalid, "--ca-file", "the file has no PEM certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Client{server: server, base: base, token: o.Token, http: retry.NewClient(transport)}, nil
}

// loopback reports whether host is this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
