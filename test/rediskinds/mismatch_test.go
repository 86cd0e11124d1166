package rediskinds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// secret is a password that no command may show.
const secret = "hunter2-is-secret"

// mismatch is a configuration that does not match its Redis, and the expected message.
type mismatch struct {
	name     string
	settings map[string]string
	says     []string // texts that the message must contain
	runOnly  bool     // commands that only read work without it
}

func TestAConfigurationThatDoesNotFitIsRefusedAtOnceInOneLineThatSaysWhy(t *testing.T) {
	t.Parallel()
	var all []mismatch
	all = append(all, ofCredentials(t)...)
	all = append(all, ofCertificates(t)...)
	all = append(all, ofKinds(t)...)
	all = append(all, ofSentinels(t)...)
	look := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // it is never used
	t.Cleanup(func() { harness.Must(t, look.Close()) })
	place := newPlace(t, look, nil)
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			refused(t, place, m, "run")
			if m.runOnly {
				return
			}
			refused(t, place, m, "top", "global", "weekly")
			refused(t, place, m, "rank", "global", "weekly", "m1")
			refused(t, place, m, "status")
		})
	}
}

func refused(t *testing.T, place *harness.Place, m mismatch, args ...string) {
	t.Helper()
	got := place.Run(t, m.settings, args...)
	line := got.Reason()
	if got.Code != 1 || line == "" {
		t.Errorf("consumer %v ends with code %d:\n%s", args, got.Code, got.Stderr)
	}
	for _, want := range m.says {
		if !strings.Contains(line, want) {
			t.Errorf("consumer %v doesn't say %q, but: %s", args, want, got.Stderr)
		}
	}
	for _, shown := range []string{got.Stdout, got.Stderr, place.Run(t, m.settings, "config").Stdout} {
		if strings.Contains(shown, secret) {
			t.Errorf("consumer %v shows a secret:\n%s", args, shown)
		}
	}
}

func ofCredentials(t *testing.T) []mismatch {
	t.Helper()
	closed, open := testenv.PrivateRedis(t), testenv.PrivateRedis(t)
	c := closed.Client(t)
	harness.Must(t, c.Do(t.Context(), "acl", "setuser", "standings", "on", ">right", "~*", "+@all").Err())
	harness.Must(t, c.Do(t.Context(), "acl", "setuser", "former", "off", ">"+secret, "~*", "+@all").Err())
	harness.Must(t, c.ConfigSet(t.Context(), "requirepass", "right").Err())
	at := "Redis at " + closed.Addr()
	with := func(pairs ...string) map[string]string {
		all := map[string]string{"redis.addresses": closed.Addr()}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	return []mismatch{
		{"no password", with(), []string{at, "asks for a password: set redis.password", "NOAUTH"}, false},
		{"a user without a password", with("redis.username", "standings"), []string{at, "redis.username is set, and redis.password isn't"}, false},
		{"a wrong password", with("redis.password", secret), []string{at, "doesn't take redis.password for the default user", "WRONGPASS"}, false},
		{"a wrong password, of several shards", with("redis.password", secret, "redis.shards", "3"), []string{at, "doesn't take redis.password for the default user", "WRONGPASS"}, false},
		{"a user's wrong password", with("redis.username", "standings", "redis.password", secret), []string{at, `doesn't take redis.password for the user "standings"`, "WRONGPASS"}, false},
		{"a user that there isn't", with("redis.username", "nobody", "redis.password", secret), []string{at, `for the user "nobody"`, "no such user"}, false},
		{"a user that is off", with("redis.username", "former", "redis.password", secret), []string{at, `for the user "former"`, "or it is off"}, false},
		{"a database that there isn't", map[string]string{"redis.addresses": open.Addr(), "redis.db": "99"},
			[]string{"Redis at " + open.Addr(), "has no database 99: see redis.db"}, false},
	}
}

func TestAPasswordThatNobodyAsksForDoesNoHarm(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t) // the default user accepts any password
	wholeRun(t, newPlace(t, server.Client(t), map[string]string{"redis.addresses": server.Addr(), "redis.password": secret}))
}

