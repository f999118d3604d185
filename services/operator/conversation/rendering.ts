import type { RenderDeps } from '#actors/effects/render-deps.ts';
import type { Evaluations } from '#actors/engine/evaluation/evaluation-set.ts';
import { isAnnouncement } from '#actors/engine/tools/announcement.ts';
import type { KnownCustomer } from '#actors/inputs/customer-reader.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionInMemory, ToolLists } from './session-in-memory.ts';

/** As histories of the runtime. */
const MAX_HISTORY_MESSAGES = 400;
const MAX_TOKENS = 100_000;

export interface RenderingFacts {
  bundle: Bundle;
  evaluations: Evaluations;
  tools: ToolLists;
  /** What prompts know of the customer. */
  customer: KnownCustomer;
}

/** What prompts of a conversation in memory are rendered with. */
export function renderingOf(session: SessionInMemory, { bundle, evaluations, customer, tools }: RenderingFacts): RenderDeps {
  const none = () => Promise.resolve([]);
  return {
    runs: {
      load: none,
      transcript: none,
      assistantMessages: none,
      toolLists: async (hashes) => new Map(hashes.map((hash) => [hash, tools.toolsOf(hash)])),
    },
    turns: { staged: async (turnIds) => new Map(turnIds.map((turnId) => [turnId, [...session.stagedOf(turnId)]])) },
    customers: { ofTurn: async () => customer },
    histories: { upTo: async (offset) => messagesIn(session.log.filter((event) => event.offset <= offset)) },
    bundleOf: async () => bundle,
    evaluationsOf: async () => evaluations,
    epochOf: () => undefined,
    settings: { streaming: false, maxTokens: MAX_TOKENS, modelKey: '', providerOrder: [] },
  };
}

/** What prompts show of a log. */
export function messagesIn(log: readonly ConversationEvent[]): ConversationEvent[] {
  return log.filter((event) => isMessage(event) && !isAnnouncement(event)).slice(-MAX_HISTORY_MESSAGES);
}

function isMessage({ kind }: ConversationEvent): boolean {
  return kind === 'user_message' || kind === 'assistant_message' || kind === 'preamble' || kind === 'tool';
}
