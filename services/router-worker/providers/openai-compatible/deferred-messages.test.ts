import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { bodyJson, DeferredMessages, deferMessages, deferredIn } from '#shared/prompts/deferred-messages.ts';
import { areTextMessages } from '#shared/prompts/text-messages.ts';
import { sizeOfMessages } from '#shared/prompts/text-size.ts';
import { PROFILES, type ProfileName } from './profiles.ts';
import { toRequest } from './to-request.ts';

const messages: ChatRequest['messages'] = [
  { role: 'system', content: 'be "kind"\n' },
  { role: 'user', content: [{ type: 'text', text: 'é😀' }] },
  { content: null, role: 'assistant', tool_calls: [{ function: { arguments: '{}', name: 'f' }, id: 'c', type: 'function' }] },
  { role: 'tool', tool_call_id: 'c', content: '' },
];
const profiles = Object.keys(PROFILES) as ProfileName[];

function bodyOf(request: ChatRequest, profile: ProfileName): Record<string, unknown> {
  const form = PROFILES[profile];
  return toRequest({ model: 'upstream', request }, { maxTokensField: form.maxTokensField, refused: new Set(['top_k']) }, { slug: 'east', form });
}

function textOf(body: Record<string, unknown>): string {
  const json = bodyJson(body);
  return typeof json === 'string' ? json : Buffer.concat(json).toString();
}

describe('a request with deferred messages to an upstream of OpenAI’s API', () => {
  const deferred = () => new DeferredMessages(Buffer.from(JSON.stringify(messages)), sizeOfMessages(messages));

  it.each(profiles)('is the same text as with parsed ones, of %s', (profile) => {
    expect(areTextMessages(messages)).toBe(true);
    for (const others of [
      {},
      { model: 'a', temperature: 0, top_k: 3, max_tokens: 5, stream_options: {}, tools: [], provider_options: { east: { x: 1, messages: 2 } } },
    ]) {
      for (const request of [
        { messages, ...others },
        { ...others, messages },
      ]) {
        const body = bodyOf(deferMessages({ ...request }, deferred()), profile);
        expect(deferredIn(body)).not.toBeNull();
        expect(textOf(body)).toBe(JSON.stringify(bodyOf(request, profile)));
        expect(body).toEqual(bodyOf(request, profile));
      }
    }
  });

  it('has no messages where the upstream has refused them', () => {
    const form = PROFILES.generic;
    const request = deferMessages({ messages: [] } as unknown as ChatRequest, deferred());
    const compatibility = { maxTokensField: form.maxTokensField, refused: new Set(['messages']) };
    expect(JSON.parse(textOf(toRequest({ model: 'm', request }, compatibility, { slug: 'east', form })))).not.toHaveProperty('messages');
  });
});
