package shadow

import (
	"errors"

	"github.com/standings/standings/internal/ranking"
)

// ofShard adds the shard's name to an error if there are several shards.
func ofShard(live *ranking.Store, err error) error {
	shard, of := live.Shard()
	if _, named := errors.AsType[*ranking.ShardError](err); err == nil || of <= 1 || named {
		return err
	}
	return &ranking.ShardError{Shard: shard, Of: of, Addr: live.Addr(), Err: err}
}
