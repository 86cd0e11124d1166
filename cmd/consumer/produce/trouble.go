package produce

// This file records errors while franz-go retries. Its results do not show them, because they come only at
// the end.

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// trouble observes a producer: the errors in its log, and requests without a response. It reads the whole
// log at debug level, because there are few requests compared with records.
type trouble struct {
	again atomic.Bool // a request was or will be sent again
	cause atomic.Pointer[error]
	until atomic.Pointer[time.Time] // until then a broker throttles requests because of a quota
}

// throttled reports whether a broker is throttling requests.
func (t *trouble) throttled(now time.Time) bool {
	until := t.until.Load()
	return until != nil && now.Before(*until)
}

// OnBrokerThrottle records that a quota throttles requests.
func (t *trouble) OnBrokerThrottle(_ kgo.BrokerMetadata, wait time.Duration, _ bool) {
	until, err := time.Now().Add(wait), fmt.Errorf("a quota of the broker's holds requests back for %s", wait)
	t.until.Store(&until)
	t.cause.Store(&err)
}

// last returns the most recent error; nil if there was none.
func (t *trouble) last() error {
	if cause := t.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Level makes franz-go log everything.
func (*trouble) Level() kgo.LogLevel { return kgo.LogLevelDebug }

// Log records errors. The error of a partition that franz-go retries appears only in the text, under "to":
// "points[3{retrying@-1,20(NOT_ENOUGH_REPLICAS: …)}]".
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

// OnBrokerE2E records that a produce request got no response.
func (t *trouble) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	const produce = 0
	if err := e.Err(); key == produce && err != nil {
		t.again.Store(true)
	}
}
