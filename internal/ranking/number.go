package ranking

// The number of shards under a prefix. It is part of their keys, so shards of one number can't see shards
// of another. The configuration decides the number until a reshard changes it. From then on a record under
// the prefix decides.

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

// Number is the number of shards of a prefix.
type Number struct {
	Shards  ledger.Shards // by the record; 0 if no reshard has changed it
	Reshard *Reshard      // the running reshard; nil if no reshard is running
}

// Reshard describes a running reshard. Its lock holds it as JSON.
type Reshard struct {
	Token string        `json:"token"`
	Owner string        `json:"owner"`
	Began time.Time     `json:"began"`
	From  ledger.Shards `json:"from"`
	To    ledger.Shards `json:"to"`
}

// ReadNumber reads the number of shards of a prefix.
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

// ParseNumber parses the record of the number of shards.
func ParseNumber(text string) (ledger.Shards, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > ledger.MaxShards || strconv.Itoa(n) != text {
		return 0, Faultf("%q is no number of shards", clip(text))
	}
	return ledger.Shards(n), nil
}

// leftMark replaces the schema of a shard whose members have moved to another number of shards.
type leftMark struct {
	Moved   ledger.Shards `json:"moved"`
	Version int           `json:"v"`
}

// LeftMark returns the text of a leftMark.
func LeftMark(to ledger.Shards) string {
	text, err := json.Marshal(leftMark{to, schemaVersion})
	if err != nil {
		panic(err) // two numbers
	}
	return string(text)
}

// LeftFor returns the number of shards to which the members moved if schema is a leftMark, else 0.
func LeftFor(schema string) ledger.Shards {
	var m leftMark
	if json.Unmarshal([]byte(schema), &m) != nil || m.Moved < 1 || m.Moved > ledger.MaxShards {
		return 0
	}
	return m.Moved
}

// OtherNumberError reports that a prefix has standings with other numbers of shards, and none with the
// wanted number.
type OtherNumberError struct {
	Prefix string
	Wanted ledger.Shards
	Found  []ledger.Shards
}

func (e *OtherNumberError) Error() string {
	return fmt.Sprintf("the standings under the prefix %q have another number of shards: redis.shards is %s in Redis, %d here. "+
		"Set it back, or have consumer reshard copy them to %d shards", e.Prefix, numberList(e.Found), int(e.Wanted), int(e.Wanted))
}

// numberList formats numbers as "1, 5".
func numberList(numbers []ledger.Shards) string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.Itoa(int(n))
	}
	return strings.Join(all, ", ")
}

// CheckNumber returns an *OtherNumberError if the prefix has standings with other numbers of shards and
// none with the store's number.
func (s *Store) CheckNumber(ctx context.Context) error {
	found, err := numbers(ctx, s.client, s.prefix, s.timeout)
	if err != nil || len(found) == 0 || slices.Contains(found, s.shards) {
		return err
	}
	return &OtherNumberError{Prefix: s.prefix, Wanted: s.shards, Found: found}
}

// Copied reports whether the shard is the copy of an unfinished reshard.
func (s *Store) Copied(ctx context.Context) (bool, error) {
	whose, err := s.CopyOf(ctx)
	return whose != "", err
}

// CopyOf returns which unfinished reshard writes the shard as its copy; empty if none does.
func (s *Store) CopyOf(ctx context.Context) (string, error) {
	whose, err := s.client.Get(redisconn.Within(ctx, s.timeout), s.keys.Copy()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("look for an unfinished copy under %q: %w", s.prefix, s.explain(err, ""))
	}
	return whose, nil
}

// Dropped reads the windows that must not be opened again. A dropped window's name maps to the time until
// which it would be readable; over:<period> maps to the start of the last window that apply.lua left out
// because it was over.
func (s *Store) Dropped(ctx context.Context) (map[string]string, error) {
	all, err := s.hash(ctx, s.keys.Dropped())
	if err != nil {
		return nil, fmt.Errorf("read the windows dropped under %q: %w", s.prefix, s.explain(err, ""))
	}
	return all, nil
}

// Final reads the records of the windows that were ever sealed (lua/record.lua).
func (s *Store) Final(ctx context.Context) (map[string]string, error) {
	all, err := s.hash(ctx, s.keys.Final())
	if err != nil {
		return nil, fmt.Errorf("read the final windows under %q: %w", s.prefix, s.explain(err, ""))
	}
	return all, nil
}

// hash reads a whole hash page by page, so not as of one moment.
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

// numbers returns the numbers of shards whose first shard has a schema, in one round trip. It leaves out
// the shards that a reshard is copying to or has moved away from.
func numbers(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (there []ledger.Shards, err error) {
	all, err := firsts(ctx, client, prefix, timeout)
	for _, one := range all {
		if LeftFor(one.schema) == 0 && !one.copied {
			there = append(there, one.of)
		}
	}
	return there, err
}

// Left returns the numbers of shards, except the view's, whose first shard has a schema or a leftMark.
func (v *View) Left(ctx context.Context) (left []ledger.Shards, err error) {
	all, err := firsts(ctx, v.client, v.Prefix, v.timeout)
	for _, one := range all {
		if one.of != v.Shards {
			left = append(left, one.of)
		}
	}
	return left, err
}

// firstShard is the first shard of a number of shards.
type firstShard struct {
	of     ledger.Shards
	schema string
	copied bool // an unfinished reshard is copying to it
}

// firsts returns the first shards that have a schema or a leftMark.
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
