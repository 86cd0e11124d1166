package redisconn

// The check that a cluster serves all of its slots.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// slots is the number of slots of a cluster.
const slots = 16384

// SlotRange is a range of slots, both ends included.
type SlotRange struct{ First, Last int }

// AwayMaster is a master that does not reply, with its slots.
type AwayMaster struct {
	Addr  string // host:port, as the cluster announces it
	Slots []SlotRange
	Err   error
}

// Coverage lists the slots that a cluster does not serve.
type Coverage struct {
	Masters    int         // number of masters that the cluster announces
	Unassigned []SlotRange // slots that no master has
	Away       []AwayMaster
}

// Cover asks every master of a cluster for the assignment of slots. It returns an error only if it cannot
// find the masters; masters that do not reply are in Away.
func Cover(ctx context.Context, c *redis.ClusterClient) (Coverage, error) {
	var mu sync.Mutex
	var all Coverage
	views := map[string][]redis.ClusterSlot{}
	err := c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		view, err := c.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS came with Redis 7.0, and 6.2 has to do
		mu.Lock()
		defer mu.Unlock()
		all.Masters++
		if err != nil {
			all.Away = append(all.Away, AwayMaster{Addr: c.Options().Addr, Err: NameRight(err, "", "")})
		} else {
			views[c.Options().Addr] = view
		}
		return nil
	})
	if err != nil {
		return Coverage{}, fmt.Errorf("find the masters of the cluster: %w", err)
	}
	slices.SortFunc(all.Away, func(a, b AwayMaster) int { return strings.Compare(a.Addr, b.Addr) })
	first := ""
	for addr := range views { // masters differ only for a moment, so the first one's view is used
		if first == "" || addr < first {
			first = addr
		}
	}
	if first != "" {
		all.read(views[first])
	}
	return all, nil
}

// read fills in the slots of each missing master, and the unassigned slots, from one master's view.
func (all *Coverage) read(view []redis.ClusterSlot) {
	slices.SortFunc(view, func(a, b redis.ClusterSlot) int { return a.Start - b.Start })
	next := 0
	for _, r := range view {
		if r.Start > next {
			all.Unassigned = append(all.Unassigned, SlotRange{next, r.Start - 1})
		}
		next = max(next, r.End+1)
		for i := range all.Away {
			if len(r.Nodes) > 0 && r.Nodes[0].Addr == all.Away[i].Addr {
				all.Away[i].Slots = append(all.Away[i].Slots, SlotRange{r.Start, r.End})
			}
		}
	}
	if next < slots {
		all.Unassigned = append(all.Unassigned, SlotRange{next, slots - 1})
	}
}

// Gaps describes the slots that are not served, one line each; empty if all are served.
func (all *Coverage) Gaps() []string {
	var lines []string
	if len(all.Unassigned) > 0 {
		lines = append(lines, fmt.Sprintf("no master has %s of the cluster's slots", rangesText(all.Unassigned)))
	}
	for _, m := range all.Away {
		text := "the master " + m.Addr
		if len(m.Slots) > 0 {
			text += ", which has slots " + rangesText(m.Slots) + ","
		}
		lines = append(lines, fmt.Sprintf("%s doesn't answer: %v", text, m.Err))
	}
	return lines
}

func rangesText(all []SlotRange) string {
	var texts []string
	for _, r := range all {
		text := fmt.Sprint(r.First)
		if r.Last > r.First {
			text += fmt.Sprintf("-%d", r.Last)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
