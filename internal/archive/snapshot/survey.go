package snapshot

import (
	"errors"
	"fmt"
	"io"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Survey is what a whole file has.
type Survey struct {
	Head   Head
	Begin  ranking.Instant
	Beside ranking.Beside
	Counts Counts
	// Reach is of every partition the highest offset that a page's position has to do with: the log has
	// to reach so far, and a restore is past all pages there.
	Reach map[string]int64
	// Origins are the latest of any page.
	Origins map[string]string
	// Rules are, of every partition, the fingerprints by which it was counted, on any page.
	Rules map[string]map[string]bool
	// Listings are those of the windows that it has, by their names.
	Listings map[string]string

	sections map[string]int // of each window, which of the file's sections counts
}

// counts reports whether what a reader is at, or has just returned, counts.
func (s *Survey) counts(r *Reader) bool { return s.sections[r.window] == r.section }

// SurveyOf reads a whole file, and remembers none of its rows.
func SurveyOf(from io.Reader) (*Survey, error) {
	r, err := NewReader(from)
	if err != nil {
		return nil, err
	}
	s := &Survey{Head: r.Head, Begin: r.Begin, Reach: map[string]int64{}, Origins: map[string]string{}, Rules: map[string]map[string]bool{}, Listings: map[string]string{}, sections: map[string]int{}}
	if err := s.take(&r.Begin); err != nil {
		return nil, err
	}
	for {
		page, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if page.Gone {
			continue
		}
		if err := s.take(&page.Instant); err != nil {
			return nil, r.blocks.damaged("%v", err)
		}
	}
	for name, w := range r.whole {
		if w.section > 0 {
			s.sections[name], s.Listings[name] = w.section, w.listing
		}
	}
	s.Beside, s.Counts = *r.beside, r.count
	return s, s.take(&s.Beside.Instant)
}

func (s *Survey) take(in *ranking.Instant) error {
	for field, text := range in.Ledger {
		at, err := ledger.Parse(text)
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		s.Reach[field] = max(s.Reach[field], at.To)
	}
	for field, text := range in.Origins {
		is, err := ledger.ParseOrigin(text)
		if err != nil {
			return fmt.Errorf("the origin of %s: %w", field, err)
		}
		was, err := ledger.ParseOrigin(s.Origins[field])
		if s.Origins[field] != "" && err == nil {
			is.Offset, is.Time = max(is.Offset, was.Offset), max(is.Time, was.Time)
		}
		s.Origins[field] = is.String()
	}
	for field, fingerprint := range in.Rules {
		if s.Rules[field] == nil {
			s.Rules[field] = map[string]bool{}
		}
		s.Rules[field][fingerprint] = true
	}
	return nil
}

// Pages are the pages of a file that count, in their order: of it was surveyed.
func (s *Survey) Pages(from io.Reader, each func(*ranking.SnapshotPage) error) error {
	r, err := NewReader(from)
	if err != nil {
		return err
	}
	for {
		page, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !page.Gone && s.counts(r) {
			err = each(page)
		}
		if err != nil {
			return err
		}
	}
}
