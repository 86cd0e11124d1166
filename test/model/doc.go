// Package model is the ledger's protocol, and that of what is complete, small enough to
// look at everything that can happen. It shares no code with the consumer: what it proves
// is the idea, which the consumer's own tests then hold the code to.
//
// One partition with a few events of a few members. Two consumers that may both
// believe that they own it, at any time: that covers a zombie, a takeover, a pause.
// Their batches and pieces end anywhere. A call to Redis is carried out at once, late,
// or never, and its answer may be lost. Consumers crash; Redis goes back to any earlier
// state, is wiped, or dies in the middle of a script; a rebuild comes as close to the
// live ledger as it may, under a hold whose lease can lapse at any moment, and swaps, or
// dies in the middle of that. Over a torn ledger it names the window that it keeps, whose
// scores promise nothing from then on.
//
// What holds in every state: the scores are what the ledger denotes; a bad event that
// the ledger has passed is among the dead letters. And from every state the end, where
// all is counted, can be reached.
//
// The second model is of which windows are complete, though Kafka deletes records and Redis
// is lost (complete.go). One partition whose records' times go back and forth; its log's head
// is deleted at any moment, or its end is cut off; a clock goes on by steps. A consumer
// reads, applies, and commits an offset with its trail whenever it likes, or dies, leaves a
// call on its way, and another takes over that knows what is committed. Redis goes back or is
// wiped; a rebuild replaces what it can. A window is a step of the clock, and max_future is 0.
//
// What holds in every state: a window that starts at or after the origin's time has all
// events that the log ever had for it, up to the ledger; an origin doesn't go down, but by a
// rebuild; and where gaps halt, a lost Redis isn't filled from a log that lacks an event of a
// live window. From every state the end can be reached, or a halt over what is gone.
//
// It takes for granted what the protocol does: no record's time lies after the moment at which
// it is appended, nor does the event of one without a time; where a start goes by time, all
// records have one, or none; Kafka answers a start's questions as of one moment; and a log
// that was cut isn't appended to before somebody who takes the partition has looked at it and
// committed what that left of the trail, as what it then has at those offsets looks the same.
//
// The third model is of two shards (shards.go), each with a ledger of its own. One partition's
// events are of members of one shard, of the other, or of nobody; a batch ends anywhere, is
// folded once for both, and its pieces go to each shard side by side. A shard without changes
// lags until a look moves it. The worker dies, and leaves a late call to each shard; the next
// one finishes sweeps by their own ends, with whoever is within them, and then reads on from the
// lowest position. One master goes back, is wiped or dies in a script without the other; both
// are wiped at once; the log's head is deleted; Kafka forgets what was committed.
//
// What holds in every state: each shard has what its own ledger denotes, from its origin on; an
// origin past where the topic began is named; what is committed isn't above the lowest position,
// until a master goes back; and nothing that counted is taken for what never came, unless Redis
// and Kafka forgot it both. From every state the end, where both shards have all and Kafka knows,
// can be reached: a torn shard is rebuilt. A call that is sent again, and more workers than one
// with their late calls, are the first model's.
//
// The fourth model is of rules that change (rules.go): by each of two rules a record is another
// member's, nobody's, or one's of another shard. Workers of either take a partition over in the
// middle of a sweep; in one shard two of them at once, each a zombie to the other. Calls of
// somebody who was replaced come late, Redis or one master goes back, texts that nothing is by are
// cleaned up. A worker finishes sweeps by the rules of their fingerprints, levels shards that
// lag by those that are noted where the others are, and then goes by its own.
//
// What holds in every state: all that a record has changed, in all shards, is what it comes to by
// one of the rules, once, as far as the ledgers denote it. From every state the end can be reached,
// also by workers who find only what others left: a text that isn't there is in the way.
//
// Where there are several shards it takes for granted what no ledger of one shard can know: that
// Redis doesn't go back past a change of rules, that what is on its way as it goes back is lost,
// and that no call which begins a batch is still on its way once a worker by other rules has come.
// A test shows that without this a record can count by both rules, or by neither.
//
// The fifth model is of final windows (seals.go): a window of two shards that closes at any moment, a
// log that grows before and after it, a worker that sends pieces to both shards and leaves out what it
// has learned to be final, and a sealer that may be paused between any two of its steps: to find the
// window due, to look up where the log ends, to seal one shard, and the other. The process dies, with
// pieces on their way; a seal is taken back on one shard; one master goes back.
//
// What holds in every state: no event changes a final window; what was in the log before the window
// closed is in it as far as the ledger has come, and all of it once it is final; in it is exactly what its
// seal's ledger counts, but for what came while it was final before, which is noted as a seal is taken
// back. What was reopened is final as a later revision.
// From every state the end, where both shards are final and have read all, can be reached.
//
// It takes for granted that nobody seals by a clock that is ahead of all others, and that of the process
// one piece a shard is on its way at a time: more of them are the first model's.
//
// The sixth model is of a second copy of the standings (copies.go). One or two partitions, two
// shards, workers that may own a partition at once and leave a late call. A job pauses the
// partitions, copies each shard part by part and switches; or it builds each shard from the log
// and renames it, and keeps a window or replaces all of them. A job dies at any step, a hold
// lapses at any moment, one shard goes back with its scores, ledger, hold and new copy. Two jobs
// run at once: each of their steps is one call, so this covers the late calls of a dead job and
// a job that has lost its lease. Bans move standings, and a new leader seals a window.
//
// In every state the scores of the live copy, and of a window that a rename keeps, are what the
// ledger denotes; no event is in a final window twice; a switch does not open a final window.
// Every fair run without further faults reaches the end, where every event counts and no job and
// no hold is left (see space.actor).
//
// It leaves out: another number of shards, as a shard is copied to a shard of the same number;
// final windows under a reshard, but for that seal; the origin and the listing of windows; what
// happens between a job's last check of the new copy and the switch, and after the switch.
//
// The seventh model is of generations (generations.go): the record of the live copy, what each
// shard knows of it, and what the replicas remember. Jobs copy shard by shard, check, switch, mark
// both copies and report. Between any two steps a job dies, a replica restarts, one master or all
// of them go back, or the master with the record is lost. An operator makes another copy live
// where the live one lacks a shard. Copies that are not live expire. A member is banned.
//
// In every state no job writes to the live copy, no copy is live that no switch has named, no
// shard is refilled from the log while a whole copy exists, and a replica that has read the record
// and applied its bans shows no banned member. Every fair run without further faults reaches the
// end: one record, all shards of its copy know it and are at the end of the log, and all replicas
// use it. A switch that was reported is still in force, also after the master of {0} went back
// alone or was lost. The model does not promise that after several such faults.
//
// It leaves out the scores, which the sixth model has, and time. It takes for granted that an old
// copy does not expire before a replica that meets a shard of it has repaired what the shard knows
// (a day against a second), and that replicas apply their bans again after Redis has gone back.
//
// A variant breaks one rule of a protocol. Each has to be caught: a rule whose loss
// nobody notices is no rule, or this is no model of it.
package model
