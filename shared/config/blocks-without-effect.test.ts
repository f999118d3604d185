import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Policy, policy } from '../contracts/documents/policy.ts';
import { type Prompt, prompt } from '../contracts/documents/prompt.ts';
import { type Routine, routine } from '../contracts/documents/routine.ts';
import { manifest } from '../contracts/manifest/manifest.ts';
import { blocksWithoutEffect, manifestBlocks } from './blocks-without-effect.ts';

/** 80 columns of a terminal, less the prefix of each line at the start. */
const LINE_CHARS = 80 - '  No effect yet: '.length;

type JsonSchema = Record<string, unknown>;
const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null;

/** Whether a schema has a field, looking through nullables and alternatives. */
function hasField(schema: unknown, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true;
  if (!isSchema(schema)) return false;
  const { properties, anyOf, oneOf } = schema;
  if (isSchema(properties) && Object.hasOwn(properties, name)) return hasField(properties[name], rest);
  return [anyOf, oneOf].some((options) => Array.isArray(options) && options.some((option) => hasField(option, [name, ...rest])));
}

const schemaOf = (type: z.ZodType) => z.toJSONSchema(type, { io: 'input', unrepresentable: 'any' });
const autonomous = (id: string, more: object = {}): Routine => routine.parse({ id, version: 1, kind: 'autonomous', instructions: 'Do it.', ...more });

describe('each block that is listed', () => {
  it.each(manifestBlocks)('is a place of the manifest: $path', ({ path, missing }) => {
    expect(hasField(schemaOf(manifest), path.split('.'))).toBe(true);
    expect(`${path} (${missing})`.length).toBeLessThanOrEqual(LINE_CHARS);
  });

  it('would not be one with an unknown field', () => {
    expect(hasField(schemaOf(manifest), ['agent_config', 'context', 'policy'])).toBe(false);
  });
});

describe('what a start lists', () => {
  it('is nothing for absent, empty, false or null blocks', () => {
    const context = { policies: [], preamble: null, relationships: {} };

    expect(blocksWithoutEffect({ endpoint: false, agent_config: { context } }, { prompts: [], routines: [autonomous('triage')], policies: [] })).toEqual([]);
    expect(blocksWithoutEffect(null, { prompts: [], routines: [], policies: [] })).toEqual([]);
  });

  it('is one line for each prompt that names the customer, whose name is given as data', () => {
    const named = (id: string, text: string): Prompt => prompt.parse({ id, version: 1, text });
    const prompts = [named('greet', 'Call them {{ customer.name }}.'), named('plain', 'You are {{agent.name}}, and {{customer.names}} stays.')];

    expect(blocksWithoutEffect({}, { prompts, routines: [], policies: [] })).toEqual(['prompt greet: {{customer.name}} (models get it as data)']);
  });

  it('is one line for each conversational routine that lists tools: its steps and policies name those that a turn calls', () => {
    const talk = (id: string, tools: string[]) =>
      routine.parse({ id, version: 1, conditions: ['always'], tools, steps: [{ kind: 'chat', id: 'a', chat_state: 'Hello' }] });
    const routines = [talk('complaint', ['crm:find']), talk('plain', []), autonomous('triage', { tools: ['crm:find'] })];

    expect(blocksWithoutEffect({}, { prompts: [], routines, policies: [] })).toEqual(['routine complaint: tools (name them in its steps or policies)']);
  });

  it('is one line for each policy of an autonomous routine that runs do not follow, or that has tools', () => {
    const context = { preamble: { examples: ['One moment.'] } };
    const given = { endpoint: true, agent_config: { runtime: { policy_batch_size: 5 }, context } };
    const rule = (id: string, more: object): Policy => policy.parse({ id, version: 1, condition: 'it is urgent', ...more });
    const policies = [
      rule('plain', { action: 'Be quick' }),
      rule('observed', {}),
      rule('asking', { action: 'Ask', disambiguates: ['policy:plain', 'policy:observed'] }),
      rule('calling', { action: 'Call', tools: ['crm:find'], routines: ['triage'] }),
      rule('elsewhere', { tools: ['crm:find'] }),
    ];
    const steps = [{ kind: 'chat', id: 'a', chat_state: 'Hello' }];
    const talk = routine.parse({ id: 'talk', version: 1, conditions: ['always'], steps });

    const triage = autonomous('triage', { policies: ['plain', 'observed', 'asking'], steps });

    expect(blocksWithoutEffect(given, { prompts: [], routines: [talk, triage], policies })).toEqual([
      'routine triage: policy observed (a run follows actions alone)',
      'routine triage: policy asking (a run follows actions alone)',
      'routine triage: policy calling, tools (name them in the routine)',
    ]);
  });
});
