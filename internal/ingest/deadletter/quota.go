package deadletter

import (
	"sync"
	"time"

	"github.com/standings/standings/internal/kafkaconn/fetch"
)

// A Kafka produce quota: a broker accepts a write, reports for how long it throttles the client, and reads
// nothing from the connection meanwhile. A request sent on that connection gets no answer in time. If a
// response has more bad records than one set holds, these events follow, in this order:
//
//    reader                                  worker            broker
//    writes a set                                              accepts it: throttled for 13 s
//    records the offset it has written up to
//    has another set to write, ends the flow
//                                            waits 13 s
//                                            flow starts at the ledger
//    reads again, skips what is written,
//    writes the next set                                       accepts it: throttled for 13 s
//
// Every flow therefore writes one set more, and no set is written twice because of the quota.

// quota records for how long a partition's dead letters must wait. It is safe for concurrent use.
type quota struct {
	mu     sync.Mutex
	until  time.Time
	waited bool // a flow ended because of the quota: the next one must wait first
}

func (q *quota) leaveAlone(d time.Duration) {
	if d <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = time.Now().Add(min(d, fetch.MaxThrottle))
}

func (q *quota) left() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Until(q.until)
}

// end records that a flow ends because of the quota. begin reports that once.
func (q *quota) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waited = true
}

func (q *quota) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waited := q.waited
	q.waited = false
	return waited
}
