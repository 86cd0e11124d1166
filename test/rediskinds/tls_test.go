package rediskinds

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/internal/testenv"
)

// authority signs certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	a.file = a.write(t, "ca.crt", "CERTIFICATE", der)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func (a *authority) write(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// sign writes a certificate for a name, or for 127.0.0.1 and localhost where it is
// empty, and its key.
func (a *authority) sign(t *testing.T, file, name string, ends time.Time) (cert, key string) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: file},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: ends,
		DNSNames: []string{name},
	}
	if name == "" {
		template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	must(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	must(t, err)
	return a.write(t, file+".crt", "CERTIFICATE", der), a.write(t, file+".key", "EC PRIVATE KEY", secret)
}

// later is when certificates of tests end that don't have to have ended.
func later() time.Time { return time.Now().Add(time.Hour) }

// secureRedis is a server with a second port that speaks TLS. The first is the test's.
func secureRedis(t *testing.T, a *authority, name string, ends time.Time, clients string) (plain *testenv.RedisServer, secure string) {
	t.Helper()
	port, err := child.FreePort()
	must(t, err)
	cert, key := a.sign(t, fmt.Sprint("server", port), name, ends)
	server := testenv.PrivateRedis(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", a.file, "--tls-auth-clients", clients)
	return server, fmt.Sprintf("127.0.0.1:%d", port)
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	return path
}

func TestAConsumerRunsOverTLSWithACertificateAUserAndAPasswordFromAFile(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server, secure := secureRedis(t, a, "", later(), "yes")
	cert, key := a.sign(t, "consumer", "consumer", later())
	must(t, server.Client(t).Do(t.Context(), "acl", "setuser", "standings", "on", ">hunter2", "~*", "+@all").Err())
	must(t, server.Client(t).ConfigSet(t.Context(), "requirepass", "the test's").Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "the test's", DB: 3})
	t.Cleanup(func() { must(t, client.Close()) })
	wholeRun(t, newPlace(t, client, map[string]string{
		"redis.addresses": secure, "redis.username": "standings", "redis.password_file": secretFile(t, "hunter2"), "redis.db": "3",
		"redis.tls.enabled": "true", "redis.tls.ca_file": a.file, "redis.tls.cert_file": cert, "redis.tls.key_file": key,
	}))
}

func TestAServersCertificateMayBeForAnotherNameThanItsAddress(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server, secure := secureRedis(t, a, "redis.example", later(), "no")
	wholeRun(t, newPlace(t, server.Client(t), map[string]string{
		"redis.addresses": secure, "redis.tls.enabled": "true", "redis.tls.ca_file": a.file, "redis.tls.server_name": "redis.example",
	}))
}
