// Package topic publishes final windows to a Kafka topic. It publishes each window once for all replicas: a
// header, every standing in the order of ranks, and a trailer, in one partition and one transaction.
//
//	final, not published ─▶ producer id ─▶ published windows, read ─▶ transaction:
//	                         (epoch + 1)    (the topic .done)          header, standings, trailer, done
//
// A second topic records which windows are published, by a record in the same transaction. The record exists if
// and only if the window is published, whatever happens to Redis, the archive or the leader.
//
// # Fencing
//
// The lease in Redis decides which leader may begin, but it is no fence: a leader that is paused past its lease
// continues for a moment. The epoch of the producer id prevents such a leader from writing. All replicas of a
// consumer have one transactional id. A replica that requests its producer id gets the next epoch; the coordinator
// aborts any transaction of an earlier epoch, and then refuses that epoch (KIP-98). It prevents this race:
//
//  1. Leader A has sent half a window, and is paused.
//  2. Its lease expires. Leader B requests the producer id, which aborts A's transaction. B reads which windows
//     are published, and publishes the window.
//  3. A continues. Its records and its commit are refused: ErrFenced.
//
// If A was paused before it had requested the producer id, then in step 3 A fences B. B's transaction is aborted.
// A reads which windows are published after it got the producer id, so it sees everything that B has committed. So
// a leader whose commit succeeds has read everything that was committed before; if another leader got the producer
// id in between, the commit is refused. This needs no clock and no lease; without these, two leaders would only
// abort each other's transactions.
//
// Any error ends a producer's session, and its knowledge of the published windows is dropped. The next session
// starts with a new producer id and reads the published windows again: a commit with an unknown outcome is either
// found there, or was aborted.
//
// # What is published
//
// With an archive, the archive's copy of the window is published, so that a revision is the same in both. Without
// one, the window is read from Redis as the archiver does. If Redis went back to before the seal or was lost, it
// may have other standings than were published as the same revision. Such a window is not published: like the
// archiver, the publisher reopens it, so that the next sealing makes the next revision.
package topic
