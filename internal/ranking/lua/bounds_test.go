package lua_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
)

// where returns the bounds of scores as a sorted set stores them, so that it also tests how a Lua number is
// passed to a command.
//
// KEYS  1 a sorted set
// ARGV  1 bits of ticks   2… scores
//
// Returns the scores of low and high for each score.
var where = redis.NewScript(boundsOf(source("read.lua")) + `
local all = {}
for i = 2, #ARGV do
  local low, high = bounds(tonumber(ARGV[1]), ARGV[i])
  redis.call('ZADD', KEYS[1], low, 'low', high, 'high')
  all[#all + 1] = redis.call('ZSCORE', KEYS[1], 'low')
  all[#all + 1] = redis.call('ZSCORE', KEYS[1], 'high')
end
return all
`)

// boundsOf returns the source of the script's function bounds.
func boundsOf(script string) string {
	_, rest, _ := strings.Cut(script, "local function bounds")
	body, _, _ := strings.Cut(rest, "\nend\n")
	return "local function bounds" + body + "\nend\n"
}

// checkBounds compares the script's bounds with those of package codec, for scores of one tuple.
func checkBounds(t require.TestingT, client *redis.Client, l codec.TupleLayout, tuple codec.Tuple, ticks ...int64) {
	args := []any{0}
	if l.Packing.Kind == codec.Wide {
		args[0] = l.K
	}
	for _, n := range ticks {
		score, err := l.Encode(tuple, n)
		require.NoError(t, err)
		args = append(args, strconv.FormatFloat(score, 'g', 17, 64))
	}
	low, high, err := l.Bounds(tuple)
	require.NoError(t, err)
	found, err := where.Run(background, client, []string{"bounds"}, args...).StringSlice()
	require.NoError(t, err)
	require.Len(t, found, 2*len(ticks))
	for i, want := range map[int]float64{0: low, 1: high} {
		for ; i < len(found); i += 2 {
			got, err := strconv.ParseFloat(found[i], 64)
			require.NoError(t, err)
			require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v: %v is in %v, and not in %v", l, tuple, got, want)
		}
	}
}

func TestTheScriptsBoundsAreThoseOfTheCodec(t *testing.T) {
	client := server(t)
	rapid.Check(t, func(t *rapid.T) {
		r, l := ruleAndLayout(t)
		var tuple codec.Tuple
		for i, f := range r.Fields.List() {
			low := int64(0)
			if f.Signed {
				low = -f.Max
			}
			tuple[i] = near(low, f.Max).Draw(t, "value")
		}
		checkBounds(t, client, l, tuple, 0, 1<<l.K-1, near(0, 1<<l.K-1).Draw(t, "ticks"))
	})
	// Next to a power of two, where a wide score's exponent changes, and at the largest double.
	fields, err := codec.NewFields(codec.Field{Name: "n", Max: 1023<<11 - 1})
	require.NoError(t, err)
	l, err := codec.NewTupleLayout(codec.Wide, (1<<32-1)*time.Second, fields)
	require.NoError(t, err)
	for _, n := range []int64{0, 1<<10 - 1, 1 << 10, 1023<<11 - 1} {
		checkBounds(t, client, l, codec.Tuple{n}, 0, 1<<l.K-1)
	}
	// The result doesn't depend on the text: 1e+22 has no point.
	for _, score := range []float64{1 << 64, 1e22, 1e300, 1e-300} {
		tuple, ticks, err := l.Decode(score)
		require.NoError(t, err)
		checkBounds(t, client, l, tuple, ticks)
	}
	_, high, err := l.Bounds(codec.Tuple{1023<<11 - 1})
	require.NoError(t, err)
	require.True(t, math.IsInf(high, 1))
}
