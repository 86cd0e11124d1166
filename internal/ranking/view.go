package ranking

// The standings under any prefix, as what stands there says of itself: another
// configuration wrote them.

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
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/rules"
)

// View is the standings under a prefix, of all shards. It reads, and Drop removes them.
type View struct {
	Prefix string
	Shards ledger.Shards // how many it has
	Schema string        // as it was found; empty if there is none

	Zone, WeekStart, Cluster string

	recorded bool // the number of shards

	layouts map[string]codec.Layout  // by period
	own     map[string]periods.Parts // of the periods that aren't built in
	client  redis.UniversalClient
	timeout time.Duration
	stores  []*Store // one a shard
}

// NewView reads the schema under a prefix. The number of shards is the given one if there
// are boards of so many, else one, else the one that there is. Where there is no schema, or
// one that this program doesn't understand, the error is *SchemaError or says so, and
// *SeveralError where there are several numbers of shards to choose from: then there is a
// View to be dropped alone.
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
		return v, &SchemaError{Prefix: prefix}
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

// Number is how many shards the prefix has by now.
func (v *View) Number(ctx context.Context) (Number, error) {
	return ReadNumber(ctx, v.client, v.Prefix, v.timeout)
}

// Stores are the shards.
func (v *View) Stores() []*Store { return v.stores }

// Layout is how a period's scores are laid out, if its boards are kept.
func (v *View) Layout(period string) (codec.Layout, bool) {
	l, ok := v.layouts[period]
	return l, ok
}

// SameWindows reports whether a period cuts time as it does under another prefix.
func (v *View) SameWindows(o *View, period string) bool {
	mine, own := v.own[period]
	others, owns := o.own[period]
	if own || owns {
		return mine == others
	}
	return v.Zone == o.Zone && (period != string(periods.Weekly) || v.WeekStart == o.WeekStart)
}

// LayoutOf is how the scores of a window are laid out whose listing has this rule,
// and the fields of that rule, none of the default one. ok is false where boards of its period
// aren't kept.
func (v *View) LayoutOf(period, rule string) (l codec.TupleLayout, fields codec.Fields, ok bool, err error) {
	kept, ok := v.layouts[period]
	if !ok || rule == "" {
		return kept.OfPoints(), codec.Fields{}, ok, nil
	}
	r, err := rules.ParseRule(rule)
	if err != nil {
		return l, fields, true, Faultf("a window of %s is listed with a rule that this program doesn't know: %v", v.Prefix, err)
	}
	var own *periods.Parts
	if of, ok := v.own[period]; ok {
		own = &of
	}
	length, err := lengthOf(periods.Period(period), own)
	if err != nil {
		return l, fields, true, Faultf("the schema of %s: period %q: %v", v.Prefix, clip(period), err)
	}
	if l, err = codec.NewTupleLayout(kept.Kind, length, r.Fields); err != nil {
		return l, fields, true, Faultf("a window of %s is listed with a rule that its layout has no room for: %v", v.Prefix, err)
	}
	return l, r.Fields, true, nil
}

// States is what stands beside the boards of each shard, of a moment of its own.
func (v *View) States(ctx context.Context) ([]ledger.State, error) {
	return onEach(ctx, v.stores, (*Store).State)
}

// Listings is what each shard lists.
func (v *View) Listings(ctx context.Context) ([]map[string]string, error) {
	return onEach(ctx, v.stores, (*Store).Listings)
}

