import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { routine } from '../contracts/documents/routine.ts';
import { checkSchemas } from './check-schemas.ts';
import { folderSource } from './folder-source.ts';
import { loadBundle } from './load-bundle.ts';
import { sentenceOf } from './problems.ts';

const autonomous = { id: 'triage', version: 1, kind: 'autonomous', instructions: 'Sum it up' };
const conversational = { id: 'talk', version: 1, conditions: ['always'], steps: [{ id: 'talk', kind: 'chat', chat_state: 'Hello' }] };

/** Problems of documents without errors of their own. */
function problemsOf(...documents: object[]): string[] {
  const lines: string[] = [];
  const routines = documents.map((document, index) => ({ file: `${index}.yaml`, document: routine.parse(document) }));
  const named = { routines, prompts: [], policies: [], glossaries: [], macros: [], variable_sets: [] };
  checkSchemas(named, (file, path, message) => lines.push(`${file}: ${sentenceOf({ path, expected: message })}`));
  return lines;
}

describe('checkSchemas', () => {
  it('names the place of each error of a schema, in each routine', () => {
    const harmful = { type: 'object', properties: { sku: { type: 'string', pattern: '^(?!X)\\w+$' } } };
    const otherDraft = { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object' };

    const lines = problemsOf({ ...autonomous, input_schema: harmful }, { ...autonomous, input_schema: otherDraft, output_schema: harmful });

    expect(lines).toEqual([
      expect.stringMatching(/^0\.yaml: input_schema\.properties\.sku\.pattern: must not look ahead or behind/),
      '1.yaml: input_schema.$schema: must be draft 2020-12 or draft-07',
      expect.stringMatching(/^1\.yaml: output_schema\.properties\.sku\.pattern: must not look ahead or behind/),
    ]);
  });

  it('finds errors that only compiling shows', () => {
    const schema = { type: 'object', properties: { a: { $ref: '#nowhere' } } };

    expect(problemsOf({ ...autonomous, output_schema: schema })).toEqual([expect.stringMatching(/^0\.yaml: output_schema: must .*#nowhere/)]);
  });

  it('finds a schema that is nested too deeply', () => {
    let schema: Record<string, unknown> = {};
    for (let level = 0; level < 200; level += 1) schema = { not: schema };

    expect(problemsOf({ ...autonomous, input_schema: schema })).toEqual(['0.yaml: input_schema: must not be nested deeper than 128 levels']);
  });

  it('finds nothing in valid schemas, nor in routines without any', () => {
    const schema = { type: 'object', properties: { sku: { pattern: '^[A-Z]+(-[0-9]+)*$' } }, required: ['sku'], unevaluatedProperties: false };

    expect(problemsOf({ ...autonomous, input_schema: schema, output_schema: schema }, autonomous, conversational)).toEqual([]);
  });

  it('prevents the start of an agent with such a schema', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'switchyard-schemas-'));
    const context = { system_prompt: { id: 'acme', version: 1 }, language: 'match_user', routines: [{ id: 'triage', version: 1 }] };
    const agentConfig = {
      runtime: { api_key: '${KEY}' },
      platform: { public_key: '${KEY}', secret_key: '${KEY}' },
      llms: { default: 'openai/gpt-5', api_key: '${KEY}' },
      context,
    };
    const files = {
      'manifest.json': { id: 'acme', name: 'Acme', version: '1', agent_config: agentConfig },
      'prompts/acme.json': { id: 'acme', version: 1, text: 'You help.' },
      'routines/triage.json': { ...autonomous, output_schema: { type: 'object', patternProperties: { '(a)\\1': true } } },
    };
    try {
      for (const name of ['prompts', 'routines']) await mkdir(join(folder, name));
      for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(content));
      const loading = loadBundle({ manifestPath: join(folder, 'manifest.json'), documents: folderSource(folder), environment: { KEY: 'secret' } });

      await expect(loading).rejects.toThrow(/routines\/triage\.json: output_schema\.patternProperties\."\(a\)\\\\1": must not refer back/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
