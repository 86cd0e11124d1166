package ranking

// The standings under any prefix, as what stands there says of itself: another
// configuration wrote them.

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
)

// View is the standings under a prefix. It reads, and Drop removes them.
type View struct {
	Prefix string
	Schema string // as it was found; empty where there is none

	Zone, WeekStart, Cluster string

	layouts map[string]codec.Layout // by period
	store   *Store
}

// NewView reads the schema under a prefix. Where there is none, or one that this program
// doesn't understand, the error is *SchemaError, and there is a View to be dropped alone.
func NewView(ctx context.Context, client redis.UniversalClient, prefix string, timeout time.Duration) (*View, error) {
	v := &View{
		Prefix: prefix, layouts: map[string]codec.Layout{},
		store: &Store{client: client, prefix: prefix, keys: newKeys(prefix, 0), timeout: timeout},
	}
	st, err := v.store.State(ctx)
	if err != nil {
		return nil, err
	}
	v.Schema = st.Schema
	if v.Schema == "" {
		return v, &SchemaError{Prefix: prefix}
	}
	if err := v.read(); err != nil {
		return v, fmt.Errorf("the schema under the prefix %q: %w", prefix, err)
	}
	return v, nil
}

func (v *View) read() error {
	var s struct {
		Cluster string `json:"cluster"`
		Hash    string `json:"hash"`
		Periods map[string]struct {
			K      int    `json:"k"`
			Layout string `json:"layout"`
			Max    int64  `json:"max"`
			Tick   int64  `json:"tick"`
		} `json:"periods"`
		Shards  int    `json:"shards"`
		Version int    `json:"v"`
		Week    string `json:"week"`
		Zone    string `json:"zone"`
	}
	if err := json.Unmarshal([]byte(v.Schema), &s); err != nil {
		return faultf("%q is no schema", clip(v.Schema))
	}
	if s.Version != schemaVersion || s.Shards != 1 {
		return faultf("it is of version %d with %d shards, and this program reads version %d with one", s.Version, s.Shards, schemaVersion)
	}
	v.Cluster, v.Zone, v.WeekStart = s.Cluster, s.Zone, s.Week
	for name, p := range s.Periods {
		period, err := periods.Parse(name)
		if err != nil {
			return faultf("it has a period %q, which this program doesn't know", clip(name))
		}
		layout, err := codec.New(codec.Kind(p.Layout), period.Length(), p.Max)
		if err != nil || layout.K != p.K || layout.Tick != p.Tick {
			return faultf("its layout of %s scores is none that this program writes", name)
		}
		v.layouts[name] = layout
	}
	return nil
}
