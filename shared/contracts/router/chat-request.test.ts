import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chatRequest } from './chat-request.ts';
import { offendingField } from './offending-field.ts';

const corpus = new URL('../../../tests/corpus/router/', import.meta.url);

/** All cases of a corpus folder, with their files. */
function casesOf<Case extends z.ZodObject>(folder: 'valid' | 'invalid', schema: Case) {
  const files = readdirSync(new URL(`${folder}/`, corpus)).sort();
  return files.flatMap((file) => {
    const cases = z
      .array(schema)
      .min(1)
      .parse(JSON.parse(readFileSync(new URL(`${folder}/${file}`, corpus), 'utf8')));
    return cases.map((found) => ({ file, ...found }));
  });
}

const invalid = casesOf('invalid', z.strictObject({ case: z.string(), param: z.string(), request: z.unknown() }));
const valid = casesOf('valid', z.strictObject({ case: z.string(), request: z.record(z.string(), z.unknown()) }));

describe('chatRequest', () => {
  it.each(invalid)('refuses and names the field, $file: $case', ({ param, request }) => {
    const parsed = chatRequest.safeParse(request);

    expect(parsed.success).toBe(false);
    expect(parsed.error && offendingField(parsed.error).param).toBe(param);
  });

  it.each(valid)('accepts and changes nothing, $file: $case', ({ request }) => {
    expect(chatRequest.parse(request)).toEqual(request);
  });

  it('has a corpus for every field of the contract', () => {
    const named = new Set(valid.flatMap(({ request }) => Object.keys(request)));

    expect([...named]).toEqual(expect.arrayContaining(Object.keys(chatRequest.shape)));
  });
});
