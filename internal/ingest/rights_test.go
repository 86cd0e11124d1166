package ingest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/connect"
)

// someone is a client of a fake broker that grants these rights and no others.
func someone(t *testing.T, granted ...Right) *kafka.Client {
	t.Helper()
	var acls []kfake.ACL
	for _, r := range granted {
		a := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: r.Topic, Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: kmsg.ACLOperation(r.Operation), Allow: true}
		if r.Topic == "" {
			a.Resource, a.Name = kmsg.ACLResourceTypeGroup, r.Group
		}
		acls = append(acls, a)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "points", "points.dlq", "more", "more.dlq"),
		kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "u", "p", acls...))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	mechanism, err := connect.Mechanism("PLAIN", "u", "p")
	require.NoError(t, err)
	way := connect.Way{SASL: mechanism, User: "u", Timeout: 20 * time.Second}
	transport := way.Transport(20*time.Second, "points", "points.dlq", "more", "more.dlq")
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport, Timeout: 20 * time.Second}
}

func TestARightThatIsNotGrantedIsMissingAndNoOther(t *testing.T) {
	t.Parallel()
	needs := Needs("g", "points", "more")
	required := slices.DeleteFunc(slices.Clone(needs), func(r Right) bool { return r.Optional })
	require.Len(t, required, 5)

	missing, err := Missing(t.Context(), someone(t, needs...), needs)
	require.NoError(t, err)
	require.Empty(t, missing)
	require.NoError(t, Required(missing))

	missing, err = Missing(t.Context(), someone(t, required...), needs)
	require.NoError(t, err)
	require.Len(t, missing, len(needs)-len(required))
	require.NoError(t, Required(missing), "what is optional isn't required")

	for i, less := range required {
		others := slices.Delete(slices.Clone(required), i, i+1)
		for _, describe := range []bool{false, true} { // to see it isn't to use it
			granted := others
			if describe {
				only := less
				only.Operation = kafka.ACLOperationTypeDescribe
				granted = append(slices.Clone(others), only)
			}
			missing, err := Missing(t.Context(), someone(t, granted...), required)
			require.NoError(t, err)
			require.Equal(t, []Right{less}, missing)
			err = Required(missing)
			require.EqualError(t, err, fmt.Sprintf("Kafka's ACLs: no right to %s %s, which is needed %s", less.Operation, less.Resource(), less.For))
		}
	}
	require.Equal(t, "--operation Read --group g", needs[0].Grant())
}

func TestABrokerWithoutAuthorizerGrantsAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	client := &kafka.Client{Addr: kafka.TCP(w.config.Brokers...), Transport: w.config.Transport, Timeout: 20 * time.Second}
	require.Zero(t, w.end(topic, 0))
	missing, err := Missing(t.Context(), client, Needs("g", append([]string{"nosuchtopic"}, w.config.Topics...)...))
	require.NoError(t, err)
	require.Empty(t, missing)
}

func TestWhatABrokerDoesNotTellIsNotMissing(t *testing.T) {
	t.Parallel()
	for _, silent := range []int32{0, -1 << 31} { // before Kafka 2.3, and not asked
		require.Equal(t, everything, told(silent))
	}
	onlyDescribe := int32(1 << kafka.ACLOperationTypeDescribe)
	require.Equal(t, onlyDescribe, told(onlyDescribe))
}

func TestARefusalThatIsNotSureIsWaitedOut(t *testing.T) {
	t.Parallel()
	refusal := &connect.Refusal{Broker: "b:1", What: "refuses"}
	var sure error
	c := &Consumer{Config: Config{Refusal: func(context.Context) error { return sure }}}
	require.NoError(t, c.final(t.Context(), kafka.SASLAuthenticationFailed))
	sure = refusal
	require.ErrorIs(t, c.final(t.Context(), kafka.SASLAuthenticationFailed), refusal)
	require.NoError(t, c.final(t.Context(), kafka.NotCoordinatorForGroup))
	require.ErrorIs(t, c.final(t.Context(), kafka.GroupAuthorizationFailed), kafka.GroupAuthorizationFailed)
	require.ErrorIs(t, c.final(t.Context(), refusal), refusal)
}
