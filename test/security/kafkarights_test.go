package security

// Kafka's ACLs: with those that docs/security.md lists, everything works. If one is missing, a consumer names it
// at its start.

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/test/harness"
)

// right is one line of the document.
type right struct {
	operation string // Read
	kind      string // topic, group or transactional-id
	name      string // points, points.dlq or standings
}

func (r right) String() string { return fmt.Sprintf("%s %s %s", r.operation, r.kind, r.name) }

var grant = regexp.MustCompile(`--operation (\w+) --(topic|group|transactional-id) (\S+)`)

// leastRights returns the rights in the document's commands between two marks.
func leastRights(t *testing.T, of string) []right {
	t.Helper()
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "<!-- least Kafka rights: "+of+" -->")
	commands, _, ended := strings.Cut(rest, "<!-- end -->")
	var all []right
	for _, m := range grant.FindAllStringSubmatch(commands, -1) {
		all = append(all, right{m[1], m[2], m[3]})
	}
	if !found || !ended || len(all) == 0 {
		t.Fatalf("docs/security.md has no list of the rights %s", of)
	}
	return all
}

// here translates the document's names to the names of a place.
func (r right) here(place *harness.Place) right {
	switch {
	case r.kind == "group" && r.name == "standings":
		r.name = place.Group
	case r.kind == "topic" && r.name == "points":
		r.name = place.Topic
	case r.kind == "topic" && r.name == "points.dlq":
		r.name = place.DeadLetterTopic()
	case r.kind == "topic" && r.name == "points.bans":
		r.name = place.Topic + ".bans"
	case r.kind == "topic" && strings.HasPrefix(r.name, "points.final"):
		r.name = place.Topic + strings.TrimPrefix(r.name, "points")
	case r.kind == "transactional-id" && r.name == "standings.lb.final":
		r.name = place.Group + "." + place.Prefix + ".final"
	default:
		panic("no such thing as " + r.String())
	}
	return r
}

func (r right) acl(t *testing.T) *kadm.ACLBuilder {
	t.Helper()
	operation, err := kmsg.ParseACLOperation(r.operation)
	if err != nil {
		t.Fatal(err)
	}
	b := kadm.NewACLs().ResourcePatternType(kadm.ACLPatternLiteral).Operations(operation).Allow("User:" + limited).AllowHosts()
	switch r.kind {
	case "group":
		return b.Groups(r.name)
	case "transactional-id":
		return b.TransactionalIDs(r.name)
	}
	return b.Topics(r.name)
}

// allow grants rights on a place's topics and group, and returns when they are in force.
func (s *secured) allow(t *testing.T, place *harness.Place, rights ...right) {
	t.Helper()
	for _, r := range rights {
		made, err := s.admin.CreateACLs(t.Context(), r.here(place).acl(t))
		if err != nil || len(made) != 1 || made[0].Err != nil {
			t.Fatalf("allow %v: %v, %v", r, made, err)
		}
		s.await(t, place, r, 1)
	}
}

// forbid revokes a right.
func (s *secured) forbid(t *testing.T, place *harness.Place, r right) {
	t.Helper()
	gone, err := s.admin.DeleteACLs(t.Context(), r.here(place).acl(t))
	if err != nil || len(gone) != 1 || gone[0].Err != nil {
		t.Fatalf("forbid %v: %v, %v", r, gone, err)
	}
	s.await(t, place, r, 0)
}

// await waits until the broker applies a change.
func (s *secured) await(t *testing.T, place *harness.Place, r right, n int) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		found, err := s.admin.DescribeACLs(t.Context(), r.here(place).acl(t))
		if err != nil || len(found) != 1 || len(found[0].Described) != n {
			return fmt.Sprintf("%v: %v, %v", r, found, err)
		}
		return ""
	})
}

// asLimited returns a place whose consumers have only the rights that a test grants.
func (s *secured) asLimited(t *testing.T, withDeadLetters bool) *harness.Place {
	t.Helper()
	place := s.place(t, s.userSettings(withPassword, limited, "scram-sha-512"))
	if withDeadLetters {
		s.CreateTopic(t, place.DeadLetterTopic(), 1, nil)
	}
	return place
}

