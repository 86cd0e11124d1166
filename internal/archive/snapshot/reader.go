package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Reader reads the file of a shard. What it returns was compared with its checksum, and is well
// formed: every position can be read and is at or past the first one, every score is a number. Only
// after all pages is it known that the file is whole, and which of them count: Survey reads it once
// for that. Its memory doesn't grow with the file, but for the names of windows.
type Reader struct {
	Head  Head
	Begin ranking.Instant

	blocks  *blockReader
	records []byte // of the block, that are left
	last    ranking.Instant
	from    map[string]int64 // of each partition, where the first ledger is
	window  string
	listing string
	state   readerState
	section int // how many windows were begun, or begun anew
	count   Counts
	whole   map[string]*counted
	beside  *ranking.Beside
}

// counted is what was read of a window.
type counted struct {
	section int // in which it was; 0 where it is gone
	rows    int64
	pages   int64
}

type readerState int

const (
	between   readerState = iota // windows
	begun                        // a window, no page of which was read
	inside                       // a window
	besides                      // behind the windows
	atTheEnd                     // of all
	atInstant                    // of a window, which a page follows
)

const (
	longestText   = 64 << 10 // of a field, a value, a listing
	longestRules  = 1 << 20
	longestMember = 256
	mostFields    = 1 << 20 // of a ledger
)

// NewReader reads the head. Whatever is wrong with the file is a *DamagedError.
func NewReader(from io.Reader) (*Reader, error) {
	blocks, err := newBlockReader(from)
	if err != nil {
		return nil, err
	}
	r := &Reader{blocks: blocks, whole: map[string]*counted{}, beside: &ranking.Beside{Dropped: map[string]string{}, Final: map[string]string{}, Texts: map[string]string{}}}
	if r.records, err = blocks.block(); err != nil {
		return nil, err
	}
	if err := r.head(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) head() error {
	if letter, err := r.letter(); err != nil || letter != 'H' {
		return r.blocks.damaged("it has no head")
	}
	text, err := r.text(longestText)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r.Head); err != nil {
		return r.blocks.damaged("its head can't be read: %v", err)
	}
	if r.Head.Shards < 1 || r.Head.Shard < 0 || r.Head.Shard >= r.Head.Shards {
		return r.blocks.damaged("it is of shard %d of %d", r.Head.Shard, r.Head.Shards)
	}
	if letter, err := r.letter(); err != nil || letter != 'I' {
		return r.blocks.damaged("it has no first ledger")
	}
	begin, err := r.instant()
	if err != nil {
		return err
	}
	r.Begin, r.last = *begin, ranking.Instant{}
	r.from = map[string]int64{}
	for field, text := range r.Begin.Ledger {
		at, err := ledger.Parse(text)
		if err != nil {
			return r.blocks.damaged("%s: %v", field, err)
		}
		r.from[field] = at.From
	}
	return nil
}

// Next is the next page, or the end: io.EOF. First, Gone and the rest are as they were read of Redis.
// After an error there is no more.
func (r *Reader) Next() (*ranking.SnapshotPage, error) {
	for {
		letter, err := r.letter()
		if err != nil {
			return nil, err
		}
		page, err := r.record(letter)
		if err != nil || page != nil {
			return page, err
		}
	}
}

// record reads what follows a letter.
func (r *Reader) record(letter byte) (*ranking.SnapshotPage, error) {
	switch {
	case letter == 'W' && (r.state == between || r.state == inside):
		return nil, r.begins()
	case letter == 'G' && (r.state == between || r.state == inside):
		return r.gone()
	case letter == 'I' && (r.state == begun || r.state == inside || r.state == between):
		in, err := r.instant()
		if err != nil {
			return nil, err
		}
		r.last = *in
		for field := range r.from {
			if r.state == begun && in.Ledger[field] == "" {
				return nil, r.blocks.damaged("%s has no position, and had one at first", field)
			}
		}
		if r.state == between {
			return nil, r.ends()
		}
		r.state = atInstant
		return nil, nil
	case letter == 'P' && (r.state == atInstant || r.state == inside):
		return r.page()
	case strings.IndexByte("DFTE", letter) >= 0 && (r.state == besides || r.state == atInstant):
		if err := r.ends(); err != nil {
			return nil, err
		}
		if letter == 'E' {
			return nil, r.end()
		}
		return nil, r.field(letter)
	}
	return nil, r.blocks.damaged("a record %q isn't what may come here", letter)
}

