package client

import "time"

// Ref names a window of a board.
type Ref struct {
	Board  string
	Period string // weekly, monthly, yearly, or what else is configured
	// Window is its name, such as 2026-W48, or Previous; empty is Current.
	Window string
}

// Windows without a name, by Redis's clock.
const (
	Current  = "current"
	Previous = "previous"
)

// Ranks is how equal points rank; empty is Ordinal.
type Ranks string

// Styles of ranks.
const (
	Ordinal     Ranks = "ordinal"     // by who reached them first: 1234
	Competition Ranks = "competition" // alike, as the first of them: 1224
	Modified    Ranks = "modified"    // alike, as the last of them: 1334
	Dense       Ranks = "dense"       // alike, without gaps: 1223, of Standings from the top on
)

// Window is a window of a board.
type Window struct {
	Board       string    `json:"board"`
	Period      string    `json:"period"`
	Window      string    `json:"window"` // its name
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`          // exclusive
	SecondsLeft int64     `json:"seconds_left"` // 0 once it is over
	TimeZone    string    `json:"time_zone"`    // IANA name
	TickMS      int64     `json:"tick_ms"`      // how exact ReachedAt is
	// Fields are the names of a board's fields, most significant first; nil on one that has points.
	Fields  []string `json:"fields"`
	Members int64    `json:"members"`
	// Counted is false where no event has come, or retention is over.
	Counted bool `json:"counted"`
}

// State is how far an answer can be trusted, in a word.
type State string

// States: of those that apply the first.
const (
	Lost       State = "lost"        // Redis has lost the window
	Refilling  State = "refilling"   // a Redis that was lost is being filled again
	Behind     State = "behind"      // some events don't count yet
	Incomplete State = "incomplete"  // events are missing
	Backup     State = "backup"      // an archived copy of a window that took events still
	NotCounted State = "not_counted" // there are no events
	Whole      State = "whole"
)

// Trust is how far an answer can be trusted.
type Trust struct {
	At    time.Time `json:"at"` // as of when the rows are true, by Redis's clock; zero where it holds nothing
	State State     `json:"state"`
	// Complete is false where records of the window were deleted from Kafka before they could count.
	Complete  bool `json:"complete"`
	Refilling bool `json:"refilling"`
	Final     bool `json:"final"` // no event can change the window any more
	// Revision is how often the window has become final, from 1; 0 where it isn't.
	Revision int64 `json:"revision"`
	// Archived: Redis doesn't have the window, and this is the archive's copy of it, which was taken
	// AsOf: of the final window, or, where Revision is 0, a backup.
	Archived bool      `json:"archived"`
	AsOf     time.Time `json:"as_of"`
	// Lag is how many records don't count yet, and BehindMS how old the oldest of them was, in ms;
	// nil where a consumer hasn't reported it.
	Lag      *int64 `json:"lag"`
	BehindMS *int64 `json:"behind_ms"`
	// ReportedAt is the time of the earliest of the partitions' last reports, from which State, Lag and
	// BehindMS come. It is zero if no partition has a report.
	ReportedAt  time.Time `json:"reported_at"`
	NotCounting []string  `json:"not_counting"` // partitions whose events nobody counts right now
	Incomplete  []string  `json:"incomplete"`   // partitions of which records are missing
	// Ledger is up to where each partition counts: 480 says that every record before 480 does.
	Ledger map[string]string `json:"ledger"`
	// Shards are those of several shards, each of which is read at a moment of its own.
	Shards []ShardTrust `json:"shards"`
	// Reached is whether what WaitingFor names counts; nil where nothing was waited for.
	Reached *bool `json:"reached"`
}

// ShardTrust is as of when one of several shards was read, and by which ledger.
type ShardTrust struct {
	Shard  int               `json:"shard"`
	At     time.Time         `json:"at"`
	Ledger map[string]string `json:"ledger"`
}

// Standing is a row. Of a member who isn't in the window it has the member alone.
type Standing struct {
	Place  int64  `json:"place"` // of Lookup: the rank among those who were looked up
	Rank   int64  `json:"rank"`  // from 1; 0: the member isn't there
	Member string `json:"member"`
	Name   string `json:"name"`   // where members have names
	Points int64  `json:"points"` // 0 on a board that has fields
	// Fields are those of a board by a rule of its own; nil on one that has points.
	Fields    map[string]int64 `json:"fields"`
	ReachedAt time.Time        `json:"reached_at"` // the first ms of its tick
}

// WindowOnly is a window without rows.
type WindowOnly struct {
	Window Window `json:"window"`
	Trust  Trust  `json:"trust"`
}

// Page is some rows of a window.
type Page struct {
	Window    Window     `json:"window"`
	Trust     Trust      `json:"trust"`
	Ranks     Ranks      `json:"ranks"`
	InRange   *int64     `json:"in_range"` // how many members have points in the range; nil without one
	Standings []Standing `json:"standings"`
	// Next is what Query.After takes for the page that follows; empty where there is none.
	Next string `json:"next"`
}

// Around is a member's surroundings.
type Around struct {
	Window    Window     `json:"window"`
	Trust     Trust      `json:"trust"`
	Ranks     Ranks      `json:"ranks"`
	Member    string     `json:"member"`
	Standings []Standing `json:"standings"`
}

// Member is a member in a window.
type Member struct {
	Window   Window   `json:"window"`
	Trust    Trust    `json:"trust"`
	Ranks    Ranks    `json:"ranks"`
	Standing Standing `json:"standing"`
	// Percentile is which share of the members rank below, in percent; nil for who isn't there.
	Percentile *float64 `json:"percentile"`
	Above      *Above   `json:"above"` // nil for the first, and for who isn't there
}

// Above is who has the next better rank.
type Above struct {
	Standing

	// PointsMissing is how many more points it takes to pass them; nil on a board that has fields.
	PointsMissing *int64 `json:"points_missing"`
}

// Found are members who were looked up.
type Found struct {
	Window    Window     `json:"window"`
	Trust     Trust      `json:"trust"`
	Ranks     Ranks      `json:"ranks"`
	Standings []Standing `json:"standings"` // by rank, with each one's Place
	Absent    []string   `json:"absent"`    // who isn't in the window
}

// Rank is the rank that points would have.
type Rank struct {
	Window    Window     `json:"window"`
	Trust     Trust      `json:"trust"`
	Rank      int64      `json:"rank"`      // below all who have as many already
	AtLeast   int64      `json:"at_least"`  // how many members have at least as many
	More      int64      `json:"more"`      // how many have more
	Standings []Standing `json:"standings"` // n rows above that rank, and n from it on
}

// Percent is who is last among the best so many percent.
type Percent struct {
	Window   Window    `json:"window"`
	Trust    Trust     `json:"trust"`
	Percent  float64   `json:"percent"`
	Rank     int64     `json:"rank"`     // 0 where the window is empty
	Standing *Standing `json:"standing"` // nil where it is empty
}

// MemberOfBoards is a member on several boards and in several periods.
type MemberOfBoards struct {
	Member    string   `json:"member"`
	Ranks     Ranks    `json:"ranks"`
	Standings []Member `json:"standings"`
}

// Board is a board that has a window.
type Board struct {
	Board   string   `json:"board"`
	Score   string   `json:"score"`  // how a member's events become a standing: sum, best or last
	Fields  []Field  `json:"fields"` // most significant first; points alone by the default rule
	Periods []Period `json:"periods"`
	// Archived: Redis has none of its windows, and the archive has.
	Archived bool `json:"archived"`
}

// Field is a field of a board's standings.
type Field struct {
	Field string `json:"field"`
	Max   int64  `json:"max"`
	Order string `json:"order"` // most or fewest: what is better
}

// Period is a period of a board, and how many of its windows there are. First and Last are of all
// of them.
type Period struct {
	Period          string `json:"period"`
	Windows         int64  `json:"windows"`          // that Redis lists
	ArchivedWindows int64  `json:"archived_windows"` // that the archive has: some may be in Redis, too
	First           string `json:"first"`
	Last            string `json:"last"`
}

// Windows are the windows of a board that hold somebody, and those in the archive.
type Windows struct {
	Board    string         `json:"board"`
	Period   string         `json:"period"`
	TimeZone string         `json:"time_zone"`
	Current  string         `json:"current"`  // empty before the first
	Previous string         `json:"previous"` // empty where there is none
	Windows  []ListedWindow `json:"windows"`  // the latest first
	// ArchiveUnavailable: the archive can't be read, and what is in it alone is missing.
	ArchiveUnavailable bool `json:"archive_unavailable"`
}

// ListedWindow is one of them.
type ListedWindow struct {
	Window      string    `json:"window"`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"` // exclusive
	SecondsLeft int64     `json:"seconds_left"`
	Current     bool      `json:"current"`
	Members     *int64    `json:"members"`  // nil where Redis has lost the window
	Archived    bool      `json:"archived"` // Redis doesn't have it, and the archive does
}
