/** From 0 up to 1. */
export type Random = () => number;

type Path = (string | number)[];

export const pick = <Item>(random: Random, items: readonly Item[]): Item => {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error('there is nothing to pick');
  return item;
};

/** Of a text that is meant to be long: what a client may paste, and less than a body may have. */
const LONG = 100_000;
const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'length',
  '$ref',
  '',
  '0',
  '\u0000',
  'a.b[0]',
  'x'.repeat(5_000),
  'then',
  'toJSON',
];

const TEXTS = [
  ...[
    '',
    ' ',
    '\u0000',
    'a\u0000b',
    '\ud800',
    'a\udc00b',
    '\uffff',
    '\u202e',
    '\ufeff',
    '\r\nx: y',
    '${KEY}',
    '{{x}}',
    '%00',
    "'; drop table usage_ledger; --",
  ],
  ...['NaN', '-1', '1e999', 'true', 'null', 'undefined', '[object Object]', '__proto__', 'constructor', '../../etc/passwd', '<script>alert(1)</script>'],
  ...[
    'http://169.254.169.254/latest',
    'file:///etc/passwd',
    'https://',
    'http://[::1',
    'data:',
    'data:image/png;base64,',
    'data:image/png;base64,!!!',
    'data:,x',
    'data:;base64',
  ],
  ...['🏳️‍🌈'.repeat(50), 'x'.repeat(129), 'x'.repeat(LONG), '\n'.repeat(LONG), '{"a":', '{}', '[]', '"', '\\'],
];
const NUMBERS = [0, -0, 1, -1, 0.5, -0.5, 2, 100, 101, 129, 1e-7, 2 ** 31, -(2 ** 31), 2 ** 53, 2 ** 53 + 2, 1e21, -1e21, 1e308, -1e308, 5e-324];

/** A value that a field hardly has. */
function oddValue(random: Random): unknown {
  switch (Math.floor(random() * 9)) {
    case 0:
      return null;
    case 1:
      return random() < 0.5;
    case 2:
    case 3:
      return pick(random, NUMBERS);
    case 4:
    case 5:
      return pick(random, TEXTS);
    case 6:
      return pick<unknown>(random, [
        [],
        {},
        [null],
        [[]],
        [{}],
        [''],
        { a: 1 },
        { type: 'text' },
        { type: '' },
        { toString: 1 },
        { length: 1e9 },
        withOwn({}, 'then', {}),
      ]);
    case 7:
      return nested(pick(random, [10, 150, 199, 250, 1_000]), random() < 0.5);
    default:
      return pick<() => unknown>(random, [
        () => Array.from({ length: 5_000 }, () => 0),
        () => Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`k${index}`, index])),
        () => withOwn({}, pick(random, NAMES), oddValue(random)),
      ])();
  }
}

function nested(levels: number, isArray: boolean): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = isArray ? [value] : { a: value };
  return value;
}

/** Also where the name is that of a prototype. */
function withOwn(target: object, name: string, value: unknown): object {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  return target;
}

function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const own = Object.entries(value).flatMap(([name, child]) => pathsIn(child, [...path, Array.isArray(value) ? Number(name) : name]));
  return path.length === 0 ? own : [path, ...own];
}

function parentOf(root: unknown, path: Path): object | null {
  let value = root;
  for (const step of path.slice(0, -1)) value = typeof value === 'object' && value !== null ? Reflect.get(value, step) : null;
  return typeof value === 'object' && value !== null ? value : null;
}

/** `add`: a field, mostly one that is not known; `move`: another value of the same body. The later ones are seldom refused. */
const CHANGES = ['remove', 'wrap', 'move', 'replace', 'replace', 'repeat', 'nudge', 'nudge', 'nudge', 'add', 'add', 'add'] as const;

/** A copy of a JSON value with one to three changes: of types, ranges, lengths, names and nesting. */
export function mutateJson(random: Random, original: unknown): unknown {
  const root: unknown = structuredClone(original);
  const changes = 1 + Math.floor(random() * random() * 3);
  for (let change = 0; change < changes; change += 1) mutateOnce(random, root);
  return random() < 0.01 ? oddValue(random) : root;
}

function mutateOnce(random: Random, root: unknown): void {
  const paths = pathsIn(root);
  if (paths.length === 0) return;
  const path = pick(random, paths);
  const parent = parentOf(root, path);
  const name = path.at(-1);
  if (parent === null || name === undefined) return;
  const value: unknown = Reflect.get(parent, name);
  const set = (next: unknown) => withOwn(parent, String(name), next);
  switch (pick(random, CHANGES)) {
    case 'remove':
      if (Array.isArray(parent)) parent.splice(Number(name), 1);
      else Reflect.deleteProperty(parent, name);
      return;
    case 'add':
      withOwn(parent, Array.isArray(parent) ? String(parent.length) : pick(random, NAMES), oddValue(random));
      return;
    case 'wrap':
      set(random() < 0.5 ? [value] : { [String(name)]: value });
      return;
    case 'nudge':
      set(nudged(random, value));
      return;
    case 'move': {
      const other = pick(random, paths);
      const from = parentOf(root, other);
      set(from === null ? null : structuredClone(Reflect.get(from, other.at(-1) ?? '')));
      return;
    }
    case 'repeat':
      if (Array.isArray(parent)) parent.push(...Array.from({ length: pick(random, isLarge(value) ? [1] : [1, 2, 50, 400]) }, () => structuredClone(value)));
      return;
    case 'replace':
      set(oddValue(random));
  }
}

/** Grown by several changes, one of these would make a body of gigabytes. */
function isLarge(value: unknown): boolean {
  return (JSON.stringify(value) ?? '').length > LONG / 300;
}

/** About the same value. */
function nudged(random: Random, value: unknown): unknown {
  if (typeof value === 'number') return pick(random, [-value, value + 0.5, value * 1_000_000, value / 3, String(value)]);
  if (typeof value === 'boolean') return pick<unknown>(random, [!value, String(value), Number(value)]);
  if (typeof value === 'string') {
    const growths = isLarge(value) ? [] : [value.repeat(300), [...value]];
    return pick<unknown>(random, [value.toUpperCase(), value.slice(1), `${value} `, `${value}\u0000`, Number(value), ...growths]);
  }
  return oddValue(random);
}
