package ranking

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/testenv"
)

func TestAServerThatKeepsAllIsTaken(t *testing.T) {
	f, _ := private(t)
	require.NoError(t, f.store.Try(t.Context(), false))
	for _, name := range []string{"hash", "set", "text"} {
		require.Zero(t, f.client.Exists(t.Context(), f.store.keys.scratch(name)).Val(), "what was tried on is gone")
	}
}

func TestAServerThatEvictsIsRefusedEvenIfItIsAssumedNotTo(t *testing.T) {
	for _, policy := range []string{"volatile-lru", "volatile-ttl", "allkeys-lru", "allkeys-random"} {
		f, server := private(t, "--maxmemory-policy", policy)
		for _, assume := range []bool{false, true} {
			err := f.store.Try(t.Context(), assume)
			require.EqualError(t, err, "Redis "+server.Addr()+" has maxmemory-policy "+policy+" and may drop a board or the ledger alone: "+
				"set it to noeviction (CONFIG SET maxmemory-policy noeviction)")
			require.Equal(t, ledger.Refuse, Classify(err).AtStart())
		}
		f.set(t, "maxmemory-policy", "noeviction")
		require.NoError(t, f.store.TryEviction(t.Context(), false))
	}
}

func TestAServerWithoutConfigTellsByInfo(t *testing.T) {
	f, server := private(t, "--rename-command", "CONFIG", "", "--maxmemory-policy", "volatile-lru")
	require.ErrorContains(t, f.store.TryEviction(t.Context(), true), "volatile-lru")
	client := f.as(t, server, "~*", "+@all", "-config")
	require.ErrorContains(t, f.storeOf(t, func(c *Config) { c.Client = client }).TryEviction(t.Context(), true), "volatile-lru")
	f, _ = private(t, "--rename-command", "CONFIG", "")
	require.NoError(t, f.store.Try(t.Context(), false))
}

func TestAServerThatDoesNotTellIsTakenAtItsOperatorsWord(t *testing.T) {
	f, server := private(t)
	client := f.as(t, server, "~*", "+@all", "-config", "-info")
	store := f.storeOf(t, func(c *Config) { c.Client = client })
	err := store.Try(t.Context(), false)
	require.EqualError(t, err, "Redis "+server.Addr()+" doesn't tell its maxmemory-policy (CONFIG GET and INFO memory give none): "+
		"if it is noeviction, say so by redis.assume_noeviction: true")
	require.Equal(t, ledger.Refuse, Classify(err).AtStart())
	require.NoError(t, store.Try(t.Context(), true))
}

// scripts are the commands that each .lua file calls.
func scripts(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("lua/*.lua")
	require.NoError(t, err)
	all := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\bcall\('([A-Z]+)'`).FindAllSubmatch(text, -1) {
			all[filepath.Base(file)] = append(all[filepath.Base(file)], string(m[1]))
		}
		calls := regexp.MustCompile(`\bp?call\(`).FindAll(text, -1)
		require.Len(t, all[filepath.Base(file)], len(calls), "%s: every command is written as call('COMMAND'", file)
	}
	return all
}

// methods are go-redis's that send a command; those of no name send none by themselves.
var methods = map[string]string{
	"HGet": "HGET", "HSet": "HSET", "HScan": "HSCAN", "HDel": "HDEL", "HLen": "HLEN", "HMGet": "HMGET", "Get": "GET", "ZRevRangeWithScores": "ZREVRANGE",
	"Do": "", "Pipeline": "", "Exec": "", "Unlink": "UNLINK", "ZCard": "ZCARD", "ZScan": "ZSCAN", "Exists": "EXISTS",
}

// direct are the commands that are sent without a script.
func direct(t *testing.T) []string {
	t.Helper()
	var all []string
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\b(?:s\.client|pipe)\.(\w+)\(`).FindAllSubmatch(text, -1) {
			method := string(m[1])
			require.Contains(t, methods, method, file)
			if command := methods[method]; command != "" {
				all = append(all, command)
			}
		}
	}
	return all
}

