package store

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuTime is what the processes of a database that are connected have taken of processors, and this
// one's: on a machine that does other things too, more is to be seen by it than by the clock. Linux
// alone; elsewhere it is 0.
func cpuTime(archive string) (sum time.Duration) {
	name := "-"
	if u, err := url.Parse(archive); err == nil && len(u.Path) > 1 {
		name = u.Path[1:]
	}
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, file := range all {
		line, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		self := filepath.Base(filepath.Dir(file)) == strconv.Itoa(os.Getpid())
		if err != nil || !self && !strings.Contains(string(line), name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(after)
		if len(fields) < 13 {
			continue
		}
		for _, ticks := range fields[11:13] { // of user and system, a hundredth of a second each
			n, _ := strconv.ParseInt(ticks, 10, 64)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}
