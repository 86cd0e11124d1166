package ranking

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/testenv"
)

func beginning(partition int, found string, at int64, origin *ledger.Origin) ledger.StartPosition {
	return ledger.StartPosition{Partition: ledger.Partition{Topic: "events", Number: partition}, Found: found, At: ledger.At(at), Origin: origin}
}

func TestABeginningIsAllOrNone(t *testing.T) {
	f := someone(t)
	f.unchanged(t, func() {
		for _, all := range [][]ledger.StartPosition{
			{beginning(0, "", 5, nil), beginning(3, "", 5, nil)},
			{beginning(0, "", 5, &ledger.Origin{}), beginning(3, "9", 5, nil)},
			{beginning(0, "4", 5, nil)},
		} {
			begun, err := f.store.Begin(t.Context(), all)
			require.NoError(t, err)
			require.Equal(t, ledger.Overtaken, begun)
		}
		begun, err := f.store.Begin(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, ledger.Began, begun)
	})
	// Across a gap: from the position found, with a new origin; and a partition that was added later.
	begun, err := f.store.Begin(t.Context(), []ledger.StartPosition{beginning(3, "10", 50, &ledger.Origin{Offset: 50, Time: 9}), beginning(4, "", 0, &ledger.Origin{})})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	st, err := f.store.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"events/3": "50", "events/4": "0"}, st.Ledger)
	require.Equal(t, map[string]string{"events/3": "50 9", "events/4": "0 0"}, st.Origins)
}

// Several gaps in a row, each with its own origin: an incomplete window never becomes complete.
func TestAnOriginNeverGoesDown(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	const far = int64(1) << 53 // above this, doubles skip odd numbers
	at := int64(0)
	for i, c := range []struct{ origin, want ledger.Origin }{
		{origin: ledger.Origin{Offset: 5, Time: 900}, want: ledger.Origin{Offset: 5, Time: 900}},
		{origin: ledger.Origin{Offset: 50, Time: 89}, want: ledger.Origin{Offset: 50, Time: 900}},
		{origin: ledger.Origin{Offset: 6, Time: 1000}, want: ledger.Origin{Offset: 50, Time: 1000}},
		{origin: ledger.Origin{}, want: ledger.Origin{Offset: 50, Time: 1000}},
		{origin: ledger.Origin{Offset: far + 1, Time: far + 3}, want: ledger.Origin{Offset: far + 1, Time: far + 3}},
		{origin: ledger.Origin{Offset: far, Time: far + 2}, want: ledger.Origin{Offset: far + 1, Time: far + 3}},
	} {
		found := ""
		if i > 0 {
			found = ledger.At(at).String()
		}
		at += 10
		begun, err := f.store.Begin(t.Context(), []ledger.StartPosition{beginning(0, found, at, &c.origin)})
		require.NoError(t, err)
		require.Equal(t, ledger.Began, begun)
		st, err := f.store.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.want.String(), st.Origins["events/0"])
	}
	// Invalid content isn't kept as an origin.
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Origin(), "events/0", "nonsense").Err())
	_, err := f.store.Begin(t.Context(), []ledger.StartPosition{beginning(0, ledger.At(at).String(), at+1, &ledger.Origin{Offset: 7, Time: 8})})
	require.NoError(t, err)
	st, err := f.store.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, "7 8", st.Origins["events/0"])
}

// Redis evicted the ledger before anything counted. The origin that remains says nothing about a start that counts
// from an earlier offset; a rebuild that began there would skip events.
func TestAnOriginThatOutlivedItsLedgerAndAllWindowsIsReplaced(t *testing.T) {
	for want, f := range map[string]*fixture{
		"20 4": newFixture(t, testenv.RedisClient(t), testenv.Prefix(t)),
		"50 9": someone(t), // events before offset 50 may be missing from its windows
	} {
		begin := func(origin ledger.Origin) string {
			begun, err := f.store.Begin(t.Context(), []ledger.StartPosition{beginning(0, "", origin.Offset, &origin)})
			require.NoError(t, err)
			require.Equal(t, ledger.Began, begun)
			st, err := f.store.State(t.Context())
			require.NoError(t, err)
			return st.Origins["events/0"]
		}
		require.Equal(t, "50 9", begin(ledger.Origin{Offset: 50, Time: 9}))
		require.NoError(t, f.client.HDel(t.Context(), f.store.keys.Ledger(), "events/0").Err())
		require.Equal(t, want, begin(ledger.Origin{Offset: 20, Time: 4}))
	}
}

