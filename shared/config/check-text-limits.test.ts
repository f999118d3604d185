import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { macro } from '../contracts/documents/macro.ts';
import { routine } from '../contracts/documents/routine.ts';
import { variableSet } from '../contracts/documents/variable-set.ts';
import { checkTextLimits } from './check-text-limits.ts';
import { folderSource } from './folder-source.ts';
import { loadBundle } from './load-bundle.ts';
import { outlineOf } from './manifest-outline.ts';
import type { NamedDocuments } from './named-documents.ts';

interface Given {
  routine?: object;
  /** By id: a text, or the fields of a macro. */
  macros?: Record<string, string | object>;
  /** Of the one variable. */
  given?: unknown;
  greeting?: string;
}

function problemsOf({ routine: fields, macros = {}, given = null, greeting }: Given): string[] {
  const outline = outlineOf({ agent_config: { context: { greeting } } });
  if (outline === null) throw new TypeError('no context');
  const steps = [{ kind: 'chat', id: 'a', chat_state: 'x' }];
  const documents: NamedDocuments = {
    ...{ prompts: [], policies: [], glossaries: [] },
    routines: fields === undefined ? [] : [{ file: 'r', document: routine.parse({ id: 'r', version: 1, conditions: ['c'], steps, ...fields }) }],
    macros: Object.entries(macros).map(([id, one]) => ({
      file: id,
      document: macro.parse({ id, version: 1, ...(typeof one === 'string' ? { value: one } : one) }),
    })),
    variable_sets: [{ file: 'v', document: variableSet.parse({ id: 'v', version: 1, variables: [{ name: 'plan', default: given }] }) }],
  };
  const problems: string[] = [];
  checkTextLimits(outline, documents, 'manifest', (file, path, message) => problems.push(`${file} ${path.join('.')}: ${message}`));
  return problems;
}

const chat = (id: string, text: string) => ({ kind: 'chat', id, chat_state: text });
const x = (count: number) => 'x'.repeat(count);
const together = 'must not have more than 200000 characters together, with their macros: they have';
const single = 'must not be longer than 32000 characters with its macros: it has';

describe('rule 48: texts that are too long are refused at the start', () => {
  it.each<[string, Given, string[]]>([
    ['a condition of a routine', { routine: { conditions: ['c', x(2_001)] } }, ['r conditions.1: must not be longer than 2000 characters']],
    [
      'a condition of a transition',
      { routine: { transitions: [{ from: 'a', to: 'end', when: x(2_001) }] } },
      ['r transitions.0.when: must not be longer than 2000 characters'],
    ],
    ['a chat step', { routine: { steps: [chat('a', x(32_001))] } }, [`r steps.0.chat_state: ${single} 32001`]],
    [
      'the purpose of a tool step',
      { routine: { steps: [{ kind: 'tool', id: 'a', tool_state: ['s:t'], tool_instruction: x(32_001) }] } },
      [`r steps.0.tool_instruction: ${single} 32001`],
    ],
    [
      'the steps of a routine together',
      {
        routine: {
          steps: Array.from({ length: 7 }, (_, index) => chat(`s${index}`, x(30_000))),
          transitions: Array.from({ length: 6 }, (_, index) => ({ from: `s${index}`, to: `s${index + 1}` })),
        },
      },
      [`r steps: ${together} 210000`],
    ],
    ['a macro that is brought in', { routine: { steps: [chat('a', '${m}')] }, macros: { m: x(32_001) } }, [`r steps.0.chat_state: ${single} 32001`]],
    [
      'macros that would not fit in memory',
      { routine: { steps: [chat('a', '${m}'.repeat(100_000))] }, macros: { m: x(1_000_000) } },
      [`r steps.0.chat_state: ${single} 100000000000`, `r steps: ${together} 100000000000`],
    ],
    [
      'a macro of a variable, by its fallback',
      { routine: { steps: [chat('a', '${m}')] }, macros: { m: { variable: { set: 'v', name: 'plan', fallback: x(32_001) } } } },
      [`r steps.0.chat_state: ${single} 32001`],
    ],
    [
      'a macro of a variable, by its default',
      { routine: { steps: [chat('a', '${m}')] }, macros: { m: { variable: { set: 'v', name: 'plan' } } }, given: x(32_001) },
      [`r steps.0.chat_state: ${single} 32001`],
    ],
    ['a greeting', { greeting: '${m}!', macros: { m: x(32_000) } }, [`manifest agent_config.context.greeting: ${single} 32001`]],
  ])('%s', (_, given, expected) => {
    expect(problemsOf(given)).toEqual(expected);
  });

  it('by the loading of an agent, which names the file and the place', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'switchyard-texts-'));
    const v1 = (id: string) => ({ id, version: 1 });
    const files = {
      'manifest.yaml': {
        ...{ id: 'acme', name: 'Acme', version: '1' },
        agent_config: {
          runtime: { api_key: '${KEY}' },
          platform: { public_key: '${KEY}', secret_key: '${KEY}' },
          llms: { default: 'some/model', api_key: '${KEY}' },
          context: { system_prompt: v1('acme'), language: 'match_user', routines: [v1('r')], macros: [v1('m')] },
        },
      },
      'documents/prompts/acme.json': { ...v1('acme'), text: 'You help.' },
      'documents/routines/r.json': { ...v1('r'), conditions: ['c'], steps: [chat('a', '${m}')] },
      'documents/macros/m.json': { ...v1('m'), value: x(32_001) },
    };
    for (const [name, value] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), JSON.stringify(value));
    }
    const loaded = loadBundle({
      manifestPath: join(folder, 'manifest.yaml'),
      documents: folderSource(join(folder, 'documents')),
      environment: { KEY: 'sk-0123456789' },
    });

    await expect(loaded).rejects.toThrow(`documents/routines/r.json: steps[0].chat_state: ${single} 32001`);
    await rm(folder, { recursive: true });
  });

  it('the longest are accepted, and so are macros that name each other, or themselves', () => {
    expect(problemsOf({ routine: { conditions: [x(2_000)], steps: [chat('a', x(32_000))] }, greeting: x(32_000) })).toEqual([]);
    expect(problemsOf({ routine: { steps: [chat('a', '${a} ${b} $${c}')] }, macros: { a: '${b}${b}', b: '${a}${b}' } })).toEqual([]);
  });
});
