package condor

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed remote.conf
var remoteConf string

// A RemoteConfig describes the use of a pool run by someone else: with a token, as the user that it names, and without
// this machine's configuration for other pools.
type RemoteConfig struct {
	Dir       string // a folder for the configuration and the token, absolute; created with mode 0700
	Release   string // HTCondor's folder, absolute
	Collector string // the pool, as HOST:PORT
	Schedd    string // name of the schedd to use; "": that of this machine
	RunAs     string // the user of the commands; see AccountFor
}

// Attach writes the configuration and the text of a token for the pool, and returns its commands. The token limits what
// they may do.
func Attach(config RemoteConfig, secret string) (Tools, error) {
	if err := checkFolders(config.Dir, config.Release); err != nil {
		return Tools{}, fmt.Errorf("attaching to a pool: %w", err)
	}
	if config.Collector == "" || strings.ContainsAny(config.Collector+config.Schedd, " \t\r\n,$") {
		return Tools{}, fmt.Errorf("attaching to a pool: %q and %q are not a collector and a schedd",
			config.Collector, config.Schedd)
	}
	owner, err := AccountFor(config.RunAs)
	if err != nil {
		return Tools{}, fmt.Errorf("attaching to a pool: %w", err)
	}
	tools := Tools{Release: config.Release, Config: filepath.Join(config.Dir, "condor_config"), As: owner}
	for _, name := range []string{"", "tokens"} {
		if err := owner.MakeFolder(filepath.Join(config.Dir, name)); err != nil {
			return Tools{}, fmt.Errorf("attaching to a pool: %w", err)
		}
	}
	for name, text := range map[string]string{"condor_config": config.text(), "tokens/pool": secret + "\n"} {
		if err := owner.Replace(filepath.Join(config.Dir, name), text); err != nil {
			return Tools{}, fmt.Errorf("attaching to a pool: %w", err)
		}
	}
	return tools, nil
}

// text returns the configuration of the commands: the pool's address, and authentication by token only.
func (c RemoteConfig) text() string {
	lines := []line{{"RELEASE_DIR", c.Release}, {"LOCAL_DIR", c.Dir}, {"COLLECTOR_HOST", c.Collector}}
	if c.Schedd != "" {
		lines = append(lines, line{"SCHEDD_HOST", c.Schedd})
	}
	return settings(lines) + "\n" + remoteConf
}
