package simulate

// A snapshot as it is taken, by the product's own reader: what it read, and what was true at each call.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/simulate/redissim"
)

// snapping is a process that takes snapshots.
type snapping struct {
	saw     *saw // as the last call was carried out that was answered
	whole   []*taken
	reading string       // the window of the last page
	lull    atomic.Int64 // ns that it waits for after the next page

	// Since it was begun, by the driver.
	ledgers                 map[int]string
	wentBack, swapped, grew bool
}

// saw is what is true of a shard in the moment of a call.
type saw struct {
	inside  inside
	ledger  map[int]string
	erased  map[banned]bool
	bans    string // their version
	process uint64
	now     time.Time
	evicted bool
	listed  map[string]string
}

// taken is what was read of a shard.
type taken struct {
	sh     *shard
	begin  *saw
	last   *saw
	all    []*saw
	read   map[string]*takenWindow
	beside *ranking.Beside
	file   []byte // with restores
}

type takenWindow struct {
	gone  bool
	begun int // how often
	pages []takenPage
}

type takenPage struct {
	*ranking.SnapshotPage

	at *saw
}

func (p *process) snapshots() error {
	for _, sh := range p.w.shards {
		t := &taken{sh: sh, read: map[string]*takenWindow{}}
		if err := p.takes(t); err != nil {
			return err
		}
		p.snap.whole = append(p.snap.whole, t)
	}
	return nil
}

func (p *process) takes(t *taken) error {
	sn, err := p.store(t.sh).BeginSnapshot(p, snapLease)
	if err != nil {
		return err
	}
	defer sn.Close(context.WithoutCancel(p))
	t.begin = p.snap.saw.by(t.sh.w, sn.Begin.Ledger)
	var file *snapWriter
	if p.w.setup.Restores {
		if file, err = p.writesSnapshot(t.sh, &sn.Begin); err != nil {
			return err
		}
	}
	for page, err := range sn.Pages(p, p.w.setup.PagePause) {
		if err != nil {
			return err
		}
		if file != nil {
			if err := file.Page(page); err != nil {
				return err
			}
		}
		t.add(page, p.snap.saw)
		if p.snap.reading = page.Window; p.w.setup.Seal && len(t.read[page.Window].pages) == 1 && soonCloses(page) {
			p.snap.lull.Store(int64(5500 * time.Millisecond)) // so that it is sealed meanwhile
		}
		if lull := p.snap.lull.Swap(0); lull > 0 {
			p.w.tellf("process %d pauses for %.1f s in the middle of a snapshot", p.id, time.Duration(lull).Seconds())
			p.rests(time.Duration(lull))
		}
	}
	t.beside, err = sn.End(p)
	t.last = p.snap.saw
	t.all = append(t.all, t.last)
	if err == nil && p.snap.wentBack {
		p.w.counted1(snapBackAfter)
	}
	if err == nil && file != nil {
		_, err = file.End(t.beside)
		t.file = file.to.Bytes()
	}
	return err
}

// soonCloses reports whether the window of a page takes nothing any more within seconds.
func soonCloses(page *ranking.SnapshotPage) bool {
	at, ok := closesAt(page.Window, page.Listing)
	return ok && page.Now <= at && at < page.Now+5000
}

// by is with the ledger that a page has.
func (s *saw) by(w *world, ledger map[string]string) *saw {
	c := *s
	c.ledger = map[int]string{}
	for field, position := range ledger {
		c.ledger[w.idOf(field)] = position
	}
	return &c
}

func (t *taken) add(page *ranking.SnapshotPage, at *saw) {
	if !page.Gone {
		at = at.by(t.sh.w, page.Ledger)
	}
	t.all = append(t.all, at)
	is := t.read[page.Window]
	if is == nil {
		is = &takenWindow{}
		t.read[page.Window] = is
	}
	if page.Gone {
		t.read[page.Window] = &takenWindow{gone: true}
		return
	}
	if page.First {
		if is.begun++; len(is.pages) > 0 {
			t.anew(is.pages[len(is.pages)-1], at, page.Listing)
		}
		is.pages = nil
	}
	is.pages = append(is.pages, takenPage{page, at})
}