func ofCertificates(t *testing.T) []mismatch {
	t.Helper()
	a, stranger := newAuthority(t), newAuthority(t)
	plain, open := secureRedis(t, a, ours, later(), "no")
	_, mutual := secureRedis(t, a, ours, later(), "yes")
	_, named := secureRedis(t, a, []string{"redis.example"}, later(), "no")
	_, expired := secureRedis(t, a, ours, time.Now().Add(-time.Hour), "no")
	shown := stranger.Sign(t, "consumer", later())
	over := func(address string, pairs ...string) map[string]string {
		all := map[string]string{"redis.addresses": address, "redis.tls.enabled": "true", "redis.tls.ca_file": a.File, "redis.password": secret}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	return []mismatch{
		{"TLS to a port without", over(plain.Addr()), []string{"Redis at " + plain.Addr(), "speaks without TLS on this port, and redis.tls.enabled is true"}, false},
		{"no TLS to a port with", map[string]string{"redis.addresses": open}, []string{"Redis at " + open, "speaks TLS on this port, and redis.tls.enabled is false"}, false},
		{"an authority that isn't trusted", over(open, "redis.tls.ca_file", stranger.File), []string{"Redis at " + open, "whom redis.tls.ca_file doesn't hold"}, false},
		{"an authority that the system doesn't trust", over(open, "redis.tls.ca_file", ""), []string{"whom this system doesn't trust: set redis.tls.ca_file"}, false},
		{"a certificate for another name", over(named), []string{"Redis at " + named, "and not for 127.0.0.1: see redis.addresses, or set redis.tls.server_name"}, false},
		{"another name than asked for", over(open, "redis.tls.server_name", "redis.example"), []string{"and not for redis.example"}, false},
		{"a certificate that has expired", over(expired), []string{"Redis at " + expired, "shows a certificate that expired at 20"}, false},
		{"a client certificate is asked for", over(mutual), []string{"Redis at " + mutual, "asks for a client's certificate", "set redis.tls.cert_file and redis.tls.key_file"}, false},
		{"a stranger's client certificate", over(mutual, "redis.tls.cert_file", shown.Cert, "redis.tls.key_file", shown.Key), []string{"Redis at " + mutual, "refuses the client's certificate"}, false},
	}
}

func ofKinds(t *testing.T) []mismatch {
	t.Helper()
	master := testenv.LocalRedis(t)
	replica := testenv.LocalRedis(t, "--replicaof", strings.Replace(master.Addr(), ":", " ", 1))
	followed(t, master, replica)
	node := harness.StartNode(t)
	return []mismatch{
		{"a replica", map[string]string{"redis.addresses": replica.Addr()},
			[]string{"Redis at " + replica.Addr(), "is a replica, and takes no writes: give its master's address"}, true},
		{"a cluster's node as a server", map[string]string{"redis.addresses": node.Addr()},
			[]string{"Redis at " + node.Addr(), "is a node of a cluster: set redis.cluster: true"}, false},
		{"a server as a cluster's node", map[string]string{"redis.addresses": master.Addr(), "redis.cluster": "true"},
			[]string{"Redis Cluster at " + master.Addr(), "isn't a cluster's node", "leave redis.cluster false"}, false},
		{"two servers", map[string]string{"redis.addresses": master.Addr() + "," + replica.Addr()},
			[]string{"Redis Cluster at " + master.Addr() + ", " + replica.Addr(), "isn't a cluster's node", "redis.sentinel.master"}, false},
	}
}

func ofSentinels(t *testing.T) []mismatch {
	t.Helper()
	master := testenv.LocalRedis(t, "--requirepass", "right")
	open := startSentinel(t, master.Addr(), 1, "")
	closed := startSentinel(t, master.Addr(), 1, "right")
	by := func(address, name string, pairs ...string) map[string]string {
		all := map[string]string{"redis.addresses": address, "redis.sentinel.master": name, "redis.password": "right"}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = pairs[i+1]
		}
		return all
	}
	return []mismatch{
		{"a Sentinel as a server", map[string]string{"redis.addresses": open}, []string{"Redis at " + open, "is a Sentinel: name the master that it watches by redis.sentinel.master"}, false},
		{"a server as a Sentinel", by(master.Addr(), watched, "redis.sentinel.password", "right"), []string{"Sentinel " + master.Addr(), "isn't a Sentinel"}, false},
		{"a master that there isn't", by(open, "scores"), []string{"Sentinel " + open, fmt.Sprintf("watches no master named %q but %s: see redis.sentinel.master", "scores", watched)}, false},
		{"a Sentinel's password is missing", by(closed, watched), []string{"Sentinel " + closed, "asks for a password: set redis.sentinel.password", "NOAUTH"}, false},
		{"a Sentinel's password is wrong", by(closed, watched, "redis.sentinel.password", secret), []string{"Sentinel " + closed, "doesn't take redis.sentinel.password", "WRONGPASS"}, false},
		{"one of two Sentinels is away", by("127.0.0.1:1,"+open, "scores"), []string{"Sentinel " + open, `watches no master named "scores"`}, false},
		{"the master's password is wrong", by(open, watched, "redis.password", secret), []string{"Redis " + watched + " of the Sentinels at " + open, "doesn't take redis.password for the default user"}, false},
	}
}
