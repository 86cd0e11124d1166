package kafkaconn

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// someone returns a client of a fake broker that grants only the given rights.
func someone(t *testing.T, granted ...Right) *kafka.Client {
	t.Helper()
	var acls []kfake.ACL
	for _, r := range granted {
		a := kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: r.Topic, Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: kmsg.ACLOperation(r.Operation), Allow: true}
		if r.Topic == "" {
			a.Resource, a.Name = kmsg.ACLResourceTypeGroup, r.Group
		}
		if r.TransactionID != "" {
			a.Resource, a.Name = kmsg.ACLResourceTypeTransactionalId, r.TransactionID
		}
		acls = append(acls, a)
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "points", "points.dlq", "more", "more.dlq"),
		kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "u", "p", acls...))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	mechanism, err := Mechanism("PLAIN", "u", "p")
	require.NoError(t, err)
	settings := Settings{SASL: mechanism, User: "u", Timeout: 20 * time.Second}
	transport := settings.Transport(20*time.Second, "points", "points.dlq", "more", "more.dlq")
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport, Timeout: 20 * time.Second}
}

// needs returns rights on a group, and on topics and their dead-letter topics; some are optional.
func needs(group string, topics ...string) []Right {
	all := []Right{{Operation: kafka.ACLOperationTypeRead, Group: group, For: "to share the partitions and commit"}}
	for _, t := range topics {
		all = append(all,
			Right{Operation: kafka.ACLOperationTypeRead, Topic: t, For: "to read events"},
			Right{Operation: kafka.ACLOperationTypeWrite, Topic: t + ".dlq", For: "to write dead letters"},
			Right{Operation: kafka.ACLOperationTypeDescribeConfigs, Topic: t, For: "to check its cleanup policy and retention", Optional: true},
			Right{Operation: kafka.ACLOperationTypeAlter, Topic: t + ".dlq", For: "to add partitions when its source grows", Optional: true},
		)
	}
	return all
}

func TestARightThatIsNotGrantedIsMissingAndNoOther(t *testing.T) {
	t.Parallel()
	needs := needs("g", "points", "more")
	must := slices.DeleteFunc(slices.Clone(needs), func(r Right) bool { return r.Optional })
	require.Len(t, must, 5)

	missing, err := MissingRights(t.Context(), someone(t, needs...), needs)
	require.NoError(t, err)
	require.Empty(t, missing)
	require.NoError(t, required(missing))

	missing, err = MissingRights(t.Context(), someone(t, must...), needs)
	require.NoError(t, err)
	require.Len(t, missing, len(needs)-len(must))
	require.NoError(t, required(missing), "what is optional isn't required")

	for i, less := range must {
		others := slices.Delete(slices.Clone(must), i, i+1)
		for _, describe := range []bool{false, true} { // the right to describe is not the right to use
			granted := others
			if describe {
				only := less
				only.Operation = kafka.ACLOperationTypeDescribe
				granted = append(slices.Clone(others), only)
			}
			missing, err := MissingRights(t.Context(), someone(t, granted...), must)
			require.NoError(t, err)
			require.Equal(t, []Right{less}, missing)
			err = required(missing)
			require.EqualError(t, err, fmt.Sprintf("Kafka's ACLs: no right to %s %s, which is needed %s", less.Operation, less.Resource(), less.For))
		}
	}
	require.Equal(t, "--operation Read --group g", needs[0].Grant())
}

func TestABrokerWithoutAuthorizerGrantsAll(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "points", "points.dlq"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	transport := Settings{Timeout: 20 * time.Second}.Transport(20*time.Second, "points", "points.dlq", "nosuchtopic")
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...), Transport: transport, Timeout: 20 * time.Second}
	missing, err := MissingRights(t.Context(), client, needs("g", "nosuchtopic", "points"))
	require.NoError(t, err)
	require.Empty(t, missing)
}

func TestWhatABrokerDoesNotTellIsNotMissingRights(t *testing.T) {
	t.Parallel()
	for _, silent := range []int32{0, -1 << 31} { // before Kafka 2.3, and if not requested
		require.Equal(t, everything, reported(silent))
	}
	onlyDescribe := int32(1 << kafka.ACLOperationTypeDescribe)
	require.Equal(t, onlyDescribe, reported(onlyDescribe))
}

func TestTheRightToWriteATransactionalIdIsLookedUpAndChangesNothing(t *testing.T) {
	t.Parallel()
	write := Right{Operation: kafka.ACLOperationTypeWrite, TransactionID: "standings.lb.final", For: "to publish"}
	describe := Right{Operation: kafka.ACLOperationTypeDescribe, TransactionID: "standings.lb.final"}
	for _, granted := range [][]Right{nil, {describe}} {
		err := CheckRights(t.Context(), someone(t, granted...), write)
		require.EqualError(t, err, "Kafka's ACLs: no right to Write transactional-id standings.lb.final, which is needed to publish")
		require.Equal(t, "--operation Write --transactional-id standings.lb.final", write.Grant())
	}
	client := someone(t, write)
	began, err := client.InitProducerID(t.Context(), &kafka.InitProducerIDRequest{TransactionalID: write.TransactionID, TransactionTimeoutMs: 60_000, ProducerID: -1, ProducerEpoch: -1})
	require.NoError(t, err)
	require.NoError(t, began.Error)
	require.NoError(t, CheckRights(t.Context(), client, write))
	next, err := client.InitProducerID(t.Context(), &kafka.InitProducerIDRequest{TransactionalID: write.TransactionID, TransactionTimeoutMs: 60_000,
		ProducerID: began.Producer.ProducerID, ProducerEpoch: began.Producer.ProducerEpoch})
	require.NoError(t, err)
	require.NoError(t, next.Error, "a producer whose epoch was raised meanwhile would be fenced")
}
