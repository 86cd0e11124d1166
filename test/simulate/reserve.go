package simulate

// The last tenth of the windows that may be listed is for boards that have a window.

import "strings"

// inReserve counts boards that opened windows in the last tenth.
const inReserve = "a board opened a window in the last tenth"

// room holds what a shard listed before a piece was applied.
type room struct {
	listed int64
	boards map[string]bool
}

// roomOf returns nil for other calls, and as long as there is plenty of room.
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

// listedBoards are those that have a window, and those that the shard was seen to have earlier: a process
// remembers them for some seconds.
func (sh *shard) listedBoards() map[string]bool {
	all := map[string]bool{}
	for name := range sh.hash(windowsKey) {
		board, _, _ := strings.Cut(name, ":")
		all[board], sh.opened[board] = true, true
	}
	return all
}

// held fails the world if the piece has opened more windows of boards that had none than there was room for.
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
