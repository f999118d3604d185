import { expect, it } from 'vitest';
import type { CommandOf } from '#bus/messages/session.ts';
import { systemClock } from '#shared/clock.ts';
import { bundleBody } from '#shared/config/bundle-body.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { StoredCustomer } from '../store/port/customer-store.ts';
import { create } from '../test-support/driven-session.ts';
import { CustomerReader, unknownCustomer } from './customer-reader.ts';
import { greetingReader } from './greeting-reader.ts';

const reference = (name: string) => `$${`{${name}}`}`;
const context = { system_prompt: { id: 'p', version: 1 }, language: 'match_user', greeting: `Hello ${reference('nickname')}!` };
const llms = { default: 'a/b', api_key: reference('S') };
const agent_config = { runtime: { api_key: reference('S') }, platform: { public_key: reference('S'), secret_key: reference('S') }, llms, context };
const macros = [{ id: 'nickname', version: 1, variable: { set: 'customer', name: 'nick', fallback: 'friend' } }];
const bodyWith = (variables: object[], greeting = context.greeting) =>
  bundleBody.parse({
    manifest: { id: 'a', name: 'A', version: '1', agent_config: { ...agent_config, context: { ...context, greeting } } },
    documents: {
      prompts: [],
      routines: [],
      policies: [],
      glossaries: [],
      macros,
      variable_sets: variables.length === 0 ? [] : [{ id: 'customer', version: 1, variables }],
    },
  });
const { documents } = bodyWith([{ name: 'plan' }, { name: 'nick', expose: false }]);
const ada = { sessionId: 'ses_1', customerId: 'ada', bundleHash: 'b' };
const guest = { ...ada, customerId: 'cus_1' };

/** A store that answers with the number of its reads. */
function readerOf(
  answer: (read: number) => Promise<StoredCustomer> = async (read) => ({
    name: 'Ada',
    tags: [],
    values: [{ key: 'ada', name: 'plan', data: read, updatedAtMs: 1 }],
  }),
) {
  const reads: (readonly string[])[] = [];
  const read = async (_: string, names: readonly string[]) => {
    reads.push(names);
    return await answer(reads.length);
  };
  return { reads, reader: new CustomerReader({ store: { read }, clock: systemClock, log: silentLog, longestMs: 20 }) };
}

it('DESIGN 5: rule 93: prompts of one turn know the same, also those that are rendered side by side', async () => {
  const { reads, reader } = readerOf();
  const first = await Promise.all([reader.ofTurn('trn_1', ada, documents), reader.ofTurn('trn_1', ada, documents)]);
  const later = await reader.ofTurn('trn_1', ada, documents);

  expect([...first, later].map(({ name, values }) => [name, values.get('plan')])).toEqual(Array.from({ length: 3 }, () => ['Ada', 1]));
  expect((await reader.ofTurn('trn_2', ada, documents)).values.get('plan')).toBe(2);
  expect(reads).toEqual([['plan'], ['plan']]);
});

it.each([
  ['fails', () => Promise.reject(new Error('no database'))],
  ['takes too long', () => new Promise<StoredCustomer>(() => {})],
])('rule 93: prompts go out with the defaults when the read %s, and the next one reads again', async (_, answer) => {
  const stored: StoredCustomer = { name: 'Ada', tags: [], values: [] };
  const { reader } = readerOf((read) => (read === 1 ? answer() : Promise.resolve(stored)));

  expect(await reader.ofTurn('trn_1', ada, documents)).toBe(unknownCustomer);
  expect((await reader.ofTurn('trn_1', ada, documents)).name).toBe('Ada');
});

it('rule 92: a guest has no name, and nothing is read where there is no variable', async () => {
  const { reads, reader } = readerOf(async () => ({ name: 'Guest', tags: [], values: [] }));

  expect((await reader.ofTurn('trn_1', guest, bodyWith([]).documents)).name).toBeNull();
  expect(reads).toEqual([]);
  expect((await reader.ofTurn('trn_2', guest, documents)).name).toBeNull();
  expect((await reader.ofTurn('trn_3', ada, bodyWith([]).documents)).name).toBe('Guest');
  expect(reads).toEqual([['plan'], []]);
});

it('rule 95: a greeting has the value of the session’s customer, and a customer is read only for it', async () => {
  const { reads, reader } = readerOf(async () => ({ name: 'Ada', tags: [], values: [{ key: 'DEFAULT', name: 'nick', data: 'dear', updatedAtMs: 1 }] }));
  const bodies = new Map([
    ['named', bodyWith([{ name: 'nick' }])],
    ['plain', bodyWith([{ name: 'nick' }], 'Hello!')],
  ]);
  const greeting = greetingReader({ bundleOf: async (hash) => ({ hash, body: bodies.get(hash) ?? bodyWith([]) }), customers: reader });
  const command = (bundleHash: string): CommandOf<'session.create'> => ({ ...(create() as CommandOf<'session.create'>), bundleHash, allowGreeting: true });

  expect(await greeting(command('plain'))).toBe('Hello!');
  expect(await greeting({ ...command('named'), allowGreeting: false })).toBe('Hello friend!');
  expect(reads).toEqual([]);
  expect(await greeting(command('named'))).toBe('Hello dear!');
  expect(reads).toEqual([['nick']]);
});
