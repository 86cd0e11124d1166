package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/standings/standings/internal/ingest/fetch"
)

// A produce quota of Kafka's: a broker takes what is written, says how long it is to be
// left alone, and reads nothing from that connection meanwhile. What is written to it
// all the same gets no answer in time. In order of events, where a response has more bad
// records than one set holds:
//
//	reader                                  worker            broker
//	writes a set                                              takes it: throttled for 13 s
//	notes up to where there are letters
//	has another set to write, ends the flow
//	                                        waits 13 s
//	                                        flow begins at the ledger
//	reads again, skips those letters,
//	writes the next set                                       takes it: throttled for 13 s
//
// So every flow gets on by a set, and none is written twice for that.

// letterQuota is how long a partition's dead letters are to wait. Safe for concurrent use.
type letterQuota struct {
	mu     sync.Mutex
	until  time.Time
	waited bool // a flow ended for it: the next one doesn't begin before
}

func (q *letterQuota) leaveAlone(d time.Duration) {
	if d <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = time.Now().Add(min(d, fetch.MaxThrottle))
}

func (q *letterQuota) left() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Until(q.until)
}

// end notes that a flow ends for it; begin reports that, once.
func (q *letterQuota) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waited = true
}

func (q *letterQuota) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waited := q.waited
	q.waited = false
	return waited
}

// heed waits until a broker that asked to be left alone wants letters again. With all that
// is held that is no longer than the patience for it; else it ends the flow. Where others
// want what is held, a flow that has got on by a set of letters, and has waited for a
// minute in all, has no more patience than any: the next one goes on from there.
func (d *deadLetters) heed(ctx context.Context) error {
	left := d.quota.left()
	if left <= 0 {
		return nil
	}
	err := &Waiting{WaitsDeadLetters,
		fmt.Errorf("a quota of Kafka's holds back the dead letters of %s/%d for another %v", d.topic, d.partition, left.Round(time.Millisecond)),
		"raise the quota (producer_byte_rate) of this user or of client id standings if that is too slow; it goes on by itself"}
	patience := d.patience
	if d.gotOn && d.waited >= fetch.MaxThrottle && d.wanted != nil && d.wanted() {
		patience = min(patience, tries)
	}
	if left > patience {
		d.quota.end()
		return err
	}
	if left > tries {
		d.blocked(err)
	}
	d.waited += left
	return sleep(ctx, left)
}
