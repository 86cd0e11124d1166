// The page: one stream of what is chosen, and what is shown of it. All that comes from the server is shown as text.

import * as text from './text.js'
import { Stream, Refused, get } from './stream.js'
import { Table, value } from './table.js'
import { Plot, counted } from './plot.js'
import { link, options, pills, read, tops, windowPath } from './choices.js'

const $ = (id) => document.getElementById(id)
const api = new URL('v1/', document.baseURI)
const tokenKey = 'standings-token'

// --- what is chosen -----------------------------------------------------------

let chosen = read()
let boards = [] // as v1/boards lists them
let windows = null // of the board and period that are chosen

// choose changes some of it, as a step that Back takes back.
function choose(change) {
  const next = { ...chosen, ...change }
  if (link(next) === link(chosen)) return
  history.pushState(null, '', link(next))
  follow()
}

// --- what is shown ------------------------------------------------------------

const table = new Table($('table'), $('columns'), $('rows'))
const rate = new Plot($('rate-plot')), lag = new Plot($('lag-plot'))
let state = null // of the stream: {window, status, rows by member, at}
let stream = null
let drawing = 0
let problem = ''
let sought = false // a member was chosen, and the stream of its rows has sent nothing yet

// put changes a text only if it is another one: what is the same costs nothing.
function put(e, words) {
  if (e.textContent !== words) e.textContent = words
}

// say is for screen readers: what they would miss otherwise, and nothing that changes all the time.
// What comes within every ms of the last is said then, unless something else is by that time.
let said = -Infinity
let unsaid = 0
function say(words, every = 0) {
  clearTimeout(unsaid)
  const wait = said + every - performance.now()
  if (wait > 0) {
    unsaid = setTimeout(say, wait, words)
    return
  }
  said = performance.now()
  $('said').textContent = words
}

function notice(words, retry = false) {
  $('notice').hidden = words === ''
  $('notice-text').textContent = words
  $('retry').hidden = !retry
}

// connection is the one line about the connection; what is lost is said where it can't be missed.
let connection = ''
let countdown = 0
function connected(word, why, wait) {
  clearInterval(countdown)
  const before = connection
  connection = word
  $('link').dataset.state = word
  $('link-text').textContent = { connecting: 'Connecting', live: 'Live', lost: 'Not connected', paused: 'Paused', refused: 'A token is needed', missing: 'Not found' }[word]
  if (word === 'lost') {
    const refused = why instanceof Refused
    const lost = refused ? why.message.replace(/\.?$/, '.') : 'The connection to the server is lost.'
    const until = performance.now() + wait
    const tick = () => {
      const s = Math.ceil((until - performance.now()) / 1000)
      notice(text.visible(lost) + (s > 0 ? ' Trying again in ' + s + ' s.' : ' Trying again.'), true)
    }
    tick()
    countdown = setInterval(tick, 1000)
    if (before !== 'lost') say(refused ? text.visible(lost) : 'The connection is lost. The page tries again by itself.')
    return
  }
  if (word === 'missing') {
    const missing = text.visible(why.message).replace(/\.?$/, '. Choose something else above.')
    notice(missing)
    say(missing)
    return
  }
  notice(problem)
  if (word === 'live' && before === 'lost') {
    say('Connected again.')
    load()
  }
}

// secondsLeft is the time until the window's end: an event may have come a while ago.
const secondsLeft = () => state.window.seconds_left - (performance.now() - state.at) / 1000
const isOver = () => secondsLeft() <= 0

