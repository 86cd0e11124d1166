// The rows of a board. A row is kept by its member, and moves where its rank has changed: from where
// it was seen last, which is known by its index and the height of a row, so that nothing is measured.
// Only rows that can be seen are animated, and only by transforms.

import { visible, number, moment } from './text.js'

const moving = 450 // ms
const easing = 'cubic-bezier(.2, .7, .2, 1)'
const arrows = 4000 // ms until an arrow has faded

const still = matchMedia('(prefers-reduced-motion: reduce)')

function element(tag, className, role) {
  const e = document.createElement(tag)
  if (className) e.className = className
  if (role) e.setAttribute('role', role)
  return e
}

// put changes a text only if it is another one.
function put(e, text) {
  if (e.firstChild) {
    if (e.firstChild.data !== text) e.firstChild.data = text
  } else e.append(text)
}

class Row {
  index = -1 // where it is, from 0
  rank = null
  since = null // the rank from which its arrow counts
  move = null // {animation, from} while it moves

  constructor(standing, fields, href) {
    this.member = standing.member
    this.element = element('tr', 'row', 'row')
    this.rankCell = this.element.appendChild(element('td', 'rank', 'cell'))
    this.medal = this.rankCell.appendChild(element('span'))
    this.moveCell = this.element.appendChild(element('td', 'move', 'cell'))
    const who = this.element.appendChild(element('td', 'who', 'cell'))
    this.link = who.appendChild(element('a'))
    this.link.href = href
    this.name = this.link.appendChild(element('bdi', 'name'))
    this.id = this.link.appendChild(element('bdi', 'id'))
    this.values = fields.map(() => this.element.appendChild(element('td', 'value', 'cell')))
    this.reached = this.element.appendChild(element('td', 'reached', 'cell'))
    this.shown = visible(standing.member)
  }

  update(standing, fields, own) {
    this.standing = standing
    put(this.medal, standing.rank === null ? '–' : number(standing.rank))
    const medal = standing.rank >= 1 && standing.rank <= 3 ? String(standing.rank) : ''
    if (this.rankCell.dataset.medal !== medal) this.rankCell.dataset.medal = medal
    const name = standing.name ? visible(standing.name) : ''
    put(this.name, name || this.shown)
    put(this.id, name ? this.shown : '')
    const title = name ? name + '\n' + this.shown : this.shown
    if (this.link.title !== title) this.link.title = title
    fields.forEach((f, i) => {
      const v = this.values[i]
      put(v, value(standing, f))
      if (fields.length > 2) v.title = v.firstChild.data // it may be cut where there is little room
    })
    put(this.reached, standing.reached_at ? moment(standing.reached_at) : '')
    if (this.at !== standing.reached_at) {
      this.at = standing.reached_at
      this.reached.title = standing.reached_at ?? ''
    }
    if (own !== this.own) {
      this.own = own
      own ? this.element.setAttribute('aria-current', 'true') : this.element.removeAttribute('aria-current')
    }
  }

  // arrow shows by how many ranks it has climbed since the arrow before has faded.
  arrow(rank) {
    const before = this.rank
    this.rank = rank
    if (before === null || rank === null || before === rank) return
    this.since ??= before
    const climbed = this.since - rank
    this.fading?.cancel()
    this.arrowElement?.remove()
    if (climbed === 0) {
      this.since = this.arrowElement = this.fading = null
      return
    }
    const a = this.arrowElement = this.moveCell.appendChild(element('span', climbed > 0 ? 'up' : 'down', 'img'))
    a.setAttribute('aria-label', (climbed > 0 ? 'up ' : 'down ') + Math.abs(climbed))
    a.append((climbed > 0 ? '▲' : '▼') + Math.abs(climbed))
    const fading = this.fading = a.animate(still.matches ? [{ opacity: 1 }, { opacity: 1 }] : [{ opacity: 1 }, { opacity: 1, offset: 0.6 }, { opacity: 0 }], { duration: arrows })
    fading.onfinish = () => {
      a.remove()
      if (this.fading === fading) this.since = this.arrowElement = this.fading = null
    }
  }

  // away is how far from its place it is seen, in pixels.
  away() {
    if (!this.move) return 0
    const progress = this.move.animation.effect.getComputedTiming().progress
    return progress === null ? 0 : this.move.from * (1 - progress)
  }

