package check

// This file queries Kafka for the facts that check judges. It creates, joins and commits nothing. If no
// group was ever used on the cluster, it does not query ours, because such a query makes Kafka create its
// internal topic for groups.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/internal/kafkaconn"
)

// offsetsTopic and transactionsTopic are Kafka's internal topics for groups and for transactions. Kafka
// creates each one at the first request that needs it.
const (
	offsetsTopic      = "__consumer_offsets"
	transactionsTopic = "__transaction_state"
)

// queriedAtOnce limits the brokers or topics that are queried concurrently.
const queriedAtOnce = 8

// queryEach calls query for 0 to n-1, several at once. Each query stores its own error.
func queryEach(n int, query func(i int)) {
	var group errgroup.Group
	group.SetLimit(queriedAtOnce)
	for i := range n {
		group.Go(func() error { query(i); return nil })
	}
	_ = group.Wait()
}

// kafkaQueries queries one cluster.
type kafkaQueries struct {
	cfg    *config.Config
	client *kafka.Client
}

// gather runs all queries except those for where partitions would start.
func (a *kafkaQueries) gather(ctx context.Context) *kafkaFacts {
	f := &kafkaFacts{}
	for _, address := range a.cfg.Kafka.Brokers {
		f.bootstrap = append(f.bootstrap, reached{address: address})
	}
	m := a.bootstrap(ctx, f)
	if m == nil {
		f.err = errors.New("no broker answers")
		return f
	}
	f.cluster = m.ClusterID
	a.queryBrokers(ctx, f, m.Brokers)
	byName := map[string]*kafka.Topic{}
	for i := range m.Topics {
		byName[m.Topics[i].Name] = &m.Topics[i]
	}
	f.group.unused = a.unused(ctx, byName[offsetsTopic])
	for _, name := range a.cfg.Kafka.Topics {
		t := factsOfTopic(name, byName[name])
		letters := event.DeadLetterTopic(name)
		dead := factsOfTopic(letters, byName[letters])
		t.deadLetters = &dead
		f.topics = append(f.topics, t)
	}
	if name := a.cfg.Kafka.BansTopic; name != "" {
		kept := factsOfTopic(name, byName[name])
		f.bans = &kept
		a.querySettings(ctx, f.bans)
	}
	if name := a.cfg.Kafka.FinalTopic; name != "" {
		published := a.cfg.Kafka.PublishedTopic()
		state := byName[transactionsTopic]
		f.final = &finalFacts{topic: factsOfTopic(name, byName[name]), published: factsOfTopic(published, byName[published]),
			unused: state == nil || errors.Is(state.Error, kafka.UnknownTopicOrPartition)}
		a.querySettings(ctx, &f.final.topic)
		a.querySettings(ctx, &f.final.published)
	}
	queryEach(len(f.topics), func(i int) { a.queryTopic(ctx, &f.topics[i], f.group.unused) })
	if !f.group.unused {
		a.queryGroup(ctx, &f.group)
	}
	a.queryRights(ctx, f)
	return f
}

// queryRights asks for the rights that run checks at start. It leaves out the group's rights if no group
// was ever used.
func (a *kafkaQueries) queryRights(ctx context.Context, f *kafkaFacts) {
	needs := topics.Needs(a.cfg.Kafka.Group, a.cfg.Kafka.Topics...)
	if f.bans != nil && f.bans.err == nil {
		needs = append(needs, app.BansRights(a.cfg)...)
	}
	if f.final != nil {
		all := app.FinalTopicRights(a.cfg)
		needs = append(needs, slices.DeleteFunc(all, func(r kafkaconn.Right) bool {
			return r.TransactionID != "" && f.final.unused || r.Topic == f.final.topic.name && f.final.topic.err != nil ||
				r.Topic == f.final.published.name && f.final.published.err != nil
		})...)
	}
	if f.group.unused {
		needs = slices.DeleteFunc(needs, func(r kafkaconn.Right) bool { return r.Group != "" })
	}
	var err error
	if f.missing, err = kafkaconn.MissingRights(ctx, a.client, needs); err != nil {
		f.rightsErr = app.ExplainKafka(ctx, err, &a.cfg.Kafka, a.cfg.Kafka.Topics[0])
	}
}

// bootstrap requests the metadata from every configured address separately, and returns the first answer.
func (a *kafkaQueries) bootstrap(ctx context.Context, f *kafkaFacts) *kafka.MetadataResponse {
	answers := make([]*kafka.MetadataResponse, len(f.bootstrap))
	queryEach(len(f.bootstrap), func(i int) {
		r := &f.bootstrap[i]
		answers[i], r.err = a.client.Metadata(ctx, &kafka.MetadataRequest{Addr: kafka.TCP(r.address), Topics: checkedTopics(a.cfg)})
		r.err = a.explainAt(ctx, r.address, r.err)
	})
	for _, m := range answers {
		if m != nil {
			return m
		}
	}
	return nil
}

// explainAt explains an error of one broker without querying the others.
func (a *kafkaQueries) explainAt(ctx context.Context, address string, err error) error {
	there := a.cfg.Kafka
	there.Brokers = []string{address}
	return app.ExplainKafka(ctx, err, &there, there.Topics[0])
}

