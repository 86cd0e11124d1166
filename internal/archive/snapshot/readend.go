package snapshot

// What comes after the windows.

import (
	"io"
)

// ends notes that the windows are behind.
func (r *Reader) ends() error {
	if w := r.whole[r.window]; w != nil && w.section > 0 && w.pages == 0 {
		return r.blocks.damaged("%s has no page", r.window)
	}
	if r.state != besides {
		r.state = besides
		r.beside.Instant = r.last
	}
	return nil
}

func (r *Reader) field(letter byte) error {
	name, err := r.text(longestText)
	if err != nil {
		return err
	}
	value, err := r.text(longestRules)
	if err != nil {
		return err
	}
	into := map[byte]map[string]string{'D': r.beside.Dropped, 'F': r.beside.Final, 'T': r.beside.Texts}[letter]
	if _, ok := into[name]; ok {
		return r.blocks.damaged("%q comes twice", name)
	}
	into[name] = value
	return nil
}

func (r *Reader) end() error {
	var is [3]int64
	for i := range is {
		n, err := r.number()
		if err != nil {
			return err
		}
		is[i] = int64(n) //nolint:gosec // it is compared
	}
	for _, w := range r.whole {
		if w.section > 0 {
			r.count.Rows, r.count.Windows, r.count.Pages = r.count.Rows+w.rows, r.count.Windows+1, r.count.Pages+w.pages
		}
	}
	if want := (Counts{is[0], is[1], is[2]}); want != r.count {
		return r.blocks.damaged("it has %+v, and was to have %+v", r.count, want)
	}
	if len(r.records) > 0 {
		return r.blocks.damaged("something is behind its end record")
	}
	if err := r.blocks.ended(); err != nil {
		return err
	}
	r.state = atTheEnd
	return io.EOF
}
