-- +goose Up

-- Who writes: the leader with the largest token that has written so far.
CREATE TABLE leader (
	id    smallint PRIMARY KEY CHECK (id = 1),
	token bigint   NOT NULL,
	owner text     NOT NULL
);
INSERT INTO leader (id, token, owner) VALUES (1, 0, '');

-- A row is a copy of a window: of a final one, or a backup of one that takes events still.
CREATE TABLE windows (
	id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	board        text        COLLATE "C" NOT NULL,
	period       text        COLLATE "C" NOT NULL,
	name         text        COLLATE "C" NOT NULL, -- 2026-W47
	revision     bigint      NOT NULL CHECK (revision >= 0), -- from 1 of a final window; 0 of a backup
	final        boolean     NOT NULL CHECK (final = (revision > 0)),
	start_at     timestamptz NOT NULL,
	end_at       timestamptz NOT NULL, -- the first instant after the window
	as_of        timestamptz NOT NULL, -- when the copy was taken
	taken_by     bigint      NOT NULL, -- the token of the leader that took it
	fields       json,                 -- what the board counts, most significant first; null: points
	zone         text        NOT NULL,
	tick_ms      bigint      NOT NULL CHECK (tick_ms > 0), -- reached_at is the first ms of a tick
	ledger       json        NOT NULL, -- partition -> position, of the seal's instant or the backup's first page
	incomplete   json,                 -- partitions of which records of the window are missing; null: none
	sealed_at    timestamptz CHECK ((sealed_at IS NOT NULL) = final),
	reopened_why text,                 -- why the revision before was reopened
	members      bigint      NOT NULL CHECK (members >= 0), -- how many rows there are once it is whole
	rows_written bigint      NOT NULL DEFAULT 0 CHECK (rows_written BETWEEN 0 AND members),
	checksum     text        NOT NULL DEFAULT '0000000000000000', -- of the rows written, 16 hex digits
	state        text        NOT NULL CHECK (state IN ('writing', 'whole', 'removing'))
);
CREATE UNIQUE INDEX windows_whole   ON windows (board, period, name, revision) WHERE state = 'whole';
CREATE UNIQUE INDEX windows_writing ON windows (board, period, name, revision) WHERE state = 'writing';
CREATE INDEX windows_start          ON windows (start_at, id);

CREATE TABLE standings (
	window_id  bigint           NOT NULL REFERENCES windows (id),
	rank       bigint           NOT NULL, -- from 1, without gaps or ties
	member     text             COLLATE "C" NOT NULL, -- U+0000 is written as U+2400 and 0, U+2400 twice
	points     bigint,                    -- null where the board has fields of its own
	fields     json,                      -- {"wins": 3, …}; null where the board counts points
	score      double precision NOT NULL, -- what Redis sorted by
	reached_at timestamptz      NOT NULL,
	PRIMARY KEY (window_id, rank)
);
CREATE UNIQUE INDEX standings_member ON standings (window_id, member);

-- Of every window the newest copy that is whole: final if there is one, else the backup.
CREATE VIEW results AS
SELECT w.board, w.period, w.name, w.start_at, w.end_at, w.final, w.revision, w.as_of, w.members,
       s.rank, s.member, s.points, s.fields, s.reached_at, s.score, w.id AS window_id
FROM windows w JOIN standings s ON s.window_id = w.id
WHERE w.state = 'whole' AND NOT EXISTS (
	SELECT 1 FROM windows n
	WHERE n.board = w.board AND n.period = w.period AND n.name = w.name AND n.state = 'whole' AND n.revision > w.revision);
