import { expect, it } from 'vitest';
import type { Database } from '../database.ts';

/** Values keep their type on every driver. */
export function typeCases(name: string, database: () => Database): void {
  const echo = async (type: string, value: unknown): Promise<unknown> => {
    const { rows } = await database().query<{ value: unknown }>(`select $1::${type} as value`, [value]);
    return rows[0]?.value;
  };

  it(`${name}: refuses to round a bigint that no number can hold, and works on`, async () => {
    await expect(database().query('select 9007199254740993::bigint as value')).rejects.toThrow(RangeError);
    await expect(database().query('select array[1, 9007199254740993]::bigint[] as value')).rejects.toThrow(RangeError);
    expect(await echo('int', 1)).toBe(1);
  });

  it(`${name}: refuses an object that can't be written as JSON, and the named statement stays usable`, async () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const statement = { name: 'conformance-json', text: 'select $1::json as value' };

    await expect(database().query(statement, [circular])).rejects.toThrow(TypeError);
    expect((await database().query(statement, [{ a: 1 }])).rows).toEqual([{ value: { a: 1 } }]);
  });

  const instant = new Date('2024-02-29T12:34:56.789Z');
  const bytes = Buffer.from([0, 1, 127, 128, 255]);
  const texts = ['plain', '', 'with "quotes", {braces} and \\', 'Zürich 🦊', 'null', null];
  const cases: [type: string, value: unknown, back?: unknown][] = [
    ['int', 2_147_483_647],
    ['bigint', 9_007_199_254_740_991],
    ['bigint', -9_007_199_254_740_991n, -9_007_199_254_740_991],
    ['double precision', 0.1],
    ['numeric', '0.123456789012345678901'],
    ['bool', true],
    ['bool', false],
    ['text', 'Zürich 🦊'],
    ['text', ''],
    ['timestamptz', instant],
    ['timestamptz', '2024-02-29T13:34:56.789+01:00', instant],
    ['bytea', bytes],
    ['text[]', texts],
    ['text[]', []],
    ['int[]', [1, null, -3]],
    ['bigint[]', [1, null, 9_007_199_254_740_991]],
    ['bool[]', [true, false, null]],
    ['timestamptz[]', [instant, null]],
    ['json', { a: [1, 'two', null], b: { c: true } }],
    ['json', '[1,2]', [1, 2]],
    ['jsonb', { a: 1 }],
    ['text', null],
    ['bigint', null],
    ['json', null],
    ['text', undefined, null],
  ];
  for (const [type, value, back = value] of cases) {
    const label = typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? 'undefined');
    it(`${name}: sends and returns ${type} ${label.slice(0, 60)}`, async () => {
      expect(await echo(type, value)).toEqual(back);
    });
  }

  it(`${name}: keeps NUL and lone surrogates in json, as JSON.stringify escapes them`, async () => {
    const body = { text: 'a\u0000b\ud800c\udfff', '\u0000key': '🦊' };
    await database().query('create table json_bodies (body json not null)');

    await database().query('insert into json_bodies select body::json from unnest($1::text[]) as i (body)', [[JSON.stringify(body)]]);

    const { rows } = await database().query<{ body: unknown; raw: string }>('select body, body::text as raw from json_bodies');
    expect(rows).toEqual([{ body, raw: JSON.stringify(body) }]);
  });
}
