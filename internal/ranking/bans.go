package ranking

// Banned members, who aren't shown. lua/ban.lua describes where their standings are kept and why none is
// lost.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/retry"
)

// Ban is a ban of one member on a board, or on all boards if Board is empty.
type Ban struct {
	Board, Member string
	Erased        bool // the member's standings are removed, and new events aren't counted
	// Pending is set by Banned if a Ban or Unban started and hasn't finished: the member may be shown in
	// some windows and hidden in others, and the reader must call Ban or Unban again. Ban and Unban ignore
	// it.
	Pending bool
}

// ErrErased reports that a member is erased, which can't be undone.
var ErrErased = errors.New("the member is erased: that is for good, and what they had isn't kept")

// bannedAtOnce is how many windows a call processes; it takes some milliseconds of Redis's time.
const bannedAtOnce = 500

// heldPause is the time between two attempts while the shard is held.
const heldPause = 200 * time.Millisecond

// Ban hides a member on the board, or erases them, and returns when that is done in all windows. It can be
// repeated, also by several callers at once. It waits while the shard is held, and does nothing on a shard
// that isn't the member's. If Redis has another schema, the error is a *SchemaError. If Redis has no schema
// yet, Ban only marks the member, and their later changes are hidden.
func (s *Store) Ban(ctx context.Context, b Ban) error {
	id, doing := rand.Text(), "hide"
	first, last := "hiding "+id, "hidden"
	if b.Erased {
		doing, first, last = "erase", "erasing "+id, "erased"
	}
	return s.banned(ctx, b, doing, "ban", first, last)
}

// Unban removes a ban, and returns when the member is shown again in all windows, with everything that was
// counted meanwhile. A ban on all boards and one on a single board are separate bans. In all else Unban is
// like Ban. If the member is erased, the error is ErrErased.
func (s *Store) Unban(ctx context.Context, b Ban) error {
	return s.banned(ctx, b, "show", "unban", "showing "+rand.Text(), "")
}

func (s *Store) banned(ctx context.Context, b Ban, doing, what, mark, last string) error {
	if s.shards.Of(xxhash.Sum64String(b.Member)) != s.shard {
		return nil
	}
	if b.Member == "" || strings.Contains(b.Board, ":") {
		return Faultf("%s %q on board %q: there is no such member, or no such board", doing, Clip(b.Member), Clip(b.Board))
	}
	calls := 0 // calls that have processed windows
	err := s.place(ctx, what, b, counted(mark, calls), last, nil)
	if err == nil {
		calls, err = s.goThrough(ctx, b, mark)
	}
	if err == nil {
		err = s.place(ctx, "end", b, counted(mark, calls), last, nil)
	}
	if err != nil {
		return fmt.Errorf("%s %q under %q: %w", doing, Clip(b.Member), s.prefix, err)
	}
	return nil
}

// counted returns a mark with the number of calls that have processed windows.
func counted(mark string, calls int) string { return fmt.Sprintf("%s %d", mark, calls) }

