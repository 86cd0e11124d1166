package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/config"
)

// archiveFacts holds the archive's answers.
type archiveFacts struct {
	name string
	none bool  // the SQLite file does not exist yet
	err  error // from opening the archive, or from its schema
}

// archivePatience is the timeout for the archive's database.
const archivePatience = 10 * time.Second

// gatherArchive queries the archive; it returns nil if none is configured. It creates neither a file nor a
// table.
func gatherArchive(ctx context.Context, cfg *config.Config) *archiveFacts {
	if cfg.Archive.URL == "" {
		return nil
	}
	if path, ok := strings.CutPrefix(cfg.Archive.URL, "sqlite:"); ok {
		if _, err := os.Stat(strings.TrimPrefix(path, "//")); errors.Is(err, os.ErrNotExist) {
			return &archiveFacts{name: cfg.Archive.URL, none: true}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, archivePatience)
	defer cancel()
	s, err := app.OpenArchive(ctx, cfg)
	if err != nil {
		return &archiveFacts{err: err}
	}
	defer s.Close() //nolint:errcheck // nothing was written
	return &archiveFacts{name: s.Name(), err: s.Check(ctx)}
}

func judgeArchive(f *archiveFacts) []finding {
	if f == nil {
		return nil
	}
	const check = "schema"
	s := &section{name: sectionArchive}
	switch {
	case f.none:
		s.ok(check, "", f.name+" does not exist yet: the leader creates it")
	case f.err == nil:
		s.ok(check, "", fmt.Sprintf("%s: version %d", f.name, store.Known))
	case errors.Is(f.err, store.ErrEmpty):
		s.ok(check, "", f.name+" is empty: the leader makes its tables")
	case errors.Is(f.err, store.ErrSchemaOlder):
		s.ok(check, "", f.name+" has an older version: the leader migrates it")
	case errors.Is(f.err, store.ErrSchemaTooOld), errors.Is(f.err, store.ErrSchemaNewer), errors.Is(f.err, store.ErrInvalid):
		s.wrong(check, "", f.err.Error(), "set archive.url to another database, or run another version of this program")
	default:
		s.warn(check, "", f.err.Error(), "see that archive.url names a database that runs: final windows stay in Redis until it can be opened")
	}
	return s.all
}
