package simulate

// This file checks that the last tenth of the permitted windows is reserved for boards that already have a
// window.

import "strings"

// inReserve counts boards that opened windows in the last tenth.
const inReserve = "a board opened a window in the last tenth"

// room holds the shard's listing before a piece was applied.
type room struct {
	listed int64
	boards map[string]bool
}

// roomOf returns nil for other calls, and while there is plenty of room.
func (w *world) roomOf(c *call) *room {
	most := w.setup.MaxWindows
	if most == 0 || c.kind != "apply" {
		return nil
	}
	before := &room{listed: c.shard.listed()}
	if before.listed < most/2 {
		return nil
	}
	before.boards = c.shard.listedBoards()
	return before
}

func (sh *shard) listed() int64 {
	n, _ := sh.on.redis.Do("HLEN", sh.key(windowsKey)).(int64)
	return n
}

// listedBoards returns the boards with a window, and adds them to those seen earlier: a process remembers
// boards for some seconds.
func (sh *shard) listedBoards() map[string]bool {
	all := map[string]bool{}
	for name := range sh.hash(windowsKey) {
		board, _, _ := strings.Cut(name, ":")
		all[board], sh.opened[board] = true, true
	}
	return all
}

// held fails the world if the piece opened more windows of boards without one than there was room for.
func (r *room) held(c *call) {
	if r == nil {
		return
	}
	w, sh := c.shard.w, c.shard
	limit := w.setup.MaxWindows - w.setup.MaxWindows/10
	if n := sh.listed(); n == r.listed || n <= limit {
		return
	}
	opened := int64(0)
	for name := range sh.hash(windowsKey) {
		board, _, _ := strings.Cut(name, ":")
		if !r.boards[board] && !sh.opened[board] {
			opened++
		}
	}
	if opened > max(0, limit-r.listed) {
		w.failf("boards that had no window have opened %d where %d of at most %d were listed", opened, r.listed, w.setup.MaxWindows)
	}
	if opened == 0 {
		w.count(inReserve)
	}
}
