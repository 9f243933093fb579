//go:build sites

// Package service has what makes a corrald the service of a machine: units of systemd, and the Debian package. Its test
// installs the package in a Debian of its own.
package service

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// The life of the package: its first day, its worst day, an upgrade, and its end, which leaves nothing.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	began := time.Now()
	deb, err := programs.Deb(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%6.1f s  the package is made", time.Since(began).Seconds())
	m := newMachine(t)
	t.Logf("%6.1f s  the machine is there", time.Since(began).Seconds())
	m.put(deb)
	m.must("dpkg --install /tmp/*.deb")
	m.checkUnits()
	if said := m.must(asCorral + "/usr/bin/corrald --check-config"); !strings.Contains(said, "state=/var/lib/corral/state\n") {
		t.Errorf("corrald --check-config with the settings as installed:\n%s", said)
	}
	m.configure()
	s := m.start()
	s.firstDay()
	s.rotate()
	s.backUp()
	s.stop()
	s = m.worstDay()
	m.upgrade()
	s.stop()
	m.remove()
	t.Logf("%6.1f s  the package is gone", time.Since(began).Seconds())
}

// asCorral begins a command of corrald's user with the service's settings. There is none with a blank.
const asCorral = "set -a; . /etc/corral/corrald.env; runuser -u corral -- "

// checkUnits has systemd read the units where they are installed, with the programs that they start.
func (m *machine) checkUnits() {
	m.t.Helper()
	system := "cd /usr/lib/systemd/system && systemd-analyze verify corrald.service corral-backup.service corral-backup.timer 2>&1"
	user := "cd /usr/lib/systemd/user && XDG_RUNTIME_DIR=/tmp systemd-analyze --user verify ./corrald.service 2>&1"
	for _, script := range []string{system, user} {
		if said := m.must(script); said != "" {
			m.t.Errorf("%s:\n%s", script, said)
		}
	}
	m.must("systemctl enable corrald.service corral-backup.timer")
}

// configure makes a certificate and names it in the settings, as on the first day.
func (m *machine) configure() {
	m.t.Helper()
	m.must(`cd /etc/corral/tls
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
			-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out cert.pem
		chown corral:corral key.pem && chmod 600 key.pem
		sed -i 's/^#\(CORRALD_TLS_\)/\1/; s/^CORRALD_TLS_LISTEN=.*/CORRALD_TLS_LISTEN=127.0.0.1:0/' ../corrald.env`)
}

// A service is a corrald that was started as its unit says.
type service struct {
	*machine
	cmd     *exec.Cmd
	said    chan string // lines of its log; closed at its end
	address string      // of TLS
}

// asTheUnitSays does what systemd would with the unit, as far as it can be done without: user, settings, folders, what is
// read-only, and what processes may not become.
const asTheUnitSays = `unit() { sed -n "s/^$1=//p" /usr/lib/systemd/system/corrald.service; }
	[ "$(unit ProtectSystem)" = full ]
	for folder in /usr /boot /etc; do mount --bind $folder $folder; mount -o remount,bind,ro $folder; done
	install -d -m "$(unit RuntimeDirectoryMode)" -o "$(unit User)" -g "$(unit Group)" "/run/$(unit RuntimeDirectory)"
	cd "$(unit WorkingDirectory)"
	umask "$(unit UMask)"
	[ "$(unit NoNewPrivileges) $(unit CapabilityBoundingSet)" = "yes CAP_NET_BIND_SERVICE" ]
	set -- env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/var/lib/corral USER=corral $(grep -v '^#' "$(unit EnvironmentFile)") \
		setpriv --reuid "$(unit User)" --regid "$(unit Group)" --init-groups --no-new-privs --inh-caps=-all --bounding-set=-all,+net_bind_service
	"$@" $(unit ExecStartPre) >/tmp/checked
	exec "$@" $(unit ExecStart)`

// start starts the service, and waits until others may ask it.
func (m *machine) start() *service {
	m.t.Helper()
	s := &service{machine: m, said: make(chan string, 1000)}
	s.cmd = m.command(context.Background(), "exec unshare --mount sh -euc '"+strings.ReplaceAll(asTheUnitSays, "'", `'\''`)+"'")
	log, err := s.cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		defer close(s.said)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			s.said <- lines.Text()
		}
	}()
	line := s.await("corrald serves users with a token")
	s.address = regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(line)[1]
	return s
}

// await returns the next line of the log that has these words.
func (s *service) await(words string) string {
	s.t.Helper()
	late := time.After(patience)
	var before []string
	for {
		select {
		case line, ok := <-s.said:
			if !ok {
				s.t.Fatalf("corrald ended before it said %q:\n%s", words, strings.Join(before, "\n"))
			}
			if strings.Contains(line, words) {
				return line
			}
			before = append(before, line)
		case <-late:
			s.t.Fatalf("corrald has not said %q within %s:\n%s", words, patience, strings.Join(before, "\n"))
		}
	}
}

