package produce

// What goes wrong while franz-go tries again, which its results don't show: they come once
// it is over.

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// trouble listens to a producer: to the errors in its log, and to requests without an
// answer. Requests are few beside records, so all of the log is heard.
type trouble struct {
	again atomic.Bool // something was sent, or is to be sent, a second time
	cause atomic.Pointer[error]
	until atomic.Pointer[time.Time] // a broker holds requests back, by a quota
}

// throttled reports whether requests are held back.
func (t *trouble) throttled(now time.Time) bool {
	until := t.until.Load()
	return until != nil && now.Before(*until)
}

// OnBrokerThrottle hears of a quota.
func (t *trouble) OnBrokerThrottle(_ kgo.BrokerMetadata, wait time.Duration, _ bool) {
	until, err := time.Now().Add(wait), fmt.Errorf("a quota of the broker's holds requests back for %s", wait)
	t.until.Store(&until)
	t.cause.Store(&err)
}

// last is what went wrong last, nil for nothing.
func (t *trouble) last() error {
	if cause := t.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Level asks for all.
func (*trouble) Level() kgo.LogLevel { return kgo.LogLevelDebug }

// Log looks for errors. That of a partition which is tried again is in the text alone, as
// "points[3{retrying@-1,20(NOT_ENOUGH_REPLICAS: …)}]" under "to".
func (t *trouble) Log(_ kgo.LogLevel, message string, pairs ...any) {
	for i := 1; i < len(pairs); i += 2 {
		switch value := pairs[i].(type) {
		case error:
			t.cause.Store(&value)
		case string:
			if message == "produced" {
				t.retried(value)
			}
		}
	}
}

func (t *trouble) retried(text string) {
	_, text, found := strings.Cut(text, "{retrying@")
	if !found {
		return
	}
	t.again.Store(true)
	if _, text, found = strings.Cut(text, "("); found {
		text, _, _ = strings.Cut(text, ")")
		err := errors.New(text)
		t.cause.Store(&err)
	}
}

// OnBrokerE2E hears of a request to publish that had no answer.
func (t *trouble) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	const produce = 0
	if err := e.Err(); key == produce && err != nil {
		t.again.Store(true)
	}
}