// checkedTopics returns all topics that check queries. A transport knows only the topics on its list.
func checkedTopics(cfg *config.Config) []string {
	all := append(cfg.Kafka.Read(), offsetsTopic)
	if cfg.Kafka.FinalTopic != "" {
		all = append(all, cfg.Kafka.FinalTopic, cfg.Kafka.PublishedTopic(), transactionsTopic)
	}
	for _, t := range cfg.Kafka.Topics {
		all = append(all, event.DeadLetterTopic(t))
	}
	return all
}

// queryBrokers queries every broker's APIs and session limits at its advertised address.
func (a *kafkaQueries) queryBrokers(ctx context.Context, f *kafkaFacts, all []kafka.Broker) {
	slices.SortFunc(all, func(x, y kafka.Broker) int { return x.ID - y.ID })
	f.brokers = make([]brokerFacts, len(all))
	queryEach(len(all), func(i int) { f.brokers[i] = a.queryBroker(ctx, all[i]) })
}

func (a *kafkaQueries) queryBroker(ctx context.Context, b kafka.Broker) brokerFacts {
	f := brokerFacts{id: b.ID, reached: reached{address: net.JoinHostPort(b.Host, strconv.Itoa(b.Port))}}
	// Metadata comes first, because the other calls hide the cause of a failure.
	_, err := a.client.Metadata(ctx, &kafka.MetadataRequest{Addr: kafka.TCP(f.address), Topics: checkedTopics(a.cfg)})
	var offers *kafka.ApiVersionsResponse
	if err == nil {
		if offers, err = a.client.ApiVersions(ctx, &kafka.ApiVersionsRequest{Addr: kafka.TCP(f.address)}); err == nil {
			err = offers.Error
		}
	}
	if err != nil {
		f.err = a.explainAt(ctx, f.address, err)
		return f
	}
	f.offered = map[protocol.ApiKey]versions{}
	for _, k := range offers.ApiKeys {
		f.offered[protocol.ApiKey(k.ApiKey)] = versions{int16(k.MinVersion), int16(k.MaxVersion)}
	}
	f.sessions, f.sessionsErr = kafkaconn.SessionsOf(ctx, a.client, b.ID)
	return f
}

func factsOfTopic(name string, found *kafka.Topic) topicFacts {
	t := topicFacts{name: name}
	switch {
	case found == nil, errors.Is(found.Error, kafka.UnknownTopicOrPartition), found.Error == nil && len(found.Partitions) == 0:
		t.err = kafkaconn.ErrNoTopic
		return t
	case found.Error != nil:
		t.err = fmt.Errorf("topic %s: %w", name, found.Error)
		return t
	}
	t.partitions = slices.SortedFunc(slices.Values(found.Partitions), func(x, y kafka.Partition) int { return x.ID - y.ID })
	return t
}

func (a *kafkaQueries) querySettings(ctx context.Context, t *topicFacts) {
	if t.err == nil {
		t.settingsErr = kafkaconn.RetryTransient(ctx, a.client, func() (err error) {
			t.settings, err = kafkaconn.ReadTopicSettings(ctx, a.client, t.name)
			return err
		})
	}
}

func (a *kafkaQueries) queryTopic(ctx context.Context, t *topicFacts, unused bool) {
	explain := func(err error) error { return app.ExplainKafka(ctx, err, &a.cfg.Kafka, t.name) }
	for _, one := range []*topicFacts{t, t.deadLetters} {
		a.querySettings(ctx, one)
	}
	if t.err != nil {
		return
	}
	n := len(t.partitions)
	if t.logs, t.logsErr = kafkaconn.AllLogs(ctx, a.client, t.name, n); t.logsErr != nil {
		t.logsErr = explain(t.logsErr)
		return
	}
	if !unused {
		t.committedErr = explain(kafkaconn.RetryTransient(ctx, a.client, func() (err error) {
			t.committed, err = kafkaconn.Committed(ctx, a.client, a.cfg.Kafka.Group, t.name, kafkaconn.UpTo(n)...)
			return err
		}))
	}
}

// unused reports whether no group was ever used on the cluster. If this user may not describe the topic of
// groups, the answer is false unless ListGroups succeeds and returns no group.
func (a *kafkaQueries) unused(ctx context.Context, offsets *kafka.Topic) bool {
	if offsets != nil && !errors.Is(offsets.Error, kafka.UnknownTopicOrPartition) {
		return false
	}
	r, err := a.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	return err == nil && r.Error == nil && len(r.Groups) == 0
}

// queryGroup queries the coordinator, which has already answered the request for offsets.
func (a *kafkaQueries) queryGroup(ctx context.Context, g *groupFacts) {
	g.err = kafkaconn.RetryTransient(ctx, a.client, func() (err error) {
		g.Group, err = kafkaconn.DescribeGroup(ctx, a.client, a.cfg.Kafka.Group)
		return err
	})
	g.err = app.ExplainKafka(ctx, g.err, &a.cfg.Kafka, a.cfg.Kafka.Topics[0])
}