// onEach asks all stores at once.
func onEach[T any](ctx context.Context, stores []*Store, ask func(*Store, context.Context) (T, error)) ([]T, error) {
	answers := make([]T, len(stores))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
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

// askedAtOnce is how many shards are read at once.
const askedAtOnce = 32

// Sibling are the stores of another number of shards under the same prefix, whether or not
// anything is there.
func (v *View) Sibling(shards ledger.Shards) []*Store {
	other := *v
	other.use(shards)
	return other.stores
}

// SchemaFor is the view's schema for another number of shards.
func (v *View) SchemaFor(shards ledger.Shards) (string, error) {
	text := map[string]any{}
	d := json.NewDecoder(strings.NewReader(v.Schema))
	d.UseNumber()
	if err := d.Decode(&text); err != nil {
		return "", Faultf("%q is no schema", clip(v.Schema))
	}
	text["shards"] = int(shards)
	schema, err := json.Marshal(text)
	return string(schema), err
}

// shard is a store that knows nothing of how scores are written.
func (v *View) shard(shard int, of ledger.Shards) *Store {
	keys := newKeys(v.Prefix, shard, of)
	return &Store{client: v.client, prefix: v.Prefix, shard: shard, shards: of, keys: keys, rules: keys.Rules(), borders: keys.Borders(), timeout: v.timeout}
}

// use makes it a view of so many shards.
func (v *View) use(shards ledger.Shards) {
	v.Shards, v.stores = shards, nil
	for i := range int(shards) {
		v.stores = append(v.stores, v.shard(i, shards))
	}
}

// find finds how many shards there are: by the record, or those that are expected, or one, or
// others.
func (v *View) find(ctx context.Context, expected ledger.Shards) error {
	number, err := ReadNumber(ctx, v.client, v.Prefix, v.timeout)
	if err != nil {
		return err
	}
	if number.Shards > 0 {
		v.recorded = true
		v.use(number.Shards)
		all, err := v.withSchema(ctx, v.stores)
		return v.takeSchema(ctx, all, err)
	}
	v.use(expected)
	if expected > 1 {
		all, err := v.withSchema(ctx, v.stores) // its first may be the one that Redis has lost
		if err != nil || len(all) > 0 {
			return v.takeSchema(ctx, all, err)
		}
	}
	one, err := v.withSchema(ctx, []*Store{v.shard(0, 1)})
	if err != nil || len(one) > 0 {
		v.use(1)
		return v.takeSchema(ctx, one, err)
	}
	found, err := numbers(ctx, v.client, v.Prefix, v.timeout)
	switch {
	case err != nil || len(found) == 0:
		return err
	case len(found) > 1:
		return &SeveralError{Prefix: v.Prefix, Shards: found}
	}
	v.use(found[0])
	return v.takeSchema(ctx, v.stores[:1], nil)
}

// takeSchema reads the schema of the first of some shards, if there is one.
func (v *View) takeSchema(ctx context.Context, shards []*Store, err error) error {
	if err != nil || len(shards) == 0 {
		return err
	}
	st, err := shards[0].State(ctx)
	v.Schema = st.Schema
	return err
}

// withSchema are those of some shards that have a schema, read in one go. Without a record of
// their number, what a reshard is copying isn't there yet.
func (v *View) withSchema(ctx context.Context, shards []*Store) (there []*Store, err error) {
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	pipe := v.client.Pipeline()
	schemas, copies := make([]*redis.IntCmd, len(shards)), make([]*redis.IntCmd, len(shards))
	for i, s := range shards {
		schemas[i], copies[i] = pipe.Exists(ctx, s.keys.Schema()), pipe.Exists(ctx, s.keys.Copy())
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("look for boards of any number of shards under %q: %w", v.Prefix, redisconn.NameRight(err, "", v.Prefix))
	}
	for i, s := range shards {
		if schemas[i].Val() == 1 && (v.recorded || copies[i].Val() == 0) {
			there = append(there, s)
		}
	}
	return there, nil
}

// SeveralError says that a prefix has boards of several numbers of shards, so that it isn't
// known which are meant.
type SeveralError struct {
	Prefix string
	Shards []ledger.Shards
}

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
		return Faultf("%q is no schema", clip(v.Schema))
	}
	if s.Version != schemaVersion || s.Shards != int(v.Shards) {
		return Faultf("it is of version %d with %d shards, and this program reads version %d with %d there", s.Version, s.Shards, schemaVersion, int(v.Shards))
	}
	v.Cluster, v.Zone, v.WeekStart = s.Cluster, s.Zone, s.Week
	for name, p := range s.Periods {
		length, err := lengthOf(periods.Period(name), p.Of)
		if err != nil {
			return Faultf("it has a period %q, which this program doesn't know: %v", clip(name), err)
		}
		layout, err := codec.New(codec.Kind(p.Layout), length, p.Max)
		if err != nil || layout.K != p.K || layout.Tick != p.Tick {
			return Faultf("its layout of %s scores is none that this program writes", name)
		}
		v.layouts[name] = layout
		if p.Of != nil {
			v.own[name] = *p.Of
		}
	}
	return nil
}

// lengthOf is what scores of a period are laid out over. A built-in one has no parts.
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

// sameSchema says which shard hasn't got the schema that was found, if one hasn't.
func (v *View) sameSchema(ctx context.Context) (other, err error) {
	states, err := v.States(ctx)
	if err != nil {
		return nil, err
	}
	for i := range states {
		switch states[i].Schema {
		case v.Schema:
		case "":
			return Faultf("shard %d of %d has none: nothing was written there, or Redis has lost it", i, int(v.Shards)), nil
		default:
			return Faultf("shard %d of %d has another one than the others", i, int(v.Shards)), nil
		}
	}
	return nil, nil
}
