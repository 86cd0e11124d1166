package snapshot

import "github.com/standings/standings/internal/archive/snapshot/files"

// Files is where the files of snapshots are: a directory, a bucket, a database.
type Files = files.Files

// FileInfo is a file that is whole.
type FileInfo = files.Info
