import { readFileSync } from 'node:fs';
import { z } from 'zod';

/**
 * A row of a table of the contract: the field is set in the object at `at` of the table's base. `within`: the path of the invalid value below the field; `absent`:
 * the field is left out.
 */
const row = z.strictObject({
  field: z.string(),
  /** Fields beside it. */
  with: z.record(z.string(), z.unknown()).default({}),
  valid: z.array(z.unknown()).min(1),
  invalid: z.array(z.union([z.strictObject({ value: z.unknown(), within: z.string().default('') }), z.strictObject({ absent: z.literal(true) })])).min(1),
});
const table = z.strictObject({
  table: z.string(),
  at: z.array(z.union([z.string(), z.number()])),
  base: z.record(z.string(), z.unknown()),
  rows: z.array(row).min(1),
});
/** The tables of a file of the corpus. */
function tablesIn(file: string) {
  return z
    .array(table)
    .min(1)
    .parse(JSON.parse(readFileSync(new URL(`../corpus/router/tables/${file}`, import.meta.url), 'utf8')));
}

export const requestTables = tablesIn('request-tables.json');
export const embeddingTables = tablesIn('embedding-tables.json');
export const responsesTables = tablesIn('responses-tables.json');
type Table = (typeof requestTables)[number];

interface Case {
  table: string;
  field: string;
  /** JSON of the field, for titles. */
  shown: string;
  request: unknown;
}

export function validCasesOf(tables: readonly Table[]): Case[] {
  return tables.flatMap((of) =>
    of.rows.flatMap((given) =>
      given.valid.map((value) => ({ ...namesOf(of, given, value), request: requestWith(of, { ...given.with, [given.field]: value }) })),
    ),
  );
}

/** `param`: the path of the invalid field. */
export function invalidCasesOf(tables: readonly Table[]): (Case & { param: string })[] {
  return tables.flatMap((of) =>
    of.rows.flatMap((given) =>
      given.invalid.map((bad) => {
        const isAbsent = 'absent' in bad;
        return {
          ...namesOf(of, given, isAbsent ? 'absent' : bad.value),
          request: requestWith(of, { ...given.with, [given.field]: isAbsent ? undefined : bad.value }),
          param: `${pathOf([...of.at, given.field])}${isAbsent ? '' : bad.within}`,
        };
      }),
    ),
  );
}

function namesOf({ table: name }: Table, { field }: Table['rows'][number], value: unknown) {
  return { table: name, field, shown: JSON.stringify(value).slice(0, 60) };
}

/** As received from the network: without fields that are undefined. */
function requestWith({ base, at }: Table, fields: Record<string, unknown>): unknown {
  const request: unknown = structuredClone(base);
  const target = at.reduce((value, step) => Reflect.get(Object(value), step), request);
  Object.assign(Object(target), fields);
  return JSON.parse(JSON.stringify(request));
}

function pathOf(steps: readonly (string | number)[]): string {
  return steps.reduce<string>((path, step) => (typeof step === 'number' ? `${path}[${step}]` : path === '' ? step : `${path}.${step}`), '');
}
