import { expect, it } from 'vitest';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { withDefaultPlugins } from './default-plugins.ts';

const request = (plugins?: ChatRequest['plugins']): ChatRequest => ({ messages: [], ...(plugins && { plugins }) });
const moderation = { id: 'moderation' as const };
const web = { id: 'web' as const, max_results: 3 };

it('adds the plugins of the account that a request does not name, behind its own', () => {
  expect(withDefaultPlugins(request(), [moderation, web], 'chat').plugins).toEqual([moderation, web]);
  expect(withDefaultPlugins(request([{ id: 'web', max_results: 1 }]), [moderation, web], 'chat').plugins).toEqual([{ id: 'web', max_results: 1 }, moderation]);
});

it('adds of them to a call for vectors only those that have a meaning for it', () => {
  expect(withDefaultPlugins(request(), [web, moderation], 'vectors').plugins).toEqual([moderation]);
  const plain = request();
  expect(withDefaultPlugins(plain, [web], 'vectors')).toEqual(plain);
});

it('leaves one that the request switches off', () => {
  const off = request([{ id: 'moderation', enabled: false }]);
  expect(withDefaultPlugins(off, [moderation], 'chat')).toBe(off);
});

it('changes nothing the second time, nor without defaults', () => {
  const once = withDefaultPlugins(request(), [moderation], 'chat');
  expect(withDefaultPlugins(once, [moderation], 'chat')).toBe(once);
  const plain = request();
  expect(withDefaultPlugins(plain, [], 'chat')).toBe(plain);
});
