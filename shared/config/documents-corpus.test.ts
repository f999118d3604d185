import { describe, expect, it } from 'vitest';
import { glossary } from '../contracts/documents/glossary.ts';
import { macro } from '../contracts/documents/macro.ts';
import { policy } from '../contracts/documents/policy.ts';
import { prompt } from '../contracts/documents/prompt.ts';
import { variableSet } from '../contracts/documents/variable-set.ts';
import { checkRoutine } from './check-routine.ts';
import { type Checked, check, formatPath, sentenceOf } from './problems.ts';
import { readCorpus } from './read-corpus.ts';

type Read = (value: unknown) => Checked<unknown>;

const readers = new Map<string | null, Read>([
  ['glossary', (value) => check(glossary, value)],
  ['macro', (value) => check(macro, value)],
  ['policy', (value) => check(policy, value)],
  ['prompt', (value) => check(prompt, value)],
  ['routine', checkRoutine],
  ['variable-set', (value) => check(variableSet, value)],
]);
const corpus = readCorpus('documents');

function readerOf(kind: string | null): Read {
  const reader = readers.get(kind);
  if (reader === undefined) throw new Error(`no kind of document is called ${kind}`);
  return reader;
}

/** Phrases of zod and Ajv, where ours are "a list", "true or false", "not". */
const FOREIGN = /^[A-Z]|\bNOT\b|must be (?:array|boolean|integer|number|object|string)\b|schema in anyOf/;

describe('documents', () => {
  for (const { name, about, kind, document, errors } of corpus.filter((example) => example.errors.length > 0)) {
    it(`refuse ${about} (${name})`, () => {
      const { problems } = readerOf(kind)(document);

      expect(problems.map(({ path }) => formatPath(path)).sort()).toEqual(errors);
      for (const { expected } of problems) expect(expected).not.toMatch(FOREIGN);
    });
  }

  for (const { name, about, kind, document } of corpus.filter((example) => example.errors.length === 0)) {
    it(`take ${about} (${name})`, () => {
      expect(readerOf(kind)(document).problems).toEqual([]);
    });
  }

  it('have an example of every kind', () => {
    expect(new Set(corpus.map(({ kind }) => kind))).toEqual(new Set(readers.keys()));
  });
});

describe('routine', () => {
  const autonomous = { id: 'triage', version: 1, kind: 'autonomous', instructions: 'Sum it up' };

  it('names the misplaced step, and why', () => {
    const steps = ['a', 'b', 'c', 'd'].map((id) => ({ id, kind: id === 'b' ? 'fork' : 'chat', ...(id === 'b' ? {} : { chat_state: 'Hello' }) }));
    const transitions = [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'a', when: 'something was unclear' },
      { from: 'c', to: 'c' },
    ];

    const { problems } = checkRoutine({ id: 'r', version: 1, conditions: ['always'], steps, transitions });

    expect(problems.map(sentenceOf)).toEqual([
      'steps[1]: must have at least 2 transitions with a condition, because it is a fork; "b" has 1',
      'steps[0]: never ends: no way leads from "a" to end or to a step without transitions',
      'steps[1]: never ends: no way leads from "b" to end or to a step without transitions',
      'steps[2]: can\'t be reached from root: no transition leads to "c"',
      'steps[3]: can\'t be reached from root: no transition leads to "d"',
    ]);
  });

  it('normalises the hosts of an allow-list for comparison', () => {
    const list = ['Hooks.Acme.Example', '.Internal.Acme.Example.', 'bücher.example', '.bücher.example', '[2001:DB8::7]'];

    const read = checkRoutine({ ...autonomous, callback_url_allowlist: list }).value;

    expect(read).toMatchObject({
      callback_url_allowlist: ['hooks.acme.example', '.internal.acme.example', 'xn--bcher-kva.example', '.xn--bcher-kva.example', '[2001:db8::7]'],
    });
  });

  it('fills in the defaults of an autonomous routine', () => {
    expect(checkRoutine(autonomous).value).toMatchObject({
      kind: 'autonomous',
      enabled: true,
      conditions: [],
      steps: [],
      input_schema: { type: 'object' },
      output_schema: { type: 'object' },
      callback_url_allowlist: null,
      timeout_seconds: null,
      max_iterations: null,
      autonomous: { webhook: null, match: {} },
    });
  });

  it('is conversational by default', () => {
    const steps = [{ id: 'a', kind: 'chat', chat_state: 'Hello' }];

    expect(checkRoutine({ id: 'r', version: 1, conditions: ['always'], steps }).value?.kind).toBe('conversational');
  });
});

describe('policy', () => {
  it('fills in every default', () => {
    expect(check(policy, { id: 'p', version: 1, condition: 'always' }).value).toEqual({
      id: 'p',
      version: 1,
      schema_version: null,
      title: '',
      description: '',
      labels: [],
      metadata: {},
      created_at: null,
      condition: 'always',
      action: null,
      tools: [],
      criticality: 'medium',
      continuous: null,
      track: true,
      priority: 0,
      enabled: true,
      routines: [],
      depends_on: [],
      disambiguates: [],
    });
  });
});
