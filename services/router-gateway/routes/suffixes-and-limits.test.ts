import { expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { chatRequest, requestLimits } from '#shared/contracts/router/chat-request.ts';
import { isValidChatRequest } from '#shared/contracts/router/valid-chat-request.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { hello, useGateway } from '../test-support/use-gateway.ts';

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

it('gives a worker the name with its suffixes, which the worker resolves', async () => {
  const response = gateway.post({ ...hello, model: 'acme/large:nitro' });
  const { request } = await gateway.answerNext();

  expect((await response).statusCode).toBe(200);
  expect(request).toEqual({ ...hello, model: 'acme/large:nitro' });
});

it('names an unknown plugin, and not that of a suffix, which a worker applies', async () => {
  const response = gateway.post({ ...hello, model: 'large:online', plugins: [{ id: 'new' }] });
  await gateway.answerNext();

  expect((await response).headers['x-switchyard-ignored']).toBe('plugins[0]=new');
});

it.each([
  ['a variant that is not configured', { model: 'acme/large:extended' }, 'model', 'acme/large:extended is not a valid model ID'],
  ['two orders', { model: 'acme/large:nitro:floor' }, 'model', 'model :nitro and :floor ask for two orders of the endpoints: use one of them'],
])('refuses %s before a worker has it', async (_, names, param, message) => {
  const response = await gateway.post({ ...hello, ...names });

  expect(response.statusCode).toBe(400);
  expect(response.json().error).toMatchObject({ code: 400, param, message });
});

const many = <Value>(count: number, value: Value) => Array.from({ length: count }, () => value);
const requestOf = (path: string, list: readonly unknown[]) => {
  const [first = '', second] = path.split('.');
  return { ...hello, [first]: second === undefined ? list : { [second]: list } };
};

it.each([
  ['provider.order', 'east', requestLimits.slugs, 10_000],
  ['provider.only', 'east', requestLimits.slugs, 10_000],
  ['provider.ignore', 'east', requestLimits.slugs, 10_000],
  ['models', 'acme/large', requestLimits.models, 1_000],
  ['plugins', { id: 'web' }, requestLimits.plugins, 200],
])('bounds %s: 400 with its path', async (path, value, most, hostile) => {
  for (const count of [most + 1, hostile]) {
    const request = requestOf(path, many(count, value));
    const response = await gateway.post(request);

    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ param: path, message: `${path} must have at most ${most} entries` });
    expect(isValidChatRequest(request)).toBe(false);
  }
  const largest = requestOf(path, many(most, value));
  expect(chatRequest.safeParse(largest).success).toBe(true);
  expect(isValidChatRequest(largest)).toBe(true);
});
