package security

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// Checking the right to write the transactional id fences no producer: commands and other replicas check it while
// one replica publishes.
func (s *secured) toPublishFinalWindowsTakesWrite(t *testing.T) {
	t.Parallel()
	place := s.asLimited(t, true)
	final := place.Topic + ".final"
	place.Settings["kafka.final_topic"], place.Settings["seal"], place.Settings["lateness"] = final, "true", "1h"
	s.CreateTopic(t, final, 2, map[string]string{"cleanup.policy": "compact"})
	s.CreateTopic(t, final+".done", 1, map[string]string{"cleanup.policy": "compact"})
	s.allow(t, place, leastRights(t, "run")...)
	var forWhat = map[string]string{
		"Write topic " + final: "to publish final windows", "Write topic " + final + ".done": "to record which windows are published",
		"Read topic " + final + ".done": "to know which windows are published", "Write transactional-id " + place.Group + "." + place.Prefix + ".final": "to publish final windows whole",
	}
	for _, r := range leastRights(t, "run with a final topic") {
		is := r.here(place).String()
		refuses(t, place, nil, []string{"no right to " + is + ", which is needed " + forWhat[is]}, "run")
		s.allow(t, place, r)
	}
	old := harness.Record(0, `{"user_id":"a","points":5}`)
	old.Timestamp = time.Now().AddDate(0, 0, -10)
	place.Publish(t, append(some(), old)...)
	c := place.Start(t)
	place.AwaitCaughtUp(t, within)
	published := func() (all []string) {
		place.EachRecord(t, final, func(r *kgo.Record) { all = append(all, string(r.Key)) })
		return all
	}
	harness.Eventually(t, 2*within, func() string {
		all := published() // includes a month that is over
		if !slices.ContainsFunc(all, func(key string) bool {
			return strings.HasPrefix(key, "global:weekly:") && strings.HasSuffix(key, ":1:trailer")
		}) {
			return fmt.Sprint("published is ", all)
		}
		return ""
	})
	code, out := place.Says(t, nil, "check")
	if code != 0 || strings.Contains(out, "transactional") {
		t.Errorf("check ends with %d: %s", code, out)
	}
	if n := c.Log.Count("no right to read the topic's configuration: it isn't checked that it is compacted"); n == 0 {
		t.Error("that the configuration can't be read isn't said")
	}
}
