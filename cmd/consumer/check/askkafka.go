package check

// Asking Kafka for what check judges. Nothing is created, joined or committed: a
// cluster on which no group was ever used isn't asked about ours, since the question
// makes the topic that groups are kept in.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/describegroups"
	"github.com/twmb/franz-go/pkg/kversion"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/ingest"
)

// offsetsTopic is where Kafka keeps groups.
const offsetsTopic = "__consumer_offsets"

// askedAtOnce bounds the brokers and topics that are asked at once.
const askedAtOnce = 8

// kafkaAsker asks one cluster.
type kafkaAsker struct {
	cfg    *config.Config
	client *kafka.Client
}

// gather asks for everything but where partitions would start.
func (a *kafkaAsker) gather(ctx context.Context) *kafkaFacts {
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
	if m.Controller.Host != "" {
		f.controller = net.JoinHostPort(m.Controller.Host, strconv.Itoa(m.Controller.Port))
	}
	a.askBrokers(ctx, f, m.Brokers)
	byName := map[string]*kafka.Topic{}
	for i := range m.Topics {
		byName[m.Topics[i].Name] = &m.Topics[i]
	}
	f.group.unused = a.unused(ctx, byName[offsetsTopic])
	for _, name := range a.cfg.Kafka.Topics {
		t := factsOfTopic(name, byName[name])
		letters := ingest.DeadLetterTopic(name)
		dead := factsOfTopic(letters, byName[letters])
		t.deadLetters = &dead
		f.topics = append(f.topics, t)
	}
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i := range f.topics {
		group.Go(func() error {
			a.askTopic(ctx, &f.topics[i], f.group.unused)
			return nil
		})
	}
	_ = group.Wait() // none fails
	if !f.group.unused {
		a.askGroup(ctx, &f.group)
	}
	a.askRights(ctx, f)
	return f
}

// askRights asks as run does at its start, but for those on a group where none was
// ever used.
func (a *kafkaAsker) askRights(ctx context.Context, f *kafkaFacts) {
	needs := ingest.Needs(a.cfg.Kafka.Group, a.cfg.Kafka.Topics...)
	if f.group.unused {
		needs = slices.DeleteFunc(needs, func(r ingest.Right) bool { return r.Group != "" })
	}
	var err error
	if f.missing, err = ingest.Missing(ctx, a.client, needs); err != nil {
		f.rightsErr = clients.ExplainKafka(ctx, err, &a.cfg.Kafka, a.cfg.Kafka.Topics[0])
	}
}

// bootstrap asks every configured address for metadata, each by itself; what the
// first one says that answers is taken.
func (a *kafkaAsker) bootstrap(ctx context.Context, f *kafkaFacts) *kafka.MetadataResponse {
	answers := make([]*kafka.MetadataResponse, len(f.bootstrap))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i := range f.bootstrap {
		r := &f.bootstrap[i]
		group.Go(func() error {
			answers[i], r.err = a.client.Metadata(ctx, &kafka.MetadataRequest{Addr: kafka.TCP(r.address), Topics: a.topics()})
			r.err = a.explainAt(ctx, r.address, r.err)
			return nil
		})
	}
	_ = group.Wait() // each has its error
	for _, m := range answers {
		if m != nil {
			return m
		}
	}
	return nil
}

// explainAt says what an error of one broker means: the others aren't asked.
func (a *kafkaAsker) explainAt(ctx context.Context, address string, err error) error {
	there := a.cfg.Kafka
	there.Brokers = []string{address}
	return clients.ExplainKafka(ctx, err, &there, there.Topics[0])
}

func (a *kafkaAsker) topics() []string { return checkedTopics(a.cfg) }

// checkedTopics are all that is looked at: a transport knows only those on its list.
func checkedTopics(cfg *config.Config) []string {
	var all []string
	for _, t := range cfg.Kafka.Topics {
		all = append(all, t, ingest.DeadLetterTopic(t))
	}
	return append(all, offsetsTopic)
}

// askBrokers asks each broker, where the cluster says it is, for what it offers.
func (a *kafkaAsker) askBrokers(ctx context.Context, f *kafkaFacts, all []kafka.Broker) {
	slices.SortFunc(all, func(x, y kafka.Broker) int { return x.ID - y.ID })
	f.brokers = make([]brokerFacts, len(all))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, b := range all {
		group.Go(func() error {
			f.brokers[i] = a.askBroker(ctx, b)
			return nil
		})
	}
	_ = group.Wait() // each has its error
	var guesses []string
	for _, b := range f.brokers {
		if b.err != nil {
			continue
		}
		known := new(kversion.Versions)
		for key, v := range b.offered {
			known.SetMaxKeyVersion(int16(key), v.to)
		}
		if guess := strings.TrimPrefix(known.VersionGuess(), "v"); !slices.Contains(guesses, guess) {
			guesses = append(guesses, guess)
		}
	}
	f.version = strings.Join(guesses, " and ")
}

