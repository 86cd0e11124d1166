package main

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Shards start one after another. A shard that has not started yet is not a problem, but one that was lost
// is.
func TestAShardThatHasYetToBeginIsToldFromOneThatWasLost(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // no server is contacted
	t.Cleanup(func() { _ = client.Close() })
	var stores []*ranking.Store
	for i := range 3 {
		stores = append(stores, ranking.New(ranking.Config{Client: client, Prefix: "lb", Shard: i, Shards: 3}))
	}
	begun := func(at, origin string, windows int) ledger.State {
		return ledger.State{Schema: "{}", Ledger: map[string]string{"points/0": at}, Origins: map[string]string{"points/0": origin}, Windows: windows}
	}
	for name, c := range map[string]struct {
		others ledger.State
		lost   bool
	}{
		"none has begun":                  {ledger.State{}, false},
		"the others stand at the start":   {begun("120", "120 1700000000000", 0), false},
		"the others stand at offset 0":    {begun("0", "0 0", 0), false},
		"the others have gone on":         {begun("121", "120 1700000000000", 0), true},
		"they are in a sweep":             {begun("120..121@8000000000000000", "120 1700000000000", 0), true},
		"they list a window":              {begun("120", "120 1700000000000", 1), true},
		"where they began isn't known":    {begun("120", "", 0), true},
		"a piece was written in part":     {begun("torn:120", "120 1700000000000", 0), true},
		"they have a schema and no topic": {ledger.State{Schema: "{}"}, false},
	} {
		all := shards.Reports(stores, []ledger.State{c.others, c.others, {}}, make([]error, 3))
		if lost := all[2].Problem != nil; lost != c.lost || all[0].Problem != nil {
			t.Errorf("%s: %v, %v", name, lost, all[0].Problem)
		}
	}
	all := shards.Reports(stores, make([]ledger.State, 3), []error{nil, errors.New("away"), nil})
	if all[1].Problem == nil || all[0].Problem != nil {
		t.Errorf("%+v", all)
	}
}
