package e2e

// Members' names: the name of the latest event by its time, whatever the order, whichever replica counts it
// and whatever happens to Redis.

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// naming returns events that carry names, out of order and many with equal times. Some have no name, and a few
// have an invalid one.
func naming(r *rand.Rand, now time.Time, n int) (all []*kgo.Record) {
	names := []any{"Ada", "ada", "Zoë", "\u202eevil\x1b[31m", "5 5 \x00", nil, strings.Repeat("é", 64)}
	for range n {
		event := map[string]any{
			"user_id": fmt.Sprint("u", r.IntN(40)), "points": r.IntN(9) - 3, "board": []string{"global", "eu"}[:1+r.IntN(2)],
			"occurred_at": now.Add(-time.Duration(r.IntN(500)) * 10 * time.Second).UnixMilli(),
		}
		switch r.IntN(40) {
		case 0, 1, 2:
		case 3:
			event["player"] = map[string]any{"name": []any{"", 7, strings.Repeat("x", 65)}[r.IntN(3)]}
		default:
			event["player"] = map[string]any{"name": names[r.IntN(len(names))]}
		}
		value, err := json.Marshal(event)
		if err != nil {
			panic(err) // the event was built above
		}
		all = append(all, harness.Record(r.IntN(3), string(value)))
	}
	return all
}

func TestMembersAreCalledByTheirLatestEvents(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 3, Settings: map[string]string{"event.fields.name": "player.name"}})
	r, now := rand.New(rand.NewPCG(11, 12)), time.Now()
	for range 4 { // each in its own batches
		consumer := place.Start(t)
		place.Publish(t, naming(r, now, 400)...)
		place.AwaitCaughtUp(t, within)
		place.Publish(t, naming(r, now, 400)...)
		place.AwaitCaughtUp(t, within)
		consumer.Terminate(t)
		place.Check(t)
	}
	place.CheckCounts(t)
	consumer := place.Start(t)
	want := place.Names(t)
	if len(want) != 40 {
		t.Errorf("%d members are called something: %v", len(want), want)
	}

	// Every listed member has a name, and none of its characters has an effect on a terminal.
	evil := harness.Record(0, fmt.Sprintf(`{"user_id":"first","points":9999,"player":{"name":"\u202e\u001b[31m B\\"},"occurred_at":%d}`, now.UnixMilli()))
	place.Publish(t, evil)
	place.AwaitCaughtUp(t, within)
	var board struct {
		Standings []struct {
			Member string
			Name   *string
		}
	}
	if err := json.Unmarshal(place.Command(t, "top", "global", "yearly", "--limit", "50", "--json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, st := range board.Standings {
		if _, text, _ := strings.Cut(place.Names(t)[st.Member], " "); st.Name == nil || *st.Name != text {
			t.Errorf("%s is shown as %v, want %q", st.Member, st.Name, text)
		}
	}
	if len(board.Standings) != 41 {
		t.Errorf("%d standings", len(board.Standings))
	}
	for _, command := range [][]string{{"top", "global", "yearly"}, {"rank", "global", "yearly", "first", "--around", "2"}} {
		said := string(place.Command(t, command...))
		if !strings.Contains(said, `\u202e\x1b[31m B\\ `) || !strings.Contains(said, "MEMBER  NAME") || strings.ContainsAny(said, "\u202e\x1b") {
			t.Errorf("%v:\n%s", command, said)
		}
	}

	// The log restores the names.
	consumer.Terminate(t)
	for shard := range place.Shards() {
		if err := testenv.RedisClient(t).Del(t.Context(), place.KeyIn(shard, "names")).Err(); err != nil {
			t.Fatal(err)
		}
	}
	consumer = place.Start(t)
	consumer.AwaitReady(t, within)
	place.Command(t, "rebuild")
	place.CheckBoards(t)
}
