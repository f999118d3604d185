import { mutateJson, pick, type Random } from './mutate-json.ts';

/** A request as it is sent. */
export interface HostileBody {
  bytes: Buffer;
  headers: Record<string, string>;
  /** What was done, for the message of a failing test. */
  what: string;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const TYPES = [
  'text/plain',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/x-www-form-urlencoded',
  'application/json;;',
  'APPLICATION/JSON',
  '/',
  'application/octet-stream',
];
const ENCODINGS = ['gzip', 'br', 'identity', 'deflate, gzip', ''];
const ODD_BYTES = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x00], [0xf4, 0x90, 0x80, 0x80], [0xef, 0xbb, 0xbf], [0x1f, 0x8b]];

/** A body that has been mutated as JSON, as text, as bytes, or in what its headers say of it. */
export function mutateBody(random: Random, original: unknown): HostileBody {
  const draw = random();
  if (draw < 0.8) return { bytes: Buffer.from(JSON.stringify(mutateJson(random, original))), headers: JSON_TYPE, what: 'JSON' };
  const text = JSON.stringify(original);
  if (draw < 0.9) {
    const [what, changed] = pick(random, textMutations)(random, text);
    return { bytes: Buffer.from(changed), headers: JSON_TYPE, what };
  }
  if (draw < 0.95) {
    const bytes = Buffer.from(text);
    const at = Math.floor(random() * bytes.length);
    const odd = Buffer.from(pick(random, ODD_BYTES));
    return { bytes: Buffer.concat([bytes.subarray(0, at), odd, bytes.subarray(at + (random() < 0.5 ? 1 : 0))]), headers: JSON_TYPE, what: 'bytes' };
  }
  if (draw < 0.98) return { bytes: Buffer.from(text), headers: { 'content-type': pick(random, TYPES) }, what: 'content type' };
  return { bytes: Buffer.from(text), headers: { ...JSON_TYPE, 'content-encoding': pick(random, ENCODINGS) }, what: 'content encoding' };
}

type TextMutation = (random: Random, text: string) => [what: string, text: string];

const textMutations: readonly TextMutation[] = [
  (random, text) => ['cut', text.slice(0, Math.floor(random() * text.length))],
  (random, text) => ['behind the end', `${text}${pick(random, ['}', ',', ' x', '\u0000', '{}', '// end'])}`],
  (_, text) => ['a duplicated field', `${text.slice(0, -1)},"messages":1,"name":{},"code":[]}`],
  (_, text) => ['a duplicated field first', text.replace('{', '{"messages":[],"messages":null,"name":"","code":"",')],
  (random, text) => [
    'a number that JSON has not',
    text.replace('{', `{"seed":${pick(random, ['1e400', '-0', '00', '.5', '+1', 'NaN', 'Infinity', '0x1', '1e', '9'.repeat(400)])},`),
  ],
  (_, text) => ['other quotes', text.replaceAll('"', "'")],
  (random, text) => ['nesting', `{"a":${'['.repeat(pick(random, [100, 100_000]))}${text}`],
  (_, text) => ['closed nesting', `{"x":${'['.repeat(20_000)}${']'.repeat(20_000)},${text.slice(1)}`],
  (_, text) => ['a prototype', text.replace('{', '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"a":1}},')],
  (_, text) => ['half of a pair', text.replace('{', '{"user":"\\ud800","metadata":{"\\udfff":"\\ud83d"},')],
  () => ['nothing', ''],
  (random) => ['no object', pick(random, ['null', '0', '""', '[]', 'true', '"a"', '[{}]'])],
];
