package ranking

// How many shards stand under a prefix. The number is a part of their keys, so that shards of
// one number can't be seen from those of another.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// OtherNumberError says that there are no standings of the number of shards that is wanted
// under a prefix, and some of other numbers.
type OtherNumberError struct {
	Prefix string
	Wanted ledger.Shards
	Found  []ledger.Shards
}

func (e *OtherNumberError) Error() string {
	return fmt.Sprintf("the standings under the prefix %q have another number of shards: redis.shards is %s in Redis, %d here. "+
		"Set it back, or use another redis.prefix and a group of its own for the new number", e.Prefix, numberList(e.Found), int(e.Wanted))
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

// numbers are those of which the first shard has a schema, asked for in one go.
func numbers(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) ([]ledger.Shards, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	pipe := client.Pipeline()
	var asked []*redis.IntCmd
	for n := ledger.Shards(1); n <= ledger.MaxShards; n++ {
		asked = append(asked, pipe.Exists(ctx, newKeys(prefix, 0, n).Schema()))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("look for boards of any number of shards under %q: %w", prefix, redisconn.NameRight(err, "", prefix))
	}
	var there []ledger.Shards
	for i, one := range asked {
		if one.Val() == 1 {
			there = append(there, ledger.Shards(i+1))
		}
	}
	return there, nil
}
