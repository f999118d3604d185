import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { compileSchema } from '#shared/json-schema.ts';
import type { RunReply } from '../kinds/run/types.ts';
import type { StepMessage } from '../tool-loop/types.ts';
import { readRunReply } from './read-run-reply.ts';
import { runTools } from './run-tools.ts';

type Completed = CommandOf<'call.completed'>;

const outputSchema = { type: 'object', properties: { verdict: { type: 'string' } }, required: ['verdict'] };
const inputSchema = { type: 'object', properties: { sku: { type: 'string' } }, additionalProperties: false };
const listed = (name: string) => ({ name, title: null, description: null, inputSchema, repeatable: false });
const about = {
  tools: runTools({
    selectors: ['crm:*', 'orders:*'],
    lists: {
      crm: { hash: 'h1', tools: [listed('find'), listed('buy')] },
      orders: { hash: 'h2', tools: [{ ...listed('get'), inputSchema: { type: 'object', properties: { id: { type: 'number' } }, required: ['id'] } }] },
    },
    outputSchema,
  }),
  validateOutput: compileSchema(outputSchema),
};

function read(answer: Partial<Completed>): RunReply {
  return readRunReply(
    {
      v: 1,
      type: 'call.completed',
      sessionId: 'ses_1',
      commandId: 'run_1-3',
      sentAtMs: 0,
      answerTo: null,
      traceparent: null,
      ...actorFields('run_1'),
      callId: 'run_1-3',
      text: '',
      toolCalls: [],
      model: 'scripted/assistant',
      provider: 'Scripted',
      finishReason: 'stop',
      usage: null,
      ...answer,
    },
    about,
  );
}

function call(name: string, args: string, id = 'call_1'): Completed['toolCalls'][number] {
  return { id, name, arguments: args };
}

function tools(reply: RunReply): Extract<RunReply, { type: 'tools' }> {
  if (reply.type !== 'tools') throw new Error(`expected tools, not ${reply.type}`);
  return reply;
}

/** Error codes of the tool messages. */
function errorsIn(messages: StepMessage[]): unknown[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [JSON.parse(message.content).error] : []));
}

