package v1

// Who isn't shown: listed, banned and shown again, by whoever has a token for that. It is the topic
// that is written; what has become of it in Redis is looked at. A reason is for whoever lists bans,
// and for no log.

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/bans"
)

// Bans is how members are banned by the API.
type Bans struct {
	// Off is why that can't be done in this process, for whoever asks; empty: it can.
	Off string
	// Tokens are those of which one is needed to ban and to see who is banned: not those of readers.
	Tokens *Tokens
	// Desk is where; it returns nil until the topic was found.
	Desk func() *bans.Desk
}

// off is the problem of who asks for bans where there are none.
func (b *Bans) off() *problem {
	switch {
	case b.Off != "":
		return problemf(notFound, "This API does not serve bans: %s", b.Off)
	case b.Tokens == nil || b.Desk == nil:
		return problemf(notFound, "This API does not serve bans: api.bans_tokens_file is not set")
	}
	return nil
}

// desk is where members are banned, once the topic was read to its end.
func (b *Bans) desk() (*bans.Desk, error) {
	d := b.Desk()
	if d == nil || d.Publisher.Follower.State() == nil {
		return nil, problemf(noBans, "The bans topic has not been read to its end yet").later()
	}
	return d, nil
}

// banAnswer is a record of the topic.
type banAnswer struct {
	Member string  `json:"member"`
	Board  *string `json:"board"` // null: all
	Reason string  `json:"reason"`
	By     string  `json:"by"`
	At     string  `json:"at"`
	Until  *string `json:"until"` // null: until it is taken back
	// State is banned, erased, or over, of one that has ended by itself.
	State string `json:"state"`
	// Done is whether Redis is as the state says; null: it couldn't be looked at.
	Done *bool `json:"done"`
}

// bansList is a page of them.
type bansList struct {
	Bans []banAnswer `json:"bans"`
	Next *string     `json:"next"` // what after takes; null where there are no more
}

const (
	usualBans = 100
	mostBans  = 1000
)

// listBans is GET /v1/bans.
func (a *api) listBans(q *request) (*answer, error) {
	limit, err := q.number("limit", usualBans, 1, mostBans)
	if err != nil {
		return nil, err
	}
	var after *bans.Key
	if q.query.Has("after") {
		k, err := bans.ParseKey(q.query.Get("after"))
		if err != nil {
			return nil, wrong("after", "must be the next of a page of bans; omit it for the first page")
		}
		after = &k
	}
	member := q.query.Get("member")
	desk, err := a.Bans.desk()
	if err != nil {
		return nil, err
	}
	all, unseen := desk.List(q.ctx)
	if unseen != nil {
		a.log.Warn("listed bans without their state in Redis", zap.Error(unseen))
	}
	all = slices.DeleteFunc(all, func(l bans.Listed) bool {
		return after != nil && l.Compare(*after) <= 0 || member != "" && l.Member != member
	})
	body := bansList{Bans: []banAnswer{}}
	for i := range all {
		if i == int(limit) {
			next := all[i-1].Text()
			body.Next = &next
			break
		}
		body.Bans = append(body.Bans, banOf(&all[i]))
	}
	return &answer{body: &body, cache: private}, nil
}

// private keeps answers about bans out of every cache.
const private = "no-store"

func banOf(l *bans.Listed) banAnswer {
	b := banAnswer{Member: l.Member, Board: boardOf(l.Key), Reason: l.Reason, By: l.By, At: timeMS(l.At.UnixMilli()), Until: untilOf(l.Record), State: l.State, Done: l.Done}
	return b
}

func boardOf(k bans.Key) *string {
	if k.Board == "" {
		return nil
	}
	return &k.Board
}

func untilOf(r *bans.Record) *string {
	if r.Until.IsZero() {
		return nil
	}
	text := timeMS(r.Until.UnixMilli())
	return &text
}

// banRequest is the body of POST /v1/bans.
type banRequest struct {
	Member string  `json:"member"`
	Board  *string `json:"board"`
	Reason string  `json:"reason"`
	By     string  `json:"by"`
	Until  *string `json:"until"`
}

