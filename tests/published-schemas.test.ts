import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { readCorpus } from '../shared/config/read-corpus.ts';
import { publishedSchemas } from '../shared/contracts/published-schemas.ts';

const schemas = publishedSchemas();

const validators = new Map([...schemas].map(([path, schema]) => [path, compile(schema)]));

function compile(schema: object): (document: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  return ajv.compile(schema);
}

function validatorOf(path: string): (document: unknown) => boolean {
  const validator = validators.get(path);
  if (validator === undefined) throw new Error(`there is no schemas/${path}`);
  return validator;
}

describe.each([...schemas.keys()])('schemas/%s', (path) => {
  it('is what the code says: npx vitest run published-schemas --update writes it', async () => {
    await expect(`${JSON.stringify(schemas.get(path), null, 2)}\n`).toMatchFileSnapshot(`../schemas/${path}`);
  });
});

/** Rules that only the code checks: between fields, and of JSON Schemas in documents. */
const ONLY_IN_CODE = new Set(
  `
  mcps-id-twice over-and-over-all-routines priority-over-false priority-over-nothing repeated-reference traces-key-without-url webhook-name-twice
  allow-list-empty allow-list-foreign-path allow-list-path allow-list-port allow-list-scheme allow-list-user allow-list-wildcard autonomous-steps
  fork-with-one-condition glossary-term-twice initial-step-against-root initial-step-nowhere input-schema-of-list macro-of-both macro-of-neither
  policy-disambiguates-one policy-without-condition-and-action routine-without-end schema-draft-07 schema-keywords schema-reference-to-nothing
  schema-remote-reference step-called-end step-id-twice step-out-of-reach transition-from-nowhere transition-id-twice transition-to-nowhere
  transition-to-root trap two-ways-without-condition variable-default-of-other-type variable-name-twice
`
    .trim()
    .split(/\s+/)
    .map((name) => `invalid-${name}`),
);

describe.each([
  ['manifest', 'manifest/6.1.5.json'],
  ['documents', null],
])('examples of %s', (folder, path) => {
  it.each(readCorpus(folder))('$name: the published schema agrees with the code where it can', ({ kind, document, errors, name }) => {
    const isValid = validatorOf(path ?? `documents/${kind}.json`);
    expect(isValid(document)).toBe(errors.length === 0 || ONLY_IN_CODE.has(name));
  });
});

describe('schemas/events.json', () => {
  const isEvent = validatorOf('events.json');
  const at = { offset: 3, created_at: '2026-01-31T12:00:00.000Z' };

  it('takes each kind, with and without its name, and fields that it does not know', () => {
    const contents = [
      { kind: 'user_message', text: 'Hello' },
      { kind: 'status', status: 'processing', stage: 'tools' },
      { kind: 'tool', tool_calls: [{ tool_id: 'crm:find', arguments: {}, result: { data: [1], metadata: {} } }] },
      { text: 'Hello' },
      { kind: 'preamble', text: 'One moment', later: true },
    ];
    for (const content of contents) expect([content, isEvent({ ...at, ...content })]).toEqual([content, true]);
  });

  it('refuses other statuses, an offset below 0, and events without their fields', () => {
    const contents = [{ kind: 'status', status: 'asleep' }, { kind: 'tool' }, { kind: 'user_message' }, { kind: 'preamble', text: 'x', offset: -1 }, {}];
    for (const content of contents) expect([content, isEvent({ ...at, ...content })]).toEqual([content, false]);
  });
});
