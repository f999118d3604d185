import { describe, expect, it } from 'vitest';
import type { ChatMessage, ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { DeferredMessages, deferMessages } from '#shared/prompts/deferred-messages.ts';
import { sizeOfMessages } from '#shared/prompts/text-size.ts';
import { addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { detailOf } from '#shared/surfaces/chat-completions/reasoning-detail.ts';
import { echoBody } from '../../call/echo-body.ts';
import { type AdapterUnderTest, API_KEY, NEVER_ABORTED, ODD_NUMBERS } from './under-test.ts';

const NOTHING = { texts: [], images: [], calls: [], results: [], reasoning: [] };
const SCHEMA = { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'], additionalProperties: false };
const look: ChatTool = { type: 'function', function: { name: 'look', description: 'Looks.', parameters: SCHEMA } };
const hello: ChatMessage = { role: 'user', content: 'hello' };

/** Every parameter of the contract that is not covered apart, and fields that clients add: each upstream gets those that it takes. */
const EVERY_PARAMETER: Partial<ChatRequest> = {
  ...{ temperature: 0.5, top_p: 0.9, top_k: 40, min_p: 0.1, top_a: 0.2, repetition_penalty: 1.1, frequency_penalty: 0.5, presence_penalty: -0.5 },
  ...{ seed: 7, stop: ['\n'], max_tokens: 1_000, logit_bias: { 50256: -100 }, logprobs: true, top_logprobs: 2, parallel_tool_calls: true },
  ...{ user: 'u', session_id: 's', metadata: { team: 'a' }, prompt_cache_key: 'p', service_tier: 'auto', verbosity: 'low', stream_options: {} },
  ...{ provider: { order: ['loopback'] }, plugins: [{ id: 'moderation' }], route: 'fallback', models: ['b'], debug: { echo_upstream_body: true } },
  ...{ cache_control: { type: 'ephemeral' }, reasoning: { effort: 'high', summary: 'auto' }, response_format: { type: 'text' } },
};

const toolCall = (id: string, text: string) => ({ id, type: 'function' as const, function: { name: 'look', arguments: text } });
const picture = (url: string) => ({ type: 'image_url' as const, image_url: { url } });

export function requestCases(underTest: () => AdapterUnderTest): void {
  describe('a request', () => {
    it('arrives with its instructions apart from the conversation', async () => {
      const { instructions, turns } = await underTest().sent({
        messages: [{ role: 'system', content: 'be kind' }, { role: 'developer', content: 'be brief' }, hello],
      });
      expect(instructions).toEqual(['be kind', 'be brief']);
      expect(turns).toEqual([{ ...NOTHING, role: 'user', texts: ['hello'] }]);
    });

    it('is taken with every parameter, at the first try', async () => {
      const messages: ChatMessage[] = [
        { role: 'system', name: 'rules', content: 'be kind' },
        { role: 'user', name: 'ann', content: 'hello' },
      ];
      const { turns } = await underTest().sent({ ...EVERY_PARAMETER, messages });
      expect(turns[0]?.texts.join('')).toContain('hello');
      expect(underTest().upstream.requests).toHaveLength(1);
    });

    it('arrives with pictures, by address and as bytes, in their order', async () => {
      const bytes = `data:image/png;base64,${Buffer.from('a picture').toString('base64')}`;
      const { turns } = await underTest().sent({
        messages: [{ role: 'user', content: [{ type: 'text', text: 'what is it?' }, picture('https://files.test/a.png'), picture(bytes)] }],
      });
      expect(turns).toEqual([{ ...NOTHING, role: 'user', texts: ['what is it?'], images: [underTest().target.pictureAt('https://files.test/a.png'), bytes] }]);
    });

    it('arrives with parallel tool calls and all of their results', async () => {
      const { turns, tools } = await underTest().sent({
        tools: [look],
        messages: [
          hello,
          { role: 'assistant', content: 'I look.', tool_calls: [toolCall('call_a', '{"at":1}'), toolCall('call_b', '')] },
          { role: 'tool', tool_call_id: 'call_a', content: 'one' },
          { role: 'tool', tool_call_id: 'call_b', content: [{ type: 'text', text: 'two' }] },
          { role: 'user', content: 'and?' },
        ],
      });
      expect(tools).toEqual([{ name: 'look', schema: SCHEMA }]);
      expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
      expect(turns[1]).toMatchObject({
        texts: ['I look.'],
        calls: [
          { id: 'call_a', name: 'look', input: { at: 1 } },
          { id: 'call_b', name: 'look', input: {} },
        ],
      });
      expect(turns[2]).toMatchObject({
        texts: ['and?'],
        results: [
          { id: 'call_a', text: 'one' },
          { id: 'call_b', text: 'two' },
        ],
      });
    });

    it('DESIGN 8: arrives with the numbers of tool calls and their results as they are written', async () => {
      const messages: ChatMessage[] = [
        hello,
        { role: 'assistant', content: null, tool_calls: [toolCall('call_a', ODD_NUMBERS)] },
        { role: 'tool', tool_call_id: 'call_a', content: ODD_NUMBERS },
      ];
      await underTest().sent({ tools: [look], messages });
      const text = underTest().upstream.requests.at(-1)?.text ?? '';
      // Either an object, or its JSON as a string.
      expect(text.split(ODD_NUMBERS).length + text.split(JSON.stringify(ODD_NUMBERS)).length - 2).toBe(2);
      expect(text).not.toContain('switchyard');
    });

    it('arrives with the schema of its answer', async () => {
      const { schema } = await underTest().sent({ response_format: { type: 'json_schema', json_schema: { name: 'place', schema: SCHEMA, strict: true } } });
      expect(schema).toEqual(SCHEMA);
      expect((await underTest().sent({})).schema).toBeNull();
    });

    it.each(['a whole answer', 'a stream'])('returns the reasoning of %s as it came, to an upstream that signs it', async (form) => {
      const toolCalls = [{ id: 'call_a', name: 'look', arguments: ['{}'] }];
      const { parts } = await underTest().run({
        reasoning: ['let me ', 'see'],
        signature: 'c2lnbmVk',
        encrypted: 'c2VjcmV0',
        text: [],
        toolCalls,
        finish: 'tool_calls',
      });
      const { turns } = await underTest().sent({
        tools: [look],
        reasoning: { effort: 'high' },
        messages: [
          hello,
          {
            role: 'assistant',
            content: null,
            tool_calls: [toolCall('call_a', '{}')],
            reasoning: parts.map((part) => (part.type.startsWith('reasoning') && 'text' in part ? part.text : '')).join(''),
            reasoning_details: form === 'a stream' ? streamedDetails(parts) : wholeDetails(parts),
          },
          { role: 'tool', tool_call_id: 'call_a', content: 'one' },
        ],
      });
      expect(turns[1]?.reasoning).toEqual(underTest().target.returnedReasoning);
    });

    it('is the same with deferred messages', async () => {
      const messages: ChatMessage[] = [
        { role: 'system', content: 'be "kind"' },
        { role: 'user', content: [{ type: 'text', text: 'é\n😀' }] },
        { role: 'assistant', content: null, tool_calls: [toolCall('call_a', '{"at":1}')] },
        { role: 'tool', tool_call_id: 'call_a', content: 'one' },
        { role: 'user', content: 'x'.repeat(40_000) },
      ];
      const { adapter, upstream, callOf } = underTest();
      await underTest().sent({ tools: [look], messages });
      const call = callOf({ tools: [look] });
      deferMessages(call.request, new DeferredMessages(Buffer.from(JSON.stringify(messages)), sizeOfMessages(messages)));
      await adapter.stream(call, NEVER_ABORTED, () => true);
      expect(upstream.requests).toHaveLength(2);
      expect(upstream.requests[1]?.body).toEqual(upstream.requests[0]?.body);
      expect(echoBody(adapter.upstreamBody(call))).toEqual(echoBody(adapter.upstreamBody(callOf({ tools: [look], messages }))));
    });

    it('is echoed as it was sent, without the credential and without the bytes of files', async () => {
      const bytes = Buffer.alloc(3_000, 'a picture').toString('base64');
      const request = {
        messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'what is it?' }, picture(`data:image/png;base64,${bytes}`)] }],
      };
      await underTest().sent(request);
      const echo = JSON.stringify(echoBody(underTest().adapter.upstreamBody(underTest().callOf(request))));
      expect(echo).toContain('what is it?');
      expect(echo).not.toContain(bytes.slice(0, 100));
      expect(echo).not.toContain(API_KEY);
      expect(JSON.stringify(underTest().upstream.requests.at(-1)?.body)).toContain(bytes);
    });
  });
}

function wholeDetails(parts: readonly ProviderPart[]): unknown {
  const answer = emptyAnswer();
  for (const part of parts) addPart(answer, part);
  return (answer.reasoningPieces ?? []).map(detailOf);
}

/** As a client collects them: one detail per chunk. */
function streamedDetails(parts: readonly ProviderPart[]): unknown {
  return parts.flatMap((part) => wholeDetails([part]));
}
