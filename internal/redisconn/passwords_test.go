package redisconn

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

// Redis quotes the arguments of an unknown command, for example if AUTH is renamed:
// ERR unknown command 'auth', with args beginning with: 'hunter2'.
func TestAnAnswerThatQuotesThePasswordIsShownWithoutIt(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go unknowing(conn)
		}
	}()
	at := []string{listener.Addr().String()}
	for name, d := range map[string]Settings{
		"a server":        {Addresses: at, Username: "me", Password: "hunter2"},
		"a long password": {Addresses: at, Username: "me", Password: strings.Repeat("hunter2", 30)},
		"a cluster":       {Addresses: at, Cluster: true, Username: "me", Password: "hunter2"},
		"Sentinels":       {Addresses: at, Master: "main", Password: "hunter2", SentinelUsername: "me", SentinelPassword: "hunter3"},
	} {
		d.Timeout = time.Minute
		client := NewClient(d)
		t.Cleanup(func() { _ = client.Close() })
		_, pipelined := client.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Ping(t.Context()); return nil })
		pipe := client.Pipeline()
		one, other := pipe.Ping(t.Context()), pipe.Ping(t.Context())
		Exec(t.Context(), pipe)
		for _, err := range []error{client.Ping(t.Context()).Err(), pipelined, one.Err(), other.Err()} {
			require.Error(t, err, name)
			require.NotContains(t, fmt.Sprintf("%v %+v %q %v", err, err, err, d.Explain(t.Context(), err)), "hunter", name)
			if name == "a server" {
				require.ErrorContains(t, err, "unknown command 'auth'")
				require.Equal(t, ledger.Halt, Classify(err))
			}
		}
	}
}

// unknowing is a server that knows no command.
func unknowing(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // a test's
	in := bufio.NewReader(conn)
	for {
		var n int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
			return
		}
		args := make([]string, n)
		for i := range args {
			var size int
			if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
				return
			}
			text, err := in.ReadString('\n')
			if err != nil {
				return
			}
			args[i] = strings.TrimSpace(text)
		}
		quoted := ""
		for _, a := range args[1:] {
			if len(quoted) < 128 { // Redis cuts it here
				quoted += fmt.Sprintf("'%.*s' ", 128-len(quoted), a)
			}
		}
		if _, err := fmt.Fprintf(conn, "-ERR unknown command '%s', with args beginning with: %s\r\n", args[0], quoted); err != nil {
			return
		}
	}
}
