package slurm

// Scripts that start programs on nodes themselves read the list of a job's nodes with scontrol. This requires no
// request to corrald: the arguments contain all the information. Errors in a list have Slurm's wording, but exit status
// 1; Slurm exits with 0, both then and for an empty list.

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// maxHostFile limits the size of a file with names of nodes, as in Slurm.
const maxHostFile = 1 << 20

// hostVerb returns the format for lists of nodes that a word names, in upper or lower case: hostnames, hostlist or
// hostlistsorted, which may be abbreviated to five letters.
func hostVerb(word string) string {
	const shortest = 5
	for _, verb := range []string{"hostnames", "hostlist", "hostlistsorted"} {
		if n := len(word); n >= shortest && strings.EqualFold(cut(verb, n), word) {
			return verb
		}
	}
	return ""
}

// listHosts prints a list of nodes line by line, or names of nodes as a list. args is the list, or the name of a file
// that contains one; it may be empty.
func listHosts(c *call, verb string, args []string) error {
	if verb == "hostnames" {
		list := os.Getenv("SLURM_JOB_NODELIST")
		if len(args) > 0 {
			list = args[0]
		}
		if list = cmp.Or(list, os.Getenv("SLURM_NODELIST")); list == "" {
			return errors.New("host list is empty") // Slurm's wording, here and below
		}
		hosts, err := notation.Hosts(list)
		for _, host := range hosts {
			fmt.Fprintln(c.Out, host)
		}
		return err
	}
	if len(args) == 0 {
		return errors.New("invalid encode argument")
	}
	list, err := hostFile(c, args[0])
	if err != nil {
		return err
	}
	hosts, err := notation.Hosts(list)
	if err != nil {
		return err
	}
	if verb == "hostlistsorted" {
		slices.Sort(hosts)
	}
	_, err = fmt.Fprintln(c.Out, notation.JoinHosts(hosts))
	return err
}

// hostFile reads names of nodes from a file, or standard input for "-". A name that is not a path is a list itself.
func hostFile(c *call, name string) (string, error) {
	var text []byte
	var err error
	switch {
	case name == "-":
		text, err = input.ReadAll(c.In, maxHostFile)
	case strings.HasPrefix(name, "/"):
		text, err = input.ReadFile(name, maxHostFile)
	default:
		return name, nil
	}
	if _, long := errors.AsType[*input.TooLongError](err); long {
		return "", fmt.Errorf("File %s is too large", name)
	} else if err != nil {
		return "", fmt.Errorf("Can not open %s", name)
	}
	return strings.ReplaceAll(string(text), "\n", ","), nil
}
