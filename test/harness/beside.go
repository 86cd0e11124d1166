package harness

// This file adds further topics that feed the same boards.

import (
	"slices"
	"strings"
	"testing"

	"github.com/standings/standings/test/oracle"
	"github.com/standings/standings/test/testenv"
)

// Beside creates another topic that the place's consumers also read. It returns a Place to publish to.
// Waits and checks of the first place cover all topics.
func (p *Place) Beside(t testing.TB, partitions int) *Place {
	t.Helper()
	q := &Place{Kafka: p.Kafka, Redis: p.Redis, Topic: testenv.Unique(t.Name()), Group: p.Group, Prefix: p.Prefix, Settings: p.Settings,
		redis: p.redis, first: p, test: t, bad: map[oracle.At]Published{}}
	q.connect(t)
	t.Cleanup(func() { q.clean(t) })
	q.CreateTopic(t, partitions, nil)
	p.beside = append(p.beside, q)
	return q
}

// all returns the places that share their boards, the first one first.
func (p *Place) all() []*Place {
	if p.first != nil {
		p = p.first
	}
	return append([]*Place{p}, p.beside...)
}

// topics returns the topics that the consumers read.
func (p *Place) topics() []string {
	var topics []string
	for _, q := range p.all() {
		topics = append(topics, q.Topic)
	}
	return topics
}

// reads reports whether the consumers read a topic.
func (p *Place) reads(topic string) bool { return slices.Contains(p.topics(), topic) }

// boardsOracle returns the oracle for all topics together.
func (p *Place) boardsOracle(t testing.TB) *oracle.Oracle {
	t.Helper()
	places := p.all()
	if len(places) == 1 {
		return p.Oracle(t)
	}
	o := oracle.New(oracleConfig(t, p.Settings))
	for _, q := range places {
		for _, published := range q.Published() {
			r := published.asRecord()
			r.Topic = q.Topic
			o.Add(r)
		}
	}
	return o
}

// joined returns the topics in the form of the configuration.
func (p *Place) joined() string { return strings.Join(p.topics(), ",") }
