package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/bench/rig"
)

// A stand is a central corrald with some users, each with a token, a cluster and a site.
type stand struct {
	*rig.User
	url    string
	tls    *tls.Config
	people []person
}

// A person requests glideins.
type person struct {
	token   string
	site    string
	begin   []byte             // the body of a request for a glidein
	created []corral.GlideinID // before the load
}

// start starts corrald on a free port with its own certificate, and creates its users.
func (s *stand) start(ctx context.Context, users int) error {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	s.url = "https://" + address
	if err := errors.Join(free.Close(), s.certify()); err != nil {
		return err
	}
	s.Env = append(s.Env, "CORRALD_TLS_LISTEN="+address, "CORRALD_TLS_CERT="+s.file("cert.pem"),
		"CORRALD_TLS_KEY="+s.file("key.pem"), "CORRALD_RATE=100000", "CORRALD_BURST=100000")
	if _, err := s.Corral(ctx, "up"); err != nil {
		return err
	}
	for i := range users {
		name := fmt.Sprintf("user%d", i)
		_, err := s.Corral(ctx, "token", "create", name, "--owner", name, "--grant", "local", "--out", s.file(name))
		if err != nil {
			return err
		}
		token, err := os.ReadFile(s.file(name))
		if err != nil {
			return err
		}
		person := person{token: strings.TrimSpace(string(token)), site: "here"}
		as := []string{"--server", s.url, "--ca-file", s.file("cert.pem"), "--token-file", s.file(name)}
		for _, args := range [][]string{{"cluster", "create", "default", "--kind", "embedded"},
			{"site", "create", person.site, "--contact", "local:", "--batch", "fork",
				"--root", s.file("root-" + name)}} {
			if _, err := s.Corral(ctx, append(as, args...)...); err != nil {
				return err
			}
		}
		person.begin, err = json.Marshal(map[string]any{"site": person.site, "cluster": "default", "hosts": 1,
			"cpus": 1, "walltime_s": 3600, "not_before": time.Now().Add(24 * time.Hour).UTC()})
		if err != nil {
			return err
		}
		s.people = append(s.people, person)
	}
	return nil
}

func (s *stand) file(name string) string { return filepath.Join(s.Dir, name) }

// certify creates a self-signed certificate, which clients trust.
func (s *stand) certify() error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "load"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.tls = &tls.Config{RootCAs: x509.NewCertPool()}
	s.tls.RootCAs.AppendCertsFromPEM(cert)
	return errors.Join(os.WriteFile(s.file("cert.pem"), cert, 0o644),
		os.WriteFile(s.file("key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

// client returns a client with separate connections, up to the given number, like that many commands.
func (s *stand) client(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: s.tls.Clone(), TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections,
	}}
}

// fill creates glideins in the store, the same number for each user.
func (s *stand) fill(ctx context.Context, glideins int) error {
	hc := s.client(1)
	defer hc.CloseIdleConnections()
	for i := range glideins {
		p := &s.people[i%len(s.people)]
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/glideins", bytes.NewReader(p.begin))
		if err != nil {
			return err
		}
		req.Header = p.header(true)
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		var g corral.Glidein
		err = errors.Join(json.NewDecoder(resp.Body).Decode(&g), resp.Body.Close())
		if err != nil || resp.StatusCode != http.StatusCreated {
			return fmt.Errorf("asking for a glidein: %s, %w", resp.Status, err)
		}
		p.created = append(p.created, g.ID)
	}
	return nil
}

// header identifies the user. Each change has its own key.
func (p person) header(change bool) http.Header {
	h := http.Header{"Authorization": {"Bearer " + p.token}, "Accept": {"application/json"}}
	if change {
		h.Set("Content-Type", "application/json")
		h.Set(api.KeyHeader, rand.Text())
	}
	return h
}

// pid returns corrald's pid.
func (s *stand) pid() (int, error) {
	text, err := os.ReadFile(s.file("s/corral/corrald.pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// peak returns corrald's peak memory, in MiB.
func (s *stand) peak() (float64, error) {
	pid, err := s.pid()
	if err != nil {
		return 0, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseFloat(strings.Fields(after + " 0")[0], 64)
	return kib / 1024, err
}

// restart kills and restarts corrald, and returns how long it takes until it answers over TLS.
func (s *stand) restart(ctx context.Context) (time.Duration, error) {
	pid, err := s.pid()
	if err != nil {
		return 0, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, err
	}
	from := time.Now()
	if _, err := s.Corral(ctx, "up"); err != nil {
		return 0, err
	}
	hc := s.client(1)
	defer hc.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/healthz", nil)
	if err != nil {
		return 0, err
	}
	resp, err := hc.Do(req)
	if err != nil {
		return 0, err
	}
	return time.Since(from), resp.Body.Close()
}