func TestABeginningWaitsForAHoldAndStopsAtOrphans(t *testing.T) {
	f := someone(t)
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Hold(), "token", time.Minute).Err())
	begins := func(want ledger.StartResult) {
		t.Helper()
		f.unchanged(t, func() {
			begun, err := f.store.Begin(t.Context(), []ledger.StartPosition{beginning(0, "", 0, nil)})
			require.NoError(t, err)
			require.Equal(t, want, begun)
		})
	}
	begins(ledger.HeldUp)
	require.NoError(t, f.client.Del(t.Context(), f.store.keys.Hold(), f.store.keys.Ledger()).Err())
	begins(ledger.Orphaned)
}

func TestABeginningWithAnotherSchemaNamesWhatDiffers(t *testing.T) {
	f := someone(t)
	f.use(t, codec.Wide, 1000)
	f.unchanged(t, func() {
		_, err := f.store.Begin(t.Context(), []ledger.StartPosition{beginning(0, "", 0, nil)})
		var other *SchemaError
		require.ErrorAs(t, err, &other)
		require.Equal(t, other.Wanted, f.store.Schema())
		require.Equal(t, ledger.Halt, Classify(err))
	})
}

func TestASchemaErrorNamesTheSettingsThatDiffer(t *testing.T) {
	alone(t)
	f := offlineFixture(t)
	require.JSONEq(t, `{"cluster":"c1","hash":"xxh64","periods":{
		"monthly":{"k":26,"layout":"readable","max":99999999,"tick":41},
		"weekly":{"k":26,"layout":"readable","max":99999999,"tick":10},
		"yearly":{"k":26,"layout":"readable","max":99999999,"tick":472}},
		"shards":1,"v":2,"week":"monday","zone":"UTC"}`, f.store.Schema())
	with := func(change string, to ...string) string {
		return strings.NewReplacer(append([]string{change}, to...)...).Replace(f.store.Schema())
	}
	layouts := func(kind codec.Kind, most int64) string {
		s := Schema{Cluster: "c1", Shards: 1, WeekDay: "monday", TimeZone: "UTC", Layouts: map[periods.Period]codec.Layout{}}
		for _, p := range []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly} {
			l, err := codec.New(kind, p.Length(), most)
			require.NoError(t, err)
			s.Layouts[p] = l
		}
		return s.Text()
	}
	const set = `the standings under the prefix "lb" were written with another configuration: `
	const remedy = `. Set it back, or use another redis.prefix and a group of its own for the new one`
	for _, c := range []struct{ name, found, want string }{
		{"the range of points, and k and ticks by it", layouts(codec.Readable, 1000), "max_points is 1000 in Redis, 99999999 here"},
		{"layouts, and k and ticks by them", layouts(codec.Wide, 99999999),
			"periods.monthly.layout is wide in Redis, readable here; periods.weekly.layout is wide in Redis, readable here; periods.yearly.layout is wide in Redis, readable here"},
		{"both", layouts(codec.Wide, 7), "max_points is 7 in Redis, 99999999 here; " +
			"periods.monthly.layout is wide in Redis, readable here; periods.weekly.layout is wide in Redis, readable here; periods.yearly.layout is wide in Redis, readable here"},
		{"a period more", with(`"monthly"`, `"daily":{"k":26,"layout":"readable","max":99999999,"tick":2},"monthly"`),
			`the standings under the prefix "lb" also have the periods daily, which this configuration lacks: ` + AddMissing},
		{"a period less", with(`,"yearly":{"k":26,"layout":"readable","max":99999999,"tick":472}`, ""),
			`the standings under the prefix "lb" lack the periods yearly: consumer run adds them when it starts with this configuration`},
		{"periods, and something else", with(`,"yearly":{"k":26,"layout":"readable","max":99999999,"tick":472}`, "", `"UTC"`, `"Europe/Berlin"`),
			"periods.yearly.enabled is false in Redis, true here; time_zone is Europe/Berlin in Redis, UTC here"},
		{"the zone", with(`"UTC"`, `"Europe/Berlin"`), "time_zone is Europe/Berlin in Redis, UTC here"},
		{"the week", with(`"monday"`, `"sunday"`), "week_start is sunday in Redis, monday here"},
		{"the shards", with(`"shards":1`, `"shards":4`), "redis.shards is 4 in Redis, 1 here"},
		{"the cluster", with(`"c1"`, `"c0"`), "the Kafka cluster at kafka.brokers is c0 in Redis, c1 here"},
		{"two at once", with(`"UTC"`, `"Europe/Berlin"`, `"monday"`, `"sunday"`), "time_zone is Europe/Berlin in Redis, UTC here; week_start is sunday in Redis, monday here"},
		{"what no setting derives", with(`"tick":10,`, `"tick":11,`, `"tick":10}`, `"tick":11}`), "the weekly tick is 11 in Redis, 10 here, by another version of this program"},
		{"a range in one period alone, which no configuration has", with(`"max":99999999,"tick":10}`, `"max":5,"tick":10}`), "the weekly max is 5 in Redis, 99999999 here, by another version of this program"},
		{"an earlier version", with(`"v":2`, `"v":1`), "the schema's v is 1 in Redis, 2 here, by another version of this program"},
		{"what this version doesn't know", with(`"v":2`, `"rules":{"a":1},"v":2`), "the schema's rules is {\"a\":1} in Redis, absent here, by another version of this program"},
		{"periods that are none", with(`"weekly":{"k":26,"layout":"readable","max":99999999,"tick":10}`, `"weekly":{"max":{}}`),
			"periods.weekly.layout is absent in Redis, readable here"},
		{"nonsense", "nonsense", `Redis has "nonsense", which is no schema`},
		{"other spaces", f.store.Schema() + " ", "the texts differ in form"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			if !strings.HasPrefix(want, "the standings under") {
				want = set + want + remedy
			}
			require.EqualError(t, f.store.CheckSchema(c.found), want)
		})
	}
	require.NoError(t, f.store.CheckSchema(""))
	require.NoError(t, f.store.CheckSchema(f.store.Schema()))
}

