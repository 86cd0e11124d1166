package rediskinds

import (
	"strings"
	"testing"

	"github.com/standings/standings/test/testenv"
)

func TestBansTakeAConsumersRightsToRunAndAReadersToOrder(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	c := server.Client(t)
	place := newPlace(t, c, as("standings"))
	place.Settings["redis.addresses"] = server.Addr()
	place.Settings["kafka.bans_topic"] = place.Topic + ".bans"
	user(t, c, "standings", place.Prefix, leastRights(t, "consumer")...)
	user(t, c, "boards", place.Prefix, leastRights(t, "reader")...)
	place.Publish(t, earned(1, 1000)...)
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	for _, args := range [][]string{
		{"ban", "m7", "--reason", "aimbot"}, {"ban", "m8", "--board", "eu", "--reason", "smurfing"}, {"erase", "m9", "--yes"}, {"bans"},
		{"rank", "global", "weekly", "m7", "--shadow"},
	} {
		got := place.Run(t, as("boards"), args...)
		if got.Code != 0 || strings.Contains(got.Stdout, "recorded") {
			t.Errorf("consumer %v: exit code %d: %s%s", args, got.Code, got.Stdout, got.Stderr)
		}
	}
	place.Publish(t, earned(2, 1000)...) // banned members earn points, too
	place.AwaitCaughtUp(t, within)
	if got := place.Run(t, as("boards"), "unban", "m7"); got.Code != 0 || strings.Contains(got.Stdout, "recorded") {
		t.Errorf("exit code %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	for key, banned := range map[string]bool{"m7": false, "m9": true} {
		if shown := place.Boards(t); banned == inAny(shown, key) {
			t.Errorf("%s: shown is %v", key, !banned)
		}
	}
	nothingRefused(t, c, "info") // detects a change of server during a scan, and is optional
	place.TerminateAll(t)
}

func inAny(boards map[string]map[string]uint64, member string) bool {
	for _, members := range boards {
		if _, ok := members[member]; ok {
			return true
		}
	}
	return false
}
