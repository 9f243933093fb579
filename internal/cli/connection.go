package cli

// This file determines the corrald to which a command connects. The user's own corrald listens at a fixed place; a
// central corrald is specified by its URL and requires a token. The text of a token is never an argument, because
// everyone on the machine could read it there: it is in a file, or in CORRAL_TOKEN.

import (
	"bytes"
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// The environment variables that correspond to the flags of a connection.
const (
	serverVariable    = "CORRAL_SERVER"
	tokenVariable     = "CORRAL_TOKEN" // the text of the token itself
	tokenFileVariable = "CORRAL_TOKEN_FILE"
	caVariable        = "CORRAL_CA_FILE"
)

// connectionFlags returns the flags that specify a corrald and the user's token.
func connectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "server", EnvVars: []string{serverVariable}, Usage: "corrald to connect to, as `URL`: " +
			"unix:PATH, http://HOST or https://HOST (default: your own, which corral up starts)"},
		&cli.StringFlag{Name: "token-file", EnvVars: []string{tokenFileVariable},
			Usage: "`FILE` with your token (default: the text in CORRAL_TOKEN, if any)"},
		&cli.StringFlag{Name: "ca-file", EnvVars: []string{caVariable},
			Usage: "`FILE` with the authorities that sign the server's certificate (default: the system's)"},
	}
}

// A connection holds the values of the connection flags.
type connection struct{ server, tokenFile, caFile string }

// connect returns a client for the corrald that the command line specifies, or for the user's own corrald.
func connect(c *cli.Context) (*api.Client, error) {
	return connection{c.String("server"), c.String("token-file"), c.String("ca-file")}.connect(c.Context)
}

const (
	maxTokenText = 64 << 10 // bytes
	maxCAFile    = 16 << 20
)

// options reads the files that the flags name, and checks the form of the token before it is sent anywhere.
func (n connection) options(ctx context.Context) (o api.Options, err error) {
	o.Token = os.Getenv(tokenVariable)
	place := tokenVariable
	if n.tokenFile != "" {
		place = n.tokenFile
		text, err := readBounded(ctx, n.tokenFile, maxTokenText)
		if err != nil {
			return o, corral.ErrorAt(corral.Invalid, "--token-file", "%w", err)
		}
		o.Token = string(bytes.TrimSpace(text))
	}
	if (o.Token != "" || n.tokenFile != "") && !api.IsToken(o.Token) {
		return o, corral.ErrorAt(corral.Invalid, place,
			"it does not contain a token: one begins with corral_ and is 50 characters long")
	}
	if n.caFile != "" {
		if o.CA, err = readBounded(ctx, n.caFile, maxCAFile); err != nil {
			return o, corral.ErrorAt(corral.Invalid, "--ca-file", "%w", err)
		}
	}
	return o, nil
}

// readBounded reads a file, which may be a pipe.
func readBounded(ctx context.Context, file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return input.ReadAll(input.Limit(ctx, f, most+1), most)
}

// connect returns a client. If no server is specified, the client is for the user's own corrald. In that case connect
// looks for the socket before it connects, so that the error explains how to start corrald instead of reporting a
// missing socket.
func (n connection) connect(ctx context.Context) (*api.Client, error) {
	if n.server != "" {
		o, err := n.options(ctx)
		if err != nil {
			return nil, err
		}
		return api.Dial(n.server, o)
	}
	layout, err := xdg.Find()
	if err != nil {
		return nil, err
	}
	corrald, err := personal.Corrald{Layout: layout}.Located()
	if err != nil {
		return nil, err
	}
	if err := corrald.Lost(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(corrald.Layout.Socket); err != nil {
		const how = "no corrald runs here (no socket at %s): start one with `corral up`, or name one with --server"
		return nil, corral.Errorf(corral.Unavailable, how, corrald.Layout.Socket)
	}
	return corrald.Client()
}
