package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Exec runs a pipeline for callers that read each command's own error. If no connection can be set up, for
// example because the password is refused, go-redis leaves the commands without an error, as if Redis had
// sent empty replies; Exec sets it.
func Exec(ctx context.Context, pipe redis.Pipeliner) {
	commands, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	for _, c := range commands {
		if c.Err() != nil { // go-redis returned the first command's own error
			return
		}
	}
	for _, c := range commands {
		c.SetErr(err)
	}
}
