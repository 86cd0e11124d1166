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

// digest is a hash of values, each of which says where it ends.
type digest struct {
	xxhash.Digest
	own []byte // what wasn't added to the hash yet
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

// tagOf is the ETag of an answer that shows a view: what the answer says is a function of the
// request and of what is hashed here, and of when it was read. The lag and the consumers' report are of when, too.
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
	d.texts(v.Stopped())
	d.number(int64(len(v.Shards)))
	if v.Revision == 0 { // it goes on with the events of other windows, and a final one takes none of them
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

// positions adds a ledger: in order, as that of a map is another each time.
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

// tagText is an ETag: a weak one, as the same answer may be compressed.
func tagText(sum uint64) string {
	const digits = "0123456789abcdef"
	text := []byte(`W/"0123456789abcdef"`)
	for i := range 16 {
		text[3+i] = digits[sum>>(60-4*i)&15]
	}
	return string(text)
}
