import { expect, it } from 'vitest';
import { type BundleBody, bundleBody } from '#shared/config/bundle-body.ts';
import { greetingOf } from './greeting-of.ts';

const SECRET = '$' + '{SECRET}';
const macroOf = (id: string) => `\${${id}}`;

function agent(greeting: string | null): BundleBody {
  const context = { system_prompt: { id: 'p', version: 1 }, language: 'match_user', greeting };
  const runtime = { api_key: SECRET };
  const platform = { public_key: SECRET, secret_key: SECRET };
  const llms = { default: 'switchyard/assistant', api_key: SECRET };
  const variables = [{ name: 'plan', default: 'gold' }, { name: 'seats', type: 'number', default: 3 }, { name: 'name' }];
  const ofVariable = (name: string) => ({ variable: { set: 'customer', name, fallback: 'friend' } });
  return bundleBody.parse({
    manifest: { id: 'agent', name: 'Agent', version: '1', agent_config: { runtime, platform, llms, context } },
    documents: {
      prompts: [],
      routines: [],
      policies: [],
      glossaries: [],
      macros: [
        { id: 'shop', version: 1, value: 'Acme' },
        { id: 'nested', version: 1, value: `see ${macroOf('shop')} and $\${` },
        { id: 'dollars', version: 1, value: "$& $1 $' $$" },
        { id: 'nothing', version: 1, value: '' },
        { id: 'plan', version: 1, ...ofVariable('plan') },
        { id: 'seats', version: 1, ...ofVariable('seats') },
        { id: 'name', version: 1, ...ofVariable('name') },
      ],
      variable_sets: [{ id: 'customer', version: 1, variables }],
    },
  });
}

it.each([
  ['a text without any', 'Hello!', 'Hello!'],
  ['each macro, wherever it stands', `${macroOf('shop')}: welcome to ${macroOf('shop')}.`, 'Acme: welcome to Acme.'],
  ['a macro once: what its text looks like is not expanded again', macroOf('nested'), `see ${macroOf('shop')} and $\${`],
  ['an escaped one to its text', `Write $${macroOf('shop')}`, `Write ${macroOf('shop')}`],
  ['a value that looks like a replacement pattern, as it is', macroOf('dollars'), "$& $1 $' $$"],
  ["a variable's default", `${macroOf('plan')}, ${macroOf('seats')} seats`, 'gold, 3 seats'],
  ['a variable without a value, to its fallback', `Hello ${macroOf('name')}`, 'Hello friend'],
  ['one that is not known, as it is written', macroOf('gone'), macroOf('gone')],
])('expands %s', (_what, greeting, text) => {
  expect(greetingOf(agent(greeting))).toBe(text);
});

it('rule 95: takes the value of the session’s customer before the default, once', () => {
  const values = new Map<string, unknown>([
    ['name', `Ada ${macroOf('shop')}`],
    ['seats', 4],
  ]);

  expect(greetingOf(agent(`${macroOf('name')}, ${macroOf('seats')}, ${macroOf('plan')}`), values)).toBe(`Ada ${macroOf('shop')}, 4, gold`);
});

it.each([[null], [macroOf('nothing')]])('is null when there is none, or nothing is left of it (%s)', (greeting) => {
  expect(greetingOf(agent(greeting))).toBeNull();
});