// anew counts why a window is begun anew.
func (t *taken) anew(before takenPage, at *saw, listing string) {
	w := t.sh.w
	was, is := ranking.ListedRevision(before.Listing), ranking.ListedRevision(listing)
	switch {
	case was == 0 && is > 0:
		w.counted1(snapSealed)
	case was > 0 && is == 0:
		w.counted1(snapReopened)
	case before.at.bans != at.bans:
		w.counted1(snapBans)
	case before.at.process != at.process:
		w.counted1(snapProcess)
	case was == is: // it was sealed and reopened between two pages
		w.counted1(snapReopened)
	}
}

// counted1 counts beside the driver.
func (w *world) counted1(kind string) {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.seen[kind]++
}

// fails counts why a snapshot has.
func (s *snapping) fails(w *world, err error) {
	switch {
	case errors.Is(err, ranking.ErrSnapshotLost) && s.swapped:
		w.counted1(snapSwapped)
	case errors.Is(err, ranking.ErrSnapshotLost) && s.wentBack:
		w.counted1(snapBack)
	case errors.Is(err, ranking.ErrSnapshotLost):
		w.counted1(snapLeft)
	case errors.Is(err, ranking.ErrSnapshotBusy):
		w.counted1(snapBusy)
	case errors.Is(err, ranking.ErrRebuilding):
		w.counted1(snapRebuilt)
	case errors.Is(err, ledger.ErrTorn):
		w.counted1(snapTorn)
	case strings.Contains(err.Error(), "lost a key"):
		w.counted1(snapMissing)
	}
}

// ofSnapshot makes it a command of who takes snapshots.
func (c *call) ofSnapshot(m *master) {
	args := c.command.Args
	key := args[min(1, len(args)-1)]
	if strings.HasSuffix(c.command.Name(), ".lua") {
		key = keys(args)[0]
	}
	c.shard = m.has(key)
	c.kind, c.what, c.writes = snaps, c.command.Name()+c.shard.named(), false
	if a := args; c.command.Name() == "snapshot.lua" {
		of := arguments(a)
		c.what, c.writes = "snapshot: "+strings.Join(of[3:], " ")+c.shard.named(), of[3] == "begin"
	}
}

// snapped notes what is true as a call of a snapshot is carried out.
func (w *world) snapped(c *call, r redissim.Result) {
	if c.command.Name() != "snapshot.lua" || answered(r) != "read" {
		return
	}
	sh, s := c.shard, c.from.snap
	s.saw = sh.sees()
	switch arguments(c.command.Args)[3] {
	case "begin":
		s.ledgers, s.wentBack, s.swapped, s.grew = s.saw.ledger, false, false, false
		sh.on.keep() // which it may go back to
		if w.begun++; w.begun <= len(w.plan.read) && !w.ending {
			for _, f := range w.plan.read[w.begun-1] {
				f.at += w.step
				w.events = append(w.events, f)
			}
		}
	case "shown", "hidden":
		if name := arguments(c.command.Args)[4]; sh.lacks(name, s.saw.listed[name]) {
			w.failf("a page is read of a window that has lost a key: %s%s", name, sh.named())
		}
		for _, state := range sh.fields() {
			if word, _, _ := strings.Cut(state, " "); word == "hiding" || word == "showing" || word == "erasing" {
				w.count(snapMoving)
				break
			}
		}
	}
	if !s.grew && len(s.saw.ledger) > len(s.ledgers) {
		s.grew = true
		w.count(snapAdded)
	}
}

func (sh *shard) sees() *saw {
	s := &saw{inside: sh.clone(), ledger: sh.ledger(), process: sh.on.processes, now: sh.w.now(), evicted: len(sh.evicted) > 0, listed: sh.hash(windowsKey)}
	if sh.w.setup.Bans {
		s.bans, s.erased = sh.hash("banned")["version"], map[banned]bool{}
		for k, state := range sh.fields() {
			if strings.HasPrefix(state, "eras") {
				s.erased[k] = true
			}
		}
	}
	return s
}

func (s *saw) String() string { return fmt.Sprint(positions(maps.Clone(s.ledger))) }
