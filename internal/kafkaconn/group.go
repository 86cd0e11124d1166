package kafkaconn

// Consumer groups: their members, and the reasons that a group refuses this program.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// Group is a coordinator's description of a group.
type Group struct {
	State  string
	Kind   string // the protocol type: consumer, connect
	Shares string // the assignor that its members have agreed on
	// Listed: the group is listed but cannot be described, since it uses another protocol than the classic
	// one: that of group.protocol=consumer (KIP-848), or that of share groups.
	Listed  bool
	Members []string // client ids and hosts
}

// Others returns the members of other programs, by their client ids.
func (g *Group) Others() []string {
	return slices.DeleteFunc(slices.Clone(g.Members), func(m string) bool { return strings.HasPrefix(m, ClientID+" at ") })
}

// DescribeGroup requests the description of a group from its coordinator.
func DescribeGroup(ctx context.Context, client *kafka.Client, name string) (Group, error) {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	r, err := client.Transport.RoundTrip(ctx, client.Addr, &describegroups.Request{Groups: []string{name}})
	if err != nil {
		return Group{}, fmt.Errorf("describe group %s: %w", name, err)
	}
	described, ok := r.(*describegroups.Response)
	if !ok || len(described.Groups) != 1 {
		return Group{}, fmt.Errorf("describe group %s: an unexpected answer", name)
	}
	d := described.Groups[0]
	if code := kafka.Error(d.ErrorCode); code != 0 && !errors.Is(code, kafka.GroupIdNotFound) { // another protocol
		return Group{}, fmt.Errorf("describe group %s: %w", name, code)
	}
	g := Group{State: d.GroupState, Kind: d.ProtocolType, Shares: d.ProtocolData}
	for _, m := range d.Members {
		g.Members = append(g.Members, m.ClientID+" at "+strings.TrimPrefix(m.ClientHost, "/"))
	}
	if len(g.Members) == 0 && (g.State == "Dead" || g.State == "") {
		list, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
		g.Listed = err == nil && slices.ContainsFunc(list.Groups, func(l kafka.ListGroupsResponseGroup) bool { return l.GroupID == name })
	}
	return g, nil
}

// Sessions holds the shortest and the longest session timeout that a broker accepts.
type Sessions struct{ Shortest, Longest time.Duration }

const (
	shortestSession = "group.min.session.timeout.ms"
	longestSession  = "group.max.session.timeout.ms"
)

// SessionsOf requests a broker's limits of session timeouts.
func SessionsOf(ctx context.Context, client *kafka.Client, broker int) (bounds Sessions, err error) {
	r, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeBroker, ResourceName: strconv.Itoa(broker), ConfigNames: []string{shortestSession, longestSession}},
	}})
	if err == nil && len(r.Resources) == 1 {
		err = r.Resources[0].Error
	}
	if err != nil {
		return bounds, fmt.Errorf("read the configuration of broker %d: %w", broker, err)
	}
	of := map[string]*time.Duration{shortestSession: &bounds.Shortest, longestSession: &bounds.Longest}
	for _, resource := range r.Resources {
		for _, e := range resource.ConfigEntries {
			if to := of[e.ConfigName]; to != nil {
				if *to, err = time.ParseDuration(e.ConfigValue + "ms"); err != nil {
					return bounds, fmt.Errorf("read %s of broker %d: %w", e.ConfigName, broker, err)
				}
			}
		}
	}
	if bounds.Longest == 0 {
		return bounds, fmt.Errorf("broker %d doesn't report %s", broker, longestSession)
	}
	return bounds, nil
}

// GroupError reports why a group refuses this program, and the remedy.
type GroupError struct {
	Group, What, Remedy string
	Err                 error
}

func (e *GroupError) Error() string {
	return fmt.Sprintf("group %s: %s: %s", e.Group, e.What, e.Remedy)
}
func (e *GroupError) Unwrap() error { return e.Err }

// Remedies for a group that other programs use.
const (
	AnotherProtocol = "use another kafka.group, or stop its members: they use another protocol (group.protocol=consumer, or a share group), and this program the classic one"
	AnotherProgram  = "use another kafka.group: another program is in this one"
)

// unreadable is the start of kafka-go's error if the leader of the group cannot read another member's
// metadata, because that has more fields than kafka-go knows. The error ends with the text of a nil error.
const unreadable = "unable to read metadata for member"

// ExplainJoin turns an error of joining a group into a *GroupError if it has one of these codes or causes:
//
//	-1   a group with the protocol of group.protocol=consumer
//	23   members that use another assignor, or a share group
//	26   a session timeout that the broker refuses
//	     another program with the same assignor, whose members send more metadata
//
// It returns any other error unchanged.
func ExplainJoin(ctx context.Context, client *kafka.Client, group string, session time.Duration, err error) error {
	told := func(what, remedy string) error { return &GroupError{group, what, remedy, err} }
	switch code, _ := errors.AsType[kafka.Error](err); {
	case code == kafka.InvalidSessionTimeout:
		return told(fmt.Sprintf("kafka.session_timeout is %v, which %s", session, takes(ctx, client)), "set kafka.session_timeout within that")
	case strings.Contains(err.Error(), unreadable):
		g, _ := DescribeGroup(ctx, client, group)
		return &GroupError{group, "it has members of another program" + among(g.Others()), AnotherProgram, errOtherMembers}
	case code == kafka.Unknown, code == kafka.InconsistentGroupProtocol:
		switch g, asked := DescribeGroup(ctx, client, group); {
		case asked != nil:
			return err
		case g.Listed:
			return told("it isn't a classic group", AnotherProtocol)
		case code == kafka.InconsistentGroupProtocol && len(g.Members) > 0:
			return told(fmt.Sprintf("its members share by %q, and this program by %q%s", g.Shares, kafka.RoundRobinGroupBalancer{}.ProtocolName(), among(g.Members)), AnotherProgram)
		}
	}
	return err
}

var errOtherMembers = errors.New("kafka-go can't read what another member says of itself")

func among(members []string) string {
	if len(members) == 0 {
		return ""
	}
	return " (" + strings.Join(members, ", ") + ")"
}

// takes describes the session timeouts that the brokers accept.
func takes(ctx context.Context, client *kafka.Client) string {
	const settings = shortestSession + " and " + longestSession
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
	if err == nil {
		for _, b := range m.Brokers {
			bounds, err := SessionsOf(ctx, client, b.ID)
			if err == nil {
				return fmt.Sprintf("isn't within %v and %v, the %s of broker %d", bounds.Shortest, bounds.Longest, settings, b.ID)
			}
		}
	}
	return "isn't within " + settings + " of the brokers"
}
