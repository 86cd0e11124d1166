//go:build race

package simulate

// The race detector has goroutines run in a random order, on purpose: what a world is then
// isn't in its seed alone.
func init() { shuffled = true }
