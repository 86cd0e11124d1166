package docs

// The programs in docs/examples, run against the API where the machine has what runs them.

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standings/standings/test/apitest"
	"github.com/standings/standings/test/testenv"
)

// exampleOutput is what the programs that read once print of Emi, and of the friends.
const exampleOutput = `2026-W48: 15 members, current
1 Kalobi 4210
2 u42 4210
3 Nori 3999
4 Anka 3120
5 Bo 2750
6 Chidi 2750
7 Dara 2750
8 Emi 1980
9 Finn 1500
10 Gita 1210
around Emi
6 Chidi 2750
7 Dara 2750
8 Emi 1980
9 Finn 1500
10 Gita 1210
friends
1 u42 4210 rank 2
2 Emi 1980 rank 8
3 Kofi 75 rank 14
- ü b
`

// nodeFor is how node runs a TypeScript file: as it is from 22.6 on, before without its types.
func nodeFor(t *testing.T, path string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		testenv.NotRun(t, "it needs node")
	}
	version, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^v(\d+)\.(\d+)\.`).FindStringSubmatch(string(version))
	if m == nil {
		t.Fatalf("node --version prints %q", version)
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2])
	if major > 22 || major == 22 && minor >= 6 {
		return []string{node, "--experimental-strip-types", "--no-warnings", path}
	}
	if major < 18 {
		testenv.NotRun(t, "it needs node 18 or later")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	program := string(text)
	for _, types := range []string{
		`(?m)^interface .*$`,
		`: (string|RequestInit|Answer|Shown|Promise<Answer>|Record<string, string>)( = | \{|[,)])`,
	} {
		program = regexp.MustCompile(types).ReplaceAllString(program, "$2")
	}
	local := filepath.Join(t.TempDir(), "board.mjs")
	if err := os.WriteFile(local, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{node, local}
}

func pythonFor(t *testing.T, path string) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil { // a shim may be there without any
		err = exec.CommandContext(t.Context(), python, "-c", "import sys; assert sys.version_info >= (3, 8)").Run()
	}
	if err != nil {
		testenv.NotRun(t, "it needs python3, 3.8 or later")
	}
	return []string{python, path}
}

// inProgram runs an example against an API, as whoever has the token.
func inProgram(t *testing.T, program []string, api http.Handler, args ...string) (output, problems string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer 0123456789abcdef" {
			t.Errorf("%s %s comes without the token", r.Method, r.URL)
		}
		api.ServeHTTP(w, r)
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, program[0], append(program[1:], args...)...)
	run.Env = append(os.Environ(), "STANDINGS_URL="+server.URL, "STANDINGS_TOKEN=0123456789abcdef")
	var out, errs strings.Builder
	run.Stdout, run.Stderr = &out, &errs
	err = run.Run()
	return out.String(), errs.String(), err
}

func TestTheExamplesReadABoard(t *testing.T) {
	examples := map[string]func(*testing.T, string) []string{"board.mts": nodeFor, "board.py": pythonFor}
	there, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range there {
		// examples_live_test.go, internal/archive/store, internal/archive/topic and reading_test.go run these.
		elsewhere := []string{"live.mts", "checksum.py", "payout.py", "redis.go", "redis.lua", "redis.mts"}
		if examples[entry.Name()] == nil && !slices.Contains(elsewhere, entry.Name()) {
			t.Errorf("nothing runs %s", entry.Name())
		}
	}
	for name, programFor := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := programFor(t, filepath.Join("examples", name))
			api, err := apitest.New(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer api.Close()
			// One that is refused for now comes again.
			var refused atomic.Int64
			busy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && refused.Add(1) == 1 {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				api.ServeHTTP(w, r)
			})
			out, problems, err := inProgram(t, program, busy, "Emi", "u42", "Kofi", "ü b")
			if err != nil || out != exampleOutput || problems != "" {
				t.Errorf("%v\n%s%s\nwant:\n%s", err, out, problems, exampleOutput)
			}
			if refused.Load() != 2 {
				t.Errorf("%d lookups", refused.Load())
			}
			// And one that isn't right says what is wrong.
			out, problems, err = inProgram(t, program, api, strings.Repeat("x", 300))
			if err == nil || !strings.Contains(problems, "A member id must have 1 to 256 bytes, not 300") {
				t.Errorf("%v\n%s%s", err, out, problems)
			}
		})
	}
}
