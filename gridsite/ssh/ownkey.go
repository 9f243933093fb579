package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// OwnKey returns the public half of the key in a home directory, as a line for authorized_keys. If no key exists, it
// generates one, without a passphrase, because no person can enter a passphrase at night. The key is stored in the
// place where Conn looks for it, readable only by this process's user, and never leaves this machine. If two callers
// run at the same time, the first caller's key is used.
func OwnKey(home, comment string) (string, error) {
	dir := filepath.Join(home, ".ssh")
	file := filepath.Join(dir, "id_ed25519")
	line, err := publicLine(file, comment)
	if !errors.Is(err, fs.ErrNotExist) {
		return line, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a folder for an ssh key: %w", err)
	}
	if err := makeKey(dir, file, comment); err != nil {
		return "", fmt.Errorf("making an ssh key: %w", err)
	}
	return publicLine(file, comment)
}

// makeKey generates a private key. It writes the whole key to a temporary file and then links this file to the key's
// final name. The link fails if another process has just created that file: a key that was shown to its owner must not
// be replaced.
func makeKey(dir, file, comment string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "new-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(pem.EncodeToMemory(block))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), file); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// publicLine returns the public half of a private key.
func publicLine(file, comment string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	key, err := ssh.ParsePrivateKey(content)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))) + " " + comment, nil
}
