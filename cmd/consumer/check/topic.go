package check

// This file checks the topics, and those for dead letters, bans and final windows.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/units"
)

// deniedBy reports whether an error is a missing right of this user.
func deniedBy(err error) bool {
	return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.GroupAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed)
}

// described reports whether Kafka described a topic; otherwise it adds the reason. right is what this user
// needs to do with the topic, and without is what happens meanwhile. created is how a missing topic is
// created; empty if it is not.
func (s *section) described(check string, t *topicFacts, created, right, without string) bool {
	switch {
	case t.err == nil:
		return true
	case errors.Is(t.err, kafkaconn.ErrNoTopic) && created != "":
		s.ok(check, t.name, "does not exist: it would be created "+created+", if this user has the permission")
	case errors.Is(t.err, kafkaconn.ErrNoTopic):
		s.wrong(check, t.name, "does not exist", "create it: until then the consumer waits. It needs as many partitions as there may be replicas that share the work")
	case deniedBy(t.err):
		s.wrong(check, t.name, "it does not exist, or this user may not describe it", "let this user describe and "+right+" it"+without)
	default:
		s.wrong(check, t.name, t.err.Error(), "check the brokers' logs"+without)
	}
	return false
}

// configured reports whether Kafka reported a topic's configuration; otherwise it adds the reason.
func (s *section) configured(check string, t *topicFacts, required string) bool {
	switch {
	case t.settingsErr == nil:
		return true
	case deniedBy(t.settingsErr):
		s.unchecked(check, t.name, "no right to read the topic's configuration", "let this user DescribeConfigs, or check it yourself: "+required)
	default:
		s.unchecked(check, t.name, t.settingsErr.Error(), "look again")
	}
	return false
}

func judgeTopic(s *section, t *topicFacts, rules *fold.Rules, largestBatch int64) {
	if !s.described("topic", t, "", "read", "") {
		return
	}
	judgePartitions(s, t)
	if s.configured("settings", t, "cleanup.policy=delete, and a retention as long as windows are open") {
		judgeCleanup(s, t)
		judgeRetention(s, t, rules)
		judgeBatches(s, t, largestBatch)
	}
	judgeDeadLetters(s, t)
}

// judgeBans checks the bans topic, if one is configured.
func judgeBans(s *section, t *topicFacts) {
	const check = "bans topic"
	if t == nil || !s.described(check, t, "compacted, with one partition", "read", ": no events are applied before the bans are read") {
		return
	}
	if other, ok := errors.AsType[*kafkaconn.TopicError](bans.Topic(t.name).Check(len(t.partitions), t.settings)); ok {
		s.wrong(check, t.name, "it "+other.What, other.Remedy)
		return
	}
	judgeCompacted(s, check, t)
}

// judgeFinal checks the topic that final windows are published to, and the topic that records which are
// published, if they are configured.
func judgeFinal(s *section, f *kafkaFacts) {
	const check = "final topic"
	for _, t := range []*topicFacts{f.final, f.published} {
		if t == nil || !s.described(check, t, "compacted", "write", ": final windows stay in Redis until it can be written") {
			continue
		}
		if t == f.published {
			if e, ok := errors.AsType[*kafkaconn.TopicError](topic.Published(t.name).Check(len(t.partitions), t.settings)); ok {
				s.wrong(check, t.name, "it "+e.What, e.Remedy)
				continue
			}
		}
		judgeCompacted(s, check, t)
	}
	if f.final != nil && f.noTransactions {
		s.unchecked("rights", "transactional id", "the cluster has no transactions yet: checking the permission to Write the transactional id would create its internal topic", "")
	}
}

// judgeCompacted checks the replicas and the cleanup policy of a topic that should be compacted.
func judgeCompacted(s *section, check string, t *topicFacts) {
	if len(t.partitions[0].Replicas) == 1 { // Kafka has no topic without partitions
		s.warn(check, t.name, "one copy: a broker that is lost takes it along", "use 3 replicas, min.insync.replicas 2")
	}
	if !s.configured(check, t, "cleanup.policy=compact") {
		return
	}
	if policy := strings.TrimSpace(t.settings["cleanup.policy"]); policy != "compact" {
		s.warn(check, t.name, "cleanup.policy="+policy+": records are deleted by their age", "set cleanup.policy=compact, or make sure that readers are never that late")
		return
	}
	s.ok(check, t.name, units.Plural(int64(len(t.partitions)), "partition")+", cleanup.policy=compact")
}

// judgePartitions checks leaders and replicas.
func judgePartitions(s *section, t *topicFacts) {
	var leaderless, short []string
	var copies []int
	for _, p := range t.partitions {
		if p.Leader.Host == "" {
			leaderless = append(leaderless, strconv.Itoa(p.ID))
		}
		if len(p.Isr) < len(p.Replicas) {
			short = append(short, strconv.Itoa(p.ID))
		}
		copies = append(copies, len(p.Replicas))
	}
	replicas := slices.Min(copies) // Kafka has no topic without partitions
	text := fmt.Sprintf("%s, replication factor %d", units.Plural(int64(len(t.partitions)), "partition"), replicas)
	least, err := strconv.Atoi(t.settings["min.insync.replicas"])
	if err == nil {
		text += fmt.Sprintf(", min.insync.replicas %d", least)
	}
	if len(leaderless) > 0 {
		s.wrong("topic", t.name, "without a leader: "+partitionsOf(leaderless), "start the brokers that have them: their events cannot be read")
	}
	if len(short) > 0 {
		s.warn("topic", t.name, "replicas are behind or unavailable: "+partitionsOf(short), "check the brokers that have them")
	}
	switch {
	case replicas == 1:
		s.warn("topic", t.name, text, "with one copy, a broker that is lost takes events along: use 3 replicas, min.insync.replicas 2")
	case err == nil && least >= replicas:
		s.warn("topic", t.name, text, "one unavailable broker stops all writes: use more replicas than min.insync.replicas")
	case len(leaderless)+len(short) == 0:
		s.ok("topic", t.name, text)
	}
}

