package e2e

// Bans, by commands and with real processes: a member leaves every sorted set and continues to earn points.
// Whatever happens to Redis, the bans topic restores the ban.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// banning returns a place with a bans topic.
func banning(t *testing.T, settings map[string]string) *harness.Place {
	t.Helper()
	place := harness.New(t, harness.Options{Partitions: 3, Settings: settings})
	place.Settings["kafka.bans_topic"] = place.Topic + ".bans"
	return place
}

// points returns events of ten members, u0 to u9, on two boards.
func points(round int) (all []*kgo.Record) {
	for i := range 60 {
		all = append(all, harness.Record(i%3, fmt.Sprintf(`{"user_id":"u%d","points":%d,"board":["global","eu"]}`, i%10, (i*7+round)%9+1)))
	}
	return all
}

// orders runs a command about a ban, and requires that Redis reflects it when the command ends.
func orders(t *testing.T, place *harness.Place, args ...string) {
	t.Helper()
	if said := string(place.Command(t, append(args, "--wait", "30s")...)); strings.Contains(said, "recorded") {
		t.Fatalf("consumer %v: %s", args, said)
	}
}

// shown returns the names of the sorted sets that contain a member.
func shown(all map[string]map[string]uint64, member string) (names []string) {
	for name, members := range all {
		if _, ok := members[member]; ok {
			names = append(names, name)
		}
	}
	return names
}

func isGone(t *testing.T, place *harness.Place, member string) {
	t.Helper()
	if names := shown(place.Boards(t), member); len(names) > 0 {
		t.Errorf("%s is banned and in %v", member, names)
	}
	if code, said := says(t, place, nil, "top", "global", "weekly", "--json"); code != 0 || strings.Contains(said, `"`+member+`"`) {
		t.Errorf("top, code %d: %s", code, said)
	}
}

// equalsOracle compares all visible and hidden standings with those of the oracle. banned reports whether a member is
// banned on a board.
func equalsOracle(t *testing.T, place *harness.Place, banned func(board, member string) bool) {
	t.Helper()
	want, err := place.Oracle(t).Expected(place.RedisTime(t))
	if err != nil {
		t.Fatal(err)
	}
	visible, hidden := place.Boards(t), place.Hidden(t)
	for name, members := range want.Boards {
		board, _, _ := strings.Cut(name, ":")
		for member, score := range members {
			in, out := visible[name], hidden[name]
			if banned(board, member) {
				in, out = out, in
			}
			if got, ok := in[member]; !ok || got != score {
				t.Errorf("%s: %s has %x (there: %v), want %x", name, member, got, ok, score)
			}
			if _, ok := out[member]; ok {
				t.Errorf("%s: %s is on the other side, too", name, member)
			}
		}
	}
}

func TestABannedMemberIsGoneAtOnceAndComesBackWithAllThatWasEarned(t *testing.T) {
	t.Parallel()
	for _, shards := range harness.OneAndFive(t) {
		t.Run(shards+" shards", func(t *testing.T) {
			t.Parallel()
			place := banning(t, map[string]string{"redis.shards": shards})
			place.Publish(t, points(0)...)
			place.Start(t)
			place.Start(t)
			place.AwaitCaughtUp(t, within)
			ctx, stop := context.WithCancel(t.Context())
			var traffic sync.WaitGroup
			traffic.Go(func() {
				for n := 1; ctx.Err() == nil; n++ {
					for _, r := range points(n)[:15] {
						place.Stream(context.WithoutCancel(ctx), t, r)
					}
					time.Sleep(20 * time.Millisecond)
				}
			})
			ended := func() { stop(); traffic.Wait(); place.Await() }
			defer ended()
			orders(t, place, "ban", "u3", "--reason", "aimbot")
			isGone(t, place, "u3")
			orders(t, place, "ban", "u4", "--board", "eu", "--reason", "smurf")
			ended()
			place.AwaitCaughtUp(t, within)
			isGone(t, place, "u3")
			equalsOracle(t, place, func(board, member string) bool {
				return member == "u3" || member == "u4" && board == "eu"
			})
			var listed struct {
				Bans []struct {
					Member, Reason, State string
					Board                 *string
					Done                  *bool
				}
			}
			if err := json.Unmarshal(place.Command(t, "bans", "--json"), &listed); err != nil {
				t.Fatal(err)
			}
			if len(listed.Bans) != 2 || listed.Bans[0].Member != "u3" || listed.Bans[0].Reason != "aimbot" || listed.Bans[0].Done == nil || !*listed.Bans[0].Done ||
				listed.Bans[1].Board == nil || *listed.Bans[1].Board != "eu" {
				t.Errorf("bans lists %+v", listed)
			}
			orders(t, place, "unban", "u3")
			var said struct {
				Member, Board, State string
				Done                 bool
				Problem              *string
			}
			if err := json.Unmarshal(place.Command(t, "unban", "u4", "--board", "eu", "--wait", "30s", "--json"), &said); err != nil {
				t.Fatal(err)
			}
			if said.Member != "u4" || said.Board != "eu" || said.State != "shown" || !said.Done || said.Problem != nil {
				t.Errorf("unban says %+v", said)
			}
			place.Check(t)
			if code, said := says(t, place, nil, "unban", "u3"); code != 1 || !strings.Contains(said, "there is no ban on all boards for u3") {
				t.Errorf("a second unban: code %d: %s", code, said)
			}
		})
	}
}

