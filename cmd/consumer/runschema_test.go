package main

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/test/clitest"
)

// A member that halts every partition would take them from members that could count them.
func TestAReplicaWithAnotherSchemaEndsBeforeItJoinsItsGroup(t *testing.T) {
	kafka, environ := clitest.FakeKafka(t, kfake.ClusterID("some-cluster"))
	var joins atomic.Int64
	kafka.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		kafka.KeepControl()
		joins.Add(1)
		return nil, nil, false
	})
	environ = append(environ, clitest.StandingsOf(t, 0).Environ...)
	code, stdout, stderr := execute(t, append(environ, "STANDINGS_MAX_POINTS=1000", "STANDINGS_LISTEN=off",
		"STANDINGS_REDIS_ASSUME_NOEVICTION=true"), "run") // miniredis does not report its policy
	want := "were written with another configuration: max_points is 99999999 in Redis, 1000 here. Set it back, or use another redis.prefix"
	if code != 1 || stdout != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, "tick is") || !strings.Contains(stderr, `"msg":"starting","version":"`) {
		t.Errorf("code %d: %s\n%s\nwant %s", code, stdout, stderr, want)
	}
	code, stdout, stderr = execute(t, append(environ, "STANDINGS_PERIODS_YEARLY_ENABLED=false", "STANDINGS_LISTEN=off",
		"STANDINGS_REDIS_ASSUME_NOEVICTION=true"), "run")
	want = "also have the periods yearly, which this configuration lacks: add them"
	if code != 1 || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("code %d: %s\n%s\nwant %s", code, stdout, stderr, want)
	}
	if n := joins.Load(); n > 0 {
		t.Errorf("it joined the group %d times", n)
	}
}
