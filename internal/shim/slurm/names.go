package slurm

// Users and clusters named in a command must be known, as in Slurm: a misspelt name is an error, not an empty list. The
// only known cluster is the folder's, and the known users are those of this machine.

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// openOf does the work of open for a command with an option for clusters, such as -M.
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
		words = append(words, fmt.Errorf("No cluster '%s' known by database.", name)) // Slurm's wording, here and below
	}
	return errors.Join(append(words, fmt.Errorf("'%s' can't be reached now, or it is an invalid entry for %s.  "+
		"Use 'sacctmgr list clusters' to see available clusters.", clusters, from))...)
}

// elsewhere returns the clusters of a list that are not the folder's. "all" is a cluster's name only in a list with
// others.
func elsewhere(c *call, clusters string) (unknown []string) {
	if strings.EqualFold(clusters, "all") {
		return nil
	}
	ours := func(name string) bool { return name == c.folder.Cluster }
	return slices.DeleteFunc(strings.Split(clusters, ","), ours)
}

// strangers returns the users, given by names or numbers, that do not exist on this machine.
func strangers(users []string) []string {
	me := currentUser()
	return slices.DeleteFunc(slices.Clone(users), func(name string) bool {
		return name == me.Name || name == strconv.Itoa(me.UID) || known(name)
	})
}

// known reports whether a user exists. A static program reads only /etc/passwd, which does not contain the users of a
// directory service; getent, a program of the C library, finds them.
func known(name string) bool {
	_, err := user.Lookup(name)
	if err != nil {
		_, err = user.LookupId(name)
	}
	if err == nil {
		return true
	}
	const unknown = 2 // getent's exit status; if getent cannot be run, the user counts as known
	err = exec.Command("getent", "passwd", "--", name).Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	return !ended || exit.ExitCode() != unknown
}

// currentUser returns the calling user.
func currentUser() submitter {
	me := submitter{UID: os.Getuid(), GID: os.Getgid()}
	me.Name, me.Group = os.Getenv("USER"), strconv.Itoa(me.GID)
	if u, err := user.Current(); err == nil {
		me.Name = u.Username
	}
	if g, err := user.LookupGroupId(me.Group); err == nil {
		me.Group = g.Name
	}
	me.Name = cmp.Or(me.Name, strconv.Itoa(me.UID))
	return me
}
