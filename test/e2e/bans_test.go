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

	"github.com/twmb/franz-go/pkg/kgo"

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

// checkBanned compares all visible and hidden standings with those of the oracle.
func checkBanned(t *testing.T, place *harness.Place) {
	t.Helper()
	place.Banned = place.Bans(t)
	place.CheckBoards(t)
}

func isGone(t *testing.T, place *harness.Place, member string) {
	t.Helper()
	if names := shown(place.Boards(t), member); len(names) > 0 {
		t.Errorf("%s is banned and in %v", member, names)
	}
	if code, said := place.Says(t, nil, "top", "global", "weekly", "--json"); code != 0 || strings.Contains(said, `"`+member+`"`) {
		t.Errorf("top, code %d: %s", code, said)
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
			checkBanned(t, place)
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
			checkBanned(t, place)
			if code, said := place.Says(t, nil, "unban", "u3"); code != 1 || !strings.Contains(said, "there is no ban on all boards for u3") {
				t.Errorf("a second unban: code %d: %s", code, said)
			}
		})
	}
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
	checkBanned(t, place)
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
	checkBanned(t, place)
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
		code, said := place.Says(t, was, "ban", "u3", "--reason", "aimbot", "--wait", "60s")
		if code != 0 || strings.Contains(said, "recorded") {
			t.Errorf("ban: code %d: %s", code, said)
		}
	})
	harness.Eventually(t, within, func() string {
		if code, said := place.Says(t, was, "bans", "--json"); code != 0 || !strings.Contains(said, `"u3"`) {
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
	checkBanned(t, place)
}