function render() {
  drawing = 0
  if (!state) return
  const { window: w, status } = state
  const fields = w.fields ?? [null]
  const rows = [...state.rows.values()].filter((r) => r.rank !== null).sort((a, b) => a.rank - b.rank || (a.position ?? 0) - (b.position ?? 0))
  table.show(rows, fields, chosen.member, (member) => link({ ...chosen, member }))

  const name = text.visible(w.board)
  put($('title-board'), name)
  put(document.querySelector('title'), name + ' ' + w.period + ' · standings')
  put($('about'), w.period + ' · ' + w.window + ' · ' + text.bounds(w) + ' · ' + text.plural(w.members, 'member').replace(' ', '\u00a0'))
  put($('caption'), 'The standings of ' + name + ', ' + w.period + ', ' + w.window)
  $('empty').hidden = rows.length > 0 || chosen.member !== ''
  put($('empty'), isOver() ? 'Nobody is in this window.' : 'Nobody is in this window yet.')
  showMember(rows, fields)
  const own = state.seeks && $('rows').querySelector('[aria-current]')
  if (own) {
    state.seeks = false
    // A row that moves is elsewhere until its animation ends.
    Promise.allSettled(own.getAnimations().map((a) => a.finished)).then(() => own.scrollIntoView({ block: 'nearest' }))
  }
  const [tone, title, meaning] = text.status(status, isOver())
  const card = $('status')
  if (card.dataset.tone !== tone) card.dataset.tone = tone
  if ($('status-title').textContent !== title) {
    if (tone !== 'good' && $('status-title').textContent) say(title + '. ' + meaning, 5000)
    $('status-title').textContent = title
  }
  put($('status-text'), meaning)
  const leader = rows[0]
  if (leader?.rank === 1 && leader.member !== state.leader) {
    if (state.leader !== undefined) say(text.visible(leader.name || leader.member) + ' leads now.', 30e3)
    state.leader = leader.member
  }
}

function showMember(rows, fields) {
  $('member-card').hidden = chosen.member === ''
  if (chosen.member === '') return
  $('back').setAttribute('href', link({ ...chosen, member: '' }))
  const at = rows.findIndex((r) => r.member === chosen.member)
  const own = rows[at], above = rows[at - 1]
  const bdi = (words) => Object.assign(document.createElement('bdi'), { textContent: words })
  const shown = text.visible(chosen.member)
  const id = own?.name ? [bdi(text.visible(own.name)), ' · ', bdi(shown)] : [bdi(shown)]
  if ($('member-id').textContent !== id.map((e) => e.textContent ?? e).join('')) $('member-id').replaceChildren(...id)
  let words = 'Nobody with this id is in this window. An id is written exactly as in the events, capitals included.'
  if (own) {
    words = 'Rank ' + text.number(own.rank) + ' of ' + text.number(state.window.members) + ', with ' +
      fields.map((f) => f === null ? text.plural(own.points, 'point') : text.visible(f) + ' ' + value(own, f)).join(', ') + '.'
    if (own.rank === 1) words += ' Nobody is ahead.'
    else if (above && fields[0] === null) words += ' ' + text.plural(above.points - own.points + 1, 'more point') + ' would pass ' + text.visible(above.name || above.member) + '.'
  }
  put($('member-text'), words)
}

function draw() { drawing ||= requestAnimationFrame(render) }

// take is an event of the stream.
function take(name, data) {
  if (name === 'problem') {
    problem = 'The board can’t be shown right now: ' + text.visible(data.detail || data.title || 'the server gives no reason')
    notice(problem)
    say(problem, 5000)
    return
  }
  if (problem) {
    problem = ''
    notice('')
  }
  if (name === 'snapshot') {
    const other = state?.window.window !== data.window.window
    if (other) table.clear()
    const first = state?.leader === undefined || other
    state = { ...(first ? {} : state), window: data.window, status: data.status, seeks: sought, rows: new Map() }
    sought = false
    if (windows && windows.current !== null && chosen.window === 'current' && windows.current !== data.window.window) loadWindows()
    if (first) say(chosen.member ? 'Shown: the surroundings of ' + text.visible(chosen.member) : 'Shown: ' + text.visible(data.window.board) + ', ' + data.window.period + ', ' + data.window.window)
  } else if (name === 'change' && state) {
    state.window = { ...state.window, ...data.window }
    state.status = data.status
    for (const member of data.removed) state.rows.delete(member)
  } else return
  for (const row of data.standings) state.rows.set(row.member, row)
  state.at = performance.now()
  draw()
}