func (s *secured) theLeastRightsAreEnough(t *testing.T) {
	t.Parallel()
	place := s.asLimited(t, true)
	s.allow(t, place, leastRights(t, "run")...)
	place.Publish(t, some()...)
	c := place.Start(t)
	place.AwaitCaughtUp(t, within)
	statusSeesAll(t, place)
	if out := string(place.Command(t, "check")); !strings.Contains(out, "The consumer would work") {
		t.Errorf("check isn't content:\n%s", out)
	}
	place.Publish(t, some()...)
	place.AwaitCaughtUp(t, within)
	c.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
	if n := c.Log.Count("no right to read the topic's configuration: its cleanup policy and retention aren't checked"); n != 1 {
		t.Errorf("that the configuration can't be read is said %d times", n)
	}
}

func (s *secured) oneRightLessIsRefused(t *testing.T) {
	least := leastRights(t, "run")
	var needed []string
	for _, r := range topics.Needs("standings", "points") {
		if !r.Optional {
			needed = append(needed, r.Operation.String()+" "+r.Resource())
		}
	}
	if len(needed) != len(least) {
		t.Errorf("the document lists %v, and the consumer looks for %v", least, needed)
	}
	for i, less := range least {
		t.Run(less.String(), func(t *testing.T) {
			t.Parallel()
			place := s.asLimited(t, true)
			for j, r := range least {
				if j != i {
					s.allow(t, place, r)
				}
			}
			refuses(t, place, nil, []string{"no right to " + less.here(place).String() + ", which is needed to"}, "run")
			// The right to describe it is not enough either, and the check detects this as well.
			s.allow(t, place, right{"Describe", less.kind, less.name})
			refuses(t, place, nil, []string{"no right to " + less.here(place).String() + ", which is needed to"}, "run")
			code, out := place.Says(t, nil, "check", "--json")
			if missing := less.here(place); code != 1 || !strings.Contains(out, "no right to "+missing.operation+", which is needed to") || !strings.Contains(out, missing.name) {
				t.Errorf("check ends with code %d and doesn't miss %v:\n%s", code, missing, out)
			}
			if letters := place.DeadLetters(t); len(letters) > 0 || len(place.Ledger(t)) > 0 {
				t.Error("something was begun")
			}
		})
	}
}

func (s *secured) toPublishTakesWrite(t *testing.T) {
	t.Parallel()
	place := s.asLimited(t, false)
	for _, r := range leastRights(t, "produce") {
		s.allow(t, place, right{"Describe", r.kind, r.name})
		refuses(t, place, nil, []string{"no right to " + r.here(place).String() + ", which is needed to publish events"}, "produce", "--count", "3")
		s.forbid(t, place, right{"Describe", r.kind, r.name})
		refuses(t, place, nil, []string{"not authorized for topic " + place.Topic}, "produce", "--count", "3")
		s.allow(t, place, r)
	}
	if out := place.Command(t, "produce", "--count", "3"); !strings.Contains(string(out), "published 3 events") {
		t.Errorf("produce says %s", out)
	}
	refuses(t, place, nil, []string{"not authorized for group " + place.Group}, "status")
}

func (s *secured) toReadDeadLettersTakesRead(t *testing.T) {
	t.Parallel()
	place := s.asLimited(t, true)
	for _, r := range leastRights(t, "dead-letters") {
		refuses(t, place, nil, []string{"not authorized for topic " + place.DeadLetterTopic()}, "dead-letters", "list")
		s.allow(t, place, right{"Write", r.kind, r.name}) // run has this right, too
		refuses(t, place, nil, []string{"no right to " + r.here(place).String() + ", which is needed to read dead letters"}, "dead-letters", "list")
		s.allow(t, place, r)
	}
	if out := place.Command(t, "dead-letters", "list"); !strings.Contains(string(out), "0 events in 0 letters") {
		t.Errorf("dead-letters list says %s", out)
	}
}

