package snapshot

import (
	"encoding/json"
	"io"
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
	listing string
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
