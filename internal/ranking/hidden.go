package ranking

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// Hidden is an immutable set of the members who are hidden at some time.
type Hidden struct {
	versions []string
	boards   map[string]map[string]Ban // "" for all boards; the inner key is the member
}

// HiddenEach reads the hidden members of several shards. If no ban has changed since last was read, it
// returns last, at the cost of one short command per shard. last may be nil.
func HiddenEach(ctx context.Context, shards []*Store, last *Hidden) (*Hidden, error) {
	h := &Hidden{boards: map[string]map[string]Ban{}}
	for _, s := range shards {
		version, err := s.BanVersion(ctx)
		if err != nil {
			return nil, err
		}
		h.versions = append(h.versions, version)
	}
	if last != nil && slices.Equal(last.versions, h.versions) {
		return last, nil
	}
	for _, s := range shards {
		fields, err := s.BannedFields(ctx)
		if err != nil {
			return nil, err
		}
		for field, state := range fields {
			if b, ok := readBan(field, state); ok && !strings.HasPrefix(state, "showing") {
				h.add(b)
			}
		}
	}
	return h, nil
}

func (h *Hidden) add(b Ban) {
	if h.boards[b.Board] == nil {
		h.boards[b.Board] = map[string]Ban{}
	}
	h.boards[b.Board][b.Member] = b
}

// On returns the members who are hidden on a board, sorted.
func (h *Hidden) On(board string) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(h.boards[""])), maps.Keys(h.boards[board]))
	slices.Sort(all)
	return slices.Compact(all)
}

// Erased reports whether a member is erased.
func (h *Hidden) Erased(member string) bool { return h.boards[""][member].Erased }

// Gone returns the erased members of whom the shards have no data any more.
func (h *Hidden) Gone() []string {
	var all []string
	for member, b := range h.boards[""] {
		if b.Erased && !b.Pending {
			all = append(all, member)
		}
	}
	slices.Sort(all)
	return all
}
