//go:build sites

package ssh_test

import "testing"

func TestConnOfOpenSSH(t *testing.T) {
	t.Parallel()
	testConn(t, startSSHD(t).open())
}

func TestStreamOfOpenSSH(t *testing.T) {
	t.Parallel()
	testStream(t, startSSHD(t).open())
}
