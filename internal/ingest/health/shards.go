package health

// Which shards a partition waits for: an error of the standings has the shard that it came
// from, and several of them are waited for as one.

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

// ShardReasons are the reasons of waiting that a shard can have.
func ShardReasons() []string { return []string{WaitsRedis, WaitsRedisFull, WaitsRebuild} }

// standingsError is an error of a shard of the standings: a wait for it is distinguished from one
// for Kafka.
type standingsError struct {
	error

	shard int
}

func (e standingsError) Unwrap() error { return e.error }

// StandingsError has an error be one of a shard of the standings, nil of nil.
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

// ShardOf is the shard that an error came from, 0 of one that came from none.
func ShardOf(err error) int {
	e, _ := errors.AsType[standingsError](err)
	return e.shard
}

// shardsError is what shards are waited for, as one: the error of the first of them.
type shardsError struct {
	errs  []error // one a shard; nil where it isn't waited for
	first int
}

// WaitsForShards is what all shards are waited for as one error, which is that of the first of
// them and names the others. It is nil where none is waited for. errs has one a shard, in their
// order, and is copied.
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

// shardNumbers are ascending numbers for people: shards 3, 5 to 7.
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

// shardWaits are the shards that an error is of, with the reason of each, in their order.
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
