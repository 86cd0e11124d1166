package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPartitionIsWhereTheShardIsThatIsFurthestBehind(t *testing.T) {
	const a, b = "100..480@4000000000000000", "100..480@c000000000000000"
	for name, c := range map[string]struct {
		shards []string
		want   string
		last   int
	}{
		"one":                               {[]string{"torn:5"}, "torn:5", 0},
		"level":                             {[]string{"480", "480", "480"}, "480", 0},
		"as numbers":                        {[]string{"1000", "999"}, "999", 1},
		"one hasn't begun the sweep":        {[]string{a, "100", b}, "100", 1},
		"one has finished the sweep":        {[]string{"480", b}, b, 1},
		"in a sweep, one further":           {[]string{b, a}, a, 1},
		"a sweep from further on":           {[]string{"101", a}, a, 1},
		"torn, though it is further":        {[]string{"100", "torn:480", "200"}, "torn:480", 1},
		"torn, the one furthest behind":     {[]string{"torn:300..400@8000000000000000", "torn:200"}, "torn:200", 1},
		"one isn't a position":              {[]string{"100", "soon", "torn:5"}, "soon", 1},
		"one has none: neither have boards": {[]string{"100", "", "torn:5"}, "", 1},
		"the first has none":                {[]string{"", "100"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var states []State
			for _, text := range c.shards {
				st := State{Ledger: map[string]string{}}
				if text != "" {
					st.Ledger["points/0"] = text
				}
				states = append(states, st)
			}
			want := map[string]string{}
			if c.want != "" {
				want["points/0"] = c.want
			}
			require.Equal(t, want, Together(states).Ledger)
			require.Equal(t, c.last, FurthestBehind(states, "points/0"))
		})
	}
}

func TestWhatIsRefilledInOneShardIsRefilled(t *testing.T) {
	shard := func(at string, to int64) State {
		st := State{Ledger: map[string]string{"points/0": at}, Refills: map[string]int64{}}
		if to > 0 {
			st.Refills["points/0"] = to
		}
		return st
	}
	for name, c := range map[string]struct {
		shards []State
		want   int64
	}{
		"none":                                 {[]State{shard("7", 0), shard("9", 0)}, 0},
		"one":                                  {[]State{shard("700", 0), shard("9", 500)}, 500},
		"the furthest":                         {[]State{shard("5", 600), shard("9", 500)}, 600},
		"one is through, another not":          {[]State{shard("700", 650), shard("9", 500)}, 500},
		"all are through":                      {[]State{shard("700", 650), shard("900", 500)}, 650},
		"through, and another shard went back": {[]State{shard("700", 650), shard("400", 0)}, 0},
		"torn":                                 {[]State{shard("700", 0), shard("torn:9", 500)}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]int64{}
			if c.want > 0 {
				want["points/0"] = c.want
			}
			require.Equal(t, want, Together(c.shards).Refills)
		})
	}
}

func TestTheRestOfAllShards(t *testing.T) {
	now := time.UnixMilli(1000)
	shards := []State{
		{Schema: "s", Now: now, Asked: now, Windows: 2, Workers: map[string]string{"points/0": "a"},
			Origins: map[string]string{"points/0": "5 100", "points/1": "7 7", "points/2": "1 x"}, Since: map[string]int64{"daily": 8}},
		{Schema: "", Now: now.Add(1), Windows: 3, Held: true, Workers: map[string]string{"points/0": "b", "points/1": "c"},
			Origins: map[string]string{"points/0": "4 200", "points/1": "7 7", "points/2": "1 9"}, Since: map[string]int64{"daily": 9, "mine": 3}},
		{Schema: "other", Now: now.Add(2), Windows: 4, Origins: map[string]string{"points/0": "9 200", "points/3": "0 0"}},
	}
	all := Together(shards)
	require.Equal(t, State{
		Schema: "s", Now: now, Asked: now, Windows: 9, Held: true, Unlike: []int{1, 2},
		Ledger: map[string]string{}, Refills: map[string]int64{}, Workers: map[string]string{"points/0": "a"},
		Origins: map[string]string{"points/0": "9 200", "points/1": "7 7", "points/2": "1 x", "points/3": "0 0"},
		Since:   map[string]int64{"daily": 9, "mine": 3},
	}, all)
	require.Equal(t, shards[0], Together(shards[:1]))
	require.Equal(t, "other", Together([]State{shards[1], shards[2]}).Schema, "the first that has one")
	require.Equal(t, []int{0}, Together([]State{shards[1], shards[2]}).Unlike)
}
