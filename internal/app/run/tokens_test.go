package run

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/test/clitest"
)

// A token file that can no longer be read is reported by a consumer that serves the API as by `consumer serve`.
// This consumer still waits for Kafka.
func TestAConsumerWarnsOfTokensThatCannotBeReadAnyMore(t *testing.T) {
	dir, away := t.TempDir(), clitest.ClosedPort(t)
	environ := []string{"STANDINGS_KAFKA_BROKERS=" + away, "STANDINGS_REDIS_ADDRESSES=" + away, "STANDINGS_KAFKA_BANS_TOPIC=bans",
		"STANDINGS_API_LISTEN=127.0.0.1:0", "STANDINGS_LISTEN=127.0.0.1:0"}
	for variable, line := range map[string]string{"STANDINGS_API_TOKENS_FILE": "shop 0123456789abcdef", "STANDINGS_API_BANS_TOKENS_FILE": "tool fedcba9876543210"} {
		path := filepath.Join(dir, variable)
		require.NoError(t, os.WriteFile(path, []byte(line+"\n"), 0o600))
		environ = append(environ, variable+"="+path)
	}
	l, err := config.Load("", environ)
	require.NoError(t, err)
	core, logged := observer.New(zap.InfoLevel)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Consume(ctx, l.Config, zap.New(core), new(counts.Stats), nil) }()
	defer func() { cancel(); require.NoError(t, <-ended) }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	eventually := func(path, text string, there bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			for _, entry := range logged.FilterMessage("operations port open").All() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%v%s", entry.ContextMap()["address"], path), nil)
				require.NoError(t, err)
				answer, err := client.Do(r)
				require.NoError(t, err)
				body, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				return strings.Contains(string(body), text) == there
			}
			return false
		}, time.Minute, 20*time.Millisecond)
	}
	eventually("/readyz", "waiting_for_kafka", true)
	eventually("/readyz", "warnings", false)
	eventually("/metrics", `standings_api_tokens_unreadable{file="api.bans_tokens_file"} 0`, true)
	require.NoError(t, os.Remove(filepath.Join(dir, "STANDINGS_API_BANS_TOKENS_FILE")))
	eventually("/readyz", "api.bans_tokens_file: read the API's tokens", true)
	eventually("/metrics", `standings_api_tokens_unreadable{file="api.bans_tokens_file"} 1`, true)
	require.NotEmpty(t, logged.FilterField(zap.String("file", "api.bans_tokens_file")).All())
}
