import { describe, expect, it } from 'vitest';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { Unrenderable } from '../runtime/publish/unrenderable.ts';
import { moderation } from './moderation.ts';
import type { RenderDeps } from './render-deps.ts';

const said = { kind: 'user_message', text: 'It leaks', id: 'evt_1', offset: 4, created_at: '2026-01-01T00:00:00.000Z' } as const;
const message: ConversationEvent = { ...said, source: 'customer', trace_id: 'f'.repeat(32), metadata: {} };
const effect = {
  ...{ partition: 1, id: 'evt_1-moderation', sessionId: 'ses_1', actorId: 'evt_1', createdAtMs: 7, kind: 'moderation' },
  inputs: { deadlineAtMs: 30_007, traceparent: null, upToOffset: 4, mode: 'auto' as const },
};
const settings = { providerOrder: ['first'], streaming: true, maxTokens: 100, modelKey: 'sha256:0' };
const depsWith = (history: ConversationEvent[]) => ({ histories: { upTo: async () => history }, epochOf: () => 3, settings }) as unknown as RenderDeps;

describe('the check of a message', () => {
  it('rule 120: is a call of the moderation alone, which names no model and asks for no frames', async () => {
    const call = JSON.parse(JSON.stringify(await moderation.render(effect, false, depsWith([message])))) as object;
    expect(call).toMatchObject({ callId: 'evt_1-moderation', surface: 'moderation', want: 'none', keyId: 'sha256:0', step: { name: 'moderation' } });
    expect(call).toMatchObject({ reply: { sessionId: 'ses_1', actorId: 'evt_1', epoch: 3 }, request: { messages: [{ role: 'user', content: 'It leaks' }] } });
    expect(call).not.toHaveProperty('request.model');
  });

  it('rule 120: of a deleted message is reported at once', async () => {
    await expect(moderation.render(effect, true, depsWith([]))).rejects.toThrow(Unrenderable);
  });
});
