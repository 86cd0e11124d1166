package simulate

// This file handles events that are refused in only some of their windows. A rebuild keeps the windows whose
// events the log has lost, and replaces the others. In those, it may refuse other events than the consumer,
// which refused an event in all of its windows:
//
//	                        yearly    daily of this event     max_points is 1000
//	600 at offset 0         600       600 yesterday           the consumer counts it
//	600 at offset 1         600       0                       the consumer refuses it: the year would have 1200
//	a rebuild from offset 1 600       600                     the year is kept, and the day has room for the event

import (
	"maps"
	"slices"

	"github.com/standings/standings/test/oracle"
)

const refusedSome = "an event counts in the windows that a rebuild replaced, and was refused in those that it kept"

// refusedByWindow finds which of a member's doubtful events were refused in each window, if no single
// choice fits all windows.
func (w *world) refusedByWindow(user string, all []oracle.Record, doubt []oracle.At, standings map[string]uint64) {
	windows := map[oracle.At]map[string]bool{}
	listings := map[string]bool{}
	for _, r := range all {
		if at := (oracle.At{Partition: r.Partition, Offset: r.Offset}); slices.Contains(doubt, at) {
			windows[at] = w.windowsOf(r)
			maps.Copy(listings, windows[at])
		}
	}
	for _, listing := range slices.Sorted(maps.Keys(listings)) {
		for choice := range 1 << len(doubt) {
			refused := map[oracle.At]bool{}
			for i, at := range doubt {
				refused[at] = choice>>i&1 == 1
			}
			if !w.fitsIn(listing, user, all, windows, refused, standings) {
				continue
			}
			for at, is := range refused {
				if is && windows[at][listing] {
					if w.refusedIn[at] == nil {
						w.refusedIn[at] = map[string]bool{}
					}
					w.refusedIn[at][listing] = true
					w.count(refusedSome)
				}
			}
			break
		}
	}
}

// windowsOf returns the windows in which a record counts.
func (w *world) windowsOf(r oracle.Record) map[string]bool {
	o := w.oracle()
	o.Add(r)
	all := map[string]bool{}
	if want, err := o.Expected(w.now()); err == nil {
		for listing := range want.Windows {
			all[listing] = true
		}
	}
	return all
}

// fitsIn reports whether a member's standing in one window results from the events without the refused
// ones. The doubtful events are left out of the other windows.
func (w *world) fitsIn(listing, user string, all []oracle.Record, windows map[oracle.At]map[string]bool, refused map[oracle.At]bool, standings map[string]uint64) bool {
	o := w.oracle()
	for _, r := range all {
		at := oracle.At{Partition: r.Partition, Offset: r.Offset}
		if others, doubtful := windows[at]; doubtful {
			without := maps.Clone(others)
			if !refused[at] {
				delete(without, listing)
			}
			maps.Copy(without, r.Without)
			r.Without = without
		}
		o.Add(r)
	}
	want, err := o.Expected(w.now())
	if err != nil {
		return false
	}
	score, wanted := want.Boards[listing][user]
	is, found := standings[listing]
	return found == wanted && is == score
}

// withoutRefused adds the windows in which a record was refused to those in which it does not count.
func (w *world) withoutRefused(partition int, offset int64, without map[string]bool) map[string]bool {
	refused := w.refusedIn[oracle.At{Partition: partition, Offset: offset}]
	if len(refused) == 0 {
		return without
	}
	all := maps.Clone(refused)
	maps.Copy(all, without)
	return all
}
