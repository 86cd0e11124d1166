package redissim

// Runs the tests of package ranking on the simulated server, as on any server that they are given. They must pass as
// on a real one.

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

const rankingDir = "../../../internal/ranking"

// The test files that need no private server.
var sharing = []string{"arithmetic_test.go", "largest_test.go", "model_test.go", "outcome_test.go", "read_test.go", "start_test.go", "shadow/rebuild_test.go", "shadow/compare_test.go"}

func TestTheTestsOfRankingPassOnTheSimulatedServer(t *testing.T) {
	testenv.SlowEmbedded(t)
	var names []string
	for _, file := range sharing {
		names = append(names, testsIn(t, filepath.Join(rankingDir, file))...)
	}
	require.Greater(t, len(names), 30)
	server, address := overTCP(t)
	c := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-ldflags=-s -w", "-run=^("+strings.Join(names, "|")+")$", ".", "./shadow")
	c.Dir = rankingDir
	c.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "STANDINGS_") }),
		testenv.RedisVariable+"="+address)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Greater(t, server.count(), 1000, "the tests ran here: %s", out)
}

func testsIn(t *testing.T, path string) []string {
	t.Helper()
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, found[1])
	}
	require.NotEmpty(t, names, path)
	return names
}

// counted is a server that counts its commands.
type counted struct {
	*Server
	mu sync.Mutex
	n  int
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// overTCP serves a simulated server to other processes until the test ends.
func overTCP(t *testing.T) (*counted, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &counted{Server: New(time.Now)}
	s.Hook = func(c *Command) Answer {
		s.mu.Lock()
		s.n++
		s.mu.Unlock()
		return Answer{Reply: c.Execute(Fault{}).Reply}
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { s.ServeConn("tcp", conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // it accepts no more connections
		s.Cut("")
		serving.Wait()
	})
	return s, listener.Addr().String()
}

func TestWhatIsNoCommandEndsItsConnection(t *testing.T) {
	s := New(time.Now)
	for _, text := range []string{"PING\r\n", "*1\r\n+PING\r\n", "*x\r\n", "*-1\r\n", "*1\r\n$-1\r\n", "*99999999999\r\n", "*1\n"} {
		conn, err := s.Dialer("test")(t.Context(), "", "")
		require.NoError(t, err)
		go func() { _, _ = conn.Write([]byte(text)) }()
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "-ERR Protocol error", "%q", text)
		s.Close()
	}
}
