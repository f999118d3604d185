import { describe, expect, it, vi } from 'vitest';
import type { ChatMessage } from '#shared/contracts/router/chat-request.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { prepareCall } from './prepare-call.ts';
import { signatureCache } from './signature-cache.ts';

const NEVER_ABORTED = new AbortController().signal;
const hello: ChatMessage = { role: 'user', content: 'hi' };
const calling = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function' as const, function: { name: 'look', arguments: '{}' } })),
});
const picture = (url: string) => ({ type: 'image_url' as const, image_url: { url, detail: 'low' as const } });
const callOf = (...messages: ChatMessage[]) => ({ model: 'gemini-3-flash', request: { messages } });
const noGetter = { get: () => Promise.reject(new Error('nothing may be fetched')) };

describe('the signatures of a call', () => {
  const format = 'google-gemini-v1';

  it('are added where the client dropped them, for six hours', async () => {
    let nowMs = 0;
    const cache = memoryCache({ clock: { nowMs: () => nowMs } });
    const signatures = signatureCache(cache, 'google');
    signatures.store('a', 'sig-a');
    const call = callOf(hello, calling('a', 'b'));
    const prepared = await prepareCall(call, NEVER_ABORTED, { getter: noGetter, signatures });
    expect(prepared.request.messages[1]).toMatchObject({ reasoning_details: [{ type: 'reasoning.encrypted', data: 'sig-a', id: 'a', format }] });
    expect(call.request.messages[1]).not.toHaveProperty('reasoning_details');
    nowMs = 6 * 60 * 60 * 1_000;
    expect(await prepareCall(call, NEVER_ABORTED, { getter: noGetter, signatures })).toBe(call);
  });

  it('are those of the provider, and never replace what the client sent', async () => {
    const cache = memoryCache({ clock: { nowMs: () => 0 } });
    signatureCache(cache, 'other').store('a', 'foreign');
    signatureCache(cache, 'google').store('b', 'cached');
    const signatures = signatureCache(cache, 'google');
    const details = [{ type: 'reasoning.encrypted', data: 'sent', id: 'b', format }];
    const call = callOf(hello, calling('a'), { ...calling('b'), reasoning_details: details });
    expect(await prepareCall(call, NEVER_ABORTED, { getter: noGetter, signatures })).toBe(call);
  });

  it('are missing without a cache, and with one that fails or hangs', async () => {
    const call = callOf(hello, calling('a'));
    expect(await prepareCall(call, NEVER_ABORTED, { getter: noGetter, signatures: null })).toBe(call);
    const away = { get: () => Promise.reject(new Error('away')), set: () => Promise.reject(new Error('away')) };
    const hanging = { get: () => new Promise<string>(() => {}), set: () => new Promise<void>(() => {}) };
    for (const broken of [away, hanging]) {
      const signatures = signatureCache({ ...memoryCache({ clock: { nowMs: () => 0 } }), ...broken }, 'google');
      signatures.store('a', 'lost');
      expect(await prepareCall(call, NEVER_ABORTED, { getter: noGetter, signatures })).toBe(call);
    }
  });

  it('are not stored when they are too long, nor looked up beyond the last 64 calls', async () => {
    const cache = memoryCache({ clock: { nowMs: () => 0 } });
    const get = vi.fn((key: string) => cache.get(key));
    const signatures = signatureCache({ ...cache, get, set: (...entry) => cache.set(...entry) }, 'google');
    signatures.store('a', 'x'.repeat(64 * 1024 + 1));
    await signatures.find(Array.from({ length: 100 }, (_, index) => `call-${index}`));
    expect(get).toHaveBeenCalledTimes(64);
    expect(await signatures.find(['a'])).toEqual(new Map());
  });
});

describe('the pictures of a call', () => {
  const fetched = { mediaType: 'image/png', bytes: Buffer.from('hi') };

  it('by address are fetched once each, and sent as bytes', async () => {
    const get = vi.fn(async () => fetched);
    const url = 'https://files.test/a.png';
    const call = callOf({ role: 'user', content: [picture(url), { type: 'text', text: 'this' }, picture(url), picture('data:image/png;base64,eA==')] });
    const prepared = await prepareCall(call, NEVER_ABORTED, { getter: { get }, signatures: null });
    const bytes = picture('data:image/png;base64,aGk=');
    expect(prepared.request.messages).toEqual([
      { role: 'user', content: [bytes, { type: 'text', text: 'this' }, bytes, picture('data:image/png;base64,eA==')] },
    ]);
    expect(get).toHaveBeenCalledTimes(1);
  });

  it('share one limit of bytes', async () => {
    const limits: (number | undefined)[] = [];
    const get = async ({ maxBytes }: { maxBytes?: number }) => {
      limits.push(maxBytes);
      return fetched;
    };
    const content = [picture('https://files.test/a.png'), picture('https://files.test/b.png')];
    await prepareCall(callOf({ role: 'user', content }), NEVER_ABORTED, { getter: { get }, signatures: null });
    expect(limits).toEqual([20 * 1024 * 1024, 20 * 1024 * 1024 - 2]);
  });

  it('that can’t be fetched end the call, with the path of the item', async () => {
    const error = new SwitchyardError('outbound.refused', 'the host of the URL is an IP address instead of a name');
    const call = callOf(hello, { role: 'user', content: [picture('https://10.0.0.1/a.png')] });
    await expect(prepareCall(call, NEVER_ABORTED, { getter: { get: () => Promise.reject(error) }, signatures: null })).rejects.toMatchObject({
      code: 'router.provider_refused',
      message: 'messages[1].content[0].image_url.url: the host of the URL is an IP address instead of a name',
      details: { param: 'messages[1].content[0].image_url.url' },
    });
  });

  it('are at most sixteen', async () => {
    const content = Array.from({ length: 17 }, (_, index) => picture(`https://files.test/${index}.png`));
    const get = vi.fn(async () => fetched);
    await expect(prepareCall(callOf({ role: 'user', content }), NEVER_ABORTED, { getter: { get }, signatures: null })).rejects.toMatchObject({
      details: { param: 'messages[0].content[16].image_url.url' },
    });
    expect(get).toHaveBeenCalledTimes(16);
  });

  it('are fetched no further after an abort, whose reason is thrown', async () => {
    const controller = new AbortController();
    const reason = new Error('left');
    const get = ({ signal }: { signal?: AbortSignal }) =>
      new Promise<never>((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('ended')));
        controller.abort(reason);
      });
    const call = callOf({ role: 'user', content: [picture('https://files.test/a.png')] });
    await expect(prepareCall(call, controller.signal, { getter: { get }, signatures: null })).rejects.toBe(reason);
  });
});
