package lua

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var all = []Script{Apply, Start, Settle, Extend, State, Report, Read, Above, Page, There, Retire, DropBoards, Seal, Unseal, Stay, Lead, Forget, Ban, Try, Lock, Keep, Load, Swap, Switch}

func TestEveryFileIsAScriptOfTheRegistryOrBuiltIntoOne(t *testing.T) {
	used := map[string]bool{}
	for _, s := range all {
		used[s.Name] = true
		for _, line := range include.FindAllStringSubmatch(read(s.Name), -1) {
			used[line[1]] = true
		}
		require.NotContains(t, s.Source, "-- include ", "%s", s.Name)
	}
	entries, err := files.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, used[e.Name()], "%s is in no script", e.Name())
	}
}

// Reviewers and callers of a script rely on its head.
func TestEveryScriptListsItsKeysAndWhatItReturns(t *testing.T) {
	keys, args := regexp.MustCompile(`\bKEYS\b`), regexp.MustCompile(`\bARGV\b`)
	for _, s := range all {
		head, body := "", ""
		for line := range strings.Lines(s.Source) {
			if body == "" && strings.HasPrefix(line, "--") {
				head += line
			} else {
				body += line
			}
		}
		require.True(t, strings.HasPrefix(head, "-- "+s.Name+" "), "%s", s.Name)
		require.Regexp(t, `(?m)^-- KEYS  1`, head, "%s", s.Name)
		require.Regexp(t, `(?m)^-- Returns `, head, "%s", s.Name)
		require.True(t, keys.MatchString(body), "%s", s.Name)
		require.Equal(t, args.MatchString(body), regexp.MustCompile(`(?m)^-- ARGV  `).MatchString(head), "%s", s.Name)
	}
}

// Before Redis 7.2 an error about a missing right names only the script's line (redisconn.NameRight).
func TestALineOfAScriptCallsOneCommand(t *testing.T) {
	called := regexp.MustCompile(`\bcall\('([A-Z]+)'`)
	for _, s := range all {
		for line := range strings.Lines(s.Source) {
			commands := map[string]bool{}
			for _, c := range called.FindAllStringSubmatch(line, -1) {
				commands[c[1]] = true
			}
			require.LessOrEqual(t, len(commands), 1, "%s: %s", s.Name, line)
		}
	}
}
