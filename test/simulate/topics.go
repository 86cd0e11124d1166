package simulate

// This file adds a second topic to the group, with another number of partitions. It may appear later, and
// then has a start of its own. Problems of one topic must not affect the other.

import (
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ledger/workers"
)

var topics = []string{topic, "extra"}

// later tells when the second topic appears.
type later int

const (
	fromTheBeginning later = iota
	createdLater           // processes wait for it
	configuredLater        // only processes that start later are configured with it
)

const (
	topicMade = "a topic is made beside the other"
	twoTopics = "a topic counts on while the other's dead-letter topic is away"
)

// topics adds a second topic to the plan, which receives some of the sendings.
func (d *drawer) topics(p *plan) {
	s := &p.setup
	s.Second, s.Later = d.pick(1, 2, 4), later(d.IntN(3))
	for i := range p.sendings {
		if d.IntN(2) == 0 {
			p.sendings[i].partition = s.Partitions + d.IntN(s.Second)
		}
	}
	if s.Later != fromTheBeginning {
		p.events = append(p.events, fault{at: d.IntN(120), kind: topicMade})
	}
}

func (s *setup) topics() int { return 1 + min(1, s.Second) }

// partitions returns a topic's number of partitions when the world begins.
func (s *setup) partitions(of string) int {
	if of == topic {
		return s.Partitions
	}
	return s.Second
}

func (p *partition) field() string { return fmt.Sprintf("%s/%d", p.topic, p.number) }

// add adds a partition to a topic.
func (k *brokers) add(of string) *partition {
	p := &partition{id: len(k.partitions), topic: of, number: k.size(of)}
	k.adding.Lock()
	defer k.adding.Unlock()
	k.partitions = append(k.partitions, p)
	return p
}

// size returns the number of partitions of a topic.
func (k *brokers) size(of string) (n int) {
	for _, p := range k.partitions {
		if p.topic == of {
			n++
		}
	}
	return n
}

// partition returns a partition of a topic; nil if it does not exist.
func (k *brokers) partition(of string, number int32) *partition {
	k.adding.RLock()
	defer k.adding.RUnlock()
	for _, p := range k.partitions {
		if p.topic == of && p.number == int(number) {
			return p
		}
	}
	return nil
}

// idOf returns the index of the partition with a field in the ledger.
func (w *world) idOf(field string) int {
	for _, p := range w.kafka.partitions {
		if p.field() == field {
			return p.id
		}
	}
	panic("simulate: no partition is " + field)
}

// ofTopic returns the number of partitions in a map that belong to a topic.
func (w *world) ofTopic(all map[int]int64, of string) (n int) {
	for p := range all {
		if w.kafka.partitions[p].topic == of {
			n++
		}
	}
	return n
}

// sourceOf returns the source topic of a dead-letter topic.
func sourceOf(deadLetters string) string {
	return strings.TrimSuffix(deadLetters, event.DeadLetterTopic(""))
}

// otherwise names a topic in the story, unless it is the first one.
func otherwise(of string) string {
	if of == topic {
		return ""
	}
	return of + " "
}

// makes creates the second topic, and reports whether it did not exist. Later processes are configured with
// it.
func (w *world) makes() bool {
	if w.kafka.absent == "" {
		return false
	}
	w.mu.Lock()
	w.tellf("topic %s is made", w.kafka.absent)
	w.kafka.absent = ""
	w.mu.Unlock()
	if w.topics = topics; w.setup.Later == configuredLater {
		w.launch(w.another(0))
	}
	return true
}

// withoutLetters makes it impossible to write dead letters of a topic.
func (w *world) withoutLetters(of string) {
	l := w.kafka.deadLetters[event.DeadLetterTopic(of)]
	l.wrong, l.in, l.until = lettersNoLeader, -1, time.Now().Add(time.Hour)
}

// othersGoOn checks that one topic is fully counted, or halted for reasons of its own, while no dead
// letters of the other can be written.
func (w *world) othersGoOn() {
	if w.setup.Second == 0 {
		return
	}
	away := topics[int(w.plan.seed)%2]
	w.withoutLetters(away)
	w.tellf("nobody can write dead letters of %s", away)
	for began := time.Now(); w.failed == ""; w.advance() {
		left := 0
		ledgers, lines := w.ledgers(), w.lines()
		for _, p := range w.kafka.partitions {
			if p.topic != away && !ledgers.at(p.id, p.stable()) && lines[p.field()].State != workers.StateHalted {
				left++
			}
		}
		if left == 0 {
			break
		}
		if time.Since(began) > settlesIn {
			w.failf("a topic starves while the other's dead letters wait: %s", w.standing())
		}
	}
	w.count(twoTopics)
	w.kafka.deadLetters[event.DeadLetterTopic(away)].until = time.Time{}
}
