// What is chosen, which is in the address after #, and the controls that show it.

export const tops = [10, 25, 100]
const usual = { board: '', period: '', window: 'current', top: 25, member: '' }

// read returns what the address says.
export function read() {
  const given = new URLSearchParams(location.hash.slice(1))
  const top = Number(given.get('top'))
  return {
    board: given.get('board') ?? '', period: given.get('period') ?? '', window: given.get('window') || 'current',
    top: tops.includes(top) ? top : usual.top, member: given.get('member') ?? '',
  }
}

// link is the address of a choice.
export function link(of) {
  const all = new URLSearchParams({ board: of.board, period: of.period })
  for (const name of ['window', 'top', 'member']) if (of[name] !== usual[name]) all.set(name, of[name])
  return '#' + all
}

export const windowPath = (of) => ['boards', of.board, 'periods', of.period, 'windows', of.window].map(encodeURIComponent).join('/')

// options fills a select, and adds what is chosen if it is none of them.
export function options(select, all, now) {
  if (!all.some(([v]) => v === now)) all = [...all, [now, now]]
  const same = select.options.length === all.length && all.every(([v, words], i) => select.options[i].value === v && select.options[i].text === words)
  if (!same) select.replaceChildren(...all.map(([v, words]) => new Option(words, v)))
  select.value = now
}

// pills fills a box with radio buttons.
export function pills(box, name, all, now, pick) {
  const same = box.children.length === all.length && all.every((v, i) => box.children[i].firstChild.value === String(v))
  if (!same) {
    box.replaceChildren(...all.map((v) => {
      const label = document.createElement('label')
      const input = label.appendChild(Object.assign(document.createElement('input'), { type: 'radio', name, value: v }))
      input.addEventListener('change', () => pick(input.value))
      label.appendChild(document.createElement('span')).textContent = v
      return label
    }))
  }
  for (const label of box.children) label.firstChild.checked = label.firstChild.value === String(now)
}