  moveFrom(from) {
    this.move?.animation.cancel()
    this.move = null
    if (Math.abs(from) < 1) return
    this.element.style.zIndex = from > 0 ? '2' : '1'
    const animation = this.element.animate([{ transform: 'translateY(' + from + 'px)' }, { transform: 'translateY(0)' }], { duration: moving, easing })
    const move = this.move = { animation, from }
    animation.onfinish = () => {
      if (this.move !== move) return
      this.move = null
      this.element.style.zIndex = ''
    }
  }
}

// value is a field of a standing, or its points.
export function value(standing, field) {
  const v = field === null ? standing.points : standing.fields?.[field]
  return v === null || v === undefined ? '–' : number(v)
}

export class Table {
  #rows = new Map() // by member
  #fields = null // null stands for points
  #wide = [] // how many characters each field is wide, at least

  constructor(table, columns, body) {
    this.table = table
    this.columns = columns
    this.body = body
  }

  // clear begins another board: nothing moves from one to the next.
  clear() {
    this.#rows.clear()
    this.body.replaceChildren()
    this.#fields = null
  }

  #head(fields) {
    if (this.#fields && this.#fields.length === fields.length && this.#fields.every((f, i) => f === fields[i])) return
    this.clear()
    this.#fields = fields
    this.#wide = fields.map((f) => Math.max(4, Math.ceil((f === null ? 6 : f.length) * 0.9)))
    this.#widen()
    const head = (className, text, quiet) => {
      const th = element('th', className, 'columnheader')
      th.scope = 'col'
      if (className === 'value') th.title = text
      const e = quiet ? th.appendChild(element('span', 'quiet')) : th
      e.append(text)
      return th
    }
    this.columns.replaceChildren(head('rank', 'Rank'), head('move', 'Climbed or fallen', true), head('who', 'Member'),
      ...fields.map((f) => head('value', f === null ? 'Points' : visible(f))), head('reached', 'Reached'))
    this.table.dataset.many = fields.length > 2
    this.table.style.setProperty('--fields', fields.length)
  }

  #widen() { this.table.style.setProperty('--values', this.#wide.map((n) => (n * 1.08 + 0.3).toFixed(1) + 'ch').join(' ')) }

  // show has these standings on the table, best first. link is where a member's name leads.
  show(standings, fields, member, link) {
    this.#head(fields)
    const height = parseFloat(getComputedStyle(this.table).getPropertyValue('--row')) || 44
    const top = this.body.getBoundingClientRect().top // before anything changes: nothing has to be laid out for it
    const first = Math.floor(-top / height) - 1, last = first + Math.ceil(innerHeight / height) + 2
    const seen = new Set(), focused = document.activeElement
    const moved = []
    let wider = false
    const rows = standings.map((s, index) => {
      seen.add(s.member)
      let row = this.#rows.get(s.member)
      const fresh = !row
      if (fresh) {
        row = new Row(s, fields, link(s.member))
        this.#rows.set(s.member, row)
      }
      if (row.standing !== s || row.own !== (s.member === member)) row.update(s, fields, s.member === member)
      row.arrow(s.rank)
      row.values.forEach((v, i) => {
        const n = v.firstChild.data.length
        if (n > this.#wide[i]) {
          this.#wide[i] = n
          wider = true
        }
      })
      if (!fresh && row.index !== index) {
        const visibly = Math.max(row.index, index) >= first && Math.min(row.index, index) <= last
        moved.push([row, visibly && !still.matches ? (row.index - index) * height + row.away() : 0])
      }
      row.index = index
      return row
    })
    for (const [id, row] of this.#rows) {
      if (seen.has(id)) continue
      row.element.remove()
      this.#rows.delete(id)
    }
    this.#order(rows)
    for (const [row, from] of moved) row.moveFrom(from)
    if (wider) this.#widen()
    if (focused !== document.activeElement && focused?.isConnected && this.body.contains(focused)) focused.focus({ preventScroll: true })
  }

  // order puts the rows' elements in their order, with few moves: one that has fallen far is moved,
  // and not all that it has passed.
  #order(rows) {
    const body = this.body
    const move = (e, before) => e.isConnected && body.moveBefore ? body.moveBefore(e, before) : body.insertBefore(e, before)
    let at = body.firstElementChild
    rows.forEach((row, i) => {
      if (at === row.element) {
        at = at.nextElementSibling
        return
      }
      if (at && at.nextElementSibling === row.element && rows[i + 1]?.element !== at) { // at has fallen: out of the way
        const fallen = at
        at = row.element.nextElementSibling
        move(fallen, null)
        at ??= fallen
        return
      }
      move(row.element, at)
    })
  }
}
