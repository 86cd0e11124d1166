package start

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
)

// shardAt returns a shard that started two partitions of a topic at offsets 10 and 20, and is now at these
// positions.
func shardAt(zero, one string) ledger.State {
	return ledger.State{
		Schema:  "s",
		Ledger:  map[string]string{"points/0": zero, "points/1": one, "others/0": "7"},
		Origins: map[string]string{"points/0": "10 5000", "points/1": "20 0", "others/0": "0 0"},
	}
}

// without returns a shard that has only another topic.
func without() ledger.State {
	return ledger.State{Schema: "s", Ledger: map[string]string{"others/0": "7"}, Origins: map[string]string{"others/0": "0 0"}}
}

func empty() ledger.State { return ledger.State{} }

func TestTheStartTableOfSeveralShards(t *testing.T) {
	unread, read := shardAt("10", "20"), shardAt("10", "21")
	goOn := func(at int64) Decision { return Decision{GoOn, ledger.At(at)} }
	for _, c := range []struct {
		name      string
		shards    []ledger.State
		committed bool
		want      []Decision
		halt      string
		says      string
	}{
		{"nobody has the topic", []ledger.State{empty(), empty()}, false, []Decision{{Step: Begin}, {Step: Begin}}, "", ""},
		{"all were lost", []ledger.State{empty(), empty()}, true, []Decision{{Step: Recover}, {Step: Recover}}, "", ""},
		{"all have it", []ledger.State{unread, read}, true, []Decision{goOn(10), goOn(10)}, "", ""},

		{"the first has begun", []ledger.State{unread, empty(), without()}, false, []Decision{goOn(10), {Step: Copy}, {Step: Copy}}, "", ""},
		{"the first was lost as the second had begun", []ledger.State{empty(), unread}, false, []Decision{{Step: Copy}, goOn(10)}, "", ""},
		{"offsets are committed, so all had begun", []ledger.State{unread, empty()}, true, []Decision{goOn(10), {Step: Recover}}, "", ""},
		{"another partition was read, and Kafka has forgotten what was committed", []ledger.State{read, empty()}, false, []Decision{goOn(10), {Step: Recover}}, "", ""},
		{"one of the others was read from", []ledger.State{unread, read, empty()}, false, []Decision{goOn(10), goOn(10), {Step: Recover}}, "", ""},
		{"the others are in a sweep", []ledger.State{shardAt("10..90@00000000000000ff", "20"), empty()}, false,
			[]Decision{{GoOn, ledger.Position{From: 10, To: 90, Hash: 0xff}}, {Step: Recover}}, "", ""},
		{"the others are torn", []ledger.State{empty(), shardAt("10", "torn:20")}, false, []Decision{{Step: Recover}, goOn(10)}, "", ""},
		{"an origin is gone", []ledger.State{{Schema: "s", Ledger: map[string]string{"points/0": "10"}}, empty()}, false, []Decision{goOn(10), {Step: Recover}}, "", ""},

		{"a partition was added in one of them", []ledger.State{unread, {Schema: "s", Ledger: map[string]string{"points/1": "20"}}}, true, []Decision{goOn(10), {Step: Join}}, "", ""},
		{"one is torn", []ledger.State{unread, shardAt("torn:10", "20"), unread}, true, nil, health.HaltTorn, "shard 1 of 3: "},
		{"one has boards and no ledger", []ledger.State{unread, {Windows: 5}}, true, nil, health.HaltOrphaned, "shard 1 of 2: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Facts{Partition: ledger.Partition{Topic: "points"}, Committed: c.committed, Log: kafkaconn.Log{End: 500}}
			got, err := DecideAll(c.shards, f, GapHalts)
			if c.halt != "" {
				var halt *health.Halt
				require.ErrorAs(t, err, &halt)
				require.Equal(t, c.halt, halt.Reason)
				require.Contains(t, halt.What, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestAShardBeginsWhereTheOthersDid(t *testing.T) {
	zero, one := ledger.Partition{Topic: "points"}, ledger.Partition{Topic: "points", Number: 1}
	set, err := CopyOf([]ledger.State{without(), shardAt("10", "20")}, "points")
	require.NoError(t, err)
	require.ElementsMatch(t, []ledger.StartPosition{
		{Partition: zero, At: ledger.At(10), Origin: &ledger.Origin{Offset: 10, Time: 5000}},
		{Partition: one, At: ledger.At(20), Origin: &ledger.Origin{Offset: 20}},
	}, set)
	_, err = CopyOf([]ledger.State{shardAt("torn:10", "20")}, "points")
	require.ErrorIs(t, err, ledger.ErrTorn)
}

func TestALostShardBeginsNoEarlierThanTheOthersDid(t *testing.T) {
	origin := func(o int64) *ledger.Origin { return &ledger.Origin{Offset: o} }
	zero, one := ledger.Partition{Topic: "points"}, ledger.Partition{Topic: "points", Number: 1}
	later := shardAt("400", "400")
	later.Origins["points/0"] = "300 9000" // after a gap
	stale := ledger.State{Ledger: map[string]string{"others/0": "7"}, Origins: map[string]string{"points/0": "499 0"}}
	for _, c := range []struct {
		name   string
		others []ledger.State
		want   []ledger.StartPosition
	}{
		{"before them", []ledger.State{shardAt("400", "400")}, []ledger.StartPosition{
			{Partition: zero, At: ledger.At(10), Origin: &ledger.Origin{Offset: 10, Time: 5000}, Refill: 500}, {Partition: one, At: ledger.At(30), Origin: origin(30), Refill: 500}}},
		{"one has lost something since", []ledger.State{later, shardAt("400", "400")}, []ledger.StartPosition{
			{Partition: zero, At: ledger.At(10), Origin: &ledger.Origin{Offset: 10, Time: 5000}, Refill: 500}, {Partition: one, At: ledger.At(30), Origin: origin(30), Refill: 500}}},
		{"nobody has the topic", []ledger.State{without(), stale}, []ledger.StartPosition{
			{Partition: zero, At: ledger.At(0), Origin: origin(0), Refill: 500}, {Partition: one, At: ledger.At(30), Origin: origin(30), Refill: 500}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := []ledger.StartPosition{
				{Partition: zero, At: ledger.At(0), Origin: origin(0), Refill: 500}, {Partition: one, At: ledger.At(30), Origin: origin(30), Refill: 500},
			}
			lost := ledger.State{Origins: map[string]string{"points/0": "499 0", "points/1": "499 0"}} // its own origins are ignored
			require.NoError(t, NotBefore(append([]ledger.State{lost}, c.others...), 0, set))
			require.Equal(t, c.want, set)
		})
	}
}
