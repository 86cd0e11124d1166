package redissim

// The simulated server and a real one receive the same commands in the same order. The tests compare their replies
// and their content afterwards.

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// twins has clients of a simulated and of a real server.
type twins struct{ simulated, real *redis.Client }

func newTwins(t *testing.T, proto int) twins {
	t.Helper()
	s := New(time.Now)
	options := redis.Options{Protocol: proto, MaxRetries: -1, DisableIdentity: true}
	genuine, simulated := options, options
	genuine.Addr = testenv.RealRedis(t, "what a real one answers").Addr()
	simulated.Dialer = s.Dialer("test")
	both := twins{redis.NewClient(&simulated), redis.NewClient(&genuine)}
	t.Cleanup(func() {
		require.NoError(t, both.simulated.Close())
		require.NoError(t, both.real.Close())
		s.Close()
	})
	return both
}

// word draws one of a few texts, so that keys, fields and members collide.
func word(t *rapid.T, name string) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "", "\x00\xff", "10", "é"}).Draw(t, name)
}

func number(t *rapid.T, name string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"0", "-0", "1", "1.5", "-2.25", "inf", "-inf", "nan", "x", "", "1e308", "1e-310", " 1", "1_0"}),
		rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
		rapid.Map(rapid.Float64(), func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }),
	).Draw(t, name)
}

func index(t *rapid.T, name string) string {
	return strconv.Itoa(rapid.IntRange(-4, 4).Draw(t, name))
}

// several draws one to four groups of arguments.
func several(t *rapid.T, each ...func(*rapid.T, string) string) []string {
	var all []string
	for range rapid.IntRange(1, 4).Draw(t, "count") {
		for i, draw := range each {
			all = append(all, draw(t, fmt.Sprint("argument ", i)))
		}
	}
	return all
}

// snippets are scripts that show how values of Lua and Redis are converted.
var snippets = []string{
	"return {1.9, -1.9, 'a', true, false, 'after'}",
	"return {1, nil, 3}",
	"return 2^53 + 0.5",
	"return 1e300",
	"return -1e300",
	"return nil",
	"return {ok = 'fine'}",
	"return {err = 'CODE text'}",
	"return redis.error_reply('CODE text')",
	"return redis.status_reply('fine')",
	"return {ARGV[1], {ARGV[2], {#KEYS, #ARGV}}}",
	"return redis.call('ZMSCORE', KEYS[1], unpack(ARGV))",
	"return redis.call('HGETALL', KEYS[1])",
	"return redis.call('HGET', KEYS[1], ARGV[1])",
	"return redis.call('HGET', KEYS[1], ARGV[1]) == false",
	"return redis.call('ZREVRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
	"return redis.call('ZSCORE', KEYS[1], ARGV[1])",
	"return {redis.call('SET', KEYS[1], 1/3), redis.call('GET', KEYS[1]) + 0 == 1/3, redis.call('DEL', KEYS[1])}",
	"return redis.call('ZADD', KEYS[1], 2^53 + 1, ARGV[1], 0.1 + 0.2, ARGV[2])",
	"return redis.call('ZADD', KEYS[1], 1/0, ARGV[1])",
	"return redis.call('ZADD', KEYS[1], -2^-1074, ARGV[1], 2^-1022, ARGV[2])",
	"return type(redis.pcall('NOSUCH')) .. tostring(redis.pcall('LPUSH', KEYS[1]).err ~= nil)",
	"return redis.pcall('HGET', KEYS[1])",
	"redis.call('HSET', KEYS[1], 'kept', '1') redis.call('NOSUCH')",
	"return nosuch",
	"global = 1",
	"return redis.call({})",
	"return redis.call('GET', KEYS[1], nil)",
	"return redis.sha1hex(ARGV[1])",
	"local d = cjson.decode('[1, -2.5, 1e3, 9007199254740993, 9223372036854775807]') return {d[1], d[2] == -2.5, d[3], d[4] == 2^53, string.format('%.0f', d[5]), #d}",
	"return #cjson.decode('[]')",
	"return cjson.decode('[1,')",
	"local f, e = math.frexp(0.3) return {f == 0.6, e, math.ldexp(0.6, -1) == 0.3, math.ldexp(1, -1074) > 0}",
	"local n = -0.25 return {n % 1 == 0.75, (-2^-1000) % 1 == 1, (2^60) % 1, tostring(1/0 % 1 == 1/0 % 1)}",
	"local a, b, c = string.match('12 -3 45', '^(%S+) (%S+) (%d+)$') return {a, b, c}",
	"return {string.format('%.0f', 1e15 + 0.3), string.format('%s %s %.0f', 'a', '2', 3), tostring(2^53), tostring(0.1), '1' + 1, '2' * '3'}",
	"return {unpack({1, 2, 3}, 2, 3)}",
	"local t = {} for i = 1, 7000 do t[i] = i end return select('#', unpack(t))",
}

