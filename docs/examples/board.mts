// A board's top ten, a member's neighbours and a list of friends, by the API (docs/api.md):
//
//   node --experimental-strip-types docs/examples/board.mts u42 Emi Kofi
//
// The first name is the member, the others are friends. STANDINGS_URL is where the API is,
// STANDINGS_TOKEN a token, where one is needed. It takes node 22.6 or later, and nothing else.

interface Standing { rank: number, place?: number, member: string, points: number | null, fields?: Record<string, number> }
interface Answer { window: { window: string, members: number }, status: { state: string }, standings: Standing[], absent?: string[] }

const base = (process.env.STANDINGS_URL ?? 'http://localhost:8090') + '/v1/boards/global/periods/weekly/windows/current'
const [member = 'u42', ...friends] = process.argv.slice(2)

// ask sends a request. Where the API is busy (429, 503) it says when to come again.
async function ask(path: string, options: RequestInit = {}): Promise<Answer> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' }
  if (process.env.STANDINGS_TOKEN) headers.Authorization = `Bearer ${process.env.STANDINGS_TOKEN}`
  for (let tries = 1; ; tries++) {
    const answer = await fetch(base + path, { ...options, headers, signal: AbortSignal.timeout(10_000) })
    if (answer.ok) return answer.json()
    const after = Number(answer.headers.get('Retry-After'))
    if (tries === 5 || !after || (answer.status !== 429 && answer.status !== 503)) {
      const isProblem = answer.headers.get('Content-Type') === 'application/problem+json'
      throw new Error(isProblem ? (await answer.json()).detail : `status ${answer.status}`)
    }
    await new Promise((resolve) => setTimeout(resolve, (after + Math.random()) * 1000))
  }
}

const top: Answer = await ask('/standings?limit=10')
console.log(`${top.window.window}: ${top.window.members} members, ${top.status.state}`)
for (const s of top.standings) console.log(s.rank, s.member, s.points)

// A member who has no points yet sees the end of the board.
const around: Answer = await ask(`/around?member=${encodeURIComponent(member)}&n=2&if_missing=bottom`)
console.log(`around ${member}`)
for (const s of around.standings) console.log(s.rank, s.member, s.points)

// Up to 1,000 at a time, ranked among themselves: place.
const found: Answer = await ask('/members/lookup', { method: 'POST', body: JSON.stringify({ members: [member, ...friends] }) })
console.log('friends')
for (const s of found.standings) console.log(s.place, s.member, s.points, `rank ${s.rank}`)
for (const id of found.absent ?? []) console.log('-', id)
