import { describe, expect, it } from 'vitest';
import { type BundleBody, bundleBody } from '#shared/config/bundle-body.ts';
import type { Policy } from '#shared/contracts/documents/policy.ts';
import { engineDocumentsOf } from './engine-documents.ts';
import { runPoliciesOf, runPoliciesText } from './run-policies.ts';

interface Given {
  policies: readonly (Pick<Policy, 'id'> & Partial<Policy>)[];
  /** Of the autonomous routine `triage`. */
  own?: readonly string[];
  relationships?: object;
  /** More routines. */
  routines?: readonly object[];
}

function bodyOf({ policies, own = [], relationships = {}, routines = [] }: Given): BundleBody {
  const references = policies.map(({ id }) => ({ id, version: 1 }));
  const context = { system_prompt: { id: 'p', version: 1 }, language: 'match_user', policies: references, relationships };
  const agent_config = {
    runtime: { api_key: '${AGENT_API_KEY}' },
    platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
    ...{ llms: { default: 'a/b', api_key: '${ROUTER_API_KEY}' }, context },
  };
  const triage = { id: 'triage', version: 1, kind: 'autonomous', instructions: 'Sort it.', policies: own };
  const documents = {
    ...{ prompts: [{ id: 'p', version: 1, type: 'text', text: 'You help.' }], glossaries: [], macros: [], variable_sets: [] },
    ...{ policies: policies.map((one) => ({ version: 1, ...one })), routines: [triage, ...routines] },
  };
  return bundleBody.parse({ manifest: { name: 'n', id: 'n', version: '1', agent_config }, documents });
}

const always = (id: string, more: Partial<Policy> = {}) => ({ id, condition: null, action: `do ${id}`, ...more });
const when = (id: string, more: Partial<Policy> = {}) => ({ id, condition: `it is ${id}`, action: `do ${id}`, ...more });
const talk = (more: object) => ({ id: 'talk', version: 1, conditions: ['c'], steps: [{ kind: 'chat', id: 's', chat_state: 'Hello' }], ...more });
const policiesFor = (given: Given) => runPoliciesOf(bodyOf(given), 'triage').map(({ condition, action }) => `${condition ?? 'always'}: ${action}`);

describe('the policies of a run', () => {
  it('rule 132: are those that always hold, and those of its routine with their conditions', () => {
    const policies = [always('a'), when('b'), when('c'), when('d', { routines: ['triage'] }), always('e', { routines: ['talk'] }), always('f')];

    expect(policiesFor({ policies, own: ['c'], routines: [talk({ policies: ['f'] })] })).toEqual(['always: do a', 'it is c: do c', 'it is d: do d']);
  });

  it('rule 132: are none that only observe, ask the customer, or are disabled', () => {
    const asking = when('ask', { disambiguates: ['policy:a', 'policy:seen'] });
    const policies = [always('a'), when('seen', { action: null }), asking, always('off', { enabled: false })];

    expect(policiesFor({ policies, own: ['seen', 'ask', 'off'] })).toEqual(['always: do a']);
  });

  it.each<[string, Given, string[]]>([
    ['a priority', { policies: [always('a'), always('b')], relationships: { priorities: [{ higher: 'policy:a', over: 'policy:b' }] } }, ['always: do a']],
    [
      'a priority over one with a condition',
      { policies: [always('a'), when('b')], own: ['b'], relationships: { priorities: [{ higher: 'policy:a', over: 'policy:b' }] } },
      ['always: do a'],
    ],
    [
      'no priority of one whose condition may not hold',
      { policies: [when('a'), always('b')], own: ['a'], relationships: { priorities: [{ higher: 'policy:a', over: 'policy:b' }] } },
      ['it is a: do a', 'always: do b'],
    ],
    ['a number', { policies: [always('a', { priority: 1 }), always('b')] }, ['always: do a']],
    ['a dependency on one that does not hold', { policies: [always('a', { depends_on: ['policy:b'] }), when('b')] }, []],
    [
      'an entailment',
      { policies: [always('a'), when('b')], relationships: { entailments: [{ when: 'policy:a', also_apply: ['policy:b'] }] } },
      ['always: do a', 'always: do b'],
    ],
  ])('rule 132: are what relationships leave: %s', (_, given, expected) => {
    expect(policiesFor(given)).toEqual(expected);
  });

  it('rule 132: those of an autonomous routine alone, or of a disabled one, are in no turn', () => {
    const policies = [always('a'), always('of-run'), always('of-both'), always('of-none'), when('named', { routines: ['triage'] })];
    const body = bodyOf({
      ...{ policies, own: ['of-run', 'of-both'] },
      routines: [talk({ policies: ['of-both'] }), talk({ id: 'off', enabled: false, policies: ['of-none'] })],
    });

    expect(engineDocumentsOf(body)?.policies.map(({ id }) => id)).toEqual(['a', 'of-both']);
    expect(engineDocumentsOf(bodyOf({ policies: [always('of-run')], own: ['of-run'] }))).toBeNull();
  });

  it('rule 132: are named with their condition, or as holding in any case', () => {
    const policies = [
      { condition: null, action: 'Be brief.' },
      { condition: 'it is urgent', action: 'say so.' },
    ];
    expect(runPoliciesText(policies)).toMatch(/^# Policies\n(?:.|\n)*\n- Always: Be brief\.\n- When it is urgent, then say so\.$/);
    expect(runPoliciesText([])).toBe('');
  });
});
