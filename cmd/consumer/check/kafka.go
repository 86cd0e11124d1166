package check

// judgeKafka checks that the cluster is reachable, and what the consumer needs there.

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/units"
)

func judgeKafka(f *kafkaFacts, cfg *config.Config, rules *fold.Rules, notRedis error) []finding {
	s := &section{name: sectionKafka}
	judgeBootstrap(s, f.bootstrap)
	if f.err != nil {
		s.unchecked("topics, group, start", "", "Kafka didn't tell", "")
		return s.all
	}
	judgeCluster(s, f)
	for i := range f.topics {
		judgeTopic(s, &f.topics[i], rules, app.LargestBatch(cfg))
	}
	judgeBans(s, f.bans)
	judgeFinal(s, f)
	judgeKafkaRights(s, f)
	judgeSessions(s, f.brokers, cfg.Kafka.SessionTimeout)
	judgeGroup(s, &f.group, cfg.Kafka.Group)
	for i := range f.topics {
		if f.topics[i].err == nil {
			judgeStarts(s, &f.topics[i], cfg.Start, notRedis)
		}
	}
	return s.all
}

func judgeBootstrap(s *section, all []reached) {
	var there []string
	for _, r := range all {
		if r.err == nil {
			there = append(there, r.address)
		}
	}
	if len(there) > 0 {
		s.ok("brokers", "", fmt.Sprintf("%d of %d addresses answer: %s", len(there), len(all), strings.Join(there, ", ")))
	}
	for _, r := range all {
		switch {
		case r.err == nil:
		case len(there) > 0:
			s.warn("brokers", r.address, r.err.Error(), "start it, or take it out of kafka.brokers: the others are enough to find the cluster")
		default:
			s.wrong("brokers", r.address, r.err.Error(), remedyAt(r.err, "see that kafka.brokers names the cluster, and that it runs"))
		}
	}
}

// judgeSessions compares the session timeout with the limits of every broker, because any broker can become
// the group's coordinator.
func judgeSessions(s *section, all []brokerFacts, session time.Duration) {
	const check = "session timeout"
	for _, b := range all {
		name := fmt.Sprintf("broker %d", b.id)
		ours, limits := units.FormatDuration(session), units.FormatDuration(b.sessions.Shortest)+" to "+units.FormatDuration(b.sessions.Longest)
		switch {
		case b.err != nil:
		case b.sessionsErr != nil:
			s.unchecked(check, name, b.sessionsErr.Error(), fmt.Sprintf("see that %s lies within group.min. and group.max.session.timeout.ms", ours))
		case session < b.sessions.Shortest || session > b.sessions.Longest:
			s.wrong(check, name, fmt.Sprintf("kafka.session_timeout is %s, and %s are allowed", ours, limits),
				"set kafka.session_timeout within that: the group takes no member with another")
		default:
			s.ok(check, name, fmt.Sprintf("%s, of %s", ours, limits))
		}
	}
}

// remedyAt returns the remedy for an unreachable broker. A broker that refused the connection already named
// the cause.
func remedyAt(err error, otherwise string) string {
	if errors.As(err, new(*kafkaconn.Refusal)) {
		return "see docs/security.md: kafka.tls and kafka.sasl must match its listener"
	}
	return otherwise
}

func judgeKafkaRights(s *section, f *kafkaFacts) {
	const check = "rights"
	if f.rightsErr != nil {
		s.unchecked(check, "", f.rightsErr.Error(), "")
		return
	}
	for _, r := range f.missing {
		report := s.wrong
		if r.Optional {
			report = s.warn
		}
		report(check, r.Resource(), fmt.Sprintf("no right to %s, which is needed %s", r.Operation, r.For),
			"kafka-acls --add --allow-principal User:… "+r.Grant())
	}
	if len(f.missing) == 0 {
		s.ok(check, "", "none is missing, as far as brokers tell")
	}
}

func judgeCluster(s *section, f *kafkaFacts) {
	s.ok("cluster", "", fmt.Sprintf("%s, %s", f.cluster, units.Plural(int64(len(f.brokers)), "broker")))
	var there []string
	for _, b := range f.brokers {
		name := fmt.Sprintf("broker %d", b.id)
		if b.err != nil {
			s.wrong("advertised address", name, b.err.Error(),
				remedyAt(b.err, "the cluster gives its clients this address: see that the broker runs, and that advertised.listeners can be reached from here"))
			continue
		}
		there = append(there, b.address)
	}
	if len(there) == len(f.brokers) {
		s.ok("advertised address", "", "all brokers reply at their advertised addresses: "+units.Names(there))
	}
}

// groupDeals is the name of the assignor with which the consumer joins.
var groupDeals = kafka.RoundRobinGroupBalancer{}.ProtocolName()

func judgeGroup(s *section, g *groupFacts, name string) {
	const check = "group"
	members := units.Plural(int64(len(g.Members)), "member")
	switch {
	case g.err != nil:
		s.unchecked(check, name, g.err.Error(), "let this user describe the group")
	case g.unused:
		s.ok(check, name, "no group was used on this cluster yet")
	case g.Listed:
		s.wrong(check, name, "a group of this name uses another protocol: the consumer waits while it has members", kafkaconn.AnotherProtocol)
	case len(g.Members) == 0 && (g.State == "Dead" || g.State == ""):
		s.ok(check, name, "not there yet: the first member makes it")
	case len(g.Members) == 0:
		s.ok(check, name, "no members; "+strings.ToLower(g.State))
	case g.Kind != "consumer":
		s.wrong(check, name, fmt.Sprintf("its %s are of type %q, not of consumers", members, g.Kind), "use another kafka.group")
	case g.Shares != "" && g.Shares != groupDeals:
		s.wrong(check, name, fmt.Sprintf("its %s share by %q, and this program by %q: %s",
			members, g.Shares, groupDeals, units.Names(g.Members)),
			kafkaconn.AnotherProgram)
	case len(g.Others()) > 0:
		s.wrong(check, name, "it has members of another program, which cannot share partitions with this one: "+units.Names(g.Others()), kafkaconn.AnotherProgram)
	default:
		s.ok(check, name, fmt.Sprintf("%s, %s: %s; another one shares its partitions",
			members, strings.ToLower(g.State), units.Names(g.Members)))
	}
}
