package harness

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// BinaryVariable names a consumer binary to test instead of one built from this module, to verify that the
// tests find its faults.
const BinaryVariable = "STANDINGS_TEST_CONSUMER"

var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Main runs a package's tests, and then removes what was built for them.
func Main(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// MainWaiting is Main for tests that mostly wait, for an outage or a failover: it runs many more of them in
// parallel than there are cores.
func MainWaiting(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("8"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	Main(m)
}

// Binary returns the path of the consumer. It is built once per test process, in the form in which it is
// shipped: without the race detector, which would change its timing.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() { built.path, built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func build() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return filepath.Abs(path)
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module to build the consumer from: %w", err)
	}
	if built.dir, err = os.MkdirTemp("", "standings-consumer-"); err != nil {
		return "", err
	}
	path := filepath.Join(built.dir, "consumer")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/consumer")
	cmd.Dir = filepath.Dir(strings.TrimSpace(string(mod)))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the consumer: %w\n%s", err, out)
	}
	return path, nil
}