// withBans returns a place of the limited user whose consumers apply bans.
func (s *secured) withBans(t *testing.T, made bool) *harness.Place {
	t.Helper()
	place := s.asLimited(t, true)
	topic := place.Topic + ".bans"
	if place.Settings["kafka.bans_topic"] = topic; made {
		s.CreateTopic(t, topic, 1, map[string]string{"cleanup.policy": "compact"})
	}
	return place
}

func (s *secured) toHeedBansTakesRead(t *testing.T) {
	t.Parallel()
	place := s.withBans(t, true)
	s.allow(t, place, leastRights(t, "run")...)
	for _, r := range leastRights(t, "run with bans") {
		refuses(t, place, nil, []string{"no right to " + r.here(place).String() + ", which is needed to know who is banned"}, "run")
		s.allow(t, place, r)
	}
	place.Publish(t, some()...)
	c := place.Start(t)
	place.AwaitCaughtUp(t, within)
	code, out := place.Says(t, s.userSettings(withPassword, admin, "scram-sha-512"), "ban", "a", "--reason", "aimbot", "--wait", "30s")
	if code != 0 || strings.Contains(out, "recorded") {
		t.Errorf("ban ends with code %d: %s", code, out)
	}
	for name, members := range place.Boards(t) {
		if _, shown := members["a"]; shown {
			t.Errorf("a is banned, and in %s", name)
		}
	}
	if n := c.Log.Count("no right to read the topic's configuration: it isn't checked that it is compacted"); n != 1 {
		t.Errorf("that the configuration can't be read is said %d times", n)
	}
}

func (s *secured) toBanTakesReadAndWrite(t *testing.T) {
	least := leastRights(t, "ban")
	for i, less := range least {
		t.Run("without "+less.String(), func(t *testing.T) {
			t.Parallel()
			place := s.withBans(t, true)
			for _, args := range [][]string{{"ban", "a", "--reason", "aimbot"}, {"unban", "a"}, {"erase", "a", "--yes"}} {
				refuses(t, place, nil, []string{"not authorized for topic " + place.Topic + ".bans"}, args...)
			}
			for j, r := range least {
				if j != i {
					s.allow(t, place, r)
				}
			}
			for _, args := range [][]string{{"ban", "a", "--reason", "aimbot"}, {"unban", "a"}, {"erase", "a", "--yes"}} {
				refuses(t, place, nil, []string{"no right to " + less.here(place).String() + ", which is needed to "}, args...)
			}
		})
	}
	for _, made := range []bool{true, false} {
		t.Run(fmt.Sprint("on a topic that is there: ", made), func(t *testing.T) {
			t.Parallel()
			place := s.withBans(t, made)
			s.allow(t, place, least...)
			if !made {
				create := right{"Create", "topic", "points.bans"}
				refuses(t, place, nil, []string{"no right to " + create.here(place).String() + ", which is needed as it doesn't exist"}, "ban", "a", "--reason", "aimbot")
				s.allow(t, place, create)
			}
			for _, args := range [][]string{{"ban", "a", "--reason", "aimbot"}, {"unban", "a"}, {"erase", "c", "--yes"}} {
				code, out := place.Says(t, nil, append(args, "--wait", "10ms")...)
				if code != 0 { // no consumer runs, so the ban is only recorded
					t.Errorf("%s ends with code %d: %s", args[0], code, out)
				}
			}
		})
	}
}

func (s *secured) toListBansTakesRead(t *testing.T) {
	t.Parallel()
	place := s.withBans(t, true)
	code, out := place.Says(t, s.userSettings(withPassword, admin, "scram-sha-512"), "ban", "a", "--reason", "aimbot", "--wait", "10ms")
	if code != 0 {
		t.Fatalf("ban ends with code %d: %s", code, out)
	}
	for _, r := range leastRights(t, "bans") {
		refuses(t, place, nil, []string{"not authorized for topic " + place.Topic + ".bans"}, "bans")
		s.allow(t, place, r)
	}
	if out := string(place.Command(t, "bans")); !strings.Contains(out, "aimbot") {
		t.Errorf("bans says %s", out)
	}
	refuses(t, place, nil, []string{"no right to Write topic " + place.Topic + ".bans, which is needed to ban"}, "unban", "a")
}

