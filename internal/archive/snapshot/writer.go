package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/standings/standings/internal/ranking"
)

// Head is what a file is of.
type Head struct {
	Prefix string `json:"prefix"`
	Shard  int    `json:"shard"`
	Shards int    `json:"shards"`
	Schema string `json:"schema"`
}

// Counts are what a file has, without what doesn't count.
type Counts struct {
	Rows    int64 `json:"rows"` // a member may be several
	Windows int64 `json:"windows"`
	Pages   int64 `json:"pages"`
}

// rowsAtOnce is how many rows a record has at most.
const rowsAtOnce = 4096

// Writer writes the file of a shard. Its memory doesn't grow with what is written.
type Writer struct {
	blocks *blockWriter
	last   ranking.Instant // of the last record
	window string
	all    Counts
	of     Counts // of the window that is being written
	rules  map[string]bool
	begun  bool
}

// NewWriter writes the head, and the first ledger.
func NewWriter(to io.Writer, head Head, begin *ranking.Instant) (*Writer, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("write the head of a snapshot: %w", err)
	}
	w := &Writer{rules: map[string]bool{}}
	if w.blocks, err = newBlockWriter(to); err != nil {
		return nil, err
	}
	w.letter('H')
	w.text(string(text))
	w.instant(begin)
	w.last = ranking.Instant{}
	return w, w.blocks.full()
}

func (w *Writer) letter(c byte)   { w.blocks.records = append(w.blocks.records, c) }
func (w *Writer) number(n uint64) { w.blocks.records = binary.AppendUvarint(w.blocks.records, n) }

func (w *Writer) text(s string) {
	w.number(uint64(len(s)))
	w.blocks.records = append(w.blocks.records, s...)
}

// Page writes a page, as it was read.
func (w *Writer) Page(p *ranking.SnapshotPage) error {
	if p.Gone {
		w.letter('G')
		w.text(p.Window)
		w.ends(false)
		return w.blocks.full()
	}
	if p.First {
		w.ends(p.Window != w.window)
		w.window, w.begun, w.last = p.Window, true, ranking.Instant{}
		w.letter('W')
		w.text(p.Window)
		w.text(p.Listing)
	}
	if !w.begun || p.Window != w.window {
		return fmt.Errorf("write a snapshot: a page of %s comes before its first", p.Window)
	}
	w.instant(&p.Instant)
	for rows := p.Rows; ; {
		some := rows[:min(len(rows), rowsAtOnce)]
		if err := w.rows(some, p.Hidden); err != nil {
			return err
		}
		if rows = rows[len(some):]; len(rows) == 0 {
			return nil
		}
	}
}

func (w *Writer) rows(rows []ranking.SnapshotRow, hidden bool) error {
	w.letter('P')
	kind := byte('s')
	if hidden {
		kind = 'h'
	}
	w.letter(kind)
	w.number(uint64(len(rows)))
	for _, r := range rows {
		w.text(r.Member)
		w.blocks.records = binary.LittleEndian.AppendUint64(w.blocks.records, math.Float64bits(r.Score))
	}
	w.of.Rows, w.of.Pages = w.of.Rows+int64(len(rows)), w.of.Pages+1
	return w.blocks.full()
}

// ends ends the window that is being written, which counts or doesn't.
func (w *Writer) ends(counts bool) {
	if w.begun && counts {
		w.all.Windows++
		w.all.Rows += w.of.Rows
		w.all.Pages += w.of.Pages
	}
	w.of, w.begun = Counts{}, false
}

// instant writes what has changed since the last record.
func (w *Writer) instant(in *ranking.Instant) {
	type change struct {
		kind         byte
		field, value string
	}
	var all []change
	for _, m := range []struct {
		kind    byte
		was, is map[string]string
	}{{'l', w.last.Ledger, in.Ledger}, {'o', w.last.Origins, in.Origins}, {'r', w.last.Rules, in.Rules}} {
		for _, field := range slices.Sorted(maps.Keys(m.is)) {
			if value := m.is[field]; m.was[field] != value {
				all = append(all, change{m.kind, field, value})
			}
		}
		for _, field := range slices.Sorted(maps.Keys(m.was)) {
			if _, ok := m.is[field]; !ok {
				all = append(all, change{m.kind, field, ""})
			}
		}
	}
	for _, fingerprint := range in.Rules {
		w.rules[fingerprint] = true
	}
	w.letter('I')
	w.number(uint64(max(in.Now, 0)))
	w.number(uint64(len(all)))
	for _, c := range all {
		w.letter(c.kind)
		w.text(c.field)
		w.text(c.value)
	}
	w.last = *in
}

// Written is what was written so far that counts, and what of the window that is being written may.
func (w *Writer) Written() Counts {
	return Counts{w.all.Rows + w.of.Rows, w.all.Windows, w.all.Pages + w.of.Pages}
}

// Rules are the fingerprints by which partitions were counted, in order.
func (w *Writer) Rules() []string { return slices.Sorted(maps.Keys(w.rules)) }

// End writes what there is beside the windows, and the end.
func (w *Writer) End(b *ranking.Beside) (Counts, error) {
	w.ends(true)
	w.instant(&b.Instant)
	for _, m := range []struct {
		letter byte
		fields map[string]string
	}{{'D', b.Dropped}, {'F', b.Final}, {'T', b.Texts}} {
		for _, field := range slices.Sorted(maps.Keys(m.fields)) {
			w.letter(m.letter)
			w.text(field)
			w.text(m.fields[field])
			if err := w.blocks.full(); err != nil {
				return Counts{}, err
			}
		}
	}
	w.letter('E')
	for _, n := range []int64{w.all.Rows, w.all.Windows, w.all.Pages} {
		w.number(uint64(n)) //nolint:gosec // a count
	}
	return w.all, w.blocks.flush()
}
