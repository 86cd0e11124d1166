// Server-sent events, read with fetch: EventSource can send no token. One connection at a time, which
// comes back by itself after it was lost, and goes on after the last event that it had.

// Parser takes a stream's text as it comes, however it is cut.
export class Parser {
  retry = null // ms
  id = ''
  #rest = ''
  #event = ''
  #data = []

  constructor(take) { this.take = take }

  push(text) {
    text = this.#rest + text
    // A CR at the end may be half of a line's end.
    const held = text.endsWith('\r') ? 1 : 0
    const lines = text.slice(0, text.length - held).split(/\r\n|\n|\r/)
    this.#rest = lines.pop() + text.slice(text.length - held)
    for (const line of lines) this.#line(line)
  }

  #line(line) {
    if (line === '') {
      if (this.#data.length > 0) this.take(this.#event || 'message', this.#data.join('\n'))
      this.#event = ''
      this.#data = []
      return
    }
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.#event = value
    else if (name === 'data') this.#data.push(value)
    else if (name === 'id' && !value.includes('\0')) this.id = value
    else if (name === 'retry' && /^\d+$/.test(value)) this.retry = Number(value)
  }
}

// Refused is an answer that is no: its status, and its problem details.
export class Refused extends Error {
  constructor(status, problem, after) {
    super(problem.detail || problem.title || 'the server answered with ' + status)
    this.status = status
    this.problem = problem
    this.after = after // seconds until it may be asked again
  }
}

// The limits, in ms, bring the page back within 45 s of a network that has fallen silent: it doesn't
// report that a connection is dead.
const answers = 10e3 // until an answer begins
const whole = 20e3 // until an answer in one piece is there
const silence = 30e3 // without a byte, of a server that sends one every 15 s
const slowest = 20e3 // between two tries

// ask is a GET that is answered, or Refused. A server that can't be reached is another error.
async function ask(url, { token, headers, abort }) {
  const late = setTimeout(() => abort.abort(), answers)
  try {
    const answer = await fetch(url, {
      headers: { ...headers, ...(token && { Authorization: 'Bearer ' + token }) }, signal: abort.signal, cache: 'no-store', credentials: 'same-origin',
    })
    if (answer.ok) return answer
    let problem = {}
    try { problem = await answer.json() } catch { /* not of our server: a proxy's, perhaps */ }
    throw new Refused(answer.status, problem, Number(answer.headers.get('Retry-After')) || 0)
  } finally {
    clearTimeout(late)
  }
}

// get is the JSON that a GET is answered with.
export async function get(url, token) {
  const abort = new AbortController(), late = setTimeout(() => abort.abort(), whole)
  try {
    return await (await ask(url, { token, abort })).json()
  } finally {
    clearTimeout(late)
  }
}

// Stream calls event(name, data) and state(word, why, ms until the next try): connecting, live, lost,
// refused, missing. Refused waits for another token. A stream is missing if stays says that a refusal
// doesn't pass by itself.
export class Stream {
  #url; #token; #event; #state; #stays
  #closed = false
  #abort = null
  #wake = null

  constructor(url, { token, event, state, stays }) {
    this.#url = url
    this.#token = token
    this.#event = event
    this.#state = state
    this.#stays = stays
    this.#run()
  }

  close() {
    this.#closed = true
    this.#abort?.abort()
    this.#wake?.()
  }

  // now ends a wait for the next try.
  now() { this.#wake?.() }

  async #run() {
    let id = '', retry = 3000, failures = 0
    this.#state('connecting')
    while (!this.#closed) {
      let why = null, ended = false
      const abort = this.#abort = new AbortController(), began = performance.now()
      let heard = performance.now()
      const watch = setInterval(() => { if (performance.now() - heard > silence) abort.abort() }, 1000)
      try {
        const answer = await ask(this.#url, { token: this.#token, headers: { Accept: 'text/event-stream', ...(id && { 'Last-Event-ID': id }) }, abort })
        if (id && !this.#closed) this.#state('live') // nothing is sent while nothing has changed
        const parser = new Parser((name, data) => {
          if (this.#closed) return
          id = parser.id
          failures = 0
          this.#state('live')
          if (name !== 'heartbeat') this.#event(name, JSON.parse(data))
        })
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
        for (;;) {
          const { value, done } = await reader.read()
          if (done) break
          heard = performance.now()
          parser.push(value)
          retry = parser.retry ?? retry
        }
        ended = failures === 0 && performance.now() - began > 5000 // a server ends a stream now and then, for a fresh one
      } catch (error) {
        why = error
      } finally {
        clearInterval(watch)
        abort.abort()
      }
      if (this.#closed) return
      if (why instanceof Refused && (why.status === 401 || this.#stays(why))) {
        this.#state(why.status === 401 ? 'refused' : 'missing', why)
        return
      }
      let wait = ended ? Math.random() * 500 : Math.min(slowest, retry * 1.5 ** Math.min(failures, 8)) * (0.75 + Math.random() / 2)
      if (why instanceof Refused && why.status < 500 && why.status !== 429) wait = Math.max(wait, 10e3) // it may be there later
      if (why?.after) wait = Math.max(wait, why.after * 1000)
      failures++
      if (!ended) this.#state('lost', why, wait)
      await new Promise((wake) => {
        this.#wake = wake
        setTimeout(wake, wait)
      })
    }
  }
}
