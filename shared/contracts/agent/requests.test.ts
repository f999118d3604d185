import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deleteEventsQuery, patchEventRequest } from './change-events.ts';
import { createCustomerRequest, listCustomersQuery, patchCustomerRequest } from './customer.ts';
import { readEventsQuery } from './read-events.ts';
import { listRunsQuery, triggerRequest } from './run.ts';
import { createSessionRequest, listSessionsQuery, patchSessionRequest, postEventRequest, setEventWebhookRequest } from './session.ts';
import { toolEventRequest } from './tool-event.ts';
import { putValueRequest } from './variable.ts';

const corpus = new URL('../../../tests/corpus/agent/', import.meta.url);

function casesOf(folder: 'valid' | 'invalid', name: string) {
  const file = z.array(z.object({ case: z.string(), path: z.string().optional(), request: z.unknown() })).min(1);
  return file.parse(JSON.parse(readFileSync(new URL(`${folder}/${name}.json`, corpus), 'utf8')));
}

describe.each([
  ['create-session', createSessionRequest],
  ['patch-session', patchSessionRequest],
  ['patch-event', patchEventRequest],
  ['delete-events', deleteEventsQuery],
  ['event-webhook', setEventWebhookRequest],
  ['post-event', postEventRequest],
  ['tool-event', toolEventRequest],
  ['read-events', readEventsQuery],
  ['trigger', triggerRequest],
  ['list-runs', listRunsQuery],
  ['create-customer', createCustomerRequest],
  ['patch-customer', patchCustomerRequest],
  ['list-customers', listCustomersQuery],
  ['list-sessions', listSessionsQuery],
  ['put-value', putValueRequest],
])('%s', (name, schema) => {
  it.each(casesOf('invalid', name))('refuses $case at $path', ({ path, request }) => {
    const parsed = schema.safeParse(request);

    expect(parsed.error?.issues[0]?.path.join('.')).toBe(path);
  });

  it.each(casesOf('valid', name))('takes $case', ({ request }) => {
    expect(schema.safeParse(request).error).toBeUndefined();
  });
});

it('fills in the defaults of a poll', () => {
  expect(readEventsQuery.parse({})).toEqual({ min_offset: 0, limit: 200 });
});

it('reads numbers and lists out of a query', () => {
  const query = { min_offset: '007', kinds: 'status, tool', wait_for_data: '2.5', limit: '10' };

  expect(readEventsQuery.parse(query)).toEqual({ min_offset: 7, kinds: ['status', 'tool'], wait_for_data: 2.5, limit: 10 });
});

it('fills in the defaults of a trigger', () => {
  expect(triggerRequest.parse({ callback_url: 'https://example.com/' })).toEqual({ input: {}, callback_url: 'https://example.com/' });
});
