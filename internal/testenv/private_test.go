package testenv

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestAPrivateKafkaKeepsItsDataAndPortOverKillStopAndPause(t *testing.T) {
	k := PrivateKafka(t, map[string]string{"message.max.bytes": "200000"})
	address := k.Addr()
	topic := k.Topic(t, 1, nil)
	client := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	require.NoError(t, err)
	end, _ := ends.Lookup(topic, 0)
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
	require.NoError(t, client.Ping(t.Context()).Err())
}

func TestASharedServerCanNotBeStopped(t *testing.T) {
	require.Panics(t, func() { Redis(t).Kill() })
	require.Panics(t, func() { Kafka(t).Kill() })
}

func TestNothingOfAPrivateServerIsLeft(t *testing.T) {
	RedisProgram(t)
	if _, _, err := findKafka(); err != nil {
		NotRun(t, err.Error())
	}
	var dirs []string
	t.Run("inner", func(t *testing.T) {
		r := PrivateRedis(t)
		k := PrivateKafka(t, nil)
		dirs = append(dirs, r.Dir(), k.Dir())
	})
	require.Len(t, dirs, 2)
	for _, dir := range dirs {
		_, err := os.Stat(dir)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}
