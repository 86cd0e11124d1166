package harness

// Who is banned, as the topic that keeps it has it, and what Redis has to hold then.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// BansTopic is the place's, where a setting names one.
func (p *Place) BansTopic() string { return p.Settings["kafka.bans_topic"] }

// Bans are those of the bans topic that are in force, by <board>:<member>, or :<member> for all
// boards.
func (p *Place) Bans(t testing.TB) map[string]bool {
	t.Helper()
	all, now := map[string]bool{}, p.RedisTime(t)
	p.EachRecord(t, p.BansTopic(), func(r *kgo.Record) {
		var ban struct {
			Until  *time.Time
			Erased bool
		}
		delete(all, string(r.Key))
		if r.Value == nil {
			return
		}
		if err := json.Unmarshal(r.Value, &ban); err != nil || ban.Erased {
			t.Errorf("the ban %q can't be compared (%v): %s", r.Key, err, r.Value)
		}
		if ban.Until == nil || now.Before(*ban.Until) {
			all[string(r.Key)] = true
		}
	})
	return all
}

// AwaitBans waits until Redis has these bans in force, in every window, and no others.
func (p *Place) AwaitBans(t testing.TB, bans map[string]bool, within time.Duration) {
	t.Helper()
	Eventually(t, within, func() string { return p.withoutBans(t.Context(), bans) })
}

// withoutBans says what Redis lacks of bans, or has besides.
func (p *Place) withoutBans(ctx context.Context, bans map[string]bool) string {
	shards, err := p.hashes(ctx, "banned")
	if err != nil {
		return err.Error()
	}
	left := maps.Clone(bans)
	for shard, found := range shards {
		delete(found, "version")
		for ban, state := range found {
			if _, member, _ := strings.Cut(ban, ":"); !left[ban] || state != "hidden" || p.ShardOf(member) != shard {
				return fmt.Sprintf("in shard %d %q is %q (banned: %v)", shard, ban, state, bans[ban])
			}
			delete(left, ban)
		}
	}
	if len(left) > 0 {
		return fmt.Sprintf("Redis hides none of %v", left)
	}
	return ""
}

// isBanned reports whether a member is hidden on a board, by Banned.
func (p *Place) isBanned(board, member string) bool {
	return p.Banned[":"+member] || p.Banned[board+":"+member]
}

// split takes those who are banned out of what the records come to: what is shown, and what is
// hidden, by the names of the keys.
func (p *Place) split(boards map[string]map[string]uint64) (shown, hidden map[string]map[string]uint64) {
	if len(p.Banned) == 0 {
		return boards, nil
	}
	shown, hidden = map[string]map[string]uint64{}, map[string]map[string]uint64{}
	for name, members := range boards {
		board, _, _ := strings.Cut(name, ":")
		for member, score := range members {
			into, key := shown, name
			if p.isBanned(board, member) {
				into, key = hidden, name+hiddenSuffix
			}
			if into[key] == nil {
				into[key] = map[string]uint64{}
			}
			into[key][member] = score
		}
	}
	return shown, hidden
}
