package deadletter

import (
	"sync"
	"time"

	"github.com/standings/standings/internal/kafkaconn/fetch"
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

// quota is how long a partition's dead letters are to wait. Safe for concurrent use.
type quota struct {
	mu     sync.Mutex
	until  time.Time
	waited bool // a flow ended for it: the next one doesn't begin before
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

// end notes that a flow ends for it; begin reports that, once.
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
