package client

import "time"

// Ref identifies a window of a board.
type Ref struct {
	Board  string
	Period string // weekly, monthly, yearly, or another configured period
	// Window is the window's name, such as 2026-W48, or Current or Previous. Empty means Current.
	Window string
}

// Windows relative to Redis's clock.
const (
	Current  = "current"
	Previous = "previous"
)

// Ranks selects how equal points are ranked. Empty means Ordinal.
type Ranks string

// Styles of ranks. The digits are the ranks of four members, of whom the second and third are equal.
const (
	Ordinal     Ranks = "ordinal"     // 1234: the member that reached the points first ranks first
	Competition Ranks = "competition" // 1224: equal members share the best of their ranks
	Modified    Ranks = "modified"    // 1334: equal members share the worst of their ranks
	Dense       Ranks = "dense"       // 1223: shared ranks without gaps; only for Standings read from the top
)

// Window describes a window of a board.
type Window struct {
	Board       string    `json:"board"`
	Period      string    `json:"period"`
	Window      string    `json:"window"` // its name, such as 2026-W48
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`          // exclusive
	SecondsLeft int64     `json:"seconds_left"` // until End; 0 after it
	TimeZone    string    `json:"time_zone"`    // IANA name
	TickMS      int64     `json:"tick_ms"`      // the precision of ReachedAt, in ms
	// Fields are the names of a board's fields, most significant first; nil on a board that has points.
	Fields  []string `json:"fields"`
	Members int64    `json:"members"`
	// HasEvents is false if no event has counted yet, or the window's retention is over.
	HasEvents bool `json:"has_events"`
}

// State summarises [Status] in one word.
type State string

// States of a window. If several apply, the first one in this list is reported.
const (
	StateLost       State = "lost"       // a key is missing in Redis
	StateEmpty      State = "empty"      // no event has counted yet, or the retention is over
	StateBackup     State = "backup"     // an archived copy of a window that was still open
	StateArchived   State = "archived"   // a final window from the archive
	StateRefilling  State = "refilling"  // Redis was lost or the boards were rebuilt, and Kafka is being read again
	StateIncomplete State = "incomplete" // some events are missing permanently
	StateStalled    State = "stalled"    // the events of some partitions do not count at the moment
	StateLagging    State = "lagging"    // some events are not counted yet
	StateCurrent    State = "current"
)

// Status describes how current and complete an answer is.
type Status struct {
	State State `json:"state"`
	// AsOf is the time of the read, by Redis's clock, or when the archive's copy was taken. It is zero if Redis has
	// no standings.
	AsOf time.Time `json:"as_of"`
	// ReportedAt is the time of the earliest of the partitions' last reports, on which Stalled, Lag and BehindMS are
	// based. It is zero if no partition has a report.
	ReportedAt time.Time `json:"reported_at"`
	// Lag is the number of records that are not counted yet, and BehindMS the age of the oldest of them, in ms.
	// Both are nil if a consumer has not reported them.
	Lag      *int64 `json:"lag"`
	BehindMS *int64 `json:"behind_ms"`
	// Complete is false if records of the window were deleted from Kafka before they were counted.
	Complete bool `json:"complete"`
	Final    bool `json:"final"` // no event can change the window any more
	// Revision is the number of times that the window has become final, from 1; 0 if it is not final.
	Revision   int64              `json:"revision"`
	Stalled    []StalledPartition `json:"stalled_partitions"` // partitions whose events do not count at the moment
	Incomplete []string           `json:"incomplete"`         // partitions with missing records
	// Ledger has the position of each partition. At position 480, every record before offset 480 is counted.
	Ledger map[string]string `json:"ledger"`
	// Shards has an entry per shard if there are several. Each shard is read at its own instant.
	Shards []ShardStatus `json:"shards"`
	// Reached reports whether all records given to [Client.WaitingFor] are counted; nil without WaitingFor.
	Reached *bool `json:"reached"`
}

// StalledPartition is a partition whose events do not count at the moment.
type StalledPartition struct {
	Partition string `json:"partition"` // topic and number, such as points/3
	// Reason is the reason of a halt or a wait, such as gap or redis_full; no_consumer; or transaction, if an open
	// transaction holds events back.
	Reason string `json:"reason"`
}

// ShardStatus is the time and the ledger of a shard's read.
type ShardStatus struct {
	Shard  int               `json:"shard"`
	AsOf   time.Time         `json:"as_of"`
	Ledger map[string]string `json:"ledger"`
}

// Standing is a row. For a member without a standing, only Member is set.
type Standing struct {
	Place  int64  `json:"place"` // only in Found: the rank among the members of the lookup
	Rank   int64  `json:"rank"`  // from 1; 0: the member has no standing
	Member string `json:"member"`
	Name   string `json:"name"`   // display name, if members have names
	Points int64  `json:"points"` // 0 on a board that has fields
	// Fields are the fields of a board with its own rule; nil on a board that has points.
	Fields    map[string]int64 `json:"fields"`
	ReachedAt time.Time        `json:"reached_at"` // precise to the window's TickMS: the first ms of the tick
}

// WindowOnly is a window without rows.
type WindowOnly struct {
	Window Window `json:"window"`
	Status Status `json:"status"`
}

// Page is a page of a window's rows.
type Page struct {
	Window    Window     `json:"window"`
	Status    Status     `json:"status"`
	Ranks     Ranks      `json:"ranks"`
	InRange   *int64     `json:"in_range"` // number of members between MinPoints and MaxPoints; nil without a range
	Standings []Standing `json:"standings"`
	// NextCursor is Query.Cursor for the next page; empty on the last page.
	NextCursor string `json:"next_cursor"`
}

// Around is a member's row with the rows above and below it.
type Around struct {
	Window    Window     `json:"window"`
	Status    Status     `json:"status"`
	Ranks     Ranks      `json:"ranks"`
	Member    string     `json:"member"`
	Standings []Standing `json:"standings"`
}

// Member is a member's standing in a window.
type Member struct {
	Window   Window   `json:"window"`
	Status   Status   `json:"status"`
	Ranks    Ranks    `json:"ranks"`
	Standing Standing `json:"standing"`
	// Percentile is the share of members that rank below, in percent; nil if the member has no standing.
	Percentile *float64 `json:"percentile"`
	Above      *Above   `json:"above"` // nil for the first member, and for a member without a standing
}

// Above is the member with the next better rank.
type Above struct {
	Standing

	// PointsToNextRank is how many more points are needed to pass this member; nil on a board that has fields.
	PointsToNextRank *int64 `json:"points_to_next_rank"`
}

// Found has the members of a lookup.
type Found struct {
	Window    Window     `json:"window"`
	Status    Status     `json:"status"`
	Ranks     Ranks      `json:"ranks"`
	Standings []Standing `json:"standings"` // by rank, each with its Place
	Absent    []string   `json:"absent"`    // members without a standing
}

// Rank is the rank that a member would have that reaches the given points now.
type Rank struct {
	Window           Window     `json:"window"`
	Status           Status     `json:"status"`
	Rank             int64      `json:"rank"`                // below all members that already have as many points
	MembersAtOrAbove int64      `json:"members_at_or_above"` // number of members with at least as many points
	MembersAbove     int64      `json:"members_above"`       // number of members with more points
	Standings        []Standing `json:"standings"`           // n rows above that rank, and n from that rank on
}

// Percent is the last member among the best given percent of the members.
type Percent struct {
	Window   Window    `json:"window"`
	Status   Status    `json:"status"`
	Percent  float64   `json:"percent"`
	Rank     int64     `json:"rank"`     // the member's rank; 0 if the window is empty
	Standing *Standing `json:"standing"` // nil if the window is empty
}

// MemberOfBoards is a member's standings on several boards and in several periods.
type MemberOfBoards struct {
	Member    string   `json:"member"`
	Ranks     Ranks    `json:"ranks"`
	Standings []Member `json:"standings"`
}

// Board is a board that has at least one window.
type Board struct {
	Board   string   `json:"board"`
	Score   string   `json:"score"`  // how a member's events are combined: sum, best or last
	Fields  []Field  `json:"fields"` // most significant first; the field points alone with the default rule
	Periods []Period `json:"periods"`
	// Archived: Redis has none of the board's windows, but the archive does.
	Archived bool `json:"archived"`
}

// Field is a field of a board's standings.
type Field struct {
	Field string `json:"field"`
	Max   int64  `json:"max"`
	Order string `json:"order"` // whether most or fewest is better
}

// Period is a period of a board, with the number of its windows. First and Last are the first and last window in
// Redis and the archive.
type Period struct {
	Period          string `json:"period"`
	Windows         int64  `json:"windows"`          // number of windows in Redis
	ArchivedWindows int64  `json:"archived_windows"` // number of windows in the archive; some may be in Redis, too
	First           string `json:"first"`
	Last            string `json:"last"`
}

// Windows lists the windows of a board and a period in Redis and in the archive.
type Windows struct {
	Board    string         `json:"board"`
	Period   string         `json:"period"`
	TimeZone string         `json:"time_zone"`
	Current  string         `json:"current"`  // empty before the first window
	Previous string         `json:"previous"` // empty if there is none
	Windows  []ListedWindow `json:"windows"`  // latest first
	// ArchiveUnavailable: the archive cannot be read, so windows that only the archive has are missing.
	ArchiveUnavailable bool `json:"archive_unavailable"`
}

// ListedWindow is a window in the list.
type ListedWindow struct {
	Window      string    `json:"window"`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"` // exclusive
	SecondsLeft int64     `json:"seconds_left"`
	Current     bool      `json:"current"`
	Members     *int64    `json:"members"`  // nil if Redis has lost the window
	Archived    bool      `json:"archived"` // the window is in the archive but not in Redis
}
