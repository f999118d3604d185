import { median } from '../figures.mjs';

const POLICIES = 100;
const WARM_UP = 200;
const PROMPTS = 50;
const ROUNDS = 9;

/** Milliseconds of CPU to build the question about a hundred policies, as a host does: in this process. @returns {Promise<number | null>} the median of some rounds */
export async function policyPromptMs() {
  const { matchSteps } = await import(new URL('../../dist/actors/engine/policies/match-steps.js', import.meta.url).href);
  const items = Array.from({ length: POLICIES }, (_, number) => ({
    id: `p${number}`,
    condition: `The customer asks about topic ${number}, and does not know the terms of this year yet`,
    action: `Say what the terms say about topic ${number}, in at most three sentences, and name the article of the terms`,
    options: [],
  }));
  const messages = Array.from({ length: 20 }, (_, offset) => ({
    ...{ id: `evt_${offset}`, offset, created_at: '2026-01-01T00:00:00.000Z', source: offset % 2 === 0 ? 'customer' : 'ai_agent', trace_id: '0'.repeat(32) },
    ...{
      metadata: {},
      kind: offset % 2 === 0 ? 'user_message' : 'assistant_message',
      text: 'How long is the warranty of my machine, and is the parcel free?',
    },
  }));
  const view = {
    ...{ callId: 'trn_01JD0000000000000000000000-1', nowMs: 0, agent: { id: 'bench', name: 'Bench' }, customerName: null, systemPrompt: 'You answer briefly.' },
    ...{ language: 'match_user', glossary: [], variables: [], history: messages, staged: [] },
  };
  const build = () => JSON.stringify(matchSteps.actionable.render(view, items)).length;
  for (let number = 0; number < WARM_UP; number += 1) build();
  return median(
    Array.from({ length: ROUNDS }, () => {
      const before = process.cpuUsage();
      for (let number = 0; number < PROMPTS; number += 1) build();
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000 / PROMPTS;
    }),
  );
}
