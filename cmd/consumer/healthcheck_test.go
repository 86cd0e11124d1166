package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/test/clitest"
)

// checkHealth runs the command for a consumer with this listen address.
func checkHealth(t *testing.T, listen string, args ...string) (code int, out, errs string) {
	t.Helper()
	return execute(t, []string{"STANDINGS_LISTEN=" + listen}, append([]string{"healthcheck"}, args...)...)
}

// answering starts a server that responds to every path with a status and the path, and returns its
// address.
func answering(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + "\n"))
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestAHealthyConsumerAnswersWithZero(t *testing.T) {
	for ready, want := range map[string]string{"--ready=false": "GET /healthz\n", "--ready": "GET /readyz\n"} {
		code, out, errs := checkHealth(t, answering(t, http.StatusOK), ready, "--timeout", "1m")
		require.Equal(t, cli.ExitOK, code, errs)
		require.Equal(t, want, out)
		require.Empty(t, errs)
	}
}

func TestAnyOtherAnswerIsAFailureThatShowsIt(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusNotFound, http.StatusFound, http.StatusAccepted} {
		code, out, errs := checkHealth(t, answering(t, status), "--ready", "--timeout", "1m")
		require.Equal(t, cli.ExitFailure, code, "%d", status)
		require.Equal(t, "GET /readyz\n", out)
		require.Contains(t, errs, "/readyz returned ")
		require.Contains(t, errs, http.StatusText(status))
	}
}

func TestAConsumerThatHangsIsAFailureInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // connections wait in its queue forever
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	code, _, errs := checkHealth(t, listener.Addr().String(), "--timeout", "50ms")
	require.Equal(t, cli.ExitFailure, code)
	require.Contains(t, errs, "did not reply in time:")
}

func TestWhereAConsumerIsAsked(t *testing.T) {
	_, port, err := net.SplitHostPort(clitest.ClosedPort(t))
	require.NoError(t, err)
	for listen, want := range map[string]string{
		":" + port:              "http://localhost:" + port + "/healthz",
		"0.0.0.0:" + port:       "http://localhost:" + port + "/healthz",
		"[::]:" + port:          "http://localhost:" + port + "/healthz",
		"127.0.0.1:" + port:     "http://127.0.0.1:" + port + "/healthz",
		"[::1]:9":               "http://[::1]:9/healthz",
		"consumer.invalid:8080": "http://consumer.invalid:8080/healthz",
	} {
		code, _, errs := checkHealth(t, listen, "--timeout", "1s")
		require.Equal(t, cli.ExitFailure, code, listen)
		require.Contains(t, errs, "could not request "+want+":", listen)
	}
}

func TestAPortThatCannotBeKnownIsAWrongUse(t *testing.T) {
	for _, listen := range []string{"off", ":0", "127.0.0.1:0"} {
		code, _, errs := checkHealth(t, listen)
		require.Equal(t, cli.ExitUsage, code, listen)
		require.Contains(t, errs, "listen", listen)
	}
	code, _, errs := checkHealth(t, ":8080", "--timeout", "0s")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--timeout")
}
