package snapshot

// What is counted at an instant, as what has changed since the one before.

import (
	"maps"
	"math"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

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
