package app

// Commands publish with franz-go, whose producer is idempotent: a record that is sent again because the answer
// was lost is written once. kafka-go has no such producer. Everything is read with kafka-go.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	kafkasasl "github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
)

// NewProducer returns an idempotent producer, which connects to Kafka like the client of NewKafka. All in-sync
// replicas acknowledge its records. It retries without end, never blocks, and sends each record to the
// partition that the record names. The caller must limit the number of buffered records and the time of
// retries.
//
// The producer stops when the broker no longer knows what it has acknowledged. Otherwise franz-go would start a
// new sequence there, which could write records twice.
func NewProducer(c *config.Kafka, options ...kgo.Opt) (*kgo.Client, error) {
	settings, err := c.Connection()
	if err != nil {
		return nil, err
	}
	all := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID(kafkaconn.ClientID), kgo.DisableClientMetrics(),
		kgo.DialTimeout(settings.Timeout), kgo.RequestTimeoutOverhead(c.Timeout), kgo.RetryTimeout(c.Timeout),
		kgo.ProduceRequestTimeout(c.Timeout), kgo.MetadataMinAge(leaderMoves),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.StopProducerOnDataLossDetected(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1), kgo.MaxBufferedRecords(math.MaxInt),
	}
	if settings.TLS != nil {
		all = append(all, kgo.DialTLSConfig(settings.TLS))
	}
	if settings.SASL != nil {
		all = append(all, kgo.SASL(mechanism{settings.SASL}))
	}
	return kgo.NewClient(append(all, options...)...)
}

// leaderMoves is the minimum interval between two requests for a partition's leader.
const leaderMoves = 250 * time.Millisecond

// mechanism adapts a SASL mechanism of kafka-go for franz-go.
type mechanism struct{ kafkasasl.Mechanism }

// Authenticate starts the authentication with one broker.
func (m mechanism) Authenticate(ctx context.Context, _ string) (sasl.Session, []byte, error) {
	state, first, err := m.Start(ctx)
	return session{ctx, state}, first, err
}

// session is one authentication. It keeps the connection's context, because kafka-go's steps need one.
type session struct {
	ctx   context.Context //nolint:containedctx // franz-go's interface has none
	state kafkasasl.StateMachine
}

// Challenge is one step of the authentication.
func (s session) Challenge(from []byte) (bool, []byte, error) { return s.state.Next(s.ctx, from) }

// MayPublishOnce checks the rights that an idempotent producer needs, before anything is published. It ignores
// transient errors: the producer tries again.
func MayPublishOnce(ctx context.Context, producer *kgo.Client) error {
	response, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(ctx, producer)
	if err != nil {
		return fmt.Errorf("start the idempotent producer (InitProducerId, Kafka 0.11 or later): %w", err)
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil && !kerr.IsRetriable(err) {
		return err
	}
	return nil
}

// ExplainPublishing returns what an error of a producer means for the operator.
func ExplainPublishing(ctx context.Context, err error, c *config.Kafka, topic string) error {
	answer, ok := errors.AsType[*kerr.Error](err)
	if !ok || explained(err) {
		return ExplainKafka(ctx, err, c, topic)
	}
	at := strings.Join(c.Brokers, ", ")
	switch answer {
	case kerr.ClusterAuthorizationFailed:
		return &KafkaError{fmt.Sprintf("not authorized to publish to topic %s on the cluster at %s without repeats: the user needs the right to "+
			"Write the topic, and before Kafka 2.8 that to IdempotentWrite the cluster, too", topic, at), err}
	case kerr.TransactionalIDAuthorizationFailed:
		return &KafkaError{fmt.Sprintf("not authorized to publish to topic %s on the cluster at %s in transactions: the user needs the right to Write the "+
			"transactional id, which \"consumer check\" names", topic, at), err}
	case kerr.InvalidTransactionTimeout:
		return &KafkaError{fmt.Sprintf("transaction.max.timeout.ms of the brokers at %s is under a minute, the minimum for topic %s", at, topic), err}
	case kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping:
		return &KafkaError{fmt.Sprintf("topic %s at %s no longer has acknowledged records (%s): they were deleted or lost, "+
			"so check the topic before publishing again", topic, at, answer.Message), err}
	}
	// ExplainKafka explains the other codes, which are the same.
	return ExplainKafka(ctx, kafka.Error(answer.Code), c, topic)
}

// MaxMessageBytes returns the maximum size of a topic's batches in bytes. It returns false if this user has no
// right to know (DescribeConfigs), or the broker does not report it.
func MaxMessageBytes(ctx context.Context, c *kafka.Client, topic string) (int, bool) {
	var settings kafkaconn.TopicSettings
	err := kafkaconn.RetryTransient(ctx, c, func() (err error) {
		settings, err = kafkaconn.ReadTopicSettings(ctx, c, topic)
		return err
	})
	n, unknown := strconv.Atoi(settings["max.message.bytes"])
	return n, err == nil && unknown == nil
}
