import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { authorization, useGateway } from '../services/router-gateway/test-support/use-gateway.ts';
import { systemClock } from '../shared/clock.ts';
import { chatRequest } from '../shared/contracts/router/chat-request.ts';
import { responsesRequest } from '../shared/contracts/router/responses-request.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';
import { responses } from '../shared/surfaces/responses/surface.ts';
import { invalidCasesOf, responsesTables, validCasesOf } from './helpers/request-tables.ts';

const paths = ['/api/v1/responses', '/api/alpha/responses', '/v1/responses'];
const invalidCases = invalidCasesOf(responsesTables);

describe('a request of /responses', () => {
  it('has a row for every field of the schema, but for one that may be anything', () => {
    const [request] = responsesTables;
    expect(request?.rows.map(({ field }) => field)).toEqual(Object.keys(responsesRequest.shape).filter((field) => field !== 'debug'));
  });

  it.each(validCasesOf(responsesTables))('$table: $field may be $shown', ({ request }) => {
    const parsed = responsesRequest.parse(request);
    expect(parsed).toEqual(request);
    // A worker reads it as a chat.
    const chat = responses.request?.toModelRequest(parsed);
    expect(chatRequest.safeParse(chat)).toEqual({ success: true, data: chat });
  });
});

describe('a request of /responses, at a gateway', () => {
  // Opened before each test, and the rows above need none.
  const gateway = useGateway(async () => {
    const database = await openTestDatabase();
    const bus = await openMemoryBus({ database, clock: systemClock });
    return { bus, close: () => bus.close().then(() => database.close()) };
  });
  const post = (payload: object, url = '/api/v1/responses') => gateway.opened.app.inject({ method: 'POST', url, headers: { authorization }, payload });

  it('answers 400 for each invalid value, with its path in the message and in param', async () => {
    expect(invalidCases.length).toBeGreaterThan(100);
    for (const { table, field, shown, request, param } of invalidCases) {
      const response = await post(Object(request));
      const { error } = response.json();
      expect([table, field, shown, response.statusCode, error.code, error.type, error.param]).toEqual([
        table,
        field,
        shown,
        400,
        400,
        'invalid_request',
        param,
      ]);
      expect(error.message.startsWith(`${param} `)).toBe(true);
    }
  });

  it.each(paths)('is sent from %s as a call whose request is that of a chat, and names the fields without effect', async (url) => {
    const answering = gateway.answerNext();
    const asked = {
      model: 'large',
      input: 'Hi',
      instructions: 'Be brief.',
      debug: { echo_upstream_body: true },
      max_tool_calls: 2,
      newer: 1,
      provider: { odd: 1 },
    };
    const response = await post(asked, url);

    expect(await answering).toMatchObject({
      ...{ surface: 'responses', want: 'body', keyId: 'one', maxTokens: null },
      request: {
        model: 'large',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hi' },
        ],
      },
    });
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'x-switchyard-ignored': 'max_tool_calls, debug, newer, provider.odd',
      'x-generation-id': expect.stringMatching(/^gen-/),
    });
  });

  it('asks for a stream with stream: true, and is refused without a key', async () => {
    const answering = gateway.answerNext(502, { error: { code: 502 } });
    const response = await post({ model: 'large', input: 'Hi', stream: true });
    expect(await answering).toMatchObject({ want: 'frames', request: { stream: true } });
    expect(response.statusCode).toBe(500);

    const refused = await gateway.opened.app.inject({ method: 'POST', url: '/api/alpha/responses', payload: { input: 'Hi' } });
    expect([refused.statusCode, refused.json().error.type]).toEqual([401, 'authentication']);
  });

  it('needs a model of chats, and serves no other path of the contract under /api/alpha', async () => {
    expect((await post({ model: 'acme/none', input: 'Hi' })).json().error).toMatchObject({ code: 400, param: 'model' });
    expect((await post({ messages: [] }, '/api/alpha/chat/completions')).statusCode).toBe(404);
  });
});
