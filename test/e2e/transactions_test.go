package e2e

// Transactional producers: committed, aborted and open transactions side by side.

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// producer is a transactional producer with the records that it has published in its open transaction.
type producer struct {
	client *kgo.Client
	place  *harness.Place
	open   []*kgo.Record
}

func newProducer(t *testing.T, place *harness.Place, n int) *producer {
	t.Helper()
	client := place.Kafka.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(fmt.Sprintf("%s-%d", place.Prefix, n)), kgo.TransactionTimeout(5*time.Minute))
	return &producer{client: client, place: place}
}

func (p *producer) begin(t *testing.T) {
	t.Helper()
	if err := p.client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
}

func (p *producer) publish(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	p.place.ProduceBy(t, p.client, records...)
	p.open = append(p.open, records...)
}

// end ends the transaction; committed records must count.
func (p *producer) end(t *testing.T, commit bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		t.Fatal(err)
	}
	if commit {
		p.place.Expect(t, p.open...)
	}
	p.open = nil
}

// some returns events of a user, each with different points, and a bad one.
func some(user string, partition, n int) []*kgo.Record {
	var all []*kgo.Record
	for i := range n {
		all = append(all, harness.Record(partition, fmt.Sprintf(`{"user_id":%q,"points":%d}`, user, i+1)))
	}
	return append(all, harness.Record(partition, fmt.Sprintf(`{"user_id":%q,"points":"bad"}`, user)))
}

func TestAbortedEventsNeverCountAndAnOpenTransactionHoldsBackOnlyWhatFollowsIt(t *testing.T) {
	t.Parallel()
	place := harness.New(t, harness.Options{Partitions: 3})
	committed, aborted, open := newProducer(t, place, 1), newProducer(t, place, 2), newProducer(t, place, 3)
	for _, p := range []*producer{committed, aborted, open} {
		p.begin(t)
	}
	// Partition 0 has all three kinds, interleaved with plain events; partition 1 has only transactions that
	// end; partition 2 ends with an abort marker.
	for range 3 {
		committed.publish(t, some("committed", 0, 3)...)
		place.Publish(t, some("plain", 0, 2)...)
		aborted.publish(t, some("aborted", 0, 3)...)
		committed.publish(t, some("committed", 1, 2)...)
		aborted.publish(t, some("aborted", 1, 2)...)
		aborted.publish(t, some("aborted", 2, 2)...)
	}
	open.publish(t, some("open", 0, 4)...)
	first := open.open[0].Offset
	committed.end(t, true)
	aborted.end(t, false)
	behind := some("behind the open one", 0, 5)
	place.Produce(t, behind...)
	place.Publish(t, some("plain", 1, 2)...)
	place.AwaitSettled(t, map[int]int64{0: first})

	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	if at := place.Ledger(t)[0]; at != strconv.FormatInt(first, 10) {
		t.Errorf("partition 0 stands at %s, and its open transaction begins at %d", at, first)
	}
	place.Check(t) // the events before the open transaction count, and none after it

	open.end(t, true)
	place.Expect(t, behind...)
	place.AwaitSettled(t, nil)
	place.AwaitCaughtUp(t, within)
	place.Check(t)

	// One more aborted transaction ends partition 0 with a marker, while the consumer waits there.
	aborted.begin(t)
	aborted.publish(t, some("aborted", 0, 3)...)
	aborted.end(t, false)
	place.AwaitSettled(t, nil)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
}
