import { expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { bundleBody } from '#shared/config/bundle-body.ts';
import type { RenderDeps } from './render-deps.ts';
import { runCall } from './run-call.ts';

const v1 = { version: 1 };
const TERMS = 51;

it('rule 131: a run’s prompt has of many terms those that its input shares words with', async () => {
  const { system } = await promptOf('run@2');
  expect(system.match(/^- term\d+/gm)).toEqual(['- term7']);
});

it('rules 132, 133: has the steps by the names of functions, and the policies that hold', async () => {
  const { system, functions } = await promptOf('run@2');

  expect(system).toContain('\n1. Call crm__find.\n   - the steps are done\n');
  expect(system).toContain('\n- Always: Be brief.\n- When it is urgent, then Be quick.\n');
  expect(functions).toEqual(['crm__find', 'emit_output']);
});

it('rule 130: a call that was opened as run@1 is rendered as it was then', async () => {
  const { system, functions } = await promptOf('run@1');

  expect(system).toMatch(/^You help\.\n\n# Task: Triage\n\nSort it\.\n\n# How to finish\n/);
  expect(functions).toEqual(['emit_output']);
});

async function promptOf(template: string): Promise<{ system: string; functions: (string | undefined)[] }> {
  const run = { runId: 'run_1', stepCount: 0, useFallbackModel: false, lists: { crm: 'h1' } };
  const inputs = runCall.inputs.parse({ template, bundleHash: 'b', deadlineAtMs: 1, traceparent: null, ...run });
  const effect = { partition: 1, id: 'run_1-1', sessionId: 's', actorId: 'run_1', createdAtMs: 0, kind: 'run-call', inputs };
  const { request } = (await runCall.render(effect, false, depsOfRun())) as RouterCall;
  return {
    system: String(request.messages?.[0]?.content),
    functions: (request.tools ?? []).map((tool) => ('function' in tool ? tool.function.name : undefined)),
  };
}

function depsOfRun(): RenderDeps {
  const secret = '$' + '{SECRET}';
  const context = {
    ...{ system_prompt: { id: 'p', ...v1 }, language: 'match_user', glossaries: [{ id: 'words', ...v1 }] },
    policies: ['brief', 'quick'].map((id) => ({ id, ...v1 })),
  };
  const keys = { runtime: { api_key: secret }, platform: { public_key: secret, secret_key: secret }, llms: { default: 'a/b', api_key: secret } };
  const body = bundleBody.parse({
    manifest: { ...{ id: 'shop', name: 'Shop', version: '1' }, agent_config: { ...keys, context } },
    documents: {
      ...{ macros: [], variable_sets: [], prompts: [{ id: 'p', ...v1, type: 'text', text: 'You help.' }] },
      glossaries: [{ id: 'words', ...v1, terms: Array.from({ length: TERMS }, (_, index) => ({ name: `term${index}`, description: `meaning${index}` })) }],
      policies: [
        { id: 'brief', ...v1, action: 'Be brief.' },
        { id: 'quick', ...v1, condition: 'it is urgent', action: 'Be quick.', routines: ['triage'] },
      ],
      routines: [
        {
          ...{ id: 'triage', ...v1, kind: 'autonomous', title: 'Triage', instructions: 'Sort it.' },
          steps: [{ id: 'find', kind: 'tool', tool_state: ['crm:find'] }],
        },
      ],
    },
  });
  const find = { name: 'find', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true };
  const deps: Partial<RenderDeps> = {
    bundleOf: async () => ({ hash: 'b', body }),
    runs: {
      load: async () => [{ routineId: 'triage', input: JSON.stringify({ about: 'term7' }) }] as never,
      transcript: async () => [],
      assistantMessages: async () => [],
      toolLists: async () => new Map([['h1', [find]]]),
    },
    epochOf: () => 1,
    settings: { streaming: false, maxTokens: 10, modelKey: 'k', providerOrder: [] },
  };
  return deps as RenderDeps;
}
