package testenv

// Names that keep tests apart which share a server.

import (
	"crypto/rand"
	"strings"
	"testing"
)

// unique is a name that no other test has, in letters that topics and Redis keys
// take, and that still tells whose it is.
func unique(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, strings.TrimPrefix(test, "Test"))
	if len(name) > 80 {
		name = name[:80]
	}
	return strings.ToLower(name + "-" + rand.Text()[:10])
}

// Prefix is a key prefix of the test's own on the shared Redis. Its keys go with
// the test.
func Prefix(t testing.TB) string {
	t.Helper()
	prefix := unique(t.Name())
	client := RedisClient(t)
	t.Cleanup(func() { removeKeys(t, client, prefix) })
	return prefix
}
