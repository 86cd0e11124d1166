package oracle

// Differences, formatted for people.

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// shown is the number of differences that are listed.
const shown = 10

// Differences collects differences, and lists the first ones.
type Differences struct {
	all   []string
	count int
}

// Addf adds a difference.
func (d *Differences) Addf(format string, args ...any) {
	d.count++
	if d.count <= shown {
		d.all = append(d.all, fmt.Sprintf(format, args...))
	}
}

// String returns "" if there is no difference.
func (d *Differences) String() string {
	if d.count == 0 {
		return ""
	}
	text := "  " + strings.Join(d.all, "\n  ")
	if d.count > shown {
		text += fmt.Sprintf("\n  … %d differences in all", d.count)
	}
	return text
}

// Boards compares sorted sets member by member, to the last bit of a score.
func (d *Differences) Boards(want, got map[string]map[string]uint64) {
	for _, name := range both(want, got) {
		w, expected := want[name]
		g, found := got[name]
		switch {
		case !found:
			d.Addf("%s is missing, with %d members", name, len(w))
		case !expected:
			d.Addf("%s must not be there, with %d members", name, len(g))
		default:
			for _, member := range both(w, g) {
				d.member(name, member, w, g)
			}
		}
	}
}

func (d *Differences) member(name, member string, want, got map[string]uint64) {
	w, expected := want[member]
	g, found := got[member]
	switch {
	case !found:
		d.Addf("%s: %q is missing: want %s", name, member, score(w))
	case !expected:
		d.Addf("%s: %q must not be there: has %s", name, member, score(g))
	case w != g:
		d.Addf("%s: %q: want %s, has %s", name, member, score(w), score(g))
	}
}

func score(bits uint64) string { return fmt.Sprintf("%.17g (%016x)", math.Float64frombits(bits), bits) }

// Texts compares two maps from names to texts.
func (d *Differences) Texts(what string, want, got map[string]string) {
	for _, name := range both(want, got) {
		w, expected := want[name]
		g, found := got[name]
		switch {
		case !found:
			d.Addf("%s: %s is missing: want %s", what, name, w)
		case !expected:
			d.Addf("%s: %s must not be there: has %s", what, name, g)
		case w != g:
			d.Addf("%s: %s: want %s, has %s", what, name, w, g)
		}
	}
}

// both returns the names in either of two maps, sorted.
func both[V any](a, b map[string]V) []string {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
