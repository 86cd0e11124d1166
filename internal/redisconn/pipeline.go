package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Exec runs a pipeline for callers who ask each command for its own error. go-redis leaves
// commands without one where no connection could be set up, by a refused password for one:
// they would look as if Redis had answered with nothing.
func Exec(ctx context.Context, pipe redis.Pipeliner) {
	commands, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	for _, c := range commands {
		if c.Err() != nil { // go-redis returned the first of the commands' own errors
			return
		}
	}
	for _, c := range commands {
		c.SetErr(err)
	}
}