func TestAnErasedMemberHasNothingAndGetsNothing(t *testing.T) {
	t.Parallel()
	place := banning(t, nil)
	place.Publish(t, points(0)...)
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	if code, said := says(t, place, nil, "erase", "u5"); code != 2 || !strings.Contains(said, "--yes") {
		t.Errorf("without a terminal: code %d: %s", code, said)
	}
	orders(t, place, "erase", "u5", "--yes")
	place.Publish(t, points(1)...)
	place.AwaitCaughtUp(t, within)
	isGone(t, place, "u5")
	if names := shown(place.Hidden(t), "u5"); len(names) > 0 {
		t.Errorf("u5 is erased and kept in %v", names)
	}
	for _, args := range [][]string{{"unban", "u5"}, {"ban", "u5", "--reason", "again"}} {
		if code, said := says(t, place, nil, args...); code != 1 || !strings.Contains(said, "for good") {
			t.Errorf("%v: code %d: %s", args, code, said)
		}
	}
}

// A consumer applies nothing until it knows the bans. While the topic is unreadable, a consumer that starts
// reports this and waits, and continues by itself later.
func TestNothingIsAppliedWhileTheBansTopicIsAway(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	kafka, cluster := testenv.FaultyKafka(t)
	place := harness.New(t, harness.Options{Kafka: kafka, Partitions: 3})
	topic := place.Topic + ".bans"
	place.Settings["kafka.bans_topic"] = topic
	place.Publish(t, points(0)...)
	if said := string(place.Command(t, "ban", "u3", "--reason", "aimbot", "--wait", "0s")); !strings.Contains(said, "recorded") {
		t.Fatalf("ban: %s", said)
	}
	away := cluster.Fault(
		kfake.Fault{Topic: topic, Count: -1, Keys: []kmsg.Key{kmsg.Metadata}, Err: kerr.LeaderNotAvailable},
		kfake.Fault{Topic: topic, Count: -1, Keys: []kmsg.Key{kmsg.ListOffsets, kmsg.Fetch}, Err: kerr.NotLeaderForPartition},
	)
	consumer := place.Start(t)
	reason := consumer.AwaitNotReady(t, within, "waiting_for_bans", "Not Leader")
	if !strings.Contains(reason.What, topic) || reason.Remedy == "" {
		t.Errorf("/readyz doesn't name the topic, or what to do: %+v", reason)
	}
	seen := away.Hits() // it must retry and keep waiting
	harness.Eventually(t, within, func() string {
		if hits := away.Hits(); hits < seen+3 {
			return fmt.Sprintf("it has asked %d times since", hits-seen)
		}
		return ""
	})
	if all, ledger := place.Boards(t), place.Ledger(t); len(all) > 0 || len(ledger) > 0 {
		t.Errorf("it has applied: %v, %v", all, ledger)
	}
	if code, said := says(t, place, nil, "status", "--json"); code != 1 || !strings.Contains(said, "the bans topic: ") || !strings.Contains(said, topic) {
		t.Errorf("status: code %d: %s", code, said)
	}
	away.Remove()
	consumer.AwaitReady(t, within)
	place.AwaitCaughtUp(t, within)
	isGone(t, place, "u3")
	equalsOracle(t, place, func(_, member string) bool { return member == "u3" })
}

