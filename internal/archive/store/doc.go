// Package store keeps copies of windows in SQL, in SQLite or PostgreSQL: every revision of final
// windows, and backups of open ones. It knows neither Redis nor Kafka.
//
// A copy is written by one leader at a time, in transactions of some thousand rows, and is shown
// once it is whole:
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
// A crash at any point leaves one of these states, and the next leader continues from it: Begin finds
// an unfinished copy of the same seal and where its rows end, or the whole copy. The copy of an open
// window is begun anew. A call whose outcome is unknown is repeated.
//
// # Fencing
//
// Every transaction that writes begins by updating the only row of leader, where it holds a lower
// token than its own, or its own token and owner; where it holds anything else, the error is
// ErrFenced and nothing is written. The race that this is for:
//
//  1. Leader A, token 5, is in the middle of Append, and is paused.
//  2. Its lease runs out. Leader B gets it, with token 6, and begins to write.
//  3. A goes on.
//
// In PostgreSQL, A's transaction has locked the row of leader until it ends. Paused for less than
// half a minute, it commits or rolls back first, and B waits: what A has written is then in order, and
// B reads it after. Paused for longer, the server ends A's session and with it the transaction: B
// goes on, A's commit fails. Isolation is read committed, set by every transaction: B's update
// that waited reads A's row again and finds the token as A left it.
//
// In SQLite, the transaction is begun by BEGIN IMMEDIATE, and has the only lock for writing. Nobody
// takes it from a paused process: B's transactions fail as locked (busy_timeout) until A goes on,
// which commits, or until A is killed, which rolls back.
//
// In both, whatever A does next finds token 6. An owner that is unique (of a process's start)
// makes it hold also where Redis went back and gave the same token twice: who writes first has it,
// and the other is fenced until it gets a larger one, above LargestToken.
package store
