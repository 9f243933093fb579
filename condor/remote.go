package condor

import (
	"fmt"
	"path/filepath"
	"strings"
)

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
		if err := owner.makeFolder(filepath.Join(config.Dir, name)); err != nil {
			return Tools{}, fmt.Errorf("attaching to a pool: %w", err)
		}
	}
	for name, text := range map[string]string{"condor_config": config.text(), "tokens/pool": secret + "\n"} {
		if err := owner.replace(filepath.Join(config.Dir, name), text); err != nil {
			return Tools{}, fmt.Errorf("attaching to a pool: %w", err)
		}
	}
	return tools, nil
}

func (c RemoteConfig) text() string {
	schedd := ""
	if c.Schedd != "" {
		schedd = "SCHEDD_HOST = " + c.Schedd
	}
	return fmt.Sprintf(`RELEASE_DIR = %s
LOCAL_DIR = %s
LOG = $(LOCAL_DIR)
# What a machine has in /etc is about another pool.
LOCAL_CONFIG_DIR =
COLLECTOR_HOST = %s
%s
# The pool has to prove itself too, and nobody on the way can listen.
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = IDTOKENS
SEC_DEFAULT_INTEGRITY = REQUIRED
SEC_DEFAULT_ENCRYPTION = REQUIRED
SEC_TOKEN_DIRECTORY = $(LOCAL_DIR)/tokens
SEC_TOKEN_SYSTEM_DIRECTORY = $(LOCAL_DIR)/tokens
# No key: the token is all that we have.
SEC_PASSWORD_DIRECTORY = $(LOCAL_DIR)/tokens/none
SEC_TOKEN_POOL_SIGNING_KEY_FILE = $(LOCAL_DIR)/tokens/none/POOL
SEC_ENABLE_TOKEN_REQUEST = False
`, c.Release, c.Dir, c.Collector, schedd)
}
