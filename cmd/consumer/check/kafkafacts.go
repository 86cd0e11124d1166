package check

// This file queries Kafka for the facts that check judges. It creates, joins and commits nothing. If no
// group was ever used on the cluster, it does not query ours, because such a query makes Kafka create its
// internal topic for groups.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/internal/kafkaconn"
)

// kafkaFacts holds Kafka's answers. A query that failed has an error instead, already in one line that an
// operator can read.
type kafkaFacts struct {
	bootstrap []reached // the configured addresses
	err       error     // from the metadata request: then nothing else is known
	cluster   string
	brokers   []brokerFacts
	topics    []topicFacts
	bans      *topicFacts // nil if none is configured, like the topics for final windows
	final     *topicFacts
	published *topicFacts
	group     groupFacts
	// noTransactions: no transaction has ever been used on this cluster.
	noTransactions bool
	missing        []kafkaconn.Right // rights that the brokers report as missing
	rightsErr      error
}

// reached is an address, with the error if it cannot be reached.
type reached struct {
	address string
	err     error
}

// brokerFacts describes a broker as the cluster advertises it to clients.
type brokerFacts struct {
	id int
	reached
	sessions    kafkaconn.Sessions // the session timeouts that it accepts
	sessionsErr error
}

// groupFacts holds the coordinator's answers about the group.
type groupFacts struct {
	kafkaconn.Group
	err    error
	unused bool // no group has ever been used on this cluster
}

// topicFacts holds Kafka's answers about a topic.
type topicFacts struct {
	name        string
	err         error // the topic does not exist, or this user may not see it
	partitions  []kafka.Partition
	settings    kafkaconn.TopicSettings
	settingsErr error

	// Only for a topic that consumers read:
	logs         []kafkaconn.Log
	logsErr      error
	committed    map[int]kafkaconn.Commit
	committedErr error
	outlook      []locate.Outlook // where its partitions would start
	outlookErr   error
	deadLetters  *topicFacts
}

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
	m := a.bootstrap(ctx, f)
	if m == nil {
		f.err = errors.New("no broker answers")
		return f
	}
	f.cluster = m.ClusterID
	a.queryBrokers(ctx, f, m.Brokers)
	found := map[string]*kafka.Topic{}
	for i := range m.Topics {
		found[m.Topics[i].Name] = &m.Topics[i]
	}
	f.group.unused = a.unused(ctx, found[offsetsTopic])
	transactions := found[transactionsTopic]
	f.noTransactions = transactions == nil || errors.Is(transactions.Error, kafka.UnknownTopicOrPartition)
	c := &a.cfg.Kafka
	for _, name := range c.Topics {
		t := factsOfTopic(name, found)
		t.deadLetters = factsOfTopic(event.DeadLetterTopic(name), found)
		f.topics = append(f.topics, *t)
	}
	if c.BansTopic != "" {
		f.bans = factsOfTopic(c.BansTopic, found)
	}
	if c.FinalTopic != "" {
		f.final, f.published = factsOfTopic(c.FinalTopic, found), factsOfTopic(c.PublishedTopic(), found)
	}
	all := []*topicFacts{f.bans, f.final, f.published}
	for i := range f.topics {
		all = append(all, &f.topics[i], f.topics[i].deadLetters)
	}
	all = slices.DeleteFunc(all, func(t *topicFacts) bool { return t == nil || t.err != nil })
	queryEach(len(all), func(i int) { a.querySettings(ctx, all[i]) })
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
		needs = append(needs, slices.DeleteFunc(app.FinalTopicRights(a.cfg), func(r kafkaconn.Right) bool {
			return r.TransactionID != "" && f.noTransactions || r.Topic == f.final.name && f.final.err != nil ||
				r.Topic == f.published.name && f.published.err != nil
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
	f.bootstrap = make([]reached, len(a.cfg.Kafka.Brokers))
	answers := make([]*kafka.MetadataResponse, len(f.bootstrap))
	queryEach(len(f.bootstrap), func(i int) {
		r := &f.bootstrap[i]
		r.address = a.cfg.Kafka.Brokers[i]
		answers[i], r.err = a.client.Metadata(ctx, &kafka.MetadataRequest{Addr: kafka.TCP(r.address), Topics: checkedTopics(a.cfg)})
		r.err = a.explainAt(ctx, r.address, r.err)
	})
	return cmp.Or(answers...)
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

// queryBrokers queries every broker's session limits, at its advertised address.
func (a *kafkaQueries) queryBrokers(ctx context.Context, f *kafkaFacts, all []kafka.Broker) {
	slices.SortFunc(all, func(x, y kafka.Broker) int { return x.ID - y.ID })
	f.brokers = make([]brokerFacts, len(all))
	queryEach(len(all), func(i int) { f.brokers[i] = a.queryBroker(ctx, all[i]) })
}

func (a *kafkaQueries) queryBroker(ctx context.Context, b kafka.Broker) brokerFacts {
	f := brokerFacts{id: b.ID, reached: reached{address: net.JoinHostPort(b.Host, strconv.Itoa(b.Port))}}
	// Metadata comes first, because the other calls hide the cause of a failure.
	_, err := a.client.Metadata(ctx, &kafka.MetadataRequest{Addr: kafka.TCP(f.address), Topics: checkedTopics(a.cfg)})
	if err != nil {
		f.err = a.explainAt(ctx, f.address, err)
		return f
	}
	f.sessions, f.sessionsErr = kafkaconn.SessionsOf(ctx, a.client, b.ID)
	return f
}

func factsOfTopic(name string, all map[string]*kafka.Topic) *topicFacts {
	t := &topicFacts{name: name}
	found := all[name]
	switch {
	case found == nil, errors.Is(found.Error, kafka.UnknownTopicOrPartition), found.Error == nil && len(found.Partitions) == 0:
		t.err = kafkaconn.ErrNoTopic
	case found.Error != nil:
		t.err = fmt.Errorf("topic %s: %w", name, found.Error)
	default:
		t.partitions = slices.SortedFunc(slices.Values(found.Partitions), func(x, y kafka.Partition) int { return x.ID - y.ID })
	}
	return t
}

func (a *kafkaQueries) querySettings(ctx context.Context, t *topicFacts) {
	t.settingsErr = kafkaconn.RetryTransient(ctx, a.client, func() (err error) {
		t.settings, err = kafkaconn.ReadTopicSettings(ctx, a.client, t.name)
		return err
	})
}

func (a *kafkaQueries) queryTopic(ctx context.Context, t *topicFacts, unused bool) {
	explain := func(err error) error { return app.ExplainKafka(ctx, err, &a.cfg.Kafka, t.name) }
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
