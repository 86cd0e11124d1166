package rebuild

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/harness"
)

// dated is a record of a time, with an event of that time.
func dated(partition int, at time.Time, member int, points int) *kgo.Record {
	r := harness.Record(partition, fmt.Sprintf(`{"user_id":"m%d","points":%d,"board":%q}`, member, points, []string{"global", "eu"}[member%2]))
	r.Timestamp = time.UnixMilli(at.UnixMilli())
	return r
}

// first is the earliest window that is listed of a board and a period: of the year's, after
// months, one that began before what is left of the log. In a year's first weeks the latest
// didn't.
func first(t *testing.T, place *harness.Place, board, period string) string {
	t.Helper()
	var all []string
	for name := range place.Hash(t, "windows") {
		if strings.HasPrefix(name, board+":"+period+":") {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no %s window of %s is listed", period, board)
	}
	return slices.Min(all)
}

// shown is what a reader is shown of a listed window.
func shown(t *testing.T, place *harness.Place, window string) string {
	t.Helper()
	part := strings.Split(window, ":")
	return string(place.Command(t, "top", part[0], part[1], "--window", part[2]))
}

// months publishes records of the last three months to two partitions, and deletes from
// the log those of the first half. It returns how many of each partition are gone.
func months(t *testing.T, place *harness.Place) int64 {
	t.Helper()
	const half = 900
	var records []*kgo.Record
	for i := range 2 * half {
		at := time.Now().Add(-90*24*time.Hour + time.Duration(i)*90*24*time.Hour/(2*half))
		records = append(records, dated(i%2, at, i%50, i%7+1))
	}
	place.Publish(t, records...)
	place.AwaitCaughtUp(t, within)
	place.AwaitCommitted(t, within) // with the times of what is about to be deleted
	const gone = half / 2
	offsets := kadm.Offsets{}
	for p := range int32(2) {
		offsets.Add(kadm.Offset{Topic: place.Topic, Partition: p, At: gone})
	}
	deleted, err := place.Admin().DeleteRecords(t.Context(), offsets)
	must(t, err)
	must(t, deleted.Error())
	return gone
}

func TestWindowsThatTheLogNoLongerHasAreKeptAndNamed(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{"periods.weekly.retention": "365d"}})
	place.Start(t)
	gone := months(t, place)
	year, week := first(t, place, "global", "yearly"), window(t, place, "global", "weekly")
	ctx, client := t.Context(), place.RedisClient()
	// What is kept is kept as it is, wrong or not; what is replaced is right.
	must(t, client.ZIncrBy(ctx, place.KeyOf("m4", year), 25, "m4").Err())
	must(t, client.ZIncrBy(ctx, place.KeyOf("m4", week), 25, "m4").Err())

	said := startRebuild(t, place).swapped()
	if n := said.actions(); !said.Swapped || n["kept"] == 0 || n["replaced"] == 0 || n["kept"]+n["replaced"] != len(said.Windows) {
		t.Errorf("it says %v", n)
	}
	for _, w := range said.Windows {
		if w.Action == "kept" && !strings.HasPrefix(w.Why, "it starts before ") {
			t.Errorf("%+v doesn't say why", w)
		}
		if strings.HasSuffix(year, ":yearly:"+w.Window) && w.Action != "kept" {
			t.Errorf("%+v: the log begins after its start", w)
		}
	}
	for _, p := range said.Partitions {
		if p.From != gone {
			t.Errorf("%s is read from %d, and the log begins at %d", p.Partition, p.From, gone)
		}
	}
	must(t, client.ZIncrBy(ctx, place.KeyOf("m4", year), -25, "m4").Err())
	finish(t, place)
	if origins := place.Hash(t, "origin"); len(origins) != 2 || !strings.HasSuffix(origins[place.Topic+"/0"], " 0") {
		t.Errorf("windows are shown as incomplete that aren't: %v", origins)
	}
}

func TestALostWindowThatTheLogHasOnlyInPartIsRebuiltIfThatIsAccepted(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Start(t)
	months(t, place)
	year := first(t, place, "eu", "yearly")
	was := scores(t, place)
	must(t, place.RedisClient().Unlink(t.Context(), place.Key(year)).Err())
	lost := startRebuild(t, place)
	lost.refused("Redis has lost "+year, "--accept-incomplete")
	if all := lost.report(); all.Swapped || len(all.Refused) != 1 || all.actions()["kept"] == 0 {
		t.Errorf("it says %+v", all)
	}

	said := startRebuild(t, place, "--accept-incomplete").swapped()
	incomplete := 0
	for _, w := range said.Windows {
		if w.Incomplete {
			incomplete++
		}
	}
	if !said.Swapped || incomplete != 1 {
		t.Errorf("%d windows are incomplete, want 1: %+v", incomplete, said.Windows)
	}
	is := scores(t, place)
	if n := len(is[year]); n == 0 || n > len(was[year]) {
		t.Errorf("%s has %d members, and had %d", year, n, len(was[year]))
	}
	delete(was, year)
	delete(is, year)
	same(t, was, is)
	if out := shown(t, place, year); !strings.Contains(strings.ToLower(out), "incomplete") {
		t.Errorf("it isn't shown as incomplete:\n%s", out)
	}
	place.TerminateAll(t)
}

