// Package snapshot is copies of the standings outside Redis, from which they come back where the log
// alone doesn't reach far enough.
//
// A snapshot is read while consumers go on, without a pause and without a hold. It consists of pages:
// some members of a window, with the ledger of the instant at which they were read, in one script
// (lua/snapshot.lua). No two pages need be of one instant. What is restored is exact all the same:
//
//	score of a member on a page        = its score there
//	                                     + its events that the page's ledger doesn't denote
//	score of a member on no page       = its events that the first ledger doesn't denote
//
// as a position is a set of counted events: 120..480@8f3c… denotes, of [120, 480), those of members
// with a hash below 8f3c…, so a page in the middle of a sweep is as good as any. test/model/snapshot.go
// searches all that can happen, and shows of each rule below what becomes of it without.
//
// # Reading
//
// A page is a stretch of a scan (ZSCAN), in no order that means anything. By rank or by score it
// wouldn't do: members move past the reader while they are read, and would be on no page though they
// were there all the time. A scan returns who is there at each of its calls, once or several times.
//
//  1. One call reads the first ledger and sets a token, for a lease. Then the windows are listed.
//     A window that is opened later has all of its events past the first ledger.
//  2. Each page is one call, which compares the token and the schema, refuses a torn ledger and a
//     rebuild under way, and reads members, the ledger, origins, the version of bans, and the window's
//     listing.
//  3. After all pages, what is dropped, what was ever sealed and the texts of rules are read, and the
//     token is compared once more. Then the snapshot is whole.
//
// Who is on several pages may be taken from any, with that page's position. Who is on no page wasn't
// in the window at one call at least. Nobody leaves a window (rule 3 below apart), so they weren't in
// it at the first ledger either, and have no event that it denotes. Hence these rules:
//
//  1. Redis that goes back, to before the token was set, ends the snapshot: somebody was in the window
//     by the first ledger, and no longer is. Where it goes back to after that, the token is there, and
//     who was in at the first ledger still is. So the token comes in the very call that reads it.
//  2. A swap takes the token away. It may bring back a window that was dropped before the first ledger,
//     with events that the ledger denotes, after the listing was read.
//  3. Bans move standings from one of a window's two sets to the other, and those are read one after
//     the other. So a window isn't begun while a ban is being carried out, and is begun anew where a
//     page has another version of the bans. It isn't enough to look at the end: Redis may have gone
//     back past the ban. Who is erased is on no page, and nothing is counted for them.
//  4. A window that is sealed, or reopened, or both, between two pages is begun anew: while it is final the
//     ledger goes on, and the window doesn't. So each page has the record of its seal. All pages of a final
//     window are of after its seal.
//  5. A scan's cursors are those of one process of Redis: where another has taken over, the window is
//     begun anew.
//  6. A window that is dropped, or over, is left out; it is among what is dropped, which is read last. One
//     that was gone and is neither in the end ends the snapshot: Redis went back to before the drop. So does
//     one that has lost a key, and a ledger that has lost a position; the snapshots before stay.
//
// The lowest position of a partition is always that of the first ledger, since all others are of later
// in one history. A partition that it doesn't have, one that was added since, counts from its origin.
// Origins are taken as the latest of any page, so that a window that lacks events on one page is
// shown as incomplete.
//
// Each shard has a ledger, and so a token, pages and a first ledger of its own. It is restored to any number
// of shards: a row goes to the shard that its member is of by then, and is as of the ledger of its page; who
// is on no page is as of the first ledger of the shard that they were of (internal/rebuild/share.go).
//
// # Restoring
//
// A restore is a rebuild (internal/rebuild) whose shadow is loaded from pages first, and whose fold
// leaves out what a member has. It runs on an empty Redis, which is held meanwhile so that no consumer
// begins there, on a torn one, or beside live boards, once those are past all pages.
//
//		verify ─▶ lock ─▶ load ─▶ begin at the first ledger ─▶ fold, past every page ─▶ as any rebuild:
//		          └────────── shadow keys, which expire by a lease ──────────┘          close, hold, swap
//
//	 1. The whole snapshot is read and its checksums are compared, before Redis is touched. The schema
//	    has to be the same, the log has to begin at or before the first ledger and to end at or after
//	    the last position of any page, and the rules by which every partition was counted on every page
//	    have to be those of the restore: one record must not count by two.
//	 2. The lock of a rebuild is taken; live boards stay as they are. Where there are none, a hold is
//	    taken as well, and renewed with the lock.
//	 3. Pages are loaded into the shadow's windows, rows of both sets as ones that are shown. Each call
//	    compares, in the shadow, up to which row of which snapshot it is loaded, and moves that in the
//	    same script: so a call that is sent again adds nothing, and a Redis that goes back meanwhile is
//	    noticed, and not gone on with as if all were there. Of two rows of a member the later is taken.
//	    A window that is dropped or over is left out.
//	 4. The shadow's ledger is begun once all is loaded, which the same script compares: at the offset
//	    before which the first ledger has every event, From. Its origins are the snapshot's.
//	 5. The log is folded into it, from there. Of each member and window the events that its row's
//	    position denotes are left out, and of a final window all are. Only who has events between the
//	    first and the last position of the snapshot needs to be looked up: they are found in the log
//	    first, then in the pages, and where memory doesn't hold them, some hashes at a time.
//	 6. Once the shadow's ledger denotes all that any page's does, its scores are exactly what it
//	    denotes. Before that they are not, and nothing may be swapped.
//	 7. From here on it is a rebuild's shadow: bans are taken from the live ones or the bans topic, the
//	    swap compares both ledgers, or finds none, and writes all in one script. Final windows of live
//	    boards are kept. What the swap needs beside is written before it, and harms no board without it:
//	    what is dropped, and what was sealed (restored.lua).
//
// A restore that is killed leaves shadow keys, under an id that nobody else uses, which expire, and so
// does the hold. The next one begins anew. Nobody runs on them: consumers know the live keys alone, and
// those have no ledger, or their own.
//
// # Format
//
// A snapshot is a file a shard, and manifest.json, which is written last, and removed first. Each file is
// there whole or not at all (Files).
//
//	file     "lbsnap01", then blocks, and nothing behind the block that has the end record
//	block    length of the packed bytes, length of the records: 4 bytes each, least first;
//	         xxHash64 of both lengths and the packed bytes, 8 bytes; records, packed by zstd
//	records  a letter and what belongs to it; numbers are uvarints, texts have their length before
//	  H      the head: JSON
//	  I      an instant: ms, number of changes, and of each l, o or r (ledger, origin, rules), the
//	         field, its value ('' where it is gone), since the instant before
//	  W      a window is begun, or begun anew: name, listing; the next instant is whole
//	  G      a window is gone: name
//	  P      a page of the last window, at the last instant: s or h (shown, hidden), number of rows,
//	         and of each the member, and the score's 8 bytes, least first
//	  D F T  a field of what is dropped, of what is final, a text of rules: field, value
//	  E      the end: number of rows, of windows and of pages
//
// What was read of a window before it is begun anew, or gone, is in the file and doesn't count.
package snapshot
