package lua_test

// The arithmetic of layouts.lua equals that of packages codec and rules, to the last bit. The tests send
// golden vectors, which neither of the two computed, and random ones through a server and back.

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/rules"
	"github.com/standings/standings/test/testenv"
)

// put merges digits into a window.
//
// KEYS  1 the window's sorted set
// ARGV  1 the window, with its rule   2 digits by field, by member   3 times   4… members
//
// Returns {put}, {refused, reason, member, …} or {foreign, member}.
var put = redis.NewScript(source("layouts.lua") + `
local w, refused = cjson.decode(ARGV[1]), {'refused'}
w.merge = merger(w.rule)
local old = redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 4))
local out, whose = scores(w, old, cjson.decode(ARGV[2]), cjson.decode(ARGV[3]), 1, #ARGV - 3, 3, function(reason, id)
  refused[#refused + 1] = reason
  refused[#refused + 1] = id
end)
if not out then return {'foreign', whose} end
if #refused > 1 then return refused end
redis.call('ZADD', KEYS[1], unpack(out))
return {'put'}
`)

// source returns the text of a file that scripts include.
func source(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err) // the file is in this directory
	}
	return string(text)
}

// window is a window as an argument of the script.
type window struct {
	First int64           `json:"first"`
	Last  int64           `json:"last"`
	Tick  int64           `json:"tick"`
	K     int             `json:"k"`
	Wide  bool            `json:"wide"`
	Rule  json.RawMessage `json:"rule"`
}

var background = context.Background()

type board struct {
	client *redis.Client
	rule   rules.Rule
	layout codec.TupleLayout
	key    string
	start  int64
	end    int64
	script *redis.Script
}

var boards int

// server returns a Redis client, and removes the test's boards at the end.
func server(t *testing.T) *redis.Client {
	t.Helper()
	client, before := testenv.Redis(t).Client(t), boards
	t.Cleanup(func() {
		for i := before + 1; i <= boards; i++ {
			require.NoError(t, client.Unlink(background, fmt.Sprint("tuples:", i)).Err())
		}
	})
	return client
}

// newBoard returns a board with a window in which each of the layout's ticks has a time.
func newBoard(client *redis.Client, r rules.Rule, l codec.TupleLayout) *board {
	boards++
	end := int64(1_800_000_000_000)
	return &board{client, r, l, fmt.Sprint("tuples:", boards), end - l.Tick<<l.K, end, put}
}

type change struct {
	id    string
	value rules.Value
}

func (b *board) put(t require.TestingT, changes ...change) []any {
	w, err := json.Marshal(window{
		First: b.start, Last: b.end - 1, Tick: b.layout.Tick, K: b.layout.K,
		Wide: b.layout.Packing.Kind == codec.Wide, Rule: json.RawMessage(b.rule.Script(&b.layout.Packing)),
	})
	require.NoError(t, err)
	digits := make([][]int64, b.rule.Fields.Len())
	times, args := []int64{}, []any{w, "", ""}
	for _, c := range changes {
		all, ok := b.rule.Digits(c.value.Packed)
		require.True(t, ok)
		for f := range digits {
			digits[f] = append(digits[f], all[f])
		}
		times = append(times, c.value.Time)
		args = append(args, c.id)
	}
	args[1], err = json.Marshal(digits)
	require.NoError(t, err)
	args[2], err = json.Marshal(times)
	require.NoError(t, err)
	reply, err := b.script.Run(background, b.client, []string{b.key}, args...).Slice()
	require.NoError(t, err)
	return reply
}

func (b *board) scores(t require.TestingT, ids ...string) []float64 {
	scores, err := b.client.ZMScore(background, b.key, ids...).Result()
	require.NoError(t, err)
	return scores
}

// at returns a time with these ticks.
func (b *board) at(ticks int64) int64 { return b.end - 1 - ticks*b.layout.Tick }

func newRule(t require.TestingT, score rules.Score, fields codec.Fields) rules.Rule {
	r, err := rules.New(score, fields)
	require.NoError(t, err)
	return r
}

// event returns the value of an event with this tuple. For a member's first event of a sum, the tuple is
// the change from 0 in every field.
func event(r *rules.Rule, tuple codec.Tuple, at int64) rules.Value {
	v := r.Value(&tuple, at)
	return rules.Value{Packed: v.Packed, Time: at}
}

