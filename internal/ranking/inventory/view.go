// Package inventory reads what is under a prefix as Redis describes it, whichever configuration wrote it: the
// number of shards, the schema, the boards. It also removes some of the boards, or all.
package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rules"
)

// View is the standings of all shards under a prefix. It reads them, and Drop removes them.
type View struct {
	Prefix string
	Shards ledger.Shards // the number of shards
	Schema string        // as found in Redis; empty if it has none

	Zone, WeekStart, Cluster string

	layouts map[string]codec.Layout  // by period
	own     map[string]periods.Parts // of the periods that aren't built in
	client  redis.UniversalClient
	timeout time.Duration
	stores  []*ranking.Store // one per shard
}

// NewView reads the schema under a prefix. The number of shards is that of FindNumber, with shards as the expected one.
// If there is no schema, the error is a *ranking.SchemaError. If there are several numbers to choose from, the error is a
// *SeveralError. In both cases, and if this program doesn't understand the schema, NewView also returns a
// View that can only be dropped.
func NewView(ctx context.Context, client redis.UniversalClient, prefix string, shards ledger.Shards, timeout time.Duration) (*View, error) {
	v := &View{Prefix: prefix, layouts: map[string]codec.Layout{}, own: map[string]periods.Parts{}, client: client, timeout: timeout}
	err := v.find(ctx, max(shards, 1))
	if several, ok := errors.AsType[*SeveralError](err); ok {
		return v, several
	}
	if err != nil {
		return nil, err
	}
	if v.Schema == "" {
		return v, &ranking.SchemaError{Prefix: prefix}
	}
	if err = v.read(); err == nil && v.Shards > 1 {
		same, failed := v.sameSchema(ctx)
		if failed != nil {
			return nil, failed
		}
		err = same
	}
	if err != nil {
		return v, fmt.Errorf("the schema under the prefix %q: %w", prefix, err)
	}
	return v, nil
}

// Number reads the prefix's number of shards again.
func (v *View) Number(ctx context.Context) (Number, error) {
	return ReadNumber(ctx, v.client, v.Prefix, v.timeout)
}

// Stores returns the shards.
func (v *View) Stores() []*ranking.Store { return v.stores }

// SameWindows reports whether the windows of a period are the same as under another prefix.
func (v *View) SameWindows(o *View, period string) bool {
	mine, own := v.own[period]
	others, owns := o.own[period]
	if own || owns {
		return mine == others
	}
	return v.Zone == o.Zone && (period != string(periods.Weekly) || v.WeekStart == o.WeekStart)
}

// LayoutOf returns the layout of a window's scores, given the rule in its listing, and the fields of that
// rule (empty for the default rule). ok is false if the schema doesn't have the period.
func (v *View) LayoutOf(period, rule string) (l codec.TupleLayout, fields codec.Fields, ok bool, err error) {
	kept, ok := v.layouts[period]
	if !ok || rule == "" {
		return kept.OfPoints(), codec.Fields{}, ok, nil
	}
	r, err := rules.ParseRule(rule)
	if err != nil {
		return l, fields, true, ranking.Faultf("a window of %s is listed with a rule that this program doesn't know: %v", v.Prefix, err)
	}
	var own *periods.Parts
	if of, ok := v.own[period]; ok {
		own = &of
	}
	length, err := lengthOf(periods.Period(period), own)
	if err != nil {
		return l, fields, true, ranking.Faultf("the schema of %s: period %q: %v", v.Prefix, ranking.Clip(period), err)
	}
	if l, err = codec.NewTupleLayout(kept.Kind, length, r.Fields); err != nil {
		return l, fields, true, ranking.Faultf("a window of %s is listed with a rule that its layout has no room for: %v", v.Prefix, err)
	}
	return l, r.Fields, true, nil
}

// States reads the state of each shard, each as of its own moment.
func (v *View) States(ctx context.Context) ([]ledger.State, error) {
	return onEach(ctx, v.stores, (*ranking.Store).State)
}

// Listings reads the listing of each shard.
func (v *View) Listings(ctx context.Context) ([]map[string]string, error) {
	return onEach(ctx, v.stores, (*ranking.Store).Listings)
}

