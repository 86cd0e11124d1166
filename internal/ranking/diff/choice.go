package diff

// Which windows a diff is about. A name that fits nothing is an error: to find nothing
// that differs where nothing was compared would be taken for equality.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// UnmatchedError says that a name that was given fits no window under either prefix.
type UnmatchedError struct {
	A, B  string   // the prefixes
	What  string   // board, period or window
	Name  string   // that was given
	There []string // the names that there are, the likest first
	among bool     // those of the boards and periods that were asked for
}

func (e *UnmatchedError) Error() string {
	const most = 12
	of, among, there := " of the "+e.What, "", "neither has any"
	if e.What == "window" {
		of = ""
	}
	if e.among {
		among = " among those asked for"
	}
	switch more := len(e.There) - most; {
	case more > 0:
		there = fmt.Sprintf("there are %s and %d more", strings.Join(e.There[:most], ", "), more)
	case len(e.There) > 1:
		there = "there are " + strings.Join(e.There, ", ")
	case len(e.There) == 1:
		there = "there is " + e.There[0]
	}
	return fmt.Sprintf("neither %s nor %s has a live window%s %q%s; %s", e.A, e.B, of, e.Name, among, there)
}

func asked(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

// asks reports whether a window is asked for.
func (d *Prefixes) asks(w *Window) bool {
	return asked(d.Boards, w.Board) && asked(d.Periods, w.Period) && asked(d.Windows, w.Name)
}

// choose leaves the windows that are asked for. Every name that was given has to fit one of
// those that the boards, and then the periods, have left.
func (d *Prefixes) choose(live []Window) ([]Window, error) {
	among := false
	for _, by := range []struct {
		what  string
		names []string
		of    func(*Window) string
	}{
		{"board", d.Boards, func(w *Window) string { return w.Board }},
		{"period", d.Periods, func(w *Window) string { return w.Period }},
		{"window", d.Windows, func(w *Window) string { return w.Name }},
	} {
		if len(by.names) == 0 {
			continue
		}
		there := map[string]bool{}
		for i := range live {
			there[by.of(&live[i])] = true
		}
		for _, name := range by.names {
			if !there[name] {
				return nil, &UnmatchedError{A: d.A.Prefix, B: d.B.Prefix, What: by.what, Name: name, There: likest(there, name), among: among}
			}
		}
		live = slices.DeleteFunc(live, func(w Window) bool { return !slices.Contains(by.names, by.of(&w)) })
		among = true
	}
	return live, nil
}

// likest are names by how much of their beginning they share with one, of equal ones the
// last first, which of windows is the latest.
func likest(names map[string]bool, like string) []string {
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(common(b, like), common(a, like)), strings.Compare(b, a))
	})
	return all
}

// common is how many bytes two texts begin with alike.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
