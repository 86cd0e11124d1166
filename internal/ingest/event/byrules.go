package event

// Events on boards with other rules than the default one. The rules of an event's boards decide which fields
// the event needs, so the boards are read first.

import boardrules "github.com/standings/standings/internal/rules"

// maxMessage keeps a message within 200 bytes.
const maxMessage = 197

// counted is a rule and the event fields that it counts. A nil rule is the default rule.
type counted struct {
	rule   *boardrules.Rule
	fields []field
}

// byRules finds the fields of all rules.
func (d *Decoder) byRules(all boardrules.Boards) {
	known := map[*boardrules.Rule]*counted{nil: {}}
	for name, rule := range all {
		c := known[rule]
		if c == nil {
			c = &counted{rule: rule}
			for _, f := range rule.Fields.List() {
				c.fields = append(c.fields, d.fields.of(f.Name))
			}
			known[rule] = c
		}
		if d.others == nil {
			d.others, d.any = map[string]*counted{}, known[nil]
		}
		if d.others[name] = c; name == boardrules.AnyBoard {
			d.any = c
		}
	}
}

// of returns the field with this name. It panics if the event has no such field.
func (f *Fields) of(name string) field {
	if name == fieldNames[pointsField] {
		return pointsField
	}
	found, ok := f.find(name)
	if !ok {
		panic("no field " + name + " is among those of an event, and a board counts it")
	}
	return found
}

// eventByRules reads an event if some boards have other rules than the default one.
func (d *Decoder) eventByRules(user []byte, recordTime int64, ev *Event) *Bad {
	boards, bad := d.readBoards()
	if bad != nil {
		return bad
	}
	points, tuples, read := int64(0), []boardrules.Tuple(nil), false
	for i, name := range boards {
		c, named := d.others[string(name)]
		if !named {
			c = d.any
		}
		if c.rule == nil {
			if !read {
				points, bad = d.readPoints()
				read = true
			}
		} else {
			if tuples == nil {
				tuples = d.tuples[:len(boards)]
				clear(tuples)
			}
			bad = d.readTuple(c, name, &tuples[i])
		}
		if bad != nil {
			return bad
		}
	}
	at, bad := d.readTime(recordTime)
	if bad != nil {
		return bad
	}
	*ev = Event{User: user, Points: points, Time: at, Boards: boards, Tuples: tuples}
	return nil
}

// readTuple reads the fields that a board's rule counts.
func (d *Decoder) readTuple(c *counted, board []byte, into *boardrules.Tuple) *Bad {
	needs := func(bad *Bad) *Bad {
		bad.Message = printable([]byte("board "+string(board)+" needs it: "+bad.Message), maxMessage)
		return bad
	}
	for i, f := range c.fields {
		s, of := d.at[f], c.rule.Fields.At(i)
		switch {
		case s.absent():
			return needs(d.missing(Invalid, f))
		case d.barred[f] != nil:
			return needs(d.noObject(Invalid, f))
		}
		raw := d.raw(s)
		if !isNumber(raw) {
			return needs(d.wrong(Invalid, f, noNumber(raw)))
		}
		value, fault := integer(raw, of.Max)
		if fault == fractional {
			return needs(d.wrong(Invalid, f, "is not an integer"))
		}
		into[i] = value
		if fault == outOfRange || value < 0 && !c.rule.Falls(i) {
			return needs(d.wrong(Invalid, f, "is out of range"))
		}
	}
	return nil
}
