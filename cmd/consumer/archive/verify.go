package archive

// This file implements verify.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// verifyReport is the JSON of verify; docs/json.md describes its fields.
type verifyReport struct {
	Verified int64          `json:"verified"` // copies
	Differ   int64          `json:"differ"`   // copies that differ
	Copies   []verifiedCopy `json:"copies"`
}

type verifiedCopy struct {
	Board    string `json:"board"`
	Period   string `json:"period"`
	Window   string `json:"window"`
	Revision *int64 `json:"revision"` // null: a backup
	Members  int64  `json:"members"`
	// Stored describes how the stored copy differs from what was written; null if it does not.
	Stored *string `json:"stored"`
	// Redis is same, differs, absent, other_revision, lost or not_compared.
	Redis       string       `json:"redis"`
	Hidden      int64        `json:"hidden"` // members who are banned now
	Different   int64        `json:"different"`
	Differences []difference `json:"differences"` // at most mostShown
}

func (v *verifiedCopy) wrong() bool { return v.Stored != nil || v.Redis == differs }

func verify(ctx context.Context, p *cli.Program, f store.Filter, asJSON bool) error {
	l, err := p.Configuration()
	if err != nil {
		return err
	}
	s, err := open(ctx, l.Config)
	if err != nil {
		return err
	}
	if s != nil {
		defer func() { _ = s.Close() }() // nothing was written
	}
	r, err := app.OpenReader(ctx, l.Config)
	if err != nil {
		return err
	}
	defer r.Close()
	found := verifyReport{Copies: []verifiedCopy{}}
	var done atomic.Int64
	var shown *terminal.Progress
	if _, ok := terminal.Width(p.Stderr); ok {
		shown = terminal.ShowProgress(p.Stderr, "verifying", "copies", 0, done.Load)
	}
	err = each(ctx, s, f, 0, func(w *store.Window) error {
		v, err := verifyCopy(ctx, s, r, w)
		if errors.Is(err, store.ErrGone) {
			return nil // the backup was replaced after it was listed
		}
		if err != nil {
			return err
		}
		done.Add(1)
		if found.Verified++; v.wrong() {
			found.Differ++
		}
		found.Copies = append(found.Copies, v)
		return nil
	})
	if shown != nil {
		shown.Stop()
	}
	if err != nil {
		return err
	}
	if f.Name != "" && found.Verified == 0 {
		return fmt.Errorf("the archive has no copy of %s %s %s", f.Board, f.Period, f.Name)
	}
	if asJSON {
		err = cli.WriteJSON(p.Stdout, &found)
	} else {
		err = terminal.Write(p.Stdout, found.text())
	}
	if err == nil && found.Differ > 0 {
		err = fmt.Errorf("%s of %s differ", units.Thousands(found.Differ), copies(found.Verified))
	}
	return err
}

// verifyCopy verifies one copy. A copy that cannot be read, because of damage for example, is an error.
func verifyCopy(ctx context.Context, s *store.Store, r *app.Reader, w *store.Window) (verifiedCopy, error) {
	v := verifiedCopy{Board: w.Board, Period: w.Period, Window: w.Name, Members: w.Members, Redis: notAsked, Differences: []difference{}}
	if w.Final() {
		v.Revision = &w.Revision
	}
	err := s.Verify(ctx, w.ID)
	if errors.Is(err, store.ErrDiffers) {
		v.Stored = new(err.Error())
	} else if err != nil {
		return v, err
	}
	if _, kept := r.Boards.Layout(w.Board, periodOf(w)); !w.Final() || !kept {
		return v, nil
	}
	c, err := compare(ctx, s, r.Boards, w)
	if schema, ok := errors.AsType[*ranking.SchemaError](err); ok && schema.Found == "" {
		c, err = comparison{is: absent}, nil // Redis is empty
	}
	if err != nil {
		if errors.Is(err, store.ErrGone) {
			return v, err
		}
		return v, app.ExplainRedis(ctx, err, r.Config)
	}
	v.Redis, v.Hidden, v.Different = c.is, c.hidden, c.different
	v.Differences = append(v.Differences, c.first...)
	return v, nil
}

func (r *verifyReport) text() string {
	var text strings.Builder
	for i := range r.Copies {
		v := &r.Copies[i]
		if !v.wrong() {
			continue
		}
		fmt.Fprintf(&text, "%s %s %s", terminal.Plain(v.Board), terminal.Plain(v.Period), terminal.Plain(v.Window))
		if v.Revision != nil {
			fmt.Fprintf(&text, ", revision %d", *v.Revision)
		}
		if v.Stored != nil {
			text.WriteString(": the stored copy differs from what was written: " + terminal.Plain(*v.Stored))
		}
		if v.Redis == differs {
			fmt.Fprintf(&text, ": %s in which Redis differs", units.Plural(v.Different, "row"))
		}
		text.WriteString("\n")
		for _, d := range v.Differences {
			fmt.Fprintf(&text, "  %s: %s in the archive, %s in Redis\n", terminal.Plain(d.Member), placeText(d.Archive), placeText(d.Redis))
		}
	}
	compared := int64(0)
	for i := range r.Copies {
		if r.Copies[i].Redis == same || r.Copies[i].Redis == differs {
			compared++
		}
	}
	fmt.Fprintf(&text, "%s verified, %s of them compared with Redis; %s differ\n", copies(r.Verified), units.Thousands(compared), units.Thousands(r.Differ))
	return text.String()
}

func placeText(place *int64) string {
	if place == nil {
		return "no such row"
	}
	return "place " + units.Thousands(*place)
}
