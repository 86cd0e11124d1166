-- +goose Up

-- Of a backup: when its last row was read. Rows have what counted at as_of, and may have more, up to
-- what counted then.
ALTER TABLE windows ADD COLUMN read_until INTEGER CHECK (read_until IS NULL OR NOT final);
-- How many points a member could have, on a board that counts points; null: not known.
ALTER TABLE windows ADD COLUMN max_points INTEGER;
