package main

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/harness"
)

// The collected JSON log also contains the reason why a consumer ended.
func TestWhyAConsumerEndsIsLoggedAsTheLogIs(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		code    int
		want    []string
	}{
		"a wrong configuration": {[]string{"STANDINGS_START=soon", "STANDINGS_REDIS_PREFIXX=lb"}, 2, []string{"start", "STANDINGS_REDIS_PREFIXX"}},
		// The port is opened before anything else that can block: Kafka's port is closed here.
		"a port that is taken": {[]string{"STANDINGS_KAFKA_BROKERS=127.0.0.1:1", "STANDINGS_LISTEN=" + clitest.SilentPort(t)}, 1, []string{"open the operations port"}},
	} {
		code, stdout, stderr := execute(t, c.environ, "run")
		if code != c.code || stdout != "" {
			t.Errorf("%s: code %d: %s", name, code, stdout)
		}
		for line := range strings.Lines(stderr) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: a line isn't JSON: %s", name, line)
			}
		}
		reasons := harness.Reasons(stderr)
		if len(reasons) != len(c.want) {
			t.Errorf("%s: %q", name, reasons)
		}
		for _, want := range c.want {
			if !slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(reason, want) }) {
				t.Errorf("%s: no reason names %s: %q", name, want, reasons)
			}
		}
	}
}

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
