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
		"if it is noeviction, set redis.assume_noeviction: true")
	require.Equal(t, ledger.Refuse, Classify(err).AtStart())
	require.NoError(t, store.Try(t.Context(), true))
}

// scripts returns the commands that each .lua file calls.
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
		calls := regexp.MustCompile(`\bp?call\([^c]`).FindAll(text, -1) // except pcall(cjson.decode
		require.Len(t, all[filepath.Base(file)], len(calls), "%s: every command is written as call('COMMAND'", file)
	}
	return all
}

// methods maps go-redis's methods to the commands that they send; "" sends none by itself.
var methods = map[string]string{
	"HGet": "HGET", "HSet": "HSET", "HScan": "HSCAN", "HDel": "HDEL", "HLen": "HLEN", "HMGet": "HMGET", "Get": "GET", "ZRevRangeWithScores": "ZREVRANGE",
	"Do": "", "Pipeline": "", "Exec": "", "Unlink": "UNLINK", "ZCard": "ZCARD", "ZScan": "ZSCAN", "Exists": "EXISTS",
}

// direct returns the commands that are sent without a script.
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

// The scripts that a rebuild and a reshard run, and which of their commands those two don't use.
var (
	ofRebuild    = []string{"lock.lua", "keep.lua", "state.lua", "there.lua", "listing.lua", "swap.lua", "page.lua", "load.lua", "apply.lua", "start.lua", "ban.lua", "banned.lua"}
	notOfRebuild = []string{"PERSIST", "ZREVRANGE"}
	ofReshard    = []string{"lock.lua", "keep.lua", "state.lua", "page.lua", "load.lua", "switch.lua"}
	notOfReshard = []string{"HGET", "ZSCAN", "ZMSCORE"}
	// A consumer doesn't run these scripts. A reader of several shards reports a right that it lacks.
	notOfRun = []string{"lock.lua", "keep.lua", "swap.lua", "page.lua", "load.lua", "switch.lua", "try.lua", "dropboards.lua", "above.lua"}
)

func TestWhatIsTriedIsWhatIsUsed(t *testing.T) {
	all := scripts(t)
	require.Len(t, all, 26)
	consumer, rebuild := []string{}, []string{"HGET", "HSCAN", "UNLINK"} // sent without a script
	reshard := []string{"HSCAN", "ZCARD", "EXISTS", "UNLINK"}
	for _, command := range direct(t) {
		if command != "UNLINK" {
			consumer = append(consumer, command)
		}
	}
	for file, commands := range all {
		if !slices.Contains(notOfRun, file) { // only readers of ties, counts and ranges use ZCOUNT
			consumer = append(consumer, slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return c == "ZCOUNT" })...)
		}
		if slices.Contains(ofRebuild, file) {
			rebuild = append(rebuild, slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return slices.Contains(notOfRebuild, c) })...)
		}
		if slices.Contains(ofReshard, file) {
			reshard = append(reshard, slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return slices.Contains(notOfReshard, c) })...)
		}
	}
	sorted := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	require.Equal(t, sorted(consumer), sorted(used))
	require.Equal(t, sorted(rebuild), sorted(UsedByRebuild))
	require.Equal(t, sorted(reshard), sorted(UsedByReshard))
	require.Subset(t, sorted(all["try.lua"]), sorted(slices.Concat(used, UsedByRebuild, UsedByReshard)))
}

func TestEveryRightThatIsMissingIsFoundAtStart(t *testing.T) {
	f, server := private(t)
	for _, command := range append(slices.Clone(used), "EVAL", "EVALSHA") {
		client := f.as(t, server, "~lb:*", "+@all", "-"+strings.ToLower(command))
		err := f.storeOf(t, func(c *Config) { c.Client = client }).Try(t.Context(), false)
		var rights *redisconn.RightsError
		require.ErrorAs(t, err, &rights, command)
		require.ErrorContains(t, err, "Redis doesn't let this user run "+command+": grant it (ACL SETUSER … +"+strings.ToLower(command)+"): ")
		require.Equal(t, ledger.Refuse, Classify(err).AtStart())
	}
	// No other right is needed.
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
	// Rights to keys of another prefix don't suffice.
	client = f.as(t, server, append(rules, "resetkeys", "~other:*")...)
	require.ErrorContains(t, f.storeOf(t, func(c *Config) { c.Client = client }).Try(t.Context(), false), "doesn't let this user use the keys of redis.prefix: grant them (ACL SETUSER … ~lb:*)")
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
