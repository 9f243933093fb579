package ssh

import (
	"time"

	"github.com/corral-pilot/corral/credential"
)

// SetPatience shortens the time that a login, or a login shell, may take.
func (s *Conn) SetPatience(d time.Duration) { s.timing.dial = d }

// RemoteLine returns the line that is sent to a login shell.
var RemoteLine = remoteLine

// CertificateIn returns the data of a file with a certificate.
func CertificateIn(content []byte) (credential.Credential, error) {
	cert, err := parseCertificate(content)
	if err != nil {
		return credential.Credential{}, err
	}
	return describe(cert, "/f"), nil
}
