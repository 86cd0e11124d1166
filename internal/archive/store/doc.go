// Package store keeps copies of windows in SQL, in SQLite or PostgreSQL: every revision of final windows, and
// backups of open ones. It knows neither Redis nor Kafka.
//
// One leader at a time writes a copy, in transactions of some thousand rows. Readers see a copy once it is
// complete ("whole" in the drawing and in the schema):
//
//	Begin            Append: rows and their number, together          Finish
//	(none) ──▶ writing, 0 rows ──▶ writing, n rows ──▶ writing, all rows ──▶ whole
//	              │                                       │                    │ a newer backup,
//	              │                 an open window's rows │ copied by rank     │ or the final window
//	              └─ another copy was begun ─▶ removing ◀─┴────────────────────┘
//	                                              │ rows in chunks, then itself: Sweep
//	                                              ▼
//	                                            (none)
//
// A crash at any point leaves one of these states, and the next leader continues from it: Begin finds either the
// complete copy, or an unfinished copy of the same seal and its last row. The copy of an open window always starts
// again. A call whose outcome is unknown is repeated.
//
// # Fencing
//
// Every writing transaction first updates the only row of the table leader. The update succeeds if the row has a
// lower token than the transaction's, or the same token and owner. Otherwise the error is ErrFenced and nothing is
// written. It prevents this race:
//
//  1. Leader A, token 5, is in the middle of Append, and is paused.
//  2. Its lease expires. Leader B gets the lease, with token 6, and begins to write.
//  3. A continues.
//
// In PostgreSQL, A's transaction has locked the row of leader until it ends. If A is paused for less than half a
// minute, it commits or rolls back first, and B waits: A's write is then in order, and B reads it afterwards. If A
// is paused for longer, the server ends A's session and with it the transaction: B continues, and A's commit
// fails. Every transaction sets the isolation level read committed, so B's update, once it stops waiting, reads
// the row again and finds the token that A has committed.
//
// In SQLite, A's transaction begins with BEGIN IMMEDIATE and holds the only write lock. No other process can take
// the lock from a paused process: B's transactions fail as locked (busy_timeout) until A continues and commits, or
// A is killed, which rolls back.
//
// In both databases, A's next transaction finds token 6. The owner is unique to a start of a process. So fencing
// also works if Redis goes back and assigns the same token twice: the first leader that writes has the token, and
// the other is fenced until it gets a larger one, above LargestToken.
package store