// draw returns a command of the table, with one of a few keys.
func draw(t *rapid.T, key func(*rapid.T, string) string) []string {
	k := func() string { return key(t, "key") }
	switch name := rapid.SampledFrom([]string{
		"GET", "SET", "SETPX", "EXISTS", "DEL", "RENAME", "TYPE", "PERSIST", "PEXPIREAT", "PTTL", "LPUSH",
		"HGET", "HSET", "HSET", "HDEL", "HLEN", "HGETALL", "HKEYS", "HSCAN",
		"ZADD", "ZADD", "ZADD", "ZREM", "ZCARD", "ZCOUNT", "ZCOUNT", "ZSCORE", "ZMSCORE", "ZRANK", "ZREVRANK", "ZRANGE", "ZREVRANGE", "WITHSCORES", "ZSCAN",
		"EVAL", "EVAL", "NOSUCH", "FEW",
	}).Draw(t, "command"); name {
	case "GET", "TYPE", "PERSIST", "PTTL", "HLEN", "HGETALL", "HKEYS", "ZCARD":
		return []string{name, k()}
	case "SET":
		return append([]string{name, k(), word(t, "value")}, rapid.SampledFrom([][]string{nil, {"NX"}, {"nx"}, {"XYZ"}, {"PX"}}).Draw(t, "option")...)
	case "SETPX":
		return []string{"SET", k(), word(t, "value"), "PX", rapid.SampledFrom([]string{"100000", "0", "-1", "x", "1.5"}).Draw(t, "ms"), "NX"}
	case "PEXPIREAT":
		return []string{name, k(), rapid.SampledFrom([]string{"1", "99999999999999", "0", "x", "1e3", "-5"}).Draw(t, "ms")}
	case "EXISTS", "DEL":
		return append([]string{name}, several(t, key)...)
	case "RENAME":
		return []string{name, k(), k()}
	case "LPUSH":
		return append([]string{name, k()}, several(t, word)...)
	case "ZCOUNT":
		without := rapid.SampledFrom([]string{"", "", "("})
		return []string{name, k(), without.Draw(t, "low") + number(t, "low"), without.Draw(t, "high") + number(t, "high")}
	case "HGET", "ZSCORE", "ZRANK", "ZREVRANK":
		return []string{name, k(), word(t, "member")}
	case "HSET":
		return append([]string{name, k()}, several(t, word, word)...)
	case "HDEL", "ZREM", "ZMSCORE":
		return append([]string{name, k()}, several(t, word)...)
	case "HSCAN", "ZSCAN":
		return []string{name, k(), "0", "COUNT", "100"}
	case "ZADD":
		return append([]string{name, k()}, several(t, number, word)...)
	case "ZRANGE", "ZREVRANGE":
		return []string{name, k(), index(t, "first"), index(t, "last")}
	case "WITHSCORES":
		return []string{"ZREVRANGE", k(), index(t, "first"), index(t, "last"), "WithScores"}
	case "EVAL":
		return []string{name, rapid.SampledFrom(snippets).Draw(t, "script"), "1", k(), word(t, "first argument"), word(t, "second argument")}
	case "FEW":
		return []string{rapid.SampledFrom([]string{"GET", "HSET", "ZADD", "EVAL", "PEXPIREAT"}).Draw(t, "few"), k()}
	default:
		return []string{name, k()}
	}
}

func TestTheSimulatedServerAnswersAsARealOneDoes(t *testing.T) {
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", proto), func(t *testing.T) {
			both, prefix, n := newTwins(t, proto), testenv.Prefix(t), 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				own := fmt.Sprint(prefix, n, ":")
				key := func(t *rapid.T, name string) string {
					return own + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, name)
				}
				for range rapid.IntRange(1, 25).Draw(t, "commands") {
					args := draw(t, key)
					require.Equal(t, answered(both.real, args), answered(both.simulated, args), "%q", args)
				}
				both.hold(t, own)
			})
		})
	}
}

