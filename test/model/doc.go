// Package model models the ledger's protocol, and the rules by which windows are complete, in
// worlds that are small enough to search exhaustively. It shares no code with the consumer: the
// model verifies the protocol, and the consumer's own tests verify that the code follows it.
//
// The first model (world.go) has one partition with a few events of a few members. Two consumers
// may both believe that they own it at any time, which covers a zombie, a takeover and a pause.
// Their batches and pieces end anywhere. Redis executes a call at once, late or never, and its
// answer may be lost. Consumers crash. Redis goes back to any earlier state, is wiped, or dies in
// the middle of a script. A rebuild approaches the live ledger as closely as the protocol permits,
// under a hold whose lease can lapse at any moment, and then swaps or dies during the swap. Over a
// torn ledger the rebuild names the window that it keeps; from then on nothing is promised about
// that window's scores.
//
// Invariants: the scores equal what the ledger denotes, and every bad event that the ledger has
// passed is among the dead letters. From every state, the end, in which every event counts, can be
// reached.
//
// The second model (complete.go) covers which windows are complete although Kafka deletes records
// and Redis is lost. It has one partition whose record times are not monotonic. The head of its log
// is deleted at any moment, or its end is cut off. A clock advances in steps. A consumer reads,
// applies, and commits an offset with its trail at any time. It may also die and leave a call on its
// way; then another consumer, which knows only what is committed, takes over. Redis goes back or is
// wiped; a rebuild replaces what it can. A window is one step of the clock, and max_future is 0.
//
// Invariants: a window that starts at or after the origin's time contains every event that the log
// ever had for it, up to the ledger. An origin decreases only by a rebuild. With on_gap: halt, a
// lost Redis is not filled from a log that lacks an event of a live window. From every state, either
// the end or a halt because of missing events can be reached.
//
// The second model assumes what the protocol assumes: no record's time is later than the moment at
// which the record is appended, and neither is the event time of a record without a time. If a start
// resolves its offset by time, either all records have a time or none has. Kafka answers all
// requests of a start as of one moment. Nothing is appended to a log that was cut until a consumer
// that takes over the partition has examined the log and committed what is left of the trail;
// otherwise the log could have other records at the same offsets, and look unchanged.
//
// The third model (shards.go) has two shards, each with its own ledger. Each event of the one
// partition changes a member of the first shard, a member of the second, or no member. A batch ends
// anywhere and is folded once for both shards; its pieces are applied to both concurrently. A shard
// without changes lags until a look moves it. The worker dies and leaves a late call to each shard.
// Its successor finishes each sweep at the sweep's own end, together with the shards whose positions
// are within that sweep, and then reads on from the lowest position. One master goes back, is wiped
// or dies in a script independently of the other; both are wiped at once; the log's head is deleted;
// Kafka forgets what was committed.
//
// Invariants: each shard contains what its own ledger denotes, from its origin on. An origin past
// the topic's first offset is named. The committed offset is not above the lowest position until a
// master goes back. Events that counted are never treated as events that never existed, unless both
// Redis and Kafka forgot them. From every state, the end, in which both shards have everything and
// Kafka knows it, can be reached; a torn shard is rebuilt. The first model covers calls that are
// sent again, and several workers with late calls.
//
// The fourth model (rules.go) has rules that change. Under each of two rules, a record changes
// another member, no member, or a member of another shard. Workers with either rule take over a
// partition in mid-sweep; with one shard, two of them run at once, each a zombie to the other. Late
// calls of replaced workers arrive, Redis or one master goes back, and unused rule texts are cleaned
// up. A worker finishes each sweep by the rules of its fingerprint, levels the shards that lag by
// the rules noted on the shards that are ahead, and then uses its own rules.
//
// Invariant: the changes of a record, in all shards, are its changes under one of the rules, applied
// once, as far as the ledgers denote the record. From every state, the end can be reached, also by
// workers that know only what others left: a missing rule text would prevent this.
//
// With several shards the fourth model assumes what no ledger of a single shard can verify: Redis
// does not go back past a change of rules; calls that are on their way when Redis goes back are
// lost; and no call that begins a batch is still on its way when a worker with other rules starts.
// A test shows that without these assumptions a record can count by both rules, or by neither.
//
// The fifth model (seals.go) has final windows: one window on two shards, which closes at any
// moment, and a log that grows before and after that. A worker sends pieces to both shards and omits
// the windows that it knows to be final. A sealer may pause between any two of its steps: finding
// that the window is due, looking up the log's end, sealing one shard, and sealing the other. The
// process dies with pieces on their way; a seal is taken back on one shard; one master goes back.
//
// Invariants: no event changes a final window. Events that were in the log before the window closed
// are in the window as far as the ledger has progressed, and all of them are once the window is
// final. A final window contains exactly the events that its seal's ledger counts, except those that
// arrived while it was final before, which are noted when a seal is taken back. A window that was
// reopened becomes final as a later revision. From every state, the end, in which both shards are
// final and have read the whole log, can be reached.
//
// The fifth model assumes that no sealer uses a clock that is ahead of all others, and that the
// process has at most one piece per shard on its way; the first model covers several.
//
// The sixth model (copies.go) has a second copy of the standings. It has one or two partitions, two
// shards, and workers that may own a partition at the same time and leave a late call. A job either
// pauses the partitions, copies each shard part by part and switches, or builds each shard from the
// log and renames it; then it keeps one window or replaces all of them. A job dies at any step, a
// hold lapses at any moment, and one shard goes back with its scores, ledger, hold and new copy. Two
// jobs run at once. Each of their steps is one call, so this covers the late calls of a dead job and
// a job that has lost its lease. Bans move standings, and a new leader seals a window.
//
// Invariants: the scores of the live copy, and of a window that a rename keeps, equal what the
// ledger denotes; no event is in a final window twice; a switch does not open a final window. Every
// fair run without further faults reaches the end, in which every event counts and no job and no
// hold is left (see space.actor).
//
// The sixth model omits: a different number of shards (each shard is copied to a shard of the same
// number); final windows under a reshard, except that seal; the origin and the listing of windows;
// and the time between a job's last check of the new copy and the switch, and after the switch.
//
// The seventh model (generations.go) has generations: the record of the live copy, what each shard
// knows of the record, and what the replicas remember. Jobs copy shard by shard, check, switch, mark
// both copies and report. Between any two steps a job dies, a replica restarts, one master or all
// of them go back, or the master with the record is lost. If the live copy lacks a shard, an
// operator makes another copy live. Copies that are not live expire. A member is banned.
//
// Invariants: no job writes to the live copy; only a copy that a switch has named is live; no shard
// is refilled from the log while a whole copy exists; and a replica that has read the record and
// applied its bans shows no banned member. Every fair run without further faults reaches the end:
// one record, which all shards of its copy know and all replicas use, and all of these shards are at
// the end of the log. A switch that was reported is still in force, also after the master of {0}
// went back alone or was lost. The model does not promise this after several such faults.
//
// The seventh model omits the scores, which the sixth model has, and time. It assumes that an old
// copy does not expire before a replica that finds one of its shards has repaired what the shard
// knows (a day compared with a second), and that replicas apply their bans again after Redis has
// gone back.
//
// Each variant breaks one rule of a protocol, and a test requires that the search finds a violation.
// A variant without a violation means that the rule is unnecessary or that the model is wrong.
// gone back.
//
// Each variant breaks one rule of a protocol, and a test requires that the search finds a violation.
// A variant without a violation means that the rule is unnecessary or that the model is wrong.
package model