func (s *secured) deadLetterTopicsAreMade(t *testing.T) {
	t.Parallel()
	const failed = "couldn't create the dead-letter topic; create it, or bad events will hold up their partitions"
	place := s.asLimited(t, false)
	s.allow(t, place, leastRights(t, "run")...)
	c := place.Start(t)
	c.Log.Await(t, within, "generation began")
	if n := c.Log.Count(failed); n != 1 {
		t.Errorf("that dead letters have nowhere to go is said %d times", n)
	}
	c.Terminate(t)
	made := right{"Create", "topic", "points.dlq"}
	s.allow(t, place, made)
	place.Publish(t, some()...)
	c = place.Start(t)
	place.AwaitCaughtUp(t, within)
	c.Terminate(t)
	place.Check(t)
	if n := c.Log.Count(failed); n != 0 {
		t.Errorf("that dead letters have nowhere to go is said %d times", n)
	}

	// A consumer that may create the topic but not write it learns this after creating it.
	place = s.asLimited(t, false)
	s.allow(t, place, leastRights(t, "run")...)
	s.forbid(t, place, right{"Write", "topic", "points.dlq"})
	s.allow(t, place, made, right{"Describe", "topic", "points.dlq"})
	refuses(t, place, nil, []string{"no right to Write topic " + place.DeadLetterTopic()}, "run")
}

func (s *secured) aRightComesAndGoes(t *testing.T) {
	for halt, taken := range map[string]right{
		"fetch ": {"Read", "topic", "points"}, "can't be written to ": {"Write", "topic", "points.dlq"},
	} {
		t.Run(taken.String(), func(t *testing.T) {
			t.Parallel()
			place := s.asLimited(t, true)
			s.allow(t, place, leastRights(t, "run")...)
			c := place.Start(t)
			place.Publish(t, some()...)
			place.AwaitCaughtUp(t, within)
			s.forbid(t, place, taken)
			place.Publish(t, some()...)
			line := c.Log.AwaitHalt(t, within, "kafka")
			if what := fmt.Sprint(line.Fields["what"]); !strings.Contains(what, halt+taken.here(place).name) {
				t.Errorf("it halts for %q", what)
			}
			s.allow(t, place, taken)
			place.AwaitCaughtUp(t, within)
			c.Terminate(t)
			place.Check(t)
		})
	}
}

// If the right to the group is revoked, the process ends: it owns no partitions of other groups, and a new
// process reports the reason at its start.
func (s *secured) aGroupIsTakenAway(t *testing.T) {
	t.Parallel()
	place := s.asLimited(t, true)
	s.allow(t, place, leastRights(t, "run")...)
	c := place.Start(t)
	place.Publish(t, some()...)
	place.AwaitCaughtUp(t, within)
	s.forbid(t, place, right{"Read", "group", "standings"})
	if code := c.AwaitExit(t, within); code != 1 {
		t.Errorf("it ends with code %d", code)
	}
	if reasons := harness.Reasons(c.Log.Text()); !strings.HasPrefix(strings.Join(reasons, "\n"), "not authorized for group "+place.Group) {
		t.Errorf("it doesn't say why it ends:\n%s", c.Log.Tail(5))
	}
}

func (s *secured) toSeeStatusTakesDescribe(t *testing.T) {
	t.Parallel()
	place := s.asLimited(t, false)
	refuses(t, place, nil, []string{"not authorized for topic " + place.Topic}, "status")
	s.allow(t, place, right{"Describe", "topic", "points"})
	refuses(t, place, nil, []string{"not authorized for group " + place.Group}, "status")
	s.allow(t, place, right{"Describe", "group", "standings"})
	got := place.Run(t, nil, "status", "--json") // exit code 1, as no consumer runs
	if out := got.Stdout; !strings.Contains(out, `"problems": []`) || !strings.Contains(out, place.Topic) {
		t.Errorf("status sees %s", out)
	}
}