// ownSchema returns the schema of periods that aren't built in.
func ownSchema(t *testing.T, all ...periods.Rule) string {
	t.Helper()
	s := Schema{Cluster: "c1", Shards: 1, WeekDay: "monday", TimeZone: "UTC",
		Layouts: map[periods.Period]codec.Layout{}, Own: map[periods.Period]periods.Parts{}}
	for _, r := range all {
		l, err := codec.New(codec.Readable, r.Length(), 99999999)
		require.NoError(t, err)
		s.Layouts[r.Name()], s.Own[r.Name()] = l, r.Parts()
	}
	return s.Text()
}

func TestASchemaHasWhatDecidesTheWindowsOfPeriodsThatAreNotBuiltIn(t *testing.T) {
	const start, end, every = 1_793_491_200_000, 1_803_859_200_000, 72 * time.Hour
	must := func(r periods.Rule, err error) periods.Rule {
		require.NoError(t, err)
		return r
	}
	calendar := func(zone, week string) periods.Calendar {
		c, err := periods.NewCalendar(zone, week)
		require.NoError(t, err)
		return c
	}
	us := must(periods.ByCalendar("us", periods.Weekly, calendar("America/New_York", "sunday")))
	season := must(periods.Season("season", start, end))
	sprint := must(periods.Stretches("sprint", every, start))
	wanted := ownSchema(t, us, season, sprint)
	text := `{"cluster":"c1","hash":"xxh64","periods":{` +
		`"season":{"k":26,"layout":"readable","max":99999999,"of":{"end":1803859200000,"start":1793491200000},"tick":155},` +
		`"sprint":{"k":26,"layout":"readable","max":99999999,"of":{"every":259200000,"from":1793491200000},"tick":4},` +
		`"us":{"k":26,"layout":"readable","max":99999999,"of":{"calendar":"weekly","week":"sunday","zone":"America/New_York"},"tick":10}},` +
		`"shards":1,"v":2,"week":"monday","zone":"UTC"}`
	if wanted != text { // to the byte: keys are sorted, as those of a copy to other shards are
		t.Errorf("%s\n%s", wanted, text)
	}

	for _, c := range []struct {
		found periods.Rule
		want  string
	}{
		{must(periods.ByCalendar("us", periods.Weekly, calendar("America/Chicago", "sunday"))), "periods.us.time_zone is America/Chicago in Redis, America/New_York here"},
		{must(periods.ByCalendar("us", periods.Weekly, calendar("America/New_York", "monday"))), "periods.us.week_start is monday in Redis, sunday here"},
		{must(periods.ByCalendar("us", periods.Daily, calendar("America/New_York", "sunday"))), "periods.us.calendar is daily in Redis, weekly here"},
		{must(periods.Season("season", start-1000, end)), "periods.season.start is 2026-10-31T23:59:59Z in Redis, 2026-11-01T00:00:00Z here"},
		{must(periods.Season("season", start, end+1000)), "periods.season.end is 2027-03-01T00:00:01Z in Redis, 2027-03-01T00:00:00Z here"},
		{must(periods.Stretches("sprint", every+time.Second, start)), "periods.sprint.every is 72h0m1s in Redis, 72h0m0s here"},
		{must(periods.Stretches("sprint", every, start+1000)), "periods.sprint.from is 2026-11-01T00:00:01Z in Redis, 2026-11-01T00:00:00Z here"},
		{must(periods.Season("sprint", start, start+every.Milliseconds())), "periods.sprint.end is 2026-11-04T00:00:00Z in Redis, absent here; " +
			"periods.sprint.every is absent in Redis, 72h0m0s here; periods.sprint.from is absent in Redis, 2026-11-01T00:00:00Z here; " +
			"periods.sprint.start is 2026-11-01T00:00:00Z in Redis, absent here"},
	} {
		all := map[periods.Period]periods.Rule{"us": us, "season": season, "sprint": sprint}
		all[c.found.Name()] = c.found
		e := &SchemaError{Wanted: wanted, Found: ownSchema(t, all["us"], all["season"], all["sprint"])}
		require.Equal(t, c.want, strings.Join(e.Differences(), "; "))
	}
}

