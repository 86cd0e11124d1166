package v1

// ETags of answers about a window.

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// digest hashes a sequence of values. Each value is encoded so that its end is unambiguous.
type digest struct {
	xxhash.Digest
	own []byte // values not yet added to the hash
}

func (d *digest) number(n int64) { d.own = binary.AppendVarint(d.own, n) }

func (d *digest) text(s string) {
	d.number(int64(len(s)))
	d.own = append(d.own, s...)
}

func (d *digest) flag(on bool) {
	if d.own = append(d.own, 0); on {
		d.own[len(d.own)-1] = 1
	}
}

// tagOf returns the ETag of an answer that shows a view. The answer is a function of the request, of the values
// hashed here, and of the time of the read. The hash excludes the time, the lag and the consumers' reports, since
// these change with time alone.
func tagOf(v *reading.View, reached *bool) string {
	d := &digest{own: make([]byte, 0, 512)}
	d.Reset()
	w := &v.Window
	for _, s := range []string{v.Name, string(w.Period), w.Name, v.Lost, v.State(), v.Target.Period.Zone} {
		d.text(s)
	}
	for _, n := range []int64{w.Start, w.End, v.Tick.Milliseconds(), v.Members, v.Revision, v.Place, v.InRange, int64(len(v.Refilling))} {
		d.number(n)
	}
	d.flag(v.Listed)
	if d.flag(v.Archived); v.Archived {
		d.number(v.AsOf.UnixMilli())
	}
	if d.flag(reached != nil); reached != nil {
		d.flag(*reached)
	}
	d.texts(v.Incomplete)
	stalled := v.Stalled()
	d.number(int64(len(stalled)))
	for _, p := range stalled {
		d.text(p.Partition)
		d.text(p.Reason)
	}
	d.number(int64(len(v.Shards)))
	if v.Revision == 0 { // the ledger also advances with events of other windows, and no event changes a final window
		d.positions(v.Beside.Ledger)
		for i := range v.Shards {
			d.positions(v.Shards[i].Ledger)
		}
	}
	d.number(int64(len(v.Counts)))
	for _, n := range v.Counts {
		d.number(n)
	}
	for _, f := range v.Fields.List() {
		d.text(f.Name)
	}
	for i := range v.Standings {
		d.standing(&v.Standings[i])
	}
	d.flush()
	return tagText(d.Sum64())
}

func (d *digest) texts(all []string) {
	d.number(int64(len(all)))
	for _, s := range all {
		d.text(s)
	}
}

// positions adds a ledger, sorted by partition, since the order of a Go map varies.
func (d *digest) positions(ledger map[string]string) {
	d.number(int64(len(ledger)))
	for _, field := range slices.Sorted(maps.Keys(ledger)) {
		d.text(field)
		d.text(ledger[field])
	}
}

func (d *digest) standing(st *ranking.Standing) {
	d.text(st.Member)
	d.text(st.Name)
	for _, n := range []int64{st.Rank, st.Points, st.ReachedAt.UnixMilli(), int64(math.Float64bits(st.Score)), st.More, st.AtLeast} {
		d.number(n)
	}
	for _, n := range st.Tuple {
		d.number(n)
	}
	if len(d.own) > 400 {
		d.flush()
	}
}

func (d *digest) flush() {
	_, _ = d.Write(d.own) // it never fails
	d.own = d.own[:0]
}

// tagText formats an ETag. It is weak, since the same answer may be sent compressed or not.
func tagText(sum uint64) string {
	const digits = "0123456789abcdef"
	text := []byte(`W/"0123456789abcdef"`)
	for i := range 16 {
		text[3+i] = digits[sum>>(60-4*i)&15]
	}
	return string(text)
}
