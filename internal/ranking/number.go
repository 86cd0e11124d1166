package ranking

// How many shards stand under a prefix. The number is a part of their keys, so that shards of
// one number can't be seen from those of another. Which number counts is the configuration's
// word, until a reshard has changed it: from then on a record of the prefix says so.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// Number is how many shards a prefix has.
type Number struct {
	Shards  ledger.Shards // by the record; 0 where no reshard has changed it
	Reshard *Reshard      // that is under way; nil where none is
}

// Reshard is whose reshard is under way. It is what its lock holds.
type Reshard struct {
	Token string        `json:"token"`
	Owner string        `json:"owner"`
	Began time.Time     `json:"began"`
	From  ledger.Shards `json:"from"`
	To    ledger.Shards `json:"to"`
}

// ReadNumber reads how many shards a prefix has.
func ReadNumber(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (Number, error) {
	n, err := readNumber(ctx, &Store{client: client, prefix: prefix, shards: 1, keys: newKeys(prefix, 0, 1), timeout: timeout})
	if err != nil {
		return Number{}, fmt.Errorf("read how many shards there are under %q: %w", prefix, err)
	}
	return n, nil
}

func readNumber(ctx context.Context, s *Store) (n Number, err error) {
	reply, err := s.Call(ctx, lua.State, []string{NumberKey(s.prefix), ReshardKey(s.prefix)}, "text", "text")
	if err != nil {
		return n, err
	}
	words, err := Texts(reply)
	if err != nil || len(words) != 3 {
		return n, Unexpected(lua.State, reply)
	}
	words = words[1:]
	if words[0] != "" {
		if n.Shards, err = ParseNumber(words[0]); err != nil {
			return n, err
		}
	}
	if words[1] != "" {
		n.Reshard = new(Reshard)
		if json.Unmarshal([]byte(words[1]), n.Reshard) != nil {
			return n, Faultf("%s holds %q, which no reshard writes", ReshardKey(s.prefix), clip(words[1]))
		}
	}
	return n, nil
}

// ParseNumber reads the record of how many shards there are.
func ParseNumber(text string) (ledger.Shards, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > ledger.MaxShards || strconv.Itoa(n) != text {
		return 0, Faultf("%q is no number of shards", clip(text))
	}
	return ledger.Shards(n), nil
}

// leftMark is what stands in place of the schema of shards whose members have moved to another
// number of shards.
type leftMark struct {
	Moved   ledger.Shards `json:"moved"`
	Version int           `json:"v"`
}

// LeftMark is the text of it.
func LeftMark(to ledger.Shards) string {
	text, err := json.Marshal(leftMark{to, schemaVersion})
	if err != nil {
		panic(err) // two numbers
	}
	return string(text)
}

// LeftFor is the number of shards to which those moved that have this in place of a schema; 0
// where it is one.
func LeftFor(schema string) ledger.Shards {
	var m leftMark
	if json.Unmarshal([]byte(schema), &m) != nil || m.Moved < 1 || m.Moved > ledger.MaxShards {
		return 0
	}
	return m.Moved
}

// OtherNumberError says that there are no standings of the number of shards that is wanted
// under a prefix, and some of other numbers.
type OtherNumberError struct {
	Prefix string
	Wanted ledger.Shards
	Found  []ledger.Shards
}

func (e *OtherNumberError) Error() string {
	return fmt.Sprintf("the standings under the prefix %q have another number of shards: redis.shards is %s in Redis, %d here. "+
		"Set it back, or have consumer reshard copy them to %d shards", e.Prefix, numberList(e.Found), int(e.Wanted), int(e.Wanted))
}

// numberList is "1, 5".
func numberList(numbers []ledger.Shards) string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.Itoa(int(n))
	}
	return strings.Join(all, ", ")
}

// CheckNumber is *OtherNumberError where standings of other numbers of shards stand under the
// prefix, and none of the store's.
func (s *Store) CheckNumber(ctx context.Context) error {
	found, err := numbers(ctx, s.client, s.prefix, s.timeout)
	if err != nil || len(found) == 0 || slices.Contains(found, s.shards) {
		return err
	}
	return &OtherNumberError{Prefix: s.prefix, Wanted: s.shards, Found: found}
}

