-- +goose Up

-- Times are in Unix milliseconds; the view has them as text.

-- Who writes: the leader with the largest token that has written so far.
CREATE TABLE leader (
	id    INTEGER PRIMARY KEY CHECK (id = 1),
	token INTEGER NOT NULL,
	owner TEXT    NOT NULL
) STRICT;
INSERT INTO leader (id, token, owner) VALUES (1, 0, '');

-- A row is a copy of a window: of a final one, or a backup of one that takes events still.
CREATE TABLE windows (
	id           INTEGER PRIMARY KEY AUTOINCREMENT, -- an id is never given twice
	board        TEXT    NOT NULL,
	period       TEXT    NOT NULL,
	name         TEXT    NOT NULL, -- 2026-W47
	revision     INTEGER NOT NULL CHECK (revision >= 0), -- from 1 of a final window; 0 of a backup
	final        INTEGER NOT NULL CHECK (final = (revision > 0)),
	start_at     INTEGER NOT NULL,
	end_at       INTEGER NOT NULL, -- the first instant after the window
	as_of        INTEGER NOT NULL, -- when the copy was taken
	taken_by     INTEGER NOT NULL, -- the token of the leader that took it
	fields       TEXT,             -- JSON: what the board counts, most significant first; null: points
	zone         TEXT    NOT NULL,
	tick_ms      INTEGER NOT NULL CHECK (tick_ms > 0), -- reached_at is the first ms of a tick
	ledger       TEXT    NOT NULL, -- JSON: partition -> position, of the seal's instant or the backup's first page
	incomplete   TEXT,             -- JSON: partitions of which records of the window are missing; null: none
	sealed_at    INTEGER CHECK ((sealed_at IS NOT NULL) = final),
	reopened_why TEXT,             -- why the revision before was reopened
	members      INTEGER NOT NULL CHECK (members >= 0), -- how many rows there are once it is whole
	rows_written INTEGER NOT NULL DEFAULT 0 CHECK (rows_written BETWEEN 0 AND members),
	checksum     TEXT    NOT NULL DEFAULT '0000000000000000', -- of the rows written, 16 hex digits
	state        TEXT    NOT NULL CHECK (state IN ('writing', 'whole', 'removing'))
) STRICT;
CREATE UNIQUE INDEX windows_whole   ON windows (board, period, name, revision) WHERE state = 'whole';
CREATE UNIQUE INDEX windows_writing ON windows (board, period, name, revision) WHERE state = 'writing';
CREATE INDEX windows_start          ON windows (start_at, id);

CREATE TABLE standings (
	window_id  INTEGER NOT NULL REFERENCES windows (id),
	rank       INTEGER NOT NULL, -- from 1, without gaps or ties
	member     TEXT    NOT NULL, -- U+0000 is written as U+2400 and 0, U+2400 twice
	points     INTEGER,          -- null where the board has fields of its own
	fields     TEXT,             -- JSON: {"wins": 3, …}; null where the board counts points
	score      REAL    NOT NULL, -- what Redis sorted by
	reached_at INTEGER NOT NULL,
	PRIMARY KEY (window_id, rank)
) STRICT, WITHOUT ROWID;

-- Which rank a member has. It is an index of standings in all but name: as one, it would be written
-- row by row all over the place, which a million rows take minutes for. It is filled once a copy's
-- rows are in, in its own order.
CREATE TABLE members (
	window_id INTEGER NOT NULL REFERENCES windows (id),
	member    TEXT    NOT NULL,
	rank      INTEGER NOT NULL,
	PRIMARY KEY (window_id, member)
) STRICT, WITHOUT ROWID;

-- Of every window the newest copy that is whole: final if there is one, else the backup.
CREATE VIEW results AS
SELECT w.board, w.period, w.name,
       strftime('%Y-%m-%d %H:%M:%f', w.start_at / 1000.0, 'unixepoch') AS start_at,
       strftime('%Y-%m-%d %H:%M:%f', w.end_at / 1000.0, 'unixepoch') AS end_at,
       w.final, w.revision,
       strftime('%Y-%m-%d %H:%M:%f', w.as_of / 1000.0, 'unixepoch') AS as_of,
       w.members, s.rank, s.member, s.points, s.fields,
       strftime('%Y-%m-%d %H:%M:%f', s.reached_at / 1000.0, 'unixepoch') AS reached_at,
       s.score, w.id AS window_id
FROM windows w
JOIN standings s ON s.window_id = w.id
JOIN members m ON m.window_id = s.window_id AND m.member = s.member AND m.rank = s.rank -- so that a member is looked up there
WHERE w.state = 'whole' AND NOT EXISTS (
	SELECT 1 FROM windows n
	WHERE n.board = w.board AND n.period = w.period AND n.name = w.name AND n.state = 'whole' AND n.revision > w.revision);
