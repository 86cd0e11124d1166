-- +goose Up

-- Times are Unix milliseconds; the view has them as text. The tables are explained in ../postgres.

CREATE TABLE leader (
	id    INTEGER PRIMARY KEY CHECK (id = 1),
	token INTEGER NOT NULL,
	owner TEXT    NOT NULL
) STRICT;
INSERT INTO leader (id, token, owner) VALUES (1, 0, '');

CREATE TABLE windows (
	id           INTEGER PRIMARY KEY AUTOINCREMENT, -- an id is never given twice
	board        TEXT    NOT NULL,
	period       TEXT    NOT NULL,
	name         TEXT    NOT NULL,
	revision     INTEGER NOT NULL CHECK (revision >= 0),
	start_at     INTEGER NOT NULL,
	end_at       INTEGER NOT NULL,
	as_of        INTEGER NOT NULL,
	sealed_at    INTEGER CHECK ((sealed_at IS NOT NULL) = (revision > 0)),
	reopened_why TEXT,
	fields       TEXT,
	max_points   INTEGER,
	zone         TEXT    NOT NULL,
	tick_ms      INTEGER NOT NULL CHECK (tick_ms > 0),
	ledger       TEXT    NOT NULL,
	incomplete   TEXT,
	members      INTEGER NOT NULL CHECK (members >= 0),
	hidden       INTEGER NOT NULL DEFAULT 0 CHECK (hidden >= 0),
	erased       INTEGER NOT NULL DEFAULT 0 CHECK (erased >= 0),
	rows_written INTEGER NOT NULL DEFAULT 0 CHECK (rows_written >= 0),
	checksum     TEXT    NOT NULL DEFAULT '0000000000000000',
	state        TEXT    NOT NULL CHECK (state IN ('writing', 'whole', 'removing'))
) STRICT;
CREATE UNIQUE INDEX windows_whole   ON windows (board, period, name, revision) WHERE state = 'whole';
CREATE UNIQUE INDEX windows_writing ON windows (board, period, name, revision) WHERE state = 'writing';
CREATE INDEX windows_start          ON windows (start_at, id);

CREATE TABLE standings (
	window_id  INTEGER NOT NULL,
	place      INTEGER NOT NULL,
	rank       INTEGER,
	member     TEXT,
	points     INTEGER,
	fields     TEXT,
	score      REAL,
	reached_at INTEGER,
	PRIMARY KEY (window_id, place)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX standings_rank ON standings (window_id, rank);
CREATE INDEX standings_erased ON standings (window_id, place) WHERE member IS NULL;

CREATE TABLE members (
	window_id INTEGER NOT NULL,
	member    TEXT    NOT NULL,
	place     INTEGER NOT NULL,
	PRIMARY KEY (window_id, member)
) STRICT, WITHOUT ROWID;

CREATE TABLE erasures (
	member      TEXT    PRIMARY KEY,
	rows_erased INTEGER NOT NULL DEFAULT 0,
	done        INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE VIEW results AS
SELECT w.board, w.period, w.name,
       strftime('%Y-%m-%d %H:%M:%f', w.start_at / 1000.0, 'unixepoch') AS start_at,
       strftime('%Y-%m-%d %H:%M:%f', w.end_at / 1000.0, 'unixepoch') AS end_at,
       w.revision > 0 AS final, w.revision,
       strftime('%Y-%m-%d %H:%M:%f', w.as_of / 1000.0, 'unixepoch') AS as_of,
       w.members, s.rank, s.member, s.points, s.fields,
       strftime('%Y-%m-%d %H:%M:%f', s.reached_at / 1000.0, 'unixepoch') AS reached_at,
       s.score, w.id AS window_id
FROM windows w
JOIN standings s ON s.window_id = w.id
JOIN members m ON m.window_id = s.window_id AND m.member = s.member AND m.place = s.place
WHERE w.state = 'whole' AND s.rank IS NOT NULL AND NOT EXISTS (
	SELECT 1 FROM windows n
	WHERE n.board = w.board AND n.period = w.period AND n.name = w.name AND n.state = 'whole' AND n.revision > w.revision);
