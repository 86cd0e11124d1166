// Two calls by the client that openapi-typescript and openapi-fetch make of openapi.json, and a
// refusal. The types are half of it: what isn't in the document doesn't compile.
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

const client = createClient<paths>({ baseUrl: process.env.STANDINGS_URL ?? '' })
const path = { board: 'global', period: 'weekly', window: 'current' }
const window = '/v1/boards/{board}/periods/{period}/windows/{window}'

const page = await client.GET(`${window}/standings`, { params: { path, query: { limit: 2, ranks: 'competition' } } })
if (!page.data) throw new Error(page.error?.detail)
const rows: components['schemas']['Standing'][] = page.data.standings
const state: 'lost' | 'empty' | 'backup' | 'archived' | 'refilling' | 'incomplete' | 'stalled' | 'lagging' | 'current' = page.data.status.state
console.log(page.data.window.window, state, page.data.next_cursor !== null)
for (const { rank, member, points } of rows) console.log(rank, member, points)

const found = await client.POST(`${window}/members/lookup`, { params: { path }, body: { members: ['Kofi', 'somebody'] } })
if (!found.data) throw new Error(found.error?.detail)
for (const { place, rank, member } of found.data.standings) console.log(place, rank, member)
console.log(found.data.absent.join())

// @ts-expect-error there is no such parameter
const refused = await client.GET(`${window}/standings`, { params: { path, query: { limt: 2 } } })
const problem: components['schemas']['Problem'] | undefined = refused.error
console.log(problem?.status, problem?.parameter)