// answered returns a reply as comparable text: for an error its code, and for a time to live whether there is
// one.
func answered(client *redis.Client, args []string) string {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	reply, err := client.Do(context.Background(), list...).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // as the client gives it
		code, _, _ := strings.Cut(err.Error(), " ")
		return "error " + code
	}
	if ms, is := reply.(int64); is && args[0] == "PTTL" {
		return fmt.Sprint("lives ", min(ms, 1))
	}
	scored := args[0] == "ZSCORE" || args[0] == "ZMSCORE" || args[0] == "ZREVRANGE" || args[0] == "ZSCAN" ||
		args[0] == "EVAL" && (strings.Contains(args[1], "SCORE") || strings.Contains(args[1], "WITHSCORES"))
	return shown(reply, scored)
}

// shown returns a reply as text. Versions differ in how they format a score in a text: with 17 digits or with the
// fewest that are exact.
func shown(reply any, scored bool) string {
	switch r := reply.(type) {
	case string:
		if f, err := strconv.ParseFloat(r, 64); err == nil && scored {
			return fmt.Sprintf("score %x", math.Float64bits(f))
		}
		return strconv.Quote(r)
	case float64:
		return fmt.Sprintf("score %x", math.Float64bits(r))
	case []any:
		var all []string
		for _, e := range r {
			all = append(all, shown(e, scored))
		}
		return fmt.Sprint(all)
	case map[any]any:
		all := map[string]string{}
		for name, e := range r {
			all[shown(name, false)] = shown(e, scored)
		}
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%T %v", reply, reply)
}

// hold requires that both have the same content under a prefix, with the same expiries up to half a minute, since
// the two received the commands that set these one after the other.
func (both twins) hold(t require.TestingT, prefix string) {
	want, until := contents(t, both.real, prefix)
	got, ends := contents(t, both.simulated, prefix)
	require.Equal(t, want, got)
	for key, at := range until {
		require.WithinDuration(t, at, ends[key], 30*time.Second, key)
	}
}

// contents returns everything under a prefix as text, and when it expires.
func contents(t require.TestingT, client *redis.Client, prefix string) (all map[string]string, until map[string]time.Time) {
	ctx := context.Background()
	all, until = map[string]string{}, map[string]time.Time{}
	keys, err := client.Keys(ctx, prefix+"*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		kind, err := client.Type(ctx, key).Result()
		require.NoError(t, err)
		text := kind
		switch kind {
		case "string":
			text += " " + strconv.Quote(client.Get(ctx, key).Val())
		case "hash":
			fields := client.HGetAll(ctx, key).Val()
			for _, f := range slices.Sorted(maps.Keys(fields)) {
				text += " " + strconv.Quote(f) + "=" + strconv.Quote(fields[f])
			}
		case "zset":
			rows, err := client.ZRangeWithScores(ctx, key, 0, -1).Result()
			require.NoError(t, err)
			for _, z := range rows {
				text += fmt.Sprintf(" %q=%x", z.Member, math.Float64bits(z.Score))
			}
		}
		if left := client.PTTL(ctx, key).Val(); left > 0 {
			text += " expires"
			until[key] = time.Now().Add(left)
		}
		all[strings.TrimPrefix(key, prefix)] = text
	}
	return all, until
}

// windowsAround returns the windows that pieces are drawn from: open, over, and past their retention.
func windowsAround(now int64) []ledger.Window {
	var all []ledger.Window
	for _, board := range []string{"global", "eu"} {
		for name, w := range map[string]struct{ start, end time.Duration }{
			"open": {-time.Hour, 24 * time.Hour}, "closed": {-48 * time.Hour, -time.Hour},
			"nearly over": {-2300 * time.Hour, -2100 * time.Hour}, "over": {-2500 * time.Hour, -2200 * time.Hour},
		} {
			all = append(all, ledger.Window{
				Board: board, Period: "weekly", Name: name,
				Start: now + w.start.Milliseconds(), End: now + w.end.Milliseconds(),
			})
		}
	}
	slices.SortFunc(all, func(a, b ledger.Window) int { return strings.Compare(a.Listing(), b.Listing()) })
	return all
}

func TestThePiecesOfAStoreComeToTheSameBytes(t *testing.T) {
	both, prefix, n := newTwins(t, 3), testenv.Prefix(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		own := fmt.Sprint(prefix, n)
		layout, err := codec.New(rapid.SampledFrom([]codec.Kind{codec.Readable, codec.Wide}).Draw(t, "layout"),
			400*time.Hour, rapid.SampledFrom([]int64{1000, 99_999_999, 1<<52 - 1}).Draw(t, "most"))
		require.NoError(t, err)
		stores := map[*redis.Client]*ranking.Store{}
		for _, client := range []*redis.Client{both.simulated, both.real} {
			stores[client] = ranking.New(ranking.Config{
				Client: client, Prefix: own, Cluster: "c1", Timeout: 20 * time.Second,
				Periods: map[periods.Period]ranking.Period{"weekly": {Layout: layout, Retention: 2150 * time.Hour}},
			})
		}
		// each does the same on both, and compares the results and the content.
		each := func(do func(*redis.Client, *ranking.Store) any) {
			require.Equal(t, do(both.real, stores[both.real]), do(both.simulated, stores[both.simulated]))
			both.hold(t, own)
		}
		begin := func(_ *redis.Client, s *ranking.Store) any {
			begun, err := s.Begin(context.Background(), []ledger.StartPosition{
				{Partition: ledger.Partition{Topic: "events"}, At: ledger.At(0), Origin: &ledger.Origin{Offset: 7}}, {Partition: ledger.Partition{Topic: "events", Number: 1}, At: ledger.At(5)},
			})
			return fmt.Sprint(begun, err)
		}
		each(begin)
		windows, at := windowsAround(time.Now().UnixMilli()), ledger.At(0)
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			spoil := rapid.SampledFrom([][]string{
				nil, nil, nil, nil, nil, nil, {"SET", ":{0}:hold", "token"}, {"DEL", ":{0}:hold"}, {"DEL", ":{0}:hold"},
				{"DEL", ":{0}:eu:weekly:open"}, {"HDEL", ":{0}:windows", "eu:weekly:open"}, {"ZADD", ":{0}:global:weekly:closed", "0.3", "u1"},
				{"HSET", ":{0}:windows", "eu:weekly:closed", "nonsense"}, {"HSET", ":{0}:ledger", "events/0", "torn:0"},
				{"DEL", ":{0}:ledger"}, {"DEL", ":{0}:schema"}, {"SET", ":{0}:ledger", "x"},
			}).Draw(t, "spoil")
			if spoil != nil {
				args := slices.Clone(spoil)
				args[1] = own + args[1]
				each(func(client *redis.Client, _ *ranking.Store) any { return answered(client, args) })
			}
			p := drawPiece(t, windows, at)
			each(func(_ *redis.Client, s *ranking.Store) any {
				a, _, err := s.Apply(context.Background(), &p)
				if err == nil && a.Outcome == ledger.Applied {
					at = p.Next
				}
				return fmt.Sprint(a, ranking.Classify(err), err != nil)
			})
			each(begin)
			each(func(_ *redis.Client, s *ranking.Store) any {
				st, err := s.State(context.Background())
				st.Now, st.Asked = time.Time{}, time.Time{}
				return fmt.Sprint(st, err != nil)
			})
			each(func(_ *redis.Client, s *ranking.Store) any {
				n, err := s.Retire(context.Background())
				return fmt.Sprint(n, err != nil)
			})
		}
	})
}

