-- +goose Up

-- Files of snapshots (snapshots.url: archive:), in chunks.
CREATE TABLE snapshot_files (
	id         INTEGER PRIMARY KEY AUTOINCREMENT, -- an id is never given twice
	name       TEXT    NOT NULL UNIQUE,           -- that of the snapshot, a slash, and its own
	bytes      INTEGER NOT NULL DEFAULT 0,
	written_at INTEGER NOT NULL,                  -- when it became whole; before that, when it was begun
	whole      INTEGER NOT NULL DEFAULT 0 CHECK (whole IN (0, 1))
) STRICT;

CREATE TABLE snapshot_chunks (
	file_id INTEGER NOT NULL REFERENCES snapshot_files (id) ON DELETE CASCADE,
	number  INTEGER NOT NULL, -- from 0
	content BLOB    NOT NULL,
	PRIMARY KEY (file_id, number)
) STRICT;