describe('readRunReply', () => {
  describe('can not use', () => {
    it.each(['length', 'content_filter', 'error'])('an answer that ended for %s, whatever it holds', (finishReason) => {
      const toolCalls = [call('emit_output', '{"verdict":"yes"}')];

      expect(read({ finishReason, text: 'half', toolCalls })).toEqual({ type: 'unusable', finishReason });
    });

    it('an empty answer, and does not repeat the upstream’s text about it', () => {
      expect(read({ text: ' \n' })).toEqual({ type: 'unusable', finishReason: 'stop' });
      expect(read({ finishReason: 'secret inner reason' })).toEqual({ type: 'unusable', finishReason: 'unknown' });
    });
  });

  describe('answers an invalid output with its violation', () => {
    it.each<[string, string, object, RegExp]>([
      ['breaks the schema', '{}', { path: '/verdict', schemaPath: '#/required', keyword: 'required' }, /\(at \/verdict\)/],
      ['is no JSON', '{"verdict":', { path: '', keyword: 'type' }, /must be JSON/],
      ['is no object', '["yes"]', { path: '', keyword: 'type' }, /must be an object/],
      ['is too large', `{"verdict":"${'x'.repeat(1_048_576)}"}`, { keyword: 'maxLength' }, /longer than 1048576/],
      ['is nested without end', `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`, { keyword: 'maxDepth' }, /nested deeper/],
      ['is missing', '', { keyword: 'required' }, /verdict/],
    ])('when it %s', (_what, args, violation, text) => {
      const reply = read({ toolCalls: [call('emit_output', args)] });

      if (reply.type !== 'invalid-output') throw new Error(reply.type);
      expect(reply.violation).toMatchObject(violation);
      expect(reply.messages.map(({ role }) => role)).toEqual(['assistant', 'tool']);
      expect(reply.messages[1]).toMatchObject({ tool_call_id: 'c00030000', content: expect.stringMatching(text), result: null });
    });
  });

  it.each([
    ['{"verdict":"yes","id":9007199254740993}', '/id'],
    ['{"verdict":"yes","ids":[12345678901234567890]}', '/ids/0'],
    ['{"verdict":"yes","amount":1e400}', '/amount'],
  ])('DESIGN 5: an output with a number that cannot be kept exactly is refused: %s', (args, path) => {
    const reply = read({ toolCalls: [call('emit_output', args)] });

    if (reply.type !== 'invalid-output') throw new Error(reply.type);
    expect(reply.violation).toMatchObject({ path, keyword: 'exactNumber' });
    expect(reply.messages.at(-1)).toMatchObject({ role: 'tool', content: expect.stringContaining(`send it as a string (at ${path}). Call emit_output again`) });
  });

  it('accepts decimals, and large numbers that a double holds', () => {
    const reply = read({ toolCalls: [call('emit_output', '{"verdict":"yes","a":0.1,"b":19.99,"c":1e20,"d":9007199254740992}')] });

    expect(reply).toEqual({ type: 'output', output: { verdict: 'yes', a: 0.1, b: 19.99, c: 1e20, d: 9_007_199_254_740_992 } });
  });

  it('accepts a valid output, and makes no other call of the same answer', () => {
    const toolCalls = [call('crm__buy', '{"sku":"a"}'), call('emit_output', '{"verdict":"yes"}'), call('emit_output', '{}')];

    expect(read({ text: 'Done.', toolCalls })).toEqual({ type: 'output', output: { verdict: 'yes' } });
  });

  it('does not record calls beside an invalid output, since none of them is made', () => {
    const reply = read({ toolCalls: [call('crm__buy', '{"sku":"a"}'), call('emit_output', '{}')] });

    if (reply.type !== 'invalid-output') throw new Error(reply.type);
    expect(reply.messages[0]).toMatchObject({ role: 'assistant', tool_calls: [{ id: 'c00030001', function: { name: 'emit_output' } }] });
  });

  it('answers text with a reminder', () => {
    const reply = read({ text: 'What is your name?' });

    expect(reply).toEqual({
      type: 'text',
      messages: [
        { role: 'assistant', content: 'What is your name?' },
        { role: 'user', content: expect.stringContaining('emit_output') },
      ],
    });
  });

  describe('refuses with a tool message', () => {
    it.each<[string, string, string, string]>([
      ['a function that there is not', 'crm__steal', '{}', 'unknown_function'],
      ['arguments that are no JSON', 'crm__find', '{sku: 1}', 'invalid_arguments'],
      ['arguments that are no object', 'crm__find', '"a"', 'invalid_arguments'],
      ['arguments that break the schema', 'crm__find', '{"sku":1}', 'invalid_arguments'],
      ['arguments that are too large', 'crm__find', `{"sku":"${'x'.repeat(262_144)}"}`, 'invalid_arguments'],
    ])('%s', (_what, name, args, error) => {
      const reply = tools(read({ toolCalls: [call(name, args)] }));

      expect(reply.calls).toEqual([]);
      expect(reply.order).toHaveLength(1);
      expect(errorsIn(reply.messages)).toEqual([error]);
    });

    it('the same call for the second time, however its arguments are written', () => {
      const reply = tools(read({ toolCalls: [call('crm__buy', '{"sku":"a"}'), call('crm__buy', '{ "sku" : "a" }'), call('crm__find', '{"sku":"a"}')] }));

      expect(reply.calls.map(({ toolCallId }) => toolCallId)).toEqual(['c00030000', 'c00030002']);
      expect(errorsIn(reply.messages)).toEqual(['repeated_call']);
    });

    it('DESIGN 5: a number that cannot be kept exactly refuses its call of a run, and not the call that it would be rounded to', () => {
      const reply = tools(read({ toolCalls: ['9007199254740993', '9007199254740992', '1e400'].map((id) => call('orders__get', `{"id":${id}}`)) }));

      expect(reply.calls.map(({ toolCallId }) => toolCallId)).toEqual(['c00030001']);
      expect(errorsIn(reply.messages)).toEqual(['invalid_arguments', 'invalid_arguments']);
      const [, refusal] = reply.messages;
      expect(refusal).toMatchObject({ tool_call_id: 'c00030000', content: expect.stringMatching(/send it as a string \(at \/id\)\. The call was not made/) });
    });

    it('calls beyond the sixteenth that is made', () => {
      const toolCalls = [call('nothing', '{}'), ...Array.from({ length: 18 }, (_, index) => call('crm__find', `{"sku":"${index}"}`))];

      const reply = tools(read({ toolCalls }));

      expect(reply.calls).toHaveLength(16);
      expect(reply.order).toHaveLength(19);
      expect(errorsIn(reply.messages)).toEqual(['unknown_function', 'too_many_calls', 'too_many_calls']);
    });
  });

  it('makes the valid calls, and retains the order of all', () => {
    const reply = read({ text: 'Let me look.', toolCalls: [call('crm__find', '{"sku":"a"}'), call('crm__steal', '{}'), call('crm__buy', '')] });

    expect(reply).toMatchObject({
      type: 'tools',
      calls: [
        { toolCallId: 'c00030000', toolId: 'crm:find', listHash: 'h1' },
        { toolCallId: 'c00030002', toolId: 'crm:buy', listHash: 'h1' },
      ],
      order: [{ toolId: 'crm:find' }, { toolId: 'crm__steal' }, { toolId: 'crm:buy' }],
      messages: [
        { role: 'assistant', content: 'Let me look.' },
        { role: 'tool', tool_call_id: 'c00030001' },
      ],
    });
  });

  it('stages what every upstream accepts: own ids, plain names, the JSON of an object', () => {
    const strange = [
      call('crm__find', '{"sku":"a"}', ''),
      call('crm__find', '{"sku":"b"}', ''),
      call('näme with spaces', '{'),
      call('', ''),
      call('x'.repeat(100), '[]'),
    ];

    const [answer] = tools(read({ toolCalls: strange })).messages;

    expect(answer).toMatchObject({ role: 'assistant', content: null });
    const calls = answer?.role === 'assistant' ? (answer.tool_calls ?? []) : [];
    expect(new Set(calls.map(({ id }) => id)).size).toBe(5);
    expect(calls.every(({ id }) => /^[a-z0-9]{9}$/.test(id))).toBe(true);
    expect(calls.map((one) => one.function)).toEqual([
      { name: 'crm__find', arguments: '{"sku":"a"}' },
      { name: 'crm__find', arguments: '{"sku":"b"}' },
      { name: 'n_me_with_spaces', arguments: '{}' },
      { name: 'unknown', arguments: '{}' },
      { name: 'x'.repeat(64), arguments: '{}' },
    ]);
  });

  it('assigns different ids to calls of different answers, even where the model repeats one', () => {
    const ids = ['run_1-3', 'run_1-4', 'run_1-40'].flatMap((callId) =>
      tools(read({ callId, toolCalls: [call('crm__find', '{}')] })).order.map((one) => one.toolCallId),
    );

    expect(ids).toEqual(['c00030000', 'c00040000', 'c00140000']);
  });
});
