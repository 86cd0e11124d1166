package health

// The shards that a partition waits for. An error of the standings has its shard, and waits for several shards
// are combined into one error.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ShardWait is a shard that a partition waits for.
type ShardWait struct {
	Shard  int
	Reason string // one of ShardReasons
	Since  time.Time
}

// ShardReasons returns the reasons for which a partition can wait for a shard.
func ShardReasons() []string { return []string{WaitsRedis, WaitsRedisFull, WaitsRebuild} }

// standingsError is an error of one shard of the standings. The type distinguishes it from an error of Kafka.
type standingsError struct {
	error

	shard int
}

func (e standingsError) Unwrap() error { return e.error }

// StandingsError marks an error as one of a shard of the standings. It returns nil for nil.
func StandingsError(shard int, err error) error {
	if err == nil {
		return nil
	}
	return standingsError{err, shard}
}

// IsStandings reports whether an error came from the standings.
func IsStandings(err error) bool {
	_, ok := errors.AsType[standingsError](err)
	return ok
}

// ShardOf returns the shard of an error, or 0 if the error has none.
func ShardOf(err error) int {
	e, _ := errors.AsType[standingsError](err)
	return e.shard
}

// shardsError combines the errors of several shards. It wraps the first of them.
type shardsError struct {
	errs  []error // one per shard; nil if the partition does not wait for it
	first int
}

// WaitsForShards combines the errors of all shards into one, which wraps the first and names the other shards.
// It returns nil if there is no error. errs has one entry per shard, in their order, and is copied.
func WaitsForShards(errs []error) error {
	first := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if first < 0 {
		return nil
	}
	return &shardsError{slices.Clone(errs), first}
}

func (e *shardsError) Unwrap() error { return e.errs[e.first] }

func (e *shardsError) Error() string {
	var others []int
	for shard, err := range e.errs {
		if err != nil && shard != e.first {
			others = append(others, shard)
		}
	}
	text := e.errs[e.first].Error()
	if len(others) > 0 {
		text += fmt.Sprintf(" (waited for as well: %s)", shardNumbers(others))
	}
	return text
}

// shardNumbers formats ascending numbers: shards 3, 5 to 7.
func shardNumbers(all []int) string {
	var parts []string
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && all[last+1] == all[last]+1 {
			last++
		}
		switch last - i {
		case 0:
			parts = append(parts, strconv.Itoa(all[i]))
		case 1:
			parts = append(parts, strconv.Itoa(all[i]), strconv.Itoa(all[last]))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", all[i], all[last]))
		}
		i = last + 1
	}
	if len(all) == 1 {
		return "shard " + parts[0]
	}
	return "shards " + strings.Join(parts, ", ")
}

// shardWaits returns the shards of an error with their reasons, in the order of shards.
func shardWaits(err error) []ShardWait {
	var all []ShardWait
	if several, ok := errors.AsType[*shardsError](err); ok {
		for shard, of := range several.errs {
			if of != nil {
				reason, _ := ClassifyWait(of)
				all = append(all, ShardWait{Shard: shard, Reason: reason})
			}
		}
	} else if one, ok := errors.AsType[standingsError](err); ok {
		reason, _ := ClassifyWait(err)
		all = append(all, ShardWait{Shard: one.shard, Reason: reason})
	}
	return all
}
