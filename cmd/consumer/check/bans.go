package check

import (
	"errors"
	"strings"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/kafkaconn"
)

// judgeBans checks the bans topic.
func judgeBans(s *section, t *topicFacts) {
	const check = "bans topic"
	switch {
	case errors.Is(t.err, kafkaconn.ErrNoTopic):
		s.ok(check, t.name, "does not exist: it would be created, compacted, with one partition, if this user has the permission")
		return
	case deniedBy(t.err):
		s.wrong(check, t.name, "it does not exist, or this user may not describe it", "let this user describe and read it: no events are applied before the bans are read")
		return
	case t.err != nil:
		s.wrong(check, t.name, t.err.Error(), "check the brokers' logs: no events are applied before the bans are read")
		return
	}
	if other, ok := errors.AsType[*kafkaconn.TopicError](bans.Topic(t.name).Check(len(t.partitions), t.settings)); ok {
		s.wrong(check, t.name, "it "+other.What, other.Remedy)
		return
	}
	if least := len(t.partitions[0].Replicas); least == 1 { // Kafka has no topic without partitions
		s.warn(check, t.name, "one copy: a broker that is lost takes the bans along", "use 3 replicas, min.insync.replicas 2")
	}
	switch {
	case deniedBy(t.settingsErr):
		s.unchecked(check, t.name, "no right to read the topic's configuration", "let this user DescribeConfigs, or check yourself that cleanup.policy is compact")
	case t.settingsErr != nil:
		s.unchecked(check, t.name, t.settingsErr.Error(), "look again")
	default:
		s.ok(check, t.name, "1 partition, cleanup.policy="+strings.TrimSpace(t.settings["cleanup.policy"]))
	}
}
