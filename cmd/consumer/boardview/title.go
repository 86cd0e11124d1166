package boardview

// What stands above a board's rows, and what a standing results in.

import (
	"fmt"
	"strings"

	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ranking"
)

// title names a board, and its fields above where they stand.
func title(b *ranking.Board, width int) string {
	window := fmt.Sprintf("%s %s", b.Window.Period, b.Window.Name)
	if b.Fields.Len() == 0 {
		head := window
		if named := b.Name + " " + head; len(named) <= width {
			head = named
		}
		if width >= 34 {
			head += "   " + units.Plural(b.Members, "member")
		}
		return head
	}
	columns := fieldNames(b)
	for _, name := range []string{b.Name + " " + window, b.Name + " " + string(b.Window.Period), b.Name} {
		if room := width - len(columns) - 1; len(name) <= room {
			return pad(name, room) + " " + columns
		}
	}
	return b.Name
}

// fieldNames are those of a board by another rule than the default one: stage/revives.
func fieldNames(b *ranking.Board) string {
	var names []string
	for _, field := range b.Fields.List() {
		names = append(names, field.Name)
	}
	return strings.Join(names, "/")
}

// result is a standing's points, or its fields: 42/3.
func result(b *ranking.Board, st *ranking.Standing) string {
	if b.Fields.Len() == 0 {
		return units.Thousands(st.Points)
	}
	var values []string
	for _, value := range st.Tuple[:b.Fields.Len()] {
		values = append(values, units.Thousands(value))
	}
	return strings.Join(values, "/")
}
