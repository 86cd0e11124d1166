package deadletters

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/test/clitest"
)

func TestDeadLettersAreReadUnderAQuotaAndThatIsSaid(t *testing.T) {
	c, environ := clitest.FakeKafka(t, kfake.SeedTopics(4, "points.dlq"))
	someDeadLetters(t, c.ListenAddrs())
	var fetches, throttled atomic.Int64
	c.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := q.ResponseKind().(*kmsg.FetchResponse)
		r.ThrottleMillis = 20
		throttles := fetches.Add(1)%3 > 0
		if throttles {
			throttled.Add(1)
		}
		return r, nil, throttles
	})
	code, stdout, stderr := execute(t, environ, "dead-letters", "list", "--partition", "1")
	if code != 0 || !strings.Contains(stdout, "points/1@480") && !strings.Contains(stdout, "480") || strings.Count(stderr, "a quota of Kafka's") != 1 {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	if throttled.Load() < 2 {
		t.Errorf("%d throttled answers", throttled.Load())
	}
}
