// A board's top ten as it moves, by the API's stream (docs/api.md):
//
//   node --experimental-strip-types docs/examples/live.mts
//
// STANDINGS_URL is where the API is, STANDINGS_TOKEN a token, where one is needed. It takes node
// 22.6 or later, and nothing else. A browser has EventSource, which does what is below show by
// itself, but sends no token.

interface Shown { window: { window: string, members: number }, status: { state: string }, removed?: string[], standings: { rank: number, member: string, points: number | null }[] }

const url = (process.env.STANDINGS_URL ?? 'http://localhost:8090') + '/v1/boards/global/periods/weekly/windows/current/stream?limit=10'
const rows = new Map()

// show does what an event says: a snapshot is all there is, a change what is different.
function show(event: string, data: Shown) {
  if (event === 'snapshot') rows.clear()
  for (const member of data.removed ?? []) rows.delete(member)
  for (const row of data.standings) rows.set(row.member, row)
  console.clear()
  console.log(`${data.window.window}: ${data.window.members} members, ${data.status.state}`)
  for (const s of [...rows.values()].sort((a, b) => a.rank - b.rank)) console.log(s.rank, s.member, s.points)
}

const headers: Record<string, string> = {}
if (process.env.STANDINGS_TOKEN) headers.Authorization = `Bearer ${process.env.STANDINGS_TOKEN}`
for (let pause = 2000; ; await new Promise((resolve) => setTimeout(resolve, pause))) { // a stream ends now and then
  // The server sends a heartbeat at least every 15 s: after 30 s of silence the connection is dead.
  const dead = new AbortController()
  let silence = setTimeout(() => dead.abort(), 30e3)
  try {
    const answer = await fetch(url, { headers, signal: dead.signal })
    if (!answer.ok || !answer.body) {
      console.error((await answer.json()).detail)
      if (!answer.headers.has('Retry-After')) process.exit(1) // what is wrong stays so
      pause = Number(answer.headers.get('Retry-After')) * 1000
      continue
    }
    let rest = '', event = ''
    for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(silence)
      silence = setTimeout(() => dead.abort(), 30e3)
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? '' // its end hasn't come yet
      for (const line of lines) {
        const [name, value] = [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]
        if (name === 'retry') pause = Number(value)
        if (name === 'id') headers['Last-Event-ID'] = value // from where it goes on
        if (name === 'event') event = value
        if (name === 'data' && event === 'problem') console.error(JSON.parse(value).detail)
        else if (name === 'data' && event !== 'heartbeat') show(event, JSON.parse(value))
      }
    }
  } catch (error) { // the server is away, or cut off: it may come back
    console.error(String(error))
  } finally {
    clearTimeout(silence)
  }
}
