package inventory

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
	"github.com/standings/standings/internal/ranking"
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
	n, err := readNumber(ctx, ranking.Bare(client, prefix, 0, 1, timeout))
	if err != nil {
		return Number{}, fmt.Errorf("read how many shards there are under %q: %w", prefix, err)
	}
	return n, nil
}

func readNumber(ctx context.Context, s *ranking.Store) (n Number, err error) {
	reply, err := s.Call(ctx, lua.State, []string{ranking.NumberKey(s.Prefix()), ranking.ReshardKey(s.Prefix())}, "text", "text")
	if err != nil {
		return n, err
	}
	words, err := ranking.Texts(reply)
	if err != nil || len(words) != 3 {
		return n, ranking.Unexpected(lua.State, reply)
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
			return n, ranking.Faultf("%s holds %q, which no reshard writes", ranking.ReshardKey(s.Prefix()), ranking.Clip(words[1]))
		}
	}
	return n, nil
}

// ParseNumber parses the record of the number of shards.
func ParseNumber(text string) (ledger.Shards, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > ledger.MaxShards || strconv.Itoa(n) != text {
		return 0, ranking.Faultf("%q is no number of shards", ranking.Clip(text))
	}
	return ledger.Shards(n), nil
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
	s := ranking.Bare(client, prefix, 0, 1, timeout)
	key, text := ranking.NumberKey(prefix), strconv.Itoa(int(shards))
	reply, err := s.Call(ctx, lua.Switch, []string{key, key}, "", text, "", "")
	if err == nil {
		var words []string
		words, err = ranking.Texts(reply)
		switch {
		case err == nil && len(words) == 1 && words[0] == "written":
			return shards, nil
		case err == nil && len(words) == 2 && words[0] == "other":
			shards, err = ParseNumber(words[1])
		default:
			err = ranking.Unexpected(lua.Switch, reply)
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

// numbers returns the numbers of shards of which the first or the last has a schema. It leaves out the shards
// that a reshard is copying to or has moved away from.
func numbers(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (there []ledger.Shards, err error) {
	all, err := shardsOfAny(ctx, client, prefix, timeout)
	for _, one := range all {
		if ranking.LeftFor(one.schema) == 0 && !one.copied && !slices.Contains(there, one.of) {
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
			keys := ranking.KeysOf(prefix, shard, n)
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