// drawPiece draws a piece over some of the windows, which mostly starts at the ledger's position.
func drawPiece(t *rapid.T, windows []ledger.Window, at ledger.Position) ledger.Piece {
	p := ledger.Piece{Partition: ledger.Partition{Topic: "events"}, Expected: at}
	if rapid.IntRange(0, 5).Draw(t, "stale") == 0 {
		p.Expected = ledger.At(rapid.Int64Range(0, 9).Draw(t, "expected"))
	}
	p.Next = ledger.At(at.To + rapid.Int64Range(1, 9).Draw(t, "on"))
	if rapid.Bool().Draw(t, "sweeps") {
		p.Next = ledger.Position{From: at.From, To: at.To + 5, Hash: at.Hash + rapid.Uint64Range(1, 9).Draw(t, "hash")}
	}
	p.Windows = rapid.SliceOfNDistinct(rapid.SampledFrom(windows), 0, len(windows), ledger.Window.Listing).Draw(t, "windows")
	for n, w := range p.Windows {
		g := ledger.Group{Windows: []int{n}}
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"u1", "u2", "u3", "\x00\xff", "10"}), 0, 5, rapid.ID).Draw(t, "ids") {
			g.Members = append(g.Members, ledger.Member{
				ID:     []byte(id),
				Points: rapid.OneOf(rapid.Int64Range(-40, 60), rapid.Int64Range(-1001, 1001), rapid.Int64()).Draw(t, "points"),
				Time:   rapid.OneOf(rapid.Just(int64(ledger.NoTime)), rapid.Int64Range(w.Start-5, w.End-1)).Draw(t, "time"),
			})
		}
		p.Groups = append(p.Groups, g)
	}
	return p
}
