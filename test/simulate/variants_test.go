package simulate

// Broken variants of the product: the simulation must notice each of them.

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// brokenVariable is the environment variable that names the broken variant in the build with all patches.
const brokenVariable = "STANDINGS_SIMULATE_BROKEN"

const root = "../../" // of the module

func TestEveryBrokenVariantIsNoticed(t *testing.T) {
	testenv.Slow(t)
	if shuffled {
		t.Skip("what worlds notice has nothing to do with the race detector")
	}
	if _, patched := os.LookupEnv(brokenVariable); patched {
		rewrite = rewritten
		for i := range allBroken {
			b := &allBroken[i]
			t.Run(b.name, func(t *testing.T) {
				t.Setenv(brokenVariable, b.name)
				b.isNoticed(t)
			})
		}
		return
	}
	c := exec.CommandContext(t.Context(), buildBroken(t),
		"-test.run="+flag.Lookup("test.run").Value.String(), fmt.Sprint("-test.v=", testing.Verbose()), "-test.timeout=60m", fmt.Sprint("-find=", *flagFind))
	c.Env = append(os.Environ(), brokenVariable+"=")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// isNoticed runs the variant's world and requires that it fails for the reason in the table.
func (b *broken) isNoticed(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, b.wrong, "the table has to have how it is noticed")
	w := b.lives(t, b.seed)
	if w != nil && b.isSeenIn(w) {
		t.Logf("%s\n  %s", b.what, strings.Join(w.story, "\n  "))
		return
	}
	if !*flagFind {
		t.Fatalf("the world of %d no longer notices it by: %s\nA change of the simulation changes what a seed means. This command finds another seed for the table:\n  go test -run=%q ./test/simulate -find", b.seed, b.wrong, t.Name())
	}
	n, step := int64(0), int64(1)
	if b.small == nil {
		for _, f := range families {
			if b.seed > f.from {
				n = f.from
				break
			}
		}
		if (b.seed-n)%crowdEvery == 0 {
			step = crowdEvery
		}
		n += step
	}
	const patience = 10 * time.Minute
	for began := time.Now(); time.Since(began) < patience; n += step {
		if w := b.lives(t, n); w != nil && b.isSeenIn(w) {
			t.Fatalf("the world of %d no longer notices it, and that of %d does: put that into the table", b.seed, n)
		}
	}
	t.Fatalf("no world up to that of %d notices it by: %s", n, b.wrong)
}

func (b *broken) lives(t *testing.T, n int64) *world {
	t.Helper()
	if b.small != nil {
		return b.small(t, n)
	}
	return live(t, draw(n))
}

func (b *broken) isSeenIn(w *world) bool {
	return w.failed != "" && kindOf(w.failed) == kindOf(b.wrong)
}

// of makes a function that runs the plan chosen by a number.
func of(plan func(n int) *plan) func(*testing.T, int64) *world {
	return func(t *testing.T, n int64) *world {
		if p := plan(int(n)); p != nil {
			return live(t, p)
		}
		return nil
	}
}

// buildBroken builds these tests with all patches and returns the binary's path.
func buildBroken(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	replaced := map[string]string{}
	put := func(file, text string) {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		require.NoError(t, os.WriteFile(to, []byte(text), 0o600))
		replaced[filepath.Join(top, file)] = to
	}
	sources := patchedSources(t)
	if t.Failed() {
		t.FailNow()
	}
	for file, text := range sources {
		put(file, text)
		put(filepath.Join(filepath.Dir(file), "broken_variant.go"), "package "+filepath.Base(filepath.Dir(file))+`

import "os"

func broken(name string) bool { return os.Getenv("`+brokenVariable+`") == name }
`)
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	binary := filepath.Join(dir, "broken.test")
	c := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay="+overlay, "-ldflags=-s -w", "-o", binary, ".")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// patchedSources returns the Go files that patches change, with all patches applied.
func patchedSources(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	for _, b := range allBroken {
		for _, p := range b.script {
			patched(t, readSource(t, "internal/ranking/lua/"+p.file), &p)
		}
		for _, p := range b.source {
			if sources[p.file] == "" {
				sources[p.file] = readSource(t, p.file)
			}
			sources[p.file] = patched(t, sources[p.file], &p)
		}
	}
	return sources
}

// A change to the product that removes the text of a patch is noticed at once, without a slow test.
func TestEveryPatchHasItsPlace(t *testing.T) { require.NotEmpty(t, patchedSources(t)) }

func readSource(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(root + file)
	require.NoError(t, err)
	return string(text)
}

// patched replaces the patch's old text, which must occur exactly once.
func patched(t *testing.T, text string, p *patch) string {
	t.Helper()
	assert.Equal(t, 1, strings.Count(text, p.old), "%s has to have exactly once: %q", p.file, p.old)
	return strings.Replace(text, p.old, p.new, 1)
}

// rewritten returns the script that the simulated server runs instead of source.
func rewritten(source string) string {
	name := os.Getenv(brokenVariable)
	for _, b := range allBroken {
		if b.name != name {
			continue
		}
		for _, p := range b.script {
			if strings.Contains("\n"+source, "\n-- "+p.file+" ") { // the patched file, or a script that includes it
				source = strings.Replace(source, p.old, p.new, 1)
			}
		}
	}
	return source
}
