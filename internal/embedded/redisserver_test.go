package embedded_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/test/testenv"
)

func TestAServerOnAPortThatIsTakenIsNotMistakenForOurs(t *testing.T) {
	path := testenv.RedisProgram(t)
	first, err := embedded.StartRedisServer(t.Context(), embedded.RedisOptions{Program: path})
	require.NoError(t, err)
	defer first.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = embedded.StartRedisServer(ctx, embedded.RedisOptions{Program: path, Port: first.Port})
	require.ErrorContains(t, err, "the port is taken")
}

func TestAServerThatRefusesItsArgumentsSaysWhy(t *testing.T) {
	_, err := embedded.StartRedisServer(t.Context(), embedded.RedisOptions{Program: testenv.RedisProgram(t), Args: []string{"--maxmemory", "much"}})
	require.ErrorContains(t, err, "maxmemory")
}

func TestAServerEvictsNothingAndLeavesNothingBehind(t *testing.T) {
	s, err := embedded.StartRedisServer(t.Context(), embedded.RedisOptions{Program: testenv.RedisProgram(t)})
	require.NoError(t, err)
	client := redis.NewClient(&redis.Options{Addr: s.Address})
	defer func() { require.NoError(t, client.Close()) }()
	policy, err := client.ConfigGet(t.Context(), "maxmemory-policy").Result()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory-policy": "noeviction"}, policy)
	s.Close()
	_, err = os.Stat(s.Dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	<-s.Process.Done()
}