func TestATornShardWithAWindowThatIsKeptIsSettledOnlyIfThatIsAccepted(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	c := place.Start(t)
	months(t, place)
	field := place.Topic + "/0"
	must(t, place.RedisClient().HSet(t.Context(), place.Key("ledger"), field, ledger.TornMark+place.Ledger(t)[0]).Err())
	c.Log.AwaitHalt(t, within, "torn")
	startRebuild(t, place).refused("a piece of "+field+" was written in part", "--accept-incomplete")
	startRebuild(t, place, "--board", "eu", "--accept-incomplete").refused("can't be settled for some boards only")
	if !startRebuild(t, place, "--accept-incomplete").swapped().Swapped {
		t.Error("it wasn't swapped")
	}
	place.Publish(t, dated(0, time.Now(), 1, 5))
	finish(t, place)
	if out := shown(t, place, first(t, place, "global", "yearly")); !strings.Contains(strings.ToLower(out), "incomplete") {
		t.Errorf("what may hold half a piece isn't shown as incomplete:\n%s", out)
	}
}

func TestSomeBoardsAreRebuiltAndOthersAreLeft(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Start(t)
	place.Publish(t, earned(60, 2000, 300, 2)...)
	place.AwaitCaughtUp(t, within)
	ctx, client := t.Context(), place.RedisClient()
	eu, global := place.KeyOf("m4", window(t, place, "eu", "weekly")), place.KeyOf("m4", window(t, place, "global", "weekly"))
	must(t, client.ZIncrBy(ctx, eu, 25, "m4").Err())
	must(t, client.ZIncrBy(ctx, global, 25, "m4").Err())
	said := startRebuild(t, place, "--board", "eu").swapped()
	for _, w := range said.Windows {
		if (w.Action == "replaced") != (w.Board == "eu") {
			t.Errorf("%+v", w)
		}
	}
	must(t, client.ZIncrBy(ctx, global, -25, "m4").Err())
	finish(t, place)
}

func TestARebuildBeginsWhereItIsTold(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{"start": "latest"}})
	place.Produce(t, earned(61, 500, 100, 2)...) // nobody counts them
	place.Start(t)
	place.AwaitBegun(t, within)
	begun := place.Ledger(t)
	place.Publish(t, earned(62, 500, 100, 2)...)
	place.AwaitCaughtUp(t, within)

	// A group that began at the log's end has incomplete windows: they are kept as they
	// are, and what came before is none of theirs.
	said := startRebuild(t, place).swapped()
	for _, p := range said.Partitions {
		at, err := ledger.ParsePartition(p.Partition)
		must(t, err)
		if fmt.Sprint(p.From) != begun[at.Number] {
			t.Errorf("%s is read from %d, and the boards began at %s", p.Partition, p.From, begun[at.Number])
		}
	}
	if said.Swapped || said.actions()["kept"] != len(said.Windows) {
		t.Errorf("it says %+v", said.actions())
	}
	finish(t, place)

	// From the log's start they are counted.
	if said := startRebuild(t, place, "--from", "earliest").swapped(); !said.Swapped || said.Partitions[0].From != 0 {
		t.Errorf("it says %+v", said)
	}
	for _, r := range place.ReadAll(t, place.Topic) {
		if begins(begun[int(r.Partition)]) > r.Offset {
			place.Expect(t, r)
		}
	}
	place.CheckBoards(t)
}

func begins(position string) (offset int64) {
	_, _ = fmt.Sscan(position, &offset)
	return offset
}

func TestTransactionsAndTheirMarkersAreReadAgainAsTheyWere(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2})
	place.Start(t)
	client := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(place.Prefix))
	for n := range 6 {
		records := earned(uint64(70+n), 200, 50, 2)
		must(t, client.BeginTransaction())
		place.ProduceBy(t, client, records...)
		must(t, client.EndTransaction(context.WithoutCancel(t.Context()), kgo.TransactionEndTry(n%2 == 0)))
		if n%2 == 0 {
			place.Expect(t, records...)
		}
	}
	// The last one was aborted: the ledger ends behind its marker.
	place.AwaitCaughtUp(t, within)
	must(t, place.RedisClient().ZIncrBy(t.Context(), place.KeyOf("m4", window(t, place, "global", "weekly")), 25, "m4").Err())
	if said := startRebuild(t, place, "--diff").swapped(); !said.Swapped || said.differ() != 1 {
		t.Errorf("it says %+v", said)
	}
	finish(t, place)
}
