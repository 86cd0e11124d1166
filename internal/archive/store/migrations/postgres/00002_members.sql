-- +goose Up

-- Of a backup: when its last row was read. Rows have what counted at as_of, and may have more, up to
-- what counted then.
ALTER TABLE windows ADD COLUMN read_until timestamptz CHECK (read_until IS NULL OR NOT final);
-- How many points a member could have, on a board that counts points; null: not known.
ALTER TABLE windows ADD COLUMN max_points bigint;

-- Which rank a member has. As an index of standings it was written row by row all over the place; it
-- is filled once a copy's rows are in, in its own order.
CREATE TABLE members (
	window_id bigint NOT NULL,
	member    text   COLLATE "C" NOT NULL,
	rank      bigint NOT NULL,
	PRIMARY KEY (window_id, member)
);
INSERT INTO members (window_id, member, rank)
	SELECT s.window_id, s.member, s.rank FROM standings s JOIN windows w ON w.id = s.window_id
	WHERE w.state = 'whole' ORDER BY s.window_id, s.member;
DROP INDEX standings_member;
-- Rows go before their window does (Sweep). To look for it at each row took as long as all else of writing it.
ALTER TABLE standings DROP CONSTRAINT standings_window_id_fkey;

CREATE OR REPLACE VIEW results AS
SELECT w.board, w.period, w.name, w.start_at, w.end_at, w.final, w.revision, w.as_of, w.members,
       s.rank, s.member, s.points, s.fields, s.reached_at, s.score, w.id AS window_id
FROM windows w
JOIN standings s ON s.window_id = w.id
JOIN members m ON m.window_id = s.window_id AND m.member = s.member AND m.rank = s.rank -- so that a member is looked up there
WHERE w.state = 'whole' AND NOT EXISTS (
	SELECT 1 FROM windows n
	WHERE n.board = w.board AND n.period = w.period AND n.name = w.name AND n.state = 'whole' AND n.revision > w.revision);
