// Reads a board from Redis without the API, with node-redis 6. docs/reading.md describes the formats.

import { createClient } from "redis";

interface Layout { layout: string; k: number; tick: number; max: number }

/** The length of each built-in period, in ms. */
const lengths: Record<string, number> = {
  daily: 129_600_000, weekly: 648_000_000, monthly: 2_721_600_000,
  quarterly: 7_992_000_000, yearly: 31_665_600_000, "all-time": 4_294_967_296_000,
};

/** Returns the points in a score and the time at which the member reached them. Times are Unix ms; the window is [start, end). */
export function decode(l: Layout, score: number, start: number, end: number) {
  let points = 0;
  let ticks = 0;
  if (l.layout === "readable") {
    points = Math.floor(score); // Math.trunc would round -0.9 up to 0
    ticks = (score - points) * 2 ** l.k;
  } else {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, score);
    const code = view.getBigUint64(0) - (1n << 52n);
    points = Number(code >> BigInt(l.k)) - l.max;
    ticks = Number(code & ((1n << BigInt(l.k)) - 1n));
  }
  return { points, reachedAt: Math.max(start, end - (ticks + 1) * l.tick) };
}

/**
 * Returns the first n rows of a window, read in one transaction, or undefined if Redis has no such window.
 * Rows have fields if the board has a rule of its own; points then is the packed number.
 */
export async function top(client: ReturnType<typeof createClient>,
  prefix: string, board: string, period: string, window: string, n: number) {
  const key = `${prefix}:{0}:`;
  const name = `${board}:${period}:${window}`;
  const [schema, listing, rows] = await client.multi()
    .get(`${key}schema`)
    .hGet(`${key}windows`, name)
    .zRangeWithScores(key + name, 0, n - 1, { REV: true })
    .exec<"typed">();
  if (!schema || !listing) return undefined;
  const { start, end, rule } = JSON.parse(listing); // it also has expires, final and sets
  const entry = JSON.parse(schema).periods[period];
  const fields = rule ? parseRule(rule) : [];
  const length = lengths[entry.of?.calendar ?? period] ?? end - start;
  const layout: Layout = fields.length > 0 ? byRule(entry.layout, fields, length) : entry;
  return rows.map(({ value, score }) => {
    const row = { member: value, ...decode(layout, score, start, end) };
    return fields.length > 0 ? { ...row, fields: unpack(layout.layout, fields, row.points) } : row;
  });
}

interface Field { name: string; max: number; signed: boolean; fewest: boolean }

/** Returns the fields of a rule in a window's entry. */
function parseRule(rule: string): Field[] {
  return rule.slice(rule.indexOf("(") + 1, -1).split(",").map((one) => {
    const [name, max, ...words] = one.split(":");
    return { name: name!, max: Number(max), signed: words.includes("signed"), fewest: words.includes("fewest") };
  });
}

/** Returns a field's radix in a layout of this kind. */
function radix(kind: string, field: Field): number {
  if (kind === "wide") return field.max + 1;
  let n = 10;
  while (n <= field.max) n *= 10;
  return n;
}

/** Returns the layout of a board with these fields. kind is that of its period's layout, and length the period's length in ms. */
function byRule(kind: string, fields: Field[], length: number): Layout {
  const largest = fields.reduce((sum, field) => sum * radix(kind, field) + field.max, 0);
  const signed = kind === "wide" && fields[0]!.signed;
  const numbers = signed ? 2 * largest + 1 : largest + 1;
  const limit = kind === "wide" ? 2 ** 63 - 2 ** 53 : 2 ** 53;
  let k = 1;
  while (2 ** k < length && numbers * 2 ** (k + 1) <= limit) k++;
  return { layout: kind, k, tick: Math.ceil(length / 2 ** k), max: signed ? largest : 0 };
}

/** Returns the fields of a packed number. */
function unpack(kind: string, fields: Field[], packed: number): Record<string, number> {
  const values: Record<string, number> = {};
  for (let i = fields.length - 1; i >= 0; i--) {
    const field = fields[i]!;
    const digit = i > 0 ? packed % radix(kind, field) : packed; // the first field takes the rest
    packed = (packed - digit) / radix(kind, field);
    values[field.name] = !field.fewest ? digit : field.signed ? 0 - digit : field.max - digit;
  }
  return values;
}