// second is what goes on while no event comes.
let past = [] // of the ledger's growth
function second() {
  if (document.hidden) return
  const live = connection === 'live' && state
  const sum = live ? counted(state.status.ledger) : null
  past.push({ at: performance.now(), sum })
  if (past.length > 4) past.shift()
  const [from, to] = [past[0], past.at(-1)]
  const known = past.length > 1 && past.every((p) => p.sum !== null)
  const events = known ? Math.max(0, to.sum - from.sum) * 1000 / (to.at - from.at) : null
  const behind = live ? state.status.lag : null
  const show = (plot, v, id) => {
    const most = plot.push(v)
    put($(id), v === null ? '–' : v >= 1e6 ? text.short(v) : text.number(Math.round(v)))
    put($(id + '-most'), 'up to ' + text.short(Math.round(most)))
  }
  show(rate, events, 'rate')
  show(lag, behind, 'lag')
  const w = state?.window
  $('left').hidden = !w
  if (!w) return
  const seconds = secondsLeft(), over = isOver()
  if (over && $('left-text').textContent !== 'Over') draw() // the status and an empty board have other words
  put($('left-text'), over ? 'Over' : text.left(seconds))
  $('left-word').hidden = over
  const gone = over ? 1 : 1 - seconds * 1000 / (new Date(w.end) - new Date(w.start))
  $('gone').style.transform = 'scaleX(' + Math.min(1, Math.max(0, gone)) + ')'
}

// --- what is asked for ----------------------------------------------------------

const token = () => sessionStorage.getItem(tokenKey) ?? ''

function open() {
  close()
  if (document.hidden || !chosen.board) return
  const query = new URLSearchParams(chosen.member ? { member: chosen.member, n: Math.floor(chosen.top / 2) } : { limit: chosen.top })
  const mine = stream = new Stream(new URL(windowPath(chosen) + '/stream?' + query, api), {
    token: token(),
    event: (name, data) => { if (stream === mine) take(name, data) },
    // The server will not know a board or a period later, nor a window by its name; the current window may come.
    stays: (why) => why.problem.parameter && !(why.problem.parameter === 'window' && ['current', 'previous'].includes(chosen.window)),
    state: (word, why, wait) => {
      if (stream && stream !== mine) return
      if (word === 'refused') refused(why)
      else if (word !== 'connecting' || connection !== 'lost') if (word !== connection || word === 'lost') connected(word, why, wait)
    },
  })
}

function close() {
  stream?.close()
  stream = null
}

function refused() {
  close()
  connected('refused')
  const again = token() !== ''
  sessionStorage.removeItem(tokenKey)
  $('token').hidden = false
  $('shown').hidden = true
  if (again) $('token-why').textContent = 'The server doesn’t take this token. Is it whole, and still one of those that count?'
  $('token-text').focus()
  say(again ? 'The token isn’t one that counts.' : 'A token is needed to read these boards.')
}

// load reads which boards there are, until it has them.
let loading = false
async function load() {
  if (loading) return
  loading = true
  try {
    const all = []
    let cursor = null
    do {
      const page = await get(new URL('boards?' + new URLSearchParams({ limit: 1000, ...(cursor !== null && { cursor }) }), api), token())
      all.push(...page.boards)
      cursor = page.next_cursor
    } while (cursor !== null && all.length < 10000)
    loading = false
    boards = all
    $('token').hidden = true
    $('shown').hidden = false
    follow()
  } catch (error) {
    loading = false
    if (error instanceof Refused && error.status === 401) return refused()
    const wait = (error.after || 3) * 1000
    if (!stream) connected('lost', error, wait)
    later(wait)
  }
}

let next = 0
function later(wait) {
  clearTimeout(next)
  next = setTimeout(load, wait)
}

