package harness

// What the operating system knows of a consumer.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// BytesRead is how much the process has read so far: from its sockets, all but a
// little. It is Linux's to tell.
func (c *Consumer) BytesRead(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", c.Pid()))
	if err != nil {
		t.Fatalf("how much consumer %d has read: %v", c.Number, err)
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), "rchar: "); ok {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				t.Fatalf("how much consumer %d has read: %v", c.Number, err)
			}
			return n
		}
	}
	t.Fatalf("how much consumer %d has read isn't told: %s", c.Number, text)
	return 0
}

// LogBytes is how large the topic's log is, as the broker keeps and sends it.
func (p *Place) LogBytes(t testing.TB) int64 {
	t.Helper()
	topic := kadm.TopicsSet{}
	topic.Add(p.Topic, 0)
	dirs, err := p.admin.DescribeAllLogDirs(t.Context(), topic)
	if err != nil {
		t.Fatalf("the size of %s: %v", p.Topic, err)
	}
	size := int64(0)
	dirs.Each(func(d kadm.DescribedLogDir) { size += d.Size() })
	return size
}