// partitionsOf joins descriptions of partitions, such as "0 at 120", with the right noun.
func partitionsOf(all []string) string {
	if len(all) == 1 {
		return "partition " + all[0]
	}
	return "partitions " + units.Names(all)
}

func judgeCleanup(s *section, t *topicFacts) {
	policy := t.settings["cleanup.policy"]
	if _, compacted := errors.AsType[*topics.CompactError](topics.CheckCompaction(t.name, t.settings)); compacted {
		s.wrong("cleanup.policy", t.name, policy+": events with equal keys would vanish before they are counted or counted again", "set cleanup.policy=delete")
		return
	}
	s.ok("cleanup.policy", t.name, policy)
}

func judgeRetention(s *section, t *topicFacts, rules *fold.Rules) {
	const check = "retention"
	if bytes, err := strconv.ParseInt(t.settings["retention.bytes"], 10, 64); err == nil && bytes >= 0 {
		s.warn(check, t.name, fmt.Sprintf("retention.bytes: a partition keeps %s, however young its events are", units.ShortBytes(bytes)),
			"set retention.bytes=-1, and have retention.ms decide")
	}
	retention, limited := t.settings.Retention()
	if !limited {
		s.ok(check, t.name, "without end")
		return
	}
	kept := "events are kept for " + units.ShortDuration(retention)
	forgets := topics.Forgets(t.settings, rules)
	if len(forgets) == 0 {
		s.ok(check, t.name, kept+": longer than any window is open")
		return
	}
	var names []string
	longest := time.Duration(0)
	for _, f := range forgets {
		names = append(names, fmt.Sprintf("%s (%s)", f.Period, units.ShortDuration(f.Open)))
		longest = max(longest, f.Open)
	}
	s.warn(check, t.name, fmt.Sprintf("%s, shorter than windows are open: %s. Deleted events cannot be rebuilt", kept, strings.Join(names, ", ")),
		fmt.Sprintf("set retention.ms to %d or more, or have backups of Redis", longest.Milliseconds()))
}

// judgeBatches compares the largest record batch with the memory for one batch.
func judgeBatches(s *section, t *topicFacts, memory int64) {
	const check = "max.message.bytes"
	largest, err := strconv.ParseInt(t.settings[check], 10, 64)
	switch {
	case err != nil:
		s.unchecked(check, t.name, "not reported by Kafka", "")
	case largest > memory:
		s.warn(check, t.name, fmt.Sprintf("%s: the events of a record batch above %s, a sixteenth of fold_memory, would be dead letters", units.ShortBytes(largest), units.ShortBytes(memory)),
			fmt.Sprintf("raise fold_memory to %dMiB, or lower max.message.bytes", (16*largest+units.MiB-1)/units.MiB))
	default:
		s.ok(check, t.name, units.ShortBytes(largest))
	}
}

// judgeDeadLetters checks the topic for a topic's dead letters.
func judgeDeadLetters(s *section, t *topicFacts) {
	const check = "dead letters"
	d := t.deadLetters
	partitions := units.Plural(int64(len(d.partitions)), "partition")
	if !s.described(check, d, "with "+units.Plural(int64(len(t.partitions)), "partition"), "write", ": an invalid event would halt its partition") {
		return
	}
	before := len(s.all)
	if len(d.partitions) < len(t.partitions) {
		s.warn(check, d.name, fmt.Sprintf("it has %s, and its source %d: some would be added", partitions, len(t.partitions)),
			"add them, or let this user alter the topic: a dead letter goes to its source's partition")
	}
	if policy := d.settings["cleanup.policy"]; strings.Contains(policy, "compact") {
		s.warn(check, d.name, "cleanup.policy="+policy+": of dead letters with equal keys only the last would stay", "set cleanup.policy=delete")
	}
	ours, errOurs := strconv.ParseInt(d.settings["max.message.bytes"], 10, 64)
	theirs, errTheirs := strconv.ParseInt(t.settings["max.message.bytes"], 10, 64)
	if errOurs == nil && errTheirs == nil && ours < theirs {
		s.warn(check, d.name, fmt.Sprintf("max.message.bytes %s is less than its source's %s: the dead letter of a larger event has no value", units.ShortBytes(ours), units.ShortBytes(theirs)),
			"raise it to its source's")
	}
	if len(s.all) > before {
		return
	}
	if kept, limited := d.settings.Retention(); limited {
		partitions += ", kept for " + units.ShortDuration(kept)
	}
	s.ok(check, d.name, partitions)
}
