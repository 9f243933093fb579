package ssh

import (
	"time"

	"github.com/corral-pilot/corral/credential"
)

// SetPatience shortens how long a login, or a login shell, may take.
func (s *Conn) SetPatience(d time.Duration) { s.timing.dial = d }

// RemoteLine is what is sent to a login shell.
var RemoteLine = remoteLine

// CertificateIn is what a file with a certificate says.
func CertificateIn(content []byte) (credential.Credential, error) {
	cert, err := parseCertificate(content)
	if err != nil {
		return credential.Credential{}, err
	}
	return describe(cert, "/f"), nil
}
