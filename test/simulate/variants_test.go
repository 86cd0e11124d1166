package simulate

// Broken variants of the product, each of which the simulation has to notice.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// brokenVariable names, for the process that lives the worlds, how it is broken.
const brokenVariable = "STANDINGS_SIMULATE_BROKEN"

const root = "../../" // of the module

func TestEveryBrokenVariantIsNoticed(t *testing.T) {
	testenv.Slow(t)
	if name := os.Getenv(brokenVariable); name != "" {
		notice(t, name)
		return
	}
	switch {
	case *flagSeed != 0:
		t.Skip("one world is lived alone")
	case shuffled:
		t.Skip("what worlds notice has nothing to do with the race detector: make simulate")
	}
	binary := buildBroken(t)
	for _, b := range allBroken {
		require.NotEmpty(t, b.wrong, "%s: it isn't said how it is noticed", b.name)
	}
	for _, b := range append(slices.Clip(allBroken), broken{name: unbroken}) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), binary, "-test.run=^TestEveryBrokenVariantIsNoticed$", fmt.Sprint("-test.v=", testing.Verbose()))
			c.Env = append(os.Environ(), brokenVariable+"="+b.name)
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s", out)
			if b.name != unbroken {
				t.Logf("%s: %s\n%s", b.name, b.what, out)
			}
		})
	}
}

// unbroken is the same build with nothing broken: the worlds that notice the others all have
// to be well.
const unbroken = "nothing"

// notice lives worlds until one fails, and tells its story: in as few words as are found if
// somebody wants to read it.
func notice(t *testing.T, name string) {
	t.Helper()
	rewrite = rewritten
	wrong := ""
	var seeds []int64
	for _, b := range allBroken {
		if name == unbroken && b.seed > 0 {
			seeds = append(seeds, b.seed)
		}
		if b.name != name {
			continue
		}
		wrong = b.wrong
		if b.alone != nil {
			w := b.alone(t)
			require.Equal(t, kindOf(wrong), kindOf(w.failed))
			fmt.Printf("noticed by a world of its own: %s\n", w.failed)
			return
		}
		if b.seed > 0 {
			seeds = append(seeds, b.seed)
		}
		for i := range int64(b.within) {
			seeds = append(seeds, b.from+max(1, b.each)*(i+1))
		}
	}
	for _, seed := range seeds {
		w := live(t, draw(seed))
		switch {
		case w.failed == "":
		case name == unbroken:
			t.Fatalf("seed %d fails, with nothing broken: %s", seed, w.failed)
		case kindOf(w.failed) != kindOf(wrong): // noticed by the way: it is to be seen for what it is
		default:
			if seed != seeds[0] {
				fmt.Printf("world %d, which is lived first, doesn't: %d would be better\n", seeds[0], seed)
			}
			p := draw(seed)
			if testing.Verbose() && !w.crowded() { // a crowded one takes as long as a hundred others
				p, w = shrink(p, func(p *plan) *world { return live(t, p) }, 40)
			}
			fmt.Printf("noticed by world %d, of which %d faults are left:\n  %s\n", seed, len(p.events), strings.Join(w.story, "\n  "))
			return
		}
	}
	if name != unbroken {
		t.Fatalf("none of %d worlds notices it by: %s", len(seeds), wrong)
	}
}

// buildBroken builds these tests with all patches, and returns the binary.
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

var variant = os.Getenv("`+brokenVariable+`")

func broken(name string) bool { return variant == name }
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

// patchedSources are the files that patches to Go change, with all of them in.
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

// What a change to the product moves away from under a patch is noticed with the change.
func TestEveryPatchHasItsPlace(t *testing.T) { require.NotEmpty(t, patchedSources(t)) }

func readSource(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(root + file)
	require.NoError(t, err)
	return string(text)
}

// patched puts a patch in the place of its old text, which stands there once.
func patched(t *testing.T, text string, p *patch) string {
	t.Helper()
	assert.Equal(t, 1, strings.Count(text, p.old), "%s has to have exactly once: %q", p.file, p.old)
	return strings.Replace(text, p.old, p.new, 1)
}

// rewritten is what the simulated server runs in place of a script.
func rewritten(source string) string {
	name := os.Getenv(brokenVariable)
	for _, b := range allBroken {
		if b.name != name {
			continue
		}
		for _, p := range b.script {
			if strings.Contains("\n"+source, "\n-- "+p.file+" ") { // of itself, or of what it is built with
				source = strings.Replace(source, p.old, p.new, 1)
			}
		}
	}
	return source
}
