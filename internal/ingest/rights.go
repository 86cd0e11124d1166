package ingest

// What this program's user may do in Kafka: asked before anything is done, by what
// brokers tell of themselves, so that nothing has to be tried. Else the right to
// write dead letters would be missed when the first bad event comes.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/describegroups"
	"github.com/segmentio/kafka-go/protocol/metadata"

	"github.com/standings/standings/internal/ingest/connect"
)

// Right is one that this program can use. The right to Describe comes with any of
// the others but DescribeConfigs.
type Right struct {
	Operation kafka.ACLOperationType
	Topic     string // the topic, or else
	Group     string // the group
	For       string // what isn't possible without it: "to read events"
	Optional  bool   // the consumer works without it
}

// Resource is what the right is about: "topic points".
func (r Right) Resource() string {
	if r.Topic != "" {
		return "topic " + r.Topic
	}
	return "group " + r.Group
}

// Grant is what gives it, as arguments of kafka-acls beside the user's.
func (r Right) Grant() string { return fmt.Sprintf("--operation %s --%s", r.Operation, r.Resource()) }

// Needs are the rights that a consumer of these topics uses, as docs/security.md
// lists them.
func Needs(group string, topics ...string) []Right {
	all := []Right{{Operation: kafka.ACLOperationTypeRead, Group: group, For: "to share the partitions and commit"}}
	for _, t := range topics {
		dead := DeadLetterTopic(t)
		all = append(all,
			Right{Operation: kafka.ACLOperationTypeRead, Topic: t, For: "to read events"},
			Right{Operation: kafka.ACLOperationTypeWrite, Topic: dead, For: "to write dead letters"},
			Right{Operation: kafka.ACLOperationTypeDescribeConfigs, Topic: t, For: "to check its cleanup policy and retention", Optional: true},
			Right{Operation: kafka.ACLOperationTypeAlter, Topic: dead, For: "to add partitions when its source grows", Optional: true},
		)
	}
	return all
}

// RightsError says which rights are missing that the consumer can't do without.
type RightsError struct{ Missing []Right }

func (e *RightsError) Error() string {
	var all []string
	for _, r := range e.Missing {
		all = append(all, fmt.Sprintf("no right to %s %s, which is needed %s", r.Operation, r.Resource(), r.For))
	}
	return "Kafka's ACLs: " + strings.Join(all, "; ")
}

// Required is the error of rights that are missing and not optional; nil if there
// are none.
func Required(missing []Right) error {
	e := &RightsError{}
	for _, r := range missing {
		if !r.Optional {
			e.Missing = append(e.Missing, r)
		}
	}
	if len(e.Missing) == 0 {
		return nil
	}
	return e
}

// Missing are those of the rights that this user doesn't have. Brokers without an
// authorizer grant all. What a broker doesn't tell isn't missing: rights on a topic
// that doesn't exist, and brokers before Kafka 2.3.
func Missing(ctx context.Context, client *kafka.Client, rights []Right) ([]Right, error) {
	var topics []string
	groups := map[string]int32{}
	for _, r := range rights {
		if r.Topic != "" {
			topics = append(topics, r.Topic)
		} else {
			groups[r.Group] = 0
		}
	}
	granted, err := topicRights(ctx, client, topics)
	if err != nil {
		return nil, err
	}
	for g := range groups {
		if groups[g], err = groupRights(ctx, client, g); err != nil {
			return nil, err
		}
	}
	var missing []Right
	for _, r := range rights {
		bits := granted[r.Topic]
		if r.Topic == "" {
			bits = groups[r.Group]
		}
		if bits&(1<<r.Operation) == 0 {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// Rights are a set of bits by the numbers of operations (KIP-430).
const (
	noRight    int32 = 0
	everything int32 = -1 // what isn't known isn't missing
)

// told makes of a broker's answer what it says. One that leaves it out says 0, or
// the lowest number where it knows the question; but who may see a resource has the
// right to describe it.
func told(bits int32) int32 {
	if bits&(1<<kafka.ACLOperationTypeDescribe) == 0 {
		return everything
	}
	return bits
}

func topicRights(ctx context.Context, client *kafka.Client, topics []string) (map[string]int32, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	q := &rightsQuestion{Request: metadata.Request{TopicNames: topics, IncludeTopicAuthorizedOperations: true}}
	if _, err := client.Transport.RoundTrip(ctx, client.Addr, q); err != nil {
		return nil, fmt.Errorf("ask what this user may do with %s: %w", strings.Join(topics, ", "), err)
	}
	granted := map[string]int32{}
	for _, t := range topics {
		granted[t] = everything
	}
	for _, t := range q.response.Topics {
		switch code := kafka.Error(t.ErrorCode); {
		case errors.Is(code, kafka.TopicAuthorizationFailed):
			granted[t.Name] = noRight
		case t.ErrorCode == 0:
			granted[t.Name] = told(t.TopicAuthorizedOperations)
		}
	}
	return granted, nil
}

// rightsQuestion is a metadata request that the transport doesn't answer from what
// it remembers, which holds no rights.
type rightsQuestion struct {
	metadata.Request
	version  int16
	response *metadata.Response
}

// Required says that the exchange is ours, and learns the connection's version.
func (q *rightsQuestion) Required(versions map[protocol.ApiKey]int16) bool {
	q.version = versions[protocol.Metadata]
	return true
}

// RawExchange asks. It answers with the question, as the transport has its own ideas
// of a metadata response.
func (q *rightsQuestion) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	m, err := protocol.RoundTrip(rw, q.version, 1, connect.ClientID, &q.Request)
	if err != nil {
		return nil, err
	}
	q.response = m.(*metadata.Response)
	return q, nil
}

// groupRights asks again for a while where the group has no coordinator yet: on a
// cluster that nobody has used a group of, the question itself makes one.
func groupRights(ctx context.Context, client *kafka.Client, group string) (int32, error) {
	wait := newWait()
	for began := time.Now(); ; {
		bits, err := askGroupRights(ctx, client, group)
		settling := errors.Is(err, kafka.NotCoordinatorForGroup) || errors.Is(err, kafka.GroupCoordinatorNotAvailable) ||
			errors.Is(err, kafka.GroupLoadInProgress)
		if !settling || time.Since(began) > settlesWithin || wait.next(ctx) != nil {
			return bits, err
		}
	}
}

const settlesWithin = 2 * time.Second

func askGroupRights(ctx context.Context, client *kafka.Client, group string) (int32, error) {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	m, err := client.Transport.RoundTrip(ctx, client.Addr, &describegroups.Request{
		Groups: []string{group}, IncludeAuthorizedOperations: true,
	})
	if err != nil {
		return noRight, fmt.Errorf("ask what this user may do with group %s: %w", group, err)
	}
	for _, g := range m.(*describegroups.Response).Groups {
		switch code := kafka.Error(g.ErrorCode); {
		case g.ErrorCode == 0:
			return told(g.AuthorizedOperations), nil
		case errors.Is(code, kafka.GroupAuthorizationFailed):
			return noRight, nil
		case errors.Is(code, kafka.GroupIdNotFound): // never used yet
		default:
			return noRight, fmt.Errorf("ask what this user may do with group %s: %w", group, code)
		}
	}
	return everything, nil
}
