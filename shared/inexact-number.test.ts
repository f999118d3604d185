import { expect, it } from 'vitest';
import { hasInexactNumber, inexactNumber, quoteInexactNumbers } from './inexact-number.ts';

it.each([
  ['{"id":9007199254740993}', '9007199254740993'],
  ['[1,-9007199254740993]', '-9007199254740993'],
  [`{"id":${'9'.repeat(400)}}`, `${'9'.repeat(310)}…`],
  [`{"a":"${'\\\\x'.repeat(350_000)}","id":9007199254740993}`, '9007199254740993'],
  ['{"a":"\\\\","id":9007199254740993}', '9007199254740993'],
  ['{"id":9007199254740992,"more":[9007199254740991]}', null],
  ['{"id":"9007199254740993","\\"9007199254740993":1}', null],
  ['100000000000000000000', null],
  ['{"id":123456789012345680000}', null],
  ['[9007199254740993.5, 9007199254740993e3, 0.12345678901234567]', null],
  ['{"id":1000000000000000000000001}', '1000000000000000000000001'],
  ['[1000000000000000000000000, 618970019642690200000000000, -6189700196426902.00E+11]', null],
  ['{"size":1e400}', '1e400'],
  ['[-1.5E+309]', '-1.5E+309'],
  [`[${'9'.repeat(309)}.5]`, `${'9'.repeat(309)}.…`],
  ['[1e308, 1e-400, "1e400"]', null],
  ['{"id":9007199254740993.0}', '9007199254740993.0'],
  ['{"id":-9007199254740993e0}', '-9007199254740993e0'],
  ['{"id":9.007199254740993E+15}', '9.007199254740993E+15'],
  ['{"id":90071992547409930.0e-1}', '90071992547409930.0e-1'],
  ['[9007199254740992.0, 9007199254740992e0, 1.2345678901234566e+25, 1.23456789012345661e+25, 0.0000000000000000, 123456789012345678901.5e-3]', null],
])('of %.40s is %s', (json, found) => {
  expect(inexactNumber(json)?.number ?? null).toBe(found);
});

it.each([
  ['1e400', ''],
  ['{"data":1e400}', '/data'],
  ['{"a":{"b":[1,{"c":[]},"9007199254740993"]},"d":[[0,1],[2,{"e/f~g":{"":9007199254740993}}]]}', '/d/1/1/e~1f~0g/'],
  ['{"\\u0061\\"}{,:[":{"a:b,[":1},"x":[{},[],{"y":"]}"},9007199254740993.0]}', '/x/3'],
  ['{"a":1,"b":2 , "c" : [ 1 , 2 , -1e999 ] }', '/c/2'],
])('of %.40s is at %s', (json, path) => {
  expect(inexactNumber(json)).toMatchObject({ path });
});

it.each([
  ['whose zeros are in front', `0.${'0'.repeat(400_000)}1e400001`],
  ['whose zeros are at the end', `1${'0'.repeat(400_000)}e-400000`],
  ['of many digits that are a fraction', `${'9'.repeat(400)}e-390`],
])('is no small number %s', (_case, number) => {
  expect(inexactNumber(`[${number}]`)).toBeNull();
});

it('is found in linear time', () => {
  const json = `[${'{"a":[1,2,"x"]},'.repeat(60_000)}1e400]`;

  const before = process.cpuUsage();
  expect(inexactNumber(json)).toEqual({ number: '1e400', path: '/60000' });
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(4_000);
});

it('is found beside a string of four million escapes', () => {
  const json = `{"a":"${'\\n'.repeat(4_000_000)}\\"","b":9007199254740993}`;

  expect(inexactNumber(json)).toEqual({ number: '9007199254740993', path: '/b' });
  expect(hasInexactNumber(json)).toBe(true);
  expect(quoteInexactNumbers(json)).toBe(json.replace(/\d+/, '"$&"'));
});

it('is looked for in linear time, too, where a string has no end', () => {
  expect(hasInexactNumber(`{"a":1234567890123456,"b":"${'\\"'.repeat(1_000_000)}`)).toBe(false);
});

it('is none of the spellings of a double', () => {
  const doubles = Array.from({ length: 970 }, (_, index) => String(2 ** (index + 54)));
  const spellings = doubles.flatMap((text) => [
    text,
    text.replace('e+', 'E+'),
    text.replace('e+', 'e'),
    text.replace('e+', 'E'),
    `-${text.replace('e+', '0E0')}`,
  ]);

  expect(spellings.filter((number) => inexactNumber(number) !== null)).toEqual([]);
});

it.each([
  ['{"id":9007199254740993,"ids":[-9007199254740993, 1]}', '{"id":"9007199254740993","ids":["-9007199254740993", 1]}'],
  ['{"9007199254740993":"a \\" 9007199254740993","b":9007199254740993e3}', '{"9007199254740993":"a \\" 9007199254740993","b":9007199254740993e3}'],
  ['{"id":9007199254740992}', '{"id":9007199254740992}'],
  ['[12345678901234567.00,9007199254740993e0,6.189700196426902E26]', '[12345678901234567.00,9007199254740993e0,6.189700196426902E26]'],
  ['[1e400,-1.5E+309,"1e400",1e-400]', '["1e400","-1.5E+309","1e400",1e-400]'],
  [`[${'9'.repeat(309)}.5]`, `["${'9'.repeat(309)}.5"]`],
])('%.60s is kept as %.60s', (json, kept) => {
  expect(quoteInexactNumbers(json)).toBe(kept);
});
