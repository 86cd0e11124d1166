// Package topic publishes final windows to a topic of Kafka, each once for all replicas and whole: a
// header, every standing in the order of ranks, and a trailer, in one partition and one transaction.
//
//	final, and not published ─▶ producer id ─▶ what is published, read ─▶ transaction:
//	                             (epoch + 1)    (the topic .done)         header, standings, trailer, done
//
// What is published is remembered in Kafka, in a second topic, by a record of the same
// transaction: it is there if and only if the window is, whatever becomes of Redis, of the archive and
// of whoever leads.
//
// # Fencing
//
// The lease in Redis says who may begin, and is no fence: a leader that is paused past its end goes on
// for a moment. What keeps it from writing is the epoch of its producer id. All replicas of a consumer have
// one transactional id. Whoever requests its producer id gets the next epoch, and the coordinator aborts
// whatever transaction an earlier one has open, and refuses it from then on. The race that this is for:
//
//  1. Leader A has sent half a window, and is paused.
//  2. Its lease runs out. Leader B requests the producer id: A's transaction is aborted. B reads what is
//     published, and publishes the window.
//  3. A goes on. What it sends, and its commit, are refused: ErrFenced.
//
// If A was paused before it had requested the producer id, it fences B in step 3, and not the other way round. B's
// transaction is aborted, and A reads what is published after it has the producer id: all that B
// has committed by then. So whoever commits has read everything that was committed before, or
// another has got the producer id in between, and its commit is refused. That needs no clock and no lease;
// without those two leaders would only get in each other's way.
//
// Any error ends the session of a producer, and what it has learned with it. The next begins with a new
// producer id and a new look at what is published: a commit of which the outcome isn't known is found
// there, or it was aborted.
//
// # What is published
//
// With an archive the archive's copy of the window is, so that a revision is the same in both; without,
// what Redis has, read as the archiver does. A window of which Redis has other standings than were
// published as the same revision, since it went back to before the seal or was lost, isn't published:
// the seal is taken back, so that the next is the next revision, as the archiver does.
package topic