// bansCall sends a request about bans with a token, and returns the status and body of the response.
func bansCall(t *testing.T, base, method, query, body, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+"/v1/bans?"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// No consumer runs that could notice the loss, so the rebuild reads the topic itself.
func TestARebuildHidesBannedMembersAlthoughRedisHasLostTheBans(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	place := banning(t, map[string]string{"redis.shards": "3"})
	place.Publish(t, points(0)...)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	orders(t, place, "ban", "u3", "--reason", "aimbot")
	consumer.Terminate(t)
	for shard := range 3 {
		harness.Must(t, place.RedisClient().Del(t.Context(), place.KeyIn(shard, "banned")).Err())
	}
	if code, said := says(t, place, nil, "rebuild", "--from", "earliest"); code != 0 {
		t.Fatalf("rebuild: code %d: %s", code, said)
	}
	isGone(t, place, "u3")
	equalsOracle(t, place, func(_, member string) bool { return member == "u3" })
}

// The request goes to one of two replicas.
func TestAMemberIsBannedByTheAPI(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef-moderators"
	file := filepath.Join(t.TempDir(), "moderators")
	if err := os.WriteFile(file, []byte("tool "+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	place := banning(t, map[string]string{"redis.shards": "3"})
	place.Publish(t, points(0)...)
	api := map[string]string{"api.listen": "127.0.0.1:0", "api.bans_tokens_file": file}
	asked := place.Start(t, api)
	place.Start(t)
	base := fmt.Sprint("http://", asked.Log.Await(t, within, "API's port open").Fields["address"])
	asked.AwaitReady(t, within)
	place.AwaitCaughtUp(t, within)

	if code, said := bansCall(t, base, http.MethodPost, "wait_ms=10000", `{"member":"u3","reason":"aimbot, case 1234","by":"eve"}`, token); code != http.StatusOK || !strings.Contains(said, `"done":true`) {
		t.Fatalf("ban: %d: %s", code, said)
	}
	isGone(t, place, "u3")
	place.Publish(t, points(1)...)
	place.AwaitCaughtUp(t, within)
	equalsOracle(t, place, func(_, member string) bool { return member == "u3" })
	if said := string(place.Command(t, "bans", "--json")); !strings.Contains(said, `"eve@tool"`) || !strings.Contains(said, "aimbot, case 1234") {
		t.Errorf("bans: %s", said)
	}
	orders(t, place, "ban", "u4", "--board", "eu", "--reason", "smurfing")
	if code, said := bansCall(t, base, http.MethodGet, "", "", token); code != http.StatusOK || strings.Count(said, `"done":true`) != 2 || !strings.Contains(said, "smurfing") {
		t.Errorf("list: %d: %s", code, said)
	}
	if code, said := bansCall(t, base, http.MethodGet, "", "", token+"x"); code != http.StatusUnauthorized {
		t.Errorf("by another token: %d: %s", code, said)
	}
	if code, said := bansCall(t, base, http.MethodDelete, "member=u3&wait_ms=10000", "", token); code != http.StatusOK || !strings.Contains(said, `"done":true`) {
		t.Errorf("unban: %d: %s", code, said)
	}
	equalsOracle(t, place, func(board, member string) bool { return member == "u4" && board == "eu" })
	asked.Terminate(t)
	for _, secret := range []string{token, "aimbot", "smurfing"} {
		if log := asked.Log.Tail(10_000); strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// The number of shards changes while the command waits for a consumer. The command then reads the new shards.
func TestABanThatWaitsAcrossAReshardIsFoundOnTheNewShards(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	place := banning(t, map[string]string{"redis.shards": "3"})
	place.Publish(t, points(0)...)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	was := map[string]string{"redis.shards": "3"}
	place.Settings["redis.shards"] = "2"
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		code, said := says(t, place, was, "ban", "u3", "--reason", "aimbot", "--wait", "60s")
		if code != 0 || strings.Contains(said, "recorded") {
			t.Errorf("ban: code %d: %s", code, said)
		}
	})
	harness.Eventually(t, within, func() string {
		if code, said := says(t, place, was, "bans", "--json"); code != 0 || !strings.Contains(said, `"u3"`) {
			return fmt.Sprintf("bans: code %d: %s", code, said)
		}
		return ""
	})
	if said := reshards(t, place, 2); !said.Switched {
		t.Fatalf("it says %+v", said)
	}
	place.Start(t)
	waiting.Wait()
	place.AwaitCaughtUp(t, within)
	isGone(t, place, "u3")
	equalsOracle(t, place, func(_, member string) bool { return member == "u3" })
}
