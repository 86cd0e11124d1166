package testenv

// Names that separate the tests of a shared server.

import (
	"crypto/rand"
	"strings"
	"testing"
)

// Unique returns a unique name that contains the test's name, in characters that topics and Redis keys
// accept, short enough for a key prefix.
func Unique(test string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, strings.TrimPrefix(test, "Test"))
	if len(name) > 48 {
		name = name[:48]
	}
	return strings.ToLower(name + "-" + rand.Text()[:10])
}

// Prefix returns a unique key prefix on the shared Redis. Its keys are removed when the test ends.
func Prefix(t testing.TB) string {
	t.Helper()
	prefix := Unique(t.Name())
	client := RedisClient(t)
	t.Cleanup(func() { removeKeys(t, client, prefix) })
	return prefix
}
