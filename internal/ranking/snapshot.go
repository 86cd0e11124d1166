package ranking

// Reading a shard for a snapshot: its windows page by page while they are written, each page in one
// call with the ledger of that instant. Why that is exact is in internal/archive/snapshot.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
)

// Instant is what is counted at one instant.
type Instant struct {
	Now     int64             // Unix ms, by the clock of Redis
	Ledger  map[string]string // the position of every partition
	Origins map[string]string
	Rules   map[string]string // of a partition the fingerprint of its rules, where that is noted
	bans    string            // their version; empty where nobody is banned
}

// Bans are the version of the bans at that instant: as long as it is the same, nobody was hidden or shown.
// It is empty where nobody is banned.
func (in *Instant) Bans() string { return in.bans }

// SnapshotPage is some members of a window, as of one instant.
type SnapshotPage struct {
	Instant
	Window  string // its name in the listing
	Listing string
	// First: the window is begun with this page, or begun anew: what was read of it before doesn't
	// count.
	First bool
	// Gone: the window isn't listed any more, or its retention is over. There are no rows, and what
	// was read of it before doesn't count.
	Gone bool
	// Hidden: these are of the set of who is banned. There the empty id, which is nobody's, keeps the
	// set where all are erased.
	Hidden bool
	// Rows are in no order. A member may come again, on this page or another: each row is exact by the
	// position of its own page.
	Rows []SnapshotRow
}

// SnapshotRow is a member and its score. In no window is a score a NaN.
type SnapshotRow struct {
	Member string
	Score  float64
}

// Snapshot is one under way, of one shard.
type Snapshot struct {
	store *Store
	token string
	lease time.Duration
	// Begin is what was counted as it was begun: before that nothing is read.
	Begin Instant

	settled   string // the version of bans that moves nobody
	isSettled bool
	gone      map[string]string // windows that were gone when they were to be read, and how they were listed
}

// Errors of a snapshot: what was read is of no use.
var (
	// ErrSnapshotLost says that Redis went back to before the snapshot, that boards were swapped, or
	// that nothing was read for longer than its lease.
	ErrSnapshotLost = errors.New("Redis went back to before the snapshot, a rebuild has swapped, or the snapshot's lease is over")
	// ErrSnapshotBusy says that another snapshot of the shard is being read.
	ErrSnapshotBusy = errors.New("another snapshot of it is being read")
	// ErrUnsettled says that bans changed each time that a window was read, or were never carried out.
	ErrUnsettled = errors.New("members are being banned or shown again all the time")
)

// snapshotRows is about how many members a page has: a millisecond of Redis's time, or somewhat more.
var snapshotRows = 500 // tests have less

// BeginSnapshot begins a snapshot, which is lost if nothing is read for as long as lease. Besides
// those of a snapshot, errors are ErrRebuilding, *SchemaError, and one that is ledger.ErrTorn.
func (s *Store) BeginSnapshot(ctx context.Context, lease time.Duration) (*Snapshot, error) {
	sn := &Snapshot{store: s, token: strings.ToLower(rand.Text()), lease: lease, gone: map[string]string{}}
	begin, _, err := sn.call(ctx, nil, "begin")
	if s.fits(err) { // a reader's
		begin, _, err = sn.call(ctx, nil, "begin")
	}
	if err == nil && len(begin.Ledger) == 0 {
		err = Faultf("it has no ledger: nothing was ever counted, or Redis was lost")
	}
	if err != nil {
		return nil, fmt.Errorf("begin a snapshot of %q: %w", s.prefix, err)
	}
	sn.Begin = *begin
	return sn, nil
}

// Look reads what is counted now, and lets the snapshot live on.
func (sn *Snapshot) Look(ctx context.Context) (*Instant, error) {
	at, _, err := sn.call(ctx, nil, "look")
	if err != nil {
		return nil, fmt.Errorf("read a snapshot of %q: %w", sn.store.prefix, err)
	}
	return at, nil
}

// Beside is what a restore needs beside the windows.
type Beside struct {
	Instant
	// Dropped are windows that nothing opens any more, and Final what was ever sealed, as their hashes
	// have it. A window of the snapshot may be among the dropped: then it was dropped after it was read.
	Dropped, Final map[string]string
	// Texts are rules by their fingerprints.
	Texts map[string]string
}

// End reads what there is beside the windows, after all pages, and ends the snapshot. Only if it
// succeeds the snapshot is whole.
func (sn *Snapshot) End(ctx context.Context) (*Beside, error) {
	b := &Beside{}
	if err := sn.beside(ctx, b); err != nil {
		return nil, fmt.Errorf("end a snapshot of %q: %w", sn.store.prefix, sn.store.explain(err, ""))
	}
	sn.Close(ctx)
	return b, nil
}

func (sn *Snapshot) beside(ctx context.Context, b *Beside) (err error) {
	s := sn.store
	if b.Dropped, err = s.hash(ctx, s.keys.Dropped()); err != nil {
		return err
	}
	var listed []string
	for some := range slices.Chunk(slices.Sorted(maps.Keys(sn.gone)), listedAtOnce) {
		texts, err := s.fields(ctx, s.keys.Windows(), some)
		if err != nil {
			return err
		}
		listed = append(listed, texts...)
	}
	if b.Final, err = s.hash(ctx, s.keys.Final()); err != nil {
		return err
	}
	if b.Texts, err = s.hash(ctx, s.rules); err != nil {
		return err
	}
	at, _, err := sn.call(ctx, nil, "look") // the token is there still: all of this is of after the begin
	if err != nil {
		return err
	}
	b.Instant = *at
	if err := sn.areGone(b, listed); err != nil {
		return err
	}
	for field := range b.Texts {
		if _, err := ledger.ParseFingerprint(field); err != nil {
			delete(b.Texts, field) // by which rules a partition is counted
		}
	}
	return nil
}