async function loadWindows() {
  const of = chosen.board + ' ' + chosen.period
  try {
    const list = await get(new URL(['boards', chosen.board, 'periods', chosen.period, 'windows'].map(encodeURIComponent).join('/') + '?limit=200', api), token())
    if (of === chosen.board + ' ' + chosen.period) windows = list
  } catch {
    windows ??= { current: null, previous: null, windows: [] } // the stream says what is the matter
  }
  fillWindows()
}

function fillWindows() {
  const named = (word, name) => name ? word + ' (' + name + ')' : word
  options($('window'), [['current', named('Now', windows?.current)], ['previous', named('Previous', windows?.previous)],
    ...(windows?.windows ?? []).map((w) => [w.window, w.window]).filter(([name]) => name !== windows.current && name !== windows.previous)], chosen.window)
}

// follow shows what the address says.
let shown = ''
function follow() {
  chosen = read()
  const board = boards.find((b) => b.board === chosen.board) ?? (chosen.board ? null : boards.find((b) => b.board === 'global') ?? boards[0])
  if (board) chosen.board = board.board
  const periods = board?.periods.map((p) => p.period) ?? []
  if (!chosen.period) chosen.period = periods.includes('weekly') ? 'weekly' : periods[0] ?? 'weekly'
  if (!chosen.board) {
    connected('live')
    notice('There is no board yet: one appears with its first event.')
    later(3000)
    return
  }
  if (location.hash !== link(chosen)) history.replaceState(null, '', link(chosen))
  options($('board'), boards.map((b) => [b.board, b.board]), chosen.board)
  pills($('periods').lastElementChild, 'periods-choice', periods.includes(chosen.period) ? periods : [...periods, chosen.period], chosen.period, (period) => choose({ period, window: 'current' }))
  pills($('tops').lastElementChild, 'tops-choice', tops, chosen.top, (top) => choose({ top: Number(top) }))
  const before = shown
  shown = link(chosen)
  if (before === shown) {
    if (!stream) open()
    return
  }
  const was = new URLSearchParams(before.slice(1))
  if (was.get('board') !== chosen.board || was.get('period') !== chosen.period) {
    windows = null
    loadWindows()
  }
  fillWindows()
  $('member').value = chosen.member
  sought = chosen.member !== ''
  state = null
  past = []
  problem = ''
  notice('')
  table.clear()
  $('empty').hidden = $('member-card').hidden = true
  open()
}

// --- what is done -----------------------------------------------------------------

$('board').addEventListener('change', (e) => {
  const of = boards.find((b) => b.board === e.target.value)
  const period = of?.periods.some((p) => p.period === chosen.period) ? chosen.period : ''
  choose({ board: e.target.value, period: period || of?.periods[0]?.period || 'weekly', window: 'current' })
})
$('window').addEventListener('change', (e) => choose({ window: e.target.value }))
$('choices').addEventListener('submit', (e) => e.preventDefault())
$('find').addEventListener('submit', (e) => {
  e.preventDefault()
  const given = $('member').value
  // A name that is shown is as good as an id; an id counts first.
  const rows = [...(state?.rows.values() ?? [])]
  const named = rows.some((r) => r.member === given) ? null : rows.find((r) => r.name === given)
  choose({ member: named?.member ?? given })
})
$('token-form').addEventListener('submit', (e) => {
  e.preventDefault()
  sessionStorage.setItem(tokenKey, $('token-text').value.trim())
  $('token-text').value = ''
  shown = ''
  load()
})
$('retry').addEventListener('click', () => {
  clearTimeout(next)
  stream ? stream.now() : load()
})
for (const change of ['popstate', 'hashchange']) addEventListener(change, follow) // by Back, or a link to a member
addEventListener('online', () => stream?.now())
document.addEventListener('visibilitychange', () => {
  if ($('token').hidden === false) return
  if (document.hidden) {
    close()
    connected('paused')
  } else if (boards.length > 0) {
    connected('connecting')
    open()
  } else load()
})

setInterval(second, 1000)
setInterval(() => { if (!document.hidden && connection === 'live') load() }, 60e3)
load()
