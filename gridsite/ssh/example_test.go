package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// The first command logs in. A host whose key is unknown is not trusted until the user has confirmed the key, for
// instance with [ssh.Conn.Connect].
func ExampleNew() {
	ctx := context.Background()
	conn, err := ssh.New("ssh://ann@login.hpc.example.org", ssh.Options{AgentSocket: os.Getenv("SSH_AUTH_SOCK")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	result, err := conn.Run(ctx, gridsite.Command{Argv: []string{"squeue", "--me"}})
	var key *gridsite.HostKeyError
	if errors.As(err, &key) && key.Problem == gridsite.HostKeyUnknown {
		fmt.Println("compare with the site's documentation:", key.Fingerprint)
		return
	}
	fmt.Printf("%d %s %v\n", result.Exit, result.Stdout, err)
}

// A service that logs in at sites on its own has a key of its own, which the user authorizes there.
func ExampleOwnKey() {
	home, err := os.MkdirTemp("", "ssh")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	line, err := ssh.OwnKey(home, "corral@example.org")
	if err != nil {
		fmt.Println(err)
		return
	}
	fields := strings.Fields(line)
	fmt.Println(fields[0], fields[2])
	again, err := ssh.OwnKey(home, "corral@example.org")
	fmt.Println(again == line, err)
	// Output:
	// ssh-ed25519 corral@example.org
	// true <nil>
}
