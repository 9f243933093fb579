//go:build sites

package gridsite_test

import (
	"testing"

	"github.com/corral-pilot/corral/gridsite"
)

func TestConnOfOpenSSH(t *testing.T) {
	t.Parallel()
	testConns(t, map[string]gridsite.Conn{"ssh": startSSHD(t).open()})
}

func TestStreamOfOpenSSH(t *testing.T) {
	t.Parallel()
	testStreams(t, map[string]gridsite.Streamer{"ssh": startSSHD(t).open()})
}
