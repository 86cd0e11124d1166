package kafkaconn

// The rights of this program's user in Kafka. They are read from brokers' reports before anything is done,
// so that nothing must be tried. Otherwise a missing right to write dead letters would only be noticed at
// the first bad event.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// Right is a right that this program uses. Every right except DescribeConfigs implies the right to
// Describe.
type Right struct {
	Operation     kafka.ACLOperationType
	Topic         string // the topic, or else
	TransactionID string // the transactional id, for which only Write is looked up, or else
	Group         string // the group
	For           string // the purpose: "to read events"
	Optional      bool   // the consumer works without it
}

// Resource names the resource of the right: "topic points".
func (r Right) Resource() string {
	switch {
	case r.Topic != "":
		return "topic " + r.Topic
	case r.TransactionID != "":
		return "transactional-id " + r.TransactionID
	}
	return "group " + r.Group
}

// Grant returns the arguments of kafka-acls that grant the right, without the user's.
func (r Right) Grant() string { return fmt.Sprintf("--operation %s --%s", r.Operation, r.Resource()) }

// RightsError reports missing rights that the program requires.
type RightsError struct{ Missing []Right }

func (e *RightsError) Error() string {
	var all []string
	for _, r := range e.Missing {
		all = append(all, fmt.Sprintf("no right to %s %s, which is needed %s", r.Operation, r.Resource(), r.For))
	}
	return "Kafka's ACLs: " + strings.Join(all, "; ")
}

// CheckRights returns a *RightsError if this user lacks a right that is not optional.
func CheckRights(ctx context.Context, client *kafka.Client, rights ...Right) error {
	missing, err := MissingRights(ctx, client, rights)
	if err != nil {
		return err
	}
	return required(missing)
}

// required returns an error for the missing rights that are not optional, or nil.
func required(missing []Right) error {
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

// MissingRights returns the rights that this user lacks. Brokers without an authorizer grant all. A right
// that a broker does not report counts as granted: rights on a topic that does not exist, and all rights
// before Kafka 2.3.
func MissingRights(ctx context.Context, client *kafka.Client, rights []Right) ([]Right, error) {
	var topics []string
	groups, transactions := map[string]int32{}, map[string]int32{}
	for _, r := range rights {
		switch {
		case r.Topic != "":
			topics = append(topics, r.Topic)
		case r.TransactionID != "":
			transactions[r.TransactionID] = 0
		default:
			groups[r.Group] = 0
		}
	}
	granted, err := topicRights(ctx, client, topics)
	if err != nil {
		return nil, err
	}
	for _, query := range []struct {
		of     map[string]int32
		rights func(context.Context, *kafka.Client, string) (int32, error)
	}{{groups, groupRights}, {transactions, transactionRights}} {
		for name := range query.of {
			err := RetryTransient(ctx, client, func() (err error) {
				query.of[name], err = query.rights(ctx, client, name)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	var missing []Right
	for _, r := range rights {
		bits := granted[r.Topic]
		switch {
		case r.Topic != "":
		case r.TransactionID != "":
			bits = transactions[r.TransactionID]
		default:
			bits = groups[r.Group]
		}
		if bits&(1<<r.Operation) == 0 {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// Rights are bit sets by the numbers of operations (KIP-430).
const (
	noRight    int32 = 0
	everything int32 = -1 // unknown rights count as granted
)

// reported returns the rights in a broker's answer. A broker that does not report them sends 0, or the
// lowest number if it knows the request; but a user who may see a resource always has the right to describe
// it.
func reported(bits int32) int32 {
	if bits&(1<<kafka.ACLOperationTypeDescribe) == 0 {
		return everything
	}
	return bits
}

func topicRights(ctx context.Context, client *kafka.Client, topics []string) (map[string]int32, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	reply, err := describeTopics(ctx, client, 4, true, topics)
	if err != nil {
		return nil, fmt.Errorf("ask what this user may do with %s: %w", strings.Join(topics, ", "), err)
	}
	granted := map[string]int32{}
	for _, t := range topics {
		granted[t] = everything
	}
	for _, t := range reply.Topics {
		switch code := kafka.Error(t.ErrorCode); {
		case t.Topic == nil:
		case errors.Is(code, kafka.TopicAuthorizationFailed):
			granted[*t.Topic] = noRight
		case t.ErrorCode == 0:
			granted[*t.Topic] = reported(t.AuthorizedOperations)
		}
	}
	return granted, nil
}

func groupRights(ctx context.Context, client *kafka.Client, group string) (int32, error) {
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
			return reported(g.AuthorizedOperations), nil
		case errors.Is(code, kafka.GroupAuthorizationFailed):
			return noRight, nil
		case errors.Is(code, kafka.GroupIdNotFound): // the group was never used
		default:
			return noRight, fmt.Errorf("ask what this user may do with group %s: %w", group, code)
		}
	}
	return everything, nil
}
