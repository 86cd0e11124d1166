package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/testenv"
)

func TestTheMemoryOfRedisIsReportedWhileItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m redisMemory
		var away atomic.Bool
		look := func(context.Context) ([]ranking.Memory, error) {
			if away.Load() {
				return nil, errors.New("away")
			}
			return []ranking.Memory{{Server: "a:1", Used: 7, Max: 9}, {Server: "b:1", Used: 8}}, nil
		}
		core, logs := observer.New(zap.DebugLevel)
		go m.watch(t.Context(), look, zap.New(core))
		synctest.Wait()
		const limit = "# HELP standings_redis_memory_max_bytes Its maxmemory, beyond which it refuses writes; 0 for no limit.\n# TYPE standings_redis_memory_max_bytes gauge\n" +
			"standings_redis_memory_max_bytes{server=\"a:1\"} 9\nstandings_redis_memory_max_bytes{server=\"b:1\"} 0\n"
		const used = "# HELP standings_redis_memory_used_bytes Memory that a server of Redis uses (used_memory of INFO), as of some seconds ago. A server that doesn't report it isn't there.\n" +
			"# TYPE standings_redis_memory_used_bytes gauge\nstandings_redis_memory_used_bytes{server=\"a:1\"} 7\nstandings_redis_memory_used_bytes{server=\"b:1\"} 8\n"
		reports(t, &m, limit+used)
		away.Store(true)
		time.Sleep(3 * memoryEvery)
		synctest.Wait()
		if n := testutil.CollectAndCount(&m); n != 0 || logs.Len() != 1 {
			t.Errorf("%d values of a Redis that is away, and %d lines of it", n, logs.Len())
		}
		away.Store(false)
		time.Sleep(memoryEvery)
		synctest.Wait()
		reports(t, &m, limit+used)
	})
}

func TestEveryMasterReportsItsMemory(t *testing.T) {
	client := testenv.PrivateRedis(t, "--maxmemory", "60mb", "--maxmemory-policy", "noeviction").Client(t)
	store := ranking.New(ranking.Config{Client: client, Prefix: "lb", Timeout: time.Minute})
	all, err := store.Memories(t.Context())
	if err != nil || len(all) != 1 || all[0].Server != client.Options().Addr || all[0].Max != 60<<20 || all[0].Used < 100_000 {
		t.Errorf("%+v: %v", all, err)
	}
	if err := client.Do(t.Context(), "acl", "setuser", "default", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	if all, err = store.Memories(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("without the right to INFO: %+v: %v", all, err)
	}
}