type golden struct {
	Layouts []struct {
		Kind     codec.Kind
		LengthMS int64 `json:"length_ms"`
		Fields   []codec.Field
		Scores   []struct {
			Tuple []int64
			Ticks int64
			Bits  string
		}
		Refused []struct{ Bits string }
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("../../codec/testdata/tuples.json")
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(text, &g))
	require.NotEmpty(t, g.Layouts)
	return g
}

func floatOf(t *testing.T, bits string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(bits, 16, 64)
	require.NoError(t, err)
	return math.Float64frombits(n)
}

func TestTheScriptWritesTheGoldenScoresAndRefusesTheStrangers(t *testing.T) {
	client := server(t)
	for _, g := range readGolden(t).Layouts {
		fields, err := codec.NewFields(g.Fields...)
		require.NoError(t, err)
		l, err := codec.NewTupleLayout(g.Kind, time.Duration(g.LengthMS)*time.Millisecond, fields)
		require.NoError(t, err)
		for _, score := range rules.Scores() {
			t.Run(fmt.Sprintf("%s-%v-%s", g.Kind, fields, score), func(t *testing.T) {
				b := newBoard(client, newRule(t, score, fields), l)
				var changes []change
				var ids []string
				for i, v := range g.Scores {
					var tuple codec.Tuple
					copy(tuple[:], v.Tuple)
					ids = append(ids, fmt.Sprint("u", i))
					changes = append(changes, change{ids[i], event(&b.rule, tuple, b.at(v.Ticks))})
				}
				require.Equal(t, []any{"put"}, b.put(t, changes...))
				for i, score := range b.scores(t, ids...) {
					require.Equal(t, math.Float64bits(floatOf(t, g.Scores[i].Bits)), math.Float64bits(score), "%v", g.Scores[i])
				}
				for _, v := range g.Refused {
					stranger := floatOf(t, v.Bits)
					if math.IsNaN(stranger) {
						continue // a sorted set can't hold NaN
					}
					require.NoError(t, client.ZAdd(background, b.key, redis.Z{Score: stranger, Member: "u1"}).Err())
					require.Equal(t, []any{"foreign", "u1"}, b.put(t, changes[0], changes[1]), "%v of %v", stranger, l)
				}
			})
		}
	}
}

// A score's text may be an integer of more than 64 bits without a point, or have an exponent but no point.
func TestTheScriptMergesIntoAScoreWhateverItsText(t *testing.T) {
	client := server(t)
	fields, err := codec.NewFields(codec.Field{Name: "n", Max: 1023<<11 - 1})
	require.NoError(t, err)
	l, err := codec.NewTupleLayout(codec.Wide, (1<<32-1)*time.Second, fields)
	require.NoError(t, err)
	for _, score := range []float64{1 << 64, 1e22, 1e300, 1e-300} {
		for _, how := range rules.Scores() {
			b := newBoard(client, newRule(t, how, fields), l)
			tuple, ticks, err := l.Decode(score)
			require.NoError(t, err)
			require.NoError(t, client.ZAdd(background, b.key, redis.Z{Score: score, Member: "u"}).Err())
			change := change{"u", event(&b.rule, codec.Tuple{1}, b.at(0))}
			require.Equal(t, []any{"put"}, b.put(t, change), "%v", score)
			want, ok := b.rule.Put(&rules.Standing{Tuple: tuple, Ticks: ticks}, change.value.Packed, 0)
			require.True(t, ok)
			encoded, err := l.Encode(want.Tuple, want.Ticks)
			require.NoError(t, err)
			require.Equal(t, []float64{encoded}, b.scores(t, "u"), "%s of %v", how, score)
		}
	}
}

// near draws from [lo, hi], often near its ends or zero.
func near(lo, hi int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(lo, hi),
		rapid.Int64Range(lo, min(hi, lo+2)),
		rapid.Int64Range(max(lo, hi-2), hi),
		rapid.Int64Range(max(lo, min(-2, hi)), min(hi, max(2, lo))),
	)
}

