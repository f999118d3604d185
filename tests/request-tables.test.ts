import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { useGateway } from '../services/router-gateway/test-support/use-gateway.ts';
import { systemClock } from '../shared/clock.ts';
import { chatRequest } from '../shared/contracts/router/chat-request.ts';
import { offendingField } from '../shared/contracts/router/offending-field.ts';
import { isValidChatRequest } from '../shared/contracts/router/valid-chat-request.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';
import { invalidCasesOf, requestTables, validCasesOf } from './helpers/request-tables.ts';

const validCases = validCasesOf(requestTables);
const invalidCases = invalidCasesOf(requestTables);

/** The tables of the contract (router-api) below that of the request, whose fields the schema names. */
const CONTRACT: Record<string, readonly string[]> = {
  reasoning: ['effort', 'summary', 'max_tokens', 'exclude', 'enabled'],
  json_schema: ['name', 'description', 'schema', 'strict'],
  'response_format of grammar': ['grammar'],
  'response_format of python': ['type'],
  stream_options: ['include_usage'],
  debug: ['echo_upstream_body'],
  'tools function': ['name', 'description', 'parameters', 'strict'],
  provider: [
    ...['allow_fallbacks', 'require_parameters', 'data_collection', 'zdr', 'enforce_distillable_text', 'order', 'only', 'ignore', 'quantizations'],
    ...['sort', 'max_price', 'preferred_min_throughput', 'preferred_max_latency', 'min_throughput', 'max_latency'],
  ],
  max_price: ['prompt', 'completion', 'image', 'audio', 'request'],
  'plugin moderation': ['id'],
  'plugin web': ['enabled', 'max_results', 'search_prompt', 'engine'],
  'plugin file-parser': ['enabled', 'pdf'],
  'plugin response-healing': ['enabled'],
  'message of system': ['content', 'name'],
  'message of developer': ['content', 'name'],
  'message of user': ['content', 'name'],
  'message of assistant': ['content', 'name', 'tool_calls', 'refusal', 'reasoning'],
  'message of tool': ['content', 'tool_call_id'],
  'tool call': ['id', 'type', 'function'],
  'tool call function': ['name', 'arguments'],
  'item text': ['text', 'cache_control'],
  'item image_url': ['image_url'],
  'item input_audio': ['input_audio'],
  'item input_video': ['video_url'],
  'item video_url': ['video_url'],
  'reasoning.summary': ['summary', 'id', 'index', 'format'],
  'reasoning.encrypted': ['data', 'id', 'index', 'format'],
  'reasoning.text': ['text', 'signature', 'id', 'index', 'format'],
};

describe('the tables of a request', () => {
  it('have a row for every field of the contract', () => {
    const rowsOf = new Map(requestTables.map(({ table, rows }) => [table, rows.map(({ field }) => field)]));
    expect(rowsOf.get('request')).toEqual(expect.arrayContaining(Object.keys(chatRequest.shape)));
    for (const [table, fields] of Object.entries(CONTRACT)) expect([table, rowsOf.get(table)]).toEqual([table, expect.arrayContaining([...fields])]);
  });

  it.each(validCases)('$table: $field may be $shown', ({ request }) => {
    const parsed = chatRequest.safeParse(request);
    expect(parsed.error).toBeUndefined();
    expect(parsed.data).toEqual(request);
    expect(isValidChatRequest(request)).toBe(true);
  });

  it.each(invalidCases)('$table: $field must not be $shown, and the error names $param', ({ request, param }) => {
    const parsed = chatRequest.safeParse(request);
    expect(parsed.success).toBe(false);
    expect(parsed.error && offendingField(parsed.error).param).toBe(param);
    expect(isValidChatRequest(request)).toBe(false);
  });
});

describe('the tables of a request, at a gateway', () => {
  // Opened before each test, and the rows above need none.
  const gateway = useGateway(async () => {
    const database = await openTestDatabase();
    const bus = await openMemoryBus({ database, clock: systemClock });
    return { bus, close: () => bus.close().then(() => database.close()) };
  });

  it('answer 400 for each invalid value, with its path in the message and in param', async () => {
    expect(invalidCases.length).toBeGreaterThan(300);
    for (const { table, field, shown, request, param } of invalidCases) {
      const response = await gateway.post(Object(request));
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
});
