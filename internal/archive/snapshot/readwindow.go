package snapshot

// A window's records: its begin, its pages, and that it is gone.

import (
	"encoding/binary"
	"math"

	"github.com/standings/standings/internal/ranking"
)

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
	r.whole[r.window] = &counted{section: r.section, listing: r.listing}
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