// areGone makes sure that what was gone when it was to be read is so for good: it was dropped, or is over.
// Redis may have gone back to before a drop, and after the token was set; or it has lost its listing.
func (sn *Snapshot) areGone(b *Beside, listed []string) error {
	for i, name := range slices.Sorted(maps.Keys(sn.gone)) {
		_, dropped := b.Dropped[name]
		if !dropped && (listed[i] != "" || !isOver(sn.gone[name], b.Now)) {
			return fmt.Errorf("%s was gone, and is neither dropped nor over: %w", name, ErrSnapshotLost)
		}
	}
	return nil
}

// isOver reports whether a window's retention is over, by its listing.
func isOver(listing string, now int64) bool {
	expires, err := strconv.ParseInt(listing[strings.LastIndexByte(listing, ' ')+1:], 10, 64)
	return err == nil && expires <= now
}

// Close lets another snapshot begin; where it fails, that is so once the lease is over.
func (sn *Snapshot) Close(ctx context.Context) {
	_, _ = sn.store.Call(ctx, lua.Release, []string{sn.store.keys.Snapshot()}, sn.token)
}

// scanAt is a page of a window that is to be read.
type scanAt struct{ window, set, cursor string }

// scanned is what was read.
type scannedPage struct {
	listing string
	record  string // among the final windows; empty where it was never sealed
	next    string // 0 at the end
	rows    []SnapshotRow
}

// errGone says that the window isn't listed any more, or its retention is over.
var errGone = errors.New("it isn't listed any more, or is over")

func (sn *Snapshot) call(ctx context.Context, at *scanAt, what string) (*Instant, *scannedPage, error) {
	s, k := sn.store, sn.store.keys
	keys := []string{k.Snapshot(), k.Ledger(), k.Schema(), k.Rebuild(), k.Origin(), s.rules, k.Banned(), k.Windows()}
	args := []any{sn.token, sn.lease.Milliseconds(), *s.readAs.Load(), what}
	if at != nil {
		shown, hidden := k.Both(at.window)
		keys, args = append(keys, shown, hidden, k.Final()), append(args, at.window, at.cursor, snapshotRows)
	}
	reply, err := s.Call(ctx, lua.Snapshot, keys, args...)
	if err != nil {
		return nil, nil, err
	}
	if len(reply) >= 6 && reply[0] == "read" && (len(reply) == 10) == (at != nil) {
		instant, err := readInstant(reply)
		for field := range sn.Begin.Ledger {
			if err == nil && instant.Ledger[field] == "" {
				err = Faultf("%s has no position any more: Redis has lost the ledger, or a part of it", field)
			}
		}
		if err != nil || at == nil {
			return instant, nil, err
		}
		page, err := readPage(reply[6:])
		return instant, page, err
	}
	return nil, nil, sn.refusal(reply)
}

func (sn *Snapshot) refusal(reply []any) error {
	words, err := Texts(reply)
	if err != nil {
		return Unexpected(lua.Snapshot, reply)
	}
	switch strings.Join(words[:min(1, len(words))], "") {
	case "lost":
		return ErrSnapshotLost
	case "other":
		return ErrSnapshotBusy
	case "rebuilding":
		return ErrRebuilding
	case "gone":
		return errGone
	case "missing":
		return Faultf("Redis has lost a key of it: consumer rebuild brings it back")
	case "schema":
		if len(words) == 2 {
			return &SchemaError{Prefix: sn.store.prefix, Wanted: sn.store.schema, Found: words[1]}
		}
	case "torn":
		if len(words) == 2 {
			return fmt.Errorf("%s: %w", words[1], ledger.ErrTorn)
		}
	}
	return Unexpected(lua.Snapshot, reply)
}

func readInstant(reply []any) (in *Instant, err error) {
	in = &Instant{Rules: map[string]string{}}
	if now, ok := reply[1].(string); ok {
		in.Now, err = strconv.ParseInt(now, 10, 64)
	}
	fields, ok := reply[2].([]any)
	by, failed := list(reply[4])
	if err != nil || !ok || failed != nil || len(fields) != 2*len(by) {
		return nil, Unexpected(lua.Snapshot, reply)
	}
	if in.Ledger, err = Fields(reply[2]); err != nil {
		return nil, err
	}
	if in.Origins, err = Fields(reply[3]); err != nil {
		return nil, err
	}
	for i, fingerprint := range by {
		if field, ok := fields[2*i].(string); ok && fingerprint != "" {
			in.Rules[field] = fingerprint
		}
	}
	in.bans, ok = reply[5].(string)
	if !ok {
		return nil, Unexpected(lua.Snapshot, reply)
	}
	return in, nil
}

func readPage(reply []any) (*scannedPage, error) {
	page := &scannedPage{}
	var ok [3]bool
	page.listing, ok[0] = reply[0].(string)
	page.record, ok[1] = reply[1].(string)
	page.next, ok[2] = reply[2].(string)
	rows, err := list(reply[3])
	if err != nil || ok != [3]bool{true, true, true} || len(rows)%2 != 0 {
		return nil, Unexpected(lua.Snapshot, reply)
	}
	page.rows = make([]SnapshotRow, 0, len(rows)/2)
	for i := 0; i < len(rows); i += 2 {
		score, err := strconv.ParseFloat(rows[i+1], 64)
		if err != nil || math.IsNaN(score) {
			return nil, Faultf("%q is no score, of %q", clip(rows[i+1]), clip(rows[i]))
		}
		page.rows = append(page.rows, SnapshotRow{rows[i], score})
	}
	return page, nil
}
