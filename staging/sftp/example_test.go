package sftp_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/staging"
	"github.com/corral-pilot/corral/staging/sftp"
)

// A Fetcher opens URLs of a further scheme by the scheme's opener, which logs in with the keys of this program's user.
func ExampleOpener() {
	fetcher := staging.NewFetcher(slog.Default())
	fetcher.Open["sftp"] = sftp.Opener(ssh.Options{AgentSocket: os.Getenv("SSH_AUTH_SOCK")})
	signed, err := fetcher.Index(context.Background(), "sftp://ann@files.example.org/srv/corral")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range signed {
		fmt.Println(s.Name, s.Digest)
	}
}
