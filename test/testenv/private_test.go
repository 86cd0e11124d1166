package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/embedded/child"
)

func TestAPrivateKafkaKeepsItsDataAndPortOverKillStopAndPause(t *testing.T) {
	k := PrivateKafka(t, map[string]string{"message.max.bytes": "200000"})
	address := k.Addr()
	topic := k.Topic(t, 1, nil)
	client := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.Error(t, client.ProduceSync(ctx, kgo.SliceRecord(make([]byte, 300_000))).FirstErr(), "the setting holds")

	produce := func() {
		t.Helper()
		require.NoError(t, client.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr())
	}
	produce()
	k.Kill()
	k.Start()
	produce()
	k.Stop()
	k.Start()
	produce()
	k.Pause()
	hung, stop := context.WithTimeout(ctx, time.Second)
	require.ErrorIs(t, client.Ping(hung), context.DeadlineExceeded)
	stop()
	k.Resume()
	produce()
	require.Equal(t, address, k.Addr())
	// A broker that was paused for longer than its session is fenced for a moment, repeatedly on a busy
	// machine. Its partitions have no leader then.
	var end kadm.ListedOffset
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
		require.NoError(c, err)
		end, _ = ends.Lookup(topic, 0)
	}, time.Minute, 100*time.Millisecond)
	require.EqualValues(t, 4, end.Offset)
}

func TestAPrivateRedisCanBeRolledBackToAnOlderDump(t *testing.T) {
	r := PrivateRedis(t)
	address := r.Addr()
	client := r.Client(t)
	ctx := t.Context()
	require.NoError(t, client.Set(ctx, "points", 25, 0).Err())
	older := r.Dump()
	require.NoError(t, client.Set(ctx, "points", 50, 0).Err())
	r.Restart(older)
	require.Equal(t, "25", client.Get(ctx, "points").Val())
	r.Restart(nil)
	require.Zero(t, client.Exists(ctx, "points").Val())
	r.Stop()
	require.Error(t, client.Ping(ctx).Err())
	r.Start()
	require.NoError(t, client.Ping(ctx).Err())
	require.Equal(t, address, r.Addr())
}

func TestAPausedRedisDoesNotAnswer(t *testing.T) {
	r := PrivateRedis(t, "--maxmemory", "60mb")
	client := r.Client(t)
	require.Equal(t, "62914560", client.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"])
	r.Pause()
	hung, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	client.Options().ContextTimeoutEnabled = true
	require.Error(t, client.Ping(hung).Err())
	r.Resume()
	r.Resume()
	require.NoError(t, client.Ping(t.Context()).Err())
}

func TestASharedServerCanNotBeStopped(t *testing.T) {
	require.Panics(t, func() { Redis(t).Kill() })
	require.Panics(t, func() { Kafka(t).Kill() })
}

func TestNothingOfAPrivateServerIsLeft(t *testing.T) {
	var left []func() bool
	t.Run("inner", func(t *testing.T) {
		r, k := PrivateRedis(t), PrivateKafka(t, nil)
		r.Restart(nil)
		k.Pause()
		left = append(left, remains(t, r.private), remains(t, k.private))
	})
	if len(left) == 0 {
		NotRun(t, "it needs servers of its own")
	}
	for _, remains := range left {
		require.False(t, remains())
	}
}

// remains returns a function that reports whether anything of a server is left.
func remains(t *testing.T, node any) func() bool {
	t.Helper()
	var left func() bool
	switch node := node.(type) {
	case *redisProcess:
		left = func() bool { return exists(node.options.Dir) }
	case *kafkaProcess:
		left = func() bool { return exists(node.dir) }
	case *containerNode:
		left = func() bool { return node.resume() == nil } // returns an error once the container does not exist
	}
	require.True(t, left())
	return left
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

func TestASettingOfAPrivateServerMayNameAFile(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users.acl")
	require.NoError(t, os.WriteFile(users, []byte("user default on nopass ~* &* +@all\nuser reader on nopass ~* +get\n"), 0o600))
	client := PrivateRedis(t, "--aclfile", users).Client(t)
	require.Equal(t, []any{"default", "reader"}, client.Do(t.Context(), "acl", "users").Val())
}

func TestAPrivateKafkaMayListenOnMorePorts(t *testing.T) {
	port, err := child.FreePort()
	require.NoError(t, err)
	second := fmt.Sprintf("127.0.0.1:%d", port)
	k := PrivateKafka(t, map[string]string{
		"listeners": "SECOND://" + second, "advertised.listeners": "SECOND://" + second,
		"listener.security.protocol.map": "SECOND:PLAINTEXT",
	})
	id, _, err := IdentifyKafka(t.Context(), k.Addr())
	require.NoError(t, err)
	also, _, err := IdentifyKafka(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, id, also)
}

func TestALocalServerIsALocalProcess(t *testing.T) {
	if os.Getenv(DemandVariable) != "embedded" {
		// A missing server is a failure only if it is demanded.
		if _, _, err := findKafka(); errors.Is(err, errNotHere) {
			NotRun(t, "it needs a Kafka that is a local process: "+err.Error())
		}
		if _, err := findRedisServer(); errors.Is(err, errNotHere) {
			NotRun(t, "it needs a Redis that is a local process: "+err.Error())
		}
		t.Setenv(DemandVariable, "containers")
	}
	require.Equal(t, Local, LocalKafka(t, nil).source)
	require.Equal(t, Local, LocalRedis(t).source)
}

func TestARedisWhoseDumpsAreSpoiltSavesNoMore(t *testing.T) {
	r := PrivateRedis(t)
	client := r.Client(t)
	require.NoError(t, client.Save(t.Context()).Err())
	r.Restart(nil)
	r.SpoilDumps()
	require.Error(t, client.Save(t.Context()).Err())
}