func (a *kafkaAsker) askBroker(ctx context.Context, b kafka.Broker) brokerFacts {
	f := brokerFacts{id: b.ID, reached: reached{address: net.JoinHostPort(b.Host, strconv.Itoa(b.Port))}}
	// Metadata first: other calls hide the cause of a failure.
	_, err := a.client.Metadata(ctx, &kafka.MetadataRequest{Addr: kafka.TCP(f.address), Topics: a.topics()})
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
	f.sessions, f.sessionsErr = a.askSessions(ctx, b.ID)
	return f
}

// askSessions asks a broker how long sessions of groups may be, in ms.
func (a *kafkaAsker) askSessions(ctx context.Context, broker int) (bounds [2]int64, err error) {
	names := []string{"group.min.session.timeout.ms", "group.max.session.timeout.ms"}
	r, err := a.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeBroker, ResourceName: strconv.Itoa(broker), ConfigNames: names},
	}})
	if err != nil {
		return bounds, fmt.Errorf("read the configuration of broker %d: %w", broker, err)
	}
	told := map[string]string{}
	for _, resource := range r.Resources {
		err = cmp.Or(err, resource.Error)
		for _, e := range resource.ConfigEntries {
			told[e.ConfigName] = e.ConfigValue
		}
	}
	for i, name := range names {
		if err == nil {
			bounds[i], err = strconv.ParseInt(told[name], 10, 64)
		}
	}
	return bounds, err
}

func factsOfTopic(name string, found *kafka.Topic) topicFacts {
	t := topicFacts{name: name}
	switch {
	case found == nil, errors.Is(found.Error, kafka.UnknownTopicOrPartition), found.Error == nil && len(found.Partitions) == 0:
		t.err = clients.ErrNoTopic
		return t
	case found.Error != nil:
		t.err = fmt.Errorf("topic %s: %w", name, found.Error)
		return t
	}
	slices.SortFunc(found.Partitions, func(x, y kafka.Partition) int { return x.ID - y.ID })
	for _, p := range found.Partitions {
		t.partitions = append(t.partitions, partitionFacts{leader: p.Leader.Host != "", replicas: len(p.Replicas), inSync: len(p.Isr)})
	}
	return t
}

func (a *kafkaAsker) askTopic(ctx context.Context, t *topicFacts, unused bool) {
	explain := func(err error) error { return clients.ExplainKafka(ctx, err, &a.cfg.Kafka, t.name) }
	for _, one := range []*topicFacts{t, t.deadLetters} {
		if one.err == nil {
			one.settings, one.settingsErr = ingest.Settings(ctx, a.client, one.name)
		}
	}
	if t.err != nil {
		return
	}
	n := len(t.partitions)
	if t.logs, t.logsErr = ingest.Logs(ctx, a.client, t.name, n); t.logsErr != nil {
		t.logsErr = explain(t.logsErr)
		return
	}
	if !unused {
		t.committed, t.committedErr = ingest.Committed(ctx, a.client, a.cfg.Kafka.Group, t.name, n)
		t.committedErr = explain(t.committedErr)
	}
}

// unused reports that no group was ever used on the cluster. Who may not see the
// topic of groups can't tell, and asks.
func (a *kafkaAsker) unused(ctx context.Context, offsets *kafka.Topic) bool {
	if offsets != nil && !errors.Is(offsets.Error, kafka.UnknownTopicOrPartition) {
		return false
	}
	r, err := a.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	return err == nil && r.Error == nil && len(r.Groups) == 0
}

// askGroup asks the coordinator, which has answered for the offsets before.
func (a *kafkaAsker) askGroup(ctx context.Context, g *groupFacts) {
	name := a.cfg.Kafka.Group
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Kafka.Timeout)
	defer cancel()
	r, err := a.client.Transport.RoundTrip(ctx, a.client.Addr, &describegroups.Request{Groups: []string{name}})
	if err != nil {
		g.err = clients.ExplainKafka(ctx, fmt.Errorf("describe group %s: %w", name, err), &a.cfg.Kafka, a.cfg.Kafka.Topics[0])
		return
	}
	described, ok := r.(*describegroups.Response)
	if !ok || len(described.Groups) != 1 {
		g.err = fmt.Errorf("describe group %s: an unexpected answer", name)
		return
	}
	d := described.Groups[0]
	if d.ErrorCode != 0 {
		g.err = fmt.Errorf("describe group %s: %w", name, kafka.Error(d.ErrorCode))
		return
	}
	g.state, g.kind, g.deals = d.GroupState, d.ProtocolType, d.ProtocolData
	for _, m := range d.Members {
		g.members = append(g.members, m.ClientID+" at "+strings.TrimPrefix(m.ClientHost, "/"))
	}
	if g.state == "Dead" {
		list, err := a.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
		g.listed = err == nil && slices.ContainsFunc(list.Groups, func(l kafka.ListGroupsResponseGroup) bool { return l.GroupID == name })
	}
}
