import { expect, it } from 'vitest';
import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { withDefaultPlugins } from './default-plugins.ts';

const request = (plugins?: ChatRequest['plugins']): ChatRequest => ({ messages: [], ...(plugins && { plugins }) });
const moderation = { id: 'moderation' as const };
const web = { id: 'web' as const, max_results: 3 };

it('adds the plugins of the account that a request does not name, behind its own', () => {
  expect(withDefaultPlugins(request(), [moderation, web]).plugins).toEqual([moderation, web]);
  expect(withDefaultPlugins(request([{ id: 'web', max_results: 1 }]), [moderation, web]).plugins).toEqual([{ id: 'web', max_results: 1 }, moderation]);
});

it('leaves one that the request switches off', () => {
  const off = request([{ id: 'moderation', enabled: false }]);
  expect(withDefaultPlugins(off, [moderation])).toBe(off);
});

it('changes nothing the second time, nor without defaults', () => {
  const once = withDefaultPlugins(request(), [moderation]);
  expect(withDefaultPlugins(once, [moderation])).toBe(once);
  const plain = request();
  expect(withDefaultPlugins(plain, [])).toBe(plain);
});