// ofRebuild are the scripts that only a rebuild runs, and shared those that it runs, too.
var (
	ofRebuild = []string{"lock.lua", "release.lua", "renew.lua", "both.lua", "there.lua", "swap.lua", "compare.lua", "mergenames.lua"}
	shared    = []string{"apply.lua", "start.lua", "state.lua", "ban.lua", "banned.lua", "names.lua"}
	// ofReshard only a reshard runs, which runs some of the others, too.
	ofReshard     = []string{"prolong.lua", "page.lua", "paste.lua", "renumber.lua", "keep.lua", "leave.lua", "mark.lua", "discard.lua"}
	sharedReshard = []string{"lock.lua", "release.lua", "state.lua", "number.lua"}
)

func TestWhatIsTriedIsWhatIsUsed(t *testing.T) {
	all := scripts(t)
	require.Len(t, all, 43)
	consumer, rebuild := []string{}, []string{"HGET", "HSCAN", "UNLINK"} // directly
	reshard := []string{"HSCAN", "ZCARD", "EXISTS", "UNLINK"}
	for _, command := range direct(t) {
		if command != "UNLINK" {
			consumer = append(consumer, command)
		}
	}
	for file, commands := range all {
		if slices.Contains(ofReshard, file) || slices.Contains(sharedReshard, file) {
			reshard = append(reshard, commands...)
		}
		switch {
		case slices.Contains(ofReshard, file):
		case strings.HasPrefix(file, "try"), file == "dropboards.lua", file == "above.lua", file == "scores.lua": // what the first lacks, it says, as does a reader of several shards
		case slices.Contains(ofRebuild, file):
			rebuild = append(rebuild, commands...)
		case file == "read.lua": // only a reader of ties, counts and ranges counts
			consumer = append(consumer, slices.DeleteFunc(commands, func(c string) bool { return c == "ZCOUNT" })...)
		default:
			consumer = append(consumer, commands...)
			if slices.Contains(shared, file) {
				rebuild = append(rebuild, commands...)
			}
		}
	}
	sorted := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	require.Equal(t, sorted(consumer), sorted(all["try.lua"]))
	require.Equal(t, sorted(rebuild), sorted(all["tryrebuild.lua"]))
	require.Equal(t, sorted(reshard), sorted(all["tryreshard.lua"]))
}

func TestEveryRightThatIsMissingIsFoundAtStart(t *testing.T) {
	f, server := private(t)
	for _, command := range append(scripts(t)["try.lua"], "EVAL", "EVALSHA") {
		client := f.as(t, server, "~lb:*", "+@all", "-"+strings.ToLower(command))
		err := f.storeOf(t, func(c *Config) { c.Client = client }).Try(t.Context(), false)
		var rights *redisconn.RightsError
		require.ErrorAs(t, err, &rights, command)
		require.ErrorContains(t, err, "Redis doesn't let this user run "+command+": grant it (ACL SETUSER … +"+strings.ToLower(command)+"): ")
		require.Equal(t, ledger.Refuse, Classify(err).AtStart())
	}
	// And these are all that it takes.
	rules := []string{"~lb:*", "+eval", "+evalsha", "+config|get"}
	for _, command := range scripts(t)["try.lua"] {
		rules = append(rules, "+"+strings.ToLower(command))
	}
	client := f.as(t, server, rules...)
	store := f.storeOf(t, func(c *Config) { c.Client = client })
	require.NoError(t, store.Try(t.Context(), false))
	f.store = store
	f.mustApply(t)
	_, err := store.Retire(t.Context())
	require.NoError(t, err)
	// Keys of others are none of its business.
	client = f.as(t, server, append(rules, "resetkeys", "~other:*")...)
	require.ErrorContains(t, f.storeOf(t, func(c *Config) { c.Client = client }).Try(t.Context(), false), "doesn't let this user use the keys of redis.prefix: grant them (ACL SETUSER … ~lb:*)")
}

func TestAMiniredisIsTakenAtItsOperatorsWord(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	require.NoError(t, f.store.Try(t.Context(), true))
}

func TestEncodingAllocatesNothingForAMember(t *testing.T) {
	f := offlineFixture(t)
	allocs := func(members int) float64 {
		m := make([]ledger.Member, members)
		for i := range m {
			m[i] = ledger.Member{ID: benchID(i), Points: int64(i), Time: f.now}
		}
		f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: m}}
		e := new(encoder)
		return testing.AllocsPerRun(20, func() {
			if _, err := e.encode(f.store, &f.piece, f.piece.Next.String()); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocs(10), allocs(5000)
	require.InDelta(t, few, many, 3, "the length itself is boxed")
	require.Less(t, many, 60.0)
}
