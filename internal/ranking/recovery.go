package ranking

// Since when what would bring the standings back, if Redis were lost, is what it is: one replica looks
// from time to time, and the next goes on from its note. It is lost with Redis, as it may be: from then
// on it is another story.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// RecoveryNote is what was found by those who looked, by Redis's clock.
type RecoveryNote struct {
	By     string    // what would bring them back; empty where nobody has looked
	Since  time.Time // everybody who looked has found that
	Looked time.Time // when somebody did last
}

// NoteRecovery notes what would bring the standings back, a word, and returns since when everybody who
// looked has found that.
func (s *Store) NoteRecovery(ctx context.Context, by string) (since time.Time, err error) {
	reply, err := s.Call(ctx, lua.Recovery, []string{RecoveryKey(s.prefix)}, by)
	if err != nil {
		return since, fmt.Errorf("note what would bring back the standings under %q: %w", s.prefix, err)
	}
	words, err := Texts(reply)
	if err != nil || len(words) != 1 {
		return since, Unexpected(lua.Recovery, reply)
	}
	ms, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return since, Unexpected(lua.Recovery, reply)
	}
	return time.UnixMilli(ms), nil
}

// RecoveryNote reads the note. What isn't one is none.
func (s *Store) RecoveryNote(ctx context.Context) (n RecoveryNote, err error) {
	text, err := s.client.Get(redisconn.Within(ctx, s.timeout), RecoveryKey(s.prefix)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return n, fmt.Errorf("read since when something would bring back the standings under %q: %w", s.prefix, s.explain(err, ""))
	}
	words := strings.Fields(text)
	if len(words) != 3 {
		return n, nil
	}
	since, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return n, nil //nolint:nilerr // see above
	}
	looked, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return n, nil //nolint:nilerr // see above
	}
	return RecoveryNote{words[0], time.UnixMilli(since), time.UnixMilli(looked)}, nil
}
