package condor

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed remote.conf
var remoteConf string

// A RemoteConfig says how to use a pool that somebody else runs: with a token, as the user whom it names, and with none
// of what this machine may be configured with for another pool.
type RemoteConfig struct {
	Dir       string // a folder for the configuration and the token, absolute; made with mode 0700
	Release   string // HTCondor's folder, absolute
	Collector string // the pool, as HOST:PORT
	Schedd    string // the name of the schedd to use; "": the one of this machine
	RunAs     string // whose commands they are; see AccountFor
}

// Attach writes the configuration and the text of a token for the pool, and returns its commands. What they may
// do is what the token may.
func Attach(config RemoteConfig, secret string) (Tools, error) {
	if err := checkFolders(config.Dir, config.Release); err != nil {
		return Tools{}, fmt.Errorf("attaching to a pool: %w", err)
	}
	if config.Collector == "" || strings.ContainsAny(config.Collector+config.Schedd, " \t\r\n,$") {
		return Tools{}, fmt.Errorf("attaching to a pool: %q and %q are no collector and schedd",
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

// text is the configuration of the commands: where the pool is, and that they show a token and nothing else.
func (c RemoteConfig) text() string {
	lines := []line{{"RELEASE_DIR", c.Release}, {"LOCAL_DIR", c.Dir}, {"COLLECTOR_HOST", c.Collector}}
	if c.Schedd != "" {
		lines = append(lines, line{"SCHEDD_HOST", c.Schedd})
	}
	return settings(lines) + "\n" + remoteConf
}
