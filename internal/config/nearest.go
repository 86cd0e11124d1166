package config

// Suggestions for mistyped names.

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the n names that differ from typed in the fewest characters, the nearest first.
func Nearest(typed string, names []string, n int) []string {
	sorted, far := slices.Clone(names), make(map[string]int, len(names))
	for _, name := range names {
		far[name] = distance(typed, name)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Or(far[a]-far[b], strings.Compare(a, b)) })
	return sorted[:min(n, len(sorted))]
}

func nearest(typed string, names []string) string { return Nearest(typed, names, 1)[0] }

// distance returns the Levenshtein distance, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