func ruleAndLayout(t *rapid.T) (rules.Rule, codec.TupleLayout) {
	kind := rapid.SampledFrom([]codec.Kind{codec.Readable, codec.Wide}).Draw(t, "kind")
	n := rapid.IntRange(1, codec.MaxFields).Draw(t, "fields")
	signed := n == 1 && rapid.Bool().Draw(t, "signed")
	left := 52 // bits; one digit of ten takes 4
	if kind == codec.Readable && n > 1 {
		left -= 4 * n
	}
	list := make([]codec.Field, n)
	for i := range list {
		bits := rapid.IntRange(1, left-(n-1-i)).Draw(t, "bits")
		left -= bits
		list[i] = codec.Field{Name: string(rune('a' + i)), Signed: signed, Max: near(1, 1<<bits-1).Draw(t, "max"), Fewest: rapid.Bool().Draw(t, "fewest")}
	}
	fields, err := codec.NewFields(list...)
	require.NoError(t, err)
	length := near(1, 8796*3600*1000).Draw(t, "length ms")
	l, err := codec.NewTupleLayout(kind, time.Duration(length)*time.Millisecond, fields)
	require.NoError(t, err)
	return newRule(t, rapid.SampledFrom(rules.Scores()).Draw(t, "score"), fields), l
}

func TestTheScriptMergesAsTheRulesDo(t *testing.T) {
	client := server(t)
	rapid.Check(t, func(t *rapid.T) {
		r, l := ruleAndLayout(t)
		b := newBoard(client, r, l)
		standings := map[string]*rules.Standing{}
		for range rapid.IntRange(1, 4).Draw(t, "pieces") {
			var changes []change
			refused, after := []any{"refused"}, map[string]*rules.Standing{}
			for _, id := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "members")] {
				var values codec.Tuple
				for f, field := range r.Fields.List() {
					low := int64(0)
					if r.Score == rules.Sum || field.Signed {
						low = -field.Max
					}
					// Usually a change that fits the range.
					from, to := low, field.Max
					if had := standings[id]; r.Score == rules.Sum && rapid.IntRange(0, 9).Draw(t, "room") > 0 {
						from = 0
						if had != nil {
							from, to = -had.Tuple[f], field.Max-had.Tuple[f]
						}
						from, to = max(low, from), min(to, field.Max)
					}
					values[f] = near(from, to).Draw(t, "value")
				}
				if had := standings[id]; r.Score != rules.Sum && had != nil && rapid.IntRange(0, 3).Draw(t, "alike") == 0 {
					values = had.Tuple // the times decide
				}
				v := r.Value(&values, b.at(near(0, 1<<l.K-1).Draw(t, "ticks")))
				changes = append(changes, change{id, v})
				ticks := l.Ticks(b.start, b.end, v.Time)
				if now, ok := r.Put(standings[id], v.Packed, ticks); ok {
					after[id] = &now
				} else {
					refused = append(refused, "overflow", id)
				}
			}
			reply := b.put(t, changes...)
			if len(refused) > 1 {
				require.Equal(t, refused, reply)
				continue
			}
			require.Equal(t, []any{"put"}, reply)
			for id, s := range after {
				standings[id] = s
				want, err := l.Encode(s.Tuple, s.Ticks)
				require.NoError(t, err)
				got := b.scores(t, id)[0]
				require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%s of %v: %+v, got %v for %v", r.Score, l, *s, got, want)
			}
		}
	})
}

// A sum is refused because of one field, even if the packed sum is in range: with two fields from 0 to 9,
// 0/9 plus 0/9 isn't 1/8.
func TestTheScriptRefusesASumByItsFields(t *testing.T) {
	client := server(t)
	fields, err := codec.NewFields(codec.Field{Name: "a", Max: 9}, codec.Field{Name: "b", Max: 9})
	require.NoError(t, err)
	for _, kind := range []codec.Kind{codec.Readable, codec.Wide} {
		l, err := codec.NewTupleLayout(kind, 180*time.Hour, fields)
		require.NoError(t, err)
		b := newBoard(client, newRule(t, rules.Sum, fields), l)
		nine := event(&b.rule, codec.Tuple{0, 9}, b.at(5))
		require.Equal(t, []any{"put"}, b.put(t, change{"u", nine}))
		require.Equal(t, []any{"refused", "overflow", "u"}, b.put(t, change{"u", nine}))
		require.Equal(t, []any{"put"}, b.put(t, change{"u", event(&b.rule, codec.Tuple{1, -1}, b.at(4))}))
		want, err := l.Encode(codec.Tuple{1, 8}, 4)
		require.NoError(t, err)
		require.Equal(t, []float64{want}, b.scores(t, "u"))
	}
}