// onEach calls ask for all stores concurrently.
func onEach[T any](ctx context.Context, stores []*ranking.Store, ask func(*ranking.Store, context.Context) (T, error)) ([]T, error) {
	answers := make([]T, len(stores))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i, s := range stores {
		group.Go(func() (err error) {
			answers[i], err = ask(s, ctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return answers, nil
}

// Sibling returns the stores of another number of shards under the same prefix, whether or not anything is
// there.
func (v *View) Sibling(shards ledger.Shards) []*ranking.Store {
	other := *v
	other.use(shards)
	return other.stores
}

// SchemaFor returns the view's schema with another number of shards.
func (v *View) SchemaFor(shards ledger.Shards) (string, error) {
	text := map[string]any{}
	d := json.NewDecoder(strings.NewReader(v.Schema))
	d.UseNumber()
	if err := d.Decode(&text); err != nil {
		return "", ranking.Faultf("%q is no schema", ranking.Clip(v.Schema))
	}
	text["shards"] = int(shards)
	schema, err := json.Marshal(text)
	return string(schema), err
}

// shard returns a store without layouts.
func (v *View) shard(shard int, of ledger.Shards) *ranking.Store {
	return ranking.Bare(v.client, v.Prefix, shard, of, v.timeout)
}

// use sets the view's number of shards.
func (v *View) use(shards ledger.Shards) {
	v.Shards, v.stores = shards, nil
	for i := range int(shards) {
		v.stores = append(v.stores, v.shard(i, shards))
	}
}

// find determines the number of shards, which is the expected one if there are none, and reads the schema of the first
// shard that has one.
func (v *View) find(ctx context.Context, expected ledger.Shards) error {
	v.use(expected)
	number, err := FindNumber(ctx, v.client, v.Prefix, expected, v.timeout)
	if err != nil || number == 0 {
		return err
	}
	v.use(number)
	for _, s := range v.stores { // Redis may have lost the first shard
		st, err := s.State(ctx)
		if v.Schema = st.Schema; err != nil || v.Schema != "" {
			return err
		}
	}
	return nil
}

// SeveralError reports that a prefix has boards with several numbers of shards, so that it is unknown which
// of them are meant.
type SeveralError struct {
	Prefix string
	Shards []ledger.Shards
}

// Unwrap makes it a fault: a repeated call doesn't help.
func (e *SeveralError) Unwrap() error { return ranking.Faultf("boards of several numbers of shards") }

func (e *SeveralError) Error() string {
	return fmt.Sprintf("under the prefix %q there are boards of several numbers of shards (%s): set redis.shards to the one that is meant",
		e.Prefix, numberList(e.Shards))
}

func (v *View) read() error {
	var s struct {
		Cluster string `json:"cluster"`
		Hash    string `json:"hash"`
		Periods map[string]struct {
			K      int            `json:"k"`
			Layout string         `json:"layout"`
			Max    int64          `json:"max"`
			Tick   int64          `json:"tick"`
			Of     *periods.Parts `json:"of"`
		} `json:"periods"`
		Shards  int    `json:"shards"`
		Version int    `json:"v"`
		Week    string `json:"week"`
		Zone    string `json:"zone"`
	}
	if err := json.Unmarshal([]byte(v.Schema), &s); err != nil {
		return ranking.Faultf("%q is no schema", ranking.Clip(v.Schema))
	}
	if s.Version != ranking.SchemaVersion || s.Shards != int(v.Shards) {
		return ranking.Faultf("it is of version %d with %d shards, and this program reads version %d with %d there", s.Version, s.Shards, ranking.SchemaVersion, int(v.Shards))
	}
	v.Cluster, v.Zone, v.WeekStart = s.Cluster, s.Zone, s.Week
	for name, p := range s.Periods {
		length, err := lengthOf(periods.Period(name), p.Of)
		if err != nil {
			return ranking.Faultf("it has a period %q, which this program doesn't know: %v", ranking.Clip(name), err)
		}
		layout, err := codec.New(codec.Kind(p.Layout), length, p.Max)
		if err != nil || layout.K != p.K || layout.Tick != p.Tick {
			return ranking.Faultf("its layout of %s scores is not one that this program writes", name)
		}
		v.layouts[name] = layout
		if p.Of != nil {
			v.own[name] = *p.Of
		}
	}
	return nil
}

// lengthOf returns the length that a period's layouts are made for. own is nil for a built-in period.
func lengthOf(name periods.Period, own *periods.Parts) (time.Duration, error) {
	if own == nil {
		_, err := periods.Parse(string(name))
		return name.Length(), err
	}
	rule, err := periods.Of(name, *own)
	if err != nil {
		return 0, err
	}
	return rule.Length(), nil
}

// sameSchema returns as other which shard lacks the schema that was found or has another one; nil if none
// does.
func (v *View) sameSchema(ctx context.Context) (other, err error) {
	states, err := v.States(ctx)
	if err != nil {
		return nil, err
	}
	for i := range states {
		switch states[i].Schema {
		case v.Schema:
		case "":
			return ranking.Faultf("shard %d of %d has none: nothing was written there, or Redis has lost it", i, int(v.Shards)), nil
		default:
			return ranking.Faultf("shard %d of %d has another one than the others", i, int(v.Shards)), nil
		}
	}
	return nil, nil
}
