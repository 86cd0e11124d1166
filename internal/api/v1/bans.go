package v1

// Bans by the API: clients with a token for bans list, ban and unban members. A ban is written to the bans topic;
// the consumers apply it to Redis, and the API reads Redis to see whether they have. A ban's reason is shown only
// to clients that list bans, and is never logged.

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/bans"
)

// Bans configures banning by the API.
type Bans struct {
	// Off is the reason why this process cannot ban members, as shown to clients; empty if it can.
	Off string
	// Tokens are the tokens for listing and changing bans. Tokens for reading are not valid here.
	Tokens *Tokens
	// Desk returns the access to the bans topic, or nil until the topic was found.
	Desk func() *bans.Desk
}

// off returns the problem for requests about bans if this process does not serve them, else nil.
func (b *Bans) off() *problem {
	switch {
	case b.Off != "":
		return problemf(notFound, "This API does not serve bans: %s", b.Off)
	case b.Tokens == nil || b.Desk == nil:
		return problemf(notFound, "This API does not serve bans: api.bans_tokens_file is not set")
	}
	return nil
}

// desk returns the access to the bans topic once the topic was read to its end, and a temporary problem before.
func (b *Bans) desk() (*bans.Desk, error) {
	d := b.Desk()
	if d == nil || d.Publisher.Follower.State() == nil {
		return nil, problemf(noBans, "The bans topic has not been read to its end yet").later()
	}
	return d, nil
}

// banAnswer is one record of the topic.
type banAnswer struct {
	Member string  `json:"member"`
	Board  *string `json:"board"` // null: all boards
	Reason string  `json:"reason"`
	By     string  `json:"by"`
	At     string  `json:"at"`
	Until  *string `json:"until"` // null: until it is removed
	// State is banned, erased, or over (a ban past its until).
	State string `json:"state"`
	// Done reports whether Redis matches the state; null if Redis could not be read.
	Done *bool `json:"done"`
}

// bansList is a page of bans.
type bansList struct {
	Bans []banAnswer `json:"bans"`
	Next *string     `json:"next_cursor"` // the next page's cursor; null on the last page
}

const (
	usualBans = 100
	mostBans  = 1000
)

// listBans handles GET /v1/bans.
func (a *api) listBans(q *request) (*answer, error) {
	limit := q.number("limit", usualBans, 1, mostBans)
	var after *bans.Key
	if q.query.Has("cursor") {
		k, err := bans.ParseKey(q.query.Get("cursor"))
		if err != nil {
			return nil, wrong("cursor", "cursor must be the next_cursor of a page of bans. Omit it for the first page")
		}
		after = &k
	}
	member := q.query.Get("member")
	if q.err != nil {
		return nil, q.err
	}
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

// banned is the response to a ban or an unban.
type banned struct {
	Member string  `json:"member"`
	Board  *string `json:"board"`
	State  string  `json:"state"` // banned or shown
	Until  *string `json:"until"`
	// Done reports whether Redis already matches the state. If not, a running consumer applies it.
	Done bool `json:"done"`
}

// ban handles POST /v1/bans. A second ban of the same member and board replaces the first.
func (a *api) ban(q *request) (*answer, error) {
	var body banRequest
	if err := q.body(&body, `{"member": "…", "board": null, "reason": "…", "until": null}`); err != nil {
		return nil, err
	}
	r := &bans.Record{Key: bans.Key{Member: body.Member}, Reason: body.Reason, By: q.holder}
	if body.By != "" {
		r.By = body.By + "@" + q.holder // like the command's user@machine
	}
	if body.Board != nil {
		if r.Board = *body.Board; r.Board == "" {
			return nil, wrong("board", "board must not be empty. Omit it for all boards")
		}
	}
	if body.Until != nil {
		until, err := time.Parse(time.RFC3339, *body.Until)
		if err != nil {
			return nil, wrong("until", "until must be a time such as 2026-12-01T00:00:00Z, not %s", quoted(*body.Until))
		}
		r.Until = until
	}
	desk, err := a.Bans.desk()
	if err != nil {
		return nil, err
	}
	r.At = desk.Now(q.ctx)
	if err := r.Check(); err != nil {
		return nil, wrong("body", "Invalid ban: %v", err)
	}
	if body.Until != nil && !r.Until.After(r.At) {
		return nil, wrong("until", "until is in the past: %s", quoted(*body.Until))
	}
	if err := desk.Publisher.Put(q.ctx, r); err != nil {
		return nil, banProblem(q.ctx, err)
	}
	return a.recorded(q, desk, &banned{Member: r.Member, Board: boardOf(r.Key), State: bans.StateBanned, Until: untilOf(r)}, r.Key), nil
}

// unban handles DELETE /v1/bans.
func (a *api) unban(q *request) (*answer, error) {
	k := bans.Key{Member: q.query.Get("member"), Board: q.query.Get("board")}
	if err := k.Check(); err != nil {
		return nil, wrong("member", "Invalid member or board: %v", err)
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
		return nil, problemf(notFound, "The member has no ban on all boards. See GET /v1/bans?member=")
	case !found:
		return nil, problemf(notFound, "The member has no ban on board %s. See GET /v1/bans?member=", k.Board)
	}
	return a.recorded(q, desk, &banned{Member: k.Member, Board: boardOf(k), State: "shown"}, k), nil
}

// recorded waits until Redis matches the record, at most wait_ms, and returns the answer.
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

// banProblem translates an error for the client. Kafka's own error is only logged.
func banProblem(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, bans.ErrErased):
		return problemf(erased, "The member is erased and cannot be banned or unbanned")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.Join(problemf(tooSlow, "Kafka did not reply in time. The ban may have been recorded. See GET /v1/bans, or send the request again").later(), err)
	}
	return errors.Join(problemf(noBans, "The bans topic cannot be read or written. The ban may have been recorded. The server's log has the cause").later(), err)
}
