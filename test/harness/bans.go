package harness

// This file compares the bans topic with Redis.

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

// BansTopic returns the place's bans topic, if a setting names one.
func (p *Place) BansTopic() string { return p.Settings["kafka.bans_topic"] }

// Bans returns the bans that the topic has in force, by <board>:<member>, or :<member> for all boards.
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

// AwaitBans waits until Redis has exactly these bans in force, in every window.
func (p *Place) AwaitBans(t testing.TB, bans map[string]bool, within time.Duration) {
	t.Helper()
	Eventually(t, within, func() string { return p.withoutBans(t.Context(), bans) })
}

// withoutBans describes how Redis's bans differ from the given ones; empty if they do not.
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

// isBanned reports whether Banned hides a member on a board.
func (p *Place) isBanned(board, member string) bool {
	return p.Banned[":"+member] || p.Banned[board+":"+member]
}

// split divides the expected boards into the shown and the hidden ones, by the names of their keys.
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