func (r *Reader) begins() error {
	name, err := r.text(longestText)
	if err != nil {
		return err
	}
	if r.whole[name] != nil && name != r.window {
		return r.blocks.damaged("%s comes twice", name)
	}
	r.window = name
	if r.listing, err = r.text(longestText); err != nil {
		return err
	}
	if _, _, err := ranking.ParseListing(r.window, r.listing); err != nil {
		return r.blocks.damaged("%v", err)
	}
	r.section++
	r.whole[r.window] = &counted{section: r.section}
	r.last, r.state = ranking.Instant{}, begun
	return nil
}

func (r *Reader) gone() (*ranking.SnapshotPage, error) {
	name, err := r.text(longestText)
	if err != nil {
		return nil, err
	}
	if r.state != inside || name != r.window {
		return nil, r.blocks.damaged("%q is gone, and wasn't read", name)
	}
	r.whole[name] = &counted{}
	r.state = between
	return &ranking.SnapshotPage{Window: name, Gone: true}, nil
}

func (r *Reader) page() (*ranking.SnapshotPage, error) {
	kind, err := r.byte()
	if err != nil {
		return nil, err
	}
	n, err := r.number()
	if err != nil {
		return nil, err
	}
	if kind != 's' && kind != 'h' || n > rowsAtOnce {
		return nil, r.blocks.damaged("a page of %d rows of the set %q", n, kind)
	}
	w := r.whole[r.window]
	page := &ranking.SnapshotPage{Instant: r.last, Window: r.window, Listing: r.listing, First: w.pages == 0, Hidden: kind == 'h'}
	for range n {
		row, err := r.row(page.Hidden)
		if err != nil {
			return nil, err
		}
		page.Rows = append(page.Rows, row)
	}
	w.pages++
	w.rows += int64(n) //nolint:gosec // at most rowsAtOnce
	r.state = inside
	return page, nil
}

func (r *Reader) row(hidden bool) (row ranking.SnapshotRow, err error) {
	if row.Member, err = r.text(longestMember); err != nil {
		return row, err
	}
	if len(r.records) < 8 {
		return row, r.blocks.damaged("a record ends in the middle")
	}
	row.Score = math.Float64frombits(binary.LittleEndian.Uint64(r.records))
	r.records = r.records[8:]
	if math.IsNaN(row.Score) || math.IsInf(row.Score, 0) {
		return row, r.blocks.damaged("the score of %q in %s is no number", row.Member, r.window)
	}
	if row.Member == "" && !hidden {
		return row, r.blocks.damaged("somebody without an id is shown in %s", r.window)
	}
	return row, nil
}

// instant reads what has changed since the last one, and returns a copy that is nobody else's.
func (r *Reader) instant() (*ranking.Instant, error) {
	now, err := r.number()
	if err != nil {
		return nil, err
	}
	n, err := r.number()
	if err != nil {
		return nil, err
	}
	if now > math.MaxInt64 || n > mostFields {
		return nil, r.blocks.damaged("an instant at %d ms, with %d changes", now, n)
	}
	in := &ranking.Instant{Now: int64(now), Ledger: r.last.Ledger, Origins: r.last.Origins, Rules: r.last.Rules}
	changed := map[byte]bool{}
	for range n {
		if err := r.change(in, changed); err != nil {
			return nil, err
		}
	}
	for _, m := range []*map[string]string{&in.Ledger, &in.Origins, &in.Rules} {
		if *m == nil {
			*m = map[string]string{}
		}
	}
	return in, nil
}