func TestAStateIsAllThatStandsBesideTheScores(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	before := time.Now().Add(-time.Second)
	st, err := f.store.State(t.Context())
	require.NoError(t, err)
	require.WithinRange(t, st.Now, before, time.Now().Add(time.Second))
	require.WithinRange(t, st.Asked, before, time.Now())
	require.WithinRange(t, st.Clock(), st.Now, time.Now().Add(time.Minute))
	st.Now, st.Asked = time.Time{}, time.Time{}
	none := map[string]string{}
	require.Equal(t, ledger.State{Ledger: none, Origins: none, Workers: none, Refills: map[string]int64{}, Rebuilt: map[string]bool{}}, st)
	position, err := f.store.Position(t.Context(), ledger.Partition{Topic: "events", Number: 3})
	require.NoError(t, err)
	require.Empty(t, position)

	f.begin(t)
	f.add(t, f.member("u1", 1))
	f.hasLine(t, "events/3", "host running")
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Hold(), "token", time.Minute).Err())
	st, err = f.store.State(t.Context())
	require.NoError(t, err)
	st.Now, st.Asked = time.Time{}, time.Time{}
	require.Equal(t, ledger.State{
		Schema: f.store.Schema(), Ledger: map[string]string{"events/3": "10"}, Origins: none,
		Windows: 3, Workers: map[string]string{"events/3": "host running"}, Refills: map[string]int64{}, Rebuilt: map[string]bool{}, Held: true,
	}, st)
}
