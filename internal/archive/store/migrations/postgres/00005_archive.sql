-- +goose Up

-- The leader with the largest token that has written so far.
CREATE TABLE leader (
	id    smallint PRIMARY KEY CHECK (id = 1),
	token bigint   NOT NULL,
	owner text     NOT NULL
);
INSERT INTO leader (id, token, owner) VALUES (1, 0, '');

-- A row is a copy of a window: of a final one, or a backup of an open one.
CREATE TABLE windows (
	id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	board        text        COLLATE "C" NOT NULL,
	period       text        COLLATE "C" NOT NULL,
	name         text        COLLATE "C" NOT NULL, -- 2026-W47
	revision     bigint      NOT NULL CHECK (revision >= 0), -- from 1 of a final window; 0 of a backup
	start_at     timestamptz NOT NULL,
	end_at       timestamptz NOT NULL, -- the first instant after the window
	as_of        timestamptz NOT NULL, -- when the window was sealed, or when the backup began
	sealed_at    timestamptz CHECK ((sealed_at IS NOT NULL) = (revision > 0)),
	reopened_why text,                 -- why the revision before was reopened
	fields       json,                 -- the board's fields, most significant first; null: points
	max_points   bigint,               -- the most points a member could have; null if the board has fields
	zone         text        NOT NULL,
	tick_ms      bigint      NOT NULL CHECK (tick_ms > 0), -- reached_at is the first ms of a tick
	ledger       json        NOT NULL, -- partition -> position, at as_of
	incomplete   json,                 -- partitions whose records of the window are partly missing; null: none
	members      bigint      NOT NULL CHECK (members >= 0), -- rows of a whole copy that were shown
	hidden       bigint      NOT NULL DEFAULT 0 CHECK (hidden >= 0), -- rows of members who were banned
	erased       bigint      NOT NULL DEFAULT 0 CHECK (erased >= 0), -- rows whose members were erased since
	rows_written bigint      NOT NULL DEFAULT 0 CHECK (rows_written >= 0),
	checksum     text        NOT NULL DEFAULT '0000000000000000', -- of the rows, 16 hex digits
	state        text        NOT NULL CHECK (state IN ('writing', 'whole', 'removing'))
);
CREATE UNIQUE INDEX windows_whole   ON windows (board, period, name, revision) WHERE state = 'whole';
CREATE UNIQUE INDEX windows_writing ON windows (board, period, name, revision) WHERE state = 'writing';
CREATE INDEX windows_start          ON windows (start_at, id);

-- Rows have no foreign key: to check it for each row doubled the time of writing. Sweep deletes a
-- window's rows before the window.
CREATE TABLE standings (
	window_id  bigint           NOT NULL,
	place      bigint           NOT NULL, -- from 1, without gaps or ties: among all rows, by score
	rank       bigint,                    -- the same among the rows that were shown; null if the member was banned
	member     text             COLLATE "C", -- U+0000 is written as U+0001 U+0001, U+0001 as U+0001 U+0002
	points     bigint,                    -- null if the board has fields
	fields     json,                      -- {"wins": 3, …}; null if the board counts points
	score      double precision,          -- the score in Redis
	reached_at timestamptz,
	PRIMARY KEY (window_id, place)
);
CREATE UNIQUE INDEX standings_rank ON standings (window_id, rank);
-- The rows of erased members keep their place and rank, and nothing else.
CREATE INDEX standings_erased ON standings (window_id, place) WHERE member IS NULL;

-- The place of each member. An index of standings would be written row by row in random order; this
-- table is filled in its own order once all rows of a copy are in.
CREATE TABLE members (
	window_id bigint NOT NULL,
	member    text   COLLATE "C" NOT NULL,
	place     bigint NOT NULL,
	PRIMARY KEY (window_id, member)
);

-- Erased members. No copy becomes whole with a row of theirs.
CREATE TABLE erasures (
	member      text    COLLATE "C" PRIMARY KEY,
	rows_erased bigint  NOT NULL DEFAULT 0,
	done        boolean NOT NULL DEFAULT false -- false: some copies may still have a row
);

-- The newest whole copy of each window: the latest revision, else the backup. Members who were banned
-- when it was taken are not in it.
CREATE VIEW results AS
SELECT w.board, w.period, w.name, w.start_at, w.end_at, w.revision > 0 AS final, w.revision, w.as_of, w.members,
       s.rank, s.member, s.points, s.fields, s.reached_at, s.score, w.id AS window_id
FROM windows w
JOIN standings s ON s.window_id = w.id
JOIN members m ON m.window_id = s.window_id AND m.member = s.member AND m.place = s.place -- finds a member by members
WHERE w.state = 'whole' AND s.rank IS NOT NULL AND NOT EXISTS (
	SELECT 1 FROM windows n
	WHERE n.board = w.board AND n.period = w.period AND n.name = w.name AND n.state = 'whole' AND n.revision > w.revision);
