import { expect, it } from 'vitest';
import type { BundleBody } from '#shared/config/bundle-body.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { prompt } from '#shared/contracts/documents/prompt.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import { unknownCustomer } from '../inputs/customer-reader.ts';
import { stepView } from './step-view.ts';

const v1 = { id: 'one', version: 1 };
const body: BundleBody = {
  manifest: manifest.parse({
    ...{ id: 'acme', name: 'Acme', version: '1' },
    agent_config: {
      runtime: { api_key: '${A}' },
      platform: { public_key: '${B}', secret_key: '${C}' },
      llms: { default: 'openai/gpt-5', api_key: '${D}' },
      context: { system_prompt: v1, language: 'match_user' },
    },
  }),
  documents: { prompts: [prompt.parse({ ...v1, text: 'You help.' })], glossaries: [], routines: [], policies: [], macros: [], variable_sets: [] },
};

it('rule 110: announcements of tools are in no prompt; preambles are', async () => {
  const said = { created_at: '2026-01-01T00:00:00.000Z', trace_id: 'f'.repeat(32) };
  const events: ConversationEvent[] = [
    { ...said, id: 'evt_0', offset: 0, source: 'customer', metadata: {}, kind: 'user_message', text: 'Where is it?' },
    { ...said, id: 'evt_1', offset: 1, source: 'ai_agent', metadata: {}, kind: 'preamble', text: 'One moment.' },
    { ...said, id: 'evt_2', offset: 2, source: 'ai_agent', metadata: { announces: 'tools' }, kind: 'preamble', text: 'order' },
  ];
  const inputs = { deadlineAtMs: 1, traceparent: null, upToOffset: 2 };
  const effect = { partition: 1, id: 'trn_1-1', sessionId: 's', actorId: 'trn_1', createdAtMs: 0, kind: 'router-call', inputs };
  const { history } = await stepView(effect, body, unknownCustomer, { histories: { upTo: async () => events }, turns: { staged: async () => new Map() } });

  expect(history.map(({ id }) => id)).toEqual(['evt_0', 'evt_1']);
});