// goThrough moves a member's standings to the right set in every listed window, and returns the number of
// calls.
func (s *Store) goThrough(ctx context.Context, b Ban, mark string) (calls int, err error) {
	all, err := s.Listings(ctx)
	if err != nil {
		return 0, err
	}
	var names []string
	for name := range all {
		if board, _, _ := strings.Cut(name, ":"); b.Board == "" || b.Board == board {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for some := range slices.Chunk(names, s.bannedAtOnce) {
		if err := s.place(ctx, "go", b, counted(mark, calls), counted(mark, calls+1), some); err != nil {
			return calls, err
		}
		calls++
	}
	return calls, nil
}

// place calls ban.lua, and repeats the call while the shard is held.
func (s *Store) place(ctx context.Context, what string, b Ban, mark, last string, windows []string) error {
	keys := []string{s.keys.Banned(), s.keys.Schema(), s.keys.Hold(), s.keys.Names(), s.keys.Windows()}
	args := []any{s.text(), what, b.Board + ":" + b.Member, mark, last, s.lease, 1, b.Member}
	for _, name := range windows {
		keys, args = append(keys, s.keys.Listed(name), s.keys.Hidden(name)), append(args, name)
	}
	for {
		reply, err := s.Call(ctx, lua.Ban, keys, args...)
		if err != nil {
			return err
		}
		words, err := Texts(reply)
		if err != nil {
			return err
		}
		switch rest := append(words, "", ""); rest[0] {
		case "done":
			return nil
		case "erased":
			return ErrErased
		case "schema":
			return s.OfShard(&SchemaError{Prefix: s.prefix, Wanted: s.text(), Found: rest[1]})
		case "held":
		default:
			return Unexpected(lua.Ban, reply)
		}
		if err := retry.Sleep(ctx, heldPause); err != nil {
			return fmt.Errorf("wait while %s is there: %w", s.keys.Hold(), err)
		}
	}
}

// Banned reads the shard's bans, sorted. It doesn't read them as of one moment.
func (s *Store) Banned(ctx context.Context) ([]Ban, error) {
	found, err := s.BannedFields(ctx)
	if err != nil {
		return nil, err
	}
	var all []Ban
	for field, state := range found {
		if b, ok := readBan(field, state); ok {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, Ban.compare)
	return all, nil
}

// BannedFields reads the hash of bans, which lua/ban.lua describes. It doesn't read it as of one moment.
func (s *Store) BannedFields(ctx context.Context) (map[string]string, error) {
	return s.Hash(ctx, s.keys.Banned(), "who is banned", 0)
}

// BansTaken are the versions of the bans of the live boards and of a shadow after TakeBans. The shadow's
// bans are up to date while both versions are unchanged.
type BansTaken struct{ Live, Shadow string }

// TakeBans copies the bans of the live boards to a shadow. If neither version has changed since last, which
// is the zero BansTaken at first, it does nothing and costs two short commands. TakeBans reads the live
// version before the bans: if that version is the same later, the bans are the same. changed reports that
// TakeBans changed the shadow's bans; the shadow then has a hash of bans, even if it had none before.
func (s *Store) TakeBans(ctx context.Context, live *Store, last BansTaken) (taken BansTaken, changed bool, err error) {
	if taken.Live, err = live.BanVersion(ctx); err != nil {
		return last, false, err
	}
	if taken.Shadow, err = s.BanVersion(ctx); err != nil {
		return last, false, err
	}
	// No version occurs twice except "", which means no bans: there may have been bans in between.
	if taken == last && (taken.Live != "" || taken.Shadow == "") {
		return taken, false, nil
	}
	changed, err = s.takeBans(ctx, live)
	if err == nil {
		taken.Shadow, err = s.BanVersion(ctx)
	}
	return taken, changed, err
}

func (s *Store) takeBans(ctx context.Context, live *Store) (changed bool, err error) {
	theirs, err := live.BannedFields(ctx)
	if err != nil {
		return false, err
	}
	ours, err := s.BannedFields(ctx)
	if err != nil {
		return false, err
	}
	fields := maps.Clone(theirs)
	maps.Copy(fields, ours)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		b, ok := readBan(field, theirs[field])
		wanted, is := theirs[field], ours[field]
		if word, _, _ := strings.Cut(wanted, " "); word == "showing" {
			wanted = ""
		} else if word == "hiding" {
			wanted = "hidden"
		} else if b.Erased {
			wanted = "erased"
		}
		if !ok || wanted == is {
			continue
		}
		changed = true
		if wanted == "" {
			err = s.Unban(ctx, b)
		} else {
			err = s.Ban(ctx, b)
		}
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// BanVersion returns a text that differs after every change of the shard's bans; it is empty if there are
// none.
func (s *Store) BanVersion(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	version, err := s.client.HGet(ctx, s.keys.Banned(), "version").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read who is banned under %q: %w", s.prefix, s.explain(err, ""))
	}
	return version, nil
}

func (b Ban) compare(o Ban) int {
	if c := strings.Compare(b.Board, o.Board); c != 0 {
		return c
	}
	return strings.Compare(b.Member, o.Member)
}

// readBan parses a field of the hash of bans; ok is false for the field version.
func readBan(field, state string) (Ban, bool) {
	board, member, ok := strings.Cut(field, ":")
	word, _, pending := strings.Cut(state, " ")
	return Ban{Board: board, Member: member, Erased: word == "erased" || word == "erasing", Pending: pending}, ok
}

// BanEach calls Ban or Unban on several shards. Only the member's own shard is changed.
func BanEach(ctx context.Context, shards []*Store, b Ban, do func(*Store, context.Context, Ban) error) error {
	for _, s := range shards {
		if err := do(s, ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// BannedEach reads the bans of several shards, sorted. A ban is repeated for every shard that has it.
func BannedEach(ctx context.Context, shards []*Store) ([]Ban, error) {
	var all []Ban
	for _, s := range shards {
		some, err := s.Banned(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, Ban.compare)
	return all, nil
}

// BansOf reads a member's bans that apply to a board: the one on all boards, and the one on that board. On
// a shard that isn't the member's it finds none.
func (s *Store) BansOf(ctx context.Context, board, member string) ([]Ban, error) {
	fields := []string{":" + member, board + ":" + member}
	found, err := s.HashFields(ctx, s.keys.Banned(), fields)
	if err != nil {
		return nil, fmt.Errorf("read whether %q is banned under %q: %w", Clip(member), s.prefix, err)
	}
	var all []Ban
	for i, field := range fields {
		if b, ok := readBan(field, found[i]); ok && found[i] != "" {
			all = append(all, b)
		}
	}
	return all, nil
}

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
