-- +goose Up

-- Files of snapshots (snapshots.url: archive:), in chunks.
CREATE TABLE snapshot_files (
	id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name       text        COLLATE "C" NOT NULL UNIQUE, -- that of the snapshot, a slash, and its own
	bytes      bigint      NOT NULL DEFAULT 0,
	written_at timestamptz NOT NULL,                    -- when it became whole; before that, when it was begun
	whole      boolean     NOT NULL DEFAULT false
);

CREATE TABLE snapshot_chunks (
	file_id bigint NOT NULL REFERENCES snapshot_files (id) ON DELETE CASCADE,
	number  bigint NOT NULL, -- from 0
	content bytea  NOT NULL,
	PRIMARY KEY (file_id, number)
);
