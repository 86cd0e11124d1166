package app

// Using Kafka outside of the consumer's main loop: a client with deadlines, and one clear line for each error.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
)

// NewKafka returns a client for some topics. Each of its calls takes at most kafka.timeout. CloseKafka closes
// its connections.
func NewKafka(c *config.Kafka, topics ...string) (*kafka.Client, error) {
	settings, err := c.Connection()
	if err != nil {
		return nil, err
	}
	return &kafka.Client{Addr: kafka.TCP(c.Brokers...), Timeout: c.Timeout, Transport: settings.Transport(2*time.Second, topics...)}, nil
}

// CloseKafka closes the connections of a client of NewKafka.
func CloseKafka(c *kafka.Client) {
	if t, ok := c.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// KafkaError is an error from Kafka in one line: the failed action, and which of brokers, topic and rights is
// wrong.
type KafkaError struct {
	Line string
	Err  error
}

func (p *KafkaError) Error() string { return p.Line }
func (p *KafkaError) Unwrap() error { return p.Err }

// ExplainKafka returns what an error means for the operator. If the brokers may refuse all connections, it asks
// them, and returns a *kafkaconn.Refusal that names the broker and the reason.
func ExplainKafka(ctx context.Context, err error, c *config.Kafka, topic string) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) && !explained(err) {
		return &KafkaError{"interrupted", err}
	}
	if errors.Is(err, kafka.GroupAuthorizationFailed) {
		return &KafkaError{"not authorized for group " + c.Group + ": the user needs the right to Read it", err}
	}
	if err == nil || explained(err) || ctx.Err() != nil || !aboutConnecting(err) {
		return kafkaLine(err, c.Brokers, topic)
	}
	settings, problem := c.Connection()
	if problem != nil {
		return problem
	}
	if refusal := settings.Diagnose(ctx, c.Brokers...); refusal != nil {
		return refusal
	}
	if errors.Is(err, kafka.SASLAuthenticationFailed) {
		// kafka-go reports this if a broker closes the connection during authentication.
		return &KafkaError{"lost the connection to Kafka at " + strings.Join(c.Brokers, ", "), io.ErrUnexpectedEOF}
	}
	return kafkaLine(err, c.Brokers, topic)
}

// aboutConnecting reports whether err may result from brokers that refuse all connections. A broker that cannot
// be reached is not asked again.
func aboutConnecting(err error) bool {
	if code, ok := errors.AsType[kafka.Error](err); ok {
		switch code {
		case kafka.SASLAuthenticationFailed, kafka.UnsupportedSASLMechanism, kafka.IllegalSASLState, kafka.BrokerNotAvailable:
			return true
		}
		return false
	}
	op, ofNetwork := errors.AsType[*net.OpError](err)
	return !isLookup(err) && (!ofNetwork || op.Op != "dial")
}

// explained reports whether err already states clearly what is wrong.
func explained(err error) bool {
	return errors.As(err, new(*KafkaError)) || errors.As(err, new(*kafkaconn.Refusal)) || errors.As(err, new(*kafkaconn.RightsError)) || errors.As(err, new(*kafkaconn.GroupError))
}

// kafkaLine explains an error by the error alone.
func kafkaLine(err error, brokers []string, topic string) error {
	if err == nil || explained(err) {
		return err
	}
	line := func(format string, args ...any) error {
		return &KafkaError{strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "), err}
	}
	at := strings.Join(brokers, ", ")
	if closed, ok := errors.AsType[*kafkaconn.ClosedError](err); ok {
		return line("%v", closed)
	}
	if code, ok := errors.AsType[kafka.Error](err); ok {
		switch code {
		case kafka.TopicAuthorizationFailed:
			return line("not authorized for topic %s: the user needs the right to Describe it, which comes with that to Read or to Write", topic)
		case kafka.ClusterAuthorizationFailed:
			return line("not authorized on the cluster at %s: %s", at, code.Description())
		case kafka.SASLAuthenticationFailed:
			return line("the cluster at %s refuses the user or password: %s", at, code.Description())
		case kafka.UnknownTopicOrPartition:
			return line("topic %s does not exist on the cluster at %s", topic, at)
		case kafka.InvalidTopic:
			return line("%q is not a valid topic name", topic)
		}
		return line("topic %s at %s: %s (%s, error %d)", topic, at, detail(err, code), code.Title(), int(code))
	}
	op, ofNetwork := errors.AsType[*net.OpError](err)
	switch {
	case ofNetwork && op.Op == "dial":
		return line("can't connect to Kafka at %s: %v", at, op)
	case isLookup(err):
		return line("can't connect to Kafka at %s: %v", at, innermost(err))
	case errors.Is(err, context.DeadlineExceeded), ofNetwork && op.Timeout():
		return line("no answer from Kafka at %s within kafka.timeout", at)
	case ofNetwork:
		return line("lost the connection to Kafka at %s: %v", at, op)
	}
	return line("Kafka at %s, topic %s: %v", at, topic, err)
}

// detail returns what the broker reported in addition to the code, if anything.
func detail(err error, code kafka.Error) string {
	text := err.Error()
	if i := strings.LastIndex(text, code.Description()); i >= 0 {
		text = strings.Trim(text[i:], ": ")
	}
	return text
}

// isLookup reports whether a host name could not be resolved.
func isLookup(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// innermost returns the network error in a chain of wrapped errors, which has the address; or err itself if
// there is none.
func innermost(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns
	}
	return err
}

// bansWithin is the maximum time for reading the bans topic to its end.
const bansWithin = 30 * time.Second

// FollowBans reads the bans topic to its end, and follows it until stop is called.
func FollowBans(ctx context.Context, client *kafka.Client, topic string) (f *bans.Follower, stop func(), err error) {
	f = bans.NewFollower(client, topic, zap.NewNop())
	following, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(following)
	}()
	stop = func() { cancel(); <-ended }
	within, cancelWithin := context.WithTimeout(ctx, bansWithin)
	defer cancelWithin()
	if err = f.Ready(within, 0); err == nil {
		return f, stop, nil
	}
	if waits := f.Waits(); waits != nil && ctx.Err() == nil {
		err = waits
	}
	stop()
	return nil, nil, fmt.Errorf("read %s to its end: %w", topic, err)
}

// BansRights returns the rights that run needs on the bans topic.
func BansRights(cfg *config.Config) []kafkaconn.Right {
	needs := []kafkaconn.Right{bans.Need(cfg.Kafka.BansTopic)}
	if cfg.API.Listen != config.Off && cfg.API.BansTokensFile != "" {
		needs = append(needs, bans.NeedToBan(cfg.Kafka.BansTopic))
	}
	return needs
}

// FinalTopicRights returns the rights that run needs to publish final windows.
func FinalTopicRights(cfg *config.Config) []kafkaconn.Right {
	return topic.Needs(cfg.Kafka.FinalTopic, topic.TransactionalID(cfg.Kafka.Group, cfg.Redis.Prefix))
}
