package transfer

import (
	"context"
	"errors"
	"flag"
	"io"
)

// ClaimOthers is the argument, before HTCondor's, with which a plugin also claims the methods that it refuses.
const ClaimOthers = "others"

// ErrMissing means that not all files were fetched. The file of results has the reasons.
var ErrMissing = errors.New("not all files were fetched")

// Command executes the arguments of a plugin, as given by HTCondor.
func (p Plugin) Command(ctx context.Context, args []string, stdout io.Writer) error {
	others := len(args) > 0 && args[0] == ClaimOthers
	if others {
		args = args[1:]
	}
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	methods := flags.Bool("classad", false, "")
	in, out := flags.String("infile", "", ""), flags.String("outfile", "", "")
	upload := flags.Bool("upload", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *methods:
		_, err := io.WriteString(stdout, methodsAd(others))
		return err
	case *in == "" || *out == "" || flags.NArg() > 0:
		return errors.New("this is a plugin for HTCondor's file transfer: want -classad, or " +
			"-infile FILE -outfile FILE [-upload]")
	case *upload:
		if err := p.refuse(*in, *out); err != nil {
			return err
		}
		return ErrMissing
	}
	fetched, err := p.run(ctx, *in, *out)
	if err == nil && !fetched {
		err = ErrMissing
	}
	return err
}
