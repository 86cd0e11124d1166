package kafkaconn

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafka-go's errors name neither the kind of group nor the setting.
func TestWhyAGroupTakesNoMemberIsNamed(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "points"), kfake.BrokerConfigs(map[string]string{
		"group.min.session.timeout.ms": "6000", "group.max.session.timeout.ms": "20000", "group.initial.rebalance.delay.ms": "0",
	}))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	cluster.ControlKey(int16(kmsg.ListGroups), func(q kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		r := q.ResponseKind().(*kmsg.ListGroupsResponse)
		for _, name := range []string{"theirs", "new"} {
			g := kmsg.NewListGroupsResponseGroup()
			g.Group = name
			r.Groups = append(r.Groups, g)
		}
		return r, nil, true
	})
	other, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ClientID("theirs"), kgo.ConsumerGroup("theirs"), kgo.ConsumeTopics("points"),
		kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(10*time.Second))
	require.NoError(t, err)
	t.Cleanup(other.Close)
	transport := Settings{Timeout: 20 * time.Second}.Transport(20*time.Second, "points")
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...), Transport: transport, Timeout: 20 * time.Second}
	require.Eventually(t, func() bool {
		g, err := DescribeGroup(t.Context(), client, "theirs")
		return err == nil && g.State == "Stable" && len(g.Members) == 1
	}, time.Minute, 20*time.Millisecond)
	for name, c := range map[string]struct {
		err  error
		want []string // in order; none: the error is unchanged
		is   kafka.Error
	}{
		"ours":   {kafka.InvalidSessionTimeout, []string{"group ours: kafka.session_timeout is 25s, which isn't within 6s and 20s", "group.max.session.timeout.ms of broker 0", "set kafka.session_timeout"}, kafka.InvalidSessionTimeout},
		"new":    {kafka.Unknown, []string{"group new: it isn't a classic group", "group.protocol=consumer"}, kafka.Unknown},
		"theirs": {kafka.InconsistentGroupProtocol, []string{`its members share by "range", and this program by "roundrobin" (theirs at `, "another program"}, kafka.InconsistentGroupProtocol},
		"mixed":  {errors.New("unable to read metadata for member, x: %!w(<nil>)"), []string{"group mixed: it has members of another program", "use another kafka.group"}, 0},
		"none":   {kafka.Unknown, nil, 0},
		"lost":   {io.ErrUnexpectedEOF, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := ExplainJoin(t.Context(), client, name, 25*time.Second, c.err)
			if c.want == nil {
				require.Equal(t, c.err, got)
				return
			}
			require.ErrorAs(t, got, new(*GroupError))
			require.NotContains(t, got.Error(), "%!")
			for _, text := range c.want {
				require.ErrorContains(t, got, text)
			}
			if c.is != 0 {
				require.ErrorIs(t, got, c.is, "what it means for a start stays")
			}
		})
	}
}