func (s *service) stop() {
	s.t.Helper()
	s.must("kill $(cat /var/lib/corral/state/corrald.pid)")
	for range s.said { // until its end
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("corrald: %v", err)
	}
	s.must("rm -r /run/corral") // as systemd does
}

// healthy asks from outside of the machine, over TLS.
func (s *service) healthy() {
	s.t.Helper()
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM([]byte(s.must("cat /etc/corral/tls/cert.pem")))
	client := http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + s.address + "/healthz")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Errorf("/healthz: %s", resp.Status)
	}
}

// asAda asks as a user does: over TLS, with her token.
func (s *service) asAda(command string) string {
	s.t.Helper()
	return s.must("export CORRAL_SERVER=https://" + s.address + " CORRAL_TOKEN_FILE=/root/ada.token CORRAL_CA_FILE=/etc/corral/tls/cert.pem; " + command)
}

// firstDay makes the first tokens, and has a user run a task on a pilot of this very machine.
func (s *service) firstDay() {
	s.t.Helper()
	s.healthy()
	s.must("corral token create first --owner root --administrator --out /root/root.token")
	s.must("CORRAL_SERVER=https://" + s.address + " CORRAL_TOKEN_FILE=/root/root.token CORRAL_CA_FILE=/etc/corral/tls/cert.pem " +
		"corral token create laptop --owner ada --grant local --out /root/ada.token")
	s.asAda(`corral cluster create default --kind embedded
		corral site create here --contact local: --batch fork --wait
		corral glidein create --site here --cpus 1 --walltime 10m --wait`)
	if said := s.asAda("corral submit --wait -- sh -c 'id -un >/var/lib/corral/who'; cat /var/lib/corral/who"); !strings.HasSuffix(said, "corral") {
		s.t.Errorf("the task ran as %q, want corral", said)
	}
	s.asAda("corral site remove here --wait")
	s.must("rm /var/lib/corral/who")
}

// rotate has logrotate move the audit log away, after which corrald writes into another.
func (s *service) rotate() {
	s.t.Helper()
	s.must("logrotate --force /etc/logrotate.d/corral")
	s.await("the audit log opened again")
	s.must("test -s /var/log/corral/audit.log.1; test -e /var/log/corral/audit.log")
}

const (
	backups = "ls /var/backups/corral"
	newest  = "ls /var/backups/corral/corral-* | tail -n 1"
)

// backUp makes as many backups as are kept, and one more. Their names tell seconds, so those of before are made up.
func (s *service) backUp() {
	s.t.Helper()
	s.must(`echo CORRAL_BACKUP_KEEP=2 >>/etc/corral/corrald.env
		touch /var/backups/corral/corral-2026-01-0"1T030000Z" /var/backups/corral/corral-2026-01-0"2T030000Z" /var/backups/corral/mine
		runuser -u corral -- $(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/corral-backup.service)`)
	left := strings.Fields(s.must(backups))
	if len(left) != 3 || !slices.Contains(left, "corral-2026-01-02T030000Z") || !slices.Contains(left, "mine") {
		s.t.Errorf("of two backups and one more there are %q", left)
	}
}

// worstDay finds the database damaged and puts the backup back. The tokens are those of before.
func (m *machine) worstDay() *service {
	m.t.Helper()
	m.must("echo damaged >/var/lib/corral/state/corrald.db; " + asCorral + "corral admin restore --force $(" + newest + ")")
	s := m.start()
	s.healthy()
	if said := s.asAda("corral cluster list -q"); said != "default" {
		s.t.Errorf("after the backup was put back ada has the clusters %q", said)
	}
	return s
}

// upgrade installs the package over itself. A backup is made first, and the settings stay as they were edited. The
// backup of before gets an older name: those of two within a second are one.
func (m *machine) upgrade() {
	m.t.Helper()
	m.must("mv $(" + newest + ") /var/backups/corral/corral-2026-01-03T030000Z")
	before := m.must("md5sum /etc/corral/corrald.env; " + newest)
	said := m.must("dpkg --install /tmp/*.deb 2>&1")
	if after := m.must("md5sum /etc/corral/corrald.env; " + newest); after == before || strings.Contains(said, "no backup") {
		m.t.Errorf("before the upgrade %s, after it %s:\n%s", before, after, said)
	}
}

// remove takes the package away, which leaves what is people's, and purges it, which leaves nothing.
func (m *machine) remove() {
	m.t.Helper()
	m.must("dpkg --remove corral")
	m.must("test -e /var/lib/corral/state/corrald.db -a -e /etc/corral/corrald.env -a ! -e /usr/bin/corral -a ! -e /usr/lib/corral")
	m.must("dpkg --purge corral")
	if diff := cmp.Diff(m.system, strings.Split(m.must(everything), "\n")); diff != "" {
		m.t.Errorf("what the purged package leaves (-before +after):\n%s", diff)
	}
	if said := m.must("grep -r corral /etc/passwd /etc/group /etc/shadow /etc/gshadow /var/lib/dpkg/status || true"); said != "" {
		m.t.Errorf("the purged package leaves:\n%s", said)
	}
}
