package ranking

// The number of shards under a prefix. It is part of their keys, so shards of one number can't see shards
// of another. A record under the prefix decides. The first consumer writes it by its configuration, and a
// reshard changes it.

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
	Shards  ledger.Shards // by the record; 0 if there is none
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

// FindNumber returns the number of shards by the record, or, if Redis has lost the record, by the schemas of the
// shards. 0 means that there are no shards. If there are schemas of several numbers, it returns expected if that is one of
// them, and otherwise a *SeveralError.
func FindNumber(ctx context.Context, client redis.UniversalClient, prefix string, expected ledger.Shards, timeout time.Duration) (ledger.Shards, error) {
	n, err := ReadNumber(ctx, client, prefix, timeout)
	if err != nil || n.Shards > 0 {
		return n.Shards, err
	}
	found, err := numbers(ctx, client, prefix, timeout)
	switch {
	case err != nil || len(found) == 0:
		return 0, err
	case len(found) == 1:
		return found[0], nil
	case slices.Contains(found, expected):
		return expected, nil
	}
	return 0, &SeveralError{Prefix: prefix, Shards: found}
}

// ClaimNumber records the number of shards unless there is a record, and returns the recorded number. A consumer calls it
// before it begins a shard, so that consumers with different numbers can't both begin shards.
func ClaimNumber(ctx context.Context, client redis.UniversalClient, prefix string, shards ledger.Shards, timeout time.Duration) (ledger.Shards, error) {
	s := &Store{client: client, prefix: prefix, shards: 1, keys: newKeys(prefix, 0, 1), timeout: timeout}
	key, text := NumberKey(prefix), strconv.Itoa(int(shards))
	reply, err := s.Call(ctx, lua.Switch, []string{key, key}, "", text, "", "")
	if err == nil {
		var words []string
		words, err = Texts(reply)
		switch {
		case err == nil && len(words) == 1 && words[0] == "written":
			return shards, nil
		case err == nil && len(words) == 2 && words[0] == "other":
			shards, err = ParseNumber(words[1])
		default:
			err = Unexpected(lua.Switch, reply)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("record how many shards there are under %q: %w", prefix, err)
	}
	return shards, nil
}

// numberList formats numbers as "1, 5".
func numberList(numbers []ledger.Shards) string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.Itoa(int(n))
	}
	return strings.Join(all, ", ")
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

// numbers returns the numbers of shards of which the first or the last has a schema. It leaves out the shards
// that a reshard is copying to or has moved away from.
func numbers(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (there []ledger.Shards, err error) {
	all, err := shardsOfAny(ctx, client, prefix, timeout)
	for _, one := range all {
		if LeftFor(one.schema) == 0 && !one.copied && !slices.Contains(there, one.of) {
			there = append(there, one.of)
		}
	}
	return there, err
}

// Left returns the numbers of shards, except the view's, whose first or last shard has a schema or a leftMark.
func (v *View) Left(ctx context.Context) (left []ledger.Shards, err error) {
	all, err := shardsOfAny(ctx, v.client, v.Prefix, v.timeout)
	for _, one := range all {
		if one.of != v.Shards && !slices.Contains(left, one.of) {
			left = append(left, one.of)
		}
	}
	return left, err
}

// begunShard is a shard that has a schema or a leftMark.
type begunShard struct {
	of     ledger.Shards
	schema string
	copied bool // an unfinished reshard is copying to it
}

// shardsOfAny reads the first and the last shard of every number, in one round trip, and returns those that have a
// schema or a leftMark. On a cluster the two are on different masters.
func shardsOfAny(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (there []begunShard, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pipe := client.Pipeline()
	var all []begunShard
	var schemas []*redis.StringCmd
	var copies []*redis.IntCmd
	for n := ledger.Shards(1); n <= ledger.MaxShards; n++ {
		for _, shard := range slices.Compact([]int{0, int(n) - 1}) {
			keys := newKeys(prefix, shard, n)
			schemas, copies = append(schemas, pipe.Get(ctx, keys.Schema())), append(copies, pipe.Exists(ctx, keys.Copy()))
			all = append(all, begunShard{of: n})
		}
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
		if all[i].schema, all[i].copied = schemas[i].Val(), copies[i].Val() > 0; all[i].schema != "" {
			there = append(there, all[i])
		}
	}
	return there, nil
}
