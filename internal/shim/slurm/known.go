package slurm

// Users and clusters that a command names must be known, as with Slurm: who misspells a name is not told that there
// are no jobs. The one cluster is the folder's, and users are those of this machine.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// openOf is open for a command that names clusters, as -M does.
func openOf(c *call, clusters string) error {
	if err := c.open(); err != nil {
		return err
	}
	from := "--cluster"
	if clusters == "" {
		clusters = os.Getenv("SLURM_CLUSTERS")
		if c.name == "squeue" || c.name == "sinfo" {
			from = "SLURM_CLUSTERS"
		}
	}
	if clusters == "" {
		return nil
	}
	c.title = c.folder.Cluster
	unknown := elsewhere(c, clusters)
	if len(unknown) == 0 {
		return nil
	}
	var words []error
	for _, name := range unknown {
		words = append(words, fmt.Errorf("No cluster '%s' known by database.", name)) // Slurm's words, here and below
	}
	return errors.Join(append(words, fmt.Errorf("'%s' can't be reached now, or it is an invalid entry for %s.  "+
		"Use 'sacctmgr list clusters' to see available clusters.", clusters, from))...)
}

// elsewhere are those of a list of clusters that the folder has not. "all" is a name only beside others.
func elsewhere(c *call, clusters string) (unknown []string) {
	if strings.EqualFold(clusters, "all") {
		return nil
	}
	ours := func(name string) bool { return name == c.folder.Cluster }
	return slices.DeleteFunc(strings.Split(clusters, ","), ours)
}

// strangers are those of some users, by their names or numbers, whom this machine does not know.
func strangers(users []string) []string {
	me := whoever()
	return slices.DeleteFunc(slices.Clone(users), func(name string) bool {
		return name == me.Name || name == strconv.Itoa(me.UID) || known(name)
	})
}

// known reports whether there is a user. Those of a directory service are not in /etc/passwd, which is all that a
// static program reads; the C library's own program knows them.
func known(name string) bool {
	_, err := user.Lookup(name)
	if err != nil {
		_, err = user.LookupId(name)
	}
	if err == nil {
		return true
	}
	const unknown = 2 // as getent ends then; whoever cannot ask takes it for known
	err = exec.Command("getent", "passwd", "--", name).Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	return !ended || exit.ExitCode() != unknown
}