func (r *Reader) change(in *ranking.Instant, changed map[byte]bool) error {
	kind, err := r.byte()
	if err != nil {
		return err
	}
	field, err := r.text(longestText)
	if err != nil {
		return err
	}
	value, err := r.text(longestText)
	if err != nil {
		return err
	}
	into, err := r.changed(in, kind, field, value)
	if err != nil {
		return err
	}
	if !changed[kind] { // pages that were returned keep theirs
		changed[kind], *into = true, maps.Clone(*into)
		if *into == nil {
			*into = map[string]string{}
		}
	}
	if value == "" {
		delete(*into, field)
	} else {
		(*into)[field] = value
	}
	return nil
}

// changed is which map a change is of, if it is well formed.
func (r *Reader) changed(in *ranking.Instant, kind byte, field, value string) (*map[string]string, error) {
	if _, err := ledger.ParsePartition(field); err != nil {
		return nil, r.blocks.damaged("%v", err)
	}
	switch kind {
	case 'l':
		if value == "" { // of what was there
			if _, ok := r.from[field]; ok {
				return nil, r.blocks.damaged("%s has no position, and had one at first", field)
			}
			return &in.Ledger, nil
		}
		at, err := ledger.Parse(value)
		if err != nil {
			return nil, r.blocks.damaged("%s: %v", field, err)
		}
		if from, ok := r.from[field]; ok && at.From < from {
			return nil, r.blocks.damaged("%s is at %s, which is before its first position, from %d", field, value, from)
		}
		return &in.Ledger, nil
	case 'o':
		if _, err := ledger.ParseOrigin(value); err != nil && value != "" {
			return nil, r.blocks.damaged("the origin of %s: %v", field, err)
		}
		return &in.Origins, nil
	case 'r':
		if _, err := ledger.ParseFingerprint(value); err != nil && value != "" {
			return nil, r.blocks.damaged("the rules of %s: %v", field, err)
		}
		return &in.Rules, nil
	}
	return nil, r.blocks.damaged("a change of %q", kind)
}

// ends notes that the windows are behind.
func (r *Reader) ends() error {
	if w := r.whole[r.window]; w != nil && w.section > 0 && w.pages == 0 {
		return r.blocks.damaged("%s has no page", r.window)
	}
	if r.state != besides {
		r.state = besides
		r.beside.Instant = r.last
	}
	return nil
}

func (r *Reader) field(letter byte) error {
	name, err := r.text(longestText)
	if err != nil {
		return err
	}
	value, err := r.text(longestRules)
	if err != nil {
		return err
	}
	into := map[byte]map[string]string{'D': r.beside.Dropped, 'F': r.beside.Final, 'T': r.beside.Texts}[letter]
	if _, ok := into[name]; ok {
		return r.blocks.damaged("%q comes twice", name)
	}
	into[name] = value
	return nil
}

func (r *Reader) end() error {
	var is [3]int64
	for i := range is {
		n, err := r.number()
		if err != nil {
			return err
		}
		is[i] = int64(n) //nolint:gosec // it is compared
	}
	for _, w := range r.whole {
		if w.section > 0 {
			r.count.Rows, r.count.Windows, r.count.Pages = r.count.Rows+w.rows, r.count.Windows+1, r.count.Pages+w.pages
		}
	}
	if want := (Counts{is[0], is[1], is[2]}); want != r.count {
		return r.blocks.damaged("it has %+v, and was to have %+v", r.count, want)
	}
	if len(r.records) > 0 {
		return r.blocks.damaged("something is behind its end record")
	}
	if err := r.blocks.ended(); err != nil {
		return err
	}
	r.state = atTheEnd
	return io.EOF
}

// letter is the next record's, of the next block if need be.
func (r *Reader) letter() (byte, error) {
	if r.state == atTheEnd {
		return 0, io.EOF
	}
	if len(r.records) == 0 {
		var err error
		if r.records, err = r.blocks.block(); err != nil {
			return 0, err
		}
	}
	return r.byte()
}

