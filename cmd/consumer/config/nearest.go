package config

// What someone who mistyped a name may have meant.

// nearest is the name with the fewest letters to change, add or drop.
func nearest(typed string, names []string) string {
	best, least := "", -1
	for _, name := range names {
		if d := distance(typed, name); least < 0 || d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is Levenshtein's, in bytes.
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
