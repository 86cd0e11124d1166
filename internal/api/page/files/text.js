// How texts, numbers and times are shown. A member's id and name may be anything: they reach the page
// as text nodes alone, and what can't be seen in them, or would reorder what is beside them, is shown.

// Characters that show nothing: controls, format characters, separators, halves of pairs, and
// letters that are blank.
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u3164\uffa0\u2800]|^\s+|\s+$/gu
// A joiner is part of how pictures and some scripts are written; between letters that don't join it
// would only make one id pass for another.
const joins = /[\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}]|(?!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic}|\p{Script=Han})\p{L}/u

export function visible(text) {
  return text.replace(unseen, (found, at) => {
    const code = found.codePointAt(0)
    if ((code === 0x200c || code === 0x200d) && joins.test([...text.slice(0, at)].at(-1) ?? '') && joins.test([...text.slice(at + 1)][0] ?? '')) return found
    if (/^\s/u.test(found) && code >= 0x20 && ![0x85, 0x2028, 0x2029, 0xfeff].includes(code)) return '␣'.repeat([...found].length)
    return [...found].map((c) => name(c.codePointAt(0))).join('')
  })
}

function name(code) {
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x20) return '␣'
  if (code === 0x7f) return '␡'
  return '‹U+' + code.toString(16).toUpperCase().padStart(4, '0') + '›'
}

const whole = new Intl.NumberFormat('en')
export const number = (n) => whole.format(n)

const few = new Intl.NumberFormat('en', { maximumSignificantDigits: 3, notation: 'compact' })
export const short = (n) => few.format(n)

export const plural = (n, one, more = one + 's') => number(n) + ' ' + (n === 1 ? one : more)

// left is a stretch of seconds: its two largest units, and below an hour a clock.
export function left(seconds) {
  const s = Math.max(0, Math.floor(seconds))
  const days = Math.floor(s / 86400), hours = Math.floor(s / 3600) % 24, minutes = Math.floor(s / 60) % 60
  if (days > 0) return days + ' d ' + hours + ' h'
  if (hours > 0) return hours + ' h ' + minutes + ' min'
  return minutes + ':' + String(s % 60).padStart(2, '0')
}

export function age(ms) {
  if (ms < 1000) return 'less than a second'
  const s = Math.round(ms / 1000)
  return s < 120 ? plural(s, 'second') : s < 7200 ? plural(Math.round(s / 60), 'minute') : plural(Math.round(s / 3600), 'hour')
}

function formatter(zone, options) {
  try {
    return new Intl.DateTimeFormat('en-GB', { ...options, timeZone: zone })
  } catch { // a zone that the browser doesn't know
    return new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' })
  }
}

// bounds are a window's, in its board's time zone.
export function bounds(w) {
  const start = new Date(w.start), end = new Date(w.end)
  const short = end - start < 2 * 86400e3
  const f = formatter(w.time_zone, { day: 'numeric', month: 'short', year: 'numeric', ...(short && { hour: '2-digit', minute: '2-digit' }) })
  const last = short ? end : new Date(end - 1) // of days the last one is named, and not the one after
  const text = f.formatRange ? f.formatRange(start, last) : f.format(start) + ' – ' + f.format(last)
  return text + ', ' + w.time_zone
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const year = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })

// moment is when somebody reached something, by the reader's clock.
export function moment(text) {
  const at = new Date(text), now = new Date()
  if (at.toDateString() === now.toDateString()) return clock.format(at)
  return (at.getFullYear() === now.getFullYear() ? day : year).format(at)
}

// status puts in words whether a window is complete and current: a tone, a title, and what it means.
// over: the window has ended.
export function status(s, over) {
  const stalled = s.stalled_partitions.map((p) => p.partition + ' (' + p.reason.replaceAll('_', ' ') + ')').join(', ')
  const stands = stalled && ' Events of these partitions do not count right now: ' + stalled + '.'
  const old = s.behind_ms > 0 ? ', the oldest for ' + age(s.behind_ms) : ''
  const waits = s.lag > 0 ? plural(s.lag, 'event') + ' ' + (s.lag === 1 ? 'waits' : 'wait') + ' to be counted' + old + '.' : 'Some events do not count yet.'
  switch (s.state) {
    case 'lost':
      return ['bad', 'Lost', 'Redis has lost this board. It has to be rebuilt from the log.']
    case 'empty':
      return over ? ['calm', 'No events', 'No event counts in this window, or the window is too old to be kept.' + stands] :
        ['calm', 'No events yet', 'The first event brings the first member.' + stands]
    case 'backup':
      return ['warn', 'A backup', 'This is how the board was on ' + moment(s.as_of) + '. Later events are not in it.']
    case 'archived':
      return s.complete ? ['good', 'Final', 'From the archive: nothing can change this window any more.'] :
        ['warn', 'Final, incomplete', 'From the archive: nothing can change this window any more, and some events are missing.']
    case 'refilling':
      return ['warn', 'Being refilled', 'Redis was lost or the board was rebuilt, and events are being read again. Points rise until all of them count.']
    case 'incomplete':
      return ['warn', 'Incomplete', 'Some events of this window were deleted before they counted. Points may be missing for good.' + stands]
    case 'stalled':
      return ['warn', 'Stalled', waits + stands]
    case 'lagging':
      return ['warn', 'Catching up', waits]
    case 'current':
      if (s.final) return ['good', 'Final', 'All events count, and nothing can change this window any more.']
      return over ? ['good', 'Complete', 'The window is over and nothing is missing. Late events may still count.'] :
        ['good', 'Complete and current', 'Nothing is missing, and new events count as they come.']
  }
  return ['calm', String(s.state), '']
}