func (r *Reader) byte() (byte, error) {
	if len(r.records) == 0 {
		return 0, r.blocks.damaged("a record ends in the middle")
	}
	c := r.records[0]
	r.records = r.records[1:]
	return c, nil
}

func (r *Reader) number() (uint64, error) {
	n, length := binary.Uvarint(r.records)
	if length <= 0 {
		return 0, r.blocks.damaged("a record ends in the middle of a number, or the number is too large")
	}
	r.records = r.records[length:]
	return n, nil
}

func (r *Reader) text(most uint64) (string, error) {
	n, err := r.number()
	if err != nil {
		return "", err
	}
	if n > most {
		return "", r.blocks.damaged("a text of %d bytes, where %d are the most", n, most)
	}
	if n > uint64(len(r.records)) {
		return "", r.blocks.damaged("a record ends in the middle of a text")
	}
	text := string(bytes.Clone(r.records[:n]))
	r.records = r.records[n:]
	return text, nil
}

// Survey is what a whole file has.
type Survey struct {
	Head   Head
	Begin  ranking.Instant
	Beside ranking.Beside
	Counts Counts
	// Reach is of every partition the highest offset that a page's position has to do with: the log has
	// to reach so far, and a restore is past all pages there.
	Reach map[string]int64
	// Origins are the latest of any page.
	Origins map[string]string
	// Rules are, of every partition, the fingerprints by which it was counted, on any page.
	Rules map[string]map[string]bool

	sections map[string]int // of each window, which of the file's sections counts
}

// counts reports whether what a reader is at, or has just returned, counts.
func (s *Survey) counts(r *Reader) bool { return s.sections[r.window] == r.section }

// SurveyOf reads a whole file, and remembers none of its rows.
func SurveyOf(from io.Reader) (*Survey, error) {
	r, err := NewReader(from)
	if err != nil {
		return nil, err
	}
	s := &Survey{Head: r.Head, Begin: r.Begin, Reach: map[string]int64{}, Origins: map[string]string{}, Rules: map[string]map[string]bool{}, sections: map[string]int{}}
	if err := s.take(&r.Begin); err != nil {
		return nil, err
	}
	for {
		page, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if page.Gone {
			continue
		}
		if err := s.take(&page.Instant); err != nil {
			return nil, r.blocks.damaged("%v", err)
		}
	}
	for name, w := range r.whole {
		if w.section > 0 {
			s.sections[name] = w.section
		}
	}
	s.Beside, s.Counts = *r.beside, r.count
	return s, s.take(&s.Beside.Instant)
}

func (s *Survey) take(in *ranking.Instant) error {
	for field, text := range in.Ledger {
		at, err := ledger.Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		s.Reach[field] = max(s.Reach[field], at.To)
	}
	for field, text := range in.Origins {
		is, err := ledger.ParseOrigin(text)
		if err != nil {
			return fmt.Errorf("the origin of %s: %w", field, err)
		}
		was, err := ledger.ParseOrigin(s.Origins[field])
		if s.Origins[field] != "" && err == nil {
			is.Offset, is.Time = max(is.Offset, was.Offset), max(is.Time, was.Time)
		}
		s.Origins[field] = is.String()
	}
	for field, fingerprint := range in.Rules {
		if s.Rules[field] == nil {
			s.Rules[field] = map[string]bool{}
		}
		s.Rules[field][fingerprint] = true
	}
	return nil
}

// Pages are the pages of a file that count, in their order: of it was surveyed.
func (s *Survey) Pages(from io.Reader, each func(*ranking.SnapshotPage) error) error {
	r, err := NewReader(from)
	if err != nil {
		return err
	}
	for {
		page, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !page.Gone && s.counts(r) {
			err = each(page)
		}
		if err != nil {
			return err
		}
	}
}
