// A plot of the last two minutes, a point a second: a line, and what is below it.

const svg = 'http://www.w3.org/2000/svg'
const points = 120
const width = 240, height = 64, top = 6

export class Plot {
  #values = [] // null: unknown
  #line; #area

  constructor(element) {
    this.#area = element.appendChild(document.createElementNS(svg, 'path'))
    this.#line = element.appendChild(document.createElementNS(svg, 'path'))
    this.#area.setAttribute('class', 'area')
    this.#line.setAttribute('class', 'line')
  }

  // push adds a value and returns the largest that is shown.
  push(value) {
    this.#values.push(value)
    if (this.#values.length > points) this.#values.shift()
    const most = Math.max(1, ...this.#values.filter((v) => v !== null))
    const first = points - this.#values.length
    let line = '', area = '', from = null
    const x = (i) => ((first + i) * width / (points - 1)).toFixed(1)
    this.#values.forEach((v, i) => {
      if (v === null) {
        if (from !== null) area += 'L' + x(i - 1) + ' ' + height + 'Z'
        from = null
        return
      }
      const y = (height - 1 - v / most * (height - top)).toFixed(1)
      area += (from === null ? 'M' + x(i) + ' ' + height + 'L' : 'L') + x(i) + ' ' + y
      line += (from === null ? 'M' : 'L') + x(i) + ' ' + y
      from ??= i
    })
    if (from !== null) area += 'L' + x(this.#values.length - 1) + ' ' + height + 'Z'
    this.#line.setAttribute('d', line)
    this.#area.setAttribute('d', area)
    return most
  }
}

// counted is how many records a ledger's positions come to: "480", or within a sweep
// "120..480@8f3c…", where the members with a hash below 8f3c… are through.
export function counted(ledger) {
  let sum = 0, known = false
  for (const text of Object.values(ledger ?? {})) {
    const m = /^(\d+)(?:\.\.(\d+)@([0-9a-f]{4}))?/.exec(text)
    if (!m) continue
    known = true
    sum += Number(m[1])
    if (m[2]) sum += (Number(m[2]) - Number(m[1])) * parseInt(m[3], 16) / 65536
  }
  return known ? sum : null
}