// Copied reports whether the shard is a copy that a reshard hasn't finished.
func (s *Store) Copied(ctx context.Context) (bool, error) {
	whose, err := s.CopyOf(ctx)
	return whose != "", err
}

// CopyOf is whose copy the shard is that a reshard hasn't finished; empty where it is none.
func (s *Store) CopyOf(ctx context.Context) (string, error) {
	whose, err := s.client.Get(redisconn.Within(ctx, s.timeout), s.keys.Copy()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("look for an unfinished copy under %q: %w", s.prefix, s.explain(err, ""))
	}
	return whose, nil
}

// Dropped is what the shard keeps of windows that nothing opens any more: by name until when
// they would be read, and by over:<period> the start of the last that was left out.
func (s *Store) Dropped(ctx context.Context) (map[string]string, error) {
	all, err := s.hash(ctx, s.keys.Dropped())
	if err != nil {
		return nil, fmt.Errorf("read the windows dropped under %q: %w", s.prefix, s.explain(err, ""))
	}
	return all, nil
}

// Final is what the shard keeps of windows that were ever sealed (lua/record.lua).
func (s *Store) Final(ctx context.Context) (map[string]string, error) {
	all, err := s.hash(ctx, s.keys.Final())
	if err != nil {
		return nil, fmt.Errorf("read the final windows under %q: %w", s.prefix, s.explain(err, ""))
	}
	return all, nil
}

// hash is a whole hash, which isn't read at one moment.
func (s *Store) hash(ctx context.Context, key string) (map[string]string, error) {
	all := map[string]string{}
	err := s.onOneServer(ctx, func() error {
		clear(all)
		for page, err := range s.pages(ctx, key, 0) {
			if err != nil {
				return err
			}
			for i := 0; i+1 < len(page); i += 2 {
				all[page[i]] = page[i+1]
			}
		}
		return nil
	})
	return all, err
}

// numbers are those of which the first shard has a schema, read in one go. What a reshard
// is copying, or has left, is none.
func numbers(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (there []ledger.Shards, err error) {
	all, err := firsts(ctx, client, prefix, timeout)
	for _, one := range all {
		if LeftFor(one.schema) == 0 && !one.copied {
			there = append(there, one.of)
		}
	}
	return there, err
}

// Left are the numbers of shards, other than the view's, of which the first has anything in
// place of a schema.
func (v *View) Left(ctx context.Context) (left []ledger.Shards, err error) {
	all, err := firsts(ctx, v.client, v.Prefix, v.timeout)
	for _, one := range all {
		if one.of != v.Shards {
			left = append(left, one.of)
		}
	}
	return left, err
}

// firstShard is the first of some number of shards.
type firstShard struct {
	of     ledger.Shards
	schema string
	copied bool // by a reshard that isn't through
}

// firsts are those that have a schema, or what stands in place of one.
func firsts(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (there []firstShard, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pipe := client.Pipeline()
	var schemas []*redis.StringCmd
	var copies []*redis.IntCmd
	for n := ledger.Shards(1); n <= ledger.MaxShards; n++ {
		keys := newKeys(prefix, 0, n)
		schemas, copies = append(schemas, pipe.Get(ctx, keys.Schema())), append(copies, pipe.Exists(ctx, keys.Copy()))
	}
	redisconn.Exec(ctx, pipe)
	for i := range schemas {
		err := schemas[i].Err()
		if err == nil || errors.Is(err, redis.Nil) {
			err = copies[i].Err()
		}
		if err != nil {
			return nil, fmt.Errorf("look for boards of any number of shards under %q: %w", prefix, redisconn.NameRight(err, "", prefix))
		}
		if schema := schemas[i].Val(); schema != "" {
			there = append(there, firstShard{ledger.Shards(i + 1), schema, copies[i].Val() > 0})
		}
	}
	return there, nil
}
