package rediskinds

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded/child"
	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// newAuthority creates an authority. All have the same name, so a certificate of a foreign authority is presented
// to a server, which refuses it.
func newAuthority(t *testing.T) *harness.Authority {
	t.Helper()
	return harness.NewAuthority(t, "an authority")
}

// later is the expiry of certificates that are valid during a test.
func later() time.Time { return time.Now().Add(time.Hour) }

// ours has the names of this machine in a server's certificate.
var ours = []string{"localhost", "127.0.0.1"}

// secureRedis starts a server with a second port that uses TLS, with a certificate for these hosts. The test uses the
// plain port.
func secureRedis(t *testing.T, a *harness.Authority, hosts []string, ends time.Time, clients string) (plain *testenv.RedisServer, secure string) {
	t.Helper()
	port, err := child.FreePort()
	harness.Must(t, err)
	shown := a.Sign(t, "a server", ends, hosts...)
	server := testenv.PrivateRedis(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", shown.Cert, "--tls-key-file", shown.Key,
		"--tls-ca-cert-file", a.File, "--tls-auth-clients", clients)
	return server, fmt.Sprintf("127.0.0.1:%d", port)
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	harness.Must(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
	return path
}

func TestAConsumerRunsOverTLSWithACertificateAUserAndAPasswordFromAFile(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server, secure := secureRedis(t, a, ours, later(), "yes")
	shown := a.Sign(t, "consumer", later())
	harness.Must(t, server.Client(t).Do(t.Context(), "acl", "setuser", "standings", "on", ">hunter2", "~*", "+@all").Err())
	harness.Must(t, server.Client(t).ConfigSet(t.Context(), "requirepass", "the test's").Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "the test's", DB: 3})
	t.Cleanup(func() { harness.Must(t, client.Close()) })
	wholeRun(t, newPlace(t, client, map[string]string{
		"redis.addresses": secure, "redis.username": "standings", "redis.password_file": secretFile(t, "hunter2"), "redis.db": "3",
		"redis.tls.enabled": "true", "redis.tls.ca_file": a.File, "redis.tls.cert_file": shown.Cert, "redis.tls.key_file": shown.Key,
	}))
}

func TestAServersCertificateMayBeForAnotherNameThanItsAddress(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server, secure := secureRedis(t, a, []string{"redis.example"}, later(), "no")
	wholeRun(t, newPlace(t, server.Client(t), map[string]string{
		"redis.addresses": secure, "redis.tls.enabled": "true", "redis.tls.ca_file": a.File, "redis.tls.server_name": "redis.example",
	}))
}
