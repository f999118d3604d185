import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addBoundedFormats, FORMAT_NAMES } from './bounded-formats.ts';
import { isUrl } from './is-url.ts';
import { StepBudget } from './step-budget.ts';

const SMALL_CHARS = 8_192;
const LARGE_CHARS = 65_536;
/** For a quadratic format 64 KiB take 64 times as long as 8 KiB, and several seconds; for a linear one eight times, and some milliseconds. */
const MAX_GROWTH = 30;
const MIN_CPU_MS = 250;

const BEGINNINGS = [
  '',
  'http://',
  'http://a@',
  'http://1.',
  'a:',
  'a://[',
  '//',
  '/',
  '#',
  'P',
  '2020-01-01T00:00:00.',
  '00:00:00.',
  'a@',
  '{',
  '0/',
  'urn:uuid:',
  '?',
];
const REPEATED = [
  ...'a1:/.-@%#?=+{} \n(\\[|',
  ...[
    'a.',
    'a-',
    '-a',
    'a@',
    '::',
    ':@',
    '1:',
    '1.',
    '255.',
    '%41',
    '{a}',
    '{a,',
    '~0',
    '~',
    'AAAA',
    'AAAA\n',
    '1Y',
    '1D',
    'T',
    't',
    '\u00a1',
    '\u00a1-',
    '\u00a1.',
    '(?<a>',
    'a{1,2}',
    'a.bb/@',
    '😀',
  ],
];
const ENDS = ['', '!', '@'];

function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

describe('addBoundedFormats', () => {
  it('knows every format of ajv-formats', () => {
    const ajv = new Ajv2020({ strict: false, logger: false });
    addFormats.default(ajv);

    expect(Object.keys(ajv.formats).toSorted()).toEqual([...FORMAT_NAMES].toSorted());
  });

  it.each(FORMAT_NAMES)('%s takes time in proportion to the text, whatever stands in it', (format) => {
    const steps = new StepBudget();
    const ajv = new Ajv2020({ strict: false, logger: false, meta: false, validateSchema: false });
    addBoundedFormats(ajv, steps);
    const validate = ajv.compile({ format });
    const check = (text: string) => {
      steps.reset();
      validate(text);
    };
    for (const beginning of BEGINNINGS) {
      for (const repeated of REPEATED) {
        for (const end of ENDS) {
          const text = (chars: number) => `${beginning}${repeated.repeat(Math.ceil(chars / repeated.length))}${end}`;
          const largeMs = cpuMsOf(() => check(text(LARGE_CHARS)));
          if (largeMs < MIN_CPU_MS) continue;
          const smallMs = cpuMsOf(() => check(text(SMALL_CHARS)));
          // Both conditions: a garbage collection multiplies a short time, but hardly a long one.
          const isQuadratic = largeMs > MAX_GROWTH * smallMs;
          expect(isQuadratic, `${JSON.stringify([beginning, repeated, end])}: ${smallMs} ms, ${largeMs} ms`).toBe(false);
        }
      }
    }
  });
});

describe('isUrl', () => {
  it('accepts what the expression of ajv-formats accepts', () => {
    const format = addFormats.default.get('url');
    if (!(format instanceof RegExp)) throw new Error('the format url is no expression any more');
    const parts = fc.constantFrom(
      'a',
      'a.bb',
      'a-b',
      '@',
      'x:y@',
      ':',
      ':80',
      ':8',
      '1.2.3.4',
      '10.0.0.1',
      '192.168.1.1',
      '/',
      '//',
      '/@',
      '.',
      '-',
      'é.ää',
      ' ',
      '?',
      '#',
      'a.bb/',
    );
    const text = fc
      .tuple(fc.constantFrom('http://', 'https://', 'FTP://', 'http:/', ''), fc.array(parts, { maxLength: 6 }))
      .map(([scheme, rest]) => scheme + rest.join(''));

    fc.assert(
      fc.property(text, (some) => isUrl(some) === format.test(some)),
      {
        numRuns: 2_000,
        examples: [['http://a.bb'], ['http://x:y@a.bb:80/@c'], ['http://@a.bb'], ['http://x@@a.bb'], ['http://x@/@a.bb'], ['http://10.0.0.1@a.bb/ ']],
      },
    );
  });
});
