package redisconn

// A cluster client asks its nodes, one after the other in random order, for the assignment of slots, within
// the time of the call that requires it. A node that hangs would use all of that time, and the call would
// fail although other masters reply.

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slotsInHalf gives a node half of the remaining time to reply to CLUSTER SLOTS, so that another node can
// be asked and the call be made. It is a redis.Hook of a node's client.
type slotsInHalf struct {
	unhooked

	timeout time.Duration
}

// ProcessHook halves the time of CLUSTER SLOTS.
func (s slotsInHalf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "cluster" && len(args) == 2 {
			if second, _ := args[1].(string); strings.EqualFold(second, "slots") {
				left := s.timeout
				if deadline, ok := ctx.Deadline(); ok {
					left = min(left, time.Until(deadline))
				}
				ctx = Within(ctx, left/2)
			}
		}
		return next(ctx, cmd)
	}
}