// banned is what was recorded.
type banned struct {
	Member string  `json:"member"`
	Board  *string `json:"board"`
	State  string  `json:"state"` // banned or shown
	Until  *string `json:"until"`
	// Done is whether Redis is as the state says already. If not, a consumer that runs does it.
	Done bool `json:"done"`
}

// ban is POST /v1/bans. A second ban of the same member and board replaces the first.
func (a *api) ban(q *request) (*answer, error) {
	var body banRequest
	if err := q.body(&body, `{"member": "…", "board": null, "reason": "…", "until": null}`); err != nil {
		return nil, err
	}
	r := &bans.Record{Key: bans.Key{Member: body.Member}, Reason: body.Reason, By: q.holder}
	if body.By != "" {
		r.By = body.By + "@" + q.holder // as the command has the user of a machine
	}
	if body.Board != nil {
		if r.Board = *body.Board; r.Board == "" {
			return nil, wrong("board", "must not be empty; omit it for all boards")
		}
	}
	if body.Until != nil {
		until, err := time.Parse(time.RFC3339, *body.Until)
		if err != nil {
			return nil, wrong("until", "%s must be a time such as 2026-12-01T00:00:00Z", quoted(*body.Until))
		}
		r.Until = until
	}
	desk, err := a.Bans.desk()
	if err != nil {
		return nil, err
	}
	r.At = desk.Now(q.ctx)
	if err := r.Check(); err != nil {
		return nil, wrong("body", "%v", err)
	}
	if body.Until != nil && !r.Until.After(r.At) {
		return nil, wrong("until", "%s is in the past", quoted(*body.Until))
	}
	if err := desk.Publisher.Put(q.ctx, r); err != nil {
		return nil, banProblem(q.ctx, err)
	}
	return a.recorded(q, desk, &banned{Member: r.Member, Board: boardOf(r.Key), State: bans.StateBanned, Until: untilOf(r)}, r.Key), nil
}

// unban is DELETE /v1/bans.
func (a *api) unban(q *request) (*answer, error) {
	k := bans.Key{Member: q.query.Get("member"), Board: q.query.Get("board")}
	if err := k.Check(); err != nil {
		return nil, wrong("member", "or board is invalid: %v", err)
	}
	desk, err := a.Bans.desk()
	if err != nil {
		return nil, err
	}
	found, err := desk.Publisher.Remove(q.ctx, k)
	switch {
	case err != nil:
		return nil, banProblem(q.ctx, err)
	case !found && k.Board == "":
		return nil, problemf(notFound, "There is no ban on all boards for the member; see GET /v1/bans?member=")
	case !found:
		return nil, problemf(notFound, "There is no ban on board %s for the member; see GET /v1/bans?member=", k.Board)
	}
	return a.recorded(q, desk, &banned{Member: k.Member, Board: boardOf(k), State: "shown"}, k), nil
}

// recorded is the answer to what was recorded, once it is done, or was waited for long enough.
func (a *api) recorded(q *request, desk *bans.Desk, body *banned, k bans.Key) *answer {
	within, cancel := context.WithTimeout(q.ctx, q.wait)
	defer cancel()
	err := desk.Await(within, k)
	if err != nil && !errors.Is(err, bans.ErrNotYet) {
		a.log.Warn("a ban is recorded, but Redis could not be read", zap.Error(err))
	}
	body.Done = err == nil
	return &answer{body: body, cache: private}
}

// banProblem says what an error is for whoever bans. What Kafka said of itself goes to the log.
func banProblem(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, bans.ErrErased):
		return problemf(erased, "The member is erased and cannot be banned or unbanned")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.Join(problemf(tooSlow, "Kafka did not reply in time. The ban may have been recorded: see GET /v1/bans, or send the request again").later(), err)
	}
	return errors.Join(problemf(noBans, "The bans topic cannot be read or written. The ban may have been recorded. The server's log has the cause").later(), err)
}
