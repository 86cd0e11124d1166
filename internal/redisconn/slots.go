package redisconn

// A cluster's client asks its nodes, one after another in any order, which slots are where, within
// the time of the call that wants to know. A node that hangs would take all of that time, and the
// call would fail for every master of the cluster, those that answer too.

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// slotsInHalf gives a node half of the time that is left to say which slots are where, so that
// another can be asked, and the call made. It is a redis.Hook of a node's client.
type slotsInHalf struct{ timeout time.Duration }

// DialHook leaves dialling as it is.
func (slotsInHalf) DialHook(next redis.DialHook) redis.DialHook { return next }

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

// ProcessPipelineHook leaves pipelines as they are: nobody asks in one.
func (slotsInHalf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
