//go:build race

package simulate

// The race detector deliberately runs goroutines in a random order. A world is then no longer
// determined by its seed alone.
func init() { shuffled = true }
